"""What runs in the process that trains on: Keras 3 with masks, or the old Keras with tfmot.

`train_on` writes what this reads and reads what it writes.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from hft.inference.bundle import ARRAYS
from hft.inference.card import LayerEntry
from hft.inference.compress.prune_weights import mask_callback
from hft.inference.compress.train_on import TrainOn
from hft.inference.training.keras_models import keras_seeded, whole_model
from hft.inference.training.model_spec import ModelSpec

BATCH = 32


def train(
    layers: Sequence[dict[str, Any]], share: float, config: dict[str, Any], given: str, made: str
) -> None:
    """Trains the network in `given` on the pieces in it; writes its weights to `made`."""
    how = msgspec.convert(config, TrainOn)
    entries = tuple(msgspec.convert(entry, LayerEntry) for entry in layers)
    with np.load(given, allow_pickle=False) as found:
        arrays = dict(found)
    steps = -(-len(arrays["x"]) // BATCH) * how.epochs
    # Zeros are all there after two thirds, so that the rest of the steps mends what is left.
    end = max(steps * 2 // 3, 1)
    run = _with_tfmot if how.tool == "tfmot" else _with_masks
    model = run(entries, arrays, share, end, how)
    weights = {
        f"layer{n}_{part}": array
        for n, (entry, layer) in enumerate(zip(entries, model.layers, strict=True), 1)
        for part, array in zip(ARRAYS[entry.kind], layer.get_weights(), strict=True)
    }
    np.savez(made, allow_pickle=False, **weights)


def _with_masks(
    entries: tuple[LayerEntry, ...],
    arrays: dict[str, Any],
    share: float,
    end: int,
    how: TrainOn,
) -> Any:
    keras = keras_seeded(how.seed)
    model = _model(keras, entries, arrays)
    every = max(end // 20, 1)
    callbacks = [mask_callback(share, 0, end, every)] if share else []
    _fit(keras, model, arrays, how, callbacks)
    return model


def _with_tfmot(
    entries: tuple[LayerEntry, ...],
    arrays: dict[str, Any],
    share: float,
    end: int,
    how: TrainOn,
) -> Any:
    os.environ["TF_USE_LEGACY_KERAS"] = "1"  # before TensorFlow: the toolkit refuses Keras 3
    import tensorflow_model_optimization as tfmot
    import tf_keras

    tf_keras.utils.set_random_seed(how.seed)
    toolkit = tfmot.sparsity.keras
    schedule = toolkit.PolynomialDecay(0.0, share, 0, end, frequency=max(end // 20, 1))
    model = _model(tf_keras, entries, arrays)
    pruned = toolkit.prune_low_magnitude(model, pruning_schedule=schedule)
    _fit(tf_keras, pruned, arrays, how, [toolkit.UpdatePruningStep()])
    return toolkit.strip_pruning(pruned)


def _model(keras: Any, entries: tuple[LayerEntry, ...], arrays: dict[str, Any]) -> Any:
    outputs, inputs = entries[-1].units, arrays["x"].shape[2]
    model = whole_model(keras, ModelSpec("", entries[:-1]), inputs, outputs, window_rows=0)
    for n, (entry, layer) in enumerate(zip(entries, model.layers, strict=True), 1):
        layer.set_weights([arrays[f"layer{n}_{part}"] for part in ARRAYS[entry.kind]])
    return model


def _fit(
    keras: Any, model: Any, arrays: dict[str, Any], how: TrainOn, callbacks: list[Any]
) -> None:
    steps = -(-len(arrays["x"]) // BATCH) * how.epochs
    rate = keras.optimizers.schedules.CosineDecay(how.learning_rate, steps, alpha=0.05)
    model.compile(
        optimizer=keras.optimizers.Adam(rate, clipnorm=1.0),
        loss="categorical_crossentropy",
        weighted_metrics=[],
    )
    model.fit(
        arrays["x"],
        arrays["target"],
        sample_weight=arrays["weight"],
        batch_size=BATCH,
        epochs=how.epochs,
        verbose=0,
        callbacks=callbacks,
    )

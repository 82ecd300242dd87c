"""What runs in the process that has TensorFlow's optimization toolkit and the old Keras.

See `prune_weights.prune_with_tfmot`, which writes what it reads and reads what it writes.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hft.inference.bundle import ARRAYS

BATCH = 32
LEARNING_RATE = 5e-4
"""Of weights that are trained already."""

Entry = dict[str, Any]


def prune(folder: str, layers: Sequence[Entry], share: float, epochs: int, seed: int) -> None:
    """Trains the network of `in.npz` on its rows while it is pruned; writes `out.npz`."""
    os.environ["TF_USE_LEGACY_KERAS"] = "1"  # before TensorFlow: the toolkit refuses Keras 3
    import tensorflow_model_optimization as tfmot
    import tf_keras

    tf_keras.utils.set_random_seed(seed)
    with np.load(Path(folder) / "in.npz", allow_pickle=False) as found:
        arrays = dict(found)
    toolkit = tfmot.sparsity.keras
    steps = -(-len(arrays["x"]) // BATCH) * epochs
    # Done growing after two thirds, so that the rest of the steps mends what is left.
    end = max(steps * 2 // 3, 1)
    schedule = toolkit.PolynomialDecay(0.0, share, 0, end, frequency=max(end // 20, 1))
    model = _model(tf_keras, layers, arrays)
    pruned = toolkit.prune_low_magnitude(model, pruning_schedule=schedule)
    pruned.compile(
        optimizer=tf_keras.optimizers.Adam(LEARNING_RATE, clipnorm=1.0),
        loss="sparse_categorical_crossentropy",
        weighted_metrics=[],
    )
    pruned.fit(
        arrays["x"],
        arrays["label"],
        sample_weight=arrays["weight"],
        batch_size=BATCH,
        epochs=epochs,
        verbose=0,
        callbacks=[toolkit.UpdatePruningStep()],
    )
    stripped = toolkit.strip_pruning(pruned).layers
    made = {
        f"layer{n}_{part}": array
        for n, (entry, layer) in enumerate(zip(layers, stripped, strict=True))
        for part, array in zip(ARRAYS[entry["kind"]], layer.get_weights(), strict=True)
    }
    np.savez(Path(folder) / "out.npz", allow_pickle=False, **made)


def _model(tf_keras: Any, layers: Sequence[Entry], arrays: dict[str, Any]) -> Any:
    made = [tf_keras.Input(arrays["x"].shape[1:]), *(_layer(tf_keras, e) for e in layers)]
    model = tf_keras.Sequential(made)
    for n, (entry, layer) in enumerate(zip(layers, model.layers, strict=True)):
        layer.set_weights([arrays[f"layer{n}_{part}"] for part in ARRAYS[entry["kind"]]])
    return model


def _layer(tf_keras: Any, entry: Entry) -> Any:
    kind, units, activation = entry["kind"], entry["units"], entry.get("activation", "linear")
    if kind == "lstm":
        return tf_keras.layers.LSTM(units, return_sequences=True)
    if kind == "gru":
        return tf_keras.layers.GRU(units, return_sequences=True, reset_after=True)
    if kind == "conv":
        width = entry.get("width", 1)
        return tf_keras.layers.Conv1D(units, width, padding="causal", activation=activation)
    return tf_keras.layers.Dense(units, activation=activation)

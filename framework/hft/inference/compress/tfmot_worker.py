"""The process that has TensorFlow's optimization toolkit and the old Keras: see prune_weights.

Reads `order.json` and `in.npz` of the folder it is given, writes `out.npz`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from hft.inference.bundle import ARRAYS
from hft.inference.compress.prune_weights import TfmotOrder


def main(folder: Path) -> None:
    import tensorflow as tf
    import tensorflow_model_optimization as tfmot
    import tf_keras

    tf.config.threading.set_intra_op_parallelism_threads(1)
    order = msgspec.json.decode((folder / "order.json").read_bytes(), type=TfmotOrder)
    tf_keras.utils.set_random_seed(order.seed)
    with np.load(folder / "in.npz", allow_pickle=False) as found:
        arrays = dict(found)
    model = _model(tf_keras, order, arrays)
    steps = -(-len(arrays["x"]) // order.batch) * order.epochs
    prune = tfmot.sparsity.keras
    # Done growing after two thirds, so that the rest of the steps mends what is left.
    end = max(steps * 2 // 3, 1)
    schedule = prune.PolynomialDecay(0.0, order.share, 0, end, frequency=max(end // 20, 1))
    pruned = prune.prune_low_magnitude(model, pruning_schedule=schedule)
    pruned.compile(
        optimizer=tf_keras.optimizers.Adam(order.learning_rate, clipnorm=1.0),
        loss="sparse_categorical_crossentropy",
        weighted_metrics=[],
    )
    pruned.fit(
        arrays["x"],
        arrays["label"],
        sample_weight=arrays["weight"],
        batch_size=order.batch,
        epochs=order.epochs,
        verbose=0,
        callbacks=[prune.UpdatePruningStep()],
    )
    _write(prune.strip_pruning(pruned), order, folder)


def _model(tf_keras: Any, order: TfmotOrder, arrays: dict[str, Any]) -> Any:
    layers = [tf_keras.Input(arrays["x"].shape[1:]), *(_layer(tf_keras, e) for e in order.layers)]
    model = tf_keras.Sequential(layers)
    for n, (entry, layer) in enumerate(zip(order.layers, model.layers, strict=True)):
        layer.set_weights([arrays[f"layer{n}_{part}"] for part in ARRAYS[entry["kind"]]])
    return model


def _layer(tf_keras: Any, entry: dict[str, Any]) -> Any:
    kind, units, activation = entry["kind"], entry["units"], entry.get("activation", "linear")
    if kind == "lstm":
        return tf_keras.layers.LSTM(units, return_sequences=True)
    if kind == "gru":
        return tf_keras.layers.GRU(units, return_sequences=True, reset_after=True)
    if kind == "conv":
        width = entry.get("width", 1)
        return tf_keras.layers.Conv1D(units, width, padding="causal", activation=activation)
    return tf_keras.layers.Dense(units, activation=activation)


def _write(model: Any, order: TfmotOrder, folder: Path) -> None:
    arrays = {
        f"layer{n}_{part}": array
        for n, (entry, layer) in enumerate(zip(order.layers, model.layers, strict=True))
        for part, array in zip(ARRAYS[entry["kind"]], layer.get_weights(), strict=True)
    }
    np.savez(folder / "out.npz", allow_pickle=False, **arrays)


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""The LSTM in Keras: trained with state carried along, and compared with the native network."""

from __future__ import annotations

import importlib.util
import os
from typing import Any

import numpy as np
import numpy.typing as npt

from hft.errors import ConfigError
from hft.inference.bundle import Weights, core_layer
from hft.inference.card import LayerEntry
from hft.inference.dataset import Floats
from hft.inference.scores import log_loss
from hft.inference.task import Report, Task, TrainConfig

OUTPUTS = ("down", "flat", "up")
WARM_ROWS = 2_000
"""Rows before a slice that bring the state to where it would be."""


def fit(
    task: Task, config: TrainConfig, report: Report = print
) -> tuple[Weights, tuple[LayerEntry, ...]]:
    """The weights with the least calibration loss over the epochs."""
    keras = _keras(config.seed)
    model = _model(keras, task.rows.x.shape[1], config, batch=config.lanes, stateful=True)
    x, y, w = _lanes(task, config)
    steps = len(x) // config.lanes * config.epochs
    model.compile(
        optimizer=keras.optimizers.Adam(
            keras.optimizers.schedules.CosineDecay(config.learning_rate, steps, alpha=0.05),
            clipnorm=1.0,
        ),
        loss="sparse_categorical_crossentropy",
        weighted_metrics=[],
    )
    layers = entries_of_layers(config)
    best: tuple[float, Weights] = (np.inf, [])
    for epoch in range(config.epochs):
        for layer in model.layers:
            if hasattr(layer, "reset_state"):
                layer.reset_state()
        history = model.fit(
            x, y, sample_weight=w, batch_size=config.lanes, shuffle=False, epochs=1, verbose=0
        )
        weights = _weights(model)
        p = probabilities(task, weights, layers, task.parts.calibrate)
        cut = task.parts.calibrate
        loss = log_loss(p, task.label[cut], task.weight[cut])
        report(f"epoch {epoch + 1}: train {history.history['loss'][0]:.4f}, later {loss:.4f}")
        if loss < best[0]:
            best = (loss, weights)
    return best[1], layers


def probabilities(
    task: Task, weights: Weights, layers: tuple[LayerEntry, ...], cut: slice
) -> Floats:
    """(rows of `cut`, 3) by the native network, warmed up on the rows before."""
    from hft import _core

    s = task.scaler
    network = _core.build_network(
        list(s.mean),
        list(s.scale),
        s.clip,
        [core_layer(e, w) for e, w in zip(layers, weights, strict=True)],
    )
    start = max(cut.start - WARM_ROWS, 0)
    out = _core.NetworkStream(network).batch(np.ascontiguousarray(task.rows.x[start : cut.stop]))
    return np.asarray(out[cut.start - start :], np.float64)


def parity(task: Task, weights: Weights, config: TrainConfig, rows: int = 2_000) -> float:
    """Largest difference of a probability between Keras and the native network on test rows."""
    keras = _keras(config.seed)
    model = _model(keras, task.rows.x.shape[1], config, batch=1, stateful=False)
    for layer, arrays in zip(model.layers, weights, strict=True):
        layer.set_weights(list(arrays.values()))
    start = task.parts.test.start
    cut = slice(start, min(start + rows, task.parts.test.stop))
    warm = max(cut.start - WARM_ROWS, 0)
    theirs = model.predict(task.inputs[None, warm : cut.stop], verbose=0)[0, cut.start - warm :]
    ours = probabilities(task, weights, entries_of_layers(config), cut)
    return float(np.abs(theirs - ours).max())


def _lanes(task: Task, config: TrainConfig) -> tuple[npt.NDArray[Any], ...]:
    """Training rows as batches in time order: lane i of every batch continues lane i before it."""
    train = task.parts.train
    windows = (train.stop - train.start) // (config.lanes * config.window)
    if windows < 2:
        raise ConfigError(
            f"{train.stop - train.start} training rows are too few for {config.lanes} lanes of two "
            f"windows of {config.window} rows"
        )
    per_lane = windows * config.window
    first = train.stop - per_lane * config.lanes
    counted = task.weight[first : train.stop].reshape(config.lanes, per_lane).copy()
    counted[:, : config.warm_up_rows] = 0.0

    def batches(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        shaped = values.reshape(config.lanes, windows, config.window, *values.shape[1:])
        return np.ascontiguousarray(
            shaped.swapaxes(0, 1).reshape(-1, config.window, *values.shape[1:])
        )

    cut = slice(first, train.stop)
    weight = batches(counted.reshape(-1)).astype(np.float32)
    return batches(task.inputs[cut]), batches(task.label[cut]), weight


def require_keras() -> None:
    """Says at once, before hours of rows are made, that training cannot run.

    Raises:
        ConfigError: the extra `[train]` is not installed.
    """
    if any(importlib.util.find_spec(name) is None for name in ("keras", "tensorflow")):
        raise ConfigError("training needs Keras and TensorFlow: pip install 'hft-framework[train]'")


def _keras(seed: int) -> Any:
    require_keras()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
    os.environ["KERAS_BACKEND"] = "tensorflow"
    import keras
    import tensorflow as tf

    keras.utils.set_random_seed(seed)
    tf.config.experimental.enable_op_determinism()
    return keras


def _model(keras: Any, inputs: int, config: TrainConfig, batch: int, *, stateful: bool) -> Any:
    steps = config.window if stateful else None
    layers = [keras.Input(batch_shape=(batch, steps, inputs))]
    layers += [keras.layers.LSTM(u, return_sequences=True, stateful=stateful) for u in config.units]
    layers.append(keras.layers.Dense(len(OUTPUTS), activation="softmax"))
    return keras.Sequential(layers)


def entries_of_layers(config: TrainConfig) -> tuple[LayerEntry, ...]:
    lstm = tuple(LayerEntry(kind="lstm", units=u) for u in config.units)
    return (*lstm, LayerEntry(kind="dense", units=len(OUTPUTS), activation="softmax"))


def _weights(model: Any) -> Weights:
    found = []
    for layer in model.layers:
        arrays = [np.asarray(a, np.float32) for a in layer.get_weights()]
        names = ("kernel", "recurrent", "bias") if len(arrays) == 3 else ("kernel", "bias")
        found.append(dict(zip(names, arrays, strict=True)))
    return found

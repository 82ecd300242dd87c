"""Keras models of a spec: the form that is saved, and the form that is trained."""

from __future__ import annotations

import importlib.util
import os
from typing import Any

import numpy as np
import numpy.typing as npt

from hft.errors import ConfigError
from hft.inference.bundle import ARRAYS, Weights
from hft.inference.card import LayerEntry
from hft.inference.quiet import quietly
from hft.inference.training.model_spec import ModelSpec, Transformer

Arrays = list[npt.NDArray[np.float32]]
"""A model's weights as `model.get_weights()` orders them."""


def require_keras() -> None:
    """Says at once, before hours of rows are made, that training cannot run.

    Raises:
        ConfigError: the extra `[train]` is not installed.
    """
    if any(importlib.util.find_spec(name) is None for name in ("keras", "tensorflow")):
        raise ConfigError("training needs Keras and TensorFlow: pip install 'hft-framework[train]'")


def keras_seeded(seed: int) -> Any:
    """Keras on TensorFlow and the CPU, with every draw that follows decided by the seed."""
    require_keras()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
    os.environ["KERAS_BACKEND"] = "tensorflow"
    with quietly():
        import keras
        import tensorflow as tf

        tf.config.list_logical_devices()  # says that there is no GPU
    keras.utils.set_random_seed(seed)
    tf.config.experimental.enable_op_determinism()
    return keras


def whole_model(keras: Any, spec: ModelSpec, inputs: int, outputs: int, window_rows: int) -> Any:
    """Layers as Keras has them, without state: what is saved, and what a bundle is converted from.

    (n, rows, inputs) -> (n, rows, outputs) of a streaming model, for any number of rows;
    (n, window_rows, inputs) -> (n, outputs) of a windowed one.
    """
    if spec.transformer is not None:
        return _transformer(keras, spec.transformer, inputs, outputs, window_rows)
    # Every name is given: those that Keras makes up count what the process made before.
    made = [keras.Input((window_rows or None, inputs), name="x")]
    for n, entry in enumerate(spec.entries(outputs), 1):
        made.append(_layer(keras, entry, f"layer{n}_{entry.kind}", padding="causal"))
    if window_rows:
        made[-1:-1] = _last_row(keras, window_rows)
    return keras.Sequential(made, name="model")


def _last_row(keras: Any, rows: int) -> list[Any]:
    layers = keras.layers
    return [layers.Cropping1D((rows - 1, 0), name="last"), layers.Flatten(name="flat")]


def carried_model(keras: Any, spec: ModelSpec, inputs: int, outputs: int, rows: int) -> Any:
    """Layers that take and give their states: [x, states...] -> [y, states...].

    x is (lanes, rows, inputs). States lie in order of the layers: h and c of an LSTM, h of a GRU,
    the last width - 1 inputs of a convolution.
    """
    x = y = keras.Input((rows, inputs))
    before: list[Any] = []
    after: list[Any] = []
    width = inputs
    for entry in spec.entries(outputs):
        if entry.kind in ("lstm", "gru"):
            states = [keras.Input((entry.units,)) for _ in range(2 if entry.kind == "lstm" else 1)]
            layer = _layer(keras, entry, None, return_state=True)
            y, *left = layer(y, initial_state=states if len(states) > 1 else states[0])
        elif entry.kind == "conv" and entry.width > 1:
            states = [keras.Input((entry.width - 1, width))]
            longer = keras.layers.Concatenate(axis=1)([states[0], y])
            left = [keras.layers.Cropping1D((rows, 0))(longer)]
            y = _layer(keras, entry, None, padding="valid")(longer)
        else:
            states, left = [], []
            y = _layer(keras, entry, None, padding="valid")(y)
        before, after, width = before + states, after + left, entry.units
    return keras.Model([x, *before], [y, *after])


def _layer(keras: Any, entry: LayerEntry, name: str | None, **options: Any) -> Any:
    layers, units = keras.layers, entry.units
    if entry.kind in ("lstm", "gru"):
        state = bool(options.get("return_state"))
        kind = layers.LSTM if entry.kind == "lstm" else layers.GRU
        return kind(units, return_sequences=True, return_state=state, name=name)
    if entry.kind == "conv":
        return layers.Conv1D(
            units, entry.width, padding=options["padding"], activation=entry.activation, name=name
        )
    return layers.Dense(units, activation=entry.activation, name=name)


def _transformer(keras: Any, t: Transformer, inputs: int, outputs: int, rows: int) -> Any:
    """Pre-norm encoder; one bias a row of the window tells attention where it is."""
    layers = keras.layers
    x = keras.Input((rows, inputs), name="x")
    y = layers.EinsumDense(
        "btk,kd->btd", output_shape=(rows, t.d), bias_axes="td", name="embedding"
    )(x)
    for n in range(1, t.layers + 1):
        z = layers.LayerNormalization(name=f"norm{n}a")(y)
        z = layers.MultiHeadAttention(t.heads, t.d // t.heads, name=f"attention{n}")(z, z)
        y = layers.Add(name=f"add{n}a")([y, z])
        z = layers.LayerNormalization(name=f"norm{n}b")(y)
        z = layers.Dense(2 * t.d, activation="relu", name=f"wide{n}")(z)
        y = layers.Add(name=f"add{n}b")([y, layers.Dense(t.d, name=f"narrow{n}")(z)])
    for layer in (*_last_row(keras, rows), layers.LayerNormalization(name="norm")):
        y = layer(y)
    return keras.Model(x, layers.Dense(outputs, activation="softmax", name="head")(y), name="model")


def weights_of(entries: tuple[LayerEntry, ...], arrays: Arrays) -> Weights:
    """Flat arrays by layer and name, as a bundle has them."""
    left = iter(arrays)
    return [{name: next(left) for name in ARRAYS[entry.kind]} for entry in entries]


def arrays_of(weights: Weights) -> Arrays:
    """The other way round."""
    return [array for layer in weights for array in layer.values()]

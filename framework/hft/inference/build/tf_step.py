"""A network as a tf.Module of its own variables: one row and the states in, outputs and states out.

Not a Keras model in disguise: of such a one the converters lose the weights without a word, or
crash. What holds the variables is the module that is converted and saved.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hft.inference.build.memories import inputs_of, memories
from hft.inference.bundle import Weights
from hft.inference.card import LayerEntry
from hft.inference.quiet import quietly


def tensorflow() -> Any:
    """TensorFlow, on the CPU and quiet."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
    os.environ.setdefault("KERAS_BACKEND", "tensorflow")
    with quietly():
        import tensorflow as tf

    logging.getLogger("tensorflow").setLevel(logging.WARNING)  # "Assets written to: …"
    return tf


def step_module(layers: Sequence[LayerEntry], weights: Weights) -> tuple[Any, Any]:
    """The module and its concrete function `step`, names as in hft.inference.build.memories."""
    tf = tensorflow()
    memory = memories(layers, weights)
    shapes = {"x": (1, inputs_of(weights))} | {m.name: m.shape for of in memory for m in of}
    specs = {name: tf.TensorSpec(shape, tf.float32, name=name) for name, shape in shapes.items()}

    module = tf.Module(name="step")
    module.arrays = [
        {part: tf.Variable(array, name=f"layer{n}_{part}") for part, array in of.items()}
        for n, of in enumerate(weights, 1)
    ]

    def run(**given: Any) -> dict[str, Any]:
        x = given["x"]
        made: dict[str, Any] = {}
        for layer, arrays, of in zip(layers, module.arrays, memory, strict=True):
            states = [given[m.name] for m in of]
            x, new = _STEPS[layer.kind](tf, x, states, layer, arrays)
            made |= {m.out: state for m, state in zip(of, new, strict=True)}
        return {"y": x} | made

    module.step = tf.function(run, autograph=False)
    return module, module.step.get_concrete_function(**specs)


def _lstm(tf: Any, x: Any, states: list[Any], layer: LayerEntry, w: Any) -> tuple[Any, list[Any]]:
    h, c = states
    z = tf.matmul(x, w["kernel"]) + tf.matmul(h, w["recurrent"]) + w["bias"]
    i, f, candidate, o = tf.split(z, 4, axis=1)
    c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(candidate)
    h = tf.sigmoid(o) * tf.tanh(c)
    return h, [h, c]


def _gru(tf: Any, x: Any, states: list[Any], layer: LayerEntry, w: Any) -> tuple[Any, list[Any]]:
    (h,) = states
    of_x = tf.matmul(x, w["kernel"]) + w["bias"][0]
    of_h = tf.matmul(h, w["recurrent"]) + w["bias"][1]
    (xz, xr, new), (hz, hr, past) = tf.split(of_x, 3, axis=1), tf.split(of_h, 3, axis=1)
    z, r = tf.sigmoid(xz + hz), tf.sigmoid(xr + hr)
    candidate = tf.tanh(new + r * past)
    h = candidate + z * (h - candidate)
    return h, [h]


def _conv(tf: Any, x: Any, states: list[Any], layer: LayerEntry, w: Any) -> tuple[Any, list[Any]]:
    width, k, u = w["kernel"].shape
    seen = tf.concat([*states, tf.reshape(x, (1, 1, k))], axis=1)
    flat = tf.reshape(seen, (1, width * k))
    z = tf.matmul(flat, tf.reshape(w["kernel"], (width * k, u))) + w["bias"]
    return _activated(tf, layer, z), [seen[:, 1:]] if states else []


def _dense(tf: Any, x: Any, states: list[Any], layer: LayerEntry, w: Any) -> tuple[Any, list[Any]]:
    return _activated(tf, layer, tf.matmul(x, w["kernel"]) + w["bias"]), []


def _activated(tf: Any, layer: LayerEntry, z: Any) -> Any:
    return z if layer.activation == "linear" else getattr(tf.nn, layer.activation)(z)


_STEPS = {"lstm": _lstm, "gru": _gru, "conv": _conv, "dense": _dense}


def zero_states(layers: Sequence[LayerEntry], weights: Weights) -> dict[str, npt.NDArray[Any]]:
    """What a step begins with."""
    return {m.name: np.zeros(m.shape, np.float32) for of in memories(layers, weights) for m in of}

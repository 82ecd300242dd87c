"""The network over again in NumPy, float64, one row at a time: the oracle for the kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def sigmoid(x: Array) -> Array:
    return 1.0 / (1.0 + np.exp(-x))


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max())
    return e / e.sum()


ACTIVATIONS = {
    "linear": lambda x: x,
    "relu": lambda x: np.maximum(x, 0.0),
    "tanh": np.tanh,
    "sigmoid": sigmoid,
    "softmax": softmax,
}


def product(x: Array, kernel: Array, layer: dict[str, Any]) -> Array:
    """The product; both in 8 bits first where the layer's `precision` is int8."""
    if layer.get("precision") != "int8" or not kernel.size:
        return x @ kernel
    scale = np.abs(kernel).max(axis=0) / np.float32(127)
    steps = np.rint(kernel / np.where(scale > 0, scale, 1))
    top = np.abs(x).max()
    return (np.rint(x * (127 / top if top else 0.0)) @ steps) * scale * top / 127


def lstm_row(x: Array, memory: list[Array], layer: dict[str, Any]) -> Array:
    h, c = memory
    z = product(x, layer["kernel"], layer) + product(h, layer["recurrent"], layer) + layer["bias"]
    i, f, g, o = np.split(z, 4)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    memory[:] = [sigmoid(o) * np.tanh(c), c]
    return memory[0]


def gru_row(x: Array, memory: list[Array], layer: dict[str, Any]) -> Array:
    h = memory[0]
    xz, xr, xh = np.split(product(x, layer["kernel"], layer) + layer["bias"][0], 3)
    hz, hr, hh = np.split(product(h, layer["recurrent"], layer) + layer["bias"][1], 3)
    z, r = sigmoid(xz + hz), sigmoid(xr + hr)
    memory[0] = z * h + (1 - z) * np.tanh(xh + r * hh)
    return memory[0]


def conv_row(x: Array, memory: list[Array], layer: dict[str, Any]) -> Array:
    kernel = layer["kernel"]
    past = kernel[:-1].reshape(-1, kernel.shape[2])
    z = product(x, kernel[-1], layer) + product(memory[0], past, layer) + layer["bias"]
    memory[0] = np.concatenate([memory[0], x])[len(x) :]
    return ACTIVATIONS[layer["activation"]](z)


def dense_row(x: Array, memory: list[Array], layer: dict[str, Any]) -> Array:
    return ACTIVATIONS[layer["activation"]](product(x, layer["kernel"], layer) + layer["bias"])


def memory_of(layer: dict[str, Any]) -> list[Array]:
    if layer["kind"] == "conv":
        width, inputs, _ = layer["kernel"].shape
        return [np.zeros((width - 1) * inputs)]
    return [np.zeros(len(layer["recurrent"]))] * 2 if "recurrent" in layer else []


ROWS = {"lstm": lstm_row, "gru": gru_row, "conv": conv_row, "dense": dense_row}


def run(layers: list[dict[str, Any]], rows: Array) -> Array:
    """Outputs of `layers` (kind, weights, activation) over (n, inputs) scaled rows."""
    memory = [memory_of(layer) for layer in layers]
    outputs = []
    for x in rows.astype(np.float64):
        for layer, kept in zip(layers, memory, strict=True):
            x = ROWS[layer["kind"]](x, kept, layer)
        outputs.append(x)
    return np.array(outputs)


def random_lstm(rng: np.random.Generator, inputs: int, units: int) -> dict[str, Any]:
    return {
        "kind": "lstm",
        "kernel": weights(rng, inputs, 4 * units),
        "recurrent": weights(rng, units, 4 * units),
        "bias": weights(rng, 4 * units),
    }


def random_gru(rng: np.random.Generator, inputs: int, units: int) -> dict[str, Any]:
    return {
        "kind": "gru",
        "kernel": weights(rng, inputs, 3 * units),
        "recurrent": weights(rng, units, 3 * units),
        "bias": weights(rng, 2, 3 * units),
    }


def random_conv(
    rng: np.random.Generator, inputs: int, units: int, width: int, activation: str
) -> dict[str, Any]:
    return {
        "kind": "conv",
        "kernel": weights(rng, width * inputs, units).reshape(width, inputs, units),
        "bias": weights(rng, units),
        "activation": activation,
    }


def random_dense(
    rng: np.random.Generator, inputs: int, units: int, activation: str
) -> dict[str, Any]:
    return {
        "kind": "dense",
        "kernel": weights(rng, inputs, units),
        "bias": weights(rng, units),
        "activation": activation,
    }


def weights(rng: np.random.Generator, *shape: int) -> Array:
    return (rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)

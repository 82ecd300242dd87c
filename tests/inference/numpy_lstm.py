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


def lstm_row(x: Array, h: Array, c: Array, layer: dict[str, Array]) -> tuple[Array, Array]:
    z = x @ layer["kernel"] + h @ layer["recurrent"] + layer["bias"]
    i, f, g, o = np.split(z, 4)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def run(layers: list[dict[str, Any]], rows: Array) -> Array:
    """Outputs of `layers` (kind, weights, activation) over (n, inputs) scaled rows."""
    memory = {
        k: (np.zeros(len(layer["recurrent"])),) * 2
        for k, layer in enumerate(layers)
        if layer["kind"] == "lstm"
    }
    outputs = []
    for x in rows.astype(np.float64):
        for k, layer in enumerate(layers):
            if layer["kind"] == "lstm":
                memory[k] = lstm_row(x, *memory[k], layer)
                x = memory[k][0]
            else:
                x = ACTIVATIONS[layer["activation"]](x @ layer["kernel"] + layer["bias"])
        outputs.append(x)
    return np.array(outputs)


def random_lstm(rng: np.random.Generator, inputs: int, units: int) -> dict[str, Any]:
    return {
        "kind": "lstm",
        "kernel": weights(rng, inputs, 4 * units),
        "recurrent": weights(rng, units, 4 * units),
        "bias": weights(rng, 4 * units),
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

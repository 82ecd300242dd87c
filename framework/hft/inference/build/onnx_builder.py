"""ONNX models of native layers, built from their weights.

What a converter makes of an LSTM at batch 1 is a `Loop`, ten times slower, or a graph that the
checker refuses. A step here has neither loop nor LSTM node: two products a layer, gates, and the
states as inputs and outputs (hft.inference.build.memories). A window uses the LSTM and GRU nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hft.inference.build.memories import inputs_of, memories
from hft.inference.build.onnx_graph import Array, Graph
from hft.inference.bundle import Weights
from hft.inference.card import LayerEntry

LayerWeights = Mapping[str, npt.NDArray[np.float32]]


def step_model(
    layers: Sequence[LayerEntry],
    weights: Weights,
    precision: str = "fp32",
    reaches: Sequence[float] = (),
    wide: Sequence[int] = (),
) -> Any:
    """One row and the states in, outputs and new states out.

    Args:
        layers: of the network.
        weights: by layer.
        precision: `fp32`; `fp16`: weights in 16 bits, sums in float; `int8`: products in 8 bits
            by QuantizeLinear and DequantizeLinear, states and gates in float.
        reaches: int8: by layer, the largest |input| that calibration saw.
        wide: int8: numbers of layers, from 0, that stay in float.

    Returns:
        onnx.ModelProto, checked.
    """
    g = Graph(precision)
    x = g.input("x", (1, inputs_of(weights)))
    made = []
    for n, (layer, arrays, memory) in enumerate(
        zip(layers, weights, memories(layers, weights), strict=True)
    ):
        states = [g.input(m.name, m.shape) for m in memory]
        reach = 0.0 if precision != "int8" or n in wide else reaches[n]
        x, new = _STEPS[layer.kind](g, x, states, layer, arrays, reach)
        made += list(zip(new, memory, strict=True))
    g.output(x, "y", (1, layers[-1].units))
    for state, m in made:
        g.output(state, m.out, m.shape)
    return g.model("step")


def window_model(
    layers: Sequence[LayerEntry], weights: Weights, rows: int, precision: str = "fp32"
) -> Any:
    """(1, rows, k) from nothing -> outputs of the last row.

    Returns:
        onnx.ModelProto, checked.
    """
    g = Graph(precision)
    k = inputs_of(weights)
    x = g.node("Transpose", g.input("x", (1, rows, k)), perm=[1, 0, 2])  # (rows, 1, k)
    remembers = [n for n, m in enumerate(memories(layers, weights)) if m]
    last = remembers[-1] if remembers else -1
    for layer, arrays in zip(layers[: last + 1], weights[: last + 1], strict=True):
        x = _WINDOWS[layer.kind](g, x, layer, arrays)
    x = g.node("Gather", x, g.constant(np.array(rows - 1, np.int64)), axis=0)  # (1, units)
    for layer, arrays in zip(layers[last + 1 :], weights[last + 1 :], strict=True):
        x, _ = _STEPS[layer.kind](g, x, [], layer, arrays, 0.0)
    g.output(x, "y", (1, layers[-1].units))
    return g.model("window")


def _gates(array: Array, order: Sequence[int], count: int) -> Array:
    """Columns of the gates in another order; last axis is count * units."""
    return np.concatenate([np.split(array, count, axis=-1)[i] for i in order], axis=-1)


_HIDDEN_REACH = 1.0  # of what tanh and sigmoid gates make


def _lstm_step(
    g: Graph, x: str, states: list[str], layer: LayerEntry, arrays: LayerWeights, reach: float
) -> tuple[str, list[str]]:
    h, c = states
    u, order = layer.units, (0, 1, 3, 2)  # i, f, o beside each other: one Sigmoid for the three
    kernel, recurrent, bias = (
        _gates(arrays[part], order, 4) for part in ("kernel", "recurrent", "bias")
    )
    past = g.product(h, recurrent, g.constant(bias), _HIDDEN_REACH if reach else 0.0)
    opened, candidate = g.split(g.product(x, kernel, past, reach), [3 * u, u])
    i, f, o = g.split(g.node("Sigmoid", opened), [u, u, u])
    kept = g.node("Mul", f, c)
    c = g.node("Add", kept, g.node("Mul", i, g.node("Tanh", candidate)))
    h = g.node("Mul", o, g.node("Tanh", c))
    return h, [h, c]


def _gru_step(
    g: Graph, x: str, states: list[str], layer: LayerEntry, arrays: LayerWeights, reach: float
) -> tuple[str, list[str]]:
    (h,) = states
    u, b = layer.units, arrays["bias"]
    of_h = g.product(h, arrays["recurrent"], g.constant(b[1]), _HIDDEN_REACH if reach else 0.0)
    of_x = g.product(x, arrays["kernel"], g.constant(b[0]), reach)
    past_gates, past = g.split(of_h, [2 * u, u])
    new_gates, new = g.split(of_x, [2 * u, u])
    z, r = g.split(g.node("Sigmoid", g.node("Add", past_gates, new_gates)), [u, u])
    candidate = g.node("Tanh", g.node("Add", new, g.node("Mul", r, past)))
    # z h + (1 - z) candidate
    h = g.node("Add", candidate, g.node("Mul", z, g.node("Sub", h, candidate)))
    return h, [h]


def _conv_step(
    g: Graph, x: str, states: list[str], layer: LayerEntry, arrays: LayerWeights, reach: float
) -> tuple[str, list[str]]:
    kernel = arrays["kernel"]
    width, k, u = kernel.shape
    new: list[str] = []
    if states:
        row = g.node("Reshape", x, g.constant(np.array([1, 1, k], np.int64)))
        seen = g.node("Concat", states[0], row, axis=1)
        new = g.split(seen, [1, width - 1])[1:]
        x = g.node("Reshape", seen, g.constant(np.array([1, width * k], np.int64)))
    z = g.product(x, kernel.reshape(width * k, u), g.constant(arrays["bias"]), reach)
    return g.activation(layer.activation, z), new


def _dense_step(
    g: Graph, x: str, states: list[str], layer: LayerEntry, arrays: LayerWeights, reach: float
) -> tuple[str, list[str]]:
    z = g.product(x, arrays["kernel"], g.constant(arrays["bias"]), reach)
    return g.activation(layer.activation, z), []


def _lstm_window(g: Graph, x: str, layer: LayerEntry, arrays: LayerWeights) -> str:
    order = (0, 3, 1, 2)  # ours i, f, c, o; ONNX i, o, f, c
    w, r, b = (_gates(arrays[part], order, 4) for part in ("kernel", "recurrent", "bias"))
    bias = np.concatenate([b, np.zeros_like(b)])
    return _recurrent(g, x, "LSTM", layer, (w, r, bias))


def _gru_window(g: Graph, x: str, layer: LayerEntry, arrays: LayerWeights) -> str:
    values = (arrays["kernel"], arrays["recurrent"], arrays["bias"].reshape(-1))
    return _recurrent(g, x, "GRU", layer, values, linear_before_reset=1)


def _recurrent(
    g: Graph, x: str, op: str, layer: LayerEntry, values: Sequence[Array], **attributes: Any
) -> str:
    kernel, recurrent, bias = values
    out = g.node(
        op,
        x,
        g.weight(np.ascontiguousarray(kernel.T)[None]),
        g.weight(np.ascontiguousarray(recurrent.T)[None]),
        g.constant(bias[None].astype(np.float32)),
        hidden_size=layer.units,
        **attributes,
    )  # (rows, directions, 1, units)
    return g.node("Squeeze", out, g.constant(np.array([1], np.int64)))


def _conv_window(g: Graph, x: str, layer: LayerEntry, arrays: LayerWeights) -> str:
    kernel = np.ascontiguousarray(arrays["kernel"].transpose(2, 1, 0))  # (u, k, width)
    z = g.node(
        "Conv",
        g.node("Transpose", x, perm=[1, 2, 0]),
        g.weight(kernel),
        g.constant(arrays["bias"]),
        pads=[layer.width - 1, 0],
    )
    return g.activation(layer.activation, g.node("Transpose", z, perm=[2, 0, 1]))


def _dense_window(g: Graph, x: str, layer: LayerEntry, arrays: LayerWeights) -> str:
    product = g.node("MatMul", x, g.weight(arrays["kernel"]))
    return g.activation(layer.activation, g.node("Add", product, g.constant(arrays["bias"])))


_STEPS = {"lstm": _lstm_step, "gru": _gru_step, "conv": _conv_step, "dense": _dense_step}
_WINDOWS = {
    "lstm": _lstm_window,
    "gru": _gru_window,
    "conv": _conv_window,
    "dense": _dense_window,
}

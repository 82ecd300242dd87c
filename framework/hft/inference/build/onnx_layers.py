"""Native layers of an ONNX graph that is a chain of LSTM, GRU, Conv, Gemm and MatMul nodes.

What is read is tried against the graph itself afterwards, so nodes that only move axes are passed
over here without proof.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hft.inference.build.native_layers import Layers, NotNative
from hft.inference.card import LayerEntry

Array = npt.NDArray[np.float32]
_MOVES = (
    "Cast",
    "Concat",
    "Expand",
    "Flatten",
    "Gather",
    "Identity",
    "Reshape",
    "Shape",
    "Slice",
    "Squeeze",
    "Transpose",
    "Unsqueeze",
)
_ACTIVATIONS = {
    "Relu": "relu",
    "Tanh": "tanh",
    "Sigmoid": "sigmoid",
    "Softmax": "softmax",
}


class _Chain:
    def __init__(self) -> None:
        self.entries: list[LayerEntry] = []
        self.weights: list[dict[str, Array]] = []

    def add(self, kind: str, units: int, arrays: dict[str, Array], width: int = 1) -> None:
        arrays = {name: np.ascontiguousarray(a, np.float32) for name, a in arrays.items()}
        self.entries.append(LayerEntry(kind=kind, units=units, width=width))  # type: ignore[arg-type]
        self.weights.append(arrays)

    def activate(self, kind: str, node: Any) -> None:
        last = self.entries[-1] if self.entries else None
        if last is None or last.kind not in ("dense", "conv") or last.activation != "linear":
            raise NotNative(f"node {_name(node)} does not follow a dense or convolution layer")
        self.entries[-1] = LayerEntry(
            kind=last.kind,
            units=last.units,
            width=last.width,
            activation=kind,  # type: ignore[arg-type]
        )


def of_onnx(model: Any) -> Layers:
    """Layers of a graph from its first node to its last.

    Raises:
        NotNative: a node has no native form; says which.
    """
    from onnx import numpy_helper

    graph = model.graph
    constants = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
    chain = _Chain()
    for node in graph.node:
        if node.op_type == "Constant":
            constants[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)
        elif node.op_type == "Cast" and node.input[0] in constants:
            constants[node.output[0]] = constants[node.input[0]].astype(np.float32)
        elif node.op_type in _READERS:
            _READERS[node.op_type](chain, node, _values(node), constants)
        elif node.op_type in _ACTIVATIONS:
            chain.activate(_ACTIVATIONS[node.op_type], node)
        elif node.op_type not in _MOVES:
            raise NotNative(f"node {_name(node)} has no native form")
    if not chain.entries:
        raise NotNative("there is no node with weights")
    return Layers(tuple(chain.entries), chain.weights)


def _name(node: Any) -> str:
    return f"{node.name or node.output[0]} ({node.op_type})"


def _values(node: Any) -> dict[str, Any]:
    from onnx import helper

    return {a.name: helper.get_attribute_value(a) for a in node.attribute}


def _given(node: Any, constants: dict[str, Any], at: int) -> Any:
    """A constant input; None: not given."""
    if at >= len(node.input) or not node.input[at]:
        return None
    if node.input[at] not in constants:
        raise NotNative(f"node {_name(node)} takes {node.input[at]!r}, which is no constant")
    return constants[node.input[at]]


def _lstm(chain: _Chain, node: Any, values: dict[str, Any], constants: dict[str, Any]) -> None:
    w, r, b = _recurrent(node, values, constants, 4)
    order = (0, 2, 3, 1)  # ONNX i, o, f, c; ours i, f, c, o
    swapped = [_gates(a, order) for a in (w.T, r.T, b[: len(w)] + b[len(w) :])]
    chain.add("lstm", r.shape[1], dict(zip(("kernel", "recurrent", "bias"), swapped, strict=True)))


def _gru(chain: _Chain, node: Any, values: dict[str, Any], constants: dict[str, Any]) -> None:
    if not values.get("linear_before_reset", 0):
        raise NotNative(f"node {_name(node)} has linear_before_reset 0; native is 1 (reset_after)")
    w, r, b = _recurrent(node, values, constants, 3)
    chain.add("gru", r.shape[1], {"kernel": w.T, "recurrent": r.T, "bias": b.reshape(2, -1)})


def _recurrent(
    node: Any, values: dict[str, Any], constants: dict[str, Any], gates: int
) -> tuple[Array, Array, Array]:
    for name, wanted in (("direction", b"forward"), ("activations", None), ("input_forget", 0)):
        if values.get(name, wanted) != wanted:
            raise NotNative(f"node {_name(node)} has {name} {values[name]}")
    w, r = _given(node, constants, 1)[0], _given(node, constants, 2)[0]
    b = _given(node, constants, 3)
    return w, r, np.zeros(2 * gates * r.shape[1], np.float32) if b is None else b[0]


def _gates(array: Array, order: tuple[int, ...]) -> Array:
    parts = np.split(array, len(order), axis=-1)
    return np.concatenate([parts[i] for i in order], axis=-1)


def _conv(chain: _Chain, node: Any, values: dict[str, Any], constants: dict[str, Any]) -> None:
    kernel, bias = _given(node, constants, 1), _given(node, constants, 2)
    kernel = kernel.reshape(*kernel.shape[:2], -1)  # (units, inputs, width); of 2-D, one row high
    width = kernel.shape[2]
    alone = ("strides", "dilations", "group")
    if any(set(np.ravel(values.get(name, 1))) != {1} for name in alone):
        raise NotNative(f"node {_name(node)} has strides, dilations or groups")
    bias = np.zeros(len(kernel), np.float32) if bias is None else bias
    chain.add("conv", len(kernel), {"kernel": kernel.transpose(2, 1, 0), "bias": bias}, width)


def _gemm(chain: _Chain, node: Any, values: dict[str, Any], constants: dict[str, Any]) -> None:
    kernel, bias = _given(node, constants, 1), _given(node, constants, 2)
    if values.get("transA", 0) or values.get("alpha", 1.0) != 1.0 or values.get("beta", 1.0) != 1.0:
        raise NotNative(f"node {_name(node)} is scaled or takes its input transposed")
    kernel = kernel.T if values.get("transB", 0) else kernel
    _dense(chain, kernel, bias)


def _matmul(chain: _Chain, node: Any, values: dict[str, Any], constants: dict[str, Any]) -> None:
    _dense(chain, _given(node, constants, 1), None)


def _dense(chain: _Chain, kernel: Any, bias: Any) -> None:
    if kernel.ndim != 2:
        raise NotNative(f"a product with a constant of shape {kernel.shape}")
    units = kernel.shape[1]
    bias = np.zeros(units, np.float32) if bias is None else np.broadcast_to(bias, (units,))
    chain.add("dense", units, {"kernel": kernel, "bias": bias})


def _add(chain: _Chain, node: Any, values: dict[str, Any], constants: dict[str, Any]) -> None:
    both = [constants[name] for name in node.input if name in constants]
    last = chain.entries[-1] if chain.entries else None
    fits = last is not None and last.kind in ("dense", "conv") and last.activation == "linear"
    if not fits or len(both) != 1 or both[0].size not in (1, chain.entries[-1].units):
        raise NotNative(f"node {_name(node)} adds what is no bias")
    bias = chain.weights[-1]["bias"]
    chain.weights[-1]["bias"] = (bias + np.ravel(both[0])).astype(np.float32)


_READERS = {
    "LSTM": _lstm,
    "GRU": _gru,
    "Conv": _conv,
    "Gemm": _gemm,
    "MatMul": _matmul,
    "Add": _add,
}

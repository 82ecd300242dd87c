"""An ONNX graph put together node by node, and its matrix products in every precision."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

OPSET, IR = 17, 8
Array = npt.NDArray[Any]


def quantised(kernel: Array) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float32]]:
    """Symmetric 8 bits, a scale for each output (last axis).

    Args:
        kernel: (..., u) float.

    Returns:
        (..., u) int8 and (u,) float32, kernel ~ int8 * scale.
    """
    axes = tuple(range(kernel.ndim - 1))
    scale = np.maximum(np.abs(kernel).max(axis=axes), 1e-12) / 127.0
    return np.rint(kernel / scale).astype(np.int8), scale.astype(np.float32)


class Graph:
    """Nodes and constants so far. Methods return the name of what they made."""

    def __init__(self, precision: str = "fp32") -> None:
        self.precision = precision
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []

    def input(self, name: str, shape: Sequence[int]) -> str:
        self._inputs.append(_float_value(name, shape))
        return name

    def output(self, made: str, name: str, shape: Sequence[int]) -> None:
        self._outputs.append(_float_value(name, shape))
        self.node("Identity", made, out=name)

    def constant(self, array: Array) -> str:
        from onnx import numpy_helper

        name = f"w{len(self._constants) + 1}"
        self._constants.append(numpy_helper.from_array(np.asarray(array, order="C"), name))
        return name

    def node(self, op: str, *inputs: str, out: str = "", **attributes: Any) -> str:
        return self.nodes(op, *inputs, outs=[out or self._fresh()], **attributes)[0]

    def nodes(self, op: str, *inputs: str, outs: list[str], **attributes: Any) -> list[str]:
        from onnx import helper

        self._nodes.append(helper.make_node(op, list(inputs), outs, **attributes))
        return outs

    def split(self, value: str, sizes: Sequence[int], axis: int = 1) -> list[str]:
        outs = [f"{self._fresh()}_{i}" for i in range(len(sizes))]
        return self.nodes(
            "Split", value, self.constant(np.array(sizes, np.int64)), outs=outs, axis=axis
        )

    def weight(self, kernel: Array) -> str:
        """A float constant; in fp16 kept as such and widened where it is used."""
        if self.precision != "fp16":
            return self.constant(kernel.astype(np.float32))
        from onnx import TensorProto

        return self.node("Cast", self.constant(kernel.astype(np.float16)), to=TensorProto.FLOAT)

    def product(self, x: str, kernel: Array, added: str, reach: float = 0.0) -> str:
        """The name of x @ kernel + added, (1, u).

        Args:
            x: name of (1, n).
            kernel: (n, u).
            added: name of (u,) or (1, u).
            reach: largest |x| expected, for products in 8 bits; 0: in float.
        """
        if not reach:
            return self.node("Gemm", x, self.weight(kernel), added)
        # added - x @ -kernel: ONNX Runtime joins a product and a sum to a Gemm before it looks for
        # products in 8 bits, and then computes this one in float, at twice the time.
        narrow, scale = quantised(-kernel)
        columns = self.node(
            "DequantizeLinear",
            self.constant(narrow),
            self.constant(scale),
            self.constant(np.zeros(len(scale), np.int8)),
            axis=1,
        )
        return self.node("Sub", added, self.node("MatMul", self._narrow(x, reach), columns))

    def activation(self, kind: str, z: str) -> str:
        ops = {"relu": "Relu", "tanh": "Tanh", "sigmoid": "Sigmoid"}
        if kind == "softmax":
            return self.node("Softmax", z, axis=-1)
        return z if kind == "linear" else self.node(ops[kind], z)

    def model(self, name: str) -> Any:
        """The whole, checked in full.

        Raises:
            onnx.checker.ValidationError: what was put together is no valid model.
        """
        import onnx
        from onnx import helper

        graph = helper.make_graph(
            self._nodes, name, self._inputs, self._outputs, initializer=self._constants
        )
        opsets = [helper.make_opsetid("", OPSET)]
        model = helper.make_model(graph, producer_name="hft", opset_imports=opsets, ir_version=IR)
        onnx.checker.check_model(model, full_check=True)
        return model

    def _narrow(self, x: str, reach: float) -> str:
        scale = self.constant(np.array(reach / 127.0, np.float32))
        zero = self.constant(np.array(0, np.int8))
        return self.node(
            "DequantizeLinear", self.node("QuantizeLinear", x, scale, zero), scale, zero
        )

    def _fresh(self) -> str:
        return f"v{len(self._nodes) + 1}"


def write_onnx(model: Any, path: Path) -> None:
    path.write_bytes(model.SerializeToString(deterministic=True))


def _float_value(name: str, shape: Sequence[int]) -> Any:
    from onnx import TensorProto, helper

    return helper.make_tensor_value_info(name, TensorProto.FLOAT, list(shape))

"""ONNX Runtime on the CPU.

Inputs and outputs are bound to a stream's own arrays once, twice over: what one step writes as its
new states the next one reads as its old ones, so that nothing is copied or made between them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from hft.errors import ConfigError, ModelError
from hft.inference.backends.in_process import InProcessBackend
from hft.inference.backends.parts import AGAIN, PartState, Signature


class OnnxState(PartState):
    """Two bindings, from one set of memories to the other and back."""

    def __init__(self, owner: OnnxBackend) -> None:
        super().__init__(owner)
        self.memories = [
            {name: np.zeros(shape, np.float32) for name, shape in owner.signature.memories.items()}
            for _ in range(2)
        ]
        self.bindings = [owner.bound(self, old, 1 - old) for old in range(2)]
        self.turn = 0


class OnnxBackend(InProcessBackend):
    """A step, or a window, in ONNX Runtime."""

    name = "onnx"

    def _open(self, path: Path, threads: int) -> Signature:
        self._ort = ort = _onnxruntime()
        try:
            self._session = ort.InferenceSession(
                path, _options(ort, threads), providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # its exceptions have no common class
            raise ModelError(f"{path}: ONNX Runtime does not load it: {error}; {AGAIN}") from error
        return Signature(_shapes(self._session.get_inputs()), _shapes(self._session.get_outputs()))

    def bound(self, state: OnnxState, old: int, new: int) -> Any:
        """A binding from memories `old` to memories `new`."""
        value = self._ort.OrtValue.ortvalue_from_numpy  # shares the array, on the CPU
        binding = self._session.io_binding()
        binding.bind_ortvalue_input("x", value(state.x))
        binding.bind_ortvalue_output("y", value(state.y))
        for name in self.signature.memories:
            binding.bind_ortvalue_input(name, value(state.memories[old][name]))
            binding.bind_ortvalue_output(f"{name}_out", value(state.memories[new][name]))
        return binding

    def _state(self) -> OnnxState:
        return OnnxState(self)

    def _run(self, state: OnnxState) -> None:
        try:
            self._session.run_with_iobinding(state.bindings[state.turn])
        except Exception as error:
            raise ModelError(f"{self._path}: ONNX Runtime failed: {error}") from error
        state.turn = 1 - state.turn

    def _forget(self, state: OnnxState) -> None:
        for memories in state.memories:
            for memory in memories.values():
                memory.fill(0.0)

    def _close(self) -> None:
        del self._session


def _onnxruntime() -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        raise ConfigError(
            "backend onnx needs ONNX Runtime: pip install 'hft-framework[onnx]'"
        ) from error
    return onnxruntime


def _options(ort: Any, threads: int) -> Any:
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.log_severity_level = 3
    # Spinning threads take the cores that market data wants.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.inter_op.allow_spinning", "0")
    return options


def _shapes(values: Any) -> dict[str, tuple[int | None, ...]]:
    return {v.name: tuple(n if isinstance(n, int) else None for n in v.shape) for v in values}

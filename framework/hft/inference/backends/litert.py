"""LiteRT (TensorFlow Lite): a step, its signature called `step`.

An interpreter has one set of tensors and is not for two threads at once: streams take turns at it
under a lock, their memories kept apart. For steps that overlap, open one backend a thread.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np

from hft.errors import ConfigError, ModelError
from hft.inference.backends.in_process import InProcessBackend
from hft.inference.backends.parts import AGAIN, PartState, Signature


class LiteRtState(PartState):
    """What the stream's tensors held after its last step."""

    def __init__(self, owner: LiteRtBackend) -> None:
        super().__init__(owner)
        memories = owner.signature.memories
        self.memories = {name: np.zeros(shape, np.float32) for name, shape in memories.items()}


class LiteRtBackend(InProcessBackend):
    """The interpreter; a windowed model is stepped through its rows from nothing."""

    name = "litert"
    forms = ("step",)

    def _open(self, path: Path, threads: int) -> Signature:
        interpreter_of = _interpreter()
        try:
            self._interpreter = interpreter_of(model_path=str(path), num_threads=threads)
            self._interpreter.allocate_tensors()
            self._given, self._made = given, made = _details(self._interpreter)
        except (ValueError, RuntimeError) as error:
            raise ModelError(f"{path}: LiteRT does not load it: {error}; {AGAIN}") from error
        return Signature(_shapes(given), _shapes(made))

    def _prepare(self) -> None:
        given, made = self._given, self._made
        self._busy = threading.Lock()
        self._x, self._y = given["x"]["index"], made["y"]["index"]
        self._memories = [
            (name, given[name]["index"], made[f"{name}_out"]["index"])
            for name in self.signature.memories
        ]

    def _state(self) -> LiteRtState:
        return LiteRtState(self)

    def _run(self, state: LiteRtState) -> None:
        run, memories = self._interpreter, state.memories
        try:
            with self._busy:
                run.set_tensor(self._x, state.x)
                for name, old, _ in self._memories:
                    run.set_tensor(old, memories[name])
                run.invoke()
                state.y[...] = run.tensor(self._y)()
                for name, _, new in self._memories:
                    memories[name][...] = run.tensor(new)()
        except (ValueError, RuntimeError) as error:
            raise ModelError(f"{self._path}: LiteRT failed: {error}") from error

    def _forget(self, state: LiteRtState) -> None:
        for memory in state.memories.values():
            memory.fill(0.0)

    def _close(self) -> None:
        del self._interpreter


def _interpreter() -> Any:
    try:
        from ai_edge_litert.interpreter import Interpreter
    except ImportError as error:
        raise ConfigError(
            "backend litert needs LiteRT: pip install 'hft-framework[litert]'"
        ) from error
    return Interpreter


def _details(interpreter: Any) -> tuple[Any, Any]:
    """Inputs and outputs of the step by name. While a runner lives, an interpreter does not run."""
    runner = interpreter.get_signature_runner("step")
    return runner.get_input_details(), runner.get_output_details()


def _shapes(details: Any) -> dict[str, tuple[int | None, ...]]:
    return {name: tuple(int(n) for n in d["shape"]) for name, d in details.items()}

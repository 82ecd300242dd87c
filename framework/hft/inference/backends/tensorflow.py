"""TensorFlow in this process: a SavedModel's concrete function, on the CPU.

TensorFlow's threads belong to the process and are set before it first computes. A backend that
wants another number than runs already is refused: it would measure and run something else.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hft.errors import ConfigError, ModelError
from hft.inference.backends.frame import Doubles, Floats
from hft.inference.backends.in_process import InProcessBackend
from hft.inference.backends.parts import AGAIN, PartState, Signature

SIGNATURES = {"step": "step", "window": "serving_default"}


class TensorFlowState(PartState):
    """Memories as the tensors that the last step gave."""

    def __init__(self, owner: TensorFlowBackend) -> None:
        super().__init__(owner)
        self.memories = dict(owner.zeros)


class TensorFlowBackend(InProcessBackend):
    """A step, or windows of any number of streams at once."""

    name = "tensorflow"

    def _open(self, path: Path, threads: int) -> Signature:
        self._tf = tensorflow_with(threads)
        try:
            self._loaded = self._tf.saved_model.load(str(path))
        except Exception as error:  # whatever a damaged folder brings forth
            raise ModelError(f"{path}: TensorFlow does not load it: {error}; {AGAIN}") from error
        name = SIGNATURES[self.form]
        if name not in self._loaded.signatures:
            there = ", ".join(self._loaded.signatures) or "none"
            raise ModelError(f"{path}: no signature {name}, there are {there}; {AGAIN}")
        self._function = self._loaded.signatures[name]
        return Signature(
            _shapes(self._function.structured_input_signature[1]),
            _shapes(self._function.structured_outputs),
        )

    def _prepare(self) -> None:
        self.zeros = {
            name: self._tf.zeros(shape, self._tf.float32)
            for name, shape in self.signature.memories.items()
        }

    def _state(self) -> TensorFlowState:
        return TensorFlowState(self)

    def _run(self, state: TensorFlowState) -> None:
        made = self._called(x=self._tf.constant(state.x), **state.memories)
        state.y[...] = made["y"].numpy()
        state.memories = {name: made[f"{name}_out"] for name in state.memories}

    def _called(self, **given: Any) -> Any:
        try:
            return self._function(**given)
        except self._tf.errors.OpError as error:
            raise ModelError(f"{self._path}: TensorFlow failed: {error}") from error

    def _batch(self, states: Sequence[TensorFlowState], rows: Doubles, out: Floats) -> None:
        if self.form == "window" and self.signature.inputs["x"][0] is None:
            self._batch_windows(states, rows, out, self._answers)
        else:
            super()._batch(states, rows, out)

    def _answers(self, x: Floats) -> Floats:
        answers: Floats = self._called(x=self._tf.constant(x))["y"].numpy()
        return answers

    def _forget(self, state: TensorFlowState) -> None:
        state.memories = dict(self.zeros)

    def _close(self) -> None:
        del self._function, self._loaded


def tensorflow_with(threads: int) -> Any:
    """TensorFlow with so many threads an operation and one operation at a time.

    Raises:
        ConfigError: not installed, or it runs with other threads in this process.
    """
    try:
        from hft.inference.build.tf_step import tensorflow

        tf = tensorflow()
    except ImportError as error:
        raise ConfigError(
            "backend tensorflow needs TensorFlow: pip install 'hft-framework[train]'"
        ) from error
    try:
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(1)
    except RuntimeError as error:  # it has begun
        running = running_threads(tf)
        if running != (threads, 1):
            raise ConfigError(
                f"backend tensorflow wants {threads} threads for 1 operation at a time, but "
                f"TensorFlow runs in this process already with {running[0]} for {running[1]}; open "
                "the backend before anything else computes with it, in another process, or set "
                "TF_NUM_INTRAOP_THREADS and TF_NUM_INTEROP_THREADS"
            ) from error
    return tf


def running_threads(tf: Any) -> tuple[int, int]:
    """Threads of an operation and operations at a time that this process' TensorFlow has."""
    threading = tf.config.threading
    return (
        threading.get_intra_op_parallelism_threads() or _threads_of("TF_NUM_INTRAOP_THREADS"),
        threading.get_inter_op_parallelism_threads() or _threads_of("TF_NUM_INTEROP_THREADS"),
    )


def _threads_of(variable: str) -> int:
    """What TensorFlow takes where it is not told: the variable's number, or one a core."""
    told = os.environ.get(variable, "")
    return int(told) if told.isdecimal() and int(told) else len(os.sched_getaffinity(0))


def _shapes(specs: Any) -> dict[str, tuple[int | None, ...]]:
    return {name: tuple(spec.shape.as_list()) for name, spec in specs.items()}

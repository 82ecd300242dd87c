"""The core's own kernels: the form that runs inline in the trading thread.

The engine steps the same network in C++; from Python a call around it takes as long as some steps,
so `warm_up` times the step in the core.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hft.inference.backends.base import Backend, State
from hft.inference.backends.frame import Doubles, Floats
from hft.inference.bundle import Bundle
from hft.inference.card import TierName


class NativeState(State):
    """A stream or window of the core."""

    __slots__ = ("arm", "reset", "step", "stream")

    def __init__(self, owner: NativeBackend) -> None:
        from hft import _core

        super().__init__(owner)
        if owner.window_rows:
            self.stream: Any = _core.NetworkWindow(owner.network, owner.window_rows)
            self.arm = self.stream.settle
        else:
            self.stream = _core.NetworkStream(owner.network)
            self.arm = self.stream.arm
        self.step, self.reset = self.stream.step, self.stream.reset


class NativeBackend(Backend):
    """LSTM, GRU, causal convolution and dense layers on AVX-512, AVX2 or portable kernels."""

    name = "native"

    def __init__(self, bundle: Bundle, tier: TierName, precision: str) -> None:
        self.network = bundle.network(tier=tier, precision=precision)
        own = sorted({layer.precision for layer in bundle.layers(tier)})
        super().__init__(bundle, tier, precision or "+".join(own))

    def _state(self) -> NativeState:
        return NativeState(self)

    def _step(self, state: NativeState, row: Doubles, out: Floats) -> None:
        state.step(row, out)

    def _batch(self, states: Sequence[NativeState], rows: Doubles, out: Floats) -> None:
        from hft import _core

        if self.window_rows:
            super()._batch(states, rows, out)
        else:
            _core.step_streams([state.stream for state in states], rows, out)

    def _window(self, state: NativeState, rows: Doubles, out: Floats) -> None:
        run = state.stream.steps if self.window_rows else state.stream.batch
        out[:] = run(rows)[-1]

    def _arm(self, state: NativeState) -> None:
        state.arm()

    def _reset(self, state: NativeState) -> None:
        state.reset()

    def _timed(self, rows: Doubles, calls: int, longest_s: float) -> Any:
        from hft.inference.bench.native import time_native

        mode = "window" if self.window_rows else "step"
        return time_native(
            self.network,
            rows,
            mode,  # type: ignore[arg-type]
            seconds=longest_s,
            window_rows=self.window_rows or 1,
            most=calls,
            least=min(calls, 50),
        ).ns

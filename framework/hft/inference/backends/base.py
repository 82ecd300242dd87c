"""One face of everything that computes a model, whatever computes it.

A backend is the immutable part: weights, a session, a connection. What it remembers of a stream (an
instrument's rows) lives in a `State`, one for each, so that threads may each step their own. Arrays
are the caller's, or are made with the state: a step makes none where the library can do without.

Rows are features as they come, float64. A row that is not finite is answered by NaN and leaves no
trace, as in the core.
"""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, ClassVar, NoReturn, Self

import numpy as np

from hft.durations import format_ns
from hft.errors import ConfigError, ModelError
from hft.inference.backends.frame import Doubles, Floats
from hft.inference.bundle import CARD, Bundle
from hft.inference.card import TierName

log = logging.getLogger(__name__)

BESIDE_CALLS, BESIDE_S = 200, 0.3
"""Rows of a warm-up beside a session."""


class State:
    """Memory of one stream; `Backend.state` makes it, and no other backend takes it."""

    __slots__ = ("owner",)

    def __init__(self, owner: Backend) -> None:
        self.owner = owner


@dataclass(frozen=True, slots=True)
class Warmth:
    """What a warm row took."""

    calls: int
    median_ns: int
    p99_ns: int

    def __str__(self) -> str:
        """For people."""
        return (
            f"p99 {format_ns(self.p99_ns)}, median {format_ns(self.median_ns)} "
            f"over {self.calls} rows"
        )


class Backend(ABC):
    """One tier of a bundle in one form. Close it, or use it in a `with`."""

    name: ClassVar[str]

    def __init__(self, bundle: Bundle, tier: TierName, precision: str) -> None:
        self.bundle = bundle
        self.tier = tier
        self.precision = precision
        self.inputs = tuple(f.name for f in bundle.features)
        """Names of the features a row has, in order."""
        self.outputs = bundle.outputs
        """Names of what comes out, the readout's two included."""
        self.window_rows = bundle.card.window_rows if tier == "FULL" else 0
        """0: state is carried from row to row. Else exactly the last so many rows are seen."""
        self.warmth: Warmth | None = None
        """Of the last `warm_up`."""
        self._own: State | None = None
        self._lock = threading.Lock()  # of `_own`
        self._is_closed = False
        self._row, self._out = (len(self.inputs),), (len(self.outputs),)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __str__(self) -> str:
        """For messages: `onnx int8 FULL`."""
        return " ".join(word for word in (self.name, self.precision, self.tier) if word)

    def state(self) -> State:
        """Memory of a stream that has seen no row."""
        self._require_open()
        made: State = self._state()
        return made

    def step(self, state: State, row: Doubles, out: Floats) -> None:
        """One row of a stream.

        Args:
            state: of the stream. Where this raises a memory is as it was, a window has the row.
            row: features as they come, (k,) float64, contiguous.
            out: filled, (m,) float32, contiguous.

        Raises:
            ModelError: arrays of other shapes or types, another backend's state, closed; or the
                library or server failed.
        """
        if self._is_closed or state.owner is not self:
            self._refuse_state(state)
        if not (_fits(row, self._row, np.float64) and _fits(out, self._out, np.float32)):
            self._refuse("row", row, self._row, out, self._out)
        self._step(state, row, out)

    def skip(self, state: State, row: Doubles) -> None:
        """One row of a stream whose answer nobody needs; the next answers are as after a step."""
        self._require(state)
        if not _fits(row, self._row, np.float64):
            raise ModelError(f"{self}: row is {_told(row)}, want {self._row} float64, contiguous")
        self._skip(state, row)

    def batch(self, states: Sequence[State], rows: Doubles, out: Floats) -> None:
        """One row for each of n different streams.

        Args:
            states: of the streams.
            rows: (n, k) float64, contiguous.
            out: filled, (n, m) float32, contiguous.
        """
        n = len(states)
        for state in states:
            self._require(state)
        if len(set(map(id, states))) != n:
            raise ModelError(f"{self}: a state is there twice; a batch has one row of a stream")
        shapes = (n, *self._row), (n, *self._out)
        if not (_fits(rows, shapes[0], np.float64) and _fits(out, shapes[1], np.float32)):
            self._refuse("rows", rows, shapes[0], out, shapes[1])
        if n:
            self._batch(states, rows, out)

    def window(self, rows: Doubles, out: Floats) -> None:
        """The answer to the last of some rows, seen from nothing; touches no stream.

        Args:
            rows: (window_rows, k) float64, of a streaming model (any, k); contiguous.
            out: filled, (m,) float32, contiguous.
        """
        self._require_open()
        n = self.window_rows or (len(rows) if np.ndim(rows) else 0)
        shape = (max(n, 1), *self._row)
        if not (_fits(rows, shape, np.float64) and _fits(out, self._out, np.float32)):
            self._refuse("rows", rows, shape, out, self._out)
        if not np.isfinite(rows).all():
            out.fill(np.nan)
            return
        with self._lock:
            own = self._own_state()
            self._reset(own)
            self._window(own, rows, out)

    def arm(self, state: State) -> None:
        """While idle, after a step: what the next one can have done beforehand."""
        self._require(state)
        self._arm(state)

    def reset(self, state: State) -> None:
        """After a gap: no row was seen."""
        self._require(state)
        self._reset(state)

    def warm_up(self, calls: int = 1000, *, longest_s: float = 2.0) -> Warmth:
        """Runs made-up rows, so that nothing is done for the first time later, and times them.

        Args:
            calls: rows at most.
            longest_s: ends after so long, with 50 rows at least.
        """
        from hft.inference.bench.subject import made_up_rows

        self._require_open()
        if calls < 1:
            raise ConfigError(f"calls is {calls}, want 1 or more rows")
        with self._lock:
            rows = made_up_rows(self.bundle.card.scaler, min(calls, 4096))
            ns = self._timed(rows, calls, longest_s)
        median, p99 = np.quantile(ns, [0.5, 0.99]).astype(np.int64).tolist()
        self.warmth = Warmth(len(ns), median, p99)
        return self.warmth

    def require_budget(self, *, is_beside: bool = False) -> Warmth:
        """Refuses a model that takes longer than its card declares; warms up if nothing has.

        Args:
            is_beside: a session trades in this process. Rows wait for it now and then, so a few are
                taken and their median is held against the budget.

        Raises:
            ModelError: p99, or beside a session the median, is over the budget.
        """
        warmth = self.warmth or (
            self.warm_up(BESIDE_CALLS, longest_s=BESIDE_S) if is_beside else self.warm_up()
        )
        budget_ns = self.bundle.card.budget_ns
        if budget_ns and (warmth.median_ns if is_beside else warmth.p99_ns) > budget_ns:
            raise ModelError(
                f"{self.bundle.path / CARD}: budget_ns is {budget_ns} ({format_ns(budget_ns)} a "
                f"row), {self} takes {warmth}; take a faster form (`native`, int8, a lesser tier), "
                "prune it with `hft build`, or declare a budget_ns that it can keep"
            )
        return warmth

    def close(self) -> None:
        """Gives back what the library or connection holds; twice is no error."""
        if not self._is_closed:
            self._is_closed = True
            self._own = None
            self._close()

    @abstractmethod
    def _state(self) -> Any: ...

    @abstractmethod
    def _step(self, state: Any, row: Doubles, out: Floats) -> None: ...

    @abstractmethod
    def _window(self, state: Any, rows: Doubles, out: Floats) -> None:
        """`state` is ours, and has seen no row."""

    @abstractmethod
    def _reset(self, state: Any) -> None: ...

    def _skip(self, state: Any, row: Doubles) -> None:
        self._step(state, row, np.empty(self._out, np.float32))

    def _batch(self, states: Sequence[Any], rows: Doubles, out: Floats) -> None:
        for state, row, answer in zip(states, rows, out, strict=True):
            self._step(state, row, answer)

    def _arm(self, state: Any) -> None:  # noqa: B027 - most have nothing to do
        pass

    def _close(self) -> None:  # noqa: B027 - most have nothing to do
        pass

    def _timed(self, rows: Doubles, calls: int, longest_s: float) -> Any:
        from hft.inference.bench.timing import timed

        state, out = self._own_state(), np.zeros(self._out, np.float32)
        each, n = list(rows), len(rows)
        self._reset(state)
        return timed(
            lambda i: self._step(state, each[i % n], out),
            seconds=longest_s,
            most=calls,
            least=min(calls, 50),
        ).ns

    def _own_state(self) -> State:
        if self._own is None:
            self._own = self._state()
        return self._own

    def _require_open(self) -> None:
        if self._is_closed:
            raise ModelError(f"{self} is closed; open it again with open_backend")

    def _require(self, state: State) -> None:
        if self._is_closed or state.owner is not self:
            self._refuse_state(state)

    def _refuse_state(self, state: State) -> NoReturn:
        self._require_open()
        raise ModelError(f"{self}: the state is of {state.owner}, want one of this backend's own")

    def _refuse(
        self, what: str, given: Any, want: tuple[int, ...], out: Any, want_out: tuple[int, ...]
    ) -> NoReturn:
        """Names the array that does not fit."""
        if not _fits(given, want, np.float64):
            raise ModelError(f"{self}: {what} is {_told(given)}, want {want} float64, contiguous")
        raise ModelError(f"{self}: out is {_told(out)}, want {want_out} float32, contiguous")


def _fits(array: Any, shape: tuple[int, ...], dtype: type) -> bool:
    return (
        isinstance(array, np.ndarray)
        and array.shape == shape
        and array.dtype == dtype
        and array.flags.c_contiguous
    )


def _told(array: Any) -> str:
    if not isinstance(array, np.ndarray):
        return f"a {type(array).__name__}"
    how = "" if array.flags.c_contiguous else ", not contiguous"
    return f"{array.shape} {array.dtype}{how}"

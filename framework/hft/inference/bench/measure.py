"""A bundle's backends, step by step, in quiet and in trouble."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from hft.execution.resampling import FEWEST
from hft.inference.bench.cold import Evictor, evict_bytes
from hft.inference.bench.native import Mode, time_native
from hft.inference.bench.neighbour import neighbour
from hft.inference.bench.rate import Served, open_loop, queued
from hft.inference.bench.subject import Floats, Subject
from hft.inference.bench.timing import Int, Timing, timed

if TYPE_CHECKING:
    from hft.inference.backends import Backend

Where = Literal["warm", "L2 cold", "L3 cold", "neighbour"]


@dataclass(frozen=True, slots=True)
class Line:
    """One measurement of a table."""

    subject: Subject
    form: str
    where: Where
    timing: Timing


def steps_of(
    subject: Subject,
    *,
    seconds: float,
    cold: bool = False,
    beside: bool = False,
) -> Iterator[Line]:
    """Times every form of a subject wherever it was asked for.

    Args:
        subject: what is timed.
        seconds: of each line.
        cold: also with caches as other work leaves them.
        beside: also beside a memory-heavy neighbour.
    """
    wheres: list[Where] = ["warm"]
    wheres += ["L2 cold", "L3 cold"] if cold else []
    wheres += ["neighbour"] if beside else []
    with ExitStack() as stack:
        cpu = stack.enter_context(subject.held())
        time_one = _native_timer(subject) if subject.backend == "native" else None
        backend = None
        if time_one is None:
            backend = stack.enter_context(subject.opened())
        for where in wheres:
            if where == "neighbour":
                stack.enter_context(neighbour(cpu))
            bytes_ = {"L2 cold": evict_bytes(2), "L3 cold": evict_bytes(3)}.get(where, 0)
            if time_one is not None:
                forms = (
                    *subject.forms,
                    *(("touched",) if bytes_ and len(subject.forms) > 1 else ()),
                )
                for form in forms:
                    yield Line(subject, form, where, time_one(form, seconds, bytes_))
            else:
                assert backend is not None
                took = step_timing(backend, subject.rows(), seconds=seconds, walked_bytes=bytes_)
                yield Line(subject, "window" if backend.window_rows else "step", where, took)


def _native_timer(subject: Subject) -> Any:
    network, rows = subject.network(), subject.rows()

    def time_one(form: Mode, seconds: float, bytes_: int) -> Timing:
        return time_native(
            network,
            rows,
            form,
            seconds=seconds,
            evict_bytes=bytes_,
            window_rows=subject.window_rows or 1,
        )

    return time_one


def step_timing(
    backend: Backend,
    rows: Floats,
    *,
    seconds: float,
    walked_bytes: int = 0,
    most: int = 20_000,
    least: int = 50,
) -> Timing:
    """Times `backend.step` from Python, as the engine calls it.

    Args:
        backend: any; of the native one this times the call around the step as well.
        rows: features as they come, (n, inputs), used in turn.
        seconds: ends after so long.
        walked_bytes: other work before each step, not timed.
        most: ends after so many steps.
        least: but not before so many.
    """
    step = _stepper(backend, rows)
    before = Evictor(walked_bytes) if walked_bytes else None
    return timed(step, seconds=seconds, most=most, least=least, before=before)


def _stepper(backend: Backend, rows: Floats) -> Any:
    """A function of the row's number that steps one stream, from Python."""
    each = list(np.ascontiguousarray(rows, np.float64))  # views: none is made in a timed call
    state, out = backend.state(), np.zeros(len(backend.outputs), np.float32)
    n, step = len(each), backend.step
    for row in each[: max(backend.window_rows, 1)]:
        step(state, row, out)

    def one(i: int) -> None:
        step(state, each[i % n], out)

    return one


def at_rate(
    subject: Subject,
    arrival_ns: Int,
    *,
    seconds: float,
    walked_bytes: int = 0,
    beside: bool = False,
) -> Served:
    """One stream's rows as they arrive: what they wait, and what they take.

    The native network runs inline, so its waits are computed from services timed in the core, which
    is exact; a Python loop would add more than it takes. Other backends are really called.

    Args:
        subject: what serves.
        arrival_ns: from 0, ascending.
        seconds: of arrivals.
        walked_bytes: other work between rows.
        beside: a memory-heavy neighbour is at work.
    """
    with subject.held() as cpu, neighbour(cpu) if beside else nullcontext():
        return _at_rate(subject, arrival_ns, seconds, walked_bytes)


def _at_rate(subject: Subject, arrival_ns: Int, seconds: float, walked_bytes: int) -> Served:
    if subject.backend == "native":
        n = int(np.searchsorted(arrival_ns, int(seconds * 1e9)))
        took = time_native(
            subject.network(),
            subject.rows(),
            subject.forms[0],
            seconds=seconds,
            evict_bytes=walked_bytes,
            window_rows=subject.window_rows or 1,
            most=n,
            least=min(n, 2 * FEWEST),
        )
        n = min(n, took.ns.size)
        return queued(arrival_ns[:n], took.ns[:n])
    with subject.opened() as backend:
        step = _stepper(backend, subject.rows())
        between = Evictor(walked_bytes) if walked_bytes else None
        return open_loop(step, arrival_ns, seconds=seconds, between=between)

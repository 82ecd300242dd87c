"""`hft bench inference --batch`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from hft.analysis.units import duration
from hft.inference.bench.batching import Batcher, recipe_of, run
from hft.inference.bench.company import SPREAD_NS, arrivals, compare
from hft.inference.bench.curve import Curve, measure_curve
from hft.inference.bench.subject import Floats, Subject
from hft.inference.bench.timing import quantiles

if TYPE_CHECKING:
    from rich.console import Console

    from hft.inference.backends import Backend

MAX_BATCH = 64
LOAD = 0.3
"""At which the batcher is run on the clock: a share of what it could do one by one."""


class Batches:
    """Batches of different streams through one backend."""

    def __init__(self, backend: Backend, streams: int, rows: Floats) -> None:
        self._backend = backend
        self._states = [backend.state() for _ in range(streams)]
        self._rows = np.ascontiguousarray(rows, np.float64)
        self._out = np.zeros((streams, len(backend.outputs)), np.float32)

    def first(self, k: int) -> None:
        """One row for each of the first k streams."""
        self._backend.batch(self._states[:k], self._rows[:k], self._out[:k])

    def of(self, streams: Sequence[int], rows: Sequence[int]) -> None:
        """One row for each of these streams."""
        n = len(streams)
        x = self._rows.take(rows, axis=0, mode="wrap")
        self._backend.batch([self._states[s] for s in streams], x, self._out[:n])


def bench_batches(
    chosen: list[Subject], *, seconds: float, deadline_ns: int, console: Console
) -> None:
    """Fits every subject's line, shows when batches win, and what a replay charges for them.

    Args:
        chosen: what to time.
        seconds: of each measurement.
        deadline_ns: what a row waits for company; 0: one service.
        console: where to.
    """
    from hft.inference.bench.view import company_table, curve_table, show

    curves: dict[str, Curve] = {}
    for subject in chosen:
        with subject.held(), subject.opened() as backend:
            batches = Batches(backend, MAX_BATCH, subject.rows())
            curves[subject.name] = measure_curve(batches.first, seconds=seconds)
            run_told = _really(batches, curves[subject.name], seconds, deadline_ns)
        console.print(run_told, style="dim", markup=False, highlight=False)
    show(curve_table(curves), console)
    for name, curve in curves.items():
        deadline = deadline_ns or round(curve.service_ns(1))
        cells = [
            cell
            for together in (False, True)
            for cell in compare(curve, deadline_ns=deadline, max_batch=MAX_BATCH, together=together)
        ]
        show(company_table(name, cells, deadline), console)
        how = "with that deadline" if deadline_ns else "at once"
        console.print(
            f"{name}: what a replay charges for batches {how}:", style="dim", highlight=False
        )
        lines = recipe_of(curve, MAX_BATCH, deadline_ns)
        console.print("\n".join(lines), markup=False, highlight=False)


def _really(batches: Batches, curve: Curve, seconds: float, deadline_ns: int) -> str:
    """The batcher on the clock, over streams that move together, at a third of its capacity."""
    streams, deadline = 16, deadline_ns or curve.service_ns(1)
    # Capacity one by one, with what this loop adds to each call.
    crowd = np.zeros(400, np.int64)
    all_at_once = run(crowd, np.arange(400) % streams, Batcher(1, 0), batches.of, seconds=1.0)
    each_ns = float(all_at_once.answer_ns.max()) / all_at_once.answer_ns.size
    rate = LOAD * 1e9 / each_ns
    n = min(max(int(rate * seconds), streams), 50_000)
    ts, of = arrivals(rate / streams, streams, together=True, n=n)
    ways: dict[str, Callable[[], Batcher]] = {
        "one by one": lambda: Batcher(1, 0),
        "at once": lambda: Batcher(streams, 0),
        "deadline": lambda: Batcher(streams, deadline),
    }
    told = []
    for way, make in ways.items():
        served = run(ts, of, make(), batches.of, seconds=2 * seconds)
        told.append(f"{way} {duration(quantiles(served.answer_ns)['p95'])}")
    return (
        f"On the clock, {streams} streams within {duration(SPREAD_NS)} of each move, "
        f"{rate / streams:,.0f} moves/s: p95 to answer {', '.join(told)}"
    )

"""When batches of different streams win over one row after the other, by rate and streams."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hft.execution.draws import draw_uniform
from hft.inference.bench.batching import Batcher, simulate
from hft.inference.bench.curve import Curve
from hft.inference.bench.rate import poisson
from hft.inference.bench.timing import Int

ROWS = 2500
RATES = (100.0, 1_000.0, 10_000.0)
STREAMS = (1, 4, 16, 64)
SPREAD_NS = 20_000
WAYS = ("one by one", "at once", "deadline")
_STREAM, _WITHIN = 72, 73  # streams of draws


@dataclass(frozen=True, slots=True)
class Cell:
    """One rate and number of streams; p99 from arrival to answer by way, in ns."""

    rows_a_second: float
    """Of each stream."""
    streams: int
    together: bool
    load: float
    """One by one: rows a second times what each takes; 1 and more cannot be served so."""
    p99_ns: dict[str, float]

    @property
    def best(self) -> str:
        """The way with the least p99; of equal ones, the simpler."""
        return min(WAYS, key=lambda way: round(self.p99_ns[way]))


def arrivals(
    rows_a_second: float, streams: int, *, together: bool, n: int = ROWS, seed: int = 1
) -> tuple[Int, Int]:
    """Times from 0 on and the stream of each row, (m,) both.

    Args:
        rows_a_second: of each stream.
        streams: how many.
        together: every stream has a row within `SPREAD_NS` of each move, as when one index moves
            all its members; else each has its own Poisson arrivals.
        n: rows of all streams, about.
        seed: the same seed gives the same.
    """
    if not together:
        ts = poisson(rows_a_second * streams, n, seed)
        u = draw_uniform(seed, _STREAM, np.arange(n, dtype=np.uint64))
        return ts, np.minimum((u * streams).astype(np.int64), streams - 1)
    moves = poisson(rows_a_second, max(n // streams, 1), seed)
    within = draw_uniform(seed, _WITHIN, np.arange(moves.size * streams, dtype=np.uint64))
    ts = np.repeat(moves, streams) + (within * SPREAD_NS).astype(np.int64)
    order = np.argsort(ts, kind="stable")
    return ts[order], np.tile(np.arange(streams), moves.size)[order]


def compare(
    curve: Curve,
    *,
    deadline_ns: int,
    max_batch: int,
    together: bool,
    rates: Sequence[float] = RATES,
    streams: Sequence[int] = STREAMS,
    n: int = ROWS,
) -> Iterator[Cell]:
    """Simulates every rate and number of streams on the fitted line."""
    for rate in rates:
        for count in streams:
            ts, of = arrivals(rate, count, together=together, n=n)
            batch = min(max_batch, count)
            ways = {
                "one by one": Batcher(1, 0),
                "at once": Batcher(batch, 0),
                "deadline": Batcher(batch, deadline_ns),
            }
            p99 = {
                way: float(np.quantile(simulate(ts, of, b, curve.service_ns).answer_ns, 0.99))
                for way, b in ways.items()
            }
            load = rate * count * curve.service_ns(1) / 1e9
            yield Cell(rate, count, together, load, p99)

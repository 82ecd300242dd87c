"""Rows that come when they come, whether the last one is done or not.

A closed loop, the next row as soon as the last is answered, never queues and so never shows what a
busy market does. Here arrivals are fixed before the run: Poisson, or the times of recorded rows.
What a row waits for those before it is kept apart from what it takes itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hft.errors import ConfigError
from hft.execution.draws import draw_uniform
from hft.inference.bench.timing import Int, clock_ns, involuntary_switches

NS_PER_S = 1_000_000_000
_ARRIVALS = 71  # a stream of draws no other has


@dataclass(frozen=True, slots=True)
class Served:
    """Rows in order of arrival, (n,) each, in ns."""

    arrival_ns: Int
    """Since the run began."""
    wait_ns: Int
    """From arrival to the beginning of its service."""
    service_ns: Int
    batch: Int
    """Rows that were served together with it, itself included."""
    switches: int = 0
    """Involuntary ones of the processor: they are in the figures, a queue remembers them."""

    @property
    def answer_ns(self) -> Int:
        """From arrival to answer."""
        return self.wait_ns + self.service_ns

    @property
    def load(self) -> float:
        """Share of the time in which it worked."""
        if self.arrival_ns.size < 2:
            return 0.0
        work = float((self.service_ns / self.batch).sum())
        ended = int((self.arrival_ns + self.answer_ns).max())
        return work / max(ended - int(self.arrival_ns[0]), 1)


def poisson(rows_a_second: float, n: int, seed: int = 1) -> Int:
    """Times of n arrivals, in ns from 0; the same seed gives the same.

    Raises:
        ConfigError: the rate is not above 0.
    """
    if not 0 < rows_a_second < 1e9:
        raise ConfigError(f"rate is {rows_a_second:g} rows/s, want more than 0 and less than 1e9")
    u = draw_uniform(seed, _ARRIVALS, np.arange(n, dtype=np.uint64))
    gaps = -np.log1p(-u) * (NS_PER_S / rows_a_second)
    return np.cumsum(gaps).astype(np.int64)


def recorded(ts: Int) -> Int:
    """Times of recorded rows from 0 on, nights closed to a second.

    Raises:
        ConfigError: fewer than two rows, or times go back.
    """
    if ts.size < 2:
        raise ConfigError(f"a feed of {ts.size} rows has no rate: want two or more")
    gaps = np.diff(ts)
    if (gaps < 0).any():
        raise ConfigError(f"times of the feed go back in row {int(np.argmax(gaps < 0)) + 1}")
    return np.concatenate([[0], np.cumsum(np.minimum(gaps, NS_PER_S))]).astype(np.int64)


def waits(arrival_ns: Int, service_ns: Int) -> Int:
    """Of a single server that takes one after the other (Lindley), (n,)."""
    ahead = np.concatenate([[0], np.cumsum(service_ns[:-1] - np.diff(arrival_ns))])
    waited: Int = ahead - np.minimum.accumulate(ahead)
    return waited


def queued(arrival_ns: Int, service_ns: Int) -> Served:
    """Services that were measured by themselves, taken one after the other as rows arrive."""
    ones = np.ones(arrival_ns.size, np.int64)
    return Served(arrival_ns, waits(arrival_ns, service_ns), service_ns, ones)


def open_loop(
    call: Callable[[int], object],
    arrival_ns: Int,
    *,
    seconds: float,
    between: Callable[[], object] | None = None,
) -> Served:
    """Calls at the times of arrival, or as soon after as it is free.

    Args:
        call: gets the number of the row.
        arrival_ns: from 0, ascending.
        seconds: rows that arrive later than this are left out, and so are those not begun then.
        between: other work after each call; a row that arrives meanwhile waits for it.
    """
    now, own = time.perf_counter_ns, clock_ns()
    due_ns = arrival_ns[: np.searchsorted(arrival_ns, int(seconds * NS_PER_S))].tolist()
    starts, ends = [], []
    switches = involuntary_switches()
    begun = now()
    last = begun + int(seconds * NS_PER_S)
    for i, due in enumerate(due_ns):
        start = now()
        while start < begun + due:
            start = now()
        if start > last:
            break
        call(i)
        ends.append(now())
        starts.append(start)
        if between is not None:
            between()
    arrived = np.array(due_ns[: len(starts)], np.int64)
    start_ns, end_ns = np.array(starts, np.int64), np.array(ends, np.int64)
    return Served(
        arrived,
        np.maximum(start_ns - begun - arrived, 0),
        np.maximum(end_ns - start_ns - own, 0),
        np.ones(arrived.size, np.int64),
        involuntary_switches() - switches,
    )

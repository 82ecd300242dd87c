"""How busy a market is: messages in every window of 100 ms, and which bucket of a profile that is.

A message is a packet: a row that ends one, seen by us. A window decides for the one after it, so
what is known of a moment came before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hft.execution.profiles import RATE_WINDOW_NS
from hft.types import Flag

Int = NDArray[np.int64]

FEWEST_ROWS = 200
"""Of a bucket: one with fewer is joined to the next."""
BEYOND = 0.2
"""How far below a border, as a share of it, the rate must fall before the bucket is left."""


@dataclass(frozen=True, slots=True)
class MarketRate:
    """Messages of a stretch of market; years of bars are mostly windows without any.

    Attributes:
        windows: numbers of those with messages, their starts over 100 ms, ascending, (w,).
        counts: messages in each, (w,).
        ts_first: time of the first message.
        ts_last: and of the last.
    """

    windows: Int
    counts: Int
    ts_first: int
    ts_last: int

    def of(self, windows: Int) -> Int:
        """Messages in each of these windows, (n,)."""
        at = np.minimum(np.searchsorted(self.windows, windows), self.windows.size - 1)
        found: Int = np.where(self.windows[at] == windows, self.counts[at], 0)
        return found

    def before(self, ts: Int) -> Int:
        """Messages in the last whole window before each time, (n,)."""
        return self.of(ts // RATE_WINDOW_NS - 1)


def rate_of(streams: Iterable[Iterator[NDArray[Any]]]) -> MarketRate | None:
    """The rate of all streams of EVENT rows together, by `ts_recv`; None: not one message."""
    wanted = int(Flag.LAST | Flag.SEEN_BY_US)
    numbers, counts, first, last = [], [], [], []
    for chunks in streams:
        for rows in chunks:
            ts = rows["ts_recv"][rows["flags"] & wanted == wanted]
            if not ts.size:
                continue
            first.append(int(ts.min()))
            last.append(int(ts.max()))
            number = ts // RATE_WINDOW_NS
            begins = np.flatnonzero(np.diff(number, prepend=number[0] - 1))
            numbers.append(number[begins])
            counts.append(np.diff(begins, append=number.size))
    if not numbers:
        return None
    number, count = np.concatenate(numbers), np.concatenate(counts)
    order = np.argsort(number, kind="stable")
    number, count = number[order], count[order]
    begins = np.flatnonzero(np.diff(number, prepend=number[0] - 1))
    return MarketRate(number[begins], np.add.reduceat(count, begins), min(first), max(last))


@dataclass(frozen=True, slots=True)
class Buckets:
    """Bands of message rate, with the borders between them ascending."""

    borders: tuple[int, ...]

    @property
    def names(self) -> list[str]:
        """What each holds, in words."""
        low = ("0", *(str(border) for border in self.borders))
        high = (*(str(border - 1) for border in self.borders), "")
        return [f"{a}-{b}" if b else f"{a}+" for a, b in zip(low, high, strict=True)]

    def of(self, rate: Int) -> Int:
        """Bucket of each rate by the borders alone, (n,)."""
        return np.searchsorted(np.array(self.borders, np.int64), rate, side="right")

    def along(self, rate: Int) -> Int:
        """Bucket after each window of a run, (w,): entered at its border, left well below it."""
        found = np.zeros(rate.size, np.int64)
        for border in self.borders:
            found += _switch(rate, border)
        return found


def buckets_of(rates: Int) -> Buckets:
    """Octaves of the rate, the median in the middle of one.

    Quantiles would put a border into the midst of the commonest rate, and calm and busy rows into
    one bucket: tests/bench/latency_table.py shows what that costs.
    """
    middle = max(1.0, float(np.median(rates)))
    octaves = np.log2(np.maximum(rates, 1) / middle)
    steps = np.arange(np.floor(octaves.min()), np.ceil(octaves.max()) + 1) + 0.5
    borders: list[int] = []
    ordered = np.sort(rates)
    below = 0
    for border in np.ceil(middle * 2.0**steps).astype(int).tolist():
        at = int(np.searchsorted(ordered, border))
        if at - below >= FEWEST_ROWS and rates.size - at >= FEWEST_ROWS:
            borders.append(border)
            below = at
    return Buckets(tuple(borders))


def _switch(rate: Int, border: int) -> Int:
    """1 from where the rate reaches a border until it falls well below it, (w,)."""
    up, down = rate >= border, rate < border * (1 - BEYOND)
    decided = up | down
    last = np.maximum.accumulate(np.where(decided, np.arange(rate.size), -1))
    on: Int = np.where(last >= 0, up[last], False).astype(np.int64)
    return on

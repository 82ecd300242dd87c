"""Legs, channels and keyed draws of the twin: each looked up anew every time."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

WORD = (1 << 64) - 1
NEVER = -(1 << 62)


class Stream(IntEnum):
    """What a draw is for."""

    FEED = 1
    ENTRY = 2
    RESPONSE = 3
    SERVICE = 4
    QUEUE = 5
    REFILL = 6


def mix(x: int) -> int:
    """SplitMix64's finaliser."""
    x = (x + 0x9E3779B97F4A7C15) & WORD
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & WORD
    return x ^ (x >> 31)


def draw_bits(seed: int, stream: int, entity: int, n: int = 0) -> int:
    for key in (stream, entity, n):
        seed = mix(seed & WORD) ^ (key & WORD)
    return mix(seed)


def draw_uniform(seed: int, stream: int, entity: int, n: int = 0) -> float:
    return (draw_bits(seed, stream, entity, n) >> 11) * 2.0**-53


def of_instrument(stream: Stream, instrument: int) -> int:
    return int(stream) ^ (instrument << 32)


class Leg:
    """A constant, or rows of (time, duration) of which the last one at or before sending holds."""

    def __init__(self, spec: int | Sequence[tuple[int, int]]) -> None:
        self.rows = [(0, spec)] if isinstance(spec, int) else list(spec)

    def at(self, ts: int, n: int = 0) -> int:
        times = [t for t, _ in self.rows]
        return self.rows[max(bisect_right(times, ts) - 1, 0)][1]


@dataclass
class Drawn:
    """One of some durations, drawn by time and number of the message."""

    ns: Sequence[int]
    seed: int
    stream: int

    def at(self, ts: int, n: int = 0) -> int:
        return self.ns[draw_bits(self.seed, self.stream, ts, n) % len(self.ns)]


@dataclass
class Walk:
    """A trace read in blocks: `blocks` are (from when on, row of the trace at its start)."""

    trace: Sequence[tuple[int, int]]
    blocks: Sequence[tuple[int, int]]

    def at(self, ts: int, n: int = 0) -> int:
        begun = [b for b in self.blocks if b[0] <= ts] or self.blocks[:1]
        since, row = begun[-1]
        first, last = self.trace[0][0], self.trace[-1][0]
        period = last - first + (last - first) // max(len(self.trace) - 1, 1)
        reads = self.trace[row][0] + (ts - since)
        if period:
            reads = first + (reads - first) % period
        once_more = (first + period, self.trace[0][1])  # behind the last comes the first
        return min([*self.trace, once_more], key=lambda r: (abs(r[0] - reads), r[0]))[1]


class Channel:
    """Numbers what is sent at one instant; never reorders, unless each message travels alone."""

    def __init__(self, *, alone: bool = False) -> None:
        self.alone, self.last = alone, NEVER
        self.sent: Counter[int] = Counter()

    def number(self, ts: int) -> int:
        self.sent[ts] += 1
        return self.sent[ts] - 1

    def deliver(self, ts: int, ns: int) -> int:
        self.last = ts + ns if self.alone else max(ts + ns, self.last)
        return self.last

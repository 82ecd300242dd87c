"""Rows of different streams answered together, and when that is worth it.

A row waits until `max_batch` streams have one, or until it has waited for the deadline, whichever
comes first; a server that is still at work takes what is there when it is done. A batch has at most
one row of a stream, since the second needs the memory that the first leaves; rows of a stream keep
their order, and none is dropped. A deadline of 0 never waits for company: what came while the
server was at work is served together. A replay charges either: `latency.server.hold` is it.

Where the server is free and every stream has at most one row under way, a row's wait is at most the
deadline and one service. Beyond capacity no rule helps.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hft.durations import format_ns
from hft.errors import ConfigError
from hft.inference.bench.curve import Curve
from hft.inference.bench.rate import Served
from hft.inference.bench.timing import Int, clock_ns, involuntary_switches

NEVER = 1 << 62


@dataclass(frozen=True, slots=True)
class Item:
    """A row that waits."""

    stream: int
    row: int
    ts: int


class Batcher:
    """Puts rows together; knows no clock of its own."""

    def __init__(self, max_batch: int, deadline_ns: int) -> None:
        if max_batch < 1:
            raise ConfigError(f"max_batch is {max_batch}, want 1 or more rows")
        if deadline_ns < 0:
            raise ConfigError(f"deadline is {deadline_ns} ns, want 0 or more")
        self._max_batch, self._deadline_ns = max_batch, deadline_ns
        self._waiting: deque[Item] = deque()
        self._of_stream: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def offer(self, stream: int, row: int, ts: int) -> None:
        """A row that came at `ts`, not before the one offered last."""
        self._waiting.append(Item(stream, row, ts))
        self._of_stream[stream] = self._of_stream.get(stream, 0) + 1

    def due(self) -> int:
        """When a free server is to begin: at the latest by then, or now if it is past."""
        if not self._waiting:
            return NEVER
        if len(self._of_stream) >= self._max_batch:
            return self._waiting[-1].ts
        return self._waiting[0].ts + self._deadline_ns

    def take(self) -> list[Item]:
        """The oldest row of each stream, up to `max_batch`, in order of their coming."""
        batch: list[Item] = []
        passed: list[Item] = []
        streams: set[int] = set()
        while self._waiting and len(batch) < self._max_batch:
            item = self._waiting.popleft()
            if item.stream in streams:
                passed.append(item)
                continue
            streams.add(item.stream)
            batch.append(item)
        self._waiting.extendleft(reversed(passed))
        for item in batch:
            left = self._of_stream.pop(item.stream) - 1
            if left:
                self._of_stream[item.stream] = left
        return batch


class _Log:
    """What became of each row."""

    def __init__(self, arrival_ns: Int) -> None:
        self._arrival_ns = arrival_ns
        self._start, self._end, self._batch = np.zeros((3, arrival_ns.size), np.int64)
        self.served = 0

    def add(self, batch: Sequence[Item], start: int, end: int) -> None:
        rows = [item.row for item in batch]
        self._start[rows], self._end[rows], self._batch[rows] = start, end, len(batch)
        self.served += len(batch)

    def result(self, switches: int = 0) -> Served:
        """In order of arrival, those that were served."""
        done = self._batch > 0
        arrival, start, end = self._arrival_ns[done], self._start[done], self._end[done]
        return Served(
            arrival, np.maximum(start - arrival, 0), end - start, self._batch[done], switches
        )


def simulate(
    arrival_ns: Int, stream: Int, batcher: Batcher, service_ns: Callable[[int], int]
) -> Served:
    """What a batcher does with rows, were services exactly as told.

    Args:
        arrival_ns: ascending, (n,).
        stream: whose row each is, (n,).
        batcher: empty.
        service_ns: of a batch of so many rows.
    """
    arrivals, streams = arrival_ns.tolist(), stream.tolist()
    log, at, free = _Log(arrival_ns), 0, 0
    while log.served < len(arrivals):
        start = max(free, batcher.due())
        # A row that comes before the server begins may fill the batch and so bring it forward.
        if at < len(arrivals) and arrivals[at] <= start:
            batcher.offer(streams[at], at, arrivals[at])
            at += 1
            continue
        batch = batcher.take()
        free = start + service_ns(len(batch))
        log.add(batch, start, free)
    return log.result()


def run(
    arrival_ns: Int,
    stream: Int,
    batcher: Batcher,
    call: Callable[[Sequence[int], Sequence[int]], object],
    *,
    seconds: float,
) -> Served:
    """The same on the clock, with a backend that works.

    Args:
        arrival_ns: from 0, ascending, (n,).
        stream: whose row each is, (n,).
        batcher: empty.
        call: answers a batch, by streams and numbers of rows.
        seconds: nothing begins after so long.
    """
    now, own = time.perf_counter_ns, clock_ns()
    arrivals, streams = arrival_ns.tolist(), stream.tolist()
    log, at, n = _Log(arrival_ns), 0, len(arrivals)
    switches, begun = involuntary_switches(), now()
    last = int(seconds * 1e9)
    while log.served < n:
        ts = now() - begun
        if ts > last:
            break
        while at < n and arrivals[at] <= ts:
            batcher.offer(streams[at], at, arrivals[at])
            at += 1
        if batcher.due() > ts:
            continue
        batch = batcher.take()
        of, rows = [item.stream for item in batch], [item.row for item in batch]
        start = now() - begun
        call(of, rows)
        log.add(batch, start, max(now() - begun - own, start))
    return log.result(involuntary_switches() - switches)


def recipe_of(curve: Curve, max_batch: int, deadline_ns: int = 0) -> list[str]:
    """Lines of a recipe by which a replay charges what a batcher takes.

    Of a stream that has several rows waiting the newest is answered; the others are charged, since
    a model's state moves over all of them.
    """
    alpha, beta = round(curve.alpha_ns), max(round(curve.beta_ns), 0)
    return [
        "[latency]",
        f'inference = "{format_ns(alpha + beta)}"',
        "",
        "[latency.server]",
        'mode = "conflate"',
        f"max_batch = {max_batch}",
        *([f'hold = "{format_ns(deadline_ns)}"'] if deadline_ns else []),
        f'per_item = "{format_ns(beta)}"',
        f'per_row = "{format_ns(beta)}"',
    ]

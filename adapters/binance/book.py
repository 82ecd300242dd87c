"""The rule by which diffs and a snapshot become one book."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from hft.adapters.binance.messages import Levels, Message, venue_ns
from hft.adapters.binance.rows import NOTHING, UNTIMED, Rows, Stamp
from hft.types import Flag, Kind, Trading

KEPT_DIFFS = 4096  # diffs that wait for a snapshot; a REST snapshot is a few seconds away


class Line(NamedTuple):
    """One decoded line."""

    number: int
    ts_recv: int
    message: Message
    done: float


class Diff(NamedTuple):
    """One depth diff, until it is applied or dropped."""

    line: int
    ts_event: int
    ts_recv: int
    first: int
    last: int
    before: int | None
    bids: Levels
    asks: Levels


class Book:
    """The rule by which diffs and a snapshot become one book."""

    def __init__(self, rows: Rows, counts: dict[str, int]) -> None:
        self._rows = rows
        self._counts = counts
        self._waiting: deque[Diff] = deque(maxlen=KEPT_DIFFS)
        self._snapshot_id: int | None = None  # until the first diff after it is applied
        self._last: int | None = None  # update id of the book, once it is live
        self._ts_event = UNTIMED  # of the newest diff

    def snapshot(self, line: Line) -> None:
        """Rebuild the book, then apply the diffs that waited."""
        if self._last is not None or self._snapshot_id is not None:
            self._count("snapshots not needed")
            return
        self._count("snapshots")
        m = line.message
        self._snapshot_id = m.lastUpdateId
        ts_event = venue_ns(m.T or m.E) if m.T or m.E else self._ts_event
        stamp = Stamp(ts_event, line.ts_recv, line.number, m.lastUpdateId)
        recovered = Flag.RECOVERED
        self._rows.add(stamp, Kind.SNAPSHOT_BEGIN, 0, NOTHING, recovered)
        self._rows.add(stamp, Kind.LEVEL, 1, m.bids, recovered)
        self._rows.add(stamp, Kind.LEVEL, -1, m.asks, recovered)
        self._rows.add(stamp, Kind.SNAPSHOT_END, 0, NOTHING, recovered, last=True)
        waiting, self._waiting = self._waiting, deque(maxlen=KEPT_DIFFS)
        for diff in waiting:
            self.diff(diff._replace(ts_recv=line.ts_recv))

    def diff(self, diff: Diff) -> None:
        """Apply, keep or drop one diff."""
        self._ts_event = diff.ts_event
        if self._last is not None:
            self._next(diff)
        elif self._snapshot_id is not None:
            self._first(diff, self._snapshot_id)
        else:
            if len(self._waiting) == KEPT_DIFFS:
                self._count("diffs without a book")
            self._waiting.append(diff)

    def _first(self, diff: Diff, snapshot_id: int) -> None:
        futures = diff.before is not None
        wanted = snapshot_id if futures else snapshot_id + 1
        if diff.last < wanted:
            self._count("diffs dropped before the snapshot")
        elif diff.first <= wanted:
            self._apply(diff)
        else:
            self._count("snapshots too old")
            self._gap(diff)

    def _next(self, diff: Diff) -> None:
        chained = diff.before == self._last
        if diff.before is None:
            chained = diff.first == (self._last or 0) + 1
        if chained:
            self._apply(diff)
        elif diff.last <= (self._last or 0):
            self._count("diffs repeated")
        else:
            self._count("chain breaks")
            self._gap(diff)

    def _apply(self, diff: Diff) -> None:
        self._last = diff.last
        stamp = Stamp(diff.ts_event, diff.ts_recv, diff.line, diff.last)
        self._rows.add(stamp, Kind.LEVEL, 1, diff.bids, last=not diff.asks)
        self._rows.add(stamp, Kind.LEVEL, -1, diff.asks, last=True)

    def _gap(self, diff: Diff) -> None:
        self._last = self._snapshot_id = None
        stamp = Stamp(diff.ts_event, diff.ts_recv, diff.line, diff.last)
        self._rows.add(stamp, Kind.STATUS, 0, NOTHING, last=True, ref_id=Trading.GAP)
        self._waiting.append(diff)

    def _count(self, what: str) -> None:
        self._counts[what] = self._counts.get(what, 0) + 1

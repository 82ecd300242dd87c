"""Stretches of trading without a break: what no window and no label may reach across.

A stretch begins with the first packet after which the book is live, has two sides and the market
is open. It ends at a STATUS row that says otherwise (halt, auction, close), at lost messages, even
if the same packet brings the book back, while a snapshot is under way, `one_sided_ns` after a side
went away and did not come back, `pause_ns` after the last packet of a feed that fell silent, and
with the day where days are apart. Every end is told by what came before it: whether a row belongs
to a stretch does not depend on its future.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from hft.types import Flag, Kind, Trading

Int = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

NEVER = int(np.iinfo(np.int64).max)
SNAPSHOT = 5
"""Beside the values of `Trading`: half of a snapshot is no book."""
CAUSES = ("halt", "auction", "closed", "gap", "snapshot", "one_sided", "silence", "day")
"""Why a stretch ended."""
_BY_STATUS = {
    int(Trading.HALT): "halt",
    int(Trading.AUCTION): "auction",
    int(Trading.CLOSED): "closed",
    int(Trading.GAP): "gap",
    SNAPSHOT: "snapshot",
}


@dataclass(slots=True)
class Stretches:
    """Found packet by packet; `starts`, `ends` and `causes` grow with the data."""

    pause_ns: int
    one_sided_ns: int
    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    """First instant of our clock that is no longer part of it; NEVER while it lasts."""
    event_ends: list[int] = field(default_factory=list)
    """The same by the venue's clock."""
    causes: list[str] = field(default_factory=list)
    fresh: list[bool] = field(default_factory=list)
    """Whether a run's features and models have forgotten what was before it."""
    last_ts: int | None = None
    """Of the newest packet [ns]."""
    last_event: int | None = None
    """When the venue sent it; never goes back."""
    _side_gone: tuple[int, int] | None = None
    _forgotten: bool = True

    def feed(self, ts: Int, ts_event: Int, two_sided: Bools, state: Int, lost: Bools) -> None:
        """Packets in order.

        Args:
            ts: when each reached us, (n,) [ns].
            ts_event: when the venue sent it, (n,) ascending [ns].
            two_sided: whether the book then has bids and asks, (n,).
            state: a `Trading` value or SNAPSHOT, (n,).
            lost: messages were lost in it or before it, (n,).
        """
        if not len(ts):
            return
        for i in self._turns(ts, two_sided, state, lost).tolist():
            if i:
                self.last_ts, self.last_event = int(ts[i - 1]), int(ts_event[i - 1])
            if lost[i]:
                self._settle(int(ts[i]), int(ts_event[i]))
                self.end(int(ts[i]), int(ts_event[i]), "gap")
            self._packet(int(ts[i]), int(ts_event[i]), bool(two_sided[i]), int(state[i]))
        self.last_ts, self.last_event = int(ts[-1]), int(ts_event[-1])
        self._expire(self.last_ts, self.last_event)

    def end(self, ts: int, ts_event: int, cause: str) -> None:
        """The stretch that lasts, if one does, ends at `ts`, by the venue's clock at `ts_event`."""
        if self.lasts:
            self.ends[-1], self.event_ends[-1], self.causes[-1] = ts, ts_event, cause
        self._side_gone = None
        self._forgotten |= cause in ("gap", "day")

    @property
    def lasts(self) -> bool:
        """Whether the newest stretch has not ended."""
        return bool(self.ends) and self.ends[-1] == NEVER

    def of(self, ts: Int) -> Int:
        """Number of the stretch that holds each time of our clock, -1: none, (n,)."""
        if not self.starts:
            return np.full(len(ts), -1)
        number = np.searchsorted(np.array(self.starts), ts, side="right") - 1
        return np.where((number >= 0) & (ts < np.array(self.ends)[number]), number, -1)

    def ends_of(self, number: Int) -> Int:
        """When stretches end by our clock, (n,)."""
        return np.array([*self.ends, NEVER])[number]  # of none: never

    def event_ends_of(self, number: Int) -> Int:
        """When they end by the venue's."""
        return np.array([*self.event_ends, NEVER])[number]

    def _turns(self, ts: Int, two_sided: Bools, state: Int, lost: Bools) -> Int:
        """Packets at which something may begin or end; all others go on as the one before."""
        turn = np.ones(len(ts), bool)
        turn[1:] = two_sided[1:] != two_sided[:-1]
        turn[1:] |= state[1:] != state[:-1]
        turn[1:] |= (np.diff(ts) > self.pause_ns) | lost[1:]
        return np.flatnonzero(turn)

    def _packet(self, ts: int, ts_event: int, two_sided: bool, state: int) -> None:  # noqa: FBT001
        self._settle(ts, ts_event)
        if state != Trading.OPEN:
            self.end(ts, ts_event, _BY_STATUS.get(state, "closed"))
        elif not two_sided:
            if self.lasts and self._side_gone is None:
                self._side_gone = ts, ts_event
        else:
            self._side_gone = None
            if not self.lasts:
                self.starts.append(ts)
                self.ends.append(NEVER)
                self.event_ends.append(NEVER)
                self.causes.append("")
                self.fresh.append(self._forgotten)
                self._forgotten = False

    def _settle(self, ts: int, ts_event: int) -> None:
        """What ended by itself before this packet."""
        before, event = self.last_ts, self.last_event
        if before is not None and event is not None and ts - before > self.pause_ns:
            self._expire(before + self.pause_ns, event + self.pause_ns)
            self.end(before + self.pause_ns, event + self.pause_ns, "silence")
        self._expire(ts, ts_event)

    def _expire(self, ts: int, ts_event: int) -> None:
        """A side has been missing for too long by either clock."""
        if self._side_gone is None:
            return
        until, event = (gone + self.one_sided_ns for gone in self._side_gone)
        if ts > until or ts_event > event:
            self.end(until, event, "one_sided")


@dataclass(slots=True)
class MarketState:
    """The market after each packet, and whether messages were lost."""

    _book: int = int(Trading.OPEN)
    """GAP or SNAPSHOT while it is not whole."""
    _lost: bool = False
    """In a packet that has not ended."""

    def feed(
        self, events: npt.NDArray[Any], touches: npt.NDArray[Any], rows_before: int
    ) -> tuple[Int, Bools]:
        """State and losses, (packets,) each.

        Args:
            events: EVENT rows.
            touches: TOUCH rows of the packets that ended in them.
            rows_before: events fed before these.
        """
        kind, row = events["kind"], touches["row"] - rows_before
        seen = events["flags"] & int(Flag.SEEN_BY_US) != 0
        gap = seen & (kind == Kind.STATUS) & (events["ref_id"] == Trading.GAP)
        begin, end = seen & (kind == Kind.SNAPSHOT_BEGIN), seen & (kind == Kind.SNAPSHOT_END)
        lost = self._losses(np.flatnonzero(gap), row)
        state = touches["trading"].astype(np.int64)
        at = np.flatnonzero(gap | begin | end)
        if not len(at) and self._book == Trading.OPEN:
            return state, lost
        made = np.select([gap[at], begin[at]], [int(Trading.GAP), SNAPSHOT], int(Trading.OPEN))
        book = np.concatenate([[self._book], made])
        last = np.searchsorted(at, row, side="right")
        self._book = int(book[-1])
        return np.where(book[last] == Trading.OPEN, state, book[last]), lost

    def _losses(self, gaps: Int, row: Int) -> Bools:
        lost = np.zeros(len(row), bool)
        packet = np.searchsorted(row, gaps)
        lost[packet[packet < len(row)]] = True
        if len(row):
            lost[0] |= self._lost
            self._lost = False
        self._lost |= bool((packet == len(row)).any())
        return lost

"""Stretches of trading without a break: what no window and no label may reach across.

A stretch begins with the first packet after which the book is live, has two sides and the market
is open. It ends at a STATUS row that says otherwise (halt, auction, close, gap), `one_sided_ns`
after a side went away and did not come back, `pause_ns` after the last packet of a feed that fell
silent, and with the day where days are apart. Every end is told by what came before it: whether a
row belongs to a stretch does not depend on its future.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from hft.types import Flag, Kind, Trading

Int = npt.NDArray[np.int64]

NEVER = int(np.iinfo(np.int64).max)
CAUSES = ("halt", "auction", "closed", "gap", "one_sided", "silence", "day")
"""Why a stretch ended."""
_BY_STATUS = {
    int(Trading.HALT): "halt",
    int(Trading.AUCTION): "auction",
    int(Trading.CLOSED): "closed",
    int(Trading.GAP): "gap",
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
    last_ts: int | None = None
    """Of the newest packet [ns]."""
    last_event: int | None = None
    """When the venue sent it; never goes back."""
    _side_gone: tuple[int, int] | None = None

    def feed(self, ts: Int, ts_event: Int, two_sided: npt.NDArray[np.bool_], state: Int) -> None:
        """Packets in order.

        Args:
            ts: when each reached us, (n,) [ns].
            ts_event: when the venue sent it, (n,) ascending [ns].
            two_sided: whether the book then has bids and asks, (n,).
            state: a `Trading` value, GAP while the book is not live, (n,).
        """
        if not len(ts):
            return
        for i in self._turns(ts, two_sided, state).tolist():
            if i:
                self.last_ts, self.last_event = int(ts[i - 1]), int(ts_event[i - 1])
            self._packet(int(ts[i]), int(ts_event[i]), bool(two_sided[i]), int(state[i]))
        self.last_ts, self.last_event = int(ts[-1]), int(ts_event[-1])
        self._expire(self.last_ts, self.last_event)

    def end(self, ts: int, ts_event: int, cause: str) -> None:
        """The stretch that lasts, if one does, ends at `ts`, by the venue's clock at `ts_event`."""
        if self.lasts:
            self.ends[-1], self.event_ends[-1], self.causes[-1] = ts, ts_event, cause
        self._side_gone = None

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

    def _turns(self, ts: Int, two_sided: npt.NDArray[np.bool_], state: Int) -> Int:
        """Packets at which something may begin or end; all others go on as the one before."""
        turn = np.ones(len(ts), bool)
        turn[1:] = two_sided[1:] != two_sided[:-1]
        turn[1:] |= state[1:] != state[:-1]
        turn[1:] |= np.diff(ts) > self.pause_ns
        return np.flatnonzero(turn)

    def _packet(self, ts: int, ts_event: int, two_sided: bool, state: int) -> None:  # noqa: FBT001
        before, event = self.last_ts, self.last_event
        if before is not None and event is not None and ts - before > self.pause_ns:
            self._expire(before + self.pause_ns, event + self.pause_ns)
            self.end(before + self.pause_ns, event + self.pause_ns, "silence")
        self._expire(ts, ts_event)
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

    def _expire(self, ts: int, ts_event: int) -> None:
        """A side has been missing for too long by either clock."""
        if self._side_gone is None:
            return
        until, event = (gone + self.one_sided_ns for gone in self._side_gone)
        if ts > until or ts_event > event:
            self.end(until, event, "one_sided")


@dataclass(slots=True)
class MarketState:
    """The `Trading` value after each packet, GAP from lost messages until the book is whole again.

    A snapshot under way counts as a gap: half of it is no book.
    """

    _whole: bool = True

    def feed(self, events: npt.NDArray[Any], touches: npt.NDArray[Any], rows_before: int) -> Int:
        """(packets,) of the touches that these rows led to, which follow `rows_before` others."""
        kind = events["kind"]
        seen = events["flags"] & int(Flag.SEEN_BY_US) != 0
        lost = (kind == Kind.STATUS) & (events["ref_id"] == Trading.GAP)
        lost |= kind == Kind.SNAPSHOT_BEGIN
        at = np.flatnonzero(seen & (lost | (kind == Kind.SNAPSHOT_END)))
        state = touches["trading"].astype(np.int64)
        if not len(at) and self._whole:
            return state
        whole = np.concatenate([[self._whole], ~lost[at]])
        last = np.searchsorted(at, touches["row"] - rows_before, side="right")
        self._whole = bool(whole[-1])
        return np.where(whole[last], state, int(Trading.GAP))

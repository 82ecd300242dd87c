"""Changes of the trading state, put between the packets of a feed.

Where the data say nothing and the venue is CME's Globex, its published hours are assumed, in
Chicago: from Sunday to Thursday orders rest from 16:00 and match from 17:00, until 16:00 of the
next day; from Friday 16:00 to Sunday 16:00 it is closed. Products with other hours, holidays and
early closes are not known, so these rows are UNCERTAIN.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from hft.adapters.databento.survey import Change
from hft.data.checks import Events
from hft.types import EVENT, SEEN_BY_BOTH, Flag, Kind, Trading

_CHICAGO = ZoneInfo("America/Chicago")
_FRIDAY, _SATURDAY, _SUNDAY = 4, 5, 6


def globex(first_ts: int, last_ts: int) -> list[Change]:
    """The state at `first_ts`, and each change until `last_ts`."""
    day = datetime.fromtimestamp(first_ts // 1_000_000_000, _CHICAGO).date() - timedelta(days=3)
    last = datetime.fromtimestamp(last_ts // 1_000_000_000, _CHICAGO).date()
    changes: list[Change] = []
    while day <= last:
        for hour, state in _changes_on(day.weekday()):
            at = datetime(day.year, day.month, day.day, hour, tzinfo=_CHICAGO)
            ts = int(at.timestamp()) * 1_000_000_000
            if ts <= first_ts:
                changes = [Change(first_ts, first_ts, state)]
            elif ts <= last_ts:
                changes.append(Change(ts, ts, state))
        day += timedelta(days=1)
    return changes


def _changes_on(weekday: int) -> list[tuple[int, Trading]]:
    if weekday == _SATURDAY:
        return []
    if weekday == _FRIDAY:
        return [(16, Trading.CLOSED)]
    return [(16, Trading.AUCTION), (17, Trading.OPEN)]


class Sessions:
    """Puts changes before the first packet that is not before them.

    An assumed opening is part of the packet that follows, the match of what crossed before it: else
    there would be an open market with a crossed book.

    Args:
        changes: in any order.
        assumed: they are placed by the venue's clock, and are UNCERTAIN; else by ours.
    """

    def __init__(self, changes: list[Change], *, assumed: bool) -> None:
        self._clock = "ts_event" if assumed else "ts_recv"
        self._changes = sorted(changes, key=lambda change: getattr(change, self._clock))
        self._assumed = assumed
        self._before = (0, 0)  # both times of the last row

    def feed(self, events: Events) -> Events:
        """Whole packets, and the changes that belong before one of them."""
        if not len(events):
            return events
        starts = np.flatnonzero(np.r_[True, events["flags"][:-1] & Flag.LAST != 0])
        reached = np.maximum.accumulate(events[self._clock][starts])
        times = np.array([getattr(change, self._clock) for change in self._changes], np.int64)
        at = starts[np.searchsorted(reached, times[times <= reached[-1]], "left")]
        rows = [self._row(self._changes[i], events, int(at[i])) for i in range(len(at))]
        for i, row in enumerate(rows):
            opens = self._changes[i].state == Trading.OPEN
            if self._assumed and opens and (i + 1 == len(rows) or at[i + 1] != at[i]):
                row["ts_event"], row["ts_recv"] = events[at[i]][["ts_event", "ts_recv"]]
                row["flags"] &= ~np.uint16(Flag.LAST)
        self._changes = self._changes[len(at) :]
        self._before = (int(events["ts_event"][-1]), int(events["ts_recv"][-1]))
        return np.insert(events, at, np.array(rows, EVENT)) if rows else events

    def rest(self) -> Events:
        """Changes after the last packet."""
        rows = [self._row(change, np.empty(0, EVENT), 0) for change in self._changes]
        self._changes = []
        return np.array(rows, EVENT)

    def _row(self, change: Change, events: Events, at: int) -> Any:
        """Its times lie between those of its neighbours on both clocks."""
        row = np.zeros((), EVENT)
        for name, own, last in zip(("ts_event", "ts_recv"), change[:2], self._before, strict=True):
            before = int(events[name][at - 1]) if at else last
            after = int(events[name][at]) if len(events) else own
            row[name] = min(max(own, before), max(after, before))
        row["kind"], row["ref_id"] = Kind.STATUS, int(change.state)
        row["flags"] = SEEN_BY_BOTH | Flag.LAST | (Flag.UNCERTAIN if self._assumed else 0)
        return row

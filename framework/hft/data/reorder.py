"""Rows that reach us in another order than they happened at the venue.

Venues send trades and book updates from different machines, so a trade may arrive after a book
update that is later on the venue's clock. Such a row is split in two: one half seen by us, where it
arrived, and one seen by the venue alone, where it belongs by `ts_event`. Each side then sees every
row once, in order on its own clock. Moving the time instead would let a print fill orders that
reached the venue after it.

Book rows among themselves, and prints among themselves, keep the order of arrival: a diff must not
slip before the snapshot it changes. Where their `ts_event` goes back it is raised to the largest
before it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hft.data.checks import Events
from hft.types import EVENT, Flag, Kind

WINDOW_NS = 10_000_000_000
"""How far back on the venue's clock a row can be put; a later one is put at the window's edge."""

_PRINTS = (int(Kind.TRADE), int(Kind.BAR), int(Kind.DATUM))
_NO_LINE = -1


class Reorder:
    """Takes rows in order of arrival, gives them back in order on both clocks, a window later."""

    def __init__(self, window_ns: int = WINDOW_NS) -> None:
        self.split = 0
        self.raised = 0
        self.raised_by_ns = 0
        self._window_ns = window_ns
        self._last: dict[bool, int] = {}  # by family: prints or book
        self._floor = np.iinfo(np.int64).min  # largest venue time given back
        self._rows = np.empty(0, EVENT)
        self._lines = np.empty(0, np.int64)

    def counts(self) -> dict[str, int]:
        """What was changed, for a report."""
        found = {
            "rows split by side": self.split,
            "venue times raised": self.raised,
            "venue times raised by at most us": self.raised_by_ns // 1_000,
        }
        return {what: count for what, count in found.items() if count}

    def feed(
        self, events: Events, lines: NDArray[np.int64] | None = None
    ) -> tuple[Events, NDArray[np.int64]]:
        """Take rows, changed in place; give back those that no later row can come before."""
        if lines is None:
            lines = np.full(len(events), _NO_LINE)
        self._raise_families(events)
        self._lines = np.concatenate([self._lines, lines])
        self._rows = self._split(np.concatenate([self._rows, events]))
        venue = self._rows["flags"] & Flag.SEEN_BY_VENUE != 0
        if not venue.any():
            return self._give(0)
        reached = np.maximum.accumulate(np.where(venue, self._rows["ts_event"], self._floor))
        return self._give(int(np.searchsorted(reached, reached[-1] - self._window_ns, "left")))

    def flush(self) -> tuple[Events, NDArray[np.int64]]:
        """Give back the rest."""
        return self._give(len(self._rows))

    def _give(self, count: int) -> tuple[Events, NDArray[np.int64]]:
        out, lines = self._rows[:count], self._lines[:count]
        self._rows, self._lines = self._rows[count:], self._lines[count:]
        venue = out["ts_event"][out["flags"] & Flag.SEEN_BY_VENUE != 0]
        if len(venue):
            self._floor = max(self._floor, int(venue[-1]))
        return out, lines

    def _raise_families(self, events: Events) -> None:
        prints = np.isin(events["kind"], _PRINTS)
        seen = events["flags"] & Flag.SEEN_BY_VENUE != 0
        for family, mine in ((True, prints & seen), (False, ~prints & seen)):
            ts = events["ts_event"][mine]
            if not len(ts):
                continue
            least = max(self._last.get(family, int(ts[0])), self._floor)
            risen = np.maximum.accumulate(np.maximum(ts, least))
            self._last[family] = int(risen[-1])
            by = risen - ts
            if by.any():
                self.raised += int(np.count_nonzero(by))
                self.raised_by_ns = max(self.raised_by_ns, int(by.max()))
                events["ts_event"][mine] = risen

    def _split(self, rows: Events) -> Events:
        venue = rows["flags"] & Flag.SEEN_BY_VENUE != 0
        ts = rows["ts_event"]
        late = venue & (ts < np.maximum.accumulate(np.where(venue, ts, self._floor)))
        at = np.flatnonzero(late)
        if not len(at):
            return rows
        self.split += len(at)
        halves = rows[at]
        halves["flags"] &= ~np.uint16(Flag.SEEN_BY_US)
        rows["flags"][at] &= ~np.uint16(Flag.SEEN_BY_VENUE)
        return self._insert(rows, np.flatnonzero(venue & ~late), halves, at)

    def _insert(
        self, rows: Events, in_order: NDArray[Any], halves: Events, at: NDArray[Any]
    ) -> Events:
        # Before the first row that is later at the venue; there is one, else the half were not
        # late.
        after = np.searchsorted(rows["ts_event"][in_order], halves["ts_event"], "right")
        place = np.concatenate([2 * np.arange(len(rows)) + 1, 2 * in_order[after]])
        ts = np.concatenate([np.zeros(len(rows), np.int64), halves["ts_event"]])
        order = np.lexsort((ts, place))
        self._lines = np.concatenate([self._lines, self._lines[at]])[order]
        # A row that lost both sides was the venue's half of a feed that came split.
        both = np.concatenate([rows, halves])[order]
        keep = both["flags"] & (Flag.SEEN_BY_VENUE | Flag.SEEN_BY_US) != 0
        self._lines = self._lines[keep]
        kept: Events = both[keep]
        return kept

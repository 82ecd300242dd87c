"""The one label maker: what the market did between a row's earliest trade and a horizon later.

A label starts `latency` after its row, where an order sent on it could trade at the earliest, and
ends a horizon after that. Both are instants at the venue, so the market there is what counts, by
the venue's clock: what we hear at that moment is older, and the move in between was not to be had.

A label is known only if all of it lies within one stretch of trading (stretches.py) and before the
newest packet: later data add labels and never change one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from hft.inference.dataset.stretches import MarketState, Stretches

Int = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_NONE = np.empty(0, np.int64)
_NO_PRICE = int(np.iinfo(np.int64).min)


@dataclass(frozen=True, slots=True)
class Labels:
    """Of the rows they were made for, in order."""

    stretch: Int
    """(n,) -1: the row lies in none."""
    mid: Floats
    """(n,) at the row [ticks]; NaN: none yet."""
    move: Floats
    """(n, horizons) of the mid [ticks]; NaN: not known."""
    long: Floats
    """(n, horizons) bought at the ask where the label starts, sold at the bid where it ends."""
    short: Floats
    """(n, horizons) sold at the bid, bought back at the ask [ticks]."""


@dataclass(slots=True)
class LabelMaker:
    """Labels one instrument's rows as the market goes on; holds no more than the longest label."""

    horizons_ns: tuple[int, ...]
    stretches: Stretches
    _book: Any = None
    _state: MarketState = field(default_factory=MarketState)
    _rows_fed: int = 0
    _ts: Int = field(default_factory=lambda: _NONE)
    """When we heard that the touch changed, as far back as a row still waits for it."""
    _ts_event: Int = field(default_factory=lambda: _NONE)
    """When it changed at the venue, ascending."""
    _bid: Int = field(default_factory=lambda: _NONE)
    _ask: Int = field(default_factory=lambda: _NONE)

    def feed(self, events: npt.NDArray[Any]) -> None:
        """EVENT rows of the instrument, in order."""
        from hft.data.books import BookStream

        if self._book is None:
            self._book = BookStream()
        touches = self._book.feed(events)
        state, lost = self._state.feed(events, touches, self._rows_fed)
        self._rows_fed += len(events)
        two_sided = (touches["bid"] != _NO_PRICE) & (touches["ask"] != _NO_PRICE)
        ts, ts_event = touches["ts_recv"], self._ascending(touches["ts_event"])
        self.stretches.feed(ts, ts_event, two_sided, state, lost)
        at = two_sided & (state == 0)
        self._follow(ts[at], ts_event[at], touches["bid"][at], touches["ask"][at])

    def ready(self, ts: Int, latency_ns: Int) -> int:
        """How many of these waiting rows, from the first, have labels that no data can change."""
        end = ts + latency_ns + max(self.horizons_ns)
        stretch = self.stretches.of(ts)
        over = np.minimum(end + 1, self.stretches.event_ends_of(stretch))
        known = (over <= self._known_to) | (stretch < 0)
        return len(ts) if known.all() else int(np.argmin(known))

    def label(self, ts: Int, latency_ns: Int) -> Labels:
        """Labels of rows; of those not `ready`, what is not known yet is NaN."""
        stretch = self.stretches.of(ts)
        ends = self.stretches.event_ends_of(stretch)
        start = ts + latency_ns
        bid, ask, mid = self._touch_at(self._ts_event, start)
        shape = len(ts), len(self.horizons_ns)
        move, long, short = (np.full(shape, np.nan) for _ in range(3))
        for h, horizon_ns in enumerate(self.horizons_ns):
            end = start + horizon_ns
            known = (stretch >= 0) & (end < ends) & (end < self._known_to)
            bid_end, ask_end, mid_end = self._touch_at(self._ts_event, end)
            move[:, h] = np.where(known, mid_end - mid, np.nan)
            long[:, h] = np.where(known, bid_end - ask, np.nan)
            short[:, h] = np.where(known, bid - ask_end, np.nan)
        return Labels(stretch, self._touch_at(self._ts, ts)[2], move, long, short)

    def forget(self, ts: int) -> None:
        """Drops the market before `ts` of our clock: no row that is left to label is older."""
        first = max(int(np.searchsorted(self._ts, ts, side="right")) - 1, 0)
        self._ts, self._ts_event = self._ts[first:], self._ts_event[first:]
        self._bid, self._ask = self._bid[first:], self._ask[first:]

    def new_book(self) -> None:
        """The next events are of another day and begin with an empty book."""
        self._book, self._state, self._rows_fed = None, MarketState(), 0

    @property
    def _known_to(self) -> int:
        """Packets of this very instant may still come."""
        last = self.stretches.last_event
        return np.iinfo(np.int64).min if last is None else last

    def _ascending(self, ts_event: Int) -> Int:
        """A packet that overtook another was not there before it, for who looks back."""
        if not len(ts_event):
            return ts_event
        first = max(int(ts_event[0]), self._known_to)
        return np.maximum.accumulate(np.concatenate([[first], ts_event[1:]]))

    def _follow(self, ts: Int, ts_event: Int, bid: Int, ask: Int) -> None:
        moved = np.ones(len(ts), bool)
        moved[1:] = (np.diff(bid) != 0) | (np.diff(ask) != 0)
        self._ts = np.concatenate([self._ts, ts[moved]])
        self._ts_event = np.concatenate([self._ts_event, ts_event[moved]])
        self._bid = np.concatenate([self._bid, bid[moved]])
        self._ask = np.concatenate([self._ask, ask[moved]])

    def _touch_at(self, changed: Int, ts: Int) -> tuple[Floats, Floats, Floats]:
        """Bid, ask and mid that hold at each time, (n,) [ticks]; NaN before the first.

        `changed` is when they changed, by the clock of `ts`.
        """
        if not len(changed):
            nothing = np.full(len(ts), np.nan)
            return nothing, nothing, nothing
        last = np.searchsorted(changed, ts, side="right") - 1
        bid, ask = (
            np.where(last >= 0, side[last], np.nan).astype(np.float64)
            for side in (self._bid, self._ask)
        )
        return bid, ask, (bid + ask) / 2


def column(name: str, horizon_ns: int) -> str:
    """`move_500ms`."""
    from hft.durations import format_ns

    return f"{name}_{format_ns(horizon_ns)}"

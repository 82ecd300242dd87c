"""Bars as rows: four instants of each, with a print and a best level a side at each.

    open           1 ns after the start (a print on the grid belongs to the bar that ends there)
    first extreme  at a third of the bar: the low if the bar rose or stood still, else the high
    second         at two thirds
    close          at the end

The best levels are LEVEL rows marked UNCERTAIN, as of a feed of snapshots: what is no longer shown
is gone from the book, and an order of ours keeps its place there.

What is told at an instant uses the bars before and this bar's prices up to there. But that the
second print is the bar's lowest, and the third its highest, no market would tell: who decides
inside a bar knows the future (docs/weak-data.md).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hft.types import EVENT, SEEN_BY_BOTH, Flag, Kind

Ints = NDArray[np.int64]
NO_SPREAD = 0
POINTS, ROWS = 4, 5


class Bars(NamedTuple):
    """Bars of a file, oldest first; (n,) each."""

    lines: Ints
    ts_start: Ints
    open: Ints
    """[ticks], as are high, low and close."""
    high: Ints
    low: Ints
    close: Ints
    lots: Ints
    bid: Ints | None
    """At the close [ticks]."""
    ask: Ints | None


class BarPath:
    """Makes rows of bars; keeps what the next bar needs of the last.

    Args:
        bar_ns: length of a bar.
        spread_ticks: assumed until a close tells one; NO_SPREAD: no quotes until then.
        size_share: of the last whole bar's volume, shown at the touch.
    """

    def __init__(self, bar_ns: int, spread_ticks: int, size_share: float) -> None:
        self._bar_ns = bar_ns
        self._spread = spread_ticks
        self._share = size_share
        self._price: int | None = None
        self._side = 0
        self._bid = self._ask = 0
        self._shown = False
        self._lots = 0

    def rows(self, bars: Bars) -> tuple[NDArray[Any], Ints]:
        """Rows and the line that each came from."""
        n = len(bars.lines)
        if not n:
            return np.empty(0, EVENT), np.empty(0, np.int64)
        rows = np.zeros((n * POINTS, ROWS), EVENT)
        rows["flags"] = SEEN_BY_BOTH | Flag.UNCERTAIN
        rows["ts_event"] = rows["ts_recv"] = self._times(bars.ts_start).reshape(-1, 1)
        price = self._prices(bars).ravel()
        side = self._sides(price)
        prints, quotes = rows[:, 0], rows[:, 1:]
        prints["kind"], prints["price"], prints["side"] = Kind.TRADE, price, side
        prints["qty"] = _parts(bars.lots).ravel()
        keep = np.ones(rows.shape, bool)
        keep[:, 0] = prints["qty"] > 0
        keep[:, 1:] = self._quotes(quotes, bars, price, side)
        _end_packets(rows, keep)
        self._price, self._side = int(price[-1]), int(side[-1])
        self._lots = int(bars.lots[-1])
        lines = np.repeat(bars.lines, POINTS * ROWS).reshape(rows.shape)
        return rows[keep], lines[keep]

    def _times(self, ts_start: Ints) -> Ints:
        third = self._bar_ns // 3
        return np.asarray(ts_start[:, None] + np.array([1, third, 2 * third, self._bar_ns]))

    def _prices(self, bars: Bars) -> Ints:
        rose = bars.close >= bars.open
        first = np.where(rose, bars.low, bars.high)
        second = np.where(rose, bars.high, bars.low)
        return np.stack([bars.open, first, second, bars.close], axis=1)

    def _sides(self, price: Ints) -> Ints:
        """Who took: a buyer where the price rose, a seller where it fell, else as before."""
        before = price[0] if self._price is None else self._price
        step = np.sign(np.diff(price, prepend=before))
        step[0] = step[0] or self._side
        at = np.where(step != 0, np.arange(len(step)), 0)
        return np.asarray(step[np.maximum.accumulate(at)])

    def _quotes(self, quotes: Any, bars: Bars, price: Ints, side: Ints) -> NDArray[np.bool_]:
        """Fills in levels that go and levels that come, and says which rows there are."""
        spread = self._spreads(bars)
        known = spread != NO_SPREAD
        # The side that took stands at the print, half a spread from the middle.
        half = spread // 2
        bid = np.where(side >= 0, price + half - spread, price - half)
        ask = bid + spread
        if bars.bid is not None and bars.ask is not None:
            bid[POINTS - 1 :: POINTS], ask[POINTS - 1 :: POINTS] = bars.bid, bars.ask
        # Until a spread is known there is no quote; from then on there is always one.
        shown = np.concatenate([[self._shown], known[:-1]])
        old_bid, old_ask = (
            np.concatenate([[old], new[:-1]]) for old, new in ((self._bid, bid), (self._ask, ask))
        )
        # The side that moves away goes first, so that the book is never crossed.
        falls = bid < old_bid
        lots = self._sizes(bars.lots)
        keep = np.zeros(quotes.shape, bool)
        quotes["kind"] = Kind.LEVEL
        for at, is_bid in ((0, falls), (2, ~falls)):
            gone, new = quotes[:, at], quotes[:, at + 1]
            gone["side"] = new["side"] = np.where(is_bid, 1, -1)
            gone["price"], new["price"] = (
                np.where(is_bid, old_bid, old_ask),
                np.where(is_bid, bid, ask),
            )
            new["qty"] = lots
            keep[:, at] = known & shown & (gone["price"] != new["price"])
            keep[:, at + 1] = known
        self._bid, self._ask, self._shown = int(bid[-1]), int(ask[-1]), bool(known[-1])
        return keep

    def _spreads(self, bars: Bars) -> Ints:
        """Of each instant: what the last close told."""
        if bars.bid is None or bars.ask is None:
            return np.full(POINTS * len(bars.lines), self._spread)
        told = bars.ask - bars.bid
        spread = np.repeat(np.concatenate([[self._spread], told[:-1]]), POINTS)
        spread[POINTS - 1 :: POINTS] = told
        self._spread = int(told[-1])
        return spread

    def _sizes(self, lots: Ints) -> Ints:
        """Of each instant: a share of the last whole bar, which at a close is this one."""
        size = np.repeat(np.concatenate([[self._lots], lots[:-1]]), POINTS)
        size[POINTS - 1 :: POINTS] = lots
        return np.maximum(np.rint(size * self._share).astype(np.int64), 1)


def _parts(lots: Ints) -> Ints:
    """A quarter of the volume each, (n, 4); what is left over from the close backwards."""
    quarter, rest = np.divmod(lots, POINTS)
    return np.asarray(quarter[:, None] + (rest[:, None] > np.arange(POINTS)[::-1]))


def _end_packets(rows: Any, keep: NDArray[np.bool_]) -> None:
    """LAST on the last row of each instant that has any."""
    last = ROWS - 1 - np.argmax(keep[:, ::-1], axis=1)
    rows["flags"][np.arange(len(rows)), last] |= np.uint16(Flag.LAST)

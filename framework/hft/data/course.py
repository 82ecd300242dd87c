"""How a day went: touch, spread, depth, trades and messages in equal steps of time.

Rows pass once. Steps begin at a second and grow (5 s, 15 s, 1 min ...) as the day gets longer, so
that there are never many more than a picture can show. Time is ours, `ts_recv`.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hft.data.books import NO_PRICE, TOUCH, BookStream
from hft.data.checks import Events
from hft.types import Flag, Kind, Trading

SECOND_NS = 1_000_000_000
WIDTHS_S = (1, 5, 15, 60, 300, 900, 3600, 14_400, 86_400)
MOST_STEPS = 1_500
MINUTE_FROM_STEPS = 30
"""A day with so many minutes is told by the minute."""
DEPTH_LEVELS = 5

STEP = np.dtype(
    [
        ("ts", "<i8"),  # its beginning
        ("rows", "<i8"),  # that we see
        ("packets", "<i8"),
        ("bought", "<i8"),  # lots by aggressor
        ("sold", "<i8"),
        ("unsided", "<i8"),
        ("mid", "<f8"),  # last, lowest and highest [ticks]; NaN: no book with two sides
        ("low", "<f8"),
        ("high", "<f8"),
        ("spread", "<f8"),  # sum over `quotes` packets [ticks]
        ("quotes", "<i8"),
        ("bid_depth", "<f8"),  # lots at the best levels, at its end; NaN: no such book
        ("ask_depth", "<f8"),
    ]
)
_SUMS = ("rows", "packets", "bought", "sold", "unsided", "spread", "quotes")


class Course:
    """Follows a feed; `steps` is how it went, `book` where it ended."""

    def __init__(self) -> None:
        self.book = BookStream()
        self.crossed = 0
        """Packets that left the book crossed while trading was open."""
        self.first_crossed: int | None = None
        """The first of them: its last row, counted over all rows."""
        self.gaps = 0
        self.last_touch: tuple[int, int, int, int] | None = None
        """Bid ticks and lots, ask ticks and lots after the last packet; None: a side is empty."""
        self._rows = 0
        self._width_s = WIDTHS_S[0]
        self._done: list[NDArray[Any]] = []
        self._open = np.empty(0, STEP)

    def feed(self, rows: Events) -> None:
        """Take the next rows in."""
        step = rows["ts_recv"] // (self._width_s * SECOND_NS)
        # The venue's half of a split row may carry an older time: steps never go back.
        step = np.maximum.accumulate(step)
        if len(self._open):
            step = np.maximum(step, self._open["ts"][0] // (self._width_s * SECOND_NS))
        cuts = [0, *(np.flatnonzero(np.diff(step)) + 1).tolist(), len(rows)]
        for start, stop in itertools.pairwise(cuts):
            if stop > start:
                self._add(rows[start:stop], int(step[start]) * self._width_s * SECOND_NS)
        if sum(map(len, self._done)) > MOST_STEPS:
            self._coarsen()

    def steps(self) -> tuple[NDArray[Any], int]:
        """Steps in which there were rows, (n,) STEP, and how long they are [s]."""
        all_steps, width_s = np.concatenate([*self._done, self._open]), self._width_s
        span_s = (
            (int(all_steps["ts"][-1] - all_steps["ts"][0])) / SECOND_NS if len(all_steps) else 0
        )
        while len(all_steps) > MOST_STEPS or (width_s < 60 and span_s >= 60 * MINUTE_FROM_STEPS):
            width_s = _wider(width_s)
            all_steps = merged(all_steps, width_s)
        return all_steps, width_s

    def _coarsen(self) -> None:
        self._width_s = _wider(self._width_s)
        every = merged(np.concatenate([*self._done, self._open]), self._width_s)
        self._done, self._open = [every[:-1]], every[-1:]

    def _add(self, rows: Events, ts: int) -> None:
        in_gap = self.book.state == "GAP"
        touch = self.book.feed(rows)
        self.gaps += _count_gaps(rows)
        believed = _believed(rows, touch, in_gap=in_gap, first=self._rows)
        self._rows += len(rows)
        self._count_crossed(touch[believed])
        step = _step_of(rows, touch[believed], ts)
        for side, name in ((1, "bid_depth"), (-1, "ask_depth")):
            levels = self.book.levels(side, DEPTH_LEVELS)
            step[name] = levels[:, 1].sum() if len(levels) and self.book.state == "LIVE" else np.nan
        if len(touch):
            last = touch[-1]
            two_sided = last["bid"] != NO_PRICE and last["ask"] != NO_PRICE
            names = ("bid", "bid_lots", "ask", "ask_lots")
            bid, bid_lots, ask, ask_lots = (int(last[name]) for name in names)
            self.last_touch = (bid, bid_lots, ask, ask_lots) if two_sided else None
        if len(self._open) and self._open["ts"][0] != ts:
            self._done.append(self._open)
            self._open = step
        else:
            self._open = merged(np.concatenate([self._open, step]), self._width_s)

    def _count_crossed(self, touch: NDArray[Any]) -> None:
        two_sided = (touch["bid"] != NO_PRICE) & (touch["ask"] != NO_PRICE)
        crossed = two_sided & (touch["bid"] >= touch["ask"]) & (touch["trading"] == Trading.OPEN)
        self.crossed += int(np.count_nonzero(crossed))
        if self.first_crossed is None and crossed.any():
            self.first_crossed = int(touch["row"][crossed][0])


def _wider(width_s: int) -> int:
    return next((each for each in WIDTHS_S if each > width_s), 2 * width_s)


def merged(steps: NDArray[Any], width_s: int) -> NDArray[Any]:
    """Steps taken together into longer ones, (m,) STEP."""
    if not len(steps):
        return steps
    group = steps["ts"] // (width_s * SECOND_NS)
    first = np.flatnonzero(np.append(True, np.diff(group) != 0))
    out = np.zeros(len(first), STEP)
    out["ts"] = group[first] * width_s * SECOND_NS
    for name in _SUMS:
        out[name] = np.add.reduceat(steps[name], first)
    out["low"] = np.fmin.reduceat(steps["low"], first)
    out["high"] = np.fmax.reduceat(steps["high"], first)
    for name in ("mid", "bid_depth", "ask_depth"):
        out[name] = _last_known(steps[name], first)
    return out


def _last_known(values: NDArray[np.float64], first: NDArray[np.intp]) -> NDArray[np.float64]:
    """Of each group of values, which begin at `first`, the last that is no NaN."""
    known = np.where(np.isnan(values), -1, np.arange(len(values)))
    at = np.maximum.reduceat(known, first)
    return np.where(at >= 0, values[at], np.nan)


def prints(rows: Events) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Which rows are trades of the market, and their aggressors' sides, each (n,)."""
    executed = rows["kind"] == Kind.EXECUTE
    is_print = (rows["kind"] == Kind.TRADE) | (executed & (rows["flags"] & Flag.NO_PRINT == 0))
    return is_print, np.where(executed, -rows["side"], rows["side"])


def _step_of(rows: Events, touch: NDArray[Any], ts: int) -> NDArray[Any]:
    """One step: rows as we see them, and the touch after packets whose book can be believed."""
    rows = rows[rows["flags"] & Flag.SEEN_BY_US != 0]
    step = np.zeros(1, STEP)
    step["ts"], step["rows"] = ts, len(rows)
    step["packets"] = np.count_nonzero(rows["flags"] & Flag.LAST)
    is_print, side = prints(rows)
    for name, aggressor in (("bought", 1), ("sold", -1), ("unsided", 0)):
        step[name] = rows["qty"][is_print & (side == aggressor)].sum()
    known = (touch["bid"] != NO_PRICE) & (touch["ask"] != NO_PRICE) & (touch["bid"] < touch["ask"])
    bid, ask = touch["bid"][known], touch["ask"][known]
    step["mid"] = step["low"] = step["high"] = np.nan
    if len(bid):
        mid = (bid + ask) / 2
        step["mid"], step["low"], step["high"] = mid[-1], mid.min(), mid.max()
        step["spread"], step["quotes"] = (ask - bid).sum(), len(bid)
    return step


def _count_gaps(rows: Events) -> int:
    return int(np.count_nonzero(_breaks(rows)))


def _breaks(rows: Events) -> NDArray[np.bool_]:
    told = (rows["kind"] == Kind.STATUS) & (rows["flags"] & Flag.SEEN_BY_US != 0)
    breaks: NDArray[np.bool_] = told & (rows["ref_id"] == Trading.GAP)
    return breaks


def _believed(rows: Events, touch: NDArray[Any], *, in_gap: bool, first: int) -> NDArray[np.bool_]:
    """Packets that do not follow lost messages, until the snapshot that mends it, (packets,)."""
    assert touch.dtype == TOUCH
    breaks = _breaks(rows)
    mends = rows["kind"] == Kind.SNAPSHOT_END
    if not in_gap and not breaks.any():
        return np.ones(len(touch), bool)
    at = np.arange(len(rows))
    broken = np.maximum.accumulate(np.where(breaks, at, -1))
    mended = np.maximum.accumulate(np.where(mends, at, -1))
    whole: NDArray[np.bool_] = mended > broken if in_gap else (broken < 0) | (mended > broken)
    believed: NDArray[np.bool_] = whole[touch["row"] - first]
    return believed

"""Feeds that show only snapshots, as level changes and prints by difference.

What happened between two snapshots cannot be told: a level that was added and cancelled leaves no
trace, an order of changes is not known, and a level that fell out of the window counts as gone. All
rows are therefore marked UNCERTAIN. What is exact: after each snapshot's rows the book is the
snapshot, and the prints add up to the venue's own totals.

Two snapshots are compared level by level through an (n, levels) mask for each level of the older
one: levels² comparisons a snapshot and side (3 µs at 10 levels, 25 µs at 50), without a sort and
whatever order the levels come in.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hft.data.checks import Events
from hft.data.repairs import set_last
from hft.errors import DataError
from hft.types import EVENT, SEEN_BY_BOTH, Flag, Kind

Ints = NDArray[np.int64]

BLOCK = 1 << 13  # snapshots compared at once

_FLAGS = np.uint16(SEEN_BY_BOTH | Flag.UNCERTAIN)
_LAST = np.uint16(Flag.LAST)


class SnapshotDiff:
    """Snapshots of the best levels in, the LEVEL rows that lead from one to the next out.

    The first snapshot becomes SNAPSHOT_BEGIN, a LEVEL row a level, SNAPSHOT_END. In later ones,
    levels that are no longer shown go first, so that no book is crossed half-way. A snapshot that
    changes nothing gives no row. After a break in the feed take a new SnapshotDiff.

    Args:
        levels: levels a side in a snapshot.
    """

    def __init__(self, levels: int) -> None:
        self._levels = levels
        self._last: tuple[Ints, Ints] | None = None  # (levels, 2) of bids and of asks
        self._fed = 0

    def feed(
        self, ts_event: Ints, ts_recv: Ints, bids: Ints, asks: Ints, seq: Ints | None = None
    ) -> Events:
        """The rows of the next snapshots; LAST is set on the last row of each.

        Args:
            ts_event: (n,) [ns].
            ts_recv: (n,) [ns].
            bids: (n, levels, 2) of price [ticks] and size [lots]; size 0: no such level.
            asks: likewise.
            seq: (n,) the venue's number of each snapshot.

        Raises:
            DataError: a side shows one price twice.
        """
        parts = [np.empty(0, EVENT)]
        for start in range(0, len(ts_event), BLOCK):
            now = slice(start, start + BLOCK)
            number = None if seq is None else seq[now]
            parts.append(self._block(ts_event[now], ts_recv[now], bids[now], asks[now], number))
        return np.concatenate(parts)

    def _block(
        self, ts_event: Ints, ts_recv: Ints, bids: Ints, asks: Ints, seq: Ints | None
    ) -> Events:
        opening = self._last is None
        if self._last is None:
            nothing = np.zeros((self._levels, 2), np.int64)
            self._last = (nothing, nothing)
        gone, shown = [], []
        for side, before in ((bids, self._last[0]), (asks, self._last[1])):
            self._want_unique(side)
            old = np.concatenate([before[None], side[:-1]])
            left, came = _changes(old, side)
            gone.append((old, left))
            shown.append((side, came))
        self._last = (bids[-1].copy(), asks[-1].copy())
        self._fed += len(ts_event)
        at, rows = _rows(gone, shown)
        rows["ts_event"], rows["ts_recv"] = ts_event[at], ts_recv[at]
        if seq is not None:
            rows["seq"] = seq[at]
        if opening:
            at, rows = _framed(at, rows, ts_event, ts_recv, seq)
        rows["flags"][np.append(at[1:] != at[:-1], True)[: len(at)]] |= _LAST
        return rows

    def _want_unique(self, side: Ints) -> None:
        price, live = side[..., 0], side[..., 1] != 0
        ordered = live[:, 1:] & live[:, :-1]
        step = np.where(ordered, price[:, 1:] - price[:, :-1], 0)
        # Best first without holes is how they come; sort only the others.
        odd = ~((step < 0) | ~live[:, 1:]).all(1) & ~((step > 0) | ~live[:, 1:]).all(1)
        for at in np.flatnonzero(odd):
            prices, counts = np.unique(price[at][live[at]], return_counts=True)
            if (counts > 1).any():
                twice = int(prices[counts > 1][0])
                raise DataError(
                    f"snapshot {self._fed + at}: price {twice} ticks is shown twice on one side, "
                    "want each level once"
                )


def _changes(old: Ints, new: Ints) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which levels of `old` are gone, and which of `new` came or changed size: (n, levels) each."""
    live_old, live_new = old[..., 1] != 0, new[..., 1] != 0
    gone = live_old.copy()
    came = live_new.copy()
    new_price, new_lots = new[..., 0].copy(), new[..., 1].copy()
    for level in range(old.shape[1]):
        price, lots = old[:, level, 0, None], old[:, level, 1, None]
        same = (new_price == price) & live_new & (lots != 0)
        gone[:, level] &= ~same.any(1)
        came &= ~(same & (new_lots == lots))
    return gone, came


def _rows(gone: list[Any], shown: list[Any]) -> tuple[Ints, Events]:
    """LEVEL rows in order of snapshot, levels that are gone first, and the snapshot of each."""
    mask = np.concatenate([m for _, m in gone + shown], axis=1)
    width = mask.shape[1] // 4
    flat = np.flatnonzero(mask)
    at, column = np.divmod(flat, 4 * width)
    part, level = np.divmod(column, width)
    rows = np.zeros(len(at), EVENT)
    for index, (side, _) in enumerate(gone + shown):
        mine = part == index
        rows["price"][mine] = side[at[mine], level[mine], 0]
        if index >= 2:
            rows["qty"][mine] = side[at[mine], level[mine], 1]
    rows["kind"], rows["flags"] = Kind.LEVEL, _FLAGS
    rows["side"] = np.where(part % 2 == 0, 1, -1)
    return at, rows


def _framed(
    at: Ints, rows: Events, ts_event: Ints, ts_recv: Ints, seq: Ints | None
) -> tuple[Ints, Events]:
    """The first snapshot between SNAPSHOT_BEGIN and SNAPSHOT_END."""
    frame = np.zeros(2, EVENT)
    frame["ts_event"], frame["ts_recv"] = ts_event[0], ts_recv[0]
    frame["seq"] = 0 if seq is None else seq[0]
    frame["kind"], frame["flags"] = [Kind.SNAPSHOT_BEGIN, Kind.SNAPSHOT_END], _FLAGS
    first = int(np.searchsorted(at, 1))
    return np.insert(at, [0, first], 0), np.insert(rows, [0, first], frame)


def inferred_prints(
    ts_event: Ints,
    ts_recv: Ints,
    volume_lots: Ints,
    turnover_ticks: NDArray[Any],
    *,
    last_ticks: Ints | None = None,
    before: tuple[float, float] | None = None,
    seq: Ints | None = None,
) -> Events:
    """What traded between snapshots, from the venue's running totals.

    Each rise of volume becomes one TRADE row, or two at the ticks around its average price, such
    that volume is exact and turnover as near as whole ticks allow. Who took and in which order is
    not known: side 0, UNCERTAIN. A total that falls (restart, new day, correction) is a new start
    to count from, not a print.

    Args:
        ts_event: (n,) [ns].
        ts_recv: (n,) [ns].
        volume_lots: (n,) traded so far.
        turnover_ticks: (n,) sum of price * size so far [ticks * lots]; exact if of integers.
        last_ticks: (n,) last price, taken where turnover gives no price above 0.
        before: totals of the snapshot before these: the last ones of the call before, or (0, 0)
            where the first total is itself traded in this stretch. None: a start to count from.
        seq: (n,) the venue's number of each snapshot.

    Raises:
        DataError: volume rises, and neither turnover nor `last_ticks` gives a price.
    """
    n = len(volume_lots)
    if not n:
        return np.empty(0, EVENT)
    first = (volume_lots[0], turnover_ticks[0]) if before is None else before
    lots = np.diff(volume_lots, prepend=np.asarray(first[0], volume_lots.dtype))
    worth = np.diff(turnover_ticks, prepend=np.asarray(first[1], turnover_ticks.dtype))
    at = np.flatnonzero(lots > 0)
    low, high_lots = _split(lots[at], worth[at])
    unpriced = low <= 0
    if unpriced.any():
        if last_ticks is not None:
            low[unpriced], high_lots[unpriced] = last_ticks[at[unpriced]], 0
        _want_price(at, low, lots)
    rows = np.zeros((len(at), 2), EVENT)
    rows["price"] = low[:, None] + np.arange(2)
    rows["qty"] = np.stack([lots[at] - high_lots, high_lots], axis=1)
    for name, values in (("ts_event", ts_event), ("ts_recv", ts_recv), ("seq", seq)):
        if values is not None:
            rows[name] = values[at][:, None]
    rows["kind"], rows["flags"] = Kind.TRADE, _FLAGS
    there = rows["qty"] > 0
    rows["flags"][:, 1] |= _LAST
    rows["flags"][~there[:, 1], 0] |= _LAST
    return np.asarray(rows[there])


def _split(lots: Ints, worth: NDArray[Any]) -> tuple[Ints, Ints]:
    """The tick at or below the average price, and how many lots traded one tick higher."""
    if worth.dtype.kind != "f":
        return worth // lots, worth % lots
    low = np.floor(worth / lots)
    high = np.clip(np.rint(worth - low * lots), 0, lots)
    return low.astype(np.int64), high.astype(np.int64)


def _want_price(at: Ints, low: Ints, lots: Ints) -> None:
    if (low <= 0).any():
        bad = int(at[int((low <= 0).argmax())])
        raise DataError(
            f"snapshot {bad}: volume rises by {lots[bad]} lots at no price: turnover does not "
            "rise with it, and there is no last price above 0"
        )


def with_prints(levels: Events, prints: Events) -> Events:
    """Both in one feed, in order of `ts_recv`, the prints of a snapshot before its levels."""
    place = np.searchsorted(levels["ts_recv"], prints["ts_recv"], side="left")
    rows = np.insert(levels, place, prints)
    set_last(rows)
    return rows

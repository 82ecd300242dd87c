"""Snapshot-only feeds: level changes and prints by difference, against plain Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hft.data import check
from hft.data.snapshots import BLOCK, SnapshotDiff, inferred_prints, with_prints
from hft.errors import DataError
from hft.types import EVENT, Flag, Kind

LEVELS = 4


def snapshots(count: int, seed: int) -> tuple[Any, Any]:
    """Bids and asks that drift; some levels missing, some snapshots equal to the one before."""
    rng = np.random.default_rng(seed)
    bids, asks = np.zeros((count, LEVELS, 2), np.int64), np.zeros((count, LEVELS, 2), np.int64)
    for at in range(count):
        if at and rng.random() < 0.2:
            bids[at], asks[at] = bids[at - 1], asks[at - 1]
            continue
        mid = 100 + int(rng.integers(-3, 4))
        depth = np.sort(rng.choice(7, LEVELS, replace=False))
        bids[at, :, 0], asks[at, :, 0] = mid - 1 - depth, mid + depth
        lots = rng.integers(0, 3, (2, LEVELS)) if rng.random() < 0.5 else rng.integers(1, 3, (2, 1))
        bids[at, :, 1], asks[at, :, 1] = lots
        if rng.random() < 0.1:
            asks[at] = 0
    return bids, asks


def times(count: int) -> Any:
    return 1_700_000_000_000_000_000 + np.arange(count) * 500_000_000


def shown(side: Any) -> dict[int, int]:
    return {int(p): int(q) for p, q in side if q}


def plain_diff(bids: Any, asks: Any) -> list[list[tuple[int, int, int, int]]]:
    """(kind, side, price, qty) of each snapshot's rows, levels that are gone first."""
    out, old = [], ({}, {})
    for at in range(len(bids)):
        new = (shown(bids[at]), shown(asks[at]))
        rows = []
        for side, before, now in zip((1, -1), old, new, strict=True):
            rows += [(1, side, price, 0) for price in before if price not in now]
        for side, before, now in zip((1, -1), old, new, strict=True):
            rows += [(1, side, p, q) for p, q in now.items() if before.get(p) != q]
        if at == 0:
            rows = [(int(Kind.SNAPSHOT_BEGIN), 0, 0, 0), *rows, (int(Kind.SNAPSHOT_END), 0, 0, 0)]
        out.append(rows)
        old = new
    return out


@given(count=st.integers(1, 40), seed=st.integers(0, 10**6), cut=st.integers(0, 40))
def test_rows_are_those_of_plain_python(count: int, seed: int, cut: int) -> None:
    bids, asks = snapshots(count, seed)
    ts = times(count)
    diff = SnapshotDiff(LEVELS)
    parts = [slice(0, cut), slice(cut, None)]
    rows = np.concatenate(
        [diff.feed(ts[p], ts[p] + 5, bids[p], asks[p], np.arange(count)[p]) for p in parts]
    )
    assert check(rows).ok
    expected = plain_diff(bids, asks)
    told = [tuple(int(r[n]) for n in ("kind", "side", "price", "qty")) for r in rows]
    assert told == [row for snapshot in expected for row in snapshot]
    lengths = [len(snapshot) for snapshot in expected if snapshot]
    assert np.flatnonzero(rows["flags"] & Flag.LAST).tolist() == (np.cumsum(lengths) - 1).tolist()
    assert (rows["flags"] & Flag.UNCERTAIN != 0).all()
    whose = np.repeat(np.arange(count), [len(snapshot) for snapshot in expected])
    assert (rows["seq"] == whose).all()
    assert (rows["ts_event"] == ts[whose]).all()
    assert (rows["ts_recv"] == ts[whose] + 5).all()


def test_the_book_after_each_snapshot_is_the_snapshot() -> None:
    count = BLOCK + 500  # more than is compared at once
    bids, asks = snapshots(count, 5)
    rows = SnapshotDiff(LEVELS).feed(times(count), times(count), bids, asks)
    book: dict[int, dict[int, int]] = {1: {}, -1: {}}
    seen = 0
    for ts, kind, side, price, qty, flags in rows[
        ["ts_event", "kind", "side", "price", "qty", "flags"]
    ].tolist():
        if kind == Kind.LEVEL:
            book[side].pop(price, None)
            if qty:
                book[side][price] = qty
        if flags & Flag.LAST:
            at = (ts - int(times(1)[0])) // 500_000_000
            assert (book[1], book[-1]) == (shown(bids[at]), shown(asks[at]))
            seen += 1
    assert seen > count / 2


def test_levels_may_come_in_any_order_and_with_holes() -> None:
    bids = np.array([[[99, 0], [98, 5], [0, 0]], [[97, 1], [99, 2], [98, 5]]])
    asks = np.array([[[0, 0], [0, 0], [103, 1]], [[103, 1], [0, 0], [0, 0]]])
    rows = SnapshotDiff(3).feed(times(2), times(2), bids, asks)
    assert [(int(r["kind"]), int(r["price"]), int(r["qty"])) for r in rows] == [
        (Kind.SNAPSHOT_BEGIN, 0, 0),
        (Kind.LEVEL, 98, 5),
        (Kind.LEVEL, 103, 1),
        (Kind.SNAPSHOT_END, 0, 0),
        (Kind.LEVEL, 97, 1),
        (Kind.LEVEL, 99, 2),
    ]


def test_a_price_shown_twice_is_refused() -> None:
    bids = np.array([[[99, 1], [98, 1]], [[99, 1], [99, 1]]])
    with pytest.raises(DataError, match="snapshot 1: price 99 ticks is shown twice"):
        SnapshotDiff(2).feed(times(2), times(2), bids, bids + 10)


def test_an_empty_first_snapshot_is_a_book_too() -> None:
    none = np.zeros((1, 2, 2), np.int64)
    rows = SnapshotDiff(2).feed(times(1), times(1), none, none)
    assert rows["kind"].tolist() == [Kind.SNAPSHOT_BEGIN, Kind.SNAPSHOT_END]
    assert (rows["flags"] & Flag.LAST != 0).tolist() == [False, True]
    assert len(SnapshotDiff(2).feed(times(0), times(0), none[:0], none[:0])) == 0


Moves = st.lists(st.lists(st.tuples(st.integers(1, 60), st.integers(1, 9)), max_size=4))


@given(moves=Moves, floats=st.booleans(), cut=st.integers(0, 8))
def test_prints_add_up_to_the_totals(moves: Any, floats: bool, cut: int) -> None:  # noqa: FBT001
    volume = np.cumsum([sum(q for _, q in trades) for trades in moves], dtype=np.int64)
    turnover = np.cumsum([sum(p * q for p, q in trades) for trades in moves], dtype=np.int64)
    ts, worth = times(len(moves)), turnover.astype(float) if floats else turnover
    parts, before = [], (0, 0)
    for part in (slice(0, cut), slice(cut, None)):
        parts.append(inferred_prints(ts[part], ts[part], volume[part], worth[part], before=before))
        if len(volume[part]):
            before = (volume[part][-1], worth[part][-1])
    prints = np.concatenate(parts)
    assert check(prints).ok
    for at, trades in enumerate(moves):
        mine = prints[prints["ts_event"] == ts[at]]
        assert mine["qty"].sum() == sum(q for _, q in trades)
        assert (mine["price"] * mine["qty"]).sum() == sum(p * q for p, q in trades)
        assert len(mine) <= 2
        assert (mine["flags"] & Flag.LAST != 0).tolist() == [False, True][-len(mine) :] * bool(
            len(mine)
        )
    assert (prints["side"] == 0).all()
    assert (prints["flags"] & Flag.UNCERTAIN != 0).all()


def test_turnover_between_ticks_is_met_to_half_a_tick() -> None:
    prints = inferred_prints(
        times(2),
        times(2),
        np.array([0, 4]),
        np.array([0.0, 4 * 100.3]),
        last_ticks=np.array([0, 9]),
    )
    assert prints[["price", "qty"]].tolist() == [(100, 3), (101, 1)]


def test_totals_that_fall_start_anew() -> None:
    volume, turnover = np.array([50, 60, 5, 9]), np.array([5000, 6000, 500, 912])
    prints = inferred_prints(times(4), times(4), volume, turnover)
    assert prints[["price", "qty"]].tolist() == [(100, 10), (103, 4)]


def test_without_turnover_the_last_price_is_taken_or_the_rise_refused() -> None:
    volume, turnover = np.array([0, 7]), np.array([0, 0])
    prints = inferred_prints(times(2), times(2), volume, turnover, last_ticks=np.array([0, 88]))
    assert prints[["price", "qty"]].tolist() == [(88, 7)]
    with pytest.raises(DataError, match="snapshot 1: volume rises by 7 lots at no price"):
        inferred_prints(times(2), times(2), volume, turnover)


def test_prints_go_before_the_levels_of_their_snapshot() -> None:
    ts = times(3)
    bids = np.array([[[99, 1]], [[99, 2]], [[99, 2]]])
    levels = SnapshotDiff(1).feed(ts, ts, bids, bids + np.array([2, 0]))
    prints = inferred_prints(ts, ts, np.array([0, 1, 3]), np.array([0, 99, 300]))
    rows = with_prints(levels, prints)
    assert rows.dtype == EVENT
    assert rows["kind"].tolist() == [3, 1, 1, 4, 5, 1, 1, 5, 5]
    assert np.flatnonzero(rows["flags"] & Flag.LAST).tolist() == [3, 6, 8]

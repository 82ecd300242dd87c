"""Rows that interleave: each side sees every row once, in order on its own clock."""

from __future__ import annotations

import numpy as np
import pytest

from hft.data.reorder import Reorder
from hft.data.repairs import unsplit
from hft.types import EVENT, SEEN_BY_BOTH, Flag, Kind


def interleaved(rows: int = 3000, seed: int = 2) -> np.ndarray:
    """Prints and book rows from two machines, each in order on the venue's clock."""
    rng = np.random.default_rng(seed)
    feed = np.zeros(rows, EVENT)
    feed["kind"] = np.where(rng.random(rows) < 0.4, Kind.TRADE, Kind.LEVEL)
    feed["ts_event"] = np.cumsum(rng.integers(0, 2_000_000, rows))
    delay = np.where(feed["kind"] == Kind.TRADE, 1_000_000, 60_000_000)
    feed["ts_recv"] = feed["ts_event"] + delay
    feed["order_id"] = np.arange(rows)
    feed["flags"] = SEEN_BY_BOTH
    return feed[np.argsort(feed["ts_recv"], kind="stable")]


def run(feed: np.ndarray, size: int, window_ns: int = 10_000_000_000) -> tuple[np.ndarray, Reorder]:
    reorder = Reorder(window_ns)
    parts = [reorder.feed(feed[i : i + size].copy())[0] for i in range(0, len(feed), size)]
    return np.concatenate([*parts, reorder.flush()[0]]), reorder


@pytest.mark.parametrize("size", [1, 10, 777, 10_000])
@pytest.mark.parametrize("window_ms", [100, 10_000])
def test_each_side_sees_each_row_once_in_order(size: int, window_ms: int) -> None:
    feed = interleaved()
    out, reorder = run(feed, size, window_ms * 1_000_000)
    venue = out[out["flags"] & Flag.SEEN_BY_VENUE != 0]
    us = out[out["flags"] & Flag.SEEN_BY_US != 0]
    assert (np.diff(venue["ts_event"]) >= 0).all()
    assert us["order_id"].tolist() == feed["order_id"].tolist()
    assert sorted(venue["order_id"].tolist()) == sorted(feed["order_id"].tolist())
    assert venue["order_id"].tolist() == np.argsort(out_ids(feed), kind="stable").tolist()
    assert reorder.split > 100
    assert reorder.raised == 0
    assert (unsplit(out) == feed).all()


def out_ids(feed: np.ndarray) -> np.ndarray:
    """`order_id` was given in order of `ts_event`, so the venue's order is that of the ids."""
    return np.sort(feed["order_id"])


def test_chunks_do_not_matter() -> None:
    feed = interleaved()
    whole, _ = run(feed, len(feed))
    for size in (1, 64, 999):
        assert (run(feed, size)[0] == whole).all()


def test_book_rows_keep_their_order_and_times_are_raised() -> None:
    feed = interleaved(30)
    feed["kind"] = Kind.LEVEL
    feed["ts_event"][10] -= 50_000_000
    out, reorder = run(feed, 7)
    assert out["order_id"].tolist() == feed["order_id"].tolist()
    assert reorder.counts()["venue times raised"] >= 1
    assert (np.diff(out["ts_event"]) >= 0).all()


def test_later_than_the_window_is_put_at_its_edge() -> None:
    feed = np.zeros(3, EVENT)
    feed["flags"], feed["kind"] = SEEN_BY_BOTH, [Kind.LEVEL, Kind.LEVEL, Kind.TRADE]
    feed["ts_event"] = [1_000, 50_000, 10]
    feed["ts_recv"] = [60_000, 60_001, 60_002]
    out, reorder = run(feed, 1, window_ns=1_000)
    assert out["ts_event"].tolist() == [1_000, 1_000, 50_000, 1_000]
    assert (reorder.split, reorder.raised) == (1, 1)

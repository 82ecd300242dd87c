"""Features over an order-by-order feed: as over its levels, and those that need the orders."""

from __future__ import annotations

import math

import numpy as np
import pytest
from test_features import every_feature

from hft import BUY, SELL
from hft import features as f
from hft.data.books import levels_of
from hft.data.synth import SynthConfig, symbol_chunks
from hft.features import Every, Features, OnPacket, OnTouch, compute_features
from hft.types import Flag, Kind


@pytest.fixture(scope="module")
def orders() -> np.ndarray:
    config = SynthConfig(duration_s=20, messages_per_s=500, seed=5, order_by_order=True)
    return np.concatenate(list(symbol_chunks(config, 0)))


@pytest.mark.parametrize("trigger", [OnPacket(), OnTouch(sizes=True), Every("3ms")])
def test_levels_that_follow_from_orders_give_the_same_rows(orders, trigger) -> None:
    features = Features(*every_feature(), trigger=trigger)
    ts, rows = compute_features(orders, features)
    other_ts, other = compute_features(levels_of([orders]), features)
    assert len(rows) > 1_000
    assert ts.tobytes() == other_ts.tobytes()
    assert rows.tobytes() == other.tobytes()


def naive_rows(events: np.ndarray, levels: int, half_life_ns: int) -> list[list[float]]:
    """Counts and flows after every packet, from a dict of orders."""
    resting: dict[int, list[int]] = {}  # side, price, lots
    flows: list[tuple[int, int, int]] = []  # ts, lots added, lots cancelled: bids less asks
    out, added, cancelled, syncing = [], 0, 0, False
    for e in events:
        kind, order, qty = int(e["kind"]), int(e["order_id"]), int(e["qty"])
        if kind in (Kind.SNAPSHOT_BEGIN, Kind.SNAPSHOT_END):
            syncing = kind == Kind.SNAPSHOT_BEGIN
        elif kind == Kind.ADD:
            resting[order] = [int(e["side"]), int(e["price"]), qty]
            added += 0 if syncing else int(e["side"]) * qty
        elif kind in (Kind.CANCEL, Kind.EXECUTE):
            side, _, lots = resting[order]
            resting[order][2] = lots - (qty or lots)
            cancelled += side * (qty or lots) if kind == Kind.CANCEL else 0
        elif kind == Kind.MODIFY:
            side, _, lots = resting[order]
            cancelled += side * (lots - qty)
            resting[order][2] = qty
        if order in resting and resting[order][2] == 0:
            del resting[order]
        if not e["flags"] & Flag.LAST:
            continue
        ts = int(e["ts_recv"])
        flows.append((ts, added, cancelled))
        added = cancelled = 0
        counts = {}
        for side in (BUY, SELL):
            prices = sorted(
                {p for s, p, _ in resting.values() if s == side}, key=lambda p: -p * side
            )
            counts[side] = [
                sum((s, q) == (side, p) for s, q, _ in resting.values()) for p in prices[:levels]
            ]
        bids, asks = sum(counts[BUY]), sum(counts[SELL])
        weights = [0.5 ** ((ts - t) / half_life_ns) for t, _, _ in flows]
        out.append(
            [
                math.log1p(counts[BUY][0]),
                math.log1p(counts[SELL][1]),
                (bids - asks) / (bids + asks),
                sum(w * a for w, (_, a, _) in zip(weights, flows, strict=True)),
                sum(w * c for w, (_, _, c) in zip(weights, flows, strict=True)),
                float(flows[-1][2]),
            ]
        )
    return out


def test_features_of_orders_equal_their_plain_twins(orders) -> None:
    events = orders[:3_000]
    features = Features(
        f.order_count(BUY),
        f.order_count(SELL, 2),
        f.order_count_imbalance(3),
        f.add_flow("2ms"),
        f.cancel_flow("2ms"),
        f.cancel_flow(),
        trigger=OnPacket(),
    )
    _, rows = compute_features(events, features)
    expected = np.array(naive_rows(events, 3, 2_000_000))[-len(rows) :]
    assert len(rows) > 1_000
    np.testing.assert_allclose(rows, expected, rtol=1e-9, atol=1e-9)


def test_an_execution_told_apart_from_its_change_is_no_cancel(orders) -> None:
    """Databento's way: the print, the execution, then the change as a cancel."""
    told = []
    for e in orders[:2_000]:
        if e["kind"] != Kind.EXECUTE:
            told.append(e)
            continue
        trade, execute, cancel = e.copy(), e.copy(), e.copy()
        trade["kind"], trade["side"] = Kind.TRADE, -e["side"]
        trade["flags"] |= Flag.NO_CHANGE
        execute["flags"] |= Flag.NO_CHANGE | Flag.NO_PRINT
        cancel["kind"] = Kind.CANCEL
        for row in (trade, execute):
            row["flags"] &= ~np.uint16(Flag.LAST)
        told += [trade, execute, cancel]
    features = Features(*every_feature(), f.add_flow("2ms"), f.cancel_flow(), trigger=OnPacket())
    ts, rows = compute_features(orders[:2_000], features)
    other_ts, other = compute_features(np.array(told), features)
    assert (ts == other_ts).all()
    np.testing.assert_array_equal(rows, other)

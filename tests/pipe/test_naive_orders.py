"""The core against its twin on markets told order by order; see test_naive.py."""

from __future__ import annotations

import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from naive_listing import Listing
from naive_orders import NaiveOrders, OrderListing
from random_market import random_tape
from random_orders import random_order_tape
from sim import T0
from twins import MS, compare

from hft.types import Flag, Kind

OVERLAY = {"weights": (0.02, 0.011), "half_lives": (5 * MS, 80 * MS), "permanent": 0.003}
SHARES = {"participation_window": 40 * MS, "participation_flag": 0.2}
FAULTS = ("unknown_ids", "reused_ids", "overfills")


def compare_orders(seed: int, tmp_path: Path, **more: Any) -> Counter[str]:
    """Counts of fills by reason, and of faults, where core and twin agree."""
    more = {"tape": random_order_tape, "tell": lambda _: OrderListing, **more}
    outcome, twin = compare(seed, tmp_path, twin=NaiveOrders, **more)
    faults = sum((x.faults for x in twin.listings if isinstance(x, OrderListing)), Counter())
    counters = outcome.run.counters
    assert {f: counters[f"l3_{f}"] for f in FAULTS} == {f: faults[f] for f in FAULTS}
    same_touch(outcome, twin)
    return faults + Counter(f[5] for f in twin.fills)


def same_touch(outcome: Any, twin: NaiveOrders) -> None:
    """At the end all rows were seen by both sides, so our book is the venue's."""
    for i, x in enumerate(twin.listings):
        last = outcome.run.samples[outcome.run.samples["instrument"] == i][-1]
        bid, ask = x.best(1), x.best(-1)
        if bid is not None and ask is not None:
            assert (last["bid"], last["ask"]) == (bid, ask)


@pytest.mark.parametrize("chunk", [1, 7, 1000])
@pytest.mark.parametrize(("instruments", "venues"), [(1, 1), (2, 1), (2, 2), (4, 2)])
def test_core_equals_twin(instruments: int, venues: int, chunk: int, tmp_path: Path) -> None:
    seen: Counter[str] = Counter()
    for seed in range(8):
        seen += compare_orders(
            seed * 1000 + instruments * 10 + venues,
            tmp_path,
            instruments=instruments,
            venues=venues,
            chunk=chunk,
            rules={},
        )
    # Or the comparison says nothing.
    assert min(seen[what] for what in (*FAULTS, "QUEUE", "THROUGH", "CROSSED", "TAKEN")) > 10


RULES: dict[str, dict[str, Any]] = {
    "never heals": {"refill_half_life": 0},
    "wait_trade": {"cross": "wait_trade"},
    "through full": {"through": "full"},
    "unshared": {"share_prints": False},
    "peer": {"partial_fills": False, "share_prints": False, "through": "full"},
    "whole": {"partial_fills": False},
    "same_price": {"replace_keeps": "same_price"},
    "nothing": {"replace_keeps": "nothing"},
    "pro_rata": {"matching": "pro_rata"},
    "pro_rata, wait_trade": {"matching": "pro_rata", "cross": "wait_trade"},
    "pro_rata, nothing": {"matching": "pro_rata", "replace_keeps": "nothing"},
    "pro_rata, never heals": {"matching": "pro_rata", "refill_half_life": 0},
    "same_price, never heals": {"replace_keeps": "same_price", "refill_half_life": 0},
    "nothing, never heals": {"replace_keeps": "nothing", "refill_half_life": 0},
    "half stays away": {"refill_probability": 0.5, "refill_half_life": 20 * MS},
    "draws": {"queue_draws": True},
    "everything": {
        **SHARES,
        "queue_draws": True,
        "refill_probability": 0.4,
        "refill_half_life": 30 * MS,
        "impact": OVERLAY,
        "participation_cap": 0.9,
    },
}


@pytest.mark.parametrize("name", RULES)
def test_core_equals_twin_under_other_rules(name: str, tmp_path: Path) -> None:
    for seed in range(6):
        compare_orders(
            zlib.crc32(name.encode()) + seed,
            tmp_path,
            instruments=2,
            venues=1,
            chunk=50,
            rules=RULES[name],
        )


@pytest.mark.parametrize("hears_books", [False, True])
def test_core_equals_twin_beside_a_feed_of_levels(tmp_path: Path, *, hears_books: bool) -> None:
    tapes = {0: random_order_tape, 1: random_tape, 2: random_order_tape}
    for seed in range(6):
        turn = iter(tapes.values())
        compare_orders(
            seed,
            tmp_path,
            instruments=3,
            venues=2,
            chunk=64,
            rules={},
            hears_books=hears_books,
            tape=lambda *a, turn=turn: next(turn)(*a),
            tell=lambda i: Listing if tapes[i] is random_tape else OrderListing,
        )


def test_core_equals_twin_on_latency_series(tmp_path: Path) -> None:
    for seed in range(4):
        rng = np.random.default_rng(seed)
        legs = {
            name: [(T0 + t * 20 * MS, int(ns)) for t, ns in enumerate(rng.integers(0, 8 * MS, 30))]
            for name in ("entry", "response")
        }
        compare_orders(
            seed, tmp_path, instruments=2, venues=1, chunk=64, rules={}, compute=30_000, **legs
        )


def test_the_tapes_are_dense() -> None:
    rows = np.concatenate([random_order_tape(np.random.default_rng(s), 300, 0) for s in range(8)])
    count = Counter(Kind(k).name for k in rows["kind"])
    assert min(count[k] for k in ("ADD", "MODIFY", "CANCEL", "EXECUTE", "REPLACE", "TRADE")) > 50
    executes = rows[rows["kind"] == Kind.EXECUTE]
    assert (executes["side"] == 0).sum() > 20
    for flag in (Flag.NO_PRINT, Flag.NO_CHANGE):
        assert (executes["flags"] & flag > 0).sum() > 20

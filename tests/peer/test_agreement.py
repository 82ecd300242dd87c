"""Where hftbacktest is right, we agree with it: same feed, orders and latencies, same fills.

Its rules (whole fills, every order sees the whole print, a print through us fills us, no order is
amended) are ours with the recipe of `PEER`. Feeds here keep away from what it gets wrong: books do
not cross, a print and the level it moved are two rows more than a millisecond apart.

It runs in the interpreter that HFT_PEER_PYTHON names, or in ours when it is installed there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from agreement import (
    BY_US,
    BY_VENUE,
    IS_BUY,
    IS_SELL,
    MID,
    MS,
    N,
    at_peer,
    ours,
    random_latencies,
    random_script,
)
from sim import T0

from hft.adapters.hftbacktest import EVENT_DTYPE
from hft.types import EVENT, SEEN_BY_BOTH, Flag, Kind

SEEDS = range(12)


def uncrossed_tape(rng: np.random.Generator, rows: int) -> np.ndarray:
    """Levels and prints a few ms apart; a level that would cross clears what it would meet."""
    out: list[tuple[Any, ...]] = []
    book: dict[int, dict[int, int]] = {1: {}, -1: {}}
    ts = T0

    def add(kind: Kind, side: int, price: int, lots: int) -> None:
        nonlocal ts
        ts += int(rng.integers(2, 6)) * MS
        out.append(
            (ts, ts + MS // 2, price, lots, 0, 0, 0, 0, kind, side, int(SEEN_BY_BOTH | Flag.LAST))
        )
        if kind == Kind.LEVEL:
            book[side].pop(price, None)
            if lots:
                book[side][price] = lots

    mid = MID
    for k in range(1, 6):
        add(Kind.LEVEL, 1, mid - k, 10)
        add(Kind.LEVEL, -1, mid + k, 10)
    while len(out) < rows:
        if rng.random() < 0.05:
            mid += int(rng.choice([-1, 1]))
        side = int(rng.choice([1, -1]))
        if rng.random() < 0.3:
            add(Kind.TRADE, side, mid + side * int(rng.integers(0, 4)), int(rng.integers(1, 25)))
            continue
        price = mid - side * int(rng.integers(0, 6))
        lots = int(rng.choice([0, 2, 5, 10, 20]))
        if lots:
            for met in sorted(
                (p for p in book[-side] if (price - p) * side >= 0), key=lambda p: p * side
            ):
                add(Kind.LEVEL, -side, met, 0)
        add(Kind.LEVEL, side, price, lots)
    ts += 2_000 * MS
    add(Kind.LEVEL, 1, 1, 1)
    return np.array(out, EVENT)


def as_peer(rows: np.ndarray) -> np.ndarray:
    out = np.zeros(len(rows), EVENT_DTYPE)
    kind = np.where(rows["kind"] == Kind.TRADE, 2, 1)
    out["ev"] = kind | BY_VENUE | BY_US | np.where(rows["side"] > 0, IS_BUY, IS_SELL)
    out["exch_ts"], out["local_ts"] = rows["ts_event"], rows["ts_recv"]
    out["px"], out["qty"] = rows["price"], rows["qty"]
    return out


def random_case(seed: int) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    rng = np.random.default_rng(seed)
    rows = uncrossed_tape(rng, 250)
    last = int(rows["ts_event"][-2])
    script = random_script(rng, int(rows["ts_recv"][9]), last)
    case = {"script": script, **random_latencies(rng), "n": N, "end": last + 1_000 * MS + 1}
    return rows, as_peer(rows), case


@pytest.fixture(scope="module")
def theirs(peer_python: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    cases = {str(seed): random_case(seed) for seed in SEEDS}
    return at_peer(peer_python, tmp_path_factory.mktemp("cases"), cases)


@pytest.mark.parametrize("seed", SEEDS)
def test_same_feed_and_orders_same_fills_position_and_cash(
    seed: int, theirs: dict[str, Any]
) -> None:
    rows, _, case = random_case(seed)
    mine = ours(rows, case)
    assert sum(o[0] == "FILLED" for o in mine["orders"].values()) > 10
    assert mine == theirs[str(seed)]

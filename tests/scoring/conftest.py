"""A market of orders whose cancels fall where Beta(n, 1) says, written into a store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hft.data.store import Store
from hft.types import EVENT, SEEN_BY_BOTH, Flag, InstrumentSpec, Kind

SPEC = InstrumentSpec(symbol="BETA", venue="TEST", tick=1.0, lot=1.0)
T0 = 1_700_000_000_000_000_000
PRICE = 100
LAW = 2.0


def market(n: float, seconds: float, seed: int) -> Any:
    """Orders of one lot at one price: 4 come a second, 1.2 trade, 11 % of all are cancelled.

    The share of the level before a cancelled lot has the density n u^(n - 1).
    """
    rng = np.random.default_rng(seed)
    rows: list[tuple[int, Kind, int, int, int]] = [(T0, Kind.ADD, -1, PRICE + 1, 1)]
    queue: list[int] = []
    number, now = 1, 0.0
    while True:
        size = len(queue)
        rate = 4 + 1.2 + 0.11 * size
        now += rng.exponential(1 / rate)
        if now > seconds:
            break
        ts, what = T0 + round(now * 1e9), rng.random() * rate
        if what < 4 or size == 0:
            number += 1
            queue.append(number)
            rows.append((ts, Kind.ADD, 1, PRICE, number))
        elif what < 5.2:
            rows.append((ts, Kind.EXECUTE, 1, PRICE, queue.pop(0)))
        else:
            at = min(int(rng.random() ** (1 / n) * size), size - 1)
            rows.append((ts, Kind.CANCEL, 1, PRICE, queue.pop(at)))
    events = np.zeros(len(rows), EVENT)
    columns = list(zip(*rows, strict=True))
    for name, column in zip(
        ("ts_event", "kind", "side", "price", "order_id"), columns, strict=True
    ):
        events[name] = column
    events["ts_recv"] = events["ts_event"]
    events["qty"] = 1
    events["flags"] = SEEN_BY_BOTH | int(Flag.LAST)
    return events


def write_market(folder: Path, rows: Any, spec: InstrumentSpec = SPEC) -> Store:
    store = Store(folder)
    with store.writer(spec) as writer:
        writer.add(rows)
    return store


@pytest.fixture(scope="session")
def beta_store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """An hour and a half of it with n = 2."""
    return write_market(tmp_path_factory.mktemp("beta"), market(LAW, 5400, 5))

"""Small made-up feeds and captures."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from hft.types import EVENT, SEEN_BY_BOTH, Flag, InstrumentSpec, Kind

T0 = 1_723_161_600_000_000_000  # 2024-08-09T00:00


@pytest.fixture(scope="session")
def spec() -> InstrumentSpec:
    """A made-up instrument."""
    return InstrumentSpec(symbol="BTCUSDT", venue="TEST", tick=0.1, lot=0.001, currency="USDT")


def make_feed(rows: int = 402, seed: int = 1) -> Any:
    """A sound feed that crosses midnight: packets of three, a trade in every fifth row."""
    rng = np.random.default_rng(seed)
    feed = np.zeros(rows, EVENT)
    packet = np.arange(rows) // 3
    feed["ts_event"] = T0 - 1_000_000_000 + packet * 20_000_000
    feed["ts_recv"] = feed["ts_event"] + 2_000_000 + rng.integers(0, 1_000_000, rows)[packet]
    feed["side"] = np.where(rng.random(rows) < 0.5, 1, -1)
    feed["price"] = 600_000 - feed["side"] * (1 + rng.integers(0, 50, rows))
    feed["qty"] = 1 + rng.integers(0, 900, rows)
    feed["kind"] = np.where(np.arange(rows) % 5 == 4, Kind.TRADE, Kind.LEVEL)
    feed["seq"] = packet + 1
    feed["flags"] = SEEN_BY_BOTH
    feed["flags"][2::3] |= int(Flag.LAST)
    return feed


@pytest.fixture
def feed() -> Any:
    """A sound feed of two days."""
    return make_feed()


def make_capture(diffs: int = 60, seed: int = 3) -> list[str]:
    """Lines of a made-up Binance spot capture: two early diffs, a snapshot, diffs and trades."""
    rng = np.random.default_rng(seed)
    lines, update, trade = [], 1_000, 50
    base_ms = T0 // 1_000_000
    for number in range(diffs):
        ms = base_ms + number * 100
        recv = ms * 1_000_000 + 5_000_000
        last = update + int(rng.integers(1, 6))
        bid, ask = 600_000 - int(rng.integers(1, 9)), 600_000 + int(rng.integers(1, 9))
        body = {
            "e": "depthUpdate",
            "E": ms,
            "s": "BTCUSDT",
            "U": update + 1,
            "u": last,
            "b": [[f"{bid / 10:.2f}", f"{rng.integers(0, 99) / 1000:.5f}"]],
            "a": [[f"{ask / 10:.2f}", f"{rng.integers(0, 99) / 1000:.5f}"]],
        }
        lines.append(f"{recv} " + json.dumps({"stream": "btcusdt@depth", "data": body}))
        update = last
        if number == 2:
            levels = {"bids": [["59990.00", "1.00000"]], "asks": [["60010.00", "2.00000"]]}
            lines.append(f"{recv + 10} " + json.dumps({"lastUpdateId": last - 1, **levels}))
        trade += 1
        print_ = {"e": "trade", "E": ms + 20, "s": "BTCUSDT", "t": trade, "T": ms + 19}
        print_ |= {"p": "60000.00", "q": "0.00500", "m": number % 2 == 0}
        lines.append(f"{recv + 20_000_000} " + json.dumps({"stream": "t", "data": print_}))
    return lines


@pytest.fixture
def capture() -> list[str]:
    """Lines of a made-up Binance capture."""
    return make_capture()

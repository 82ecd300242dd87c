"""The core against its plain-Python twin on random markets: every fill, answer and money unit."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sim import T0
from twins import MS, compare

RULES: dict[str, dict[str, Any]] = {
    "default": {},
    "risk_averse": {"queue": "risk_averse"},
    "never heals": {"refill_half_life": 0},
    "wait_trade": {"cross": "wait_trade", "queue": "log1"},
    "through full": {"through": "full", "queue": "power1", "queue_n": 0.5},
    "peer": {"partial_fills": False, "share_prints": False, "through": "full", "queue_n": 3.0},
    "power2": {"queue": "power2", "queue_n": 3.0},
    "log2": {"queue": "log2"},
    "uniform": {"queue": "uniform"},
    "same_price": {"replace_keeps": "same_price"},
    "nothing": {"replace_keeps": "nothing"},
    "pro_rata": {"matching": "pro_rata"},
}


@pytest.mark.parametrize("chunk", [1, 7, 1000])
@pytest.mark.parametrize(("instruments", "venues"), [(1, 1), (2, 1), (2, 2), (4, 2)])
def test_core_equals_twin(instruments: int, venues: int, chunk: int, tmp_path: Path) -> None:
    fills = 0
    for seed in range(8):
        outcome, _ = compare(
            seed * 1000 + instruments * 10 + venues,
            tmp_path,
            instruments=instruments,
            venues=venues,
            chunk=chunk,
            rules={},
        )
        fills += len(outcome.run.fills)
    assert fills > 100  # or the comparison says nothing


@pytest.mark.parametrize("name", RULES)
def test_core_equals_twin_under_other_rules(name: str, tmp_path: Path) -> None:
    for seed in range(6):
        compare(
            zlib.crc32(name.encode()) + seed,
            tmp_path,
            instruments=2,
            venues=1,
            chunk=50,
            rules=RULES[name],
        )


def test_core_equals_twin_on_latency_series(tmp_path: Path) -> None:
    for seed in range(6):
        rng = np.random.default_rng(seed)
        times = np.sort(rng.integers(T0, T0 + 1_000 * MS, 30))
        legs = [
            [(int(t), int(ns)) for t, ns in zip(times, rng.integers(0, 8 * MS, 30), strict=True)]
            for _ in "ab"
        ]
        compare(
            seed,
            tmp_path,
            instruments=3,
            venues=2,
            chunk=64,
            rules={},
            entry=legs[0],
            response=legs[1],
        )


@pytest.mark.parametrize("compute", [0, 30_000, 900_000])
def test_core_equals_twin_when_packets_keep_the_strategy_busy(compute: int, tmp_path: Path) -> None:
    for seed in range(6):
        compare(
            seed,
            tmp_path,
            instruments=2,
            venues=2,
            chunk=64,
            rules={},
            compute=compute,
            hears_books=True,
        )


def test_core_equals_twin_on_inverse_contracts(tmp_path: Path) -> None:
    for seed in range(4):
        compare(seed, tmp_path, instruments=2, venues=2, chunk=64, rules={}, inverse=True)

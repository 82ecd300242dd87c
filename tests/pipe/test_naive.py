"""The core against its plain-Python twin on random markets: every fill, answer and money unit."""

from __future__ import annotations

import zlib
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from naive_legs import Stream, draw_bits, draw_uniform, mix
from random_market import crowded_tape, random_tape
from sim import T0
from twins import MS, compare

OVERLAY = {"weights": (0.02, 0.011), "half_lives": (5 * MS, 80 * MS), "permanent": 0.003}
SHARES = {"participation_window": 40 * MS, "participation_flag": 0.2}
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
    "draws": {"queue_draws": True},
    "draws, power1": {"queue_draws": True, "queue": "power1", "queue_n": 0.5},
    "draws, uniform": {"queue_draws": True, "queue": "uniform"},
    "half stays away": {"refill_probability": 0.5, "refill_half_life": 20 * MS},
    "all stays away": {"refill_probability": 0.0},
    "heals soon": {"refill_half_life": 2 * MS},
    "fade": {"fade": 0.3},
    "fade, compound": {"fade": 0.2, "fade_rule": "compound"},
    "overlay": {"impact": OVERLAY},
    "cap": {**SHARES, "participation_cap": 0.3},
    "no cap": {**SHARES, "participation_flag": 0.05},
    "touch": {"depth": "touch"},
    "spread": {"depth": "touch", "slippage": {"model": "spread", "coefficient": 0.4}},
    "volatility": {
        **SHARES,
        "depth": "touch",
        "slippage": {"model": "volatility", "coefficient": 0.7, "horizon": 10 * MS},
    },
    "square_root": {
        **SHARES,
        "depth": "touch",
        "slippage": {"model": "square_root", "coefficient": 0.8},
        "impact": OVERLAY,
    },
    "everything": {
        **SHARES,
        "queue_draws": True,
        "refill_probability": 0.4,
        "refill_half_life": 30 * MS,
        "fade": 0.1,
        "impact": OVERLAY,
        "participation_cap": 0.9,
    },
}
DRAWN = {"entry": "profile", "response": "profile", "compute": "profile"}
TRAVEL: dict[str, dict[str, Any]] = {
    "by class": {"entry_cancel": 300_000, "entry_replace": 9 * MS},
    "alone": {"entry_cancel": 2_000, "entry_replace": 1 * MS, "ordering": "independent"},
    "gate": {"risk": 150_000},
    "gate, alone": {"risk": 40_000, "entry_cancel": 10_000, "ordering": "independent"},
    "blocks": {"profile": "same-region", **DRAWN},
    "samples": {"profile": "cross-region", "model": "empirical", **DRAWN},
    "samples, alone": {
        "profile": "same-region",
        "model": "empirical",
        "ordering": "independent",
        **DRAWN,
    },
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
            tape=partial(random_tape, explains=bool(seed % 2)),
        )


QUEUES: dict[str, dict[str, Any]] = {
    "power3": {},
    "risk_averse": {"queue": "risk_averse"},
    "power1": {"queue": "power1", "queue_n": 0.5},
    "power2": {"queue": "power2"},
    "log1": {"queue": "log1"},
    "log2": {"queue": "log2"},
    "uniform": {"queue": "uniform"},
}


@pytest.mark.parametrize("draws", [False, True])
@pytest.mark.parametrize("name", QUEUES)
def test_core_equals_twin_where_places_matter(name: str, tmp_path: Path, *, draws: bool) -> None:
    for seed in range(5):
        compare(
            seed,
            tmp_path,
            instruments=2,
            venues=1,
            chunk=50,
            rules={**QUEUES[name], "queue_draws": draws},
            tape=crowded_tape,
        )


@pytest.mark.parametrize("name", TRAVEL)
def test_core_equals_twin_when_messages_travel_by_class(name: str, tmp_path: Path) -> None:
    for seed in range(6):
        compare(
            seed,
            tmp_path,
            instruments=2,
            venues=1 + seed % 2,
            chunk=64,
            rules={},
            legs=TRAVEL[name],
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
        rules = {"impact": OVERLAY} if seed % 2 else {}
        compare(seed, tmp_path, instruments=2, venues=2, chunk=64, rules=rules, inverse=True)


def test_twin_draws_as_published() -> None:
    """SplitMix64 of state 0, and one draw worked out by the formula of core/rng.hpp."""
    assert mix(0) == 0xE220A8397B1DCDAF
    assert draw_bits(0, 0, 0) == mix(mix(mix(mix(0))))
    assert 0.0 <= draw_uniform(1, Stream.QUEUE, -5) < 1.0

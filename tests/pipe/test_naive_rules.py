"""The core against its twin under rules drawn at random; `make nightly` draws thousands."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
from naive_orders import NaiveOrders, OrderListing
from random_market import crowded_tape, random_tape
from random_orders import random_order_tape
from twins import MS, compare

ROUNDS = hypothesis.settings().max_examples // 4  # 25; 5,000 in `make nightly`
OVERLAY = {"weights": (0.02, 0.011), "half_lives": (5 * MS, 80 * MS), "permanent": 0.003}


class Draws:
    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def one(self, *of: Any) -> Any:
        return of[int(self.rng.integers(0, len(of)))]

    def rules(self) -> dict[str, Any]:
        one = self.one
        rules = {
            "queue": one("power3", "power1", "power2", "log1", "log2", "uniform", "risk_averse"),
            "queue_n": one(2.0, 0.5, 3.0),
            "queue_draws": one(True, False),
            "refill_half_life": one(0, 2 * MS, 20 * MS, 1_000 * MS),
            "refill_probability": one(1.0, 0.5, 0.0),
            "through": one("volume", "volume", "full"),
            "cross": one("fill", "fill", "wait_trade"),
            "replace_keeps": one("smaller", "same_price", "nothing"),
            "matching": one("fifo", "fifo", "pro_rata"),
            "share_prints": one(True, True, False),
            "participation_window": one(10 * MS, 40 * MS, 10_000 * MS),
            "participation_flag": one(0.1, 0.3),
            "participation_cap": one(0.0, 0.0, 0.3, 0.9),
        }
        return rules | one({}, {"impact": OVERLAY}) | one({}, {}, {}, self.touch())

    def touch(self) -> dict[str, Any]:
        model = self.one("spread", "volatility", "square_root")
        slippage = {"model": model, "coefficient": 0.7, "horizon": 10 * MS}
        return {"depth": "touch", "slippage": slippage}

    def fade(self) -> dict[str, Any]:
        return {"fade": self.one(0.0, 0.1, 0.35), "fade_rule": self.one("flat", "compound")}

    def legs(self) -> dict[str, Any]:
        one = self.one
        return {
            "entry_cancel": one(1_000, 300_000, 4 * MS),
            "entry_replace": one(1_000, 9 * MS),
            "risk": one(0, 0, 40_000),
            "ordering": one("fifo", "independent"),
        }

    def market(self) -> dict[str, Any]:
        one = self.one
        return {
            "instruments": one(1, 2, 3),
            "venues": one(1, 2),
            "chunk": one(1, 7, 100),
            "hears_books": one(False, False, True),
            "inverse": one(False, False, False, True),
            "legs": one({}, self.legs()),
        }


def test_core_equals_twin_on_levels(tmp_path: Path) -> None:
    tapes = (random_tape, partial(random_tape, explains=True), crowded_tape)
    for seed in range(ROUNDS):
        draws = Draws(seed)
        rules = draws.rules()
        if "depth" not in rules:
            rules |= draws.fade()
        compare(seed, tmp_path, rules=rules, tape=draws.one(*tapes), **draws.market())


def test_core_equals_twin_on_orders(tmp_path: Path) -> None:
    for seed in range(ROUNDS):
        draws = Draws(seed + 1_000_000)
        orders = {"tape": random_order_tape, "tell": lambda _: OrderListing, "twin": NaiveOrders}
        compare(seed, tmp_path, rules=draws.rules(), **draws.market(), **orders)

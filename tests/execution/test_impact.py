"""Kernels of our own impact: their shapes, what they cost, and which of them admit free money."""

from __future__ import annotations

import numpy as np
import pytest

from hft import BUY, Strategy, backtest
from hft.config import ImpactConfig
from hft.errors import ConfigError
from hft.execution.impact import Kernel, mean_touch, refuse_free_money, ticks_per_lot
from hft.plan import prepare

S = 1_000_000_000
TIMES = np.linspace(0.0, 12.0, 1201)
SOUND = {
    "exponential": np.exp(-TIMES),
    "power law": (1 + TIMES) ** -0.5,
    "a part stays": 0.3 + np.exp(-TIMES),
    "ends at 3 s, an edge": np.maximum(1 - TIMES / 3, 0),
}
UNSOUND = {
    "cosine": (np.cos(TIMES) * np.exp(-0.2 * TIMES), "against oneself"),
    "Gaussian": (np.exp(-(TIMES**2)), "against oneself"),
    "Lorentz": (1 / (1 + TIMES**2), "against oneself"),
    "hump": ((0.2 + TIMES) * np.exp(-TIMES), "least eigenvalue"),
    "plateau of 1 s": (np.where(TIMES < 1, 1, np.exp(1 - TIMES)), "least eigenvalue"),
    "delayed onset": (np.where(TIMES < 1, 0.01, np.exp(1 - TIMES)), "least eigenvalue"),
}


@pytest.mark.parametrize("name", SOUND)
def test_kernels_that_are_convex_and_fall_are_accepted(name: str) -> None:
    refuse_free_money(TIMES, SOUND[name])


@pytest.mark.parametrize("name", UNSOUND)
def test_kernels_that_admit_free_money_are_refused_with_the_reason(name: str) -> None:
    values, why = UNSOUND[name]
    with pytest.raises(ConfigError, match=why):
        Kernel.from_samples(TIMES, values)


@pytest.mark.parametrize("name", ["exponential", "power law", "a part stays"])
def test_samples_are_followed(name: str) -> None:
    kernel = Kernel.from_samples(TIMES, SOUND[name])
    assert np.abs(kernel.at(TIMES * S) - SOUND[name]).max() < 0.01
    assert (name == "a part stays") == (kernel.permanent > 0.2)


def test_what_no_sum_of_decays_is_near_to_is_refused() -> None:
    with pytest.raises(ConfigError, match="nearer"):
        Kernel.from_samples(TIMES, SOUND["ends at 3 s, an edge"])


def test_samples_that_are_none_are_refused() -> None:
    for times, values, why in (
        ([0, 1], [1, 0.5], "at least 3"),
        ([0, 1, 2], [1, 0.5], "as many"),
        ([0, 2, 1], [3, 2, 1], "ascend"),
        ([1, 2, 3], [3, 2, 1], "ascend from 0"),
        ([0, 1, 2], [1, float("nan"), 0], "finite"),
        ([0, 1, 2], [0, 1, 0.5], "at once"),
    ):
        with pytest.raises(ConfigError, match=why):
            Kernel.from_samples(times, values)


@pytest.mark.parametrize("gamma", [0.2, 0.4, 0.5, 0.7, 0.9])
def test_twelve_decays_follow_a_power_law_over_seven_decades(gamma: float) -> None:
    kernel = Kernel.from_power_law(2.0, 0.3, gamma)
    times = np.concatenate([[0.0], np.geomspace(0.3e-2, 0.3e5, 2_000)])
    wanted = 2.0 * (1 + times / 0.3) ** -gamma
    assert len(kernel.weights) <= 12
    assert np.abs(kernel.at(times * S) / wanted - 1).max() < 0.003


def test_eight_decays_are_further_from_it() -> None:
    times = np.geomspace(1e-2, 1e5, 500)
    miss = [
        np.abs(Kernel.from_power_law(1.0, 1.0, 0.5, n).at(times * S) * (1 + times) ** 0.5 - 1).max()
        for n in (8, 12)
    ]
    assert miss[1] < miss[0] / 5


def test_a_block_and_its_parts_at_one_instant_cost_the_same() -> None:
    kernel = Kernel((0.02, 0.05), (S, 7 * S), 0.01)
    parts = kernel.cost([5, 5, 5], [10, 70, 20])
    assert parts == pytest.approx(kernel.cost([5], [100]), rel=1e-13)


def test_no_round_trip_earns() -> None:
    kernel = Kernel((0.02, 0.05), (S, 7 * S), 0.01)
    rng = np.random.default_rng(1)
    for _ in range(500):
        ts = np.sort(rng.integers(0, 20 * S, 8))
        lots = rng.integers(-50, 50, 8)
        lots[-1] -= lots.sum()
        assert kernel.cost(ts, lots) >= -1e-9


def test_equal_spaced_trades_cost_what_obizhaeva_and_wang_say() -> None:
    depth, half_life, n, whole = 40.0, 2 * S, 9, 1_000.0
    kernel = Kernel((1 / depth,), (half_life,))
    ts = np.arange(n + 1) * 700_000_000
    a = 2.0 ** (-700_000_000 / half_life)
    ends = whole / ((n - 1) * (1 - a) + 2)
    trades = np.full(n + 1, ends * (1 - a))
    trades[[0, -1]] = ends
    closed = whole**2 * (1 + a) / (2 * depth * ((n + 1) * (1 - a) + 2 * a))
    assert trades.sum() == pytest.approx(whole)
    assert kernel.cost(ts, trades) == pytest.approx(closed, rel=1e-12)
    # and it is the least: the quadratic programme's own answer
    best = np.linalg.solve(kernel.matrix(ts), np.ones(n + 1))
    best *= whole / best.sum()
    assert best == pytest.approx(trades, rel=1e-9)


def test_a_kernel_is_a_recipe_and_back() -> None:
    kernel = Kernel((0.02, 0.05), (S, 7 * S), 0.01)
    assert Kernel.of_config(kernel.to_config()) == kernel
    written = ImpactConfig(weights=(0.5,), half_lives=("250ms",))
    assert Kernel.of_config(written).at(250_000_000) == pytest.approx(0.25)


def test_bad_kernels_are_refused_with_the_reason() -> None:
    for made, why in (
        (((1.0,), ()), "1 weights and 0 half-lives"),
        (((-1.0,), (S,)), "weight 0 of a kernel is -1.0"),
        (((float("nan"),), (S,)), "is nan"),
        (((1.0,), (0,)), "half-life 0 of a kernel is 0 ns"),
        (((1.0,), (S,), -0.5), "permanent part is -0.5"),
    ):
        with pytest.raises(ConfigError, match=why):
            Kernel(*made)
    with pytest.raises(ConfigError, match="gamma of a power law is 0"):
        Kernel.from_power_law(1.0, 1.0, 0.0)


def test_shares_of_spread_and_depth_become_ticks_a_lot() -> None:
    told = ImpactConfig(
        weights=(0.1, 0.2), half_lives=("1s", "5s"), permanent=0.05, unit="spread_per_depth"
    )
    made = ticks_per_lot(told, spread_ticks=3.0, depth_lots=60.0)
    assert made.unit == "ticks_per_lot"
    assert made.weights == pytest.approx((0.005, 0.01))
    assert made.permanent == pytest.approx(0.0025)
    assert made.half_lives == told.half_lives
    assert ticks_per_lot(made, 0.0, 0.0) is made
    with pytest.raises(ConfigError, match="mean depth of the market is 0"):
        ticks_per_lot(told, spread_ticks=3.0, depth_lots=0.0)


class Taker(Strategy):
    """A market order a second, in and out."""

    def on_start(self) -> None:
        self.side = BUY
        self.every("1s", self.take)

    def take(self) -> None:
        self.submit(self.side, 50)
        self.side = -self.side


def test_shares_of_spread_and_depth_are_charged_as_ticks_a_lot_of_the_first_rows() -> None:
    overlay = {"weights": [0.1], "half_lives": ["5s"], "permanent": 0.05}
    market = {"data.synth.duration_s": 30.0, "engine.bracket": False}
    shares = overlay | {"unit": "spread_per_depth"}
    plan = prepare(Taker, "synth", settings=market | {"venue.impact": shares})
    spread, depth = mean_touch(plan.feeds[0].chunks())
    rows = np.concatenate(list(plan.feeds[0].chunks()))
    for cut in (7, 70_001, len(rows)):  # a parameter of memory must not move a price
        assert mean_touch(rows[at : at + cut] for at in range(0, len(rows), cut)) == (spread, depth)
    ticks = overlay | {
        "weights": [0.1 * (spread / depth)],
        "permanent": 0.05 * (spread / depth),
    }
    runs = [
        backtest(Taker, "synth", settings=market | {"venue.impact": told}).run
        for told in (shares, ticks)
    ]
    assert len(runs[0].fills) > 20
    assert runs[0].fills["impact"].sum() > 0
    assert runs[0].fills.tobytes() == runs[1].fills.tobytes()

"""The kernel by which prices answer trades: recovered where it is known."""

from __future__ import annotations

from pathlib import Path

import made_up_tapes as made
import numpy as np
import pytest

from hft.errors import DataError
from hft.fitting.impact import fit_impact, fit_prices
from hft.fitting.tape import Source, Tape
from hft.types import Kind

NOWHERE = Source(None, "MADE.UP", "made")  # type: ignore[arg-type]
LAGS_S = np.array([0.0, 0.5, 2.0, 8.0, 30.0])


def true_kernel(weights: dict[float, float], permanent: float) -> np.ndarray:
    return np.full(len(LAGS_S), permanent) + sum(
        w * np.exp2(-LAGS_S / h) for h, w in weights.items()
    )


@pytest.mark.parametrize(
    ("weights", "permanent"), [({1.0: 0.4}, 0.1), ({0.2: 0.3, 5.0: 0.3}, 0.0), ({}, 0.2)]
)
def test_kernel_of_a_feed_of_levels_is_recovered(
    weights: dict[float, float], permanent: float, tmp_path: Path
) -> None:
    rows = made.prices_with_kernel(weights, permanent, seed=11)
    fit = fit_impact(made.source_of(rows, tmp_path), heal_s=1.0)
    truth = true_kernel(weights, permanent)
    assert fit.untold == ()
    assert fit.walked == 0
    assert fit.kernel().at(LAGS_S * 1e9) == pytest.approx(truth, abs=0.12 * truth[0])
    assert fit.at_once.holds(truth[0])
    # The response of the tape is the kernel's own path: nothing else moved its price.
    lag = np.searchsorted(fit.lags_s, 5.0)
    assert fit.modelled[0][lag] == pytest.approx(fit.response[lag], rel=0.1)


def kernel_tape(seed: int, weight: float, half_life_s: float, permanent: float) -> Tape:
    tape = made.depth_tape(1.0, seed=seed, duration_s=300, step_s=0.2, rate=1.0)
    at, then = ((table["ts"] - made.START) / 1e9 for table in (tape.grid, tape.sweeps))
    signed = tape.sweeps["side"] * tape.sweeps["lots"]
    noise = np.random.default_rng(seed).normal(0, 5, len(at)).cumsum()
    mid = noise + made.decayed(at, then, signed * weight, half_life_s)
    mid += made.decayed(at, then, signed * permanent, 1e12)
    tape.grid["mid2"] = np.round(2 * (100_000 + mid))
    mids = np.ascontiguousarray(tape.grid[["ts", "mid2"]])
    return Tape(tape.grid, tape.sweeps, mids, tape.step_ns, tape.levels, 0)


def test_the_interval_covers_the_truth_in_four_of_five_runs_at_least() -> None:
    fits = [fit_prices(kernel_tape(seed, 0.5, 1.0, 0.2), NOWHERE, heal_s=1.0) for seed in range(30)]
    assert np.mean([fit.at_once.holds(0.7) for fit in fits]) >= 0.8


def test_what_sweeps_walk_is_not_charged_twice() -> None:
    tape = kernel_tape(3, 0.0, 1.0, 0.0)
    tape.sweeps["walked"] = 40
    at, then = ((table["ts"] - made.START) / 1e9 for table in (tape.grid, tape.sweeps))
    walk = made.decayed(at, then, tape.sweeps["side"] * 20.0, 2.0)
    tape.grid["mid2"] += np.round(2 * walk).astype(int)
    apart = fit_prices(tape, NOWHERE, heal_s=2.0)
    assert apart.untold
    assert apart.r2 > 0.5
    tape.sweeps["walked"] = 0
    together = fit_prices(tape, NOWHERE, heal_s=2.0)
    assert together.untold == ()
    assert together.at_once.value > 0.1


def test_prices_that_answer_nothing_are_said_not_to_tell() -> None:
    fit = fit_prices(kernel_tape(4, 0.0, 1.0, 0.0), NOWHERE, heal_s=1.0)
    assert any("may be nothing" in why for why in fit.untold)


def test_prints_without_an_aggressor_are_refused(tmp_path: Path) -> None:
    rows = made.prices_with_kernel({}, 0.2, seed=1, duration_s=30)
    rows["side"][rows["kind"] == Kind.TRADE] = 0
    with pytest.raises(DataError, match="no print says who took"):
        fit_impact(made.source_of(rows, tmp_path))

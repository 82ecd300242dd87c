"""Laws of what trading costs, by their papers' figures; and a run's costs set beside them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from made_up_runs import T0, S, sample_row

from hft.analysis import execution_tables
from hft.analysis.cost_checks import cost_checks
from hft.analysis.cost_laws import AlmgrenChriss, almgren_2005, square_root
from hft.analysis.figures import figures_of
from hft.analysis.run_data import RunData
from hft.analysis.shortfall import shortfalls
from hft.errors import ConfigError

PAPER = AlmgrenChriss(sigma=0.95, epsilon=0.0625, eta=2.5e-6, gamma=2.5e-7)


def test_almgren_chriss_of_the_paper() -> None:
    assert PAPER.kappa(1e-6, 1.0) == pytest.approx(0.60708, abs=5e-6)
    held = PAPER.trajectory(1e6, 5.0, 5, 1e-6)
    expected, deviation = PAPER.cost(held, 1.0)
    assert expected == pytest.approx(911_226.99, abs=0.005)
    assert deviation == pytest.approx(603_430.67, abs=0.005)


def test_almgren_chriss_closed_form_equals_the_sum_over_periods() -> None:
    """Their equation for the expectation of the best trajectory."""
    lots, time, periods, aversion = 1e6, 5.0, 50, 2e-6
    tau, kappa = time / periods, PAPER.kappa(aversion, time / periods)
    eta = PAPER.eta - PAPER.gamma * tau / 2
    half, full = np.tanh(kappa * tau / 2), np.sinh(2 * kappa * time)
    shape = half * (tau * full + 2 * time * np.sinh(kappa * tau))
    shape /= 2 * tau**2 * np.sinh(kappa * time) ** 2
    closed = PAPER.gamma * lots**2 / 2 + PAPER.epsilon * lots + eta * lots**2 * shape
    held = PAPER.trajectory(lots, time, periods, aversion)
    assert PAPER.cost(held, tau)[0] == pytest.approx(closed, rel=1e-9)


def test_the_best_trajectory_beats_its_neighbours() -> None:
    def value(held: np.ndarray) -> float:
        expected, deviation = PAPER.cost(held, 0.5)
        return expected + 1e-6 * deviation**2

    held = PAPER.trajectory(1e6, 5.0, 10, 1e-6)
    for k in range(1, 10):
        for push in (-2_000.0, 2_000.0):
            other = held.copy()
            other[k] += push
            assert value(other) > value(held)


def test_without_aversion_it_is_even_and_periods_must_be_short() -> None:
    held = PAPER.trajectory(1e6, 5.0, 5, 0.0)
    np.testing.assert_allclose(held, [1e6, 8e5, 6e5, 4e5, 2e5, 0])
    fine = PAPER.trajectory(1e6, 5.0, 100_000, 0.0)
    assert PAPER.cost(fine, 5e-5)[0] == pytest.approx(PAPER.even_cost(1e6, 5.0), rel=1e-4)
    with pytest.raises(ConfigError, match="take shorter periods"):
        PAPER.kappa(1e-6, 30.0)


def test_their_rule_gives_their_parameters() -> None:
    rule = AlmgrenChriss.by_their_rule(sigma=0.95, spread=0.125, volume=5e6)
    assert (rule.epsilon, rule.eta, rule.gamma) == (0.0625, 2.5e-6, 2.5e-7)


def test_square_root_doubles_with_four_times_the_size() -> None:
    one, four = square_root([100, 400], 30.0, 10_000)
    assert (one, four) == (3.0, 6.0)


def test_almgren_2005_by_hand() -> None:
    # A tenth of a day's volume in half a day: 0.314 / 2 * 0.1 + 0.142 * 0.2^0.6 of sigma.
    assert almgren_2005(100, 0.5, 2.0, 1_000) == pytest.approx(2 * (0.0157 + 0.142 * 0.2**0.6))
    # 256 times the volume outstanding: the permanent part times 4.
    much = almgren_2005(100, 0.5, 2.0, 1_000, outstanding=256_000)
    assert much == pytest.approx(2 * (0.0157 * 4 + 0.142 * 0.2**0.6))


def checks(run: RunData) -> list[dict[str, Any]]:
    return cost_checks(run, shortfalls(run))


@pytest.fixture
def traded(three_fills: RunData) -> RunData:
    """Mids of the samples 1000.5, 1000.5, 1003.5, 999.5, 990: squares 0, 9, 16, 90.25."""
    three_fills.traded_lots = [400]
    three_fills.orders["ts_decide"][1:3] = [T0 + S, T0 + 2 * S]
    return three_fills


def test_a_taker_beside_the_square_root_law(traded: RunData) -> None:
    (check,) = checks(traded)
    # Order 3 took one lot: spread -0.5, walk +1, half a tick of 1e-4 each... and nothing charged.
    expected = 1e-4 * np.sqrt(115.25) * np.sqrt(1 / 400)
    assert (check["law"], check["of"], check["n"]) == ("square root", "takers", 1)
    assert check["simulated"] == pytest.approx(0.5e-4)
    assert check["expected"] == pytest.approx(expected)
    assert check["ratio"] == pytest.approx(0.5e-4 / expected)
    assert (check["in_band"], check["flagged"]) == (1.0, False)
    traded.fills["impact"][2] = 1_000_000
    (check,) = checks(traded)
    assert (check["in_band"], check["flagged"]) == (0.0, True)
    table = execution_tables.cost_checks(figures_of(traded))
    assert table.rows[0][-1] == "outside"


def test_parents_are_set_beside_all_three(traded: RunData) -> None:
    traded.orders["parent"][1:3] = 1
    laws = {check["law"]: check for check in checks(traded)}
    assert list(laws) == ["square root", "Almgren et al. 2005", "Almgren-Chriss"]
    assert {check["of"] for check in laws.values()} == {"parents"}
    # Sold at 1004 and 999, two lots against the first child's 1003: it cost 2003 less 2006.
    assert laws["square root"]["simulated"] == pytest.approx(3e-4)
    took = (2 * S - 1_000_000) / (86_400 * S)
    days = 4 * S / (86_400 * S)
    sigma, volume = np.sqrt(115.25 / days), 400 / days
    expected = 2e-4 * almgren_2005(2, took, sigma, volume)
    assert laws["Almgren et al. 2005"]["expected"] == pytest.approx(float(expected))
    spread = np.mean([1, 1, 1, 1, 2])
    theirs = AlmgrenChriss.by_their_rule(sigma, spread, volume)
    assert laws["Almgren-Chriss"]["expected"] == pytest.approx(1e-4 * theirs.even_cost(2, took))


def test_a_run_that_cannot_tell_is_not_asked(traded: RunData) -> None:
    traded.traded_lots = [0]
    assert checks(traded) == []
    traded.traded_lots = []
    assert checks(traded) == []
    traded.traded_lots, traded.mids = [400], None
    assert checks(traded) == []


def test_a_still_market_has_no_law(traded: RunData) -> None:
    rows = [sample_row(ts=T0 + k * S, bid=1000, ask=1001) for k in range(5)]
    traded.samples = np.concatenate(rows)
    assert checks(traded) == []

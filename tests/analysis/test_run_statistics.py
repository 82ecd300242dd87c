"""Sharpe ratios, drawdowns and what is said about them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from made_up_runs import T0, RunMaker, S

from hft.analysis import statistics
from hft.analysis.figures import figures_of
from hft.analysis.run_data import RunData
from hft.analysis.statistics import DAY_NS


def test_increments_leave_out_pieces_and_closed_hours() -> None:
    ts = np.array([5, 10, 14, 20, 50, 55, 60]) * S
    net = np.array([1.0, 2.0, 3.0, 5.0, 6.0, 7.0, 9.0])
    # Grid 10, 20 ... 60; nothing is sampled in (20, 30] ... (40, 50) but at 50 itself.
    assert statistics.increments(ts, net, 10 * S).tolist() == [3.0, 1.0, 3.0]
    assert statistics.increments(ts, net, 20 * S, origin=10 * S).tolist() == [3.0, 1.0]
    assert statistics.increments(ts[:0], net[:0], S).size == 0


def test_sharpe_is_mean_over_deviation_of_increments() -> None:
    gains = np.array([1.0, -1.0, 2.0, 0.0] * 5)
    ts, net = T0 + np.arange(21) * 60 * S, np.append(0.0, np.cumsum(gains))
    sharpe = statistics.sharpe(ts, net)
    assert sharpe.sampling_ns == 60 * S
    assert sharpe.increments == 20
    assert sharpe.ratio == pytest.approx(0.5 / gains.std(ddof=1))
    assert sharpe.t_stat == pytest.approx(sharpe.ratio * math.sqrt(20))


@pytest.mark.parametrize("net", [np.zeros(100), np.arange(5.0), np.zeros(0)])
def test_no_sharpe_without_spread_or_with_too_few(net: np.ndarray) -> None:
    sharpe = statistics.sharpe(T0 + np.arange(net.size) * 60 * S, net)
    assert (sharpe.ratio, sharpe.t_stat, sharpe.ci95) == (None, None, None)


def test_lo_factor_meets_its_closed_form_for_an_autoregression() -> None:
    noise = np.random.default_rng(2).normal(size=200_000)
    gains = np.convolve(noise, 0.2 ** np.arange(20))[: noise.size]
    # Lo (2002): sqrt(252) = 15.875 falls to 12.972 at an autocorrelation of 0.2.
    assert statistics.lo_factor(gains, 252) == pytest.approx(12.972, rel=0.02)
    assert statistics.lo_factor(noise, 252) == pytest.approx(math.sqrt(252), rel=0.02)


def test_bootstrap_of_independent_gains_meets_the_normal_interval() -> None:
    gains = np.random.default_rng(3).normal(0.1, 1.0, 400)
    ratios, totals = statistics.block_bootstrap(gains)
    assert np.mean(totals) == pytest.approx(gains.sum(), abs=2.0)
    assert np.std(totals) == pytest.approx(math.sqrt(400), rel=0.2)
    assert np.std(ratios) == pytest.approx(1 / math.sqrt(400), rel=0.2)
    again, _ = statistics.block_bootstrap(gains)
    assert again.tolist() == ratios.tolist()


def test_annualised_only_from_twenty_days() -> None:
    gains = np.random.default_rng(4).normal(0.1, 1.0, 30)
    midnight = T0 // DAY_NS * DAY_NS
    ts, net = midnight + np.arange(31) * DAY_NS, np.append(0.0, np.cumsum(gains))
    annual = statistics.annual(ts, net)
    assert annual is not None
    assert (annual.days, annual.days_a_year) == (30, 365)
    assert annual.sharpe == pytest.approx(gains.mean() / gains.std(ddof=1) * math.sqrt(365))
    assert statistics.annual(ts[:20], net[:20]) is None


def test_drawdown_by_hand(three_fills: RunData) -> None:
    ts, net = three_fills.samples["ts"], three_fills.samples["equity"] / 1e9
    fall = statistics.drawdown(ts, net)
    assert fall.depth == pytest.approx(489_960e-9)
    assert (fall.ts_peak, fall.ts_trough) == (T0 + 2 * S, T0 + 3 * S)
    assert fall.longest_ns == 2 * S


def test_an_account_that_only_loses_is_under_water_from_the_start() -> None:
    ts = T0 + np.arange(4) * S
    fall = statistics.drawdown(ts, np.array([-1.0, -2.0, -3.0, -2.0]))
    assert (fall.depth, fall.ts_peak, fall.ts_trough) == (3.0, T0, T0 + 2 * S)
    assert fall.longest_ns == 3 * S
    assert statistics.drawdown(ts, np.arange(4.0)).depth == 0.0


def test_coarse_samples_set_the_sampling(random_run: RunMaker) -> None:
    run = random_run(1, seconds=3600, sample_ns=120 * S)
    sharpe = figures_of(run)["accounts"][0]["sharpe"]
    assert (sharpe["sampling_ns"], sharpe["increments"]) == (120 * S, 30)

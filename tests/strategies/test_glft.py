"""GLFT: closed forms against the exact stationary solution, calibration against known markets."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hft.errors import ConfigError
from hft.execution.glft import Intensity, Pace, fit_intensity, glft_quotes

GAMMA, SIGMA, MARKET = 0.1, 0.3, Intensity(a=1.0, k=1.5)


def exact_bid_depth(q: int, gamma: float, sigma: float, market: Intensity, cap: int = 60) -> float:
    """From the ground state of tridiag(alpha q^2, -eta): Gueant et al. (2013), proposition 4."""
    alpha = market.k * gamma * sigma**2 / 2
    eta = market.a * (1 + gamma / market.k) ** -(1 + market.k / gamma)
    qs = np.arange(-cap, cap + 1)
    off = np.full(2 * cap, -eta)
    matrix = np.diag(alpha * qs.astype(float) ** 2) + np.diag(off, 1) + np.diag(off, -1)
    ground = np.abs(np.linalg.eigh(matrix)[1][:, 0])
    lean = math.log(ground[cap + q] / ground[cap + q + 1]) / market.k
    return math.log1p(gamma / market.k) / gamma + lean


@pytest.mark.parametrize(("q", "exact", "closed"), [(0, 0.6925, 0.6913), (3, 0.9718, 0.9666)])
def test_known_figures(q: int, exact: float, closed: float) -> None:
    assert exact_bid_depth(q, GAMMA, SIGMA, MARKET) == pytest.approx(exact, abs=5e-5)
    assert glft_quotes(GAMMA, SIGMA, MARKET).bid_depth(q) == pytest.approx(closed, abs=5e-5)


@pytest.mark.parametrize("gamma", [0.01, 0.05, 0.3])
@pytest.mark.parametrize("sigma", [0.1, 0.3, 0.6])
@pytest.mark.parametrize("q", [-3, 0, 3])
def test_near_the_exact_solution(gamma: float, sigma: float, q: int) -> None:
    closed = glft_quotes(gamma, sigma, MARKET).bid_depth(q)
    assert closed == pytest.approx(exact_bid_depth(q, gamma, sigma, MARKET), abs=0.06)


@given(
    gamma=st.floats(1e-6, 10),
    sigma=st.floats(0, 100),
    a=st.floats(1e-3, 1e3),
    k=st.floats(1e-2, 10),
    q=st.integers(-50, 50),
)
def test_symmetry_and_lean(gamma: float, sigma: float, a: float, k: float, q: int) -> None:
    quotes = glft_quotes(gamma, sigma, Intensity(a, k))
    assert quotes.bid_depth(q) == quotes.ask_depth(-q)
    assert quotes.bid_depth(q + 1) >= quotes.bid_depth(q)  # the longer, the lower the bid
    spread = quotes.bid_depth(q) + quotes.ask_depth(q)
    assert spread == pytest.approx(2 * quotes.half_spread_ticks)


def test_tends_to_the_risk_neutral_depth() -> None:
    quotes = glft_quotes(1e-9, 0.3, MARKET)
    assert quotes.half_spread_ticks == pytest.approx(1 / MARKET.k, rel=1e-3)
    assert quotes.skew_ticks == pytest.approx(0, abs=1e-4)


@pytest.mark.parametrize("broken", [(0.0, 1.0, 1.0), (0.1, 0.0, 1.0), (0.1, 1.0, -1.0)])
def test_refuses_what_has_no_solution(broken: tuple[float, float, float]) -> None:
    gamma, a, k = broken
    with pytest.raises(ConfigError, match="gamma, a, k > 0"):
        glft_quotes(gamma, 0.3, Intensity(a, k))


def test_fit_finds_an_exponential() -> None:
    depths = np.arange(6.0)
    found = fit_intensity(depths, np.array([Intensity(7.0, 0.8).rate(d) for d in depths]))
    assert found is not None
    assert (found.a, found.k) == pytest.approx((7.0, 0.8))


@pytest.mark.parametrize("rates", [[1.0, 2.0, 3.0], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
def test_fit_says_no_where_nothing_falls(rates: list[float]) -> None:
    assert fit_intensity(np.arange(3.0), np.array(rates)) is None


def fed_pace(seconds: int, sigma: float, market: Intensity, half_life_s: float, seed: int) -> Pace:
    """A diffusing mid and prints whose reach is exponential, at most one a slice and side."""
    rng = np.random.default_rng(seed)
    pace, mid, slice_s = Pace(0.1, half_life_s), 1000.0, 0.1
    for _ in range(round(seconds / slice_s)):
        reach = -np.log(rng.random(2)) / market.k
        hit = rng.random(2) < market.a * slice_s
        high = mid + reach[0] if hit[0] else -math.inf
        low = mid - reach[1] if hit[1] else math.inf
        pace.prints(high, low)
        mid += sigma * math.sqrt(slice_s) * rng.standard_normal()
        pace.end_slice(mid)
    return pace


def test_pace_finds_volatility_and_intensity() -> None:
    pace = fed_pace(2000, 3.0, Intensity(5.0, 0.7), half_life_s=1e6, seed=3)
    found = pace.intensity()
    assert found is not None
    assert pace.sigma == pytest.approx(3.0, rel=0.03)
    assert (found.a, found.k) == pytest.approx((5.0, 0.7), rel=0.05)


def test_pace_forgets() -> None:
    pace = fed_pace(60, 8.0, Intensity(9.0, 0.4), half_life_s=5.0, seed=4)
    for _ in range(600):
        pace.end_slice(1000.0)
    assert pace.sigma < 0.2
    assert pace.seconds == pytest.approx(5.0 / math.log(2), rel=0.01)


def test_pace_has_no_opinion_before_it_has_seen_anything() -> None:
    pace = Pace(0.1, 60.0)
    assert pace.quotes(0.1) is None
    pace.prints(1001.0, 999.0)
    pace.end_slice(math.nan)
    pace.end_slice(1000.0)  # the first mid begins a slice, it does not end one
    assert pace.seconds == 0
    assert pace.quotes(0.1) is None


def test_a_market_wider_than_what_is_measured_has_no_quotes() -> None:
    """Every print reaches every depth that is counted, so nothing says how rates fall."""
    pace = Pace(0.1, 60.0, max_ticks=4)
    rng = np.random.default_rng(3)
    for _ in range(3_000):
        mid = 180_000 + float(rng.integers(-80, 80))
        pace.prints(mid + rng.integers(4, 120), mid - rng.integers(3, 120))
        pace.end_slice(mid)
        quotes = pace.quotes(0.01)
        assert quotes is None or quotes.half_spread_ticks <= 40

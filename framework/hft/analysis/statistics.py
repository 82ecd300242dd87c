"""How good a result is, and how sure: pure functions of an equity path.

No figure here is annualised from a short run. A Sharpe ratio depends on its sampling interval
(bid-ask bounce makes short intervals look worse or better), so the interval is always stated beside
it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hft.analysis.pnl import Float, Int
from hft.analysis.units import NS_PER_S

DAY_NS = 86_400 * NS_PER_S
SHARPE_SAMPLING_NS = 60 * NS_PER_S
MIN_DAYS_TO_ANNUALISE = 20
MIN_INCREMENTS = 10
"""Fewer increments than this give no Sharpe ratio."""
RESAMPLES = 2_000


@dataclass(frozen=True, slots=True)
class Sharpe:
    """Mean over standard deviation of equity increments.

    Attributes:
        sampling_ns: length of one increment.
        increments: how many there were.
        ratio: per increment.
        t_stat: of the mean increment, taken as independent.
        t_stat_lo: the same, corrected for autocorrelation (Lo 2002).
        ci95: of the ratio, by circular block bootstrap.
        total_ci95: of the sum of increments [currency], by the same bootstrap.
    """

    sampling_ns: int
    increments: int
    ratio: float | None = None
    t_stat: float | None = None
    t_stat_lo: float | None = None
    ci95: tuple[float, float] | None = None
    total_ci95: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Annual:
    """Sharpe ratio of daily results, times the root of the trading days in a year."""

    days: int
    days_a_year: int
    sharpe: float
    sharpe_lo: float


@dataclass(frozen=True, slots=True)
class Drawdown:
    """The deepest fall below an earlier peak.

    Attributes:
        depth: [currency], never negative.
        ts_peak: where it began [ns, UTC]; None without one.
        ts_trough: its lowest point.
        longest_ns: longest time below an earlier peak, recovered or not.
    """

    depth: float
    ts_peak: int | None
    ts_trough: int | None
    longest_ns: int


def increments(ts: Int, net: Float, sampling_ns: int, *, origin: int = 0) -> Float:
    """Changes of equity between instants `sampling_ns` apart.

    Pieces shorter than an interval at either end are left out, and so are intervals without a
    sample: a closed market is no quiet one.

    Args:
        ts: sample times, ascending, (n,) [ns].
        net: equity at them, (n,) [currency].
        sampling_ns: length of an interval, no shorter than the sample grid.
        origin: an instant that the grid passes through; 0 aligns it to UTC.

    Returns:
        (m,) float64 [currency].
    """
    if not ts.size:
        return np.zeros(0)
    first, last = -(-(int(ts[0]) - origin) // sampling_ns), (int(ts[-1]) - origin) // sampling_ns
    edges = origin + np.arange(first, last + 1, dtype=np.int64) * sampling_ns
    at = np.searchsorted(ts, edges, side="right") - 1
    return np.diff(net[at])[np.diff(at) > 0]


def sharpe(ts: Int, net: Float, sampling_ns: int = SHARPE_SAMPLING_NS) -> Sharpe:
    """Sharpe ratio per increment, with its t statistic and bootstrap intervals."""
    gains = increments(ts, net, sampling_ns, origin=int(ts[0]) if ts.size else 0)
    deviation = float(gains.std(ddof=1)) if gains.size >= MIN_INCREMENTS else 0.0
    if deviation == 0.0:
        return Sharpe(sampling_ns, gains.size)
    ratio = float(gains.mean()) / deviation
    ratios, totals = block_bootstrap(gains)
    return Sharpe(
        sampling_ns,
        gains.size,
        ratio,
        ratio * math.sqrt(gains.size),
        ratio * lo_factor(gains, gains.size),
        _interval95(ratios),
        _interval95(totals),
    )


def annual(ts: Int, net: Float) -> Annual | None:
    """Annualised Sharpe ratio of daily results; None with fewer than 20 whole UTC days.

    A year has 365 trading days where the data hold weekends, else 252.
    """
    gains = increments(ts, net, DAY_NS)
    if gains.size < MIN_DAYS_TO_ANNUALISE or gains.std(ddof=1) == 0.0:
        return None
    weekday = (ts // DAY_NS + 3) % 7  # 1 January 1970 was a Thursday; Monday is 0
    days_a_year = 365 if np.any(weekday >= 5) else 252
    ratio = float(gains.mean() / gains.std(ddof=1))
    return Annual(
        gains.size,
        days_a_year,
        ratio * math.sqrt(days_a_year),
        ratio * lo_factor(gains, days_a_year),
    )


def lo_factor(gains: Float, periods: int) -> float:
    """What a per-period Sharpe ratio is multiplied by to span `periods` autocorrelated periods.

    Autocorrelations beyond the Newey-West bandwidth 4 (n / 100)^(2/9) are taken as zero: a sample
    does not know them.

    Args:
        gains: (n,) [currency].
        periods: q.

    Returns:
        q / sqrt(q + 2 sum of (q - k) rho_k); sqrt(q) without autocorrelation.

    Source:
        Lo (2002), "The Statistics of Sharpe Ratios", eq. 20.
    """
    lags = min(math.floor(4 * (gains.size / 100) ** (2 / 9)), gains.size - 1, periods - 1)
    rho = autocorrelation(gains, lags)
    spread = periods + 2 * float(np.sum((periods - np.arange(1, lags + 1)) * rho))
    # Strong negative autocorrelation in a small sample can push the sum below zero: floor it.
    return periods / math.sqrt(max(spread, 0.1 * periods))


def autocorrelation(gains: Float, lags: int) -> Float:
    """Sample autocorrelations at lags 1 ... `lags`, (lags,) float64."""
    centred = gains - gains.mean()
    power = float(centred @ centred)
    if power == 0.0:
        return np.zeros(max(lags, 0))
    return np.array([float(centred[k:] @ centred[:-k]) / power for k in range(1, lags + 1)])


def block_bootstrap(
    gains: Float, *, resamples: int = RESAMPLES, seed: int = 20020704
) -> tuple[Float, Float]:
    """Circular block bootstrap of the Sharpe ratio and of the sum.

    Blocks are 2 n^(1/3) long, rounded up. Whole blocks are drawn, so the sum is scaled by n over
    the length drawn. The seed is fixed: the same run gives the same interval.

    Args:
        gains: (n,) [currency].
        resamples: how many draws.
        seed: of the draws.

    Returns:
        Ratios and sums, each (resamples,) float64; ratios of constant draws are left out.
    """
    n = gains.size
    block = min(n, math.ceil(2 * n ** (1 / 3)))
    blocks = -(-n // block)
    sums, squares = _block_sums(gains, block), _block_sums(gains * gains, block)
    starts = np.random.default_rng(seed).integers(0, n, (resamples, blocks))
    drawn = blocks * block
    total, square = sums[starts].sum(axis=1), squares[starts].sum(axis=1)
    variance = (square - total * total / drawn) / (drawn - 1)
    varied = variance > 0
    return total[varied] / drawn / np.sqrt(variance[varied]), total * (n / drawn)


def drawdown(ts: Int, net: Float) -> Drawdown:
    """Deepest and longest fall below an earlier peak; the account opens at zero."""
    if not ts.size:
        return Drawdown(0.0, None, None, 0)
    peak = np.maximum.accumulate(np.maximum(net, 0.0))
    fall = peak - net
    trough = int(np.argmax(fall))
    # The last instant at a peak, for each sample; the run's first sample where it never saw one.
    at_peak = np.maximum.accumulate(np.where(fall <= 0.0, ts, ts[0]))
    longest = int(np.max(ts - at_peak))
    if fall[trough] <= 0.0:
        return Drawdown(0.0, None, None, 0)
    return Drawdown(float(fall[trough]), int(at_peak[trough]), int(ts[trough]), longest)


def _block_sums(values: Float, block: int) -> Float:
    wrapped = np.append(0.0, np.cumsum(np.append(values, values[: block - 1])))
    sums: Float = wrapped[block:] - wrapped[:-block]
    return sums


def _interval95(draws: Float) -> tuple[float, float] | None:
    if not draws.size:
        return None
    low, high = np.quantile(draws, (0.025, 0.975))
    return float(low), float(high)

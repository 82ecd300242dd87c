"""Scores of probabilities against what happened, with intervals by a bootstrap over blocks of time.

Everything is summed within blocks once; a resample weighs the blocks. Instruments share blocks, so
that what moves all of them at once is drawn once.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hft.errors import DataError
from hft.fitting.blocks import Estimate, weights
from hft.scoring.ghosts import NEVER, Float, Int

RESAMPLES = 1000
BINS = 10
FEWEST_BLOCKS, GOOD_BLOCKS = 8, 20
BLOCK_NS = 300_000_000_000


@dataclass(frozen=True, slots=True)
class Bin:
    """Orders of which a model said about the same."""

    orders: int
    predicted: float
    realised: Estimate


@dataclass(frozen=True, slots=True)
class Figures:
    """How a model did. Brier scores are those of infinitely many particles."""

    model: str
    n: float | None
    brier: Estimate
    brier_queued: Estimate
    """Of orders that had somebody before them."""
    behind_best: Estimate
    """Its Brier score less that of the best model, order by order."""
    skill: Estimate
    """1 - Brier / that of always saying the rate of fills."""
    bias: Estimate
    """Mean probability less the rate of fills."""
    time_error_s: Estimate
    """Median of |predicted - real| fill time where both were filled."""
    time_error_p90_s: float
    both_filled: int
    reliability: list[Bin]

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)


def fair_brier(probability: Float, filled: NDArray[np.bool_], particles: int) -> Float:
    """Squared errors, (ghosts, models), less what a finite number of particles adds to them.

    Source:
        Ferro (2014), "Fair scores for ensemble forecasts", equation 3.
    """
    error = (probability - filled[:, None]) ** 2
    if particles > 1:
        error -= probability * (1 - probability) / (particles - 1)
    fair: Float = error
    return fair


class Blocks:
    """Blocks of time, and resamples of them."""

    def __init__(self, ts: Int, horizon_ns: int, seed: int) -> None:
        """Blocks of 5 min and two horizons, or as long as leaves 20 of them, but of one at least.

        Raises:
            DataError: there are fewer than 8.
        """
        for length_ns in (max(BLOCK_NS, 2 * horizon_ns), 2 * horizon_ns, horizon_ns):
            self.length_ns = length_ns
            self.of, self.count = _numbered(ts // length_ns)
            if self.count >= GOOD_BLOCKS:
                break
        if self.count < FEWEST_BLOCKS:
            raise DataError(
                f"the scored orders lie in {self.count} blocks of {self.length_ns / 1e9:g} s; want "
                f"at least {FEWEST_BLOCKS} for an interval: take more data or a shorter horizon"
            )
        self.weights = weights(self.count, RESAMPLES, seed)
        """(resamples, blocks)"""

    def sums(self, values: Float) -> Float:
        """(ghosts, k) -> (blocks, k)."""
        out = np.zeros((self.count, values.shape[1]))
        np.add.at(out, self.of, values)
        return out

    def ratio(self, above: Float, below: Float) -> list[Estimate]:
        """Sums of columns of `above`, (ghosts, k), over those of `below`, (ghosts,) or alike."""
        below = np.broadcast_to(below[:, None] if below.ndim == 1 else below, above.shape)
        a, b = self.sums(above), self.sums(below)
        values = _over(a.sum(axis=0), b.sum(axis=0))
        return estimates(values, _over(self.weighed(a), self.weighed(b)))

    def weighed(self, sums: Float) -> Float:
        """Resamples of sums, (blocks, k) -> (resamples, k)."""
        # A matrix product of BLAS adds in an order that differs from process to process.
        out: Float = (self.weights[:, :, None] * sums).sum(axis=1)
        return out


def estimates(values: Float, draws: Float) -> list[Estimate]:
    """From (k,) and (resamples, k)."""
    known = ~np.isnan(draws).all(axis=0)
    low, high = np.full((2, len(values)), np.nan)
    if known.any():
        low[known], high[known] = np.nanquantile(draws[:, known], [0.025, 0.975], axis=0)
    return [Estimate(*map(float, each)) for each in zip(values, low, high, strict=True)]


def _over(above: Float, below: Float) -> Float:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(below > 0, above / below, np.nan)


def _numbered(values: Int) -> tuple[Int, int]:
    known, numbers = np.unique(values, return_inverse=True)
    return numbers.astype(np.int64), len(known)


def figures_of(
    names: list[tuple[str, float | None]],
    probability: Float,
    filled: NDArray[np.bool_],
    ts_filled: Int,
    ts_median: Int,
    queued: NDArray[np.bool_],
    blocks: Blocks,
    particles: int,
) -> list[Figures]:
    """Figures of each model; `exact`, the last if it is there, is never the best.

    Args:
        names: of each model its name and n.
        probability: (ghosts, models).
        filled: (ghosts,).
        ts_filled: (ghosts,) [ns]; NEVER: not filled.
        ts_median: (ghosts, models) [ns]; NEVER: not filled.
        queued: (ghosts,): somebody stood before it.
        blocks: of the ghosts.
        particles: behind each probability.
    """
    error = fair_brier(probability, filled, particles)
    one = np.ones(len(filled))
    brier = blocks.ratio(error, one)
    of_queued = blocks.ratio(error * queued[:, None], queued.astype(np.float64))
    real = [i for i, (name, _) in enumerate(names) if name != "exact"]
    best = min(real, key=lambda i: brier[i].value)
    behind = blocks.ratio(error - error[:, [best]], one)
    bias = blocks.ratio(probability - filled[:, None], one)
    skill = _skill(error, filled, blocks)
    out = []
    for i, (name, n) in enumerate(names):
        both = filled & (probability[:, i] >= 0.5) & (ts_median[:, i] < NEVER)
        late_s = np.abs(ts_median[both, i] - ts_filled[both]) / 1e9
        time_error, p90 = _quantiles(late_s, blocks, both)
        bins = _reliability(probability[:, i], filled, blocks)
        out.append(
            Figures(
                name, n, brier[i], of_queued[i], behind[i], skill[i], bias[i], time_error, p90,
                int(both.sum()), bins,
            )
        )  # fmt: skip
    return out


def _skill(error: Float, filled: NDArray[np.bool_], blocks: Blocks) -> list[Estimate]:
    hits = blocks.sums(np.column_stack([filled, np.ones(len(filled))]).astype(np.float64))
    sums = blocks.sums(error)

    def skill(of_fills: Float, of_errors: Float) -> Float:
        rate = of_fills[:, 0] / of_fills[:, 1]
        return 1 - _over(of_errors / of_fills[:, [1]], (rate * (1 - rate))[:, None])

    value = skill(hits.sum(axis=0)[None], sums.sum(axis=0)[None])[0]
    return estimates(value, skill(blocks.weighed(hits), blocks.weighed(sums)))


def _quantiles(late_s: Float, blocks: Blocks, both: NDArray[np.bool_]) -> tuple[Estimate, float]:
    """The median with its interval, and the 90th percentile."""
    if not len(late_s):
        return Estimate(np.nan, np.nan, np.nan), np.nan
    order = np.argsort(late_s, kind="stable")
    late_s, of = late_s[order], blocks.of[both][order]
    draws = []
    for drawn in blocks.weights[:: max(1, RESAMPLES // 200)]:
        below = np.cumsum(drawn[of])
        at = np.searchsorted(below, below[-1] / 2)
        draws.append(late_s[min(at, len(late_s) - 1)])
    low, high = np.quantile(draws, [0.025, 0.975])
    median, p90 = np.quantile(late_s, [0.5, 0.9], method="lower")
    return Estimate(float(median), float(low), float(high)), float(p90)


def _reliability(probability: Float, filled: NDArray[np.bool_], blocks: Blocks) -> list[Bin]:
    at = np.minimum((probability * BINS).astype(np.int64), BINS - 1)
    members = (at[:, None] == np.arange(BINS)).astype(np.float64)
    realised = blocks.ratio(members * filled[:, None], members)
    counts = members.sum(axis=0)
    predicted = _over((members * probability[:, None]).sum(axis=0), counts)
    return [Bin(int(counts[k]), float(predicted[k]), realised[k]) for k in range(BINS) if counts[k]]

"""Estimates, and their intervals by a bootstrap over blocks of time.

What happens in a market comes in bursts, so observations are drawn again in blocks, not one by one.
A criterion is summed within each block once, on a grid of the parameter; a resample is then a
weighting of the blocks, and hundreds cost no more than one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hft.errors import DataError

Float = NDArray[np.float64]
Int = NDArray[np.int64]

BLOCKS = 60
FEWEST_BLOCKS = 8
LONGEST_GAP_NS = 60_000_000_000
RESAMPLES = 400
SEED = 20120301
"""Of the resamples: the same data give the same interval."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure with its 95 % interval."""

    value: float
    low: float
    high: float

    def text(self, digits: int = 3) -> str:
        """`2.01 (1.93 to 2.10)`."""
        return f"{self.value:.{digits}g} ({self.low:.{digits}g} to {self.high:.{digits}g})"

    def fixed(self, scale: float = 1.0, digits: int = 2) -> str:
        """`1.32 (1.10 to 1.54)`, for a column of them; nothing where there is no figure."""
        value, low, high = (scale * each for each in (self.value, self.low, self.high))
        if math.isnan(value):
            return ""
        return f"{value:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"

    def holds(self, value: float) -> bool:
        """Whether the interval contains the value."""
        return self.low <= value <= self.high


def of_draws(value: float, draws: Float) -> Estimate:
    """The estimate with the percentiles of its resamples."""
    low, high = np.quantile(draws, [0.025, 0.975])
    return Estimate(value, float(low), float(high))


def block_of(ts: Int, what: str, shortest_ns: int = 0) -> Int:
    """Block of each observation, (n,), numbered without gaps: equal spans, empty ones left out.

    A night or a break counts as a minute.

    Args:
        ts: in order, (n,) [ns].
        what: observations, for the message.
        shortest_ns: of a span, where observations reach over some time.

    Raises:
        DataError: they lie in fewer than 8 spans, so that no interval could be given.
    """
    passed = np.append(0, np.cumsum(np.clip(np.diff(ts), 0, LONGEST_GAP_NS)))
    span_ns = max(int(passed[-1]) // BLOCKS + 1, shortest_ns)
    found, block = np.unique(passed // span_ns, return_inverse=True)
    if len(found) < FEWEST_BLOCKS:
        raise DataError(
            f"{len(ts):,} {what} in {len(found)} spans of {span_ns / 1e9:.3g} s: too few for an "
            f"interval, want at least {FEWEST_BLOCKS} spans; give more data"
        )
    return block.astype(np.int64)


def sums(block: Int, values: Float, count: int = 0) -> Float:
    """Sums of (n,) or (n, k) values by block.

    Args:
        block: of each value, (n,).
        values: what is summed.
        count: blocks there are; the last need not have a value. By default as many as are named.
    """
    n = max(count, int(block.max()) + 1 if len(block) else 0)
    if values.ndim == 1:
        return np.bincount(block, values, n).astype(np.float64)
    return np.column_stack([np.bincount(block, column, n) for column in values.T])


def weights(blocks: int, resamples: int = RESAMPLES, seed: int = SEED) -> Float:
    """How often each resample draws each block, (resamples, blocks)."""
    rng = np.random.default_rng(seed)
    return rng.multinomial(blocks, np.full(blocks, 1 / blocks), resamples).astype(np.float64)


def best_on_grid(grid: Float, criterion: Float) -> Float:
    """Where each row of a criterion is largest, the vertex of a parabola through three points.

    Args:
        grid: (k,), equally spaced.
        criterion: (m, k).

    Returns:
        (m,); a maximum at either end of the grid is that end.
    """
    rows = np.arange(len(criterion))
    at = criterion.argmax(axis=1)
    inner = np.clip(at, 1, len(grid) - 2)
    left, mid, right = (criterion[rows, inner + d] for d in (-1, 0, 1))
    bend = left - 2 * mid + right
    with np.errstate(divide="ignore", invalid="ignore"):
        shift = np.where(bend < 0, (left - right) / (2 * bend), 0.0)
    found = grid[inner] + np.clip(shift, -1, 1) * (grid[1] - grid[0])
    best: Float = np.where(at == inner, found, grid[at])
    return best


def fit_on_grid(
    grid: Float, by_block: Float, combine: Callable[[Float], Float] | None = None
) -> tuple[float, Float]:
    """The best grid value of all blocks together, and of 400 resamples of them.

    Args:
        grid: (k,), equally spaced.
        by_block: (blocks, k), what is summed over blocks; larger is better.
        combine: (m, k) sums to (m, k) criteria, where a criterion is no plain sum.
    """
    drawn = np.vstack([np.ones(len(by_block)), weights(len(by_block))]) @ by_block
    found = best_on_grid(grid, combine(drawn) if combine else drawn)
    return float(found[0]), found[1:]

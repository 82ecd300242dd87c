"""What a batch of k rows takes: `alpha + beta k`, fitted, and how sure.

alpha is what a call costs whatever is in it, beta what a row adds. Both together are what a replay
charges: `latency.inference = alpha + beta`, `latency.server.per_item = beta`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hft.errors import ConfigError
from hft.inference.bench.timing import Int, clock_ns

SIZES = (1, 2, 4, 8, 16, 32, 64)
LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Curve:
    """A fitted line over batch sizes, in ns."""

    alpha_ns: float
    beta_ns: float
    alpha_interval: tuple[float, float]
    """At `LEVEL`."""
    beta_interval: tuple[float, float]
    sizes: tuple[int, ...]
    medians_ns: tuple[float, ...]
    """Measured, by size."""

    def service_ns(self, rows: int) -> int:
        """Of a batch of so many rows."""
        return round(self.alpha_ns + self.beta_ns * rows)

    @property
    def worst_misfit(self) -> float:
        """Largest distance of a measured median from the line, as a share of the line."""
        line = self.alpha_ns + self.beta_ns * np.array(self.sizes)
        return float(np.max(np.abs(np.array(self.medians_ns) / np.maximum(line, 1.0) - 1.0)))


def fit_curve(sizes: npt.NDArray[np.int64], ns: npt.NDArray[np.float64]) -> Curve:
    """Fits the line by least squares of relative errors: a long batch has longer disturbances.

    alpha below zero, which no call can have, is set to zero and beta fitted alone.

    Args:
        sizes: rows of each batch, (m,).
        ns: what each took, (m,); several of each size.

    Raises:
        ConfigError: fewer than two sizes, or fewer than three batches.
    """
    different = np.unique(sizes)
    if different.size < 2 or sizes.size < 3:
        raise ConfigError(
            f"{sizes.size} batches of {different.size} sizes: a line with an interval wants three "
            "or more batches of two or more sizes"
        )
    medians = np.array([np.median(ns[sizes == k]) for k in different])
    weight = 1.0 / np.maximum(medians[np.searchsorted(different, sizes)], 1.0)
    design = np.column_stack([np.ones(sizes.size), sizes]).astype(np.float64)
    (alpha, beta), (low, high) = _weighted(design, ns, weight)
    if alpha < 0:
        (beta,), (low1, high1) = _weighted(design[:, 1:], ns, weight)
        alpha, low, high = 0.0, np.array([0.0, low1[0]]), np.array([max(high[0], 0.0), high1[0]])
    return Curve(
        float(alpha),
        float(beta),
        (float(low[0]), float(high[0])),
        (float(low[1]), float(high[1])),
        tuple(int(k) for k in different),
        tuple(float(m) for m in medians),
    )


def _weighted(
    design: npt.NDArray[np.float64], ns: npt.NDArray[np.float64], weight: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float64], tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]]:
    """Coefficients and their interval; errors robust to unequal spread (HC1)."""
    from scipy.stats import t

    a, b = design * weight[:, None], ns * weight
    inverse = np.linalg.inv(a.T @ a)
    found = inverse @ a.T @ b
    left, (m, n) = b - a @ found, a.shape
    spread = inverse @ (a.T * left**2) @ a @ inverse * (m / (m - n))
    half = np.sqrt(np.diag(spread)) * t.ppf(0.5 + LEVEL / 2, m - n)
    return found, (found - half, found + half)


def measure_curve(
    call: Callable[[int], object],
    *,
    seconds: float,
    sizes: Sequence[int] = SIZES,
    inner: int = 9,
) -> Curve:
    """Times batches of every size, in turns, so that a slow minute is in all sizes alike.

    Args:
        call: runs one batch of so many rows.
        seconds: ends after so long; every size comes at least three times.
        sizes: of batches.
        inner: batches of a size one after the other, of which the median counts as one.
    """
    own, end = clock_ns(), time.perf_counter() + seconds
    of_size: list[int] = []
    took: list[float] = []
    for k in sizes:
        call(k)
    rounds = 0
    while rounds < 3 or (time.perf_counter() < end and rounds < 200):
        for k in sizes:
            of_size.append(k)
            took.append(max(float(np.median(_batches(call, k, inner))) - own, 0.0))
        rounds += 1
    return fit_curve(np.array(of_size, np.int64), np.array(took))


def _batches(call: Callable[[int], object], k: int, times: int) -> Int:
    took = np.empty(times, np.int64)
    for i in range(times):
        start = time.perf_counter_ns()
        call(k)
        took[i] = time.perf_counter_ns() - start
    return took

"""Kernels of our own impact: what a lot that takes still pushes the price some time later.

The core charges a sum of exponentials with weights that are not negative, and a part that stays:
`G(t) = sum_k w_k 2^(-t / half_life_k) + permanent`, in ticks a lot. The cost of trades `x_i` at
`t_i` is `1/2 x'Gx`; with such a kernel it is never negative, so nothing can be earned by pushing
the price and trading against the push. Other shapes come in through this module: a power law, which
twelve exponentials follow to 0.3 % over seven decades, or samples, which are refused where they
admit free money.

Source: Gatheral, "No-dynamic-arbitrage and market impact" (2010); Alfonsi, Schied, Slynko, "Order
book resilience, price manipulation, and the positive portfolio problem" (2012): a convex and
decreasing kernel is positive definite, and its best liquidation never buys.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hft.config import ImpactConfig
from hft.durations import parse_ns
from hft.errors import ConfigError

Floats = npt.NDArray[np.float64]

SECOND_NS = 1_000_000_000
FIRST_PACKETS, PIECE = 1 << 18, 1 << 16
SHORTEST, LONGEST = 1e-2, 1e5
"""Times, in those of a power law, between which exponentials follow it."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """A sum of decays. Weights in ticks a lot; they and `permanent` are not negative.

    Raises:
        ConfigError: it is none.
    """

    weights: tuple[float, ...]
    half_lives_ns: tuple[int, ...]
    permanent: float = 0.0

    def __post_init__(self) -> None:
        if len(self.weights) != len(self.half_lives_ns):
            raise ConfigError(
                f"a kernel has {len(self.weights)} weights and {len(self.half_lives_ns)} "
                "half-lives: as many are wanted"
            )
        for k, (weight, half_life) in enumerate(zip(self.weights, self.half_lives_ns, strict=True)):
            if not (weight >= 0 and math.isfinite(weight)):
                raise ConfigError(f"weight {k} of a kernel is {weight}: expected a number >= 0")
            if not half_life > 0:
                raise ConfigError(f"half-life {k} of a kernel is {half_life} ns: expected above 0")
        if not (self.permanent >= 0 and math.isfinite(self.permanent)):
            raise ConfigError(f"a kernel's permanent part is {self.permanent}: expected >= 0")

    @classmethod
    def of_config(cls, config: ImpactConfig) -> Kernel:
        """The kernel that a recipe's `[venue.impact]` describes, in its unit."""
        half_lives = tuple(parse_ns(each) for each in config.half_lives)
        return cls(config.weights, half_lives, config.permanent)

    @classmethod
    def from_power_law(cls, g0: float, t0_s: float, gamma: float, n: int = 12) -> Kernel:
        """The nearest sum of `n` decays to `g0 * (1 + t / t0)^-gamma`.

        With 12 it is within 0.3 % from no time at all to 1e5 `t0`, for gammas up to 0.9.

        Args:
            g0: push at once [ticks a lot].
            t0_s: where the power law begins [s].
            gamma: its exponent; impact that is linear in size and decays by less than 1.
            n: exponentials.
        """
        for name, value in (("g0", g0), ("t0_s", t0_s), ("gamma", gamma)):
            if not (value > 0 and math.isfinite(value)):
                raise ConfigError(f"{name} of a power law is {value}: expected a number above 0")
        if n < 2:
            raise ConfigError(f"n of a power law is {n}: expected at least 2 exponentials")
        times = np.concatenate([[0.0], np.geomspace(SHORTEST, LONGEST, 400)])
        wanted = (1.0 + times) ** -gamma
        fits = [
            _fit(times, wanted, np.geomspace(first, last, n), relative=True)
            for first in (0.2, 0.3, 0.5, 0.7)
            for last in LONGEST * np.array([1.0, 2.0, 3.0, 6.0, 10.0, 20.0])
        ]
        scales, weights, _, _ = min(fits, key=lambda fit: fit[3])
        return _kernel(g0 * weights, t0_s * scales, 0.0)

    @classmethod
    def from_samples(cls, times_s: Sequence[float], values: Sequence[float], n: int = 32) -> Kernel:
        """The nearest sum of decays, and a part that stays, to a sampled kernel.

        Args:
            times_s: ascending from 0 [s], (m,).
            values: push of one lot after that time [ticks], (m,).
            n: exponentials offered, of which most get no weight.

        Raises:
            ConfigError: the samples admit free money, or no sum of decays is near them.
        """
        times, wanted = _samples(times_s, values)
        refuse_free_money(times, wanted)
        scales = np.geomspace(times[1] / 4, 4 * times[-1], n)
        scales, weights, permanent, miss = _fit(times, wanted, scales, relative=False)
        if miss > 0.1 * wanted[0]:
            raise ConfigError(
                f"no sum of exponential decays comes nearer than {miss:.3g} to a kernel that "
                f"begins with {wanted[0]:.3g} ticks a lot, and others are not charged"
            )
        return _kernel(weights, scales, permanent)

    def at(self, dt_ns: npt.ArrayLike) -> Floats:
        """What one lot still pushes so long after [ticks], of the shape of `dt_ns`."""
        dt = np.asarray(dt_ns, np.float64)
        half_lives = np.asarray(self.half_lives_ns, np.float64)
        decays = np.exp2(-dt[..., None] / half_lives) @ np.asarray(self.weights, np.float64)
        return np.asarray(decays + self.permanent)

    def matrix(self, ts: npt.ArrayLike) -> Floats:
        """What a lot at each time pushes at each other, (n, n) [ticks a lot]; `ts` in ns, (n,)."""
        at = np.asarray(ts, np.int64)
        return self.at(np.abs(at[:, None] - at[None, :]))

    def cost(self, ts: npt.ArrayLike, lots: npt.ArrayLike) -> float:
        """What signed trades cost because of their push [ticks * lots]: `1/2 x'Gx`.

        Args:
            ts: their times [ns], (n,).
            lots: bought when positive, (n,).
        """
        x = np.asarray(lots, np.float64)
        return float(x @ self.matrix(ts) @ x) / 2

    def to_config(self) -> ImpactConfig:
        """As a recipe's `[venue.impact]`, in ticks a lot."""
        return ImpactConfig(
            weights=self.weights, half_lives=self.half_lives_ns, permanent=self.permanent
        )


def ticks_per_lot(config: ImpactConfig, spread_ticks: float, depth_lots: float) -> ImpactConfig:
    """The same push in ticks a lot, where it is told as a share of a market's spread and depth.

    Args:
        config: of either unit; one in ticks a lot comes back as it is.
        spread_ticks: mean spread [ticks].
        depth_lots: mean size at the touch [lots].

    Raises:
        ConfigError: a market without spread or depth has no such unit.
    """
    if config.unit == "ticks_per_lot":
        return config
    for name, value in (("spread", spread_ticks), ("depth", depth_lots)):
        if not (value > 0 and math.isfinite(value)):
            raise ConfigError(
                f'impact.unit is "spread_per_depth", but the mean {name} of the market is {value}: '
                'give the weights in "ticks_per_lot"'
            )
    unit = spread_ticks / depth_lots
    return ImpactConfig(
        weights=tuple(weight * unit for weight in config.weights),
        half_lives=config.half_lives,
        permanent=config.permanent * unit,
    )


def mean_touch(chunks: Iterable[npt.NDArray[Any]]) -> tuple[float, float]:
    """Mean spread [ticks] and mean size at the touch [lots] while the first packets traded openly.

    Args:
        chunks: EVENT rows, cut anyhow; 2^18 such packets are looked at.
    """
    from hft.data.books import NO_PRICE, BookStream
    from hft.types import Trading

    book, count, spread, lots = BookStream(), 0, 0, 0
    pieces = (rows[at : at + PIECE] for rows in chunks for at in range(0, len(rows), PIECE))
    for rows in pieces:
        seen = book.feed(rows)
        trades = (seen["trading"] == Trading.OPEN) & (seen["bid"] < seen["ask"])
        seen = seen[trades & (seen["bid"] != NO_PRICE) & (seen["ask"] != NO_PRICE)]
        seen = seen[: FIRST_PACKETS - count]
        count += seen.size
        spread += int((seen["ask"] - seen["bid"]).sum())
        lots += int((seen["bid_lots"] + seen["ask_lots"]).sum())
        if count == FIRST_PACKETS:
            break
    return (spread / count, lots / count / 2) if count else (math.nan, math.nan)


def refuse_free_money(times_s: npt.ArrayLike, values: npt.ArrayLike) -> None:
    """Refuse a sampled kernel that would pay somebody for pushing the price.

    Three tests: on random grids of times no round trip may have a negative cost, and no best
    liquidation may buy on its way; and the kernel must start at once, never rise, and fall ever
    more slowly: no build-up, plateau or delayed onset.

    Raises:
        ConfigError: with the test that failed and its figure.
    """
    times, values = _samples(times_s, values)
    least, trade = _worst_on_grids(times, values)
    if least < -1e-10:
        raise ConfigError(
            f"the kernel pays for some round trips: least eigenvalue of its matrix {least:.3g} of "
            "the largest"
        )
    if trade < -1e-6:
        raise ConfigError(
            f"the kernel pays for trading against oneself: its best liquidation holds a trade of "
            f"{trade:.3g} times the whole in the wrong direction"
        )
    scale = 1e-9 * values[0]
    slopes = np.diff(values) / np.diff(times)
    faults = {
        f"is negative at {times[np.argmin(values)]:g} s": values.min() < -scale,
        f"rises after {times[np.argmax(slopes)]:g} s": np.diff(values).max() > scale,
        "is not convex: a push must start at once and decay ever more slowly": bool(
            (np.diff(slopes) < -scale / np.diff(times)[1:]).any()
        ),
    }
    for fault, found in faults.items():
        if found:
            raise ConfigError(f"the kernel {fault}")


def _worst_on_grids(times: Floats, values: Floats) -> tuple[float, float]:
    """Least eigenvalue over the largest, and least trade over the whole, of random liquidations."""
    rng = np.random.default_rng(1)
    span, least, trade = times[-1], math.inf, math.inf
    for size in (2, 3, 5, 8, 12, 20, 30):
        for even in (True, False, False, False, False):
            grid = np.linspace(0.0, 1.0, size) if even else np.sort(rng.random(size))
            # Spread a little: two trades at almost one time only test the arithmetic.
            grid = span * rng.uniform(0.05, 1.0) * (0.9 * grid + 0.1 * np.linspace(0.0, 1.0, size))
            g = np.interp(np.abs(grid[:, None] - grid[None, :]), times, values)
            eigenvalues = np.linalg.eigvalsh(g)
            least = min(least, float(eigenvalues[0] / eigenvalues[-1]))
            trade = min(trade, _least_trade(g))
    return least, trade


def _least_trade(g: Floats) -> float:
    trades = np.linalg.lstsq(g, np.ones(len(g)), rcond=1e-14)[0]
    return float(trades.min() / abs(trades.sum()))


def _samples(times_s: npt.ArrayLike, values: npt.ArrayLike) -> tuple[Floats, Floats]:
    times, pushes = np.asarray(times_s, np.float64), np.asarray(values, np.float64)
    if times.ndim != 1 or times.shape != pushes.shape or len(times) < 3:
        raise ConfigError(
            f"a sampled kernel has times of shape {times.shape} and values of shape "
            f"{pushes.shape}: expected as many of both, at least 3"
        )
    if not (np.isfinite(times).all() and np.isfinite(pushes).all()):
        raise ConfigError("a sampled kernel has times or values that are no finite numbers")
    if times[0] != 0 or (np.diff(times) <= 0).any():
        raise ConfigError("times of a sampled kernel must ascend from 0")
    if not pushes[0] > 0:
        raise ConfigError(
            f"a sampled kernel pushes {pushes[0]:g} at once: expected more than 0, or a later push "
            "could be traded ahead of"
        )
    return times, pushes


def _fit(
    times: Floats, wanted: Floats, scales: Floats, *, relative: bool
) -> tuple[Floats, Floats, float, float]:
    """(scales, weights, permanent, largest miss); a part that stays only where it is not relative.

    Scales are those of exp(-t / scale).
    """
    from scipy.optimize import nnls

    columns = np.exp(-times[:, None] / scales)
    if not relative:
        columns = np.column_stack([columns, np.ones_like(times)])
    unit = wanted if relative else np.ones_like(wanted)
    found = nnls(columns / unit[:, None], wanted / unit, maxiter=100 * columns.shape[1])[0]
    miss = float(np.abs((columns @ found - wanted) / unit).max())
    permanent = 0.0 if relative else float(found[-1])
    return scales, found[: len(scales)], permanent, miss


def _kernel(weights: Floats, scales_s: Floats, permanent: float) -> Kernel:
    kept = weights > 0
    half_lives = np.maximum(np.rint(scales_s[kept] * math.log(2) * SECOND_NS), 1)
    return Kernel(
        tuple(float(w) for w in weights[kept]), tuple(int(h) for h in half_lives), permanent
    )

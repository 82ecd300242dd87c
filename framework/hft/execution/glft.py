"""Stationary quotes of Gueant, Lehalle and Fernandez-Tapia, and the market facts they rest on.

A maker with constant absolute risk aversion `gamma` quotes around a fair price that diffuses with
`sigma`; an order `depth` ticks away from it is reached at the rate `a * exp(-k * depth)`. Far from
the horizon the best quotes are, to a good approximation,

    bid depth = c1 + (2 q + 1) / 2 * R
    ask depth = c1 - (2 q - 1) / 2 * R
    c1 = ln(1 + gamma / k) / gamma
    R  = sqrt(sigma^2 gamma / (2 k a) * (1 + gamma / k)^(1 + k / gamma))

`q` is the position in orders: lots held divided by lots an order. Prices are in ticks and times in
seconds, so `sigma` is in ticks per sqrt(s), `k` in 1/tick, `a` in 1/s and `gamma` in 1/tick.

Source: Gueant, Lehalle, Fernandez-Tapia, "Dealing with the inventory risk" (2013), section 4;
Gueant, "The financial mathematics of market liquidity" (2016), chapter 10.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hft.errors import ConfigError

Floats = npt.NDArray[np.float64]

FARTHEST = 10
"""Quotes so many times deeper than what was measured would be extrapolated: there are none."""


@dataclass(frozen=True, slots=True)
class Intensity:
    """How often an order at a depth is reached: `a * exp(-k * depth)` a second."""

    a: float
    k: float

    def rate(self, depth_ticks: float) -> float:
        """Arrivals a second that reach `depth_ticks`."""
        return self.a * math.exp(-self.k * depth_ticks)


@dataclass(frozen=True, slots=True)
class GlftQuotes:
    """The two depths as functions of the position in orders."""

    half_spread_ticks: float
    """c1 + R / 2: the depth on both sides when flat."""
    skew_ticks: float
    """R: how far both quotes move down for an order held."""

    def bid_depth(self, q: float) -> float:
        """Ticks below the fair price."""
        return self.half_spread_ticks + q * self.skew_ticks

    def ask_depth(self, q: float) -> float:
        """Ticks above the fair price."""
        return self.half_spread_ticks - q * self.skew_ticks


def glft_quotes(gamma: float, sigma: float, intensity: Intensity) -> GlftQuotes:
    """Stationary quotes for a risk aversion and a market.

    Raises:
        ConfigError: gamma, a or k is not above 0, or sigma is negative.
    """
    a, k = intensity.a, intensity.k
    if not (gamma > 0 and a > 0 and k > 0 and sigma >= 0):
        raise ConfigError(
            f"GLFT quotes need gamma, a, k > 0 and sigma >= 0; were {gamma}, {a}, {k}, {sigma}"
        )
    c1 = math.log1p(gamma / k) / gamma
    # By logarithms: for a small gamma, 1 + gamma / k would lose all its digits.
    power = math.exp((1 + k / gamma) * math.log1p(gamma / k))
    skew = math.sqrt(sigma**2 * gamma / (2 * k * a) * power)
    return GlftQuotes(c1 + skew / 2, skew)


def fit_intensity(depths_ticks: Floats, rates: Floats) -> Intensity | None:
    """Straight line through log(rate) over depth; None where it does not fall.

    Weights are the rates, since the variance of a log of a count is about one over the count. So
    the line is fitted where orders do get filled; the far tail is fatter than an exponential.

    Args:
        depths_ticks: (n,) distances from the mid [ticks].
        rates: (n,) arrivals a second that reached them; zeros count for nothing.
    """
    seen = rates > 0
    if int(seen.sum()) < 2:
        return None
    x, y, w = depths_ticks[seen], np.log(rates[seen]), rates[seen]
    dx, dy = x - np.average(x, weights=w), y - np.average(y, weights=w)
    slope = float((w * dx * dy).sum() / (w * dx**2).sum())
    if slope >= 0:
        return None
    log_a = float(np.average(y, weights=w)) - slope * float(np.average(x, weights=w))
    return Intensity(a=math.exp(log_a), k=-slope)


class Pace:
    """Volatility and intensity of one instrument, measured as time goes, the old forgotten.

    Fed slice by slice with the mid at the slice's end and how far its prints reached, all known by
    then. Depth is from the mid at the slice's *start*: that is where a maker who quotes once a
    slice had put his orders.

    Args:
        slice_s: length of a slice [s].
        half_life_s: time after which a slice counts half.
        max_ticks: deepest depth that is counted.
    """

    def __init__(self, slice_s: float, half_life_s: float, max_ticks: int = 4) -> None:
        self._slice_s = slice_s
        self._keep = 0.5 ** (slice_s / half_life_s)
        self._reached = np.zeros(max_ticks + 1)
        self._seconds = self._squares = 0.0
        self._mid = math.nan
        self._high, self._low = -math.inf, math.inf

    def prints(self, high: float, low: float) -> None:
        """Highest and lowest print of the slice that is about to end [ticks]."""
        self._high, self._low = max(self._high, high), min(self._low, low)

    def end_slice(self, mid: float) -> None:
        """The mid at the slice's end [ticks]; NaN, where there is none, drops the slice."""
        if not math.isnan(mid - self._mid):
            self._reached *= self._keep
            for depth in (self._high - self._mid, self._mid - self._low):
                if depth >= 0:
                    self._reached[: int(depth) + 1] += 1
            self._seconds = self._seconds * self._keep + self._slice_s
            self._squares = self._squares * self._keep + (mid - self._mid) ** 2
        self._mid = mid
        self._high, self._low = -math.inf, math.inf

    @property
    def seconds(self) -> float:
        """How much time the figures rest on, the older counted less."""
        return self._seconds

    @property
    def sigma(self) -> float:
        """Ticks per sqrt(s)."""
        return math.sqrt(self._squares / self._seconds) if self._seconds else math.nan

    def intensity(self) -> Intensity | None:
        """Of one side, both taken together; None while there is too little to fit."""
        if not self._seconds:
            return None
        depths = np.arange(len(self._reached), dtype=np.float64)
        return fit_intensity(depths, self._reached / (2 * self._seconds))

    def quotes(self, gamma: float) -> GlftQuotes | None:
        """Stationary quotes for the market as measured; None while it cannot be.

        Where rates hardly fall over the depth that is measured, as where the spread is wider than
        it, the formulas give quotes at no price at all: that counts as not measured.
        """
        intensity = self.intensity()
        if intensity is None:
            return None
        try:
            quotes = glft_quotes(gamma, self.sigma, intensity)
        except OverflowError:
            return None
        farthest = FARTHEST * (len(self._reached) - 1)
        return quotes if quotes.half_spread_ticks <= farthest else None

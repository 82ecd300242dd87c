"""What trading should cost by laws of others: checks of a simulated cost, never a part of it.

Prices, sizes and times are in whatever unit the caller keeps to; all functions work on arrays.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hft.errors import ConfigError

Float = NDArray[np.float64]

SQUARE_ROOT_Y = 1.0
ALMGREN_GAMMA, ALMGREN_ETA, ALMGREN_EXPONENT = 0.314, 0.142, 0.6
BAND = (0.5, 2.0)
"""A simulated cost outside this much of a law deserves a look."""


def square_root(q: ArrayLike, sigma: float, volume: float, y: float = SQUARE_ROOT_Y) -> Float:
    """Cost a lot of trading q, Y sigma sqrt(q / V); sigma and V over the same time.

    Source:
        Toth et al. (2011), "Anomalous price impact and the critical nature of liquidity"; exponent
        1/2 by Sato and Kanazawa (2024).
    """
    cost: Float = y * sigma * np.sqrt(np.asarray(q, np.float64) / volume)
    return cost


def almgren_2005(
    q: ArrayLike,
    days: ArrayLike,
    sigma: float,
    volume: float,
    outstanding: float | None = None,
) -> Float:
    """Cost a lot of trading q evenly over `days`: half the permanent impact and the temporary one.

        gamma / 2 * sigma * q / V * (Theta / V)^(1/4) + eta * sigma * (q / (V days))^(3/5)

    Args:
        q: lots.
        days: trading days that it took, > 0.
        sigma: of a trading day.
        volume: lots of a trading day.
        outstanding: Theta, shares there are; None leaves its factor out, where no such thing is.

    Source:
        Almgren, Thum, Hauptmann and Li (2005), "Direct estimation of equity market impact".
    """
    share = np.asarray(q, np.float64) / volume
    shape = 1.0 if outstanding is None else (outstanding / volume) ** 0.25
    permanent = ALMGREN_GAMMA * sigma * share * shape
    rate = share / np.asarray(days, np.float64)
    cost: Float = permanent / 2 + ALMGREN_ETA * sigma * rate**ALMGREN_EXPONENT
    return cost


@dataclass(frozen=True, slots=True)
class AlmgrenChriss:
    """Liquidation with linear permanent and temporary impact.

    A trade of n in a period of length tau costs a lot epsilon + eta n / tau, and moves the price by
    gamma n for good.

    Attributes:
        sigma: price volatility, per root of a unit of time.
        epsilon: half spread and fees.
        eta: temporary impact, price per rate of trading.
        gamma: permanent impact, price per lot.

    Source:
        Almgren and Chriss (2000), "Optimal execution of portfolio transactions".
    """

    sigma: float
    epsilon: float
    eta: float
    gamma: float

    @classmethod
    def by_their_rule(cls, sigma: float, spread: float, volume: float) -> AlmgrenChriss:
        """Their own choice of parameters, by the day.

        A tenth of the day's volume moves the price by a spread for good; every hundredth of it
        traded a day costs a spread more.
        """
        return cls(sigma, spread / 2, spread / (0.01 * volume), spread / (0.1 * volume))

    def kappa(self, risk_aversion: float, tau: float) -> float:
        """Urgency of the best trajectory [1 / time], from 2 (cosh(k tau) - 1) / tau^2.

        Raises:
            ConfigError: periods so long that permanent impact outweighs the temporary one.
        """
        curve = risk_aversion * self.sigma**2 / self._eta(tau)
        return float(np.arccosh(1 + curve * tau**2 / 2)) / tau

    def trajectory(self, lots: float, time: float, periods: int, risk_aversion: float) -> Float:
        """Lots still held after 0 ... `periods` periods, (periods + 1,); even without aversion."""
        left = np.linspace(time, 0.0, periods + 1)
        kappa = self.kappa(risk_aversion, time / periods)
        if kappa == 0:
            return lots * left / time
        held: Float = lots * np.sinh(kappa * left) / np.sinh(kappa * time)
        return held

    def cost(self, held: Float, tau: float) -> tuple[float, float]:
        """Expectation and standard deviation of what a trajectory costs.

        Args:
            held: lots after 0 ... n periods, (n + 1,).
            tau: length of one.
        """
        sold = -np.diff(held)
        expected = (
            self.gamma * (held[0] ** 2 - held[-1] ** 2) / 2
            + self.epsilon * np.abs(sold).sum()
            + self._eta(tau) / tau * (sold**2).sum()
        )
        return float(expected), float(self.sigma * np.sqrt(tau * (held[1:] ** 2).sum()))

    def even_cost(self, lots: ArrayLike, time: ArrayLike) -> Float:
        """Expected cost of trading `lots` evenly, without pause, over `time`."""
        lots = np.asarray(lots, np.float64)
        spent: Float = self.gamma * lots**2 / 2 + self.epsilon * lots
        return spent + self.eta * lots**2 / np.asarray(time, np.float64)

    def _eta(self, tau: float) -> float:
        eta = self.eta - self.gamma * tau / 2
        if eta <= 0:
            raise ConfigError(
                f"eta {self.eta:g} must exceed gamma * tau / 2 = {self.gamma * tau / 2:g}: "
                "take shorter periods"
            )
        return eta

"""Profit and loss taken apart, and checked against the account that the core kept.

    total = spread + inventory - fees + funding - impact
    spread    = sum of side * lots * (mid - price)    what fills gave or took against the mid
    inventory = sum of position * change of mid       between fills, then to the last mark
    fees      = sum of what fills paid                negative: rebates
    impact    = sum of what our own trading added to prices paid

The sum telescopes to the cash account, whatever mids are used in between, so it must agree with the
equity of the last sample to the unit. Linear contracts are summed in whole numbers, doubled because
a mid may lie half a tick off; an odd tick value leaves the core half a unit to round. Where a lot's
tick is worth less than a unit, and for inverse contracts, which are worth -lots * c / price in base
currency and are summed in floating point, the core rounds each fill: one unit a fill is allowed.

Fills without a mid (`mid2` is NO_PRICE: the venue's book had no two sides) take the last known one
of their instrument, the first ones their own price, which books nothing as spread. Only fills
reported to us by the last sample count: the account knew no others. The account is taken to open
flat and at zero.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hft.analysis.records import NO_PRICE, NO_TIME
from hft.analysis.run_data import InstrumentFacts, Rows, RunData
from hft.analysis.units import MONEY_PER_UNIT

Int = NDArray[np.int64]
Float = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Split:
    """One instrument's result [half units of 1e-9 currency, unless said otherwise].

    Attributes:
        fills: fills that count.
        late_fills: fills that the last sample could not know.
        fees: paid [1e-9 currency].
        impact: paid to our own push of the price [1e-9 currency].
        funding: received [1e-9 currency].
        equity: the core's own figure at the last sample [1e-9 currency]; None without samples.
        position: sum of the fills [lots].
        position_gap: the last sample's position less that [lots].
        tolerance2: how far the identity may be off.
    """

    instrument: str
    currency: str
    fills: int
    late_fills: int
    spread2: int
    inventory2: int
    fees: int
    impact: int
    funding: int
    equity: int | None
    position: int
    position_gap: int
    tolerance2: int

    @property
    def total2(self) -> int:
        """Spread + inventory - fees + funding - impact."""
        return self.spread2 + self.inventory2 + 2 * (self.funding - self.fees - self.impact)

    @property
    def residual2(self) -> int | None:
        """What the core's equity differs by; None without samples."""
        return None if self.equity is None else self.total2 - 2 * self.equity

    @property
    def holds(self) -> bool:
        """Whether the identity holds; with no sample there is nothing to hold it against."""
        residual = self.residual2
        return residual is None or (abs(residual) <= self.tolerance2 and self.position_gap == 0)


def split(run: RunData, instrument: int) -> Split:
    """Take one instrument's result apart."""
    facts = run.instruments[instrument]
    samples = run.samples[run.samples["instrument"] == instrument]
    every = run.fills[run.fills["instrument"] == instrument]
    fills = every[known_by_account(every, samples)]
    signed = signed_lots(fills)
    mid2 = fill_mid2(fills)
    mark2 = last_mark2(samples, mid2)
    position = int(signed.sum())
    exact = not facts.spec.inverse and facts.tick_value_e9.denominator == 1
    parts = _inverse if facts.spec.inverse else _linear
    spread2, inventory2 = parts(facts, fills["price"], signed, mid2, mark2)
    last = samples[-1] if samples.size else None
    return Split(
        instrument=facts.name,
        currency=facts.spec.currency,
        fills=len(fills),
        late_fills=len(every) - len(fills),
        spread2=spread2,
        inventory2=inventory2,
        fees=int(fills["fee"].sum()),
        impact=int(fills["impact"].sum()),
        funding=0 if last is None else -int(last["funding"]),
        equity=None if last is None else int(last["equity"]),
        position=position,
        position_gap=0 if last is None else int(last["position"]) - position,
        tolerance2=1 if exact else 2 * (len(fills) + 1),
    )


def signed_lots(fills: Rows) -> Int:
    """Lots, positive when bought, (n,) int64."""
    signed: Int = fills["side"].astype(np.int64) * fills["lots"]
    return signed


def known_by_account(fills: Rows, samples: Rows) -> NDArray[np.bool_]:
    """Fills that had been reported by the last sample, (n,); all where there is no sample."""
    if not samples.size:
        return np.ones(fills.size, bool)
    known: NDArray[np.bool_] = (fills["ts_recv"] != NO_TIME) & (
        fills["ts_recv"] <= samples["ts"][-1]
    )
    return known


def fill_mid2(fills: Rows) -> Int:
    """Bid + ask at one instrument's fills, holes filled as the module says, (n,) [half ticks]."""
    mid2, known = fills["mid2"].copy(), fills["mid2"] != NO_PRICE
    source = (
        np.maximum.accumulate(np.where(known, np.arange(fills.size), -1)) if fills.size else mid2
    )
    return np.where(source >= 0, mid2[source], 2 * fills["price"]) if fills.size else mid2


def last_mark2(samples: Rows, mid2: Int) -> int:
    """Bid + ask of the last sample with two sides, else at the last fill, else 0 [half ticks]."""
    two_sided = np.flatnonzero((samples["bid"] != NO_PRICE) & (samples["ask"] != NO_PRICE))
    if two_sided.size:
        last = samples[two_sided[-1]]
        return int(last["bid"]) + int(last["ask"])
    return int(mid2[-1]) if mid2.size else 0


def notional(facts: InstrumentFacts, price: Int, lots: Int) -> Float:
    """What was traded, (n,) float64 [settlement currency]."""
    if facts.spec.inverse:
        return np.abs(lots) * facts.inverse_value_e9 / price / MONEY_PER_UNIT
    return np.abs(lots).astype(np.float64) * price * float(facts.tick_value_e9) / MONEY_PER_UNIT


def spread_gain(facts: InstrumentFacts, fills: Rows) -> Float:
    """What each fill of one instrument gave against the mid, (n,) float64 [settlement currency]."""
    signed, mid2, price = signed_lots(fills), fill_mid2(fills), fills["price"]
    gain: Float
    if facts.spec.inverse:
        gain = signed * (facts.inverse_value_e9 / MONEY_PER_UNIT) * (1.0 / price - 2.0 / mid2)
    else:
        gain = signed * (mid2 - 2 * price) * (float(facts.tick_value_e9) / 2 / MONEY_PER_UNIT)
    return gain


def _linear(
    facts: InstrumentFacts, price: Int, signed: Int, mid2: Int, mark2: int
) -> tuple[int, int]:
    moves = np.diff(mid2, append=mark2)
    spread = int((signed * (mid2 - 2 * price)).sum())
    inventory = int((np.cumsum(signed) * moves).sum())
    # Python integers from here on: times the tick value, 64 bits may not be enough.
    return round(spread * facts.tick_value_e9), round(inventory * facts.tick_value_e9)


def _inverse(
    facts: InstrumentFacts, price: Int, signed: Int, mid2: Int, mark2: int
) -> tuple[int, int]:
    if not signed.size:
        return 0, 0
    worth = -2.0 / np.append(mid2, mark2)  # of one lot, over inverse_value_e9
    spread = math.fsum(signed * (worth[:-1] + 1.0 / price))
    inventory = math.fsum(np.cumsum(signed) * np.diff(worth))
    scale = 2.0 * facts.inverse_value_e9
    return round(spread * scale), round(inventory * scale)

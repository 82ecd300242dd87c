"""What takers and parents paid in a run, set beside three laws of what trading costs.

Takers are orders without a parent that took all they got: they paid spread, walk and what was
charged. Parents paid all but fees, from the mid of their first decision on. Sigma is the root of
the sum of squared changes of the mid from sample to sample, V what the market traded in the run;
the square-root law wants no more, for both grow with time alike. The other two are by the day:
there sigma and V are scaled to 24 hours, and only parents that took time are asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hft.analysis.cost_laws import BAND, AlmgrenChriss, almgren_2005, square_root
from hft.analysis.pnl import Float, Int
from hft.analysis.records import NO_PRICE
from hft.analysis.run_data import RunData
from hft.analysis.shortfall import Shortfall, notional, parents_of
from hft.analysis.trading import ratio
from hft.analysis.units import MONEY_PER_UNIT, NS_PER_S

Figures = dict[str, Any]

DAY_NS = 86_400 * NS_PER_S
PAID_BY_TAKERS = ("timing", "spread", "walk", "charged")


@dataclass(frozen=True, slots=True)
class _Market:
    """An instrument's market over the run [ticks, lots]."""

    sigma: float
    volume: int
    spread: float
    mid2: int
    days: float


@dataclass(frozen=True, slots=True)
class _Paid:
    """Orders or parents, (n,): lots, their cost [currency], and how long they took [days]."""

    lots: Float
    cost: Float
    days: Float


def cost_checks(run: RunData, by_instrument: Sequence[Shortfall | None]) -> list[Figures]:
    """Simulated costs against the laws, for each instrument whose run can tell sigma and V."""
    checks = []
    for instrument, facts in enumerate(run.instruments):
        short, market = by_instrument[instrument], _market(run, instrument)
        if short is None or market is None:
            continue
        # What a tick of one lot is worth, an inverse contract's at the last mid.
        mid2 = np.array([market.mid2])
        worth = float(notional(facts, np.array([1]), mid2)[0]) / (market.mid2 / 2)
        for law, of, paid, ticks in _asked(short, market):
            check = _check(paid.cost, ticks * paid.lots * worth)
            names = {"name": facts.name, "currency": facts.spec.currency, "law": law, "of": of}
            checks.append({**names, **check})
    return checks


def _asked(short: Shortfall, market: _Market) -> Iterator[tuple[str, str, _Paid, Float]]:
    """Law, who is asked, what they paid, and what the law expects a lot [ticks]."""
    takers, parents = _takers(short), _parents(short)
    for of, paid in (("takers", takers), ("parents", parents)):
        if paid.lots.size:
            yield "square root", of, paid, square_root(paid.lots, market.sigma, market.volume)
    slow = parents.days > 0
    if not slow.any():
        return
    paid = _Paid(parents.lots[slow], parents.cost[slow], parents.days[slow])
    sigma, volume = market.sigma / market.days**0.5, market.volume / market.days
    yield "Almgren et al. 2005", "parents", paid, almgren_2005(paid.lots, paid.days, sigma, volume)
    theirs = AlmgrenChriss.by_their_rule(sigma, market.spread, volume)
    yield "Almgren-Chriss", "parents", paid, theirs.even_cost(paid.lots, paid.days) / paid.lots


def _check(cost: Float, expected: Float) -> Figures:
    times, each = ratio(cost.sum(), expected.sum()), cost / expected
    return {
        "n": int(cost.size),
        "simulated": float(cost.sum()),
        "expected": float(expected.sum()),
        "ratio": times,
        "in_band": float(((each >= BAND[0]) & (each <= BAND[1])).mean()),
        "flagged": times is None or not BAND[0] <= times <= BAND[1],
    }


def _market(run: RunData, instrument: int) -> _Market | None:
    """None where the run cannot tell volume or volatility."""
    samples = run.samples[run.samples["instrument"] == instrument]
    samples = samples[(samples["bid"] != NO_PRICE) & (samples["ask"] != NO_PRICE)]
    if samples.size < 3 or not run.traded_lots or run.traded_lots[instrument] <= 0:
        return None
    mid2 = samples["bid"] + samples["ask"]
    sigma = float(np.sqrt((np.diff(mid2 / 2) ** 2).sum()))
    days = (int(samples["ts"][-1]) - int(samples["ts"][0])) / DAY_NS
    if sigma == 0 or days <= 0:
        return None
    spread = float((samples["ask"] - samples["bid"]).mean())
    return _Market(sigma, run.traded_lots[instrument], spread, int(mid2[-1]), days)


def _takers(short: Shortfall) -> _Paid:
    orders = short.orders
    chosen = (short.taken == short.filled) & (short.filled > 0) & (orders["parent"] == 0)
    cost: Int = sum(
        (short.parts[name] for name in PAID_BY_TAKERS), start=np.zeros(orders.size, np.int64)
    )
    lots = short.filled[chosen].astype(np.float64)
    return _Paid(lots, cost[chosen] / (2 * MONEY_PER_UNIT), np.zeros(lots.size))


def _parents(short: Shortfall) -> _Paid:
    parents = parents_of(short)
    cost: Int = sum(
        (part for name, part in parents.parts.items() if name != "fees"),
        start=np.zeros(parents.lots.size, np.int64),
    )
    traded = parents.lots > 0
    lots, days = parents.lots[traded].astype(np.float64), parents.took_ns[traded] / DAY_NS
    return _Paid(lots, cost[traded] / (2 * MONEY_PER_UNIT), days)

"""Implementation shortfall: what carrying decisions out cost, order by order (Perold 1988).

An order for X lots of side e was decided on market data whose mid was m0. On paper it trades all of
X at m0, at once and for nothing; what really came of it falls short of that by

    e * (sum f p - F m0) + e * (X - F) * (m_end - m0) + fees + what our own push of the price cost

with fills f at p, F lots in all, and the mid at the order's end for what was never filled. The same
sum again, stage by stage; m(T) is the venue's mid as of T, whether or not we could know it:

    feed         e F (m(recv) - m(event))       while the market data came to us
    wait         e F (m(model_start) - ...)     while they waited for the model
    service      e F (m(model_end) - ...)       while it worked
    gateway      e F (m(send) - ...)            strategy and risk, their queue included
    network      e F (m(arrive) - ...)          while the order went to the venue
    timing       e sum f (mid - m(arrive))      from its arrival to each fill
    spread       e sum f (touch - mid)          crossed by takers; makers earn it: their touch is
                                                their price
    walk         e sum f (p - touch)            beyond the touch
    charged      what the impact overlay, or a slippage model, added
    opportunity  e (X - F) (m_end - m0)
    fees

Positive is a cost. Each stage is the difference of two whole numbers of half units of 1e-9
currency, so the stages add up exactly to the sum of their own; that is held against the order's
own row (of an inverse contract against the cash that the core booked), kept by another path.
Linear contracts with a whole tick value agree to the unit, others within one unit a fill.

A mid that is missing (one side empty, a book not to be believed) is taken as the one of the stamp
before, the first as the next one that is known, else from the order's fills, else from its price:
that moves a cost between stages and, where m0 is missing, moves the paper trade; it never breaks
the sum. A taker's fill without a touch takes its own price for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hft.analysis.mids import STAMPS
from hft.analysis.pnl import Float, Int
from hft.analysis.records import NO_PRICE, NO_TIME
from hft.analysis.run_data import InstrumentFacts, Rows, RunData
from hft.analysis.units import MONEY_PER_UNIT

LEGS = {
    "feed": "ts_cause_recv",
    "wait": "ts_model_start",
    "service": "ts_model_end",
    "gateway": "ts_send",
    "network": "ts_arrive",
}
"""Stages before the venue, by the stamp that ends them."""
PRICED = (*LEGS, "timing", "spread", "walk")
STAGES = (*PRICED, "charged", "opportunity", "fees")
ARRIVE, END = STAMPS.index("ts_arrive"), STAMPS.index("ts_done")


@dataclass(frozen=True, slots=True)
class Shortfall:
    """One instrument's orders; arrays are (n,), costs in half units of 1e-9 currency.

    Attributes:
        orders: those that a mid could be found for.
        mid2: m0, bid + ask when the order was decided [half ticks].
        filled: lots, of fills that were reported to us.
        taken: of these, taken.
        ts_filled: the last of them; NO_TIME: none.
        parts: by STAGES.
        total: the whole shortfall, from the order's own row.
        left_out: orders without any mid or price; none was filled.
        tolerance: what `residual` may be off, for rounding.
    """

    facts: InstrumentFacts
    orders: Rows
    mid2: Int
    filled: Int
    taken: Int
    ts_filled: Int
    parts: dict[str, Int]
    total: Int
    left_out: int
    tolerance: Int

    @property
    def residual(self) -> Int:
        """What the stages add up to beyond the whole."""
        return sum(self.parts.values(), start=-self.total)

    @property
    def holds(self) -> bool:
        """Whether the stages add up for every order, and its fills to what its row says."""
        sums = bool((np.abs(self.residual) <= self.tolerance).all())
        return sums and bool((self.filled == self.orders["cum_lots"]).all())


class Parents(NamedTuple):
    """Parent orders of one instrument, (k,): the stages of their children.

    Attributes:
        lots: filled.
        took_ns: from the first decision to the last fill; 0: never filled, or one child did it all.
        parts: by STAGES without `opportunity`, and `scheduling`: e F (m0 of the child - m0 of the
            parent), each (k,) [half units of 1e-9 currency].
        notional: of what was filled, at the parent's m0, (k,) [settlement currency].
    """

    lots: Int
    took_ns: Int
    parts: dict[str, Int]
    notional: Float


def shortfalls(run: RunData) -> list[Shortfall | None]:
    """Every instrument's."""
    return [shortfall(run, instrument) for instrument in range(len(run.instruments))]


def shortfall(run: RunData, instrument: int) -> Shortfall | None:
    """One instrument's shortfall; None where the run's mids were not looked up."""
    if run.mids is None:
        return None
    facts = run.instruments[instrument]
    mine = run.orders["instrument"] == instrument
    told = (run.fills["instrument"] == instrument) & (run.fills["ts_recv"] != NO_TIME)
    fills = run.fills[told]
    mid2, some = known_mids(run.mids.orders[mine], run.orders[mine], fills)
    orders, mid2 = run.orders[mine][some], mid2[some]
    theirs = _Fills(facts, fills, run.mids.touch[told], orders, mid2)
    parts = _parts(facts, orders, mid2, theirs)
    total = theirs.by_cash() if facts.spec.inverse else _by_row(facts, orders, mid2[:, 0])
    exact = not facts.spec.inverse and facts.tick_value_e9.denominator == 1
    count = theirs.by_order(np.ones(fills.size, np.int64))
    ended = np.full(orders.size, NO_TIME)
    np.maximum.at(ended, theirs.at, fills["ts_venue"])
    return Shortfall(
        facts=facts,
        orders=orders,
        mid2=mid2[:, 0],
        filled=theirs.by_order(fills["lots"]),
        taken=theirs.by_order(np.where(fills["maker"] == 0, fills["lots"], 0)),
        ts_filled=ended,
        parts=parts,
        total=total + parts["charged"] + parts["opportunity"] + parts["fees"],
        left_out=int((~some).sum()),
        tolerance=np.zeros_like(count) if exact else 2 * count + 1,
    )


class _Fills:
    """Fills of one instrument, and how they add up by order."""

    def __init__(
        self, facts: InstrumentFacts, rows: Rows, touch: Int, orders: Rows, mid2: Int
    ) -> None:
        self.rows = rows
        self.at = np.searchsorted(orders["id"], rows["order"])  # ids ascend
        self._facts, self._orders_m0, self._m0 = facts, mid2[:, 0], mid2[self.at, 0]
        price2, takes = 2 * rows["price"], (rows["maker"] == 0) & (touch != NO_PRICE)
        touch2 = np.where(takes, 2 * np.where(takes, touch, 0), price2)
        known = rows["mid2"] != NO_PRICE
        self.prices2 = (np.where(known, rows["mid2"], mid2[self.at, ARRIVE]), touch2, price2)
        """Mid, touch and price."""

    def by_order(self, values: Int) -> Int:
        sums = np.zeros(self._orders_m0.size, np.int64)
        np.add.at(sums, self.at, values)
        return sums

    def by_cash(self) -> Int:
        """What they cost, by the cash that the core booked: an inverse contract's."""
        lots = self.rows["lots"] * self.rows["side"].astype(np.int64)
        booked = self._facts.inverse_value_e9 * np.abs(lots) / self.rows["price"]
        cash2 = -2 * np.sign(lots) * np.floor(booked + 0.5).astype(np.int64)
        paper = 2 * self._facts.inverse_value_e9 * self.by_order(lots) / (self._orders_m0 / 2)
        cost: Int = self.by_order(cash2) + np.rint(paper).astype(np.int64)
        return cost

    def cost2(self, price2: Int) -> Int:
        """What fills at a price cost against m0, by order."""
        lots = self.rows["lots"] * self.rows["side"].astype(np.int64)
        return self.by_order(worth2(self._facts, lots, price2, self._m0))


def _parts(facts: InstrumentFacts, orders: Rows, mid2: Int, fills: _Fills) -> dict[str, Int]:
    """Costs by STAGES: differences of what the filled lots are worth at one mid after the other."""
    m0, side = mid2[:, 0], orders["side"].astype(np.int64)
    filled = side * fills.by_order(fills.rows["lots"])
    steps = [np.zeros(orders.size, np.int64)]
    steps += [worth2(facts, filled, mid2[:, STAMPS.index(s)], m0) for s in LEGS.values()]
    steps += [fills.cost2(price2) for price2 in fills.prices2]
    unfilled = side * (orders["lots"] - orders["cum_lots"])
    return {
        **dict(zip(PRICED, np.diff(np.array(steps), axis=0), strict=True)),
        "charged": 2 * fills.by_order(fills.rows["impact"]),
        "opportunity": worth2(facts, unfilled, mid2[:, END], m0),
        "fees": 2 * fills.by_order(fills.rows["fee"]),
    }


def _by_row(facts: InstrumentFacts, orders: Rows, m0: Int) -> Int:
    """What fills cost, e * (sum f p - F m0), by the order's own sums."""
    moved = 2 * orders["cum_ticks"] - orders["cum_lots"] * m0
    return worth2(facts, orders["side"].astype(np.int64), moved, np.zeros_like(moved))


def parents_of(short: Shortfall) -> Parents:
    """The orders with a parent, taken together by parent.

    A run keeps what its orders asked for, not what a parent was for: lots that a parent never
    filled have no opportunity cost here.
    """
    children = np.flatnonzero(short.orders["parent"] > 0)
    orders = short.orders[children]  # in order of submission
    ids, first, of = np.unique(orders["parent"], return_index=True, return_inverse=True)
    m0 = short.mid2[children][first][of]
    lots = short.filled[children]
    signed = lots * orders["side"]
    ended, last = np.full(ids.size, NO_TIME), np.full(ids.size, NO_TIME)
    np.maximum.at(ended, of, short.ts_filled[children])
    np.maximum.at(last, of, orders["ts_decide"])
    begun = orders["ts_decide"][first]
    took_ns = np.where((last > begun) & (ended != NO_TIME), ended - begun, 0)

    def by_parent(values: Int) -> Int:
        sums = np.zeros(ids.size, np.int64)
        np.add.at(sums, of, values)
        return sums

    worth = np.zeros(ids.size)
    np.add.at(worth, of, notional(short.facts, lots, m0))
    moved = worth2(short.facts, signed, short.mid2[children], m0)
    parts = {"scheduling": by_parent(moved)}
    parts |= {
        name: by_parent(part[children])
        for name, part in short.parts.items()
        if name != "opportunity"
    }
    return Parents(by_parent(lots), took_ns, parts, worth)


def notional(facts: InstrumentFacts, lots: Int, mid2: Int) -> Float:
    """Worth of lots at bid + ask of `mid2` half ticks, (n,) float64 [settlement currency]."""
    worth: Float
    if facts.spec.inverse:
        worth = lots * facts.inverse_value_e9 / (mid2 / 2) / MONEY_PER_UNIT
    else:
        worth = lots * (mid2 / 2) * (float(facts.tick_value_e9) / MONEY_PER_UNIT)
    return worth


def known_mids(mid2: Int, orders: Rows, fills: Rows) -> tuple[Int, NDArray[np.bool_]]:
    """Mids at STAMPS without holes, as the module says, and for which orders there is any.

    Args:
        mid2: (n, 8) as looked up.
        orders: (n,) of one instrument.
        fills: theirs.
    """
    given = np.full(orders.size, NO_PRICE)
    given[orders["price"] != NO_PRICE] = 2 * orders["price"][orders["price"] != NO_PRICE]
    at = np.searchsorted(orders["id"], fills["order"])[::-1]  # the first fill is written last
    price2 = 2 * fills["price"]
    given[at] = np.where(fills["mid2"] != NO_PRICE, fills["mid2"], price2)[::-1]
    known = mid2 != NO_PRICE
    whole = mid2.copy()
    first = np.where(known.any(axis=1), known.argmax(axis=1), 0)
    start = np.where(known.any(axis=1), mid2[np.arange(orders.size), first], given)
    whole[:, 0] = start
    for k in range(1, len(STAMPS)):
        whole[:, k] = np.where(known[:, k], mid2[:, k], whole[:, k - 1])
    return whole, start != NO_PRICE


def worth2(facts: InstrumentFacts, lots: Int, mid2: Int, ref2: Int) -> Int:
    """What lots are worth more at one price than at another, (n,) [half units of 1e-9 currency].

    Args:
        facts: the contract.
        lots: negative for short.
        mid2: a price, twice [half ticks].
        ref2: the other, likewise.
    """
    if facts.spec.inverse:
        doubled = 4.0 * facts.inverse_value_e9 * lots * (1.0 / ref2 - 1.0 / mid2)
        return np.rint(doubled).astype(np.int64)
    value = facts.tick_value_e9
    moved: Int = lots * (mid2 - ref2) * value.numerator
    if value.denominator == 1:
        return moved
    # Half a unit is rounded away from zero, as the core does.
    rounded: Int = np.sign(moved) * (
        (2 * np.abs(moved) + value.denominator) // (2 * value.denominator)
    )
    return rounded

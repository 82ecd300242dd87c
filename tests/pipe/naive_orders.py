"""The twin for order-by-order feeds: a dict of orders, each with its number of arrival.

What is ours is that of naive.py; here are the book, our place among its orders and what an
execution does to us. Levels are summed anew from the orders after every row.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from naive import Naive
from naive_listing import BEGIN, BUY, CLEAR, NO_CHANGE, OPEN, SELL, Listing, Order, due

ADD, MODIFY, CANCEL, EXECUTE, REPLACE = 16, 17, 18, 19, 20
NO_PRINT = 64


@dataclass(eq=False)
class Resting:
    """Somebody else's order."""

    side: int
    price: int
    lots: int
    place: int
    """Number of arrival: the lower one is ahead at one price."""


@dataclass
class OrderListing(Listing):
    """One instrument told order by order."""

    orders: dict[int, Resting] = field(default_factory=dict)
    places: Iterator[int] = field(default_factory=itertools.count)
    our_place: dict[Order, int] = field(default_factory=dict)
    faults: Counter[str] = field(default_factory=Counter)
    comes: Counter[tuple[int, int]] = field(default_factory=Counter)
    """What the present row puts at the back of a level."""

    def levels(self) -> dict[int, dict[int, int]]:
        sums: dict[int, Counter[int]] = {BUY: Counter(), SELL: Counter()}
        for r in self.orders.values():
            sums[r.side][r.price] += r.lots
        return {side: dict(levels) for side, levels in sums.items()}

    def at(self, side: int, price: int) -> list[Order]:
        return [o for o in self.own[side] if o.price == price]


class NaiveOrders(Naive):
    """Some of its listings may be told by levels as before."""

    def on_row(self, i: int, n: int, row: Any) -> None:
        x, kind = self.listings[i], int(row["kind"])
        if not isinstance(x, OrderListing):
            return super().on_row(i, n, row)
        if kind in (ADD, MODIFY, CANCEL, EXECUTE, REPLACE):
            self.order_row(x, kind, row, n)
        elif kind == CLEAR:
            self.drop(x, int(row["side"]), int(row["price"]) if int(row["ref_id"]) == 1 else None)
        elif kind == BEGIN:
            x.orders.clear()
            super().on_row(i, n, row)
        else:
            super().on_row(i, n, row)
        return None

    def order_row(self, x: OrderListing, kind: int, row: Any, n: int) -> None:
        ts, side, price, qty = (int(row[k]) for k in ("ts_event", "side", "price", "qty"))
        this, other = int(row["order_id"]), int(row["ref_id"])
        if kind == EXECUTE and not int(row["flags"]) & NO_PRINT:
            x.trades.printed(qty, ts)
        self.ts, arrives = ts, kind in (ADD, REPLACE)
        x.comes.clear()
        if arrives:
            x.comes[side, price] = qty
        if kind == ADD:
            self.add(x, this, side, price, qty)
        elif kind == REPLACE:
            self.remove(x, this)
            self.add(x, other, side, price, qty)
        elif kind == MODIFY:
            arrives = self.modify(x, this, price, qty)
        elif kind == CANCEL:
            self.reduce(x, this, qty)
        elif side:
            self.execute(x, row, n)
        elif not int(row["flags"]) & NO_CHANGE:
            for number in (this, other):
                self.reduce(x, number, qty, traded=True)
        self.show(x)
        if arrives:
            self.cross(x, side, price, ts, n)

    # ---- the book

    def known(self, x: OrderListing, number: int) -> Resting | None:
        if number not in x.orders:
            x.faults["unknown_ids"] += 1
        return x.orders.get(number)

    def add(self, x: OrderListing, number: int, side: int, price: int, lots: int) -> None:
        if number in x.orders:
            x.faults["reused_ids"] += 1
            self.remove(x, number)
        x.orders[number] = Resting(side, price, lots, next(x.places))

    def remove(self, x: OrderListing, number: int) -> None:
        r = self.known(x, number)
        if r:
            self.lose(x, r, r.lots)
            del x.orders[number]

    def reduce(self, x: OrderListing, number: int, lots: int, *, traded: bool = False) -> None:
        r = self.known(x, number)
        if r is None:
            return
        x.faults["overfills"] += lots > r.lots
        self.lose(x, r, min(lots or r.lots, r.lots), traded=traded)
        if not r.lots:
            del x.orders[number]

    def modify(self, x: OrderListing, number: int, price: int, lots: int) -> bool:
        """Whether it puts size somewhere: more of it, or at the back of a queue."""
        r = self.known(x, number)
        if r is None:
            return False
        before = r.lots
        if price == r.price and lots and x.rules.keeps_place(before, lots):
            self.lose(x, r, before - lots)
            return lots > before
        x.comes[r.side, price] = lots
        self.remove(x, number)
        if lots:
            x.orders[number] = Resting(r.side, price, lots, next(x.places))
        return lots > 0

    def lose(self, x: OrderListing, r: Resting, lots: int, *, traded: bool = False) -> None:
        """An order has so many lots less, or more if negative; we move if it is ahead of us."""
        if lots > 0:
            self.uncover(x, r, lots, traded=traded)
        r.lots -= lots
        for o in x.at(r.side, r.price):
            if r.place < x.our_place[o]:
                o.ahead = max(o.ahead - lots, 0)

    def uncover(self, x: OrderListing, r: Resting, lots: int, *, traded: bool) -> None:
        """What we took are the first lots of a level: those of them that leave miss no more."""
        key = r.side, r.price
        record = x.footprint.at(key, self.ts)
        back = min(x.comes[key], lots)
        x.comes[key] -= back
        if record is None:
            return
        level = [q for q in x.orders.values() if (q.side, q.price) == key]
        there, before_it = (sum(q.lots for q in qs) for qs in (level, ahead_of(r, level)))
        if traded:
            record.shrink_to(there - lots, self.ts)
            record.printed = 0
            return
        told = record.explain(lots - back, self.ts)
        if told:
            record.shrink_to(there - told, self.ts)
        had, has = r.lots - told, r.lots - lots + back
        missing = record.missing(self.ts)
        if x.rules.matching == "pro_rata":
            missing *= (there - lots + back) / max(there - told, 1)
        else:
            ours = min(max(missing - before_it, 0.0), had)
            missing -= ours - min(ours, has)
        record.shrink_to(missing, self.ts)

    def show(self, x: OrderListing) -> None:
        """The levels as they are now; of one that goes, nothing is missing."""
        before, x.book = x.book, x.levels()
        for (side, price), record in list(x.footprint.taken.items()):
            old, new = before[side].get(price, 0), x.book[side].get(price, 0)
            if old and not new:
                del x.footprint.taken[side, price]
            elif new > old:
                record.explain(0, self.ts)

    def drop(self, x: OrderListing, side: int, upto: int | None) -> None:
        """A clear: whoever stood before ours there has left."""
        for number, r in list(x.orders.items()):
            if side in (0, r.side) and (upto is None or (r.price - upto) * r.side >= 0):
                del x.orders[number]
        x.book = x.levels()
        for o in [*x.own[BUY], *x.own[SELL]]:
            o.ahead = min(o.ahead, x.book[o.side].get(o.price, 0))
        self.forget_gone(x)

    def rebuilt(self, x: Listing, ts: int, n: int) -> None:
        if isinstance(x, OrderListing):
            place = next(x.places)
            x.our_place = dict.fromkeys(x.our_place, place)
        super().rebuilt(x, ts, n)

    # ---- ours

    def rest(self, x: Listing, o: Order) -> None:
        super().rest(x, o)
        if isinstance(x, OrderListing):
            x.our_place[o] = next(x.places)

    def execute(self, x: OrderListing, row: Any, n: int) -> None:
        ts, side, qty = (int(row[k]) for k in ("ts_event", "side", "qty"))
        number, changes = int(row["order_id"]), not int(row["flags"]) & NO_CHANGE
        met = x.orders.get(number)
        side, price = (met.side, met.price) if met else (side, int(row["price"]))
        if x.trading == OPEN:
            got = self.share(x, met, side, price, qty, ts, n)
            if met:
                self.spill(x, side, price, max(qty - got, 0), ts)
        if changes:
            self.reduce(x, number, qty, traded=True)
        elif met:
            x.footprint.prints((side, price), qty, ts)

    def share(
        self,
        x: OrderListing,
        met: Resting | None,
        side: int,
        price: int,
        qty: int,
        ts: int,
        n: int,
    ) -> int:
        """How much of an execution of `met` is ours; a better price first, then the place."""
        rules = x.rules
        taken, rata = 0, None
        for o in list(x.own[side]):
            left = max(qty - taken, 0) if rules.share_prints else qty
            through = (o.price - price) * side > 0
            if through:
                reached = o.leaves if rules.through == "full" else left
            elif o.price != price or met is None:
                continue
            elif rules.matching == "pro_rata":
                rata = rata or self.trades_at(x, side, price, left, ts)
                reached = due(rata, o)
            elif x.our_place[o] < met.place:
                reached = left
            else:
                reached = max(left - int(o.ahead), 0)
            if reached and not rules.partial_fills:
                reached = o.leaves
            lots = min(reached, o.leaves)
            if lots:
                taken += lots
                if rata:
                    rata.given[o] += lots
                self.fill(x, o, lots, o.price, "THROUGH" if through else "QUEUE", ts, n)
        return taken

    def trade(self, x: Listing, side: int, price: int, qty: int, ts: int, n: int) -> None:
        """A hidden execution: nobody at its price moves, better prices of ours are met."""
        if not isinstance(x, OrderListing):
            return super().trade(x, side, price, qty, ts, n)
        passive = self.passive(x, side, price)
        if passive and x.trading == OPEN:
            self.share(x, None, passive, price, qty, ts, n)
        return None


def ahead_of(r: Resting, level: list[Resting]) -> list[Resting]:
    return [q for q in level if q.place < r.place]

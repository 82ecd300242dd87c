"""Small random markets told order by order, dense with all that is rare."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hft.types import EVENT, SEEN_BY_BOTH, Flag, Kind, Trading

MID, WIDTH, CROWD = 1_000, 6, 60
QUIET = Flag.NO_PRINT | Flag.NO_CHANGE


@dataclass
class Known:
    """An order as the generator keeps it, so that its rows mostly make sense."""

    side: int
    price: int
    lots: int


class OrderTape:
    """Rows around `MID`; `random_order_tape` makes one."""

    def __init__(self, rng: np.random.Generator, start: int) -> None:
        self.rng, self.ts, self.recv = rng, start, start
        self.rows: list[tuple[Any, ...]] = []
        self.orders: dict[int, Known] = {}
        self.gone: list[int] = [999_999]
        self.number = 0
        self.mid = MID
        self.trading = Trading.OPEN

    # ---- rows

    def put(self, kind: Kind, flags: int = 0, *, last: bool = True, **k: int) -> None:
        flags |= int(SEEN_BY_BOTH | (Flag.LAST if last else 0))
        columns = ("price", "qty", "order_id", "ref_id", "seq", "instrument")
        values = [k.get(c, 0) for c in columns]
        self.rows.append((self.ts, self.recv, *values, kind, k.get("side", 0), flags))

    def pass_time(self) -> None:
        self.ts += int(self.rng.choice([0, 0, 1, 1_000, 900_000, 4_000_000]))
        self.recv = max(self.recv, self.ts + int(self.rng.choice([0, 500, 1_000_000])))

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def fresh(self) -> int:
        """A number for a new order; now and then one that rests, or of one that is gone."""
        if self.orders and self.chance(0.03):
            return self.any()
        if self.chance(0.02):
            return int(self.rng.choice(self.gone))
        self.number += 1
        return self.number

    def any(self) -> int:
        return int(self.rng.choice(list(self.orders)))

    def front(self, side: int) -> int | None:
        """First of the best level, as far as the generator knows."""
        mine = [(-o.price * side, n) for n, o in self.orders.items() if o.side == side]
        return min(mine)[1] if mine else None

    def somebody(self) -> int:
        """A number that mostly rests."""
        return self.any() if self.orders and self.chance(0.96) else int(self.rng.choice(self.gone))

    def where(self, side: int) -> int:
        return self.mid - side * int(self.rng.integers(0, WIDTH))

    def lots(self) -> int:
        return int(self.rng.choice([1, 1, 2, 3, 5, 8, 13]))

    # ---- what the market does

    def add(self, *, last: bool = True) -> None:
        side = int(self.rng.choice([1, -1]))
        number, price, lots = self.fresh(), self.where(side), self.lots()
        self.put(Kind.ADD, side=side, price=price, qty=lots, order_id=number, last=last)
        self.orders[number] = Known(side, price, lots)

    def cancel(self, number: int | None = None, *, last: bool = True) -> None:
        number = self.somebody() if number is None else number
        o = self.orders.get(number, Known(1, self.mid, 1))
        qty = int(self.rng.choice([0, 0, 1, 1, o.lots, o.lots + 2]))
        price = 0 if self.chance(0.2) else o.price  # some venues do not tell it
        self.put(Kind.CANCEL, side=o.side, price=price, qty=qty, order_id=number, last=last)
        self.less(number, qty or o.lots)

    def less(self, number: int, lots: int) -> None:
        if number in self.orders:
            self.orders[number].lots -= lots
            if self.orders[number].lots <= 0:
                del self.orders[number]
                self.gone.append(number)

    def modify(self) -> None:
        number = self.somebody()
        o = self.orders.get(number, Known(1, self.mid, 1))
        lots = max(o.lots + int(self.rng.integers(-4, 4)), 0)
        price = o.price if self.chance(0.6) else self.where(o.side)
        self.put(Kind.MODIFY, side=o.side, price=price, qty=lots, order_id=number)
        if number in self.orders:
            o.price, o.lots = price, lots
            self.less(number, 0)

    def replace(self) -> None:
        number, new = self.somebody(), self.fresh()
        o = self.orders.pop(number, Known(int(self.rng.choice([1, -1])), self.mid, 1))
        price = o.price if self.chance(0.4) else self.where(o.side)
        lots = self.lots()
        self.put(Kind.REPLACE, side=o.side, price=price, qty=lots, order_id=number, ref_id=new)
        self.orders[new] = Known(o.side, price, lots)

    def execute(self) -> None:
        """An aggressor meets some orders from the front, or, rarely, any of them."""
        side = int(self.rng.choice([1, -1]))
        times = int(self.rng.choice([1, 1, 1, 2, 4]))
        for k in range(times):
            number = self.front(side) if self.chance(0.75) else self.somebody()
            if number is not None:
                self.execution(number, last=k == times - 1)

    def execution(self, number: int, *, last: bool) -> None:
        o = self.orders.get(number, Known(int(self.rng.choice([1, -1])), self.where(1), 3))
        lots = o.lots if self.chance(0.5) else int(self.rng.integers(1, o.lots + 1))
        lots += 3 * self.chance(0.04)
        price = o.price - o.side * self.chance(0.03)
        what = dict(side=o.side, price=price, qty=lots, order_id=number, ref_id=7)
        style = self.rng.random()
        if style < 0.6:
            self.put(Kind.EXECUTE, last=last, **what)
            self.less(number, lots)
        elif style < 0.7:
            self.put(Kind.EXECUTE, int(Flag.NO_PRINT), last=last, **what)
            self.less(number, lots)
        else:
            self.told_twice(number, lots, o, what, last=last)

    def told_twice(
        self, number: int, lots: int, o: Known, what: dict[str, int], *, last: bool
    ) -> None:
        """The print and the fill are information; a row of its own changes the book."""
        told = {"price": what["price"], "qty": lots}
        self.put(Kind.TRADE, int(Flag.NO_CHANGE), last=False, side=-o.side, **told)
        self.put(Kind.EXECUTE, int(QUIET), last=False, **what)
        left = o.lots - lots
        if left > 0 and self.chance(0.5):
            self.put(Kind.MODIFY, side=o.side, price=o.price, qty=left, order_id=number, last=last)
        else:
            self.put(Kind.CANCEL, side=o.side, price=o.price, qty=lots, order_id=number, last=last)
        self.less(number, lots)

    def match(self) -> None:
        """An auction's execution: both rested."""
        pair = [n for s in (1, -1) if (n := self.front(s)) is not None]
        if len(pair) < 2 or self.chance(0.1):
            pair = [self.somebody(), self.somebody()]
        lots = self.lots()
        price = self.mid + int(self.rng.integers(-1, 2))
        buyer, seller = pair
        self.put(Kind.EXECUTE, price=price, qty=lots, order_id=buyer, ref_id=seller)
        for number in (buyer, seller):
            self.less(number, lots)

    def hidden(self) -> None:
        side = int(self.rng.choice([1, -1, 0], p=[0.4, 0.4, 0.2]))
        price = self.mid + (side or 1) * int(self.rng.integers(-1, 4))
        flags = int(Flag.NO_CHANGE) if self.chance(0.2) else 0
        self.put(Kind.TRADE, flags, side=side, price=price, qty=int(self.rng.integers(1, 30)))

    # ---- what is rare

    def rare(self) -> None:
        what = int(self.rng.integers(0, 7))
        if what == 0:
            self.state(Trading(int(self.rng.choice([Trading.HALT, Trading.CLOSED]))))
        elif what in (1, 2):
            self.auction()
        elif what == 3:
            self.clear()
        elif what == 4:
            rate = int(self.rng.integers(-500_000, 500_000))
            self.put(Kind.DATUM, order_id=1, ref_id=rate, price=self.mid)
        else:
            if what == 5:
                self.put(Kind.STATUS, ref_id=int(Trading.GAP))
            self.snapshot()

    def state(self, trading: Trading) -> None:
        self.trading = trading
        self.put(Kind.STATUS, ref_id=int(trading))

    def auction(self) -> None:
        self.state(Trading.AUCTION)
        for _ in range(int(self.rng.integers(2, 8))):
            self.pass_time()
            self.rng.choice([self.add, self.add, self.match, self.modify, self.cancel])()

    def clear(self) -> None:
        side, part = int(self.rng.choice([0, 1, -1])), int(self.rng.integers(0, 2))
        self.put(Kind.CLEAR, side=side, price=self.mid, ref_id=part)
        for number, o in list(self.orders.items()):
            if side in (0, o.side) and (not part or (o.price - self.mid) * o.side >= 0):
                self.less(number, o.lots)

    def snapshot(self, begin: Kind = Kind.SNAPSHOT_BEGIN) -> None:
        """Most of the orders again, in another order, some with another size, and some new."""
        self.put(begin, last=False)
        slow = self.chance(0.2)
        before, self.orders = list(self.orders.items()), {}
        self.rng.shuffle(before)  # type: ignore[arg-type]
        for number, o in before:
            if self.chance(0.15):
                continue
            lots = o.lots + 2 * self.chance(0.2)
            self.put(Kind.ADD, side=o.side, price=o.price, qty=lots, order_id=number, last=False)
            self.orders[number] = Known(o.side, o.price, lots)
            if slow:
                self.pass_time()
        for _ in range(3):
            self.add(last=False)
        self.put(Kind.SNAPSHOT_END)

    def step(self) -> None:
        draw = self.rng.random()
        if len(self.orders) > CROWD or draw < 0.2:
            self.cancel()
        elif draw < 0.22:
            self.rare()
        elif draw < 0.26:
            self.state(Trading.OPEN)
        elif draw < 0.28:
            self.match()
        elif draw < 0.50:
            self.execute()
        elif draw < 0.55:
            self.hidden()
        elif draw < 0.65:
            self.modify()
        elif draw < 0.70:
            self.replace()
        else:
            self.add()
        if self.chance(0.02):
            self.mid += int(self.rng.choice([-1, 1]))


def random_order_tape(rng: np.random.Generator, rows: int, start: int) -> np.ndarray:
    """An opening book, by a snapshot or order by order, and at least so many rows.

    Args:
        rng: draws everything.
        rows: at least so many.
        start: time before the first row [ns].
    """
    tape = OrderTape(rng, start)
    known_by_levels = tape.chance(0.3)
    for k in range(12):
        side = 1 if k % 2 else -1
        # An opening book that is known by its levels has numbers of the importer's own.
        number = -k - 1 if known_by_levels else tape.fresh()
        tape.orders[number] = Known(side, tape.mid - side * (1 + k // 2), tape.lots())
    if tape.chance(0.5):
        tape.snapshot()
    else:
        for number, o in tape.orders.items():
            what = dict(side=o.side, price=o.price, qty=o.lots, order_id=number)
            tape.put(Kind.ADD, **what)
    while len(tape.rows) < rows:
        tape.pass_time()
        tape.step()
    return np.array(tape.rows, EVENT)

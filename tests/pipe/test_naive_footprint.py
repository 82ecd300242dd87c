"""The twin's footprint against a book in which our takes really happened."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from naive import Legs
from naive_footprint import Overlay
from naive_listing import BUY, IOC, SELL, Order, Rules
from naive_orders import ADD, CANCEL, EXECUTE, MODIFY, NO_CHANGE, NaiveOrders, OrderListing

from hft.types import EVENT


class Book:
    """Sellers in a dict of lists, and what is left of each."""

    def __init__(self) -> None:
        self.levels: dict[int, list[int]] = {}
        self.left: dict[int, int] = {}

    def add(self, number: int, price: int, lots: int) -> None:
        self.levels.setdefault(price, []).append(number)
        self.left[number] = lots

    def walk(self, lots: int) -> None:
        for price in sorted(self.levels):
            for number in self.levels[price]:
                met = min(self.left[number], lots)
                self.left[number] -= met
                lots -= met

    def at(self, price: int) -> int:
        return sum(self.left[n] for n in self.levels.get(price, []))


def row(kind: int, number: int, price: int, qty: int, flags: int = 0) -> dict[str, int]:
    return dict(
        kind=kind,
        ts_event=1_000,
        side=SELL,
        price=price,
        qty=qty,
        order_id=number,
        ref_id=0,
        flags=flags,
    )


def market() -> tuple[NaiveOrders, OrderListing]:
    x = OrderListing(0, Rules(refill_half_life=0), 0)
    one = np.zeros(1, EVENT)
    return NaiveOrders([x], [one], legs=Legs(), script=[]), x


@pytest.mark.parametrize("told_twice", [False, True])
def test_what_is_left_is_what_would_have_been_left(*, told_twice: bool) -> None:
    checked = 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        twin, x = market()
        truth, tape = Book(), Book()

        def tell(*what: Any, twin: NaiveOrders = twin) -> None:
            twin.on_row(0, 0, row(*what))

        for number in range(1, 60):
            price = int(rng.integers(100, 104))
            lots = int(rng.integers(1, 9))
            alive = [n for n in tape.left if tape.left[n]]
            what = rng.random()
            if what < 0.45 or not alive:
                for book in (truth, tape):
                    book.add(number, price, lots)
                tell(ADD, number, price, lots)
            elif what < 0.65:
                who = int(rng.choice(alive))
                lots = min(lots, tape.left[who])
                at = next(p for p, ns in tape.levels.items() if who in ns)
                for book in (truth, tape):
                    book.left[who] = max(book.left[who] - lots, 0)
                if rng.random() < 0.5:
                    tell(CANCEL, who, at, lots)
                else:
                    tell(MODIFY, who, at, tape.left[who])
            elif what < 0.85:
                best = min(p for p, ns in tape.levels.items() if any(tape.left[n] for n in ns))
                who = next(n for n in tape.levels[best] if tape.left[n])
                lots = min(lots, tape.left[who])
                truth.walk(lots)
                tape.left[who] -= lots
                tell(EXECUTE, who, best, lots, NO_CHANGE if told_twice else 0)
                if told_twice:
                    tell(CANCEL, who, best, lots)
            else:
                order = Order(number, 0, BUY, None, lots, IOC)
                truth.walk(lots)
                twin.answers_in = 0
                twin.take(x, order, 1_000)
            for p in range(100, 104):
                assert twin.available(x, SELL, p, 1_000) == truth.at(p), (seed, number)
                checked += truth.at(p) != tape.at(p)
    assert checked > 1_000  # states in which we made a difference


def test_no_sequence_of_pushes_is_paid_for() -> None:
    rng = np.random.default_rng(1)
    for _ in range(200):
        overlay = Overlay((0.3, 0.2), (1_000, 50_000), 0.05)
        ts, paid = 0, 0.0
        for q in [*rng.integers(-9, 10, 12).tolist()]:
            ts += int(rng.choice([0, 10, 3_000]))
            if q:
                paid += overlay.push(1 if q > 0 else -1, abs(q), ts) * abs(q)
        assert paid > -1e-9


def test_a_block_costs_what_its_parts_cost_at_one_instant() -> None:
    one, parts = (Overlay((0.3,), (1_000,), 0.1) for _ in "ab")
    whole = one.push(1, 10, 5) * 10
    assert sum(parts.push(1, q, 5) * q for q in (1, 2, 3, 4)) == pytest.approx(whole)

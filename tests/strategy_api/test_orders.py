"""Instruments, account, position and orders as a strategy finds them."""

from __future__ import annotations

import math
from typing import Any

import pytest
from recorder import Recorder, do, market, played, refused
from sim import Sim

from hft import Strategy
from hft.engine import run_once
from hft.errors import OrderError
from hft.plan import prepare
from hft.types import BUY, GTC, IOC, SELL, InstrumentSpec


def test_instruments_are_found_by_name_and_are_one_object_everywhere() -> None:
    class Look(Recorder):
        script: Any

        def on_start(self) -> None:
            a = self.instruments["X.SIM"]
            assert self.listed[0] is a
            assert (a.symbol, a.venue, a.name, a.tick, a.id) == ("X", "SIM", "X.SIM", 0.5, 0)
            assert a.price(7) == 3.5
            assert a.ticks(3.5) == 7
            with pytest.raises(KeyError):
                self.instruments["Y.SIM"]

        def on_book(self, book: Any) -> None:
            assert book.instrument is self.instruments[book.instrument.name]
            self.note("book", book.instrument.name)

    sim = market(also=("B.SIM",), tick=0.5)
    assert {v for _, v in played(sim, Look).of("book")} == {"X.SIM", "B.SIM"}


def test_an_instrument_may_be_left_out_when_there_is_one_only() -> None:
    def act(s: Any) -> None:
        order = s.submit(BUY, 2, 100)
        assert s.book().bid == 100
        assert s.position().lots == 0
        assert s.orders() == [order]
        s.quotes(99, 103, 1)
        s.quote(BUY, 99, 1)
        s.ladder(SELL, 103, 1, 2, 1)
        s.flatten()
        s.cancel_all()

    sim = market()
    do(sim, 10, act)
    sim.run()
    both = market(also=("B.SIM",))
    assert "2 instruments" in refused(both, lambda s: s.book(), OrderError)


def test_instrument_may_be_named_or_given() -> None:
    def act(s: Any) -> None:
        s.submit("B.SIM", BUY, 1, 100)
        s.submit(s.instruments["B.SIM"], BUY, 1, 100)
        assert len(s.orders("B.SIM")) == 2
        assert s.orders("X.SIM") == []

    sim = market(also=("B.SIM",))
    do(sim, 10, act)
    sim.run()


def test_lots_convert_between_contracts_of_different_size() -> None:
    sim = Sim(also=("B.SIM",))
    sim.book(bids={100: 1}, asks={101: 1})
    specs = [
        InstrumentSpec(symbol="X", venue="SIM", tick=1.0, lot=0.1),
        InstrumentSpec(symbol="B", venue="SIM", tick=1.0, lot=1.0, multiplier=0.25),
    ]

    class Look(Strategy):
        def on_start(self) -> None:
            x, b = self.listed
            assert x.lots_of(b, 2) == 5  # 2 contracts of 0.25 are 0.5 are 5 lots of 0.1
            assert b.lots_of(x, 6) == 2  # 0.6 holds two whole contracts

    rows = sim.markets["X.SIM"].array()
    plan = prepare(
        Look, {"X.SIM": rows, "B.SIM": rows}, specs=specs, recipe={"engine": {"bracket": False}}
    )
    assert run_once(plan).run.status == "complete"


def test_position_and_account_follow_the_fills_that_reached_us() -> None:
    sim = market(entry=10, response=10, venue={"taker_fee": 0.001})
    sim.submit(BUY, lots=4, price=102, tif=IOC, at=10)
    before = do(sim, 29, lambda s: (s.position().lots, s.position().flat))
    after = do(
        sim,
        31,
        lambda s: (s.position().lots, s.position().avg_price, s.position().cash, s.position().fees),
    )
    money = do(sim, 31, lambda s: (s.account.equity, s.account.fees, s.account.turnover))
    sim.run()
    assert before == [(0, True)]
    assert after == [(4, 102.0, -408.0, pytest.approx(0.408))]
    assert money == [pytest.approx((-408 + 4 * 101 - 0.408, 0.408, 408.0))]


def test_average_cost_of_a_position_that_is_reduced_and_turned() -> None:
    sim = market()
    steps = []
    for at, side, lots in ((10, BUY, 2), (20, BUY, 10), (30, SELL, 4), (40, SELL, 20)):
        sim.submit(side, lots=lots, price=None, tif=IOC, at=at)
        steps.append(
            do(sim, at + 5, lambda s: (s.position().lots, round(s.position().avg_price, 6)))
        )
    sim.run()
    assert [s[0] for s in steps] == [
        (2, 102.0),
        (12, 102.166667),
        (8, 102.166667),
        (-12, 98.666667),
    ]


def test_orders_are_listed_until_they_are_over_by_instrument_and_tag() -> None:
    def act(s: Any) -> None:
        a = s.submit("X.SIM", BUY, 1, 100, tag="one")
        b = s.submit("B.SIM", BUY, 1, 100, tag="two")
        assert s.orders() == [a, b]
        assert s.orders(tag="two") == [b]
        assert s.orders("X.SIM", tag="two") == []
        assert a.tag == "one"
        s.cancel_all(tag="one")
        assert a.state.name == "PENDING_CANCEL"
        assert b.state.name == "PENDING_NEW"

    sim = market(also=("B.SIM",))
    do(sim, 10, act)
    left = do(sim, 50, lambda s: [o.tag for o in s.orders()])
    sim.run()
    assert left == [["two"]]


def test_a_handle_shows_the_order_as_it_is_now() -> None:
    sim = market(entry=10, response=10)
    order = sim.submit(BUY, lots=5, price=101, tag="t", at=10)
    states = [
        do(
            sim,
            at,
            lambda s: (order.handle.state.name, order.handle.leaves_lots, order.handle.cum_lots),
        )
        for at in (15, 35, 55, 75)
    ]
    sim.trade(SELL, 101, 2, at=40)
    sim.trade(SELL, 100, 9, at=60)
    sim.run()
    assert [s[0] for s in states] == [
        ("PENDING_NEW", 5, 0),
        ("NEW", 5, 0),
        ("PARTIALLY_FILLED", 3, 2),
        ("FILLED", 0, 5),
    ]
    h = order.handle
    assert (h.filled, h.alive, h.avg_price, h.side, h.price, h.lots, h.tif) == (
        True,
        False,
        101.0,
        1,
        101,
        5,
        GTC,
    )
    assert "5/5" in repr(h)


def test_avg_price_is_nan_before_the_first_fill() -> None:
    sim = market()
    order = sim.submit(BUY, lots=5, price=99, at=10)
    sim.run()
    assert math.isnan(order.handle.avg_price)

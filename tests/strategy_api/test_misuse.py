"""What raises, and says what would be right."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from recorder import do, market, refused
from sim import Scripted

from hft.errors import OrderError
from hft.types import BUY, IOC, POST_ONLY


@pytest.mark.parametrize(
    ("action", "says"),
    [
        (lambda s: s.submit(BUY, 0, 100), "lots must be positive, was 0"),
        (lambda s: s.submit(BUY, -5, 100), "lots must be positive, was -5"),
        (lambda s: s.submit(BUY, 1, math.nan), "whole number of ticks"),
        (lambda s: s.submit(BUY, 1, math.inf), "whole number of ticks"),
        (lambda s: s.submit(BUY, 1, 100.5), "whole number of ticks"),
        (lambda s: s.submit(BUY, 1, 10**17), "ticks"),
        (lambda s: s.submit(3, 1, 100), "side must be"),
        (lambda s: s.submit(BUY, 1, 100, 9), "time in force"),
        (lambda s: s.submit(BUY, 1, None, POST_ONLY), "POST_ONLY"),
        (lambda s: s.submit("Q.SIM", BUY, 1, 100), "no such instrument"),
        (lambda s: s.quote(BUY, math.nan, 1), "finite"),
        (lambda s: s.quote(BUY, 100, -1), "negative"),
        (lambda s: s.ladder(BUY, 100, 0, 3, 1), "step"),
        (lambda s: s.ladder(BUY, 100, 1, 0, 1), "levels"),
        (lambda s: s.every(0, lambda: None), "interval"),
        (
            lambda s: s.every("1s", lambda: None, if_changed=("weather",)),
            "touch, position and orders",
        ),
        (lambda s: s.every("1s"), "on_timer"),
        (lambda s: s.submit(BUY, 1, 99, parent=s.submit(BUY, 1, 98)), "parent_order"),
        (lambda s: s.cancel("x"), "not an order"),
        (lambda s: s.parent_order("X.SIM", BUY, 0), "positive"),
    ],
)
def test_misuse_raises_and_says_what_would_be_right(action: Any, says: str) -> None:
    assert says in refused(market(), action, OrderError)


def test_fractional_lots_are_refused() -> None:
    assert refused(market(), lambda s: s.submit(BUY, 1.5, 100), TypeError)


def test_whole_numbers_of_any_type_are_lots_and_ticks() -> None:
    sim = market()
    out = do(sim, 10, lambda s: s.submit(BUY, np.int64(2), np.int64(100)))
    more = do(sim, 10, lambda s: s.submit(BUY, 2, 100.0))
    sim.run()
    assert out[0].price == more[0].price == 100
    assert out[0].lots == 2


def test_cancelling_what_is_over_or_being_cancelled_is_false() -> None:
    sim = market()
    order = sim.submit(BUY, lots=1, price=100, at=10)
    first = do(
        sim,
        20,
        lambda s: (
            s.cancel(order.handle),
            s.cancel(order.handle),
            s.replace(order.handle, price=99),
        ),
    )
    later = do(sim, 40, lambda s: (s.cancel(order.handle), s.replace(order.handle, price=99)))
    sim.run()
    assert first == [(True, False, False)]
    assert later == [(False, False)]


def test_replace_of_a_market_order_and_to_no_lots_raise() -> None:
    sim = market(entry=50)
    order = sim.submit(BUY, lots=1, price=None, tif=IOC, at=5)
    assert "market order" in refused(sim, lambda s: s.replace(order.handle, price=99), OrderError)
    sim = market()
    order = sim.submit(BUY, lots=1, price=99, at=5)
    assert "positive" in refused(sim, lambda s: s.replace(order.handle, lots=0), OrderError)


def test_an_order_of_another_run_is_refused() -> None:
    first = market()
    foreign = first.submit(BUY, lots=1, price=100, at=10)
    first.run()
    assert "another run" in refused(market(), lambda s: s.cancel(foreign.handle), OrderError)


def test_orders_can_be_given_inside_handlers_only() -> None:
    strategy = market().run().strategy
    with pytest.raises(OrderError, match="inside a handler"):
        strategy.submit(BUY, 1, 100)
    with pytest.raises(OrderError, match="not running yet"):
        Scripted().submit(BUY, 1, 100)


def test_replace_where_the_venue_has_none() -> None:
    sim = market(venue={"native_replace": False})
    order = sim.submit(BUY, lots=2, price=99, at=10)
    assert "cancel" in refused(sim, lambda s: s.replace(order.handle, price=98), OrderError)

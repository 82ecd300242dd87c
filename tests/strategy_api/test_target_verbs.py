"""Quotes and ladders: what is asked for is what rests, at most."""

from __future__ import annotations

import math
from typing import Any

import pytest
from recorder import Recorder, do, market, played

from hft.types import BUY, SELL


def live(s: Any) -> list[tuple[int, int, int]]:
    return sorted((int(o.side), o.price, o.leaves_lots) for o in s.orders())


def test_quotes_round_outward_and_stop_at_the_touch() -> None:
    sim = market()
    do(sim, 10, lambda s: s.quotes(98.7, 103.2, 1))
    first = do(sim, 20, live)
    do(sim, 30, lambda s: s.quotes(107.0, 95.0, 1))  # through the other side: joins the touch
    then = do(sim, 40, live)
    sim.run()
    assert first == [[(-1, 104, 1), (1, 98, 1)]]
    assert then == [[(-1, 102, 1), (1, 100, 1)]]


def test_an_unchanged_quote_keeps_its_place_and_sends_nothing() -> None:
    sim = market(entry=10, response=10)
    for at in range(10, 200, 10):
        do(sim, at, lambda s: s.quotes(100.2, 102.8, 3))
    order = do(sim, 150, lambda s: s.orders()[0])
    sim.run()
    assert len(sim.outcome.run.orders) == 2
    assert order[0].ahead_at_accept == 10
    assert {int(n) for n in sim.outcome.run.orders["replaces"]} == {0}


def test_zero_lots_pull() -> None:
    sim = market()
    do(sim, 10, lambda s: s.quotes(99, 103, 2))
    do(sim, 20, lambda s: s.quote(BUY, 99, 0))
    one = do(sim, 30, live)
    do(sim, 40, lambda s: s.quotes(math.nan, math.nan, 0))
    none = do(sim, 50, live)
    sim.run()
    assert (one, none) == ([[(-1, 103, 2)]], [[]])


def test_a_move_is_a_replace_where_the_venue_has_it() -> None:
    sim = market(entry=10, response=10)
    do(sim, 10, lambda s: s.quote(BUY, 99, 2))
    do(sim, 50, lambda s: s.quote(BUY, 98, 2))
    after = do(sim, 90, live)
    sim.run()
    assert after == [[(1, 98, 2)]]
    assert len(sim.outcome.run.orders) == 1


def test_a_move_without_replace_is_cancel_then_new_on_the_answer() -> None:
    sim = market(entry=10, response=10, venue={"native_replace": False})
    do(sim, 10, lambda s: s.quote(BUY, 99, 2))
    do(sim, 50, lambda s: s.quote(BUY, 98, 2))
    between = do(sim, 65, live)
    after = do(sim, 95, live)
    sim.run()
    assert between == [[(1, 99, 2)]]
    assert after == [[(1, 98, 2)]]
    assert [str(s) for s in sim.said()] == ["ACCEPTED@20", "CANCELED@60", "ACCEPTED@80"]


@pytest.mark.parametrize("replace", [True, False])
def test_a_smaller_or_larger_quote_takes_its_new_size(*, replace: bool) -> None:
    sim = market(entry=10, response=10, venue={"native_replace": replace})
    do(sim, 10, lambda s: s.quote(BUY, 99, 8))
    do(sim, 100, lambda s: s.quote(BUY, 99, 3))
    less = do(sim, 200, live)
    do(sim, 300, lambda s: s.quote(BUY, 99, 6))
    more = do(sim, 400, live)
    sim.run()
    assert (less, more) == ([[(1, 99, 3)]], [[(1, 99, 6)]])


def test_a_partly_filled_quote_is_not_topped_up_and_keeps_its_place() -> None:
    sim = market(entry=10, response=10)
    do(sim, 10, lambda s: s.quote(BUY, 101, 8))
    do(sim, 100, lambda s: s.quote(BUY, 100, 5))
    sim.trade(SELL, 100, 12, at=200)
    for at in (250, 300):
        do(sim, at, lambda s: s.quote(BUY, 100, 5))
    left = do(sim, 350, live)
    sim.run()
    assert left == [[(1, 100, 3)]]
    assert int(sim.outcome.run.orders["replaces"].sum()) <= 1


def test_ladder_is_levels_outwards_in_steps() -> None:
    sim = market(entry=10, response=10)
    do(sim, 10, lambda s: s.ladder(BUY, 99.9, 2, 3, 4))
    first = do(sim, 50, live)
    do(sim, 60, lambda s: s.ladder(BUY, 97, 2, 3, 4))  # 99 moves to 93, the others stay
    then = do(sim, 99, live)
    do(sim, 110, lambda s: s.ladder(BUY, 97, 2, 3, 0))
    gone = do(sim, 150, live)
    sim.run()
    assert first == [[(1, 95, 4), (1, 97, 4), (1, 99, 4)]]
    assert then == [[(1, 93, 4), (1, 95, 4), (1, 97, 4)]]
    assert gone == [[]]
    assert sim.outcome.run.orders["replaces"].tolist() == [1, 0, 0]


def test_one_level_needs_no_step() -> None:
    sim = market()
    for at, price in ((10, 99), (20, 98), (30, 98)):
        do(sim, at, lambda s, p=price: s.ladder(BUY, p, 0, 1, 4))
    out = do(sim, 40, live)
    sim.run()
    assert out == [[(1, 98, 4)]]


@pytest.mark.parametrize("moves", ["on_answer", "on_call"])
@pytest.mark.parametrize("replace", [True, False])
def test_live_and_in_flight_never_exceed_what_was_asked(moves: str, *, replace: bool) -> None:
    class Restless(Recorder):
        def on_start(self) -> None:
            self.every(7, self.move)

        def move(self) -> None:
            k = int(self.rng.integers(0, 5))
            self.ladder(BUY, 100 - k, 1, 2, 4)
            self.note("sum", sum(o.leaves_lots for o in self.orders()))

    sim = market(entry=23, response=17, venue={"native_replace": replace}, engine={"moves": moves})
    for k in range(60):
        sim.trade(SELL, 99 if k % 2 else 100, 6, at=50 * k + 25)
    s = played(sim, Restless)
    assert max(v for _, v in s.of("sum")) == 8
    assert len(sim.outcome.run.fills) > 3


def test_overlap_sends_the_new_order_with_the_cancel() -> None:
    sim = market(
        entry=10, response=10, venue={"native_replace": False}, engine={"moves": "overlap"}
    )
    do(sim, 10, lambda s: s.quote(BUY, 99, 2))
    do(sim, 50, lambda s: s.quote(BUY, 98, 2))
    sim.run()
    assert [str(s) for s in sim.said()] == ["ACCEPTED@20", "CANCELED@60", "ACCEPTED@60"]


def test_a_refused_move_is_not_tried_again_by_itself() -> None:
    # The ask falls onto our new price while the replace travels: refused. Nobody asks again
    # before the strategy does.
    sim = market(entry=30, response=30, feed=10_000_000)
    do(sim, 10_000_010, lambda s: s.quote(BUY, 98, 2))
    do(sim, 10_000_100, lambda s: s.quote(BUY, 100, 2))
    sim.level(SELL, 100, 5, at=10_000_110)
    sim.tick(10_100_000)
    sim.run()
    assert [s.what for s in sim.said()] == ["ACCEPTED", "REPLACE_REJECTED"]


def test_a_quote_that_the_gate_refused_is_asked_again_at_the_next_call() -> None:
    sim = market(risk={"max_messages": 1, "window": 100})
    do(sim, 10, lambda s: s.submit(SELL, 1, 110))
    for at in (20, 50, 150):
        do(sim, at, lambda s: s.quote(BUY, 99, 2))
    out = do(sim, 160, live)
    sim.run()
    assert out == [[(-1, 110, 1), (1, 99, 2)]]


def test_a_filled_quote_comes_back_at_the_next_call_only() -> None:
    sim = market(entry=10, response=10)
    do(sim, 10, lambda s: s.quote(BUY, 101, 2))  # stops at the touch, 100
    sim.trade(SELL, 99, 5, at=50)
    between = do(sim, 90, live)
    do(sim, 100, lambda s: s.quote(BUY, 100, 2))
    after = do(sim, 140, live)
    sim.run()
    assert (between, after) == ([[]], [[(1, 100, 2)]])


def test_a_quote_cancelled_by_hand_comes_back_at_the_next_call_only() -> None:
    sim = market(entry=10, response=10)
    do(sim, 10, lambda s: s.quote(BUY, 99, 2))
    do(sim, 50, lambda s: s.cancel(s.orders()[0]))
    gone = do(sim, 120, live)
    do(sim, 130, lambda s: s.quote(BUY, 99, 2))
    back = do(sim, 180, live)
    sim.run()
    assert (gone, back) == ([[]], [[(1, 99, 2)]])

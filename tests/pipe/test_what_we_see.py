"""A strategy's book lacks what it took, once it has heard of it, as a live feed's would."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from random_market import MID, random_tape
from random_orders import random_order_tape
from sim import MONEY, T0, Sim

from hft import BUY, SELL, Strategy, backtest
from hft.analysis.records import Reason
from hft.engine import run_once
from hft.errors import ConfigError
from hft.features import (
    Every,
    Features,
    OnPacket,
    imbalance,
    mid,
    order_count,
    spread,
)
from hft.plan import prepare
from hft.types import InstrumentSpec, Kind, Tif

FOREVER = {"refill_half_life": 0}


class Looks:
    """What the book of a simulation shows at given times of ours."""

    def __init__(self, sim: Sim) -> None:
        self.sim = sim
        self.seen: dict[int, Any] = {}

    def at(self, *times: int) -> None:
        for at in times:
            self.sim.call(lambda s, at=at: self.seen.update({at: s.book().copy()}), at=at)

    def asks(self, at: int) -> list[tuple[int, int]]:
        self.sim.run()
        return list(self.seen[at].asks)

    def bids(self, at: int) -> list[tuple[int, int]]:
        self.sim.run()
        return list(self.seen[at].bids)


def market(**more: Any) -> tuple[Sim, Looks]:
    sim = Sim(entry=10, response=20, **{"venue": FOREVER, **more})
    sim.book(bids={100: 5, 99: 8}, asks={101: 5, 102: 7}, at=0)
    return sim, Looks(sim)


def test_a_level_we_took_is_gone_when_the_fill_is_reported_and_not_before() -> None:
    sim, looks = market()
    sim.submit(BUY, lots=5, at=100)  # arrives at 110, reported at 130
    looks.at(129, 130, 200)
    assert looks.asks(129) == [(101, 5), (102, 7)]
    assert looks.asks(130) == looks.asks(200) == [(102, 7)]
    book = looks.seen[200]
    assert (book.bid, book.ask, book.ask_lots) == (100, 102, 7)


def test_every_view_of_the_book_agrees() -> None:
    sim, _ = market()
    sim.submit(BUY, lots=8, at=100)
    got: dict[str, Any] = {}

    def look(s: Strategy) -> None:
        b = s.book()
        got.update(ask=b.ask, lots=b.ask_lots, mid=b.mid, spread=b.spread, touch=b.touch)
        got.update(micro=b.micro_price, at_101=b.lots_at(SELL, 101), at_102=b.lots_at(SELL, 102))
        got.update(levels=b.levels(SELL), bids=b.levels(BUY))

    sim.call(look, at=200)
    sim.run()
    assert got["levels"] == [(102, 4)]
    assert (got["ask"], got["lots"], got["mid"], got["spread"]) == (102, 4, 101.0, 2)
    assert (got["at_101"], got["at_102"], got["touch"]) == (0, 4, (100, 102))
    assert got["micro"] == pytest.approx((100 * 4 + 102 * 5) / 9)
    assert got["bids"] == [(100, 5), (99, 8)]


def test_a_side_that_we_emptied_is_empty() -> None:
    sim, looks = market()
    sim.submit(SELL, lots=13, at=100)
    looks.at(200)
    assert looks.bids(200) == []
    assert looks.seen[200].bid is None


def test_what_we_took_heals_by_half_lives() -> None:
    sim, looks = market(venue={"refill_half_life": 1_000})
    sim.submit(BUY, lots=5, at=100)  # at the venue at 110
    looks.at(131, 1_110, 2_110, 3_000, 4_000)
    assert [dict(looks.asks(at)).get(101, 0) for at in (131, 1_110, 2_110, 3_000, 4_000)] == [
        0,
        2,  # 2.5 are missing
        3,  # 1.25
        4,  # 0.67
        5,  # less than half a lot is nothing
    ]


def test_new_size_shows_and_a_cancel_takes_its_share() -> None:
    sim, looks = market()
    sim.submit(BUY, lots=3, at=100)
    sim.level(SELL, 101, 9, at=200)
    sim.level(SELL, 101, 3, at=300)
    looks.at(150, 250, 350)
    assert looks.asks(150)[0] == (101, 2)
    assert looks.asks(250)[0] == (101, 6)
    assert looks.asks(350)[0] == (101, 2)  # of 3 missing 1 is left


def test_a_print_that_finds_too_little_goes_on_to_the_next_level() -> None:
    sim, looks = market()
    sim.submit(BUY, lots=4, at=100)
    sim.trade(BUY, 101, 3, at=300)
    looks.at(300, 301)
    assert looks.asks(301) == [(102, 5)]


def test_a_rebuilt_book_without_the_level_forgets_it() -> None:
    sim, looks = market()
    sim.submit(BUY, lots=5, at=100)
    sim.snapshot(bids={100: 5}, asks={102: 7}, at=300)
    sim.level(SELL, 101, 5, at=400)
    looks.at(350, 450)
    assert looks.asks(350) == [(102, 7)]
    assert looks.asks(450) == [(101, 5), (102, 7)]


def test_size_that_met_our_resting_order_is_used_up() -> None:
    sim, looks = market()
    sim.submit(BUY, price=101, lots=8, at=100)  # takes 5, rests with 3
    sim.level(SELL, 101, 0, at=200)
    sim.level(SELL, 101, 10, at=300)
    looks.at(250, 321)
    assert looks.asks(250) == [(102, 7)]
    assert looks.asks(321) == [(101, 7), (102, 7)]


def test_a_report_that_is_faster_than_the_feed_waits_for_the_level() -> None:
    sim, looks = market(feed=500)
    sim.submit(BUY, price=100, lots=3, at=600)
    sim.level(SELL, 100, 10, at=1_000)  # at the venue: fills us; reported at 1,020, shown at 1,500
    looks.at(1_400, 1_501)
    assert looks.asks(1_400) == [(101, 5), (102, 7)]
    assert looks.asks(1_501) == [(100, 7), (101, 5), (102, 7)]


def test_resting_orders_that_trade_take_nothing_from_the_book() -> None:
    sim, looks = market()
    sim.submit(BUY, price=100, lots=3, at=100)
    sim.trade(SELL, 100, 8, at=200)
    looks.at(250)
    assert len(sim.fills()) == 1
    assert looks.bids(250) == [(100, 5), (99, 8)]


def test_a_quote_does_not_lean_on_a_level_that_we_took() -> None:
    sim, _ = market()
    sim.submit(SELL, lots=5, at=100)
    sim.call(lambda s: s.quote(BUY, 100, 2), at=200)
    sim.run()
    assert sim.outcome.run.orders["price"][1] == 99


def test_a_touch_that_we_moved_is_a_change() -> None:
    sim, _ = market()
    calls: list[int] = []
    sim.call(lambda s: s.every(50, lambda: calls.append(s.now - T0), if_changed=("touch",)), at=1)
    sim.submit(BUY, lots=5, at=100)
    sim.run()
    assert len(calls) == 2
    assert 130 <= calls[1] <= 180


def test_the_collar_is_held_against_what_is_left() -> None:
    def state(*, sees_own: bool) -> str:
        sim = Sim(risk={"collar_bps": 100}, venue=FOREVER, engine={"sees_own": sees_own})
        sim.book(bids={1_000: 5}, asks={1_002: 5, 1_040: 5}, at=0)
        sim.submit(BUY, lots=5, at=100)
        return sim.state(sim.submit(SELL, price=1_025, lots=1, at=200))

    assert state(sees_own=True) != "REJECTED"  # the mid is 1,020
    assert state(sees_own=False) == "REJECTED"  # 1,001


def test_without_it_the_book_is_the_tape() -> None:
    sim, looks = market(engine={"sees_own": False})
    sim.submit(BUY, lots=5, at=100)
    looks.at(200)
    assert looks.asks(200) == [(101, 5), (102, 7)]


@pytest.mark.parametrize("venue", [{"partial_fills": False}, {"depth": "touch"}])
def test_where_takers_take_nothing_from_the_book_it_stays(venue: dict[str, Any]) -> None:
    sim, looks = market(venue=venue)
    sim.submit(BUY, lots=5, at=100)
    looks.at(200)
    assert looks.asks(200) == [(101, 5), (102, 7)]


def test_marks_stay_on_the_tape() -> None:
    sim, _ = market()
    sim.tables["engine"]["sample"] = "1ms"
    sim.submit(BUY, lots=5, at=100)
    sim.run()
    last = sim.last_sample()
    assert (last["bid"], last["ask"]) == (100, 101)
    assert sim.equity() * 2 == 5 * (100 + 101 - 2 * 101) * MONEY


# ---- order by order


@pytest.mark.parametrize("needs", [(), ("L3",)])
def test_of_a_feed_of_orders_the_front_of_the_queue_is_gone(needs: tuple[str, ...]) -> None:
    sim = Sim(entry=10, response=20, venue=FOREVER)
    sim.strategy = type("NeedsOrders", (sim.strategy,), {"needs": needs})
    sim.theirs(Kind.ADD, 1, BUY, 100, 5, at=0)
    for number, lots in ((2, 4), (3, 5), (4, 6)):
        sim.theirs(Kind.ADD, number, SELL, 101, lots, at=number)
    sim.submit(BUY, lots=6, at=100)
    sim.theirs(Kind.EXECUTE, 2, SELL, 101, 4, at=300)
    looks, queues = Looks(sim), {}

    def queue(s: Strategy) -> None:
        queues[s.now - T0] = (s.book().queue(SELL, 101), s.book().order_count(SELL, 101))

    looks.at(200, 350)
    if needs:
        sim.call(queue, at=200)
        sim.call(queue, at=350)
    assert looks.asks(200) == [(101, 9)]
    assert looks.asks(350) == [(101, 5)]  # the print took four of those behind
    if needs:
        assert queues == {200: ([(3, 3), (4, 6)], 2), 350: ([(4, 5)], 1)}


# ---- what stays as it was


class Crosses(Strategy):
    """Takes now and then, and keeps its features."""

    features = Features(mid(), imbalance(levels=2), spread(), trigger=OnPacket())
    kept: list[list[float]]

    def on_start(self) -> None:
        type(self).kept = []
        self.every("1s", self.cross)

    def on_features(self, row: Any) -> None:
        type(self).kept.append([row[name] for name in row.names])

    def cross(self) -> None:
        self.submit(side=BUY if self.rng.random() < 0.5 else SELL, lots=50)


SYNTH = {"engine": {"bracket": False}, "data": {"synth": {"duration_s": 30}}}


def test_features_stay_on_the_tape() -> None:
    rows = []
    for sees_own in (True, False):
        backtest(Crosses, recipe=SYNTH, settings={"engine.sees_own": sees_own})
        rows.append(Crosses.kept)
    assert len(rows[0]) > 100
    assert rows[0] == rows[1]


def reacting(sim: Sim) -> list[tuple[int, float, float]]:
    """(time, mid, spread) of the rows of a simulation's reactive features."""
    rows: list[tuple[int, float, float]] = []

    def on_features(self: Any, row: Any) -> None:
        rows.append((row.ts - T0, row["mid"], row["spread"]))

    more = {"features": Features(mid(), spread(), trigger=Every("1us"), reactive=True)}
    sim.strategy = type("Reacting", (sim.strategy,), more | {"on_features": on_features})
    sim.run()
    return rows


@pytest.mark.parametrize("sees_own", [True, False])
def test_reactive_features_feel_what_we_took(sees_own: bool) -> None:  # noqa: FBT001 - drawn
    sim, _ = market(venue={"refill_half_life": 2_000}, engine={"sees_own": sees_own})
    sim.submit(BUY, lots=5, at=1_410)
    sim.tick(12_000)
    at = {ts: (m, s) for ts, m, s in reacting(sim)}
    assert at[1_000] == (100.5, 1.0)
    assert at[2_000] == ((101.0, 2.0) if sees_own else (100.5, 1.0))
    assert at[11_000] == (100.5, 1.0)  # healed, though no row told it


def test_reactive_features_without_takes_are_those_of_the_tape() -> None:
    kept = []
    for reactive in (True, False):
        columns = (mid(), imbalance(levels=3), spread())
        wanted = Features(*columns, trigger=OnPacket(), reactive=reactive)
        cls = type("Quiet", (Crosses,), {"features": wanted, "cross": lambda self: None})
        backtest(cls, recipe=SYNTH)
        kept.append(cls.kept)
    assert len(kept[0]) > 100
    assert kept[0] == kept[1]


@pytest.mark.parametrize("by_orders", [True, False])
def test_reactive_features_are_made_of_the_book_that_is_seen(
    by_orders: bool,  # noqa: FBT001 - drawn
) -> None:
    """At every row the features are those of the views."""
    tape = random_order_tape if by_orders else random_tape
    rows = tape(np.random.default_rng(5), 3_000, T0)
    pairs: list[tuple[float, float, float, float]] = []

    class Compares(Strategy):
        features = Features(mid(), spread(), trigger=OnPacket(), reactive=True)

        def on_start(self) -> None:
            self.every("20ms", self.cross)

        def cross(self) -> None:
            side = BUY if self.rng.random() < 0.5 else SELL
            self.submit(side=side, lots=4)

        def on_features(self, row: Any) -> None:
            book = self.book()
            if book.two_sided:
                pairs.append((row["mid"], book.mid, row["spread"], book.spread))

    spec = InstrumentSpec(symbol="X", venue="SIM", tick=1.0, lot=1.0)
    recipe = {"engine": {"bracket": False}, "latency": {"compute": 0}}
    run = run_once(prepare(Compares, {"X.SIM": rows}, specs=[spec], recipe=recipe)).run
    assert run.status == "complete", run.error
    assert len(run.fills) > 20
    assert len(pairs) > 200
    assert all(m == seen_mid and s == seen for m, seen_mid, s, seen in pairs)


def test_orders_cannot_be_counted_in_what_is_left() -> None:
    with pytest.raises(ConfigError, match=r"orders_bid_1 counts orders.*keeps none"):
        Features(order_count(BUY), trigger=OnPacket(), reactive=True)


class Joins(Strategy):
    """Never takes."""

    def on_start(self) -> None:
        self.every("100ms", self.join, if_changed=("touch",))

    def join(self) -> None:
        book = self.book()
        if book.two_sided:
            self.quotes(bid=book.bid, ask=book.ask, lots=5)


def test_a_run_that_takes_nothing_is_the_same_to_the_byte() -> None:
    journals = []
    for sees_own in (True, False):
        settings = {"engine.sees_own": sees_own, "venue.cross": "wait_trade"}
        outcome = run_once(prepare(Joins, recipe=SYNTH, settings=settings))
        assert len(outcome.run.fills) > 10
        journals.append(outcome.journal.tobytes())
    assert journals[0] == journals[1]


# ---- what is seen is what is there


class Expects(Strategy):
    """Asks for more than there is within a limit, and expects what the book shows."""

    expected: list[int]

    def on_start(self) -> None:
        type(self).expected = []
        self.every("3ms", self.take)

    def take(self) -> None:
        book, side = self.book(), int(self.rng.choice([BUY, SELL]))
        if not book.live or not book.levels(-side):
            return
        limit = MID + side * int(self.rng.integers(0, 8))
        shown = sum(lots for price, lots in book.levels(-side, 100) if side * (limit - price) >= 0)
        lots = int(self.rng.integers(1, 40))
        type(self).expected.append(min(shown, lots))
        self.submit(side=side, lots=lots, price=limit, tif=Tif.IOC)


@given(st.integers(0, 2**32), st.sampled_from(["20ms", 0]), st.sampled_from([1.0, 0.5]))
def test_a_taker_gets_what_its_book_shows(seed: int, half_life: Any, heals: float) -> None:
    """Without any latency the venue's book and ours miss the same, whatever the tape does."""
    rows = random_tape(np.random.default_rng(seed), 150, T0)
    rows["ts_recv"] = rows["ts_event"]
    venue = {"refill_half_life": half_life, "refill_probability": heals}
    recipe = {
        "venue": venue,
        "latency": dict(feed=0, entry=0, response=0, compute=0),
        "engine": {"bracket": False},
        "seed": seed % 1_000,
    }
    spec = InstrumentSpec(symbol="X", venue="SIM", tick=1.0, lot=1.0)
    run = run_once(prepare(Expects, {"X.SIM": rows}, specs=[spec], recipe=recipe)).run
    assert run.status == "complete", run.error
    filled = [int(order["cum_lots"]) for order in run.orders]
    refused = [int(order["reason"]) for order in run.orders]
    for number, (got, want) in enumerate(zip(filled, Expects.expected, strict=True)):
        assert got == want or refused[number] == Reason.MARKET_CLOSED, (number, got, want)

"""Everything design page 3 promises a strategy, one sentence a test."""

from __future__ import annotations

import gc
import math
from datetime import UTC, datetime
from typing import Any, ClassVar

import numpy as np
import pytest
from sim import T0, Scripted, Sim

from hft import Params, Strategy
from hft.analysis.records import OrderState
from hft.analysis.report import Report
from hft.engine import run_once
from hft.errors import ConfigError, DataError, OrderError
from hft.features import Every, Features, OnPacket, feature, micro_price, mid
from hft.plan import prepare
from hft.types import BUY, GTC, IOC, POST_ONLY, SELL, InstrumentSpec, Trading

MS, S = 1_000_000, 1_000_000_000


def market(**more: Any) -> Sim:
    """A quiet two-sided market: 100 x 102, 10 lots each, 5 levels deep."""
    sim = Sim(**more)
    for inst in sim.markets:
        sim.book(
            bids={100 - k: 10 for k in range(5)},
            asks={102 + k: 10 for k in range(5)},
            at=0,
            inst=inst,
        )
    return sim


def do(sim: Sim, at: int, action: Any) -> list[Any]:
    """Runs `action(strategy)` at a time; the list holds what it returned."""
    out: list[Any] = []
    sim.call(lambda s: out.append(action(s)), at=at)
    return out


def refused(sim: Sim, action: Any, error: type[Exception]) -> str:
    """What an action raises when it is called inside a handler, caught there."""
    said: list[str] = []

    def attempt(s: Strategy) -> None:
        with pytest.raises(error) as caught:
            action(s)
        said.append(str(caught.value))

    sim.call(attempt, at=10)
    sim.run()
    return said[0]


class Recorder(Strategy):
    """Keeps (time, handler, argument) of everything."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[int, str, Any]] = []

    def note(self, what: str, value: Any = None) -> None:
        self.seen.append((self.now - T0, what, value))

    def of(self, what: str) -> list[tuple[int, Any]]:
        return [(at, v) for at, w, v in self.seen if w == what]


def played(sim: Sim, cls: type[Strategy]) -> Any:
    sim.strategy = cls
    return sim.run().strategy


# ---- instruments, account, position, orders -----------------------------------------------------


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


# ---- misuse --------------------------------------------------------------------------------------


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


# ---- views ---------------------------------------------------------------------------------------


def test_a_book_view_dies_with_its_handler_and_never_comes_back() -> None:
    class Keep(Recorder):
        def on_book(self, book: Any) -> None:
            for old in self.kept:
                with pytest.raises(OrderError, match="copy"):
                    old.bid  # noqa: B018
            self.kept.append(book)
            self.copies.append(book.copy())
            assert book.bid == self.copies[-1].bid

        kept: ClassVar[list[Any]] = []
        copies: ClassVar[list[Any]] = []

    sim = market()
    for k in range(5):
        sim.level(BUY, 101, k + 1, at=100 * (k + 1))
    strategy = played(sim, Keep)
    assert [c.bid_lots for c in strategy.copies] == [10, 1, 2, 3, 4, 5, 5]
    with pytest.raises(OrderError):
        strategy.kept[-1].ask  # noqa: B018
    assert strategy.copies[1].bids[:2] == [(101, 1), (100, 10)]


def test_rows_and_signals_kept_are_dead_too() -> None:
    class Keep(Recorder):
        features = Features(mid(), micro_price(), trigger=OnPacket())
        kept: ClassVar[list[Any]] = []

        def on_features(self, row: Any) -> None:
            for old in self.kept:
                with pytest.raises(OrderError, match="copy"):
                    old["mid"]
            self.kept.append(row)
            copy = row.copy()
            assert copy["mid"] == row["mid"] == row.mid
            with pytest.raises(KeyError, match="no feature"):
                row["nope"]
            with pytest.raises(AttributeError):
                row.nope  # noqa: B018
            self.note("row", copy["mid"])

    sim = market()
    sim.level(BUY, 101, 5, at=100)
    assert [v for _, v in played(sim, Keep).of("row")][:2] == [101.0, 101.5]


def test_trades_fills_and_orders_are_values_and_outlive_the_run() -> None:
    class Keep(Scripted):
        def on_trade(self, trade: Any) -> None:
            kept.append(trade)

        def on_fill(self, fill: Any) -> None:
            kept.append(fill)

        def on_bar(self, bar: Any) -> None:
            kept.append(bar)

        bars = "1us"

    kept: list[Any] = []
    sim = market()
    sim.script.append((10, lambda s: s.submit(BUY, 3, 102, IOC)))
    sim.trade(SELL, 100, 7, at=20)
    played(sim, Keep)
    del sim
    gc.collect()
    fill, trade, bar = kept
    assert (trade.price, trade.lots, trade.side, trade.instrument.name, trade.kind.name) == (
        100,
        7,
        -1,
        "X.SIM",
        "TRADE",
    )
    assert (fill.price, fill.lots, fill.side, fill.maker, fill.reason.name) == (
        102,
        3,
        1,
        False,
        "TAKEN",
    )
    assert fill.order.filled
    assert fill.instrument is fill.order.instrument
    assert (bar.open, bar.close, bar.lots, bar.buy_lots, bar.prints) == (100, 100, 7, 0, 1)


def test_book_that_lost_messages_cannot_be_read() -> None:
    sim = market()
    sim.status(Trading.GAP, at=5)

    def read(s: Any) -> Any:
        assert not s.book().live
        return s.book().bid

    assert "lost messages" in refused(sim, read, DataError)


def test_book_reads_levels_sizes_and_ages() -> None:
    def act(s: Any) -> None:
        book = s.book()
        assert (book.bid, book.ask, book.bid_lots, book.ask_lots) == (100, 102, 10, 10)
        assert (book.mid, book.micro_price, book.spread, book.touch) == (
            101.0,
            101.0,
            2,
            (100, 102),
        )
        assert book.levels(BUY, 2) == [(100, 10), (99, 10)]
        assert book.lots_at(SELL, 103) == 10
        assert (book.live, book.two_sided, book.trading) == (True, True, Trading.OPEN)
        assert book.age_ns == 500 - 30
        assert (book.ts_event - T0, book.ts_recv - T0) == (0, 30)

    sim = market(feed=30)
    do(sim, 500, act)
    sim.run()


def test_one_sided_book_has_none_and_nan() -> None:
    sim = Sim()
    sim.book(bids={100: 1}, at=0)
    out = do(
        sim,
        10,
        lambda s: (s.book().ask, s.book().spread, math.isnan(s.book().mid), s.book().ask_lots),
    )
    sim.run()
    assert out == [(None, None, True, 0)]


# ---- handlers ------------------------------------------------------------------------------------


def test_book_and_trade_handlers_run_once_a_packet_on_the_whole_book() -> None:
    class Look(Recorder):
        def on_book(self, book: Any) -> None:
            self.note("book", book.touch)

        def on_trade(self, trade: Any) -> None:
            self.note("trade", trade.price)

    sim = Sim()
    sim.book(bids={100: 5}, asks={101: 5}, at=0)
    flags = 3  # seen by both, not the last row of its packet
    sim.trade(BUY, 101, 5, at=50, flags=flags)
    sim.level(SELL, 101, 0, at=50, flags=flags)
    sim.level(SELL, 102, 5, at=50)
    s = played(sim, Look)
    assert s.of("trade") == [(50, 101)]
    assert s.of("book")[:2] == [(0, (100, 101)), (50, (100, 102))]


def test_our_own_fill_is_no_trade() -> None:
    class Look(Recorder):
        def on_trade(self, trade: Any) -> None:
            self.note("trade")

        def on_fill(self, fill: Any) -> None:
            self.note("fill", (fill.price, fill.ts_venue - T0, fill.ts - T0))

        def on_start(self) -> None:
            self.at(T0 + 10, lambda: self.submit(BUY, 1, 102, IOC))

    s = played(market(entry=20, response=30), Look)
    assert s.seen == [(60, "fill", (102, 30, 60))]


def test_data_handler_gets_funding_and_signals() -> None:
    class Look(Recorder):
        def on_data(self, datum: Any) -> None:
            self.note(datum.kind.name, (datum.price, datum.value))

    sim = market()
    sim.funding(100_000, 101, at=50)
    s = played(sim, Look)
    assert s.of("FUNDING") == [(50, (101, 0.0001))]


def test_ready_comes_when_the_book_is_two_sided_and_again_after_a_gap() -> None:
    class Look(Recorder):
        def on_ready(self, inst: Any) -> None:
            self.note("ready", inst.name)

        def on_gap(self, inst: Any, reason: str) -> None:
            self.note("gap", reason)

    sim = Sim()
    sim.book(bids={100: 5}, at=0)
    sim.book(asks={101: 5}, at=10)
    sim.status(Trading.GAP, at=20)
    sim.level(BUY, 99, 1, at=25)
    sim.status(Trading.GAP, at=26)
    sim.snapshot(bids={100: 5}, asks={101: 5}, at=30)
    sim.tick(40)
    sim.status(Trading.GAP, at=50)
    sim.snapshot(bids={100: 5}, asks={101: 5}, at=60)
    s = played(sim, Look)
    assert [(at, what) for at, what, _ in s.seen] == [
        (10, "ready"),
        (20, "gap"),
        (30, "ready"),
        (50, "gap"),
        (60, "ready"),
    ]
    assert s.of("gap")[0][1] == "messages were lost"
    assert sim.outcome.run.counters["gaps"] == 2


def test_ready_alone_is_enough_of_a_strategy() -> None:
    class Once(Recorder):
        def on_ready(self, inst: Any) -> None:
            self.note("ready")
            self.submit(inst, BUY, 1, 100)

    assert played(market(), Once).seen == [(0, "ready", None)]


def test_gap_and_snapshot_in_one_packet_are_still_told() -> None:
    class Look(Recorder):
        def on_ready(self, inst: Any) -> None:
            self.note("ready")

        def on_gap(self, inst: Any, reason: str) -> None:
            self.note("gap")

    sim = market()
    sim.markets["X.SIM"].add(32, 50, ref_id=int(Trading.GAP), flags=3)
    sim.snapshot(bids={100: 5}, asks={101: 5}, at=50)
    assert [w for _, w, _ in played(sim, Look).seen] == ["ready", "gap", "ready"]


def test_gaps_are_counted_without_a_gap_handler() -> None:
    sim = market()
    sim.status(Trading.GAP, at=50)
    sim.snapshot(bids={100: 5}, asks={101: 5}, at=60)
    sim.run()
    assert sim.outcome.run.counters["gaps"] == 1


def test_bars_lie_on_the_grid_of_our_clock() -> None:
    class Look(Recorder):
        bars = "1ms"

        def on_bar(self, bar: Any) -> None:
            self.note(
                "bar",
                (
                    bar.ts_close - bar.ts_open,
                    bar.open,
                    bar.high,
                    bar.low,
                    bar.close,
                    bar.lots,
                    bar.buy_lots,
                ),
            )

    sim = market()
    sim.trade(BUY, 102, 3, at=100_000)
    sim.trade(SELL, 99, 2, at=200_000)
    sim.trade(BUY, 103, 1, at=1_000_000)  # on the grid: the bar that ends there
    sim.trade(BUY, 104, 1, at=1_000_001)
    sim.tick(5_000_000)
    s = played(sim, Look)
    assert s.seen == [
        (1 * MS, "bar", (MS, 102, 103, 99, 103, 6, 4)),
        (2 * MS, "bar", (MS, 104, 104, 104, 104, 1, 1)),
    ]


def test_own_feature_is_one_more_column() -> None:
    @feature(window="250ms", state=0.0)
    def pressure(state: float, row: Any) -> tuple[float, float]:
        state = 0.9 * state + row.signed_lots
        return state, state / (1 + row.depth_lots(5))

    class Look(Recorder):
        features = Features(mid(), pressure, trigger=OnPacket())

        def on_features(self, row: Any) -> None:
            self.note("row", (row.mid, row.pressure))

    sim = market()
    for at in (10_000, 10_010):  # warm by then
        sim.trade(BUY, 102, 9, at=at * MS)
    rows = [v for _, v in played(sim, Look).of("row")]
    assert rows[-1][0] == 101.0
    assert rows[-1][1] > 0


def test_features_on_a_clock_fire_between_packets() -> None:
    class Look(Recorder):
        features = Features(mid(), trigger=Every("1ms"))

        def on_features(self, row: Any) -> None:
            self.note("row", row.mid)

    sim = market()
    sim.tick(5 * MS)
    assert len(played(sim, Look).of("row")) >= 4


def test_order_handler_hears_every_state() -> None:
    sim = market(entry=10, response=10)
    order = sim.submit(BUY, lots=5, price=101, at=10)
    sim.trade(SELL, 101, 2, at=40)
    sim.cancel(order, at=60)
    assert sim.heard(order) == ["NEW@30", "PARTIALLY_FILLED@50", "CANCELED@80"]


def test_target_verbs_send_only_pulls_while_the_market_is_shut() -> None:
    class Look(Recorder):
        def on_start(self) -> None:
            self.every(5_000, self.quote_both)

        def quote_both(self) -> None:
            bid = 98 if self.now < T0 + 60_000 else 97
            self.quote(BUY, bid, 0 if self.now > T0 + 80_000 else 3)
            self.quote(SELL, 103, 0 if self.now < T0 + 40_000 else 2)

    sim = market()
    sim.status(Trading.HALT, at=30_000)
    sim.status(Trading.OPEN, at=72_000)
    sim.status(Trading.CLOSED, at=79_000)
    sim.tick(100_000)
    played(sim, Look)
    orders = sim.outcome.run.orders
    bid, ask = orders[orders["side"] == BUY], orders[orders["side"] == SELL]
    assert (len(bid), int(bid["replaces"][0]), int(bid["price"][0])) == (1, 1, 97)
    assert len(ask) == 1
    assert int(ask["ts_decide"][0]) == T0 + 75_000  # asked for from 40 us on, sent when it opened
    assert OrderState(int(bid["state"][0])) is OrderState.CANCELED


def test_a_refusal_of_the_gate_reaches_on_order_after_the_handler() -> None:
    class Look(Recorder):
        def on_start(self) -> None:
            self.at(T0 + 10, self.go)

        def go(self) -> None:
            order = self.submit(BUY, 5, 100)
            assert order.rejected
            assert order.reason.name == "ORDER_SIZE"
            self.note("sent")

        def on_order(self, order: Any) -> None:
            self.note("order", order.reason.name)

    s = played(market(risk={"max_order_lots": 4}), Look)
    assert s.seen == [(10, "sent", None), (10, "order", "ORDER_SIZE")]


def test_refused_replace_leaves_the_order_and_says_so() -> None:
    sim = market(risk={"max_order_lots": 4})
    order = sim.submit(BUY, lots=4, price=100, at=10)
    out = do(sim, 20, lambda s: s.replace(order.handle, lots=9))
    sim.run()
    assert out == [False]
    assert sim.state(order) == "NEW"
    assert sim.reason(order) == "ORDER_SIZE"


# ---- timers --------------------------------------------------------------------------------------


def test_timers_every_at_and_cancel() -> None:
    class Look(Recorder):
        def on_start(self) -> None:
            self.timer = self.every("10us", self.tick, "arg")
            self.every(15_000, None)
            self.at(T0 + 25_000, self.stop)
            self.at(0, self.note, "past")

        def tick(self, arg: str) -> None:
            self.note("tick", arg)

        def on_timer(self, timer: Any) -> None:
            self.note("timer")

        def stop(self) -> None:
            self.timer.cancel()

    sim = market()
    sim.tick(50_000)
    s = played(sim, Look)
    assert [at for at, _ in s.of("tick")] == [10_000, 20_000]
    assert s.of("tick")[0][1] == "arg"
    assert [at for at, _ in s.of("timer")] == [15_000, 30_000, 45_000]
    assert s.of("past") == [(0, None)]


def test_timer_with_if_changed_skips_what_did_not_change() -> None:
    class Look(Recorder):
        def on_start(self) -> None:
            self.every(100, self.note, "touch", if_changed=("touch",))
            self.every(100, self.note, "orders", if_changed=("orders",))
            self.every(100, self.note, "position", if_changed=("position",))
            self.at(T0 + 250, lambda: self.submit(BUY, 1, 102, IOC))

    sim = market()
    sim.level(BUY, 101, 1, at=410)
    sim.level(BUY, 101, 2, at=610)  # size alone is no change of the touch
    s = played(sim, Look)
    assert [at for at, _ in s.of("touch")] == [100, 500]
    assert [at for at, _ in s.of("orders")] == [100, 300]
    assert [at for at, _ in s.of("position")] == [100, 300]


def test_schedule_is_a_time_of_day_in_a_zone() -> None:
    class Look(Recorder):
        def on_start(self) -> None:
            self.schedule("09:45", "10:15:00", 3, self.slice, tz="Asia/Shanghai")

        def slice(self, k: int) -> None:
            clock = datetime.fromtimestamp(self.now / 1e9, UTC)
            self.note("slice", (k, f"{clock:%H:%M}"))

    sim = market()
    day = (T0 // (86_400 * S)) * 86_400 * S
    rows = sim.markets["X.SIM"].array()
    for name in ("ts_event", "ts_recv"):
        rows[name] += day + 90 * 60 * S - T0  # 01:30 UTC is 09:30 in Shanghai
    end = rows[-1:].copy()
    end["ts_event"] += 60 * 60 * S
    end["ts_recv"] += 60 * 60 * S
    spec = InstrumentSpec(symbol="X", venue="SIM", tick=1.0, lot=1.0)
    plan = prepare(
        Look,
        {"X.SIM": np.concatenate([rows, end])},
        specs=[spec],
        recipe={"engine": {"bracket": False}},
    )
    strategy: Any = run_once(plan).strategy
    assert [v for _, v in strategy.of("slice")] == [(0, "01:45"), (1, "01:55"), (2, "02:05")]


@pytest.mark.parametrize(
    "bad",
    [
        ("25:00", "26:00", "UTC"),
        ("x", "y", "UTC"),
        ("09:00", "10:00", "Mars/Base"),
        ("10:00", "09:00", "UTC"),
    ],
)
def test_schedule_refuses_what_is_no_time_of_day(bad: tuple[str, str, str]) -> None:
    assert refused(
        market(), lambda s: s.schedule(bad[0], bad[1], 2, lambda k: None, tz=bad[2]), ConfigError
    )


# ---- target verbs --------------------------------------------------------------------------------


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


# ---- parents, tags, stop -------------------------------------------------------------------------


def test_parent_orders_sum_their_slices() -> None:
    class Look(Recorder):
        def on_start(self) -> None:
            self.parent = self.parent_order(self.listed[0], BUY, 7)
            self.at(T0 + 10, lambda: self.submit(BUY, 3, 102, IOC, parent=self.parent))
            self.at(T0 + 20, lambda: self.submit(BUY, 2, 102, IOC, parent=self.parent))

    s = played(market(), Look)
    assert (s.parent.lots, s.parent.filled_lots, s.parent.leaves_lots, s.parent.side) == (
        7,
        5,
        2,
        1,
    )
    assert s.parent.instrument is s.listed[0]


def test_a_flatten_on_stop_that_walks_many_levels_is_answered_to_the_last_fill() -> None:
    class Stop(Scripted):
        def on_stop(self) -> None:
            self.flatten()

    sim = Sim()
    sim.strategy = Stop
    sim.book(bids={100 - k: 1 for k in range(90)}, asks={102: 90}, at=0)
    sim.submit(BUY, lots=90, price=102, tif=IOC, at=10)
    sim.run()
    assert sim.position() == 0


def test_flatten_on_stop_leaves_no_position() -> None:
    class Stop(Scripted):
        def on_stop(self) -> None:
            self.flatten()

    sim = market(entry=10, response=10, risk={"max_order_lots": 4})
    sim.submit(BUY, lots=4, price=102, tif=IOC, at=10)
    sim.submit(BUY, lots=4, price=102, tif=IOC, at=15)
    sim.submit(BUY, lots=3, price=99, at=10)
    sim.strategy = Stop
    sim.run()
    assert sim.position() == 0
    assert sim.outcome.run.tags[int(sim.outcome.run.orders[-1]["tag"])] == "flatten"


def test_fees_of_a_leg_are_in_currency() -> None:
    sim = market(also=("B.SIM",), tick=0.5, venue={"taker_fee": 0.001})
    out = do(sim, 10, lambda s: s.fees(*s.listed))
    sim.run()
    assert out == [pytest.approx(2 * 0.001 * 101 * 0.5)]


def test_rng_follows_the_seed_and_log_bears_the_module() -> None:
    draws = []
    for seed in (1, 1, 2):
        sim = market(recipe={"seed": seed})
        out = do(sim, 10, lambda s: (float(s.rng.random()), s.log.name))
        sim.run()
        draws += out
    assert draws[0] == draws[1]
    assert draws[0] != draws[2]
    assert draws[0][1] == "sim"


# ---- params --------------------------------------------------------------------------------------


class Sized(Params, frozen=True):
    lots: int = 2
    edge: float = 0.5


class WithParams(Recorder):
    params: Sized

    def on_start(self) -> None:
        self.note("params", (self.params.lots, self.params.edge))


def test_params_come_from_the_recipe_and_unknown_ones_are_refused() -> None:
    sim = market(recipe={"params": {"lots": 7}})
    assert played(sim, WithParams).of("params") == [(0, (7, 0.5))]
    with pytest.raises(ConfigError, match="no key lotz; did you mean lots"):
        played(market(recipe={"params": {"lotz": 7}}), WithParams)


# ---- failures ------------------------------------------------------------------------------------

HANDLERS = [
    "on_start",
    "on_ready",
    "on_book",
    "on_trade",
    "on_bar",
    "on_features",
    "on_data",
    "on_order",
    "on_fill",
    "on_gap",
    "on_timer",
    "on_stop",
    "timer",
]


def eventful() -> Sim:
    """A market in which every handler is called."""
    sim = market(entry=10, response=10)
    sim.trade(SELL, 100, 1, at=50)
    sim.funding(1, 100, at=60)
    sim.status(Trading.GAP, at=500)
    sim.snapshot(bids={100: 5}, asks={102: 5}, at=600)
    sim.tick(3_000)
    return sim


class Everything(Strategy):
    bars = "1us"
    features = Features(mid(), trigger=OnPacket())
    where = ""

    def act(self, where: str) -> None:
        raise NotImplementedError

    def on_start(self) -> None:
        self.every(700)
        self.at(T0 + 100, self.on_a_timer)
        self.at(T0 + 40, lambda: self.submit(BUY, 1, 102, IOC))
        self.act("on_start")

    def on_a_timer(self) -> None:
        self.act("timer")

    def on_ready(self, inst: Any) -> None:
        self.act("on_ready")

    def on_book(self, book: Any) -> None:
        self.act("on_book")

    def on_trade(self, trade: Any) -> None:
        self.act("on_trade")

    def on_bar(self, bar: Any) -> None:
        self.act("on_bar")

    def on_features(self, row: Any) -> None:
        self.act("on_features")

    def on_data(self, datum: Any) -> None:
        self.act("on_data")

    def on_order(self, order: Any) -> None:
        self.act("on_order")

    def on_fill(self, fill: Any) -> None:
        self.act("on_fill")

    def on_gap(self, inst: Any, reason: str) -> None:
        self.act("on_gap")

    def on_timer(self, timer: Any) -> None:
        self.act("on_timer")

    def on_stop(self) -> None:
        self.act("on_stop")


# Classes: an instance raised here would keep its traceback, and with it the run, for the session.
@pytest.mark.parametrize("error", [ValueError, OrderError])
@pytest.mark.parametrize("handler", HANDLERS)
def test_a_handler_that_raises_ends_the_run_as_failed(handler: str, error: type[Exception]) -> None:
    class Raises(Everything):
        def act(self, where: str) -> None:
            if where == handler:
                raise error("boom")

    sim = eventful()
    sim.strategy = Raises
    run = sim.outcome.run
    assert run.status == "failed"
    assert run.error.startswith("StrategyError: ")
    assert f"{error.__name__}: boom" in run.error
    assert "test_strategy_api.py" in run.error
    assert Report(run).figures["run"]["status"] == "failed"


def test_misuse_through_a_bare_timer_is_the_strategys_failure_too() -> None:
    class Bare(Strategy):
        def on_start(self) -> None:
            self.at(T0 + 10, self.submit, BUY, 0, 100)

    sim = market()
    sim.strategy = Bare
    assert sim.outcome.run.status == "failed"
    assert "lots must be positive" in sim.outcome.run.error


@pytest.mark.parametrize("handler", HANDLERS)
def test_every_call_works_in_every_handler(handler: str) -> None:
    called = []

    class Busy(Everything):
        def act(self, where: str) -> None:
            if where != handler or len(called) > 3:
                return
            called.append(where)
            inst = self.listed[0]
            book = self.book(inst)
            if book.live:
                book.copy()
            self.position(inst).lots, self.account.equity, self.now
            order = self.submit(inst, BUY, 1, 90, tag="a")
            self.submit(inst, SELL, 1, None, IOC)
            self.replace(order, price=91)
            self.cancel(order)
            self.quote(inst, BUY, 95.5, 1)
            self.quotes(inst, 95.5, 105.5, 1)
            self.ladder(inst, SELL, 105, 1, 2, 1)
            self.orders(inst, tag="a")
            self.cancel_all(inst, tag="a")
            self.every("1s", lambda: None)
            self.at(self.now, lambda: None)
            self.parent_order(inst, BUY, 1)
            self.flatten(inst)

    sim = eventful()
    sim.strategy = Busy
    sim.run()
    assert called


def test_a_failed_backtest_gives_a_marked_report() -> None:
    import hft

    class Fails(Strategy):
        def on_book(self, book: Any) -> None:
            raise RuntimeError("no")

    sim = market()
    rows = sim.markets["X.SIM"].array()
    spec = InstrumentSpec(symbol="X", venue="SIM", tick=1.0, lot=1.0)
    report = hft.backtest(Fails, {"X.SIM": rows}, specs=[spec])
    assert "failed" in str(report)
    assert report.run.error.startswith("StrategyError: RuntimeError: no at ")


def test_a_quote_cancelled_by_hand_comes_back_at_the_next_call_only() -> None:
    sim = market(entry=10, response=10)
    do(sim, 10, lambda s: s.quote(BUY, 99, 2))
    do(sim, 50, lambda s: s.cancel(s.orders()[0]))
    gone = do(sim, 120, live)
    do(sim, 130, lambda s: s.quote(BUY, 99, 2))
    back = do(sim, 180, live)
    sim.run()
    assert (gone, back) == ([[]], [[(1, 99, 2)]])


def test_replace_where_the_venue_has_none() -> None:
    sim = market(venue={"native_replace": False})
    order = sim.submit(BUY, lots=2, price=99, at=10)
    assert "cancel" in refused(sim, lambda s: s.replace(order.handle, price=98), OrderError)


def test_what_is_kept_of_a_run_that_is_gone_is_a_value_or_dead() -> None:
    class Keep(Strategy):
        def on_trade(self, trade: Any) -> None:
            trades.append(trade)

        def on_book(self, book: Any) -> None:
            books.append(book)

    trades: list[Any] = []
    books: list[Any] = []

    def run() -> None:
        sim = market()
        sim.trade(SELL, 100, 7, at=20)
        played(sim, Keep)

    run()
    gc.collect()
    assert trades[0].instrument.name == "X.SIM"
    for read in ("instrument", "bid", "age_ns", "ts_recv"):
        with pytest.raises(OrderError, match="copy"):
            getattr(books[0], read)
    with pytest.raises(OrderError, match="copy"):
        books[0].price(3)

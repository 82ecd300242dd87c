"""Which handler hears what, and when."""

from __future__ import annotations

from typing import Any

from recorder import MS, Recorder, do, market, played
from sim import T0, Sim

from hft.analysis.records import OrderState
from hft.features import Every, Features, OnPacket, feature, mid
from hft.types import BUY, IOC, SELL, Trading


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

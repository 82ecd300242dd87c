"""A handler that raises, wherever it does, ends the run as failed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from recorder import market
from sim import T0, Sim

from hft import Strategy
from hft.analysis.report import Report
from hft.errors import OrderError
from hft.features import Features, OnPacket, mid
from hft.types import BUY, IOC, SELL, InstrumentSpec, Trading

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
    assert Path(__file__).name in run.error
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

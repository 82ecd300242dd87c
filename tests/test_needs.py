"""A run on data that cannot feed a feature, bars or the strategy itself is refused at the start."""

from __future__ import annotations

import numpy as np
import pytest

import hft
from hft import BUY, Features, OnTouch, OnTrade, Strategy
from hft.data.synth import SynthConfig, symbol_chunks
from hft.errors import ConfigError, DataError, StrategyError
from hft.features import imbalance, order_count, trade_flow
from hft.types import InstrumentSpec, Kind

SPEC = InstrumentSpec(symbol="A", venue="V", tick=0.5, lot=1)


def rows(*, orders: bool) -> np.ndarray:
    config = SynthConfig(duration_s=3, messages_per_s=300, order_by_order=orders)
    return np.concatenate(list(symbol_chunks(config, 0)))


def run(strategy: type[Strategy], events: np.ndarray, **settings) -> hft.Report:
    return hft.backtest(strategy, {SPEC.name: events}, specs=[SPEC], settings=settings)


class OfOrders(Strategy):
    features = Features(imbalance(), order_count(BUY), trigger=OnTouch())


class OfFlow(Strategy):
    features = Features(trade_flow("1s"), trigger=OnTouch())


class AtTrades(Strategy):
    features = Features(imbalance(), trigger=OnTrade())


class OfBars(Strategy):
    bars = "1s"


class OfQueues(Strategy):
    needs = ("L3",)

    def on_book(self, book) -> None:
        self.seen = book.queue(BUY, book.bid) if book.bid else None
        if self.seen:
            assert sum(lots for _, lots in self.seen) == book.bid_lots
            assert book.order_count(BUY, book.bid) == len(self.seen)


@pytest.mark.parametrize(
    ("strategy", "why"),
    [
        (OfOrders, r"feature 'orders_bid_1' needs every order \(L3\); the data of A.V give L2$"),
        (OfFlow, r"feature 'trade_flow_1s' needs prints \(trades\)"),
        (AtTrades, r"feature 'OnTrade\(\)' needs prints"),
        (OfBars, r"OfBars.bars needs prints"),
        (OfQueues, r"OfQueues.needs needs every order"),
    ],
)
def test_data_that_cannot_give_it_are_refused(strategy, why: str) -> None:
    quotes = rows(orders=False)
    with pytest.raises(ConfigError, match=why):
        run(strategy, quotes[quotes["kind"] != Kind.TRADE])


@pytest.mark.parametrize("strategy", [OfOrders, OfFlow, AtTrades, OfBars, OfQueues])
def test_orders_give_everything(strategy) -> None:
    assert run(strategy, rows(orders=True)).run.status == "complete"


def test_orders_told_as_levels_are_no_orders_any_more() -> None:
    report = run(OfFlow, rows(orders=True), **{"data.as_levels": True})
    assert report.run.status == "complete"
    with pytest.raises(ConfigError, match=r"the data of A.V give L2, trades"):
        run(OfOrders, rows(orders=True), **{"data.as_levels": True})


def test_a_need_that_does_not_exist_is_named() -> None:
    class Odd(Strategy):
        needs = ("L4",)

    with pytest.raises(StrategyError, match=r"Odd.needs has \['L4'\]; there are \['L2', 'L3', "):
        run(Odd, rows(orders=True))


def test_a_need_is_one_of_several_even_if_it_is_alone() -> None:
    class Bare(Strategy):
        needs = "L3"

    with pytest.raises(StrategyError, match=r"Bare.needs is 'L3', want a tuple such as \('L3',\)"):
        run(Bare, rows(orders=True))


@pytest.mark.parametrize("orders", [False, True])
def test_queues_that_were_not_asked_for_cannot_be_read(*, orders: bool) -> None:
    class Reads(Strategy):
        def on_book(self, book) -> None:
            with pytest.raises(DataError, match=r'keeps no orders: say needs = \("L3",\)'):
                book.queue(BUY, 1)

    assert run(Reads, rows(orders=orders)).run.status == "complete"


def test_faults_of_a_feed_are_in_the_counters() -> None:
    events = rows(orders=True)
    events["order_id"][np.flatnonzero(events["kind"] == Kind.CANCEL)[:7]] = 10**9
    counters = run(OfOrders, events).run.counters
    assert counters["l3_unknown_ids"] >= 7
    assert "l3_unknown_ids" not in run(OfFlow, rows(orders=False)).run.counters

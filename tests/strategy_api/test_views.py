"""Books, rows and signals die with their handler; trades, fills and orders are values."""

from __future__ import annotations

import gc
import math
from typing import Any, ClassVar

import pytest
from recorder import Recorder, do, market, played, refused
from sim import T0, Scripted, Sim

from hft import Strategy
from hft.errors import DataError, OrderError
from hft.features import Features, OnPacket, micro_price, mid
from hft.types import BUY, IOC, SELL, Trading


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

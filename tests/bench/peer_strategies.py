"""Our side's strategies: the peer's rules, as a user of `hft` would write them."""

from __future__ import annotations

import math
from typing import Any

from hft import BUY, POST_ONLY, SELL, Strategy
from hft.types import InstrumentSpec

SPEC = InstrumentSpec(symbol="BTC", venue="X", tick=0.1, lot=0.001)
INSTRUMENTS = 256
LOTS = 10
LEVELS = 10
LIMIT = 500


class Replay(Strategy):
    """Rows and 100 ms steps; one bid far from the market keeps the venue's side at work."""

    price = 595_000

    def on_start(self) -> None:
        self.at(self.now + 100_000_000, self.send)
        self.every("100ms", self.nothing, if_changed=("orders",))

    def send(self) -> None:
        for inst in self.instruments.values():
            self.submit(inst, BUY, LOTS, self.price, tif=POST_ONLY)

    def nothing(self) -> None:
        pass


class RealReplay(Replay):
    price = 500_000


class PythonSteps(Replay):
    """The same, with a Python call a step."""

    def on_start(self) -> None:
        self.at(self.now + 100_000_000, self.send)
        self.every("100ms", self.nothing)


class Mm(Strategy):
    """One bid and one ask around a skewed mid."""

    def on_start(self) -> None:
        self.every("100ms", self.step)

    def step(self) -> None:
        fair = self.book().mid - self.position().lots / LOTS * 0.5
        self.quotes(fair - 1.0, fair + 1.0, LOTS)


class MmIfChanged(Mm):
    def on_start(self) -> None:
        self.every("100ms", self.step, if_changed=("touch", "position", "orders"))


class MmHandles(Strategy):
    """The same orders, all by hand."""

    def on_start(self) -> None:
        self.bid = self.ask = None
        self.every("100ms", self.step)

    def step(self) -> None:
        book = self.book()
        best_bid, best_ask = book.bid, book.ask
        fair = (best_bid + best_ask) / 2 - self.position().lots / LOTS * 0.5
        want_bid = min(math.floor(fair - 1.0), best_bid)
        want_ask = max(math.ceil(fair + 1.0), best_ask)
        bid, ask = self.bid, self.ask
        if bid is None or not bid.alive:
            self.bid = self.submit(BUY, LOTS, want_bid, tif=POST_ONLY)
        elif bid.price != want_bid and bid.cancellable:
            self.cancel(bid)
        if ask is None or not ask.alive:
            self.ask = self.submit(SELL, LOTS, want_ask, tif=POST_ONLY)
        elif ask.price != want_ask and ask.cancellable:
            self.cancel(ask)


class Grid(Strategy):
    """Ten levels a side around a skewed mid; the verb rounds and stops at the touch."""

    def on_start(self) -> None:
        self.every("100ms", self.step)

    def step(self) -> None:
        position = self.position().lots
        fair = self.book().mid - position / LOTS * 0.5
        self.ladder(BUY, fair - 2.0, 1, LEVELS, LOTS if position < LIMIT else 0)
        self.ladder(SELL, fair + 2.0, 1, LEVELS, LOTS if position > -LIMIT else 0)


class GridAtTouch(Grid):
    """On the feed of orders the touch moves a tick at a time; further out nothing would fill."""

    def step(self) -> None:
        position = self.position().lots
        fair = self.book().mid - position / LOTS * 0.5
        self.ladder(BUY, fair - 0.5, 1, LEVELS, LOTS if position < LIMIT else 0)
        self.ladder(SELL, fair + 0.5, 1, LEVELS, LOTS if position > -LIMIT else 0)


class GridInt(Grid):
    """The same, rounded and bounded by hand."""

    def step(self) -> None:
        book, position = self.book(), self.position().lots
        best_bid, best_ask = book.bid, book.ask
        fair = (best_bid + best_ask) / 2 - position / LOTS * 0.5
        bid = min(math.floor(fair - 2.0), best_bid)
        ask = max(math.ceil(fair + 2.0), best_ask)
        self.ladder(BUY, bid, 1, LEVELS, LOTS if position < LIMIT else 0)
        self.ladder(SELL, ask, 1, LEVELS, LOTS if position > -LIMIT else 0)


class ReadTouch(Strategy):
    """A Python handler a packet."""

    def on_book(self, book: Any) -> Any:
        return book.bid, book.ask


class QuotePackets(Strategy):
    def on_book(self, book: Any) -> None:
        mid = book.mid
        self.quotes(mid - 2.0, mid + 2.0, LOTS)

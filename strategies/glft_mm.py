"""Quotes around the micro-price at the distances of Gueant, Lehalle and Fernandez-Tapia.

Nothing is predicted: the market's pace (volatility, and how deep its prints reach) is measured as
it goes, and the position leans the quotes. What a model adds is what lstm_mm earns over this.
"""

from hft import BUY, SELL, Every, Features, Params, Strategy
from hft.execution.glft import Pace
from hft.features import mid


class GlftParams(Params, frozen=True):
    lots: int = 20
    max_lots: int = 200
    """Inventory cap; at the cap only the side that shrinks the position quotes."""
    gamma: float = 0.01
    """Risk aversion [1/tick, an order of `lots`]: more of it leans harder on inventory."""
    interval: str = "10ms"
    """Between looks at the quotes; nothing is done while touch, position and orders stay."""
    half_life_s: float = 60.0
    """Memory of the calibration."""
    warm_up_s: float = 10.0
    """Measured time before the first quote."""
    depth_ticks: int = 4
    """Depths the intensity is fitted to; a fine tick wants more."""


class GlftMaker(Strategy):
    """Stationary GLFT quotes on any number of instruments."""

    params: GlftParams
    features = Features(mid(), trigger=Every("100ms"))
    bars = "100ms"

    def on_start(self):
        p = self.params
        self.pace = {name: Pace(0.1, p.half_life_s, p.depth_ticks) for name in self.instruments}
        self.found = dict.fromkeys(self.instruments)  # GlftQuotes, None until measured
        self.warned = set()
        self.every(p.interval, self.requote, if_changed=("touch", "position", "orders"))

    def on_bar(self, bar):
        self.pace[bar.instrument.name].prints(bar.high, bar.low)

    def on_features(self, row):  # a slice is over; its bar came first
        name, p = row.instrument.name, self.params
        self.pace[name].end_slice(row.mid)
        if self.pace[name].seconds >= p.warm_up_s:
            self.found[name] = self.pace[name].quotes(p.gamma)
            if self.found[name] is None and name not in self.warned:
                self.warned.add(name)
                self.log.warning(
                    "%s: prints reach all of the %d ticks that are measured: no quotes until their "
                    "rate falls (depth_ticks should exceed the spread)",
                    name,
                    p.depth_ticks,
                )

    def requote(self):
        for name, inst in self.instruments.items():
            book, glft = self.book(inst), self.found[name]
            if not (book.live and book.two_sided) or glft is None:
                self.cancel_all(inst)
                continue
            p, position = self.params, self.position(inst).lots
            fair, q = book.micro_price, position / p.lots
            room_to_buy, room_to_sell = p.max_lots - position, p.max_lots + position
            self.quote(inst, BUY, fair - glft.bid_depth(q), max(0, min(p.lots, room_to_buy)))
            self.quote(inst, SELL, fair + glft.ask_depth(q), max(0, min(p.lots, room_to_sell)))

    def on_gap(self, inst, reason):
        self.log.warning("%s: feed lost messages (%s), quotes pulled", inst.name, reason)
        self.cancel_all(inst)

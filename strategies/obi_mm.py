"""Leans its quotes on the imbalance of the book, the oldest signal there is.

    I          = bid lots / (bid lots + ask lots) over the first levels
    fair       = mid + lean * (I - 1/2)
    bid, ask   = fair - inventory skew -+ half-spread, never better than the touch

A side about to be run over is pulled: the ask while I > pull_at, the bid while I < 1 - pull_at.
"""

from hft import BUY, SELL, Every, Features, Params, Strategy
from hft.features import imbalance, mid


class ObiParams(Params, frozen=True):
    lots: int = 20
    max_lots: int = 200
    """Inventory cap; at the cap only the side that shrinks the position quotes."""
    levels: int = 5
    lean_ticks: float = 8.0
    """How far fair moves between an even book and an empty side, times two."""
    half_spread_ticks: float = 1.0
    pull_at: float = 0.7
    skew_ticks_per_lot: float = 0.01
    interval: str = "10ms"
    """Between looks at the book."""


class ObiMaker(Strategy):
    """Imbalance maker on any number of instruments."""

    params: ObiParams

    def inputs(self, params):
        book_shape = imbalance(params.levels).named("imbalance")
        return Features(mid(), book_shape, trigger=Every(params.interval))

    def on_features(self, row):
        p, inst = self.params, row.instrument
        if not self.book(inst).live:
            self.cancel_all(inst)
            return
        share = (1 + row.imbalance) / 2  # the feature runs from -1 to 1
        position = self.position(inst).lots
        fair = row.mid + p.lean_ticks * (share - 0.5) - p.skew_ticks_per_lot * position
        for side, strength in ((BUY, share), (SELL, 1 - share)):
            room = p.max_lots - side * position
            lots = 0 if strength < 1 - p.pull_at else max(0, min(p.lots, room))
            self.quote(inst, side, fair - side * p.half_spread_ticks, lots)

    def on_gap(self, inst, reason):
        self.log.warning("%s: feed lost messages (%s), quotes pulled", inst.name, reason)
        self.cancel_all(inst)

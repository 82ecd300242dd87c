"""Rests one order on each side at the touch: the baseline that earns the spread or is run over."""

from hft import BUY, SELL, Params, Strategy


class QuoteAtTouchParams(Params, frozen=True):
    lots: int = 20
    max_lots: int = 200
    """Inventory cap; at the cap only the side that shrinks the position quotes."""
    interval: str = "10ms"
    """Between looks at the touch; nothing is done while touch, position and orders stay."""


class QuoteAtTouch(Strategy):
    """Joins both touches of any number of instruments."""

    params: QuoteAtTouchParams

    def on_start(self):
        self.every(self.params.interval, self.requote, if_changed=("touch", "position", "orders"))

    def requote(self):
        p = self.params
        for inst in self.instruments.values():
            book, position = self.book(inst), self.position(inst).lots
            if not (book.live and book.two_sided):
                self.cancel_all(inst)
                continue
            self.quote(inst, BUY, book.bid, max(0, min(p.lots, p.max_lots - position)))
            self.quote(inst, SELL, book.ask, max(0, min(p.lots, p.max_lots + position)))

    def on_gap(self, inst, reason):
        self.cancel_all(inst)

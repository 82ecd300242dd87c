"""Rests one order on each side at the touch: the baseline that earns the spread or is run over."""

from hft import Params, Strategy


class QuoteAtTouchParams(Params, frozen=True):
    lots: int = 100
    max_lots: int = 1000
    interval: str = "100ms"


class QuoteAtTouch(Strategy):
    """Joins both touches and stops adding at an inventory cap."""

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
            self.quote(inst, 1, book.bid, 0 if position >= p.max_lots else p.lots)
            self.quote(inst, -1, book.ask, 0 if position <= -p.max_lots else p.lots)

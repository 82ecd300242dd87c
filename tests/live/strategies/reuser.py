"""Trades on every signal, otherwise on one that was given again: another hit is another order."""

from hft import BUY, IOC, Model, Params, Strategy


class ReuserParams(Params, frozen=True):
    lots: int = 1


class Reuser(Strategy):
    params: ReuserParams
    model = Model("linear")

    def on_start(self):
        self.heard = {True: 0, False: 0}

    def on_signal(self, signal):
        self.heard[signal.reused] += 1
        inst = signal.instrument
        book = self.book(inst)
        if not (book.live and book.two_sided) or sum(self.heard.values()) % 50:
            return
        price = book.bid - 2 if signal.reused else book.bid
        self.submit(inst, BUY, self.params.lots, price, tif=IOC)

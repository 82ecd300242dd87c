"""Trades at the touch and now and then sleeps so long that the feed overflows."""

import time

from hft import Params, Strategy


class SleeperParams(Params, frozen=True):
    sleep_s: float = 0.2
    every: str = "600ms"


class Sleeper(Strategy):
    params: SleeperParams

    def on_start(self):
        self.gaps = self.ready = 0
        self.every("20ms", self.requote, if_changed=("touch", "position", "orders"))
        self.every(self.params.every, time.sleep, self.params.sleep_s)

    def requote(self):
        book = self.book()
        if book.live and book.two_sided:
            self.quotes(book.bid, book.ask, 3)

    def on_gap(self, inst, reason):
        self.gaps += 1
        self.cancel_all(inst)

    def on_ready(self, inst):
        self.ready += 1

    def on_save(self):
        return {"gaps": self.gaps, "ready": self.ready}

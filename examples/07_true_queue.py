"""A market told order by order: the queue before us is known. What do queue models make of it?"""

import numpy as np

from hft import BUY, SELL, Strategy, backtest
from hft.analysis.records import FillReason
from hft.data.synth import SynthConfig, synthesize


class JoinShortQueues(Strategy):
    """Joins a side where at most eight orders wait."""

    needs = ("L3",)

    def on_ready(self, inst):
        self.every("20ms", self.look)

    def look(self):
        book, held = self.book(), self.position().lots
        for side, price in ((BUY, book.bid), (SELL, book.ask)):
            short = book.order_count(side, price) <= 8
            self.quote(side, price, 10 if short and side * held < 100 else 0)


class JoinBoth(JoinShortQueues):
    """Joins both sides; levels would do."""

    needs = ()

    def look(self):
        book, held = self.book(), self.position().lots
        for side, price in ((BUY, book.bid), (SELL, book.ask)):
            self.quote(side, price, 10 if side * held < 100 else 0)


def main() -> None:
    config = SynthConfig(seed=5, duration_s=300, order_by_order=True)
    rows, specs = synthesize(config)
    print(backtest(JoinShortQueues, rows, specs=specs))
    print("\nThe same orders in the true queue, and in one estimated from levels:")
    for name, settings in {
        "true": {},
        "power3, n = 2": {"data.as_levels": True},
        "power3, n = 1": {"data.as_levels": True, "venue.queue_n": 1.0},
        "risk_averse": {"data.as_levels": True, "venue.queue": "risk_averse"},
    }.items():
        fills = backtest(JoinBoth, rows, specs=specs, settings=settings).run.fills
        queued = fills["lots"][fills["reason"] == FillReason.QUEUE].sum()
        print(f"{name:>14}: {int(np.sum(fills['lots'])):6,} lots filled, {int(queued):6,} in turn")


if __name__ == "__main__":
    main()

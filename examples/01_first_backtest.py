"""A strategy, a market, a report: the whole loop in one file.

python examples/01_first_backtest.py
"""

from hft import BUY, SELL, Params, Strategy, backtest


class MakerParams(Params, frozen=True):
    lots: int = 20
    max_lots: int = 100
    away_ticks: int = 1


class Maker(Strategy):
    """Rests one order a side, `away_ticks` behind the touch, and stops adding at a cap."""

    params: MakerParams

    def on_start(self):
        self.every("50ms", self.requote, if_changed=("touch", "position"))

    def requote(self):
        p, book, held = self.params, self.book(), self.position().lots
        if book.live and book.two_sided:
            self.quote(BUY, book.bid - p.away_ticks, max(0, min(p.lots, p.max_lots - held)))
            self.quote(SELL, book.ask + p.away_ticks, max(0, min(p.lots, p.max_lots + held)))


def main() -> None:
    settings = {"data.synth.duration_s": 120.0, "latency.entry": "500us"}
    for away_ticks in (0, 1, 2):
        report = backtest(Maker, "synth", settings=settings | {"away_ticks": away_ticks})
        print(f"{away_ticks} ticks away: {report}")


if __name__ == "__main__":
    main()

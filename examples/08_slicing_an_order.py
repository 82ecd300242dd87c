"""How fast to trade: one large order, all at once or in slices, under what it does to the market.

Taken at once it walks the book and pays for its own push; between slices the book heals and the
push decays. What the market does meanwhile is risk, and no part of these costs.
"""

from hft import BUY, Params, Strategy, backtest

SECONDS = 120


class SlicedParams(Params, frozen=True):
    lots: int = 2_700
    slices: int = 1
    over_s: int = 90


class Sliced(Strategy):
    """Buys `lots` by market orders, one every `over_s / slices`."""

    params: SlicedParams

    def on_start(self):
        self.left = self.params.slices
        gap = round(self.params.over_s / self.params.slices * 1e9)
        self.every(gap, self.slice)

    def slice(self):
        if self.left > 0:
            self.left -= 1
            self.submit(BUY, self.params.lots // self.params.slices)


MARKET = {
    "data.synth.duration_s": float(SECONDS),
    "engine.bracket": False,
    "latency.profile": "same-region",  # shipped, and made up: measure your own
    "venue.refill_half_life": "5s",
    "venue.fade": 0.1,
    "venue.impact": {"weights": [2e-4], "half_lives": ["10s"], "permanent": 2e-5},
}


def main() -> None:
    for slices in (1, 3, 15, 90):
        report = backtest(Sliced, "synth", settings=MARKET | {"slices": slices})
        costs = report.shortfall.sum()
        told = {name: costs[name][0] for name in ("spread", "walk", "charged", "total")}
        filled, beyond = report.run.fills["lots"].sum(), report.run.fills["extrapolated"].sum()
        print(
            f"{slices:3} slices: {filled:5} lots,",
            ", ".join(f"{name} {cost:+.3f}" for name, cost in told.items()),
            f"USDT; {beyond} of {len(report.run.fills)} fills beyond what the tape can tell",
        )


if __name__ == "__main__":
    main()

"""Two instruments on one clock: when the leader's mid jumps, quote the follower with a lean."""

from hft import BUY, SELL, Params, Strategy, backtest


class FollowParams(Params, frozen=True):
    beta: float = 0.5
    lots: int = 20
    max_lots: int = 100


class Follow(Strategy):
    """Quotes the second instrument around its mid, moved by what the first did lately."""

    params: FollowParams

    def on_start(self):
        self.leader, self.follower = self.instruments.values()
        self.slow = None
        self.every("20ms", self.requote)

    def requote(self):
        p, lead, book = self.params, self.book(self.leader), self.book(self.follower)
        if not (lead.live and lead.two_sided and book.live and book.two_sided):
            self.cancel_all()
            return
        self.slow = lead.mid if self.slow is None else 0.95 * self.slow + 0.05 * lead.mid
        fair = book.mid + p.beta * (lead.mid - self.slow)
        held = self.position(self.follower).lots
        self.quote(self.follower, BUY, fair - 1, max(0, min(p.lots, p.max_lots - held)))
        self.quote(self.follower, SELL, fair + 1, max(0, min(p.lots, p.max_lots + held)))


def main() -> None:
    market = {"data.synth.symbols": ["AAA", "BBB"], "data.synth.duration_s": 60.0}
    for beta in (0.0, 0.5):
        report = backtest(Follow, "synth", settings=market | {"beta": beta})
        print(f"beta {beta}: {report}")
    # Fills name their instrument; only the follower trades.
    print(report.fills.group_by("instrument").len())


if __name__ == "__main__":
    main()

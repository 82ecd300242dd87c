# ruff: noqa
"""Four strategies as their authors wanted to write them, word for word: the yardstick of the API."""

from hft import BUY, SELL, IOC, POST_ONLY, Features, Model, OnTouch, Params, Strategy, feature
from hft.features import imbalance, micro_price, trade_flow


class MakerParams(Params, frozen=True):
    half_spread_ticks: int = 2
    lots: int = 1
    max_lots: int = 10
    skew_ticks_per_lot: float = 0.2
    levels: int = 5


class Maker(Strategy):
    """Quotes any number of instruments from features alone."""

    params: MakerParams

    def inputs(self, p: MakerParams) -> Features:
        return Features(
            micro_price(), imbalance(levels=p.levels), trade_flow("1s"), trigger=OnTouch()
        )

    def on_ready(self, inst):
        self.log.info("quoting %s, tick %s", inst.symbol, inst.tick)

    def on_features(self, row):
        p, lots = self.params, self.position(row.instrument).lots
        fair = row.micro_price - p.skew_ticks_per_lot * lots
        self.quote(
            row.instrument,
            BUY,
            round(fair) - p.half_spread_ticks,
            0 if lots >= p.max_lots else p.lots,
        )  # 0 lots: pull
        self.quote(
            row.instrument,
            SELL,
            round(fair) + p.half_spread_ticks,
            0 if lots <= -p.max_lots else p.lots,
        )

    def on_gap(self, inst, reason):
        self.cancel_all(inst)


class TakerParams(Params, frozen=True):
    edge_ticks: float = 1.5
    max_age_ns: int = 5_000_000
    hold_ns: int = 2_000_000_000


class Taker(Strategy):
    """Crosses on a fresh, strong signal and leaves after a while."""

    params: TakerParams
    models = {"alpha": Model("alpha_v3")}

    def on_signal(self, s):
        p = self.params
        if s.age_ns > p.max_age_ns or s.tier != "FULL":
            return
        if (
            (s["up"] - s["down"]) * s["move_ticks"] > p.edge_ticks
            and self.position(s.instrument).flat
            and not self.orders(s.instrument)
        ):
            self.submit(
                s.instrument,
                BUY,
                lots=5,
                price=self.book(s.instrument).ask,
                tif=IOC,
                cause=s,
                tag="entry",
            )
            self.at(self.now + p.hold_ns, self.flatten, s.instrument)

    def on_order(self, o):
        if o.rejected:
            self.log.warning("refused: %s", o.reason)


class Arb(Strategy):
    """Buys where it is cheap, hedges what was really filled."""

    def on_start(self):
        self.a, self.b = self.instruments["BTCUSDT.BINANCE"], self.instruments["BTC-PERP.DERIBIT"]

    def on_book(self, book):
        a, b = self.book(self.a), self.book(self.b)
        if not (a.live and b.live) or max(a.age_ns, b.age_ns) > 20_000_000:
            return
        edge = (
            self.b.price(b.bid) - self.a.price(a.ask) - self.fees(self.a, self.b)
        )  # ticks differ by venue: compare in currency
        if edge > 0 and not self.orders(tag="leg"):
            self.submit(
                self.a,
                BUY,
                min(a.ask_lots, self.a.lots_of(self.b, b.bid_lots), 3),
                price=a.ask,
                tif=IOC,
                tag="leg",
            )

    def on_fill(self, f):
        if f.instrument is self.a:
            self.submit(
                self.b,
                SELL,
                self.b.lots_of(self.a, f.lots),
                price=self.book(self.b).bid - 3,
                tif=IOC,
                tag="hedge",
            )

    def on_stop(self):
        self.flatten()


class TwapParams(Params, frozen=True):
    symbol: str = "600519.SSE"
    lots: int = 300
    start: str = "09:45"
    end: str = "10:15"
    slices: int = 60


class Twap(Strategy):
    """Works a parent order in slices, crossing when it falls behind."""

    params: TwapParams

    def on_start(self):
        p = self.params
        self.parent = self.parent_order(self.instruments[p.symbol], BUY, p.lots)
        self.schedule(p.start, p.end, p.slices, self.slice, tz="Asia/Shanghai")

    def slice(self, k):
        p = self.params
        due = p.lots * (k + 1) // p.slices - self.parent.filled_lots
        self.cancel_all(self.parent.instrument, tag="twap")
        if due > 0:
            book, late = self.book(self.parent.instrument), due > 2 * p.lots // p.slices
            self.submit(
                self.parent.instrument,
                BUY,
                due,
                price=book.ask if late else book.bid,
                tif=IOC if late else POST_ONLY,
                parent=self.parent,
                tag="twap",
            )

    def on_save(self):
        return {"done": self.parent.filled_lots}


@feature(window="250ms", state=0.0)
def pressure(state, row):
    """An own feature: one incremental definition for live, replay and training."""
    state = 0.9 * state + row.signed_lots
    return state, state / (1 + row.depth_lots(5))

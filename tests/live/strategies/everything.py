"""Uses all there is: two streams of features, a model, bars, timers, rejects, replaces, flatten."""

from hft import BUY, IOC, POST_ONLY, SELL, Features, Model, OnTouch, Params, Strategy, feature
from hft.features import imbalance, micro_price, trade_flow


@feature(state=0)
def prints_seen(state, row):
    state += row.traded_lots > 0
    return state, float(state)


class EverythingParams(Params, frozen=True):
    lots: int = 5
    raise_after: int = 0
    """Fills after which a handler raises; 0: never."""
    stop_flat: bool = True


class Everything(Strategy):
    params: EverythingParams
    features = Features(
        micro_price(), imbalance(3), trade_flow("500ms"), prints_seen, trigger=OnTouch()
    )
    models = {"alpha": Model("tiny")}  # noqa: RUF012
    bars = "500ms"

    def on_start(self):
        self.counts = {}
        self.passive = {}
        self.every("50ms", self.requote, if_changed=("touch", "position", "orders"))
        self.every("70ms", self.poke, "now and then")
        self.every("1s", self.turn_over)
        self.at(self.now + 300_000_000, self.count, "at")

    def count(self, what):
        self.counts[what] = self.counts.get(what, 0) + 1

    def requote(self):
        for inst in self.instruments.values():
            book = self.book(inst)
            if book.live and book.two_sided:
                lean = self.rng.integers(0, 2)
                self.ladder(inst, BUY, book.bid - lean, 1, 2, self.params.lots)
                self.quote(inst, SELL, book.ask + lean, self.params.lots)

    def poke(self, what):
        self.count(what)
        for inst in self.instruments.values():
            book = self.book(inst)
            if not (book.live and book.two_sided):
                continue
            order = self.passive.get(inst.name)
            if order is not None and order.alive:
                self.replace(order, price=book.bid - 3 - self.counts[what] % 4)
            else:
                self.passive[inst.name] = self.submit(inst, BUY, 2, book.bid - 5, tag="passive")
            if self.counts[what] % 5 == 0:
                self.submit(inst, SELL, 1, book.bid, tif=POST_ONLY, tag="rejected")
            if self.counts[what] % 7 == 0:
                self.submit(inst, BUY, 1, book.ask, tif=IOC, tag="taker")

    def turn_over(self):
        self.flatten(next(iter(self.instruments.values())))

    def on_features(self, row):
        self.count("rows")
        if row.prints_seen > 0 and self.counts["rows"] % 200 == 0:
            self.cancel_all(row.instrument, tag="passive")

    def on_signal(self, signal):
        self.count("signals")
        if signal["up"] > 0.5 and self.counts["signals"] % 40 == 0:
            self.submit(signal.instrument, BUY, 1, tif=IOC, cause=signal, tag="signal")

    def on_bar(self, bar):
        self.count("bars")

    def on_trade(self, trade):
        self.count("trades")

    def on_order(self, order):
        self.count(str(order.state))

    def on_fill(self, fill):
        self.count("fills")
        if self.counts["fills"] == self.params.raise_after:
            raise RuntimeError("a handler that fails")

    def on_gap(self, inst, reason):
        self.count("gaps")

    def on_ready(self, inst):
        self.count("ready")

    def on_stop(self):
        if self.params.stop_flat:
            self.flatten()

    def on_save(self):
        return self.counts

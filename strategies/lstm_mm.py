"""A maker on an LSTM's forecast: the model says where fair is, GLFT how far to stand from it.

    fair        = micro-price + alpha_weight * alpha_ticks        (forecast of the mid's move)
    reservation = fair - q * skew                                 (q: the position in orders)
    half-spread = GLFT's, and no less than the maker fee + what fills are known to cost
    bid, ask    = reservation -+ half-spread, post-only, never better than the touch

Around that: a quote that has become too good for the market leaves at once, others move only when
the move is worth more than their place in the queue; a forecast against a side pulls it; a position
at its cap only shrinks; an old forecast, a silent model, a broken feed or a loss ends quoting.
"""

from dataclasses import dataclass, field

from hft import BUY, SELL, Every, Features, Model, Params, Strategy
from hft.durations import parse_ns
from hft.execution.glft import GlftQuotes, Pace
from hft.features import mid


class LstmParams(Params, frozen=True):
    lots: int = 20
    max_lots: int = 200
    """Inventory cap; at the cap only the side that shrinks the position quotes."""
    alpha_weight: float = 1.0
    """How much of the forecast goes into fair; 0, with pull_ticks = inf: GLFT without a model."""
    gamma: float = 0.001
    """Risk aversion [1/tick, an order of `lots`]."""
    fill_cost_ticks: float = 0.5
    """What a fill loses to takers who know more; with the fee, the least half-spread."""
    pull_ticks: float = 1.0
    """A forecast this far against a side pulls it."""
    queue_ticks: float = 1.0
    """A quote moves nearer only for more than this: what the place it gives up is worth."""
    rest: str = "5ms"
    """Least time between moves nearer, a side. Moves away never wait."""
    max_age: str = "10ms"
    """An older forecast pulls the quotes."""
    max_silence: str = "2s"
    """So does a model that has said nothing for so long."""
    max_loss: float = 50.0
    """Loss [currency] at which the run flattens and stays out."""
    half_life_s: float = 60.0
    """Memory of the calibration."""
    warm_up_s: float = 10.0
    """Measured time before the first quote."""
    depth_ticks: int = 4
    """Depths the intensity is fitted to; a fine tick wants more."""


@dataclass
class Side:
    """What we last asked for on one side."""

    price: int | None = None  # None: nothing rests
    ts_moved: int = 0


@dataclass
class Desk:
    """What we know of one instrument."""

    pace: Pace
    glft: GlftQuotes | None = None
    ts_signal: int = 0
    sides: dict[int, Side] = field(default_factory=lambda: {BUY: Side(), SELL: Side()})


class LstmMarketMaker(Strategy):
    """Quotes any number of instruments from one model."""

    params: LstmParams
    model = Model("lstm_mm")
    features = Features(mid(), trigger=Every("100ms"))  # for the calibration; the model has its own
    bars = "100ms"

    def on_start(self):
        p = self.params
        self.desks = {n: Desk(Pace(0.1, p.half_life_s, p.depth_ticks)) for n in self.instruments}
        self.rest_ns, self.max_age_ns = parse_ns(p.rest), parse_ns(p.max_age)
        self.max_silence_ns = parse_ns(p.max_silence)
        self.stopped = False

    def on_signal(self, s):
        inst, p = s.instrument, self.params
        desk, book = self.desks[inst.name], self.book(inst)
        desk.ts_signal = self.now
        if self.stopped:
            return
        if desk.glft is None or not book.two_sided or s.age_ns > self.max_age_ns:
            self.pull(inst)
            return
        alpha = s["alpha_ticks"]
        fair = book.micro_price + p.alpha_weight * alpha
        position = self.position(inst).lots
        reservation = fair - position / p.lots * desk.glft.skew_ticks
        least = inst.maker_fee * book.mid + p.fill_cost_ticks
        half_spread = max(desk.glft.half_spread_ticks, least)
        for side in (BUY, SELL):
            room = p.max_lots - side * position
            if room <= 0 or side * alpha < -p.pull_ticks:
                self.stand(inst, side, None)
            else:
                self.stand(inst, side, reservation - side * half_spread, min(p.lots, room))

    def stand(self, inst, side, price, lots=0):
        """Has an order rest at `price`, unless the one that rests had better stay."""
        was, book = self.desks[inst.name].sides[side], self.book(inst)
        if price is None:
            was.price = None
            self.quote(inst, side, 0, 0)
            return
        touch = book.bid if side == BUY else book.ask
        # As self.quote does: whole ticks outward, not better than the touch.
        price = min(side * touch, int(side * price // 1)) * side
        if was.price is not None:
            nearer = side * (price - was.price)
            waited = self.now - was.ts_moved >= self.rest_ns
            if nearer >= 0 and not (nearer > self.params.queue_ticks and waited):
                price = was.price
        if price != was.price:
            was.price, was.ts_moved = price, self.now
        self.quote(inst, side, price, lots)

    def pull(self, inst):
        for side in self.desks[inst.name].sides.values():
            side.price = None
        self.cancel_all(inst)

    def on_order(self, order):
        if order.filled or order.rejected:  # there is no place in a queue to guard
            self.desks[order.instrument.name].sides[order.side].price = None

    # ---- ten times a second: calibration and the limits that do not wait for a forecast

    def on_bar(self, bar):
        self.desks[bar.instrument.name].pace.prints(bar.high, bar.low)

    def on_features(self, row):  # a slice is over; its bar came first
        inst, p = row.instrument, self.params
        desk = self.desks[inst.name]
        desk.pace.end_slice(row.mid)
        if desk.pace.seconds >= p.warm_up_s:
            desk.glft = desk.pace.quotes(p.gamma)
        if not self.stopped and self.account.equity < -p.max_loss:
            self.stopped = True
            self.log.warning("lost %.2f: flat and out", -self.account.equity)
        if self.stopped:
            self.flatten()  # until it is done: a thin book may not take all at once
        elif self.now - desk.ts_signal > self.max_silence_ns:
            self.pull(inst)

    def on_gap(self, inst, reason):
        self.log.warning("%s: feed lost messages (%s), quotes pulled", inst.name, reason)
        self.pull(inst)

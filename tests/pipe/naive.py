"""The replay again, in plain Python and as slowly as it likes: one ordered queue of everything.

Written from docs/fills.md and docs/orders.md, not from the core: a dict for a book, a list for a
queue, `heapq` for time. The core must give the same fills, money and answers.
"""

from __future__ import annotations

import heapq
import itertools
import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

BUY, SELL = 1, -1
GTC, IOC, FOK, POST_ONLY = range(4)
LEVEL, CLEAR, BEGIN, END, TRADE, BBO, STATUS, DATUM = 1, 2, 3, 4, 5, 6, 32, 33
OPEN, HALT, AUCTION, CLOSED, GAP = range(5)
LAST, UNCERTAIN = 4, 16
GUARD_NS = 1_000_000
E9 = 1_000_000_000


@dataclass
class Rules:
    """A venue's rules, named as in the recipe."""

    queue: str = "power3"
    queue_n: float = 2.0
    partial_fills: bool = True
    share_prints: bool = True
    through: str = "volume"
    cross: str = "fill"
    refill_half_life: int = 1_000_000_000
    replace_keeps: str = "smaller"
    matching: str = "fifo"
    maker_e9: int = 0
    taker_e9: int = 0

    def keeps_place(self, before: int, after: int) -> bool:
        """Whether an order whose size changes at its price keeps its place."""
        match self.replace_keeps:
            case "nothing":
                return False
            case "same_price":
                return True
        return after <= before


class Leg:
    """A constant, or rows of (time, duration) of which the last one at or before sending holds."""

    def __init__(self, spec: int | Sequence[tuple[int, int]]) -> None:
        self.rows = [(0, spec)] if isinstance(spec, int) else list(spec)

    def at(self, ts: int) -> int:
        times = [t for t, _ in self.rows]
        return self.rows[max(bisect_right(times, ts) - 1, 0)][1]


class Fifo:
    """A channel that never reorders."""

    def __init__(self, leg: Leg) -> None:
        self.leg, self.last = leg, -(1 << 62)

    def deliver(self, ts: int) -> int:
        self.last = max(ts + self.leg.at(ts), self.last)
        return self.last


@dataclass(eq=False)
class Order:
    id: int
    inst: int
    side: int
    price: int | None
    lots: int
    tif: int
    cum: int = 0
    live: bool = False
    ahead: float = 0.0
    ahead_at_rest: float = 0.0
    traded: int = 0
    traded_ts: int = -(1 << 62)
    over: bool = False  # as we know it
    cancelling: bool = False

    @property
    def leaves(self) -> int:
        return self.lots - self.cum


@dataclass
class Instant:
    """What traded at one level at one time, and who stood there before the first of it."""

    ts: int
    others: int
    ours: dict[Order, int]
    volume: int = 0
    given: dict[Order, int] = field(default_factory=lambda: defaultdict(int))


@dataclass
class Listing:
    """One instrument at its venue."""

    number: int
    rules: Rules
    venue: int
    tick_value: int = E9
    inverse: bool = False
    book: dict[int, dict[int, int]] = field(default_factory=lambda: {BUY: {}, SELL: {}})
    own: dict[int, list[Order]] = field(default_factory=lambda: {BUY: [], SELL: []})
    taken: dict[tuple[int, int], tuple[float, int]] = field(default_factory=dict)
    instants: dict[tuple[int, int], Instant] = field(default_factory=dict)
    trading: int = OPEN
    syncing: bool = False
    position: int = 0
    cash: int = 0
    fees: int = 0
    funding: int = 0

    def best(self, side: int) -> int | None:
        return max(self.book[side], key=lambda p: p * side, default=None)

    def ladder(self, side: int, limit: int | None) -> list[int]:
        """Prices of a side from the best to the limit."""
        prices = sorted(self.book[side], key=lambda p: -p * side)
        return [p for p in prices if limit is None or (p - limit) * side >= 0]

    def worth(self, lots: int, price: int) -> int:
        if self.inverse:
            return round_away(lots * 1e9 / price)
        return lots * price * self.tick_value


def round_away(x: float) -> int:
    return math.floor(abs(x) + 0.5) * (1 if x >= 0 else -1)


class Naive:
    """`listings`, their rows, the legs, and what the strategy does."""

    def __init__(
        self,
        listings: list[Listing],
        rows: list[Any],
        *,
        entry: Any,
        response: Any,
        compute: int,
        script: list[tuple[int, Callable[[Naive], None]]],
        on_fill: Callable[[Naive, Order, int], None] | None = None,
        hears_books: bool = False,
    ) -> None:
        self.listings, self.rows = listings, rows
        self.on_fill = on_fill
        venues = sorted({x.venue for x in listings})
        self.wire = {v: Fifo(Leg(entry)) for v in venues}
        self.back = {v: Fifo(Leg(response)) for v in venues}
        self.compute = compute
        self.heap: list[tuple[Any, ...]] = []
        self.count = itertools.count()
        self.orders: list[Order] = []
        self.fills: list[tuple[Any, ...]] = []
        self.answers: list[tuple[Any, ...]] = []
        self.busy = -(1 << 62)
        self.now = 0
        self.outbox: list[tuple[str, Order, int | None, int]] = []
        self.known_position: dict[int, int] = defaultdict(int)
        for i, tape in enumerate(rows):
            for n, row in enumerate(tape):
                self._push(
                    int(row["ts_event"]), 0, i, n, lambda i=i, n=n, row=row: self.on_row(i, n, row)
                )
        if hears_books:
            for i, tape in enumerate(rows):
                self._packets(i, tape)
        # Nothing is heard before the first row, on_start included.
        start = self.busy = min(int(tape["ts_event"][0]) for tape in rows)
        for at, action in ((max(at, start), action) for at, action in script):
            self._push(
                at,
                5,
                0,
                next(self.count),
                lambda at=at, action=action: self.handle(at, lambda: action(self)),
            )

    def _push(self, ts: int, rank: int, which: int, seq: int, what: Callable[[], None]) -> None:
        heapq.heappush(self.heap, (ts, rank, which, seq, what))

    def run(self) -> Naive:
        while self.heap:
            heapq.heappop(self.heap)[-1]()
        return self

    # ---- our side: one server

    def handle(self, ts: int, what: Callable[[], Any]) -> None:
        self.now = max(ts, self.busy)
        what()
        self.busy = self.now + self.compute
        for verb, order, price, lots in self.outbox:
            arrive = self.wire[self.listings[order.inst].venue].deliver(self.busy)
            venue = self.listings[order.inst].venue
            self._push(
                arrive,
                1,
                venue,
                next(self.count),
                lambda a=arrive, v=verb, o=order, p=price, q=lots: self.arrive(a, v, o, p, q),
            )
        self.outbox = []

    def _packets(self, i: int, tape: Any) -> None:
        """A packet ends with its LAST row, or where our clock moves on."""
        state, packet = "EMPTY", []
        for n, row in enumerate(tape):
            packet.append(row)
            whole = bool(int(row["flags"]) & LAST)
            if not whole and n + 1 < len(tape) and tape[n + 1]["ts_recv"] == row["ts_recv"]:
                continue
            for r in packet:
                kind = int(r["kind"])
                if kind == STATUS and int(r["ref_id"]) == GAP:
                    state = "GAP"
                elif kind in (BEGIN, END):
                    state = "SYNCING" if kind == BEGIN else "LIVE"
                if int(r["flags"]) & LAST and state == "EMPTY":
                    state = "LIVE"
            ts, packet = int(row["ts_recv"]), []
            if state == "LIVE":
                self._push(ts, 3, i, n, lambda ts=ts: self.handle(ts, lambda: None))

    def submit(self, inst: int, side: int, lots: int, price: int | None, tif: int) -> Order:
        order = Order(len(self.orders) + 1, inst, side, price, lots, tif)
        self.orders.append(order)
        self.outbox.append(("new", order, price, lots))
        return order

    def cancel(self, order: Order) -> None:
        if not order.over and not order.cancelling:
            order.cancelling = True
            self.outbox.append(("cancel", order, None, 0))

    def replace(self, order: Order, price: int, lots: int) -> None:
        if not order.over and not order.cancelling and order.price is not None:
            self.outbox.append(("replace", order, price, lots))

    def answer(
        self,
        ts: int,
        order: Order,
        what: str,
        price: Any = None,
        lots: int = 0,
        *,
        final: bool = False,
    ) -> None:
        venue = self.listings[order.inst].venue
        recv = self.back[venue].deliver(ts)

        def hear() -> None:
            late = order.over
            self.answers.append((order.id, what, ts, recv, price, lots))
            if what == "CANCEL_REJECTED":
                order.cancelling = False
            order.over |= final
            if what in ("FILL", "LAST_FILL"):
                self.known_position[order.inst] += order.side * lots
            if late:
                return

            def handler() -> None:
                if what in ("FILL", "LAST_FILL") and self.on_fill:
                    self.on_fill(self, order, lots)

            self.handle(recv, handler)

        self._push(recv, 2, venue, next(self.count), hear)

    # ---- the venue: the tape

    def on_row(self, i: int, n: int, row: Any) -> None:
        x, kind = self.listings[i], int(row["kind"])
        ts, side, price, qty = (int(row[k]) for k in ("ts_event", "side", "price", "qty"))
        if kind == LEVEL:
            self.level(
                x, side, price, qty, ts, hidden=not qty and bool(int(row["flags"]) & UNCERTAIN)
            )
            if qty > 0:
                self.cross(x, side, price, ts, n)
        elif kind == TRADE:
            self.trade(x, side, price, qty, ts, n)
        elif kind == CLEAR:
            for s in (BUY, SELL):
                if side in (0, s):
                    upto = price if int(row["ref_id"]) == 1 else None
                    for p in x.ladder(s, upto):
                        del x.book[s][p]
            self.forget_gone(x)
        elif kind == BEGIN:
            x.book = {BUY: {}, SELL: {}}
            x.syncing = True
        elif kind == END:
            x.syncing = False
            self.rebuilt(x, ts, n)
        elif kind == BBO:
            for p in x.ladder(side, price + side):
                del x.book[side][p]
            x.book[side][price] = qty
            self.rebuilt(x, ts, n)
        elif kind == STATUS:
            if int(row["ref_id"]) == GAP:
                x.syncing = False
            else:
                before, x.trading = x.trading, int(row["ref_id"])
                if before != OPEN and x.trading == OPEN and not x.syncing:
                    self.meet(x, ts, n)
        elif kind == DATUM and int(row["order_id"]) == 1 and x.position:
            due = x.worth(x.position, price) * int(row["ref_id"])
            x.funding += abs(due) // E9 * (1 if due >= 0 else -1)
            recv = self.back[x.venue].deliver(ts)
            heard = (0, "FUNDING", ts, recv, None, 0)
            self._push(recv, 2, x.venue, next(self.count), lambda: self.answers.append(heard))

    def level(
        self, x: Listing, side: int, price: int, qty: int, ts: int, *, hidden: bool = False
    ) -> None:
        before = x.book[side].pop(price, 0)
        if qty:
            x.book[side][price] = qty
        for o in x.own[side]:
            if o.price == price and not hidden:
                self.resize(x.rules, o, before, qty, ts)
        if (side, price) in x.taken:
            lots, since = x.taken[side, price]
            if qty == 0:
                del x.taken[side, price]
            elif qty < before:
                x.taken[side, price] = (lots * (qty / before), since)

    @staticmethod
    def resize(rules: Rules, o: Order, before: int, after: int, ts: int) -> None:
        shrunk = before - after
        cancelled = shrunk - o.traded
        o.traded = min(max(o.traded - shrunk, 0), o.traded) if ts - o.traded_ts <= GUARD_NS else 0
        if cancelled > 0 and before > 0 and rules.queue != "risk_averse":
            back = max(before - o.ahead, 0.0)
            behind = share_behind(rules, o.ahead, back)
            least, most = max(0.0, cancelled - back), max(0.0, min(o.ahead, float(cancelled)))
            o.ahead -= min(max((1.0 - behind) * cancelled, least), most)
        o.ahead = min(o.ahead, float(after))

    def rebuilt(self, x: Listing, ts: int, n: int) -> None:
        """Nobody has more ahead than is shown now; what stands through our orders meets them."""
        for side in (BUY, SELL):
            for o in x.own[side]:
                o.ahead = min(o.ahead, float(x.book[side].get(o.price, 0)))
        self.forget_gone(x)
        self.meet(x, ts, n)

    @staticmethod
    def forget_gone(x: Listing) -> None:
        x.taken = {k: v for k, v in x.taken.items() if x.book[k[0]].get(k[1], 0)}

    def meet(self, x: Listing, ts: int, n: int) -> None:
        for side in (BUY, SELL):
            for price in x.ladder(side, None):
                self.cross(x, side, price, ts, n)

    def cross(self, x: Listing, side: int, price: int, ts: int, n: int) -> None:
        """Size of `side` appears at `price`: our orders of the other side that it meets fill."""
        if x.rules.cross != "fill" or x.trading != OPEN or x.syncing:
            return
        met = [o for o in x.own[-side] if (o.price - price) * -side >= 0]
        if not met:
            return
        left = self.available(x, side, price, ts)
        used = 0
        for o in met:
            lots = min(left, o.leaves) if x.rules.partial_fills else o.leaves
            if lots:
                self.fill(x, o, lots, o.price, "CROSSED", ts, n)
                left, used = left - lots, used + lots
        if x.rules.partial_fills and used:
            self.consume(x, side, price, used, ts)

    def trade(self, x: Listing, side: int, price: int, qty: int, ts: int, n: int) -> None:
        passive = self.passive(x, side, price)
        if x.trading != OPEN or passive == 0:
            return
        taken = 0
        rata = None
        for o in list(x.own[passive]):
            if (o.price - price) * passive < 0:
                continue
            shared = taken if x.rules.share_prints else 0
            through = o.price != price
            if through:
                reached = o.leaves if x.rules.through == "full" else max(qty - shared, 0)
            else:
                front = o.ahead - max(qty - shared, 0)
                o.traded, o.traded_ts = o.traded + qty, ts
                o.ahead = max(front, 0.0)
                reached = math.floor(-front + 0.5) if front < 0 else 0
                if x.rules.matching == "pro_rata":
                    rata = rata or self.trades_at(x, passive, price, max(qty - shared, 0), ts)
                    reached = due(rata, o)
            if reached > 0 and not x.rules.partial_fills:
                reached = o.leaves
            lots = min(reached, o.leaves)
            if lots:
                taken += lots
                if rata:
                    rata.given[o] += lots
                self.fill(x, o, lots, o.price, "THROUGH" if through else "QUEUE", ts, n)

    @staticmethod
    def passive(x: Listing, side: int, price: int) -> int:
        """The side that rested; without an aggressor the one whose touch was printed at."""
        bid, ask = x.best(BUY), x.best(SELL)
        if side:
            return -side
        if ask is not None and price >= ask:
            return SELL
        return BUY if bid is not None and price <= bid else 0

    def trades_at(self, x: Listing, side: int, price: int, volume: int, ts: int) -> Instant:
        """The instant that so much more trades in, at a level that orders of ours rest at."""
        instant = x.instants.get((side, price))
        if instant is None or instant.ts != ts:
            ours = {o: o.leaves for o in x.own[side] if o.price == price}
            instant = Instant(ts, x.book[side].get(price, 0), ours)
            x.instants[side, price] = instant
        instant.volume += volume
        return instant

    # ---- the venue: our messages

    def arrive(self, ts: int, verb: str, o: Order, price: int | None, lots: int) -> None:
        x = self.listings[o.inst]
        if verb == "new":
            self.accept(x, o, ts)
        elif not o.live:
            self.answer(ts, o, f"{verb.upper()}_REJECTED")
        elif verb == "cancel":
            self.unrest(x, o)
            self.answer(ts, o, "CANCELED", final=True)
        else:
            self.amend(x, o, price, lots, ts)

    def accept(self, x: Listing, o: Order, ts: int) -> None:
        waits = x.trading == AUCTION and o.price is not None and o.tif in (GTC, POST_ONLY)
        if x.trading != OPEN and not waits:
            return self.answer(ts, o, "REJECTED", final=True)
        if o.price is None or o.tif in (IOC, FOK):
            return self.take(x, o, ts)
        if o.tif == POST_ONLY and not waits and self.reachable(x, -o.side, o.price, 1, ts):
            return self.answer(ts, o, "REJECTED", final=True)
        self.answer(ts, o, "ACCEPTED")
        if not waits:
            self.take(x, o, ts)
        if o.leaves:
            self.rest(x, o)
        return None

    def amend(self, x: Listing, o: Order, price: int | None, lots: int, ts: int) -> None:
        crosses = o.tif == POST_ONLY and self.reachable(x, -o.side, price, 1, ts)
        if lots <= o.cum or x.trading in (HALT, CLOSED):
            self.answer(ts, o, "REPLACE_REJECTED")
        elif price == o.price and x.rules.keeps_place(o.lots, lots):
            o.lots = lots
            self.answer(ts, o, "REPLACED", price, lots)
        elif crosses:
            self.answer(ts, o, "REPLACE_REJECTED")
        else:
            self.unrest(x, o)
            o.price, o.lots = price, lots
            self.answer(ts, o, "REPLACED", price, lots)
            if x.trading != AUCTION:
                self.take(x, o, ts)
            if o.leaves:
                self.rest(x, o)

    def take(self, x: Listing, o: Order, ts: int) -> None:
        wanted = o.leaves
        within = self.reachable(x, -o.side, o.price, wanted, ts)
        if o.tif == FOK and within < wanted:
            return self.answer(ts, o, "EXPIRED", final=True)
        for price in x.ladder(-o.side, o.price):
            lots = (
                min(self.available(x, -o.side, price, ts), o.leaves)
                if x.rules.partial_fills
                else o.leaves
            )
            if lots:
                if x.rules.partial_fills:
                    self.consume(x, -o.side, price, lots, ts)
                self.fill(x, o, lots, price, "TAKEN", ts, -1)
        if o.leaves and (o.price is None or o.tif in (IOC, FOK)):
            self.answer(ts, o, "EXPIRED", final=True)
        return None

    def reachable(self, x: Listing, side: int, limit: int | None, wanted: int, ts: int) -> int:
        total = sum(self.available(x, side, p, ts) for p in x.ladder(side, limit))
        return wanted if total and not x.rules.partial_fills else min(total, wanted)

    def healed(self, x: Listing, key: tuple[int, int], ts: int) -> float:
        lots, since = x.taken.get(key, (0.0, ts))
        half = x.rules.refill_half_life
        if half == 0 or ts <= since:
            return lots
        left = lots * 2.0 ** (-(ts - since) / half)
        return left if left >= 0.5 else 0.0

    def available(self, x: Listing, side: int, price: int, ts: int) -> int:
        shown = x.book[side].get(price, 0)
        return max(0, math.floor(shown - self.healed(x, (side, price), ts) + 1e-9))

    def consume(self, x: Listing, side: int, price: int, lots: int, ts: int) -> None:
        x.taken[side, price] = (self.healed(x, (side, price), ts) + lots, ts)

    def rest(self, x: Listing, o: Order) -> None:
        o.live, o.ahead, o.traded = True, float(x.book[o.side].get(o.price, 0)), 0
        o.ahead_at_rest = o.ahead
        x.own[o.side].append(o)
        x.own[o.side].sort(key=lambda r: -r.price * r.side)  # stable: time decides at one price

    def unrest(self, x: Listing, o: Order) -> None:
        o.live = False
        x.own[o.side].remove(o)

    def fill(self, x: Listing, o: Order, lots: int, price: int, why: str, ts: int, n: int) -> None:
        o.cum += lots
        if not o.leaves and o.live:
            self.unrest(x, o)
        maker = why != "TAKEN"
        worth = x.worth(lots, price)
        due = worth * (x.rules.maker_e9 if maker else x.rules.taker_e9)
        fee = (abs(due) + E9 // 2) // E9 * (1 if due >= 0 else -1)
        x.position += o.side * lots
        x.cash += (o.side if x.inverse else -o.side) * worth
        x.fees += fee
        ahead = o.ahead_at_rest if maker else None
        self.fills.append((ts, x.number, o.id, price, lots, why, maker, fee, x.position, n, ahead))
        self.answer(ts, o, "FILL" if o.leaves else "LAST_FILL", price, lots, final=not o.leaves)


def due(instant: Instant, o: Order) -> int:
    """What pro rata owes an order that stood there: its share of all, less what it has had."""
    if o not in instant.ours:
        return 0
    everyone = instant.others + sum(instant.ours.values())
    return max(instant.volume * instant.ours[o] // everyone - instant.given[o], 0)


def share_behind(rules: Rules, front: float, back: float) -> float:
    """Share of a cancel that lies behind us; docs/fills.md has the formulas."""
    n = rules.queue_n
    if not front > 0:
        return 1.0

    def f(v: float) -> float:
        return v * v if n == 2 else v * v * v if n == 3 else v**n

    match rules.queue:
        case "power1":
            return f(back) / (f(back) + f(front))
        case "power2":
            return f(back) / f(back + front)
        case "power3":
            return 1.0 - f(front / (front + back))
        case "log1":
            return math.log1p(back) / (math.log1p(back) + math.log1p(front))
        case "log2":
            return math.log1p(back) / math.log1p(back + front)
        case "uniform":
            return back / (front + back)
    return 1.0

"""The replay again, in plain Python and as slowly as it likes: one ordered queue of everything.

Written from docs/fills.md and docs/orders.md, not from the core: a dict for a book, a list for a
queue, `heapq` for time. The core must give the same fills, money and answers.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from naive_footprint import GUARD_NS
from naive_legs import NEVER, Channel, Leg, Stream, draw_uniform, of_instrument
from naive_listing import (
    AUCTION,
    BBO,
    BEGIN,
    BUY,
    CLEAR,
    CLOSED,
    DATUM,
    E9,
    END,
    FOK,
    GAP,
    GTC,
    HALT,
    IOC,
    LAST,
    LEVEL,
    NO_CHANGE,
    OPEN,
    POST_ONLY,
    SELL,
    STATUS,
    TRADE,
    UNCERTAIN,
    Instant,
    Listing,
    Order,
    due,
    left_of,
    share_behind,
)


@dataclass
class Legs:
    """Durations, or whatever has `at(ts, n)`; cancels and replaces travel as new orders do."""

    entry: Any = 0
    response: Any = 0
    compute: Any = 0
    risk: Any = 0
    entry_cancel: Any = None
    entry_replace: Any = None
    ordering: str = "fifo"

    def __post_init__(self) -> None:
        classes = {"new": self.entry, "cancel": self.entry_cancel, "replace": self.entry_replace}
        self.out = {k: leg(self.entry if v is None else v) for k, v in classes.items()}
        self.back, self.handler, self.gate = leg(self.response), leg(self.compute), leg(self.risk)


def leg(spec: Any) -> Any:
    return spec if hasattr(spec, "at") else Leg(spec)


class Naive:
    """`listings`, their rows, the legs, and what the strategy does."""

    def __init__(
        self,
        listings: list[Listing],
        rows: list[Any],
        *,
        legs: Legs,
        script: list[tuple[int, Callable[[Naive], None]]],
        on_fill: Callable[[Naive, Order, int], None] | None = None,
        hears_books: bool = False,
    ) -> None:
        self.listings, self.rows = listings, rows
        self.on_fill = on_fill
        venues = sorted({x.venue for x in listings})
        alone = legs.ordering == "independent"
        self.legs = legs
        self.wire, self.back = ({v: Channel(alone=alone) for v in venues} for _ in "ab")
        self.heap: list[tuple[Any, ...]] = []
        self.count = itertools.count()
        self.orders: list[Order] = []
        self.fills: list[tuple[Any, ...]] = []
        self.counters: Counter[str] = Counter()
        self.answers: list[tuple[Any, ...]] = []
        self.busy = NEVER
        self.now = 0
        self.answers_in = 0
        self.outbox: list[tuple[str, Order, int | None, int]] = []
        self.known_position: dict[int, int] = defaultdict(int)
        for i, tape in enumerate(rows):
            for n, row in enumerate(tape):
                self._push(
                    int(row["ts_event"]), 0, i, n, lambda i=i, n=n, row=row: self._row(i, n, row)
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
        self.busy = self.now + self.legs.handler.at(self.now)
        handled = self.busy
        for k, message in enumerate(self.outbox):
            self.busy += self.legs.gate.at(handled, k)
            self.send(self.busy, *message)
        self.outbox = []

    def send(self, ts: int, verb: str, o: Order, price: int | None, lots: int) -> None:
        venue = self.listings[o.inst].venue
        wire = self.wire[venue]
        n = wire.number(ts)
        arrive = wire.deliver(ts, self.legs.out[verb].at(ts, n))
        answers_in = self.legs.back.at(ts, n)
        if verb == "new":
            o.sent, o.arrived = ts, arrive

        def reach() -> None:
            self.answers_in = answers_in
            self.arrive(arrive, verb, o, price, lots)

        self._push(arrive, 1, venue, next(self.count), reach)

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

    def returns(self, venue: int, ts: int, *, of_message: bool = False) -> int:
        """When an answer is heard; a message's own was drawn with it when it was sent."""
        back = self.back[venue]
        ns = self.answers_in if of_message else self.legs.back.at(ts, back.number(ts))
        return back.deliver(ts, ns)

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
        recv = self.returns(venue, ts, of_message="FILL" not in what)

        def hear() -> None:
            late = order.over
            self.answers.append((order.id, what, ts, recv, price, lots))
            if what == "CANCEL_REJECTED":
                order.cancelling = False
            if what in ("FILL", "LAST_FILL"):
                order.heard += lots
                self.known_position[order.inst] += order.side * lots
            # Answers may overtake each other: the last lot heard ends an order, not the last made.
            order.over |= order.heard == order.lots if "FILL" in what else final
            if late and "FILL" not in what:
                return

            def handler() -> None:
                if what in ("FILL", "LAST_FILL") and self.on_fill:
                    self.on_fill(self, order, lots)

            self.handle(recv, handler)

        self._push(recv, 2, venue, next(self.count), hear)

    # ---- the venue: the tape

    def _row(self, i: int, n: int, row: Any) -> None:
        self.on_row(i, n, row)
        x = self.listings[i]
        if int(row["flags"]) & LAST:
            x.trades.see(x.mid, int(row["ts_event"]))

    def on_row(self, i: int, n: int, row: Any) -> None:
        x, kind = self.listings[i], int(row["kind"])
        ts, side, price, qty = (int(row[k]) for k in ("ts_event", "side", "price", "qty"))
        flags = int(row["flags"])
        if kind == LEVEL:
            self.level(x, side, price, qty, ts, n, hidden=not qty and bool(flags & UNCERTAIN))
            if qty > 0:
                self.cross(x, side, price, ts, n)
        elif kind == TRADE:
            x.trades.printed(qty, ts)
            if not flags & NO_CHANGE:
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
            recv = self.returns(x.venue, ts)
            heard = (0, "FUNDING", ts, recv, None, 0)
            self._push(recv, 2, x.venue, next(self.count), lambda: self.answers.append(heard))

    def level(
        self, x: Listing, side: int, price: int, qty: int, ts: int, n: int, *, hidden: bool = False
    ) -> None:
        before = x.book[side].pop(price, 0)
        if qty:
            x.book[side][price] = qty
        for o in x.own[side]:
            if o.price == price and not hidden:
                self.resize(x, o, before, qty, ts, n)
        x.footprint.level((side, price), before, qty, ts)

    @staticmethod
    def resize(x: Listing, o: Order, before: int, after: int, ts: int, n: int) -> None:
        rules, shrunk = x.rules, before - after
        cancelled = shrunk - o.traded
        o.traded = min(max(o.traded - shrunk, 0), o.traded) if ts - o.traded_ts <= GUARD_NS else 0
        if cancelled > 0 and before > 0 and rules.queue != "risk_averse":
            back = max(before - o.ahead, 0.0)
            ahead = 1.0 - share_behind(rules, o.ahead, back)
            if rules.queue_draws:  # the same cancel is at one place for all of our orders
                draw = draw_uniform(rules.seed, of_instrument(Stream.QUEUE, x.number), n)
                ahead = 1.0 if draw < ahead else 0.0
            least, most = max(0.0, cancelled - back), max(0.0, min(o.ahead, float(cancelled)))
            o.ahead -= min(max(ahead * cancelled, least), most)
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
        x.footprint.forget_gone(x.book)

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
            x.footprint.take((side, price), used, ts)

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
        self.spill(x, passive, price, max(qty - taken, 0), ts)
        x.footprint.prints((passive, price), max(qty - taken, 0), ts)

    def spill(self, x: Listing, side: int, price: int, lots: int, ts: int) -> None:
        """What a taker does not find where we were before it, it takes from the levels behind."""
        if x.footprint.at((side, price), ts) is None:
            return
        left = max(lots - self.available(x, side, price, ts), 0)
        for worse in x.ladder(side, None):
            if (worse - price) * side < 0:
                found = min(self.available(x, side, worse, ts), left)
                if found:
                    x.footprint.take((side, worse), found, ts)
                left -= found

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
        offers = self.offers(x, o, ts)
        plain = self.offers(x, o, ts, faded=False)
        could = min(sum(lots for _, lots in offers), wanted)
        allowed = x.trades.allowed(could, ts)
        self.counters["faded_lots"] += min(sum(lots for _, lots in plain), wanted) - could
        self.counters["capped_lots"] += could - allowed
        if o.tif == FOK and allowed < wanted:
            self.counters["taker_unfilled_lots"] += wanted
            return self.answer(ts, o, "EXPIRED", final=True)
        for price, there in offers:
            lots = min(there, allowed)
            if lots:
                if x.rules.partial_fills and x.rules.depth == "displayed":
                    x.footprint.take((-o.side, price), lots, ts)
                self.fill(x, o, lots, price, "TAKEN", ts, -1)
                allowed -= lots
        if o.leaves and (o.price is None or o.tif in (IOC, FOK)):
            self.counters["taker_unfilled_lots"] += o.leaves
            self.answer(ts, o, "EXPIRED", final=True)
        return None

    def offers(self, x: Listing, o: Order, ts: int, *, faded: bool = True) -> list[tuple[int, int]]:
        """Prices within a taker's limit, the best first, and the lots that it finds there."""
        everything = 1 << 62
        prices = x.ladder(-o.side, o.price)
        if x.rules.depth == "touch":
            return [(p, everything) for p in prices[:1]]
        found = [
            (p, self.available(x, -o.side, p, ts, left_of(x.rules, i) if faded else 1.0))
            for i, p in enumerate(prices)
        ]
        if not x.rules.partial_fills:
            return [(p, everything) for p, lots in found if lots][:1]
        return found

    def reachable(self, x: Listing, side: int, limit: int | None, wanted: int, ts: int) -> int:
        prices = x.ladder(side, limit)
        if x.rules.depth == "touch":
            return wanted if prices else 0
        total = sum(self.available(x, side, p, ts) for p in prices)
        return wanted if total and not x.rules.partial_fills else min(total, wanted)

    @staticmethod
    def available(x: Listing, side: int, price: int, ts: int, left: float = 1.0) -> int:
        shown = x.book[side].get(price, 0) * left
        return max(0, math.floor(shown - x.footprint.gone((side, price), ts) + 1e-9))

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
        impact = 0 if maker else self.impact(x, o.side, lots, price, ts)
        extrapolated = x.trades.filled(lots, ts)
        self.counters["fills_extrapolated"] += extrapolated
        x.position += o.side * lots
        x.cash += (o.side if x.inverse else -o.side) * worth
        x.fees += fee
        x.impact += impact
        ahead = o.ahead_at_rest if maker else None
        who, what = (ts, x.number, o.id, price, lots, why, maker), (x.position, n, ahead)
        self.fills.append((*who, fee, impact, extrapolated, *what))
        self.answer(ts, o, "FILL" if o.leaves else "LAST_FILL", price, lots, final=not o.leaves)

    @staticmethod
    def impact(x: Listing, side: int, lots: int, price: int, ts: int) -> int:
        ticks = x.overlay.push(side, lots, ts)
        if x.rules.depth == "touch":
            ticks += x.trades.slippage(lots, x.spread, ts)
        return x.of_ticks(ticks, lots, price)

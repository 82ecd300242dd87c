"""Every feature over again in plain Python: whole history kept, nothing incremental."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from hft.features import Feature, Features
from hft.types import Flag, Kind, Trading

HALF_LIVES_TO_WARM = 4
GRID = 64


@dataclass
class NaiveBook:
    bids: dict[int, int] = field(default_factory=dict)
    asks: dict[int, int] = field(default_factory=dict)
    state: str = "EMPTY"

    def side(self, side: int) -> dict[int, int]:
        return self.bids if side > 0 else self.asks

    def levels(self, side: int, n: int) -> list[tuple[int, int]]:
        prices = sorted(self.side(side), reverse=side > 0)[:n]
        found = [(p, self.side(side)[p]) for p in prices]
        return found + [(None, 0)] * (n - len(found))  # type: ignore[list-item]

    def apply(self, e: Any) -> None:
        kind = Kind(int(e["kind"]))
        if kind is Kind.LEVEL:
            self.side(e["side"]).pop(int(e["price"]), None)
            if e["qty"]:
                self.side(e["side"])[int(e["price"])] = int(e["qty"])
        elif kind is Kind.CLEAR:
            for s in (1, -1):
                if e["side"] in (0, s):
                    self.side(s).clear()
        elif kind is Kind.SNAPSHOT_BEGIN:
            self.bids.clear()
            self.asks.clear()
            self.state = "SYNCING"
        elif kind is Kind.SNAPSHOT_END:
            self.state = "LIVE"
        elif kind is Kind.STATUS and e["ref_id"] == Trading.GAP:
            self.state = "GAP"


def better(side: int, a: int | None, b: int | None) -> bool:
    """Price a is strictly better than b; no price is the worst."""
    if a is None or b is None:
        return a is not None
    return (a - b) * side > 0


class NaiveFeatures:
    def __init__(self, features: Features) -> None:
        self.features = features
        self.depth = max(f.levels for f in features)
        self.warm_up_ns = max(self._warm_up(f) for f in features)
        self.rows: list[tuple[int, list[float]]] = []
        self.book = NaiveBook()
        self.clock = features.trigger.interval_ns
        self.reset()

    @staticmethod
    def _warm_up(f: Feature) -> int:
        if f.kind == "mid_return":
            return f.window_ns + -(-f.window_ns // GRID)
        return HALF_LIVES_TO_WARM * f.window_ns

    def reset(self) -> None:
        self.started: int | None = None
        self.mids: list[tuple[int, float]] = []  # after each readable packet
        self.trades: list[tuple[int, int, int]] = []
        self.flows: list[tuple[int, list[float]]] = []  # OFI summed over 1..depth levels
        self.packets: list[int] = []
        self.fired: list[int] = []
        self.since_fired: dict[str, int] = {"trades": 0, "flows": 0}
        self.pending: list[tuple[int, int]] = []
        self.touch: tuple[Any, ...] | None = None
        self.last_levels: dict[int, list[tuple[int, int]]] = {}
        self.next_clock: int | None = None
        self.own_state = {f.name: f.state for f in self.features}

    def feed(self, events: Any) -> None:
        for e in events:
            if not e["flags"] & Flag.SEEN_BY_US:
                continue
            now = int(e["ts_recv"])
            while self.next_clock is not None and self.next_clock < now:
                self.tick(self.next_clock)
            self.book.apply(e)
            if e["kind"] == Kind.TRADE and not e["flags"] & Flag.OWN:
                self.pending.append((int(e["side"]), int(e["qty"])))
            if self.book.state == "GAP" and e["kind"] == Kind.STATUS:
                self.reset()
            if e["flags"] & Flag.LAST:
                if self.book.state == "EMPTY":
                    self.book.state = "LIVE"
                self.end_packet(now)

    def tick(self, now: int) -> None:
        self.next_clock = now + self.clock
        self.fire(now, since_event=now - self.packets[-1])

    def end_packet(self, now: int) -> None:
        traded = bool(self.pending)
        self.trades += [(now, side, lots) for side, lots in self.pending]
        self.pending = []
        before = self.packets[-1] if self.packets else now
        self.packets.append(now)
        if self.book.state != "LIVE" or not self.book.bids or not self.book.asks:
            return
        levels = {s: self.book.levels(s, self.depth) for s in (1, -1)}
        if self.started is None:
            self.started = now
            if self.clock:
                self.next_clock = (now // self.clock + 1) * self.clock
        else:
            self.flows.append((now, self.order_flow(levels)))
        self.last_levels = levels
        self.mids.append((now, (levels[1][0][0] + levels[-1][0][0]) / 2))
        if self.triggered(levels, traded=traded):
            self.fire(now, since_event=now - before)

    def order_flow(self, levels: dict[int, list[tuple[int, int]]]) -> list[float]:
        sums, total = [], 0
        for i in range(self.depth):
            for side in (1, -1):
                (price, lots), (old_price, old_lots) = levels[side][i], self.last_levels[side][i]
                if not better(side, old_price, price):
                    total += side * lots
                if not better(side, price, old_price):
                    total -= side * old_lots
            sums.append(float(total))
        return sums

    def triggered(self, levels: dict[int, list[tuple[int, int]]], *, traded: bool) -> bool:
        trigger = self.features.trigger
        if trigger.kind == "packet":
            return True
        if trigger.kind == "trade":
            return traded
        if trigger.kind == "touch":
            best = (levels[1][0], levels[-1][0])
            touch = best if trigger.sizes else (best[0][0], best[1][0])
            moved, self.touch = touch != self.touch, touch
            return moved
        return False

    def fire(self, now: int, since_event: int) -> None:
        readable = self.book.state == "LIVE" and self.book.bids and self.book.asks
        if readable and self.started is not None and now - self.started >= self.warm_up_ns:
            self.rows.append((now, [self.column(f, now, since_event) for f in self.features]))
        self.since_fired = {"trades": len(self.trades), "flows": len(self.flows)}
        self.fired.append(now)

    def column(self, f: Feature, now: int, since_event: int) -> float:
        x = self.value(f, now, since_event)
        return math.copysign(math.log1p(abs(x)), x) if f.is_log else x

    def weighted(self, f: Feature, now: int, terms: Any, kept: str | None) -> float:
        if f.window_ns == 0:
            return float(sum(x for _, x in terms[self.since_fired[kept] :]))  # type: ignore[index]
        return float(sum(x * 2.0 ** (-(now - ts) / f.window_ns) for ts, x in terms))

    def value(self, f: Feature, now: int, since_event: int) -> float:
        bids, asks = self.last_levels[1], self.last_levels[-1]
        mid, spread = (bids[0][0] + asks[0][0]) / 2, asks[0][0] - bids[0][0]
        micro = (bids[0][0] * asks[0][1] + asks[0][0] * bids[0][1]) / (bids[0][1] + asks[0][1])
        match f.kind:
            case "mid":
                return mid
            case "micro_price":
                return micro
            case "micro_price_minus_mid":
                return micro - mid
            case "spread":
                return spread
            case "imbalance":
                b, a = (sum(q for _, q in side[: f.levels]) for side in (bids, asks))
                return (b - a) / (b + a)
            case "ofi":
                return self.weighted(
                    f, now, [(t, flow[f.levels - 1]) for t, flow in self.flows], "flows"
                )
            case "trade_flow":
                return self.weighted(f, now, [(t, s * q) for t, s, q in self.trades], "trades")
            case "trade_lots":
                return self.weighted(f, now, [(t, q) for t, _, q in self.trades], "trades")
            case "trade_count":
                return self.weighted(f, now, [(t, 1) for t, _, _ in self.trades], "trades")
            case "volatility":
                pairs = zip(self.mids, self.mids[1:], strict=False)
                squares = [(b[0], (b[1] - a[1]) ** 2) for a, b in pairs]
                window_s = f.window_ns / 1e9 / math.log(2)
                return math.sqrt(self.weighted(f, now, squares, None) / window_s)
            case "mid_return":
                grid = -(-f.window_ns // GRID)
                instant = (now - f.window_ns) // grid * grid
                return mid - [m for t, m in self.mids if t <= instant][-1]
            case "depth_lots":
                return math.log1p(self.last_levels[f.side][f.levels - 1][1])
            case "level_distance":
                found = [p for p, _ in self.last_levels[f.side][: f.levels] if p is not None]
                return (mid - found[-1]) * f.side + f.levels - len(found)
            case "since_event":
                return math.log1p(since_event / 1e3)
            case "since_trade":
                last = self.trades[-1][0] if self.trades else self.started
                return math.log1p((now - last) / 1e3)  # type: ignore[operator]
            case "since_row":
                last = self.fired[-1] if self.fired else self.started
                return math.log1p((now - last) / 1e3)  # type: ignore[operator]
        raise AssertionError(f.kind)

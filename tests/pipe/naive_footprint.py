"""What our own trading leaves behind, from docs/fills.md: lots that miss, a push, a share.

Sums are made anew from everything there was, where the core keeps a state.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from naive_legs import NEVER, Stream, draw_uniform, of_instrument

if TYPE_CHECKING:
    from naive_listing import Rules

GUARD_NS = 1_000_000
Key = tuple[int, int]
"""Side and price."""


@dataclass
class Taken:
    """What is missing of one level because we took it."""

    lots: float
    """Comes back by itself, from `ts` on."""
    kept: float
    """Stays away."""
    ts: int
    half_life: int
    printed: int = 0
    """Traded here, and not yet shown by a row of the level."""
    printed_ts: int = NEVER

    def healing(self, ts: int) -> float:
        """What is left of `lots`; less than half a lot is nothing."""
        if not self.half_life:
            return self.lots
        left = self.lots * 2.0 ** (-(ts - self.ts) / self.half_life)
        return left if left >= 0.5 else 0.0

    def missing(self, ts: int) -> float:
        return self.healing(ts) + self.kept

    def shrink_to(self, missing: float, ts: int) -> None:
        """Both parts in proportion; never grows."""
        before = self.missing(ts)
        if missing < before:
            share = missing / before
            self.lots, self.kept, self.ts = self.healing(ts) * share, self.kept * share, ts

    def add(self, lots: int, ts: int, *, heals: bool) -> None:
        if heals:
            self.lots, self.ts = self.healing(ts) + lots, ts
        else:
            self.kept += lots

    def explain(self, shrunk: int, ts: int) -> int:
        """How much of a shrink is what traded; later rows explain it once."""
        told = min(max(shrunk, 0), self.printed)
        self.printed = self.printed - told if ts - self.printed_ts <= GUARD_NS else 0
        return told


class Footprint:
    """Of one instrument."""

    def __init__(self, number: int, rules: Rules) -> None:
        self.number, self.rules = number, rules
        self.taken: dict[Key, Taken] = {}

    def at(self, key: Key, ts: int) -> Taken | None:
        """The record as it is then; one that misses nothing is none."""
        record = self.taken.get(key)
        if record is None:
            return None
        if not record.missing(ts):
            del self.taken[key]
            return None
        return record

    def gone(self, key: Key, ts: int) -> float:
        """Lots that are displayed and not there."""
        record = self.at(key, ts)
        if record is None:
            return 0.0
        fresh = ts - record.printed_ts <= GUARD_NS
        return record.missing(ts) + (record.printed if fresh else 0)

    def take(self, key: Key, lots: int, ts: int) -> None:
        empty = Taken(0.0, 0.0, ts, self.rules.refill_half_life)
        record = self.at(key, ts) or self.taken.setdefault(key, empty)
        side, price = key
        stream = of_instrument(Stream.REFILL, self.number)
        draw = draw_uniform(self.rules.seed, stream, ts, price * side)
        record.add(lots, ts, heals=draw < self.rules.refill_probability)

    def prints(self, key: Key, lots: int, ts: int) -> None:
        record = self.at(key, ts)
        if record and lots:
            record.printed, record.printed_ts = record.printed + lots, ts

    def level(self, key: Key, before: int, after: int, ts: int) -> None:
        """The tape's level changes: what traded there is not cancelled, the rest is."""
        if not after:
            self.taken.pop(key, None)
            return
        record = self.at(key, ts)
        if record is None:
            return
        told = record.explain(before - after, ts)
        if after < before:
            record.shrink_to(before - told, ts)
            record.shrink_to(record.missing(ts) * after / (before - told), ts)

    def forget_gone(self, book: dict[int, dict[int, int]]) -> None:
        self.taken = {k: v for k, v in self.taken.items() if book[k[0]].get(k[1], 0)}


@dataclass
class Overlay:
    """How far our takers have pushed the price, in ticks: cash, not a price."""

    weights: tuple[float, ...] = ()
    half_lives: tuple[int, ...] = ()
    permanent: float = 0.0
    pushes: list[tuple[int, int]] = field(default_factory=list)
    """Time and signed lots."""

    def level(self, ts: int) -> float:
        pushed = self.permanent * sum(q for _, q in self.pushes)
        for weight, half_life in zip(self.weights, self.half_lives, strict=True):
            left = sum(q * 2.0 ** (-(ts - t) / half_life) for t, q in self.pushes)
            pushed += weight * left
        return pushed

    def push(self, side: int, lots: int, ts: int) -> float:
        """What each lot of a fill pays; half of its own push is charged to itself."""
        own = (sum(self.weights) + self.permanent) * lots / 2
        cost = side * self.level(ts) + own
        self.pushes.append((ts, side * lots))
        return cost


class Windows:
    """A sum over the present window of time and the one before."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.sums: dict[int, float] = defaultdict(float)

    def add(self, ts: int, amount: float) -> None:
        self.sums[ts // self.width] += amount

    def at(self, ts: int) -> float:
        now = ts // self.width
        return self.sums[now - 1] + self.sums[now]

    def elapsed(self, ts: int) -> int:
        return ts - (ts // self.width - 1) * self.width


class Trades:
    """What traded lately, by everybody and by us, and how the mid moved."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.market, self.own, self.moves = (Windows(rules.participation_window) for _ in "abc")
        self.volume = 0
        self.mid: float | None = None

    def printed(self, lots: int, ts: int) -> None:
        self.market.add(ts, lots)
        self.volume += lots

    def see(self, mid: float | None, ts: int) -> None:
        if mid is None:
            return
        if self.mid is not None:
            self.moves.add(ts, (mid - self.mid) ** 2)
        self.mid = mid

    def allowed(self, wanted: int, ts: int) -> int:
        cap = self.rules.participation_cap
        if not cap:
            return wanted
        room = math.floor(cap * self.market.at(ts)) - int(self.own.at(ts))
        return max(0, min(wanted, room))

    def filled(self, lots: int, ts: int) -> bool:
        """Whether it was too much of the volume to be believed."""
        self.own.add(ts, lots)
        return self.own.at(ts) > self.rules.participation_flag * self.market.at(ts)

    def slippage(self, lots: int, spread: int | None, ts: int) -> float:
        """Ticks a lot beyond the touch."""
        k = self.rules.coefficient
        match self.rules.slippage:
            case "spread":
                return k * spread if spread is not None else 0.0
            case "volatility":
                rate = self.moves.at(ts) / max(self.moves.elapsed(ts), 1)
                return k * math.sqrt(rate) * math.sqrt(self.rules.horizon)
            case "square_root":
                volume = max(self.market.at(ts), lots)
                return k * math.sqrt(self.moves.at(ts)) * math.sqrt(lots / volume)
        return 0.0

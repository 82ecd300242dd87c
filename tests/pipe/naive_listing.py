"""An instrument as the twin keeps it: its rules, its book as a dict, our orders as a list."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field

from naive_footprint import Footprint, Overlay, Trades
from naive_legs import NEVER

BUY, SELL = 1, -1
GTC, IOC, FOK, POST_ONLY = range(4)
LEVEL, CLEAR, BEGIN, END, TRADE, BBO, STATUS, DATUM = 1, 2, 3, 4, 5, 6, 32, 33
OPEN, HALT, AUCTION, CLOSED, GAP = range(5)
LAST, UNCERTAIN, NO_CHANGE = 4, 16, 128
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
    queue_draws: bool = False
    refill_probability: float = 1.0
    fade: float = 0.0
    fade_rule: str = "flat"
    participation_window: int = 10_000_000_000
    participation_flag: float = 0.1
    participation_cap: float = 0.0
    depth: str = "displayed"
    slippage: str = "none"
    coefficient: float = 1.0
    horizon: int = 1_000_000_000
    weights: tuple[float, ...] = ()
    half_lives: tuple[int, ...] = ()
    permanent: float = 0.0
    seed: int = 1
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


@dataclass(eq=False)
class Order:
    id: int
    inst: int
    side: int
    price: int | None
    lots: int
    tif: int
    cum: int = 0
    sent: int = NEVER
    arrived: int = NEVER
    live: bool = False
    ahead: float = 0.0
    ahead_at_rest: float = 0.0
    traded: int = 0
    traded_ts: int = NEVER
    heard: int = 0  # filled, as we know it
    over: bool = False  # likewise
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
    tick: float = 1.0
    inverse: bool = False
    book: dict[int, dict[int, int]] = field(default_factory=lambda: {BUY: {}, SELL: {}})
    own: dict[int, list[Order]] = field(default_factory=lambda: {BUY: [], SELL: []})
    instants: dict[tuple[int, int], Instant] = field(default_factory=dict)
    trading: int = OPEN
    syncing: bool = False
    position: int = 0
    cash: int = 0
    fees: int = 0
    funding: int = 0
    impact: int = 0

    def __post_init__(self) -> None:
        r = self.rules
        self.footprint = Footprint(self.number, r)
        self.overlay = Overlay(r.weights, r.half_lives, r.permanent)
        self.trades = Trades(r)

    def best(self, side: int) -> int | None:
        return max(self.book[side], key=lambda p: p * side, default=None)

    def ladder(self, side: int, limit: int | None) -> list[int]:
        """Prices of a side from the best to the limit."""
        prices = sorted(self.book[side], key=lambda p: -p * side)
        return [p for p in prices if limit is None or (p - limit) * side >= 0]

    @property
    def spread(self) -> int | None:
        bid, ask = self.best(BUY), self.best(SELL)
        return None if bid is None or ask is None else ask - bid

    @property
    def mid(self) -> float | None:
        bid, ask = self.best(BUY), self.best(SELL)
        return None if bid is None or ask is None else (bid + ask) / 2

    def worth(self, lots: int, price: float) -> int:
        if self.inverse:
            return round_away(lots * 1e9 / (price * self.tick))
        return lots * round(2 * price) * round(self.tick * E9) // 2

    def mark(self, mid: float) -> int:
        return self.worth(self.position, mid) * (-1 if self.inverse else 1) if self.position else 0

    def of_ticks(self, ticks: float, lots: int, price: int) -> int:
        """What so many ticks a lot are worth at a price."""
        per_tick = 1e9 / (price * price * self.tick) if self.inverse else self.tick * E9
        return round_away(ticks * lots * per_tick)


def round_away(x: float) -> int:
    return math.floor(abs(x) + 0.5) * (1 if x >= 0 else -1)


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


def left_of(rules: Rules, i: int) -> float:
    """Share of the i-th displayed level that is still there when a taker arrives."""
    return 1.0 - rules.fade if rules.fade_rule == "flat" else (1.0 - rules.fade) ** (i + 1)

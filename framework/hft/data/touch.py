"""A plain book that knows only its touch: for `--book` checks and `hft data info`, not for replay.

About a microsecond a row: dicts of levels, and heaps of prices from which dead levels are popped
when they come up. L2 rows alone; the touch of an L3 feed is not followed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import Any

from hft.types import Flag, Kind, Trading

_BOOK_KINDS = frozenset((Kind.LEVEL, Kind.CLEAR, Kind.SNAPSHOT_BEGIN, Kind.SNAPSHOT_END))


class _Side:
    """Levels of one side; keys are `price * side`, so that the best is the largest."""

    def __init__(self, side: int) -> None:
        self._side = side
        self.lots: dict[int, int] = {}
        self._heap: list[int] = []

    def set(self, price: int, lots: int) -> None:
        if lots == 0:
            self.lots.pop(price, None)
        else:
            if price not in self.lots:
                heappush(self._heap, -price * self._side)
            self.lots[price] = lots

    def clear(self, upto: int | None = None) -> None:
        """Drop all levels, or those from the touch to `upto`."""
        keep = {} if upto is None else self.lots
        self.lots = {p: q for p, q in keep.items() if p * self._side < (upto or 0) * self._side}
        self._heap = [-p * self._side for p in self.lots]
        heapify(self._heap)

    def best(self) -> int | None:
        while self._heap:
            price = -self._heap[0] * self._side
            if price in self.lots:
                return price
            heappop(self._heap)
        return None


@dataclass(slots=True)
class Touch:
    """Keeps the touch of the rows it is fed, and counts packets that leave it crossed."""

    bids: _Side = field(default_factory=lambda: _Side(1))
    asks: _Side = field(default_factory=lambda: _Side(-1))
    rows: int = 0
    packets: int = 0
    crossed: int = 0
    first_crossed: int | None = None
    gaps: int = 0
    book_rows: int = 0
    state: int = Trading.OPEN

    def feed(self, events: Any) -> None:
        """Apply the next rows, as we see them."""
        ours = events[events["flags"] & Flag.SEEN_BY_US != 0]
        fields = ("price", "qty", "ref_id", "kind", "side", "flags")
        columns = [ours[name].tolist() for name in fields]
        for price, qty, ref_id, kind, side, flags in zip(*columns, strict=True):
            if kind in _BOOK_KINDS:
                self.book_rows += 1
                self._apply(kind, side, price, qty, ref_id)
            elif kind == Kind.STATUS:
                self.state = ref_id
                self.gaps += ref_id == Trading.GAP
            if flags & Flag.LAST:
                self._packet()
            self.rows += 1

    def touch(self) -> tuple[int, int, int, int] | None:
        """Bid price and lots, ask price and lots; None if a side is empty."""
        bid, ask = self.bids.best(), self.asks.best()
        if bid is None or ask is None:
            return None
        return bid, self.bids.lots[bid], ask, self.asks.lots[ask]

    def _apply(self, kind: int, side: int, price: int, qty: int, ref_id: int) -> None:
        if kind == Kind.LEVEL:
            (self.bids if side > 0 else self.asks).set(price, qty)
        elif kind == Kind.SNAPSHOT_END:
            self.state = Trading.OPEN if self.state == Trading.GAP else self.state
        else:  # a snapshot begins with an empty book
            upto = price if kind == Kind.CLEAR and ref_id == 1 else None
            for mine, levels in ((1, self.bids), (-1, self.asks)):
                if side in (0, mine):
                    levels.clear(upto)

    def _packet(self) -> None:
        self.packets += 1
        bid, ask = self.bids.best(), self.asks.best()
        if bid is not None and ask is not None and bid >= ask and self.state == Trading.OPEN:
            self.crossed += 1
            if self.first_crossed is None:
                self.first_crossed = self.rows

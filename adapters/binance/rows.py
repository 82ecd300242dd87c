"""EVENT rows being collected from messages."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hft.adapters.binance.messages import Levels
from hft.data.exact import on_grid
from hft.data.importing import Batch
from hft.errors import DataError
from hft.types import EVENT, SEEN_BY_BOTH, Flag, InstrumentSpec, Kind

UNTIMED = 0  # venue time of a spot snapshot that opens a capture
NOTHING: Levels = [("0", "0")]


class Stamp(NamedTuple):
    """What all rows of one message share."""

    ts_event: int
    ts_recv: int
    line: int
    seq: int


@dataclass(slots=True)
class Rows:
    """Rows being collected: amounts as text by row, the rest once for each run of rows alike."""

    name: str
    spec: InstrumentSpec
    repair: bool
    count: int = 0
    rounded: int = 0
    unread: int = 0
    _amounts: Levels = field(default_factory=list)
    _runs: list[tuple[int, ...]] = field(default_factory=list)

    def add(
        self,
        stamp: Stamp,
        kind: Kind,
        side: int,
        levels: Levels,
        flags: int = 0,
        *,
        last: bool = False,
        ref_id: int = 0,
    ) -> None:
        """Append rows; `last`: the packet ends with them."""
        if levels:
            self._amounts += levels
            self._runs.append((*stamp, kind, side, flags | SEEN_BY_BOTH, ref_id, last, len(levels)))
            self.count += len(levels)

    def take(self, done: float) -> Batch:
        """All rows so far, as a batch."""
        runs = np.array(self._runs, np.int64).T
        timed = runs[0] != UNTIMED
        if not timed.all():  # a snapshot before any message with a time
            runs[0, ~timed] = runs[0, timed][0] if timed.any() else runs[1, 0]
        lengths = runs[-1]
        events = np.zeros(self.count, EVENT)
        names = ("ts_event", "ts_recv", "line", "seq", "kind", "side", "flags", "ref_id")
        columns = dict(zip(names, np.repeat(runs[:-2], lengths, axis=1), strict=True))
        lines = columns.pop("line")
        for name, values in columns.items():
            events[name] = values
        ends = np.cumsum(lengths) - 1
        events["flags"][ends[runs[-2] == 1]] |= np.uint16(Flag.LAST)
        self._fill_amounts(events, lines)
        self.count, self._amounts, self._runs = 0, [], []
        return Batch(events, lines, done)

    def _fill_amounts(self, events: NDArray[Any], lines: NDArray[np.int64]) -> None:
        loose = events["kind"] == Kind.TRADE if self.repair else None
        price, qty = (self._numbers(at, lines) for at in (0, 1))
        unread = ~(np.isfinite(price) & np.isfinite(qty))
        if unread.any():
            self.unread += int(np.count_nonzero(unread))
            price[unread] = qty[unread] = 0.0
            events["kind"][unread] = 0  # no kind: the repair drops such rows and mends their packet
        try:
            events["price"], rounded = on_grid(
                price, self.spec.tick, "price", loose=loose, rows=lines, where="line"
            )
            events["qty"], _ = on_grid(qty, self.spec.lot, "qty", rows=lines, where="line")
        except DataError as error:
            raise DataError(f"{self.name}: {error}; tick and lot can be given") from None
        self.rounded += rounded

    def _numbers(self, at: int, lines: NDArray[np.int64]) -> NDArray[np.float64]:
        text = [amount[at] for amount in self._amounts]
        try:
            values = np.array(list(map(float, text)), np.float64)
        except ValueError:
            values = np.array([_number(amount) for amount in text], np.float64)
        wrong = ~np.isfinite(values)
        if wrong.any() and not self.repair:
            row = int(wrong.argmax())
            what = ("price", "qty")[at]
            raise DataError(
                f"{self.name}: line {lines[row]}: {what} {text[row]!r} is no finite number"
            )
        return values


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan

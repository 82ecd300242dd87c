"""What the fits look at, read from a store or a file in one pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hft.data.checks import Events
from hft.errors import ConfigError, DataError
from hft.features import as_words

if TYPE_CHECKING:
    from hft.data.opening import MarketData
    from hft.data.store import Time

Tell = Callable[[int, float], None]
"""Told (rows so far, share done), as by `hft.data.progress.progress`."""
Rows = NDArray[Any]

ORDER_KINDS = frozenset({"ADD", "MODIFY", "CANCEL", "EXECUTE", "REPLACE"})
SEED = 1

CANCEL = np.dtype(
    [
        ("ts", "<i8"),
        ("side", "<i8"),
        ("level", "<i8"),  # lots that rested there, before
        ("ahead", "<i8"),  # of them before the lots that left
        ("gone", "<i8"),  # lots that left
        ("distance", "<i8"),  # ticks behind the side's best price
        ("spread", "<i8"),  # ticks
        ("orders", "<i8"),  # of the level, before
        ("ref_front", "<i8"),  # lots before another order, drawn from those of the level; -1: none
        ("ref_back", "<i8"),  # lots behind it
        ("ref_ahead", "<i8"),  # 1: the lots that left stood before it
    ]
)
GRID = np.dtype(
    [
        ("ts", "<i8"),
        ("mid2", "<i8"),  # bid + ask, ticks
        ("bid_depth", "<i8"),  # lots of the best levels
        ("ask_depth", "<i8"),
        ("bid_lots", "<i8"),  # of the best level
        ("ask_lots", "<i8"),
        ("ofi", "<i8"),  # order flow imbalance summed so far, lots
    ]
)
SWEEP = np.dtype(
    [
        ("ts", "<i8"),
        ("side", "<i8"),  # the aggressor's
        ("lots", "<i8"),
        ("mid2", "<i8"),  # before it
        ("walked", "<i8"),  # ticks that its lots move the best price it hits, by walking the levels
        ("touch", "<i8"),  # lots at that price before it
    ]
)
MID = np.dtype([("ts", "<i8"), ("mid2", "<i8")])


@dataclass(frozen=True, slots=True)
class Source:
    """One instrument of some data, and a range of it."""

    market: MarketData
    name: str
    path: str
    start: Time = None
    end: Time = None

    def range(self) -> str:
        """The range as text."""
        if self.start is None and self.end is None:
            return "all there is"
        return f"{self.start or 'the beginning'} to {self.end or 'the end'}"


@dataclass(frozen=True, slots=True)
class Tape:
    """Price, depth and prints while trading was open; times are the venue's."""

    grid: Rows
    """GRID, a row each step."""
    sweeps: Rows
    """SWEEP, the prints of one aggressor at one instant."""
    mids: Rows
    """MID, wherever it changed."""
    step_ns: int
    levels: int
    unsided: int
    """Prints without an aggressor."""


def sources_of(
    market: MarketData,
    path: str,
    symbols: tuple[str, ...] = (),
    start: Time = None,
    end: Time = None,
) -> list[Source]:
    """The instruments asked for, or all; `SYMBOL` will do for `SYMBOL.VENUE`.

    Raises:
        ConfigError: there is no such instrument.
        DataError: it has no rows on the days of [start, end).
    """
    known = market.symbols()
    names = []
    for symbol in symbols or known:
        found = [name for name in known if symbol in (name, name.partition(".")[0])]
        if len(found) != 1:
            raise ConfigError(
                f"{path}: {len(found)} instruments are called {symbol!r}; there are "
                f"{', '.join(known)}"
            )
        names += found
    for name in names:
        if not market.kinds(name, start, end):
            days = market.days(name)
            raise DataError(
                f"{path}: {name} has no rows from {start or 'the first'} to {end or 'the last'}; "
                f"it has {days[0]} to {days[-1]}"
            )
    return [Source(market, name, path, start, end) for name in names]


def read_cancels(source: Source, near_ticks: int, tell: Tell | None = None) -> Rows:
    """Cancels at most `near_ticks` behind the touch, (n,) CANCEL.

    Raises:
        DataError: the data tell levels, in which nobody's place is seen.
    """
    from hft import _core

    if not ORDER_KINDS & source.market.kinds(source.name, source.start, source.end):
        raise DataError(
            f"{source.path}: {source.name} tells levels, and a level does not show where in its "
            "queue a cancelled order stood, so these data cannot tell the queue model's n. Data "
            "of orders (L3) can; or a live run's own fills, once there are some"
        )
    cancels = _core.CancelPass(near_ticks, SEED)
    found = [cancels.feed(as_words(rows)) for rows in _chunks(source, tell)]
    return _rows(found, CANCEL)


def read_tape(source: Source, *, step_ns: int, levels: int, tell: Tell | None = None) -> Tape:
    """Price and depth on a grid, and the prints.

    Raises:
        DataError: there is no book with two sides, no print, or no print that says who took.
    """
    from hft import _core

    tape = _core.TapePass(step_ns, levels)
    parts: tuple[list[Rows], list[Rows], list[Rows]] = ([], [], [])
    for rows in _chunks(source, tell):
        tape.feed(as_words(rows))
        for part, table in zip(parts, tape.take(), strict=True):
            part.append(table)
    tape.finish()
    for part, table in zip(parts, tape.take(), strict=True):
        part.append(table)
    grid, sweeps, mids = (
        _rows(part, dtype) for part, dtype in zip(parts, (GRID, SWEEP, MID), strict=True)
    )
    if not len(grid):
        raise DataError(f"{source.path}: {source.name} has no book with two sides while it trades")
    if not len(sweeps):
        why = "no print says who took" if tape.unsided else "there are no prints"
        raise DataError(f"{source.path}: {source.name}: {why}, so nothing can be fitted to them")
    return Tape(grid, sweeps, mids, step_ns, levels, int(tape.unsided))


def _chunks(source: Source, tell: Tell | None) -> Iterator[Events]:
    first, seen = None, 0
    span = _span(source) if tell else None
    for rows in source.market.chunks(source.name, source.start, source.end):
        yield rows
        seen += len(rows)
        if tell and span and len(rows):
            first = int(rows["ts_recv"][0]) if first is None else first
            tell(seen, min(1.0, (int(rows["ts_recv"][-1]) - span[0]) / (span[1] - span[0])))


def _span(source: Source) -> tuple[int, int]:
    """About where the data begin and end, by their dates."""
    from hft.data.store import instant

    days = source.market.days(source.name)
    first, last = instant(source.start), instant(source.end)
    begin = int(np.datetime64(days[0], "ns").astype(np.int64)) if first is None else first
    day_ns = 86_400_000_000_000
    end = int(np.datetime64(days[-1], "ns").astype(np.int64)) + day_ns if last is None else last
    return begin, max(end, begin + 1)


def _rows(tables: list[Rows], dtype: np.dtype[Any]) -> Rows:
    words = np.concatenate(tables) if tables else np.empty((0, dtype.itemsize // 8), np.int64)
    return np.ascontiguousarray(words).view(dtype).reshape(-1)

"""Snapshots of a venue's best levels and running totals as one feed of EVENT rows.

All of it is inferred (hft/data/snapshots.py): level changes by difference, prints from the totals.
A day begins with a snapshot of its own, so that each day of a store stands alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hft.adapters.china.clock import DAY_NS, OFFSET_NS, local_day
from hft.adapters.china.sessions import Phase, Sessions
from hft.data.blocks import Reading
from hft.data.checks import Events
from hft.data.snapshots import SnapshotDiff, inferred_prints, with_prints
from hft.errors import DataError, OutOfOrder
from hft.types import EVENT, SEEN_BY_BOTH, Flag, InstrumentSpec, Kind, Trading

Ints = NDArray[np.int64]

CANNOT_TELL = (
    "what happened between two snapshots: level changes are differences, marked UNCERTAIN",
    "single trades: prints are inferred from the running totals, without a side",
)
NO_RECEIVE_TIME = "when we would have received a row: ts_recv is ts_event"
PUBLISHED_SESSIONS = "when trading phases changed: STATUS rows are the published sessions"


class Snapshots(NamedTuple):
    """Some snapshots, (n,) each."""

    lines: Ints
    """Of the file, for messages."""
    ts_event: Ints
    ts_recv: Ints
    volume_lots: Ints
    """Traded so far this day."""
    turnover_ticks: NDArray[Any] | None
    """Likewise, sum of price * size [ticks * lots]; None: the file's is of no use."""
    last_ticks: Ints
    bids: Ints | None
    """(n, levels, 2) of price [ticks] and size [lots]; None: the file has no quotes."""
    asks: Ints | None
    state: Ints | None = None
    """A `Trading` value, where the file says it."""

    def take(self, which: Any) -> Snapshots:
        """Some of them."""
        columns: list[Any] = [None if column is None else column[which] for column in self]
        return Snapshots(*columns)


class SnapshotFeed:
    """Turns snapshots into rows, call by call.

    Args:
        reading: of the file, for messages and counts.
        levels: a side.
        phases: published phases of a day, for a file that does not say its state.
        opens: HH:MM when continuous trading begins: the totals of a day whose first snapshot is
            from before count from 0, those of another from its first snapshot.
    """

    def __init__(
        self, reading: Reading, levels: int, *, phases: Sequence[Phase] = (), opens: str = ""
    ) -> None:
        self._reading = reading
        self._levels = levels
        self._sessions = Sessions(phases) if phases else None
        self._opens_ns = Phase(opens, Trading.OPEN).ns if opens else 0
        self._day: int | None = None
        self._diff = SnapshotDiff(levels)
        self._before: tuple[float, float] | None = None
        self._state: int | None = None
        self._last_ts = 0

    def rows(self, snapshots: Snapshots) -> tuple[Events, Ints]:
        """Rows of the next snapshots, and the line each came from."""
        snapshots = self._in_order(snapshots)
        days = local_day(snapshots.ts_event)
        parts = [np.empty(0, EVENT)]
        for at in np.split(np.arange(len(days)), np.flatnonzero(np.diff(days)) + 1):
            if len(at):
                if int(days[at[0]]) != self._day:
                    self._begin(int(days[at[0]]), snapshots, int(at[0]))
                parts.append(self._of_day(snapshots.take(at)))
        rows = np.concatenate(parts)
        if self._sessions:
            rows = self._sessions.insert(rows)[0]
        if not len(rows):
            return rows, np.empty(0, np.int64)
        at = np.searchsorted(snapshots.ts_event, rows["ts_event"])  # a state's: the one after it
        return rows, snapshots.lines[np.minimum(at, len(days) - 1)]

    def finish(self) -> Iterator[Events]:
        """Rows that end the last day."""
        return iter(self._sessions.finish() if self._sessions else ())

    def _in_order(self, s: Snapshots) -> Snapshots:
        ts = s.ts_event
        reached = np.maximum.accumulate(np.concatenate([[self._last_ts], ts]))
        back = ts < reached[:-1]
        self._last_ts = int(reached[-1])
        if not back.any():
            return s
        if not self._reading.repair:
            at = int(back.argmax())
            late_ms = (int(reached[at]) - int(ts[at])) / 1e6
            raise OutOfOrder(
                f"{self._reading.name}: {self._reading.unit} {s.lines[at]}: the venue's time goes "
                f"back {late_ms:g} ms, want snapshots in order; with repair it is left out"
            )
        self._reading.count("snapshots out of order", int(np.count_nonzero(back)))
        return s.take(~back)

    def _begin(self, day: int, s: Snapshots, first: int) -> None:
        self._day = day
        self._diff = SnapshotDiff(self._levels)
        since = (int(s.ts_event[first]) + OFFSET_NS) % DAY_NS
        self._before = (0, 0) if since < self._opens_ns else None
        self._state = None

    def _of_day(self, s: Snapshots) -> Events:
        prints = self._prints(s)
        if s.bids is None or s.asks is None:
            rows = prints
        else:
            try:
                levels = self._diff.feed(s.ts_event, s.ts_recv, s.bids, s.asks)
            except DataError as error:
                raise DataError(f"{self._reading.name}: {error}") from None
            rows = with_prints(levels, prints)
        return rows if s.state is None else self._with_states(rows, s, s.state)

    def _prints(self, s: Snapshots) -> Events:
        turnover = np.zeros(len(s.lines)) if s.turnover_ticks is None else s.turnover_ticks
        falls = np.diff(s.volume_lots, prepend=s.volume_lots[0]) < 0
        self._reading.count("totals that fall", int(np.count_nonzero(falls)))
        try:
            rows = inferred_prints(
                s.ts_event,
                s.ts_recv,
                s.volume_lots,
                turnover,
                last_ticks=s.last_ticks,
                before=self._before,
            )
        except DataError as error:
            raise DataError(f"{self._reading.name}: {error}") from None
        self._before = (s.volume_lots[-1], turnover[-1])
        return rows

    def _with_states(self, rows: Events, s: Snapshots, state: Ints) -> Events:
        """A STATUS row before the first snapshot that shows a new state."""
        before = np.concatenate([[-1 if self._state is None else self._state], state[:-1]])
        at = np.flatnonzero(state != before)
        self._state = int(state[-1])
        new = np.zeros(len(at), EVENT)
        new["ts_event"], new["ts_recv"] = s.ts_event[at], s.ts_recv[at]
        new["kind"], new["ref_id"] = Kind.STATUS, state[at]
        new["flags"] = SEEN_BY_BOTH | Flag.LAST
        return np.asarray(np.insert(rows, np.searchsorted(rows["ts_event"], new["ts_event"]), new))


def in_ticks(turnover: NDArray[np.float64], spec: InstrumentSpec) -> NDArray[Any]:
    """Money traded so far as ticks * lots; whole numbers where it is a sum of whole ticks."""
    scaled = turnover / (spec.tick * spec.lot * spec.multiplier)
    whole = np.rint(scaled)
    if np.abs(scaled - whole).max(initial=0.0) < 0.01 and np.abs(whole).max(initial=0.0) < 2**53:
        return whole.astype(np.int64)
    return scaled


def levels_of(prices: Ints, sizes: Ints) -> Ints:
    """(n, levels, 2) of price and size; what has no price or no size is no level."""
    there = (prices > 0) & (sizes > 0)
    return np.stack([np.where(there, prices, 0), np.where(there, sizes, 0)], axis=-1)

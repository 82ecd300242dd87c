"""Trading states that files do not hold, from the sessions that a venue publishes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hft.adapters.china.clock import local_day, midnight
from hft.data.checks import Events
from hft.types import EVENT, SEEN_BY_BOTH, Flag, Kind, Trading

_FLAGS = SEEN_BY_BOTH | Flag.UNCERTAIN | Flag.LAST


class Phase(NamedTuple):
    """A state that begins at a time of the local day."""

    at: str
    """HH:MM."""
    state: Trading
    after_match: bool = False
    """It begins once an auction's matches, which are stamped a little later, are through."""

    @property
    def ns(self) -> int:
        """After midnight."""
        hour, minute = self.at.split(":")
        return (int(hour) * 60 + int(minute)) * 60_000_000_000


class Sessions:
    """Puts a STATUS row where a phase begins, marked UNCERTAIN: the day may have gone otherwise.

    Args:
        phases: of a day, in order; before the first one the venue is closed.
        clears: a day begins with an empty book: no order stays overnight.
    """

    def __init__(self, phases: Sequence[Phase], *, clears: bool = False) -> None:
        self._phases = phases
        self._clears = clears
        self._day: int | None = None
        self._next = 0
        self._last = (0, 0)  # stamps of the last row given out

    def insert(self, events: Events) -> tuple[Events, NDArray[np.int64]]:
        """Rows with the states between them, and which row of `events` each was; a state: -1.

        Args:
            events: the next rows, in order of `ts_event` and of `ts_recv`.
        """
        place: list[int] = []
        rows: list[Events] = []
        days = local_day(events["ts_event"])
        starts = np.flatnonzero(np.diff(days, prepend=-1)) if len(days) else np.empty(0, np.int64)
        for first, end in zip(starts.tolist(), [*starts[1:].tolist(), len(days)], strict=True):
            if int(days[first]) != self._day:
                added = [*self.finish(), *self._begin(int(days[first]), events[first])]
                place += [first] * len(added)
                rows += added
            self._within(events, first, end, place, rows)
            self._last = _stamps(events[end - 1])
        origin = np.insert(np.arange(len(events)), place, -1)
        return (np.insert(events, place, np.concatenate(rows)) if rows else events), origin

    def finish(self) -> list[Events]:
        """The last phase, if the day came as far as the one before it."""
        if self._day is None or self._next != len(self._phases) - 1:
            return []
        phase = self._phases[self._next]
        self._next += 1
        return [self._state(phase.state, midnight(self._day) + phase.ns, self._last)]

    def _begin(self, day: int, row: Events) -> list[Events]:
        self._day = day
        since = int(row["ts_event"]) - midnight(day)
        self._next = sum(phase.ns <= since for phase in self._phases)
        state = self._phases[self._next - 1].state if self._next else Trading.CLOSED
        self._last = _stamps(row)
        out = self._state(state, 0, self._last)
        if not self._clears:
            return [out]
        clear = out.copy()
        clear["kind"], clear["ref_id"], clear["flags"] = Kind.CLEAR, 0, SEEN_BY_BOTH
        return [clear, out]

    def _within(
        self, events: Events, first: int, end: int, place: list[int], rows: list[Events]
    ) -> None:
        ts = events["ts_event"][first:end]
        while self._next < len(self._phases):
            phase = self._phases[self._next]
            start = midnight(self._day or 0) + phase.ns
            at = first + int(np.searchsorted(ts, start, "left"))
            if phase.after_match:
                at += _matches(events[at:end])
            if at >= end:
                return
            if at:
                self._last = _stamps(events[at - 1])
            place.append(at)
            rows.append(self._state(phase.state, start, _stamps(events[at])))
            self._next += 1

    def _state(self, state: Trading, start: int, near: tuple[int, int]) -> Events:
        """A row at `start`, or after the last one; received as fast as the rows beside it.

        The receiver's clock may be far from the venue's, so `start` alone is no time of its.
        """
        row = np.zeros(1, EVENT)
        ts_event = max(start, self._last[0])
        row["ts_event"] = ts_event
        latency = min(near[1] - near[0], self._last[1] - self._last[0])
        row["ts_recv"] = max(ts_event + latency, self._last[1])
        row["kind"], row["ref_id"], row["flags"] = Kind.STATUS, state, _FLAGS
        return row


def _stamps(row: Events) -> tuple[int, int]:
    return int(row["ts_event"]), int(row["ts_recv"])


def _matches(events: Events) -> int:
    """How many of the first rows are an auction's matches."""
    other = (events["kind"] != Kind.EXECUTE) | (events["side"] != 0)
    return int(other.argmax()) if other.any() else len(events)

"""Rows into packets, and the rows that rebuild a book into snapshots."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hft.types import EVENT, Flag, Kind


class Part(NamedTuple):
    """Some rows with their lines and the keys that tell packets apart."""

    events: NDArray[Any]
    lines: NDArray[np.int64]
    keys: NDArray[Any]


class Snapshots:
    """Puts rows that rebuild the book between SNAPSHOT_BEGIN and SNAPSHOT_END."""

    def __init__(self) -> None:
        self._open: Part | None = None  # the last row, if it is of a snapshot

    def feed(self, part: Part, marked: NDArray[np.bool_]) -> Part:
        if not len(marked) or (self._open is None and not marked.any()):
            return part
        part.events["flags"][marked] |= np.uint16(Flag.RECOVERED)
        recv = part.events["ts_recv"]
        before = np.concatenate([[self._open is not None], marked[:-1]])
        first_recv = self._open.events["ts_recv"] if self._open else recv[:1]
        moved = recv != np.concatenate([first_recv, recv[:-1]])
        ends = np.flatnonzero(before & (~marked | moved))
        begins = np.flatnonzero(marked & (~before | moved))
        whole = part if self._open is None else _join(self._open, part)
        shift = len(whole.events) - len(part.events)
        place = np.concatenate([ends, begins])
        rows = np.concatenate([ends - 1, begins]) + shift
        extra = Part(whole.events[rows], whole.lines[rows], whole.keys[rows])
        extra.events["kind"] = [Kind.SNAPSHOT_END] * len(ends) + [Kind.SNAPSHOT_BEGIN] * len(begins)
        _blank(extra.events)
        self._open = Part(*(a[-1:].copy() for a in part)) if marked[-1] else None
        # Ends come first, so that at one place an end goes before a begin.
        return Part(*(np.insert(a, place, x) for a, x in zip(part, extra, strict=True)))

    def flush(self) -> Part | None:
        if self._open is None:
            return None
        self._open.events["kind"] = Kind.SNAPSHOT_END
        _blank(self._open.events)
        return self._open


def _blank(events: NDArray[Any]) -> None:
    for name in ("price", "qty", "order_id", "ref_id", "side"):
        events[name] = 0


def _join(a: Part, b: Part) -> Part:
    return Part(*(np.concatenate(pair) for pair in zip(a, b, strict=True)))


class Packets:
    """Sets LAST; keeps the rows of the newest packet back until it is known to be whole."""

    def __init__(self, by: str) -> None:
        self._by = by
        self._kept: Part | None = None

    def feed(self, part: Part) -> Part:
        if self._by == "row":
            # but a book that is half rebuilt is no packet
            rebuilt = part.events["flags"] & Flag.RECOVERED != 0
            ends = ~rebuilt | (part.events["kind"] == Kind.SNAPSHOT_END)
            part.events["flags"][ends] |= np.uint16(Flag.LAST)
            return part
        part = part if self._kept is None else _join(self._kept, part)
        if not len(part.events):
            return part
        ends = np.flatnonzero(self._changes(part))
        part.events["flags"][ends] |= np.uint16(Flag.LAST)
        cut = int(ends[-1]) + 1 if len(ends) else 0
        self._kept = Part(*(a[cut:] for a in part))
        return Part(*(a[:cut] for a in part))

    def flush(self, more: Part | None) -> Part:
        part = self._kept or Part(np.empty(0, EVENT), np.empty(0, np.int64), np.empty(0, np.int8))
        if more is not None:
            part = _join(part, more) if len(part.events) else more
        if len(part.events):
            part.events["flags"][-1] |= np.uint16(Flag.LAST)
        return part

    def _changes(self, part: Part) -> Any:
        if self._by != "time":
            return part.keys[1:] != part.keys[:-1]
        event, recv = part.events["ts_event"], part.events["ts_recv"]
        return (event[1:] != event[:-1]) | (recv[1:] != recv[:-1])

"""One instrument of one DBN file as a source of EVENT rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hft.adapters.databento.records import (
    LEVELS,
    MBO,
    MBP_1,
    MBP_10,
    STATUS,
    TBBO,
    TRADES,
    DbnFile,
    Run,
)
from hft.adapters.databento.rows import Levels, Orders, Prints, packet_ends
from hft.adapters.databento.sessions import Sessions
from hft.data.importing import NO_DEPTH, Batch
from hft.errors import DataError
from hft.types import InstrumentSpec

HELD_RECORDS = 1 << 20  # of a packet without an end; then it is taken to end


class Interval(NamedTuple):
    """When an instrument id stands for a symbol: start <= ts_recv < end."""

    instrument: int
    start: int
    end: int


class Part(NamedTuple):
    """What of a file is one source."""

    publisher: int
    intervals: list[Interval]
    rtype: int
    """Of its records; there may be others of the same instrument."""
    before_trades: bool
    """Levels come with trades alone (TBBO)."""
    by_flag: bool
    """Records say where a packet ends."""
    left_out: int = 0
    """Records of other schemas."""


_RECEIVED = "ts_recv is when Databento received it, not we"
_CANNOT_TELL = {
    MBO: (_RECEIVED,),
    MBP_10: (_RECEIVED, "levels beyond the tenth, and whose orders they are"),
    MBP_1: (_RECEIVED, NO_DEPTH),
    TRADES: (_RECEIVED, "the book: there are prints alone"),
    STATUS: (_RECEIVED, "book and prints: there are trading states alone"),
    TBBO: (_RECEIVED, NO_DEPTH, "the book between trades: it is shown as it was before each"),
}


class DbnSource:
    """One instrument of one file.

    Args:
        file: the file.
        spec: the instrument.
        part: which records.
        sessions: makes what puts changes of the trading state between packets.
        inferred: facts that nobody gave.
    """

    reorders = True

    def __init__(
        self,
        file: DbnFile,
        spec: InstrumentSpec,
        part: Part,
        sessions: Any,
        inferred: list[str],
    ) -> None:
        self.name = f"{file.path} {spec.symbol}"
        self.spec = spec
        self.counts: dict[str, int] = {}
        self.inferred = inferred
        told = TBBO if part.before_trades else part.rtype
        self.cannot_tell = _CANNOT_TELL[told]
        self._file = file
        self._part = part
        self._sessions = sessions

    def batches(self) -> Iterator[Batch]:
        """Rows in file order, in batches that end with a packet."""
        self.counts = {}
        rows, sessions = self._rows(), self._sessions()
        held: list[tuple[Any, NDArray[np.int64]]] = []
        for run in self._file.runs():
            mine = self._mine(run)
            if len(mine):
                held.append((_chosen(run.records, mine), run.number + mine))
                records, numbers = _joined(held)
                ends = packet_ends(records, by_flag=self._part.by_flag)
                whole = len(ends) - int(ends[::-1].argmax()) if ends.any() else 0
                if not whole and len(records) > HELD_RECORDS:
                    whole = len(records)
                held = [(records[whole:], numbers[whole:])]
                if whole:
                    yield self._batch(rows, sessions, records[:whole], numbers[:whole], run.done)
        if held and len(held[0][0]):
            yield self._batch(rows, sessions, *held[0], 1.0)
        if self._part.left_out:
            self.counts["records of other schemas left out"] = self._part.left_out
        if self._file.damaged:
            self.counts["files damaged at the end"] = 1
        yield Batch(sessions.rest(), done=1.0)

    def _rows(self) -> Orders | Levels | Prints:
        rtype = self._part.rtype
        if rtype == MBO:
            return Orders(self.spec, self.counts)
        if rtype in LEVELS:
            return Levels(self.spec, self.counts, LEVELS[rtype])
        return Prints(self.spec, self.counts)

    def _mine(self, run: Run) -> NDArray[np.int64]:
        """Records of the source, by their place in the run."""
        if run.rtype != self._part.rtype or run.rtype == STATUS:  # states come from the survey
            return np.empty(0, np.int64)
        records = run.records
        ids, recv = records["instrument_id"], records["ts_recv"]
        chosen = np.zeros(len(records), bool)
        for instrument, start, end in self._part.intervals:
            if start <= recv[-1] and recv[0] < end:
                chosen |= (ids == instrument) & (recv >= start) & (recv < end)
        return np.flatnonzero(chosen & (records["publisher_id"] == self._part.publisher))

    def _batch(
        self,
        rows: Orders | Levels | Prints,
        sessions: Sessions,
        records: Any,
        numbers: NDArray[np.int64],
        done: float,
    ) -> Batch:
        ends = packet_ends(records, by_flag=self._part.by_flag)
        packets = np.cumsum(ends) - ends
        try:
            return Batch(sessions.feed(rows.rows(records, numbers, packets)), done=done)
        except DataError as error:
            raise DataError(f"{self._file.path}: {error}") from None


def _chosen(records: Any, which: NDArray[np.int64]) -> Any:
    """NumPy moves records field by field unless it does not see the fields."""
    if len(which) == len(records):
        return records
    return records.view(np.dtype((np.void, records.itemsize)))[which].view(records.dtype)


def _joined(held: list[tuple[Any, NDArray[np.int64]]]) -> tuple[Any, NDArray[np.int64]]:
    if len(held) == 1:
        return held[0]
    records, numbers = zip(*held, strict=True)
    if len({part.dtype for part in records}) > 1:  # a capture that was joined of two kinds
        return np.concatenate(records), np.concatenate(numbers)
    raw = np.concatenate([part.view(np.uint8) for part in records])
    return raw.view(records[0].dtype), np.concatenate(numbers)

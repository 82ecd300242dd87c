"""Shanghai files as sources of EVENT rows, one an instrument."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from hft.adapters.china.sessions import Phase, Sessions
from hft.adapters.shanghai.layouts import BOTH, Layout, symbol_of
from hft.adapters.shanghai.merge import EMPTY, Part, Stream, merged
from hft.data.blocks import Place
from hft.data.checks import Events
from hft.data.importing import Batch
from hft.data.text import TextFile
from hft.data.text_blocks import TextReader
from hft.types import Flag, InstrumentSpec, Kind, Trading

SESSIONS = (
    Phase("09:15", Trading.AUCTION),
    Phase("09:25", Trading.HALT, after_match=True),
    Phase("09:30", Trading.OPEN),
    Phase("11:30", Trading.HALT),
    Phase("13:00", Trading.OPEN),
    Phase("14:57", Trading.AUCTION),
    Phase("15:00", Trading.CLOSED, after_match=True),
)
"""Of shares, since the closing auction came in 2018."""

_LAST = np.uint16(Flag.LAST)


class Found(NamedTuple):
    """A file of ours and what it holds."""

    file: TextFile
    layout: Layout
    day_ns: int
    """When its day begins; 0: the rows say it."""
    blocks: dict[str, set[Place]]
    """Blocks that hold a symbol, by the file's word for it."""


class ShanghaiFiles:
    """Order and trade files of one instrument, as one stream in the venue's sequence.

    Args:
        spec: the instrument.
        found: files that hold it.
        repair: leave out rows that cannot be read, and end where a file is cut short; counted.
        inferred: facts that nobody gave.
    """

    reorders = False

    def __init__(
        self, spec: InstrumentSpec, found: list[Found], *, repair: bool, inferred: list[str]
    ) -> None:
        self.name = f"{spec.symbol} of " + " ".join(f.file.name for f in found)
        self.spec = spec
        self.counts: dict[str, int] = {}
        self.inferred = inferred
        self.cannot_tell = (
            "what an order asked for that was filled at once: only its trades are published",
            "when trading phases changed: STATUS rows are the published sessions",
            "when we would have received a row: ts_recv is ts_event"
            if all(f.layout is BOTH for f in found)
            else "our own receive time: ts_recv is the recorder's, raised to that of the row "
            "before in the venue's sequence",
        )
        self._found = found
        self._repair = repair

    def batches(self) -> Iterator[Batch]:
        """Rows in the venue's sequence, day after day; a batch ends with a packet."""
        self.counts.clear()
        sessions = Sessions(SESSIONS, clears=True)
        rest = EMPTY
        for day_ns in sorted({f.day_ns for f in self._found}):
            streams = [self._stream(f) for f in self._found if f.day_ns == day_ns]
            for part in merged(streams):
                rows = _joined(rest, part)
                self._raise_received(rows.events)
                ends = _mark_packets(rows.events)
                cut = int(ends[-1]) + 1 if len(ends) else 0
                rest = _after(rows, cut)
                if cut:
                    done = min(stream.done for stream in streams)
                    yield _batch(sessions, rows.events[:cut], rows.lines[:cut], done)
        if len(rest.keys):
            rest.events["flags"][-1] |= _LAST
            yield _batch(sessions, rest.events, rest.lines, 1.0)
        if closing := sessions.finish():
            yield Batch(np.concatenate(closing), done=1.0)

    def _stream(self, found: Found) -> Stream:
        reader = TextReader(
            found.file, found.layout.columns(), repair=self._repair, counts=self.counts
        )
        words = {word for word in found.blocks if symbol_of(word) == self.spec.symbol}
        only = set().union(*(found.blocks[word] for word in words))
        return Stream(reader, found.layout, self.spec, words, found.day_ns, only)

    def _raise_received(self, events: Events) -> None:
        """A row is applied once all before it are there, whichever connection they came by."""
        received = events["ts_recv"]
        risen = np.maximum.accumulate(received)
        raised = int(np.count_nonzero(risen != received))
        if raised:
            self.counts["receive times raised"] = (
                self.counts.get("receive times raised", 0) + raised
            )
            events["ts_recv"] = risen


def _joined(rest: Part, part: Part) -> Part:
    if not len(rest.keys):
        return part
    events, lines, keys = (np.concatenate(pair) for pair in zip(rest, part, strict=True))
    return Part(events, lines, keys)


def _mark_packets(events: Events) -> Any:
    """Set LAST on rows that end a transaction, and say which; whether the last one does is open.

    One incoming order is one transaction: its trades, then what is left of it. Stamps are of 10 ms
    and would throw many into one.
    """
    here, there = events[:-1], events[1:]
    trade = (here["kind"] == Kind.EXECUTE) & (here["ts_event"] == there["ts_event"])
    match = here["side"] == 0
    both_trade = there["kind"] == Kind.EXECUTE
    taker = np.where(there["kind"] == Kind.ADD, there["order_id"], there["ref_id"])
    goes_on = (here["ref_id"] == taker) & (both_trade | (there["kind"] == Kind.ADD))
    same = trade & np.where(match, both_trade & (there["side"] == 0), goes_on)
    same &= here["ts_recv"] == there["ts_recv"]
    ends = np.flatnonzero(~same)
    events["flags"][ends] |= _LAST
    return ends


def _after(rows: Part, cut: int) -> Part:
    return Part(rows.events[cut:].copy(), rows.lines[cut:], rows.keys[cut:])


def _batch(sessions: Sessions, events: Events, lines: Any, done: float) -> Batch:
    out, origin = sessions.insert(events)
    return Batch(out, lines[_filled(origin)], done)


def _filled(origin: Any) -> Any:
    """The row itself, or for a state the one after it."""
    at = np.where(origin < 0, len(origin), origin)
    nearest = np.minimum.accumulate(at[::-1])[::-1]
    return np.minimum(nearest, origin.max())

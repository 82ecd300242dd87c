"""Order and trade files of one instrument as one stream, in order of the venue's sequence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hft.adapters.china.clock import local_day
from hft.adapters.shanghai.layouts import Layout, events_of
from hft.data.arrow_columns import words_of
from hft.data.blocks import Block, Place
from hft.data.checks import Events
from hft.data.text_blocks import TextReader
from hft.errors import OutOfOrder, SequenceGap
from hft.types import EVENT, InstrumentSpec

Ints = NDArray[np.int64]

_DAY_SHIFT = 44  # bits of a key that are left to the sequence of one day
_END = np.iinfo(np.int64).max


class Part(NamedTuple):
    """Rows with the line each came from, and the key they are merged by: day, then sequence."""

    events: Events
    lines: Ints
    keys: Ints


EMPTY = Part(np.empty(0, EVENT), np.empty(0, np.int64), np.empty(0, np.int64))


class Stream:
    """One file's rows of one instrument.

    Args:
        reader: the file.
        layout: its columns.
        spec: the instrument.
        words: how the file writes its symbol.
        day_ns: when the day begins, where the file holds no date.
        only: blocks that hold the instrument; None: not known.
    """

    def __init__(
        self,
        reader: TextReader,
        layout: Layout,
        spec: InstrumentSpec,
        words: set[str],
        day_ns: int,
        only: set[Place] | None,
    ) -> None:
        self.reader = reader
        self.layout = layout
        self.done = 0.0
        self._spec = spec
        self._words = words
        self._day_ns = day_ns
        self._only = only

    def parts(self) -> Iterator[Part]:
        """Rows in file order, which is that of the sequence."""
        last = -1
        for block in self.reader.blocks(self._only):
            self.done = block.done
            part = self._part(block)
            if len(part.keys):
                self._want_order(part, last)
                last = int(part.keys[-1])
                yield part

    def _part(self, block: Block) -> Part:
        words, at = words_of(block.column(self.layout.symbol))
        mine = np.array([word in self._words for word in words], bool)[at]
        block = block.filter(mine)
        if not len(block):
            return EMPTY
        events = events_of(block, self.layout, self._spec, self._day_ns)
        block.count_bad()
        good = block.good
        events = events[good]
        self.reader.count(self.layout.name, len(events))
        keys = (local_day(events["ts_event"]) << _DAY_SHIFT) + events["seq"]
        return Part(events, block.lines[good], keys)

    def _want_order(self, part: Part, last: int) -> None:
        back = np.diff(part.keys, prepend=last) <= 0
        if back.any():
            at = int(back.argmax())
            before = int(part.keys[at - 1]) if at else last
            seq, previous = int(part.events["seq"][at]), before & ((1 << _DAY_SHIFT) - 1)
            said = "comes twice" if seq == previous else f"comes after {previous}"
            raise OutOfOrder(
                f"{self.reader.name}: line {part.lines[at]}: {self.layout.seq} {seq} {said}, "
                "want it to rise within an instrument"
            )


def merged(streams: list[Stream]) -> Iterator[Part]:
    """All streams by key. Where one broke off, all end there: what it lost would be missed."""
    feeds = [stream.parts() for stream in streams]
    held = [EMPTY] * len(streams)
    reached = [-1] * len(streams)  # no later row of the stream has this key or a lower one
    while True:
        for index, stream in enumerate(streams):
            if len(held[index].keys) or reached[index] == _END:
                continue
            held[index] = next(feeds[index], EMPTY)
            if len(held[index].keys):
                reached[index] = int(held[index].keys[-1])
            elif not stream.reader.damaged:
                reached[index] = _END
        cuts = [int(np.searchsorted(part.keys, min(reached), "right")) for part in held]
        if not any(cuts):
            break
        taken = [_rows(part, slice(cut)) for part, cut in zip(held, cuts, strict=True)]
        held = [_rows(part, slice(cut, None)) for part, cut in zip(held, cuts, strict=True)]
        yield _in_order(taken, streams)
    if any(len(part.keys) for part in held):
        streams[0].reader.count("files left where another was cut short")


def _rows(part: Part, rows: slice) -> Part:
    return Part(part.events[rows], part.lines[rows], part.keys[rows])


def _in_order(parts: list[Part], streams: list[Stream]) -> Part:
    events, lines, keys = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    same = np.flatnonzero(np.diff(keys) == 0)
    if len(same):
        seq = int(events["seq"][order[same[0]]])
        names = " and ".join(stream.reader.name for stream in streams)
        raise SequenceGap(
            f"{names}: {streams[0].layout.seq} {seq} is in both, want each number once: are they "
            "two copies of one file?"
        )
    return Part(events[order], lines[order], keys)

"""LOBSTER messages as EVENT rows."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from hft.adapters.lobster.books import BookFile
from hft.adapters.lobster.view import (
    ADD,
    DELETE,
    PRICE_UNIT,
    Messages,
    View,
    level_key,
)
from hft.data.checks import Events
from hft.data.csv_blocks import Block, CsvFile, count
from hft.data.exact import on_grid
from hft.data.importing import Batch
from hft.data.packets import Packets, Part
from hft.errors import ConfigError, DataError
from hft.types import EVENT, SEEN_BY_BOTH, InstrumentSpec, Kind, Trading

NAMES = ("time", "type", "order_id", "size", "price", "side")

_HIDDEN, _CROSS, _HALT = 5, 6, 7
_KIND_OF = np.array(
    [
        0,
        Kind.ADD,
        Kind.CANCEL,
        Kind.CANCEL,
        Kind.EXECUTE,
        Kind.TRADE,
        Kind.TRADE,
        Kind.STATUS,
    ],
    np.uint8,
)
# While quotes resume, orders rest and nothing trades until the halt's cross.
_STATE_OF = {-1: Trading.HALT, 0: Trading.AUCTION, 1: Trading.OPEN}
_KINDS: dict[str, Any] = dict.fromkeys(NAMES, "int") | {"time": "float"}


_CANNOT_TELL = (
    "no receive time: ts_recv is ts_event",
    "no aggressor's order id",
    "orders that rested before the file began, or whose level came into view later, are known by "
    "level only, as one order a level",
    "hidden and cross prints inside the tick are rounded to it",
)
_FOLLOWED = (
    "what happens out of view: our order at a price that leaves and comes back is first there"
)
_NOT_FOLLOWED = (
    "orders that leave the file's levels go on being shown: give the order book file too"
)


class LobsterFile:
    """One message file as a source of EVENT rows.

    Args:
        path: the messages, plain or packed.
        spec: the instrument.
        date: trading day, `YYYY-MM-DD` in New York.
        book: order book file; None: the book starts empty.
        follow: the order book file has a row a message; else its first row alone is taken.
        repair: leave out lines that cannot be read; counted.
    """

    reorders = False

    def __init__(
        self,
        path: str | Path,
        spec: InstrumentSpec,
        date: str,
        book: Path | None = None,
        *,
        follow: bool = False,
        repair: bool = False,
    ) -> None:
        self.name = str(path)
        self.spec = spec
        self.counts: dict[str, int] = {}
        self._file = CsvFile(path, NAMES, repair=repair)
        self._midnight_ns = _midnight_ns(date, self.name)
        self._book = None if book is None else BookFile(book, follow=follow, repair=repair)
        self._repair = repair
        what = "levels in view" if follow else "opening book"
        self.inferred = [] if book is None else [f"{what} from {book}"]
        self.cannot_tell = (*_CANNOT_TELL, _FOLLOWED if follow else _NOT_FOLLOWED)

    def batches(self) -> Iterator[Batch]:
        """Rows in file order; a batch ends with a packet."""
        self.counts = {"messages": 0}
        view: View | None = None
        book = None if self._book is None else self._book.rows(self.counts)
        packets = Packets("time")
        for block in self._file.blocks(_KINDS, self.counts):
            m = self._sound(block)
            count(self.counts, "messages", len(m.lines))
            if not len(m.lines):
                continue
            events, lines = self._events(m), m.lines
            if self._book is not None and book is not None:
                first = np.empty(0, EVENT)
                if view is None:
                    view = View(self._book.before(m), self.spec.tick)
                    first = view.opening(events[0])
                worst = book.worst(lines - self._file.first_line)
                events, lines = view.feed(_messages(m, events), worst)
                events = np.concatenate([first, events])
                lines = np.concatenate([np.full(len(first), lines[0]), lines])
            part = packets.feed(Part(events, lines, np.zeros(len(lines), np.int8)))
            if len(part.events):
                yield Batch(part.events, part.lines, block.done)
        part = packets.flush(None)
        if len(part.events):
            yield Batch(part.events, part.lines, 1.0)
        if view is not None:
            self.counts |= view.counts()

    def _sound(self, block: Block) -> Block:
        """Messages whose type, side and size can be; the first other one is refused."""
        c = block.columns
        kind = c["type"]
        halt, cross = kind == _HALT, kind == _CROSS
        wrong = {
            "type": (kind < ADD) | (kind > _HALT),
            "side": (np.abs(c["side"]) != 1) & ~halt & ~cross,
            "size": (c["size"] <= 0) & ~halt,
            "price": np.where(halt, np.abs(c["price"]) > 1, c["price"] <= 0),
            "time": ~((c["time"] >= 0) & (c["time"] < 86_400)),
        }
        bad = np.logical_or.reduce(list(wrong.values()))
        if not bad.any():
            return block
        if not self._repair:
            at = int(bad.argmax())
            name = next(name for name, mask in wrong.items() if mask[at])
            raise DataError(
                f"{self.name}: line {block.lines[at]}: {name} is {c[name][at]:g}, want "
                f"{_WANTED[name]}"
            )
        count(self.counts, "messages impossible", int(np.count_nonzero(bad)))
        return _take(block, ~bad)

    def _events(self, m: Block) -> Events:
        c = m.columns
        kind = c["type"]
        halt = kind == _HALT
        events = np.zeros(len(kind), EVENT)
        events["ts_event"] = self._midnight_ns + np.rint(c["time"] * 1e9).astype(np.int64)
        events["ts_recv"] = events["ts_event"]
        events["kind"] = _KIND_OF[kind]
        events["flags"] = SEEN_BY_BOTH
        resting = np.where(kind < _HIDDEN, 1, np.where(kind == _HIDDEN, -1, 0))
        events["side"] = resting * np.sign(c["side"])  # a print has its aggressor's side
        events["order_id"] = np.where(kind < _HIDDEN, c["order_id"], 0)
        events["qty"] = np.where(halt | (kind == DELETE), 0, c["size"])
        events["price"], rounded = on_grid(
            np.where(halt, 0, c["price"]) / PRICE_UNIT,
            self.spec.tick,
            "price",
            loose=np.asarray(kind >= _HIDDEN),
            rows=m.lines,
            where="line",
            source=self.name,
        )
        count(self.counts, "prints rounded", rounded)
        for code, state in _STATE_OF.items():
            events["ref_id"][halt & (c["price"] == code)] = state
        return events


def _messages(m: Block, events: Events) -> Messages:
    c = m.columns
    return Messages(
        c["type"], c["order_id"], c["size"], level_key(c["price"], c["side"]), m.lines, events
    )


_WANTED = {
    "type": "1 to 7",
    "side": "1 (bid) or -1 (ask)",
    "size": "above 0",
    "price": "above 0 in 1/10000 dollar, or -1, 0, 1 of a halt",
    "time": "seconds after midnight, 0 to 86400",
}


def _take(block: Block, mask: NDArray[np.bool_]) -> Block:
    columns = {name: values[mask] for name, values in block.columns.items()}
    return Block(columns, block.lines[mask], block.done)


def _midnight_ns(date: str, name: str) -> int:
    try:
        day = datetime.fromisoformat(date).replace(tzinfo=ZoneInfo("America/New_York"))
    except ValueError as error:
        raise ConfigError(f"{name}: {date!r} in the name is no date: {error}") from None
    return int(day.timestamp()) * 1_000_000_000

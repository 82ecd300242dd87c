"""Lines of each type of file as EVENT rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hft.data.csv_blocks import Block, CsvFile
from hft.data.csv_blocks import Kind as Column
from hft.data.exact import on_grid
from hft.data.packets import Part, Snapshots
from hft.data.snapshots import SnapshotDiff
from hft.errors import SchemaError
from hft.types import EVENT, SEEN_BY_BOTH, InstrumentSpec, Kind

Ints = NDArray[np.int64]

TIMES: dict[str, Column] = {"timestamp": "int", "local_timestamp": "int"}

SAMPLE = 20_000
"""Lines that show how numbers are written."""

_MARKED: Column = {"true": 1, "false": 0}
_SIDES: Column = {"bid": 1, "ask": -1}
_TAKERS: Column = {"buy": 1, "sell": -1, "unknown": 0, "": 0}
_QUOTES = ("ask_amount", "ask_price", "bid_price", "bid_amount")


class Rows:
    """Turns the columns of one type of file into rows; keeps what later lines need of earlier."""

    def __init__(self, spec: InstrumentSpec, *, repair: bool) -> None:
        self._spec = spec
        self._repair = repair
        self.rounded = 0

    def part(self, block: Block) -> Part:
        """Rows of the next lines, LAST not set."""
        raise NotImplementedError

    def rest(self) -> Part | None:
        """Rows that only the end of the file calls for."""
        return None

    def _ticks(self, values: NDArray[np.float64], lines: Ints, *, loose: bool = False) -> Ints:
        where = np.ones(len(values), bool) if loose else None
        ticks, rounded = on_grid(
            values, self._spec.tick, "price", loose=where, rows=lines, where="line"
        )
        self.rounded += rounded
        return ticks

    def _lots(self, values: NDArray[np.float64], lines: Ints) -> Ints:
        return on_grid(values, self._spec.lot, "amount", rows=lines, where="line")[0]


def _blank(block: Block) -> Any:
    events = np.zeros(len(block.lines), EVENT)
    events["ts_event"] = block.columns["timestamp"] * 1000
    events["ts_recv"] = block.columns["local_timestamp"] * 1000
    events["flags"] = SEEN_BY_BOTH
    return events


def _part(events: Any, lines: Ints) -> Part:
    return Part(events, lines, np.zeros(len(lines), np.int8))


class Trades(Rows):
    def part(self, block: Block) -> Part:
        c, events = block.columns, _blank(block)
        events["kind"], events["side"] = Kind.TRADE, c["side"]
        events["price"] = self._ticks(c["price"], block.lines, loose=self._repair)
        events["qty"] = self._lots(c["amount"], block.lines)
        if "id" in c:
            events["seq"] = c["id"]
        return _part(events, block.lines)


class Levels(Rows):
    def __init__(self, spec: InstrumentSpec, *, repair: bool) -> None:
        super().__init__(spec, repair=repair)
        self._snapshots = Snapshots()

    def part(self, block: Block) -> Part:
        c, events = block.columns, _blank(block)
        events["kind"], events["side"] = Kind.LEVEL, c["side"]
        events["price"] = self._ticks(c["price"], block.lines)
        events["qty"] = self._lots(c["amount"], block.lines)
        return self._snapshots.feed(_part(events, block.lines), c["is_snapshot"] == 1)

    def rest(self) -> Part | None:
        return self._snapshots.flush()


class Depth(Rows):
    """The best levels after each change; level by level, ask and bid."""

    def __init__(self, spec: InstrumentSpec, *, repair: bool, levels: int) -> None:
        super().__init__(spec, repair=repair)
        self.levels = levels
        self._diff = SnapshotDiff(levels)

    def part(self, block: Block) -> Part:
        ts_event, ts_recv = (block.columns[name] * 1000 for name in TIMES)
        bids, asks = (self._side(block, side) for side in ("bid", "ask"))
        events = self._diff.feed(ts_event, ts_recv, bids, asks, seq=block.lines)
        lines = events["seq"].copy()
        events["seq"] = 0
        return _part(events, lines)

    def _side(self, block: Block, side: str) -> Ints:
        columns = [
            [block.columns[self._column(side, level, what)] for level in range(self.levels)]
            for what in ("price", "amount")
        ]
        price, amount = (np.stack(values, axis=1).ravel() for values in columns)
        there, lines = np.isfinite(price) & np.isfinite(amount), np.repeat(block.lines, self.levels)
        ticks = self._ticks(np.where(there, price, 0.0), lines)
        lots = self._lots(np.where(there, amount, 0.0), lines)
        return np.stack([ticks, lots], axis=1).reshape(-1, self.levels, 2)

    @staticmethod
    def _column(side: str, level: int, what: str) -> str:
        return f"{side}s[{level}].{what}"


class Quotes(Depth):
    """The best of both sides: depth of one level."""

    def __init__(self, spec: InstrumentSpec, *, repair: bool) -> None:
        super().__init__(spec, repair=repair, levels=1)

    @staticmethod
    def _column(side: str, level: int, what: str) -> str:
        return f"{side}_{what}"


class FileType(NamedTuple):
    """What a file of one type holds."""

    name: str
    kinds: dict[str, Column]
    """Columns that are read."""
    prices: list[str]
    amounts: list[str]
    rows: Callable[..., Rows]
    """Called with the spec and `repair`."""


def file_type(file: CsvFile) -> FileType:
    """What the file's header line says it is.

    Raises:
        SchemaError: none of the types that are read.
    """
    names = set(file.header)
    side: dict[str, Column] = {"price": "float", "amount": "float"}
    if {"is_snapshot", "side", *side} <= names:
        kinds = TIMES | {"is_snapshot": _MARKED, "side": _SIDES} | side
        return FileType("incremental_book_L2", kinds, ["price"], ["amount"], Levels)
    if {"side", *side} <= names:
        kinds = TIMES | {"side": _TAKERS} | side
        ids = file.sample(["id"], SAMPLE)["id"].words if "id" in names else []
        if ids and all(text.isdigit() and len(text) < 19 for text in ids):
            kinds["id"] = "int"
        return FileType("trades", kinds, ["price"], ["amount"], Trades)
    if set(_QUOTES) <= names:
        prices, amounts = ["ask_price", "bid_price"], ["ask_amount", "bid_amount"]
        return FileType("quotes", TIMES | dict.fromkeys(_QUOTES, "maybe"), prices, amounts, Quotes)
    levels = 0
    while f"asks[{levels}].price" in names:
        levels += 1
    if levels:
        return _depth(levels)
    raise SchemaError(
        f"{file.path}: columns {file.header} are of no type that is read; want "
        "incremental_book_L2, trades, quotes, book_snapshot_5 or book_snapshot_25"
    )


def _depth(levels: int) -> FileType:
    names = [f"{side}[{level}]" for level in range(levels) for side in ("asks", "bids")]
    prices, amounts = ([f"{name}.{what}" for name in names] for what in ("price", "amount"))
    kinds = TIMES | dict.fromkeys([*prices, *amounts], "maybe")
    return FileType("book_snapshot", kinds, prices, amounts, partial(Depth, levels=levels))

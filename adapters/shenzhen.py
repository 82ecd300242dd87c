"""Shenzhen (SZSE) 10-level snapshots every 3 s: MDStockRecord Parquet, and csv of the same columns.

A vendor's record of the venue's snapshots, one row each: `MDDate`, `MDTime`, `TradingPhaseCode`,
ten prices and sizes a side, `LastPx`, and totals of the day. Parquet has a receive time, csv has
none. The queue of the first level (`Buy1OrderDetail`) is not used. STATUS rows follow the phase
that each snapshot is marked with. docs/formats-china.md has the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hft.adapters.china import inferred
from hft.adapters.china.clock import (
    Ints,
    digits_ns,
    number_dates,
    read_dates,
    read_digits,
    read_times,
)
from hft.adapters.china.snapshots import (
    CANNOT_TELL,
    NO_RECEIVE_TIME,
    SnapshotFeed,
    Snapshots,
    in_ticks,
    levels_of,
)
from hft.data.arrow_columns import Read, integers, words_of
from hft.data.blocks import Block, Place
from hft.data.importing import Batch
from hft.data.parquet_blocks import ParquetReader
from hft.data.parquet_file import open_parquet
from hft.data.sources import Request
from hft.data.text import TextFile, text_files
from hft.data.text_blocks import TextReader, names_in
from hft.errors import ConfigError, SchemaError
from hft.types import InstrumentSpec, Trading

LEVELS = 10

_PHASES = {
    "0": Trading.CLOSED,  # before the day begins
    "1": Trading.AUCTION,
    "2": Trading.HALT,  # between the opening auction and continuous trading
    "3": Trading.OPEN,
    "4": Trading.HALT,  # noon
    "5": Trading.AUCTION,
    "6": Trading.CLOSED,
    "7": Trading.CLOSED,  # trading at the closing price
    "8": Trading.HALT,  # suspended
    "9": Trading.HALT,  # interrupted after a large move
}
_VENUES = {"SZ": "SZSE", "SH": "SSE"}
_TICKS = {"0": 0.01, "2": 0.01, "3": 0.01, "6": 0.01, "1": 0.001, "5": 0.001}
"""Price step by the first digit of a number: shares, funds."""


class Layout(NamedTuple):
    """Column names that differ."""

    symbol: str
    received: str
    price: str
    size: str
    sides: tuple[str, str]

    def levels(self, side: int, pattern: str) -> list[str]:
        """Columns of one side, best first."""
        return [pattern.format(self.sides[side], n) for n in range(1, LEVELS + 1)]

    def columns(self) -> list[str]:
        """Those that are read."""
        names = [self.symbol, "MDDate", "MDTime", "TradingPhaseCode", "LastPx"]
        names += [
            "TotalVolumeTrade",
            "TotalValueTrade",
            *([self.received] if self.received else []),
        ]
        for side in (0, 1):
            names += self.levels(side, self.price) + self.levels(side, self.size)
        return names


PARQUET = Layout(
    "HTSCSecurityID", "ReceiveDateTime", "{0}{1}Price", "{0}{1}OrderQty", ("Buy", "Sell")
)
CSV = Layout("SecurityID", "", "{0}Price{1}", "{0}OrderQty{1}", ("Buy", "Sell"))


class Found(NamedTuple):
    """A file, and which of its blocks hold each symbol."""

    file: Path | TextFile
    blocks: dict[str, set[Place]]

    @property
    def layout(self) -> Layout:
        """Its columns."""
        return CSV if isinstance(self.file, TextFile) else PARQUET

    def reader(
        self, wanted: list[str], *, repair: bool, counts: dict[str, int] | None = None
    ) -> TextReader | ParquetReader:
        """To read some of its columns."""
        if isinstance(self.file, TextFile):
            return TextReader(self.file, wanted, repair=repair, counts=counts)
        return ParquetReader(self.file, wanted, repair=repair, counts=counts)


def open_files(request: Request) -> list[ShenzhenFile]:
    """One source an instrument and file; all instruments, unless some are asked for."""
    found = [one for path in request.paths for one in _look_into(path)]
    held = {word for one in found for word in one.blocks}
    for symbol in request.symbols():
        if not any(_is(word, symbol) for word in held):
            raise ConfigError(f"no row of {symbol}; the files hold {', '.join(sorted(held))}")
    out = []
    for one in found:
        for word in one.blocks:
            if not request.symbols() or any(_is(word, s) for s in request.symbols()):
                out.append(_source(request, one, word))
    return out


def _is(word: str, symbol: str) -> bool:
    return symbol in (word, word.partition(".")[0])


def _source(request: Request, found: Found, word: str) -> ShenzhenFile:
    number, _, exchange = word.partition(".")
    known: dict[str, Any] = {"symbol": number, "lot": 1.0}
    known["currency"] = "HKD" if number.startswith("200") else "CNY"
    if exchange in _VENUES:
        known["venue"] = _VENUES[exchange]
    if number[:1] in _TICKS:
        known["tick"] = _TICKS[number[:1]]
    spec = request.spec(**known)
    facts = inferred(request, spec, "tick", "lot")
    return ShenzhenFile(found, word, spec, repair=request.repair, inferred=facts)


def _look_into(path: Path) -> Iterator[Found]:
    """The files of a path, with the symbols in them; damage is left for the import to find."""
    with path.open("rb") as raw:
        packed = raw.read(4) == b"PAR1"
    files: list[Path | TextFile] = [path] if packed else list(text_files(path))
    for file in files:
        found = Found(file, {})
        _want_columns(file, found.layout)
        for block in found.reader([found.layout.symbol], repair=True).blocks():
            for word in words_of(block.column(found.layout.symbol))[0]:
                found.blocks.setdefault(word, set()).add(block.place)
        yield found


def _want_columns(file: Path | TextFile, layout: Layout) -> None:
    if isinstance(file, TextFile):
        name, names = file.name, names_in(file)
    else:
        with open_parquet(file) as opened:
            name, names = str(file), opened.schema_arrow.names
    missing = [column for column in layout.columns() if column not in names]
    if missing:
        raise SchemaError(
            f"{name}: no column {missing[0]!r}, want the snapshots of docs/formats-china.md; it "
            f"has {', '.join(names[:12])} …"
        )


class ShenzhenFile:
    """Snapshots of one instrument in one file.

    Args:
        found: the file.
        word: how it writes the symbol.
        spec: the instrument.
        repair: leave out rows that cannot be read or go back in time; counted.
        inferred: facts that nobody gave.
    """

    reorders = False

    def __init__(
        self,
        found: Found,
        word: str,
        spec: InstrumentSpec,
        *,
        repair: bool,
        inferred: list[str],
    ) -> None:
        self.name = f"{word} of {found.reader([], repair=repair).name}"
        self.spec = spec
        self.counts: dict[str, int] = {}
        self.inferred = inferred
        none = () if found.layout.received else (NO_RECEIVE_TIME,)
        self.cannot_tell = (*CANNOT_TELL, *none)
        self._found = found
        self._word = word
        self._repair = repair

    def batches(self) -> Iterator[Batch]:
        """Rows by difference; a batch ends with a packet."""
        self.counts.clear()
        layout = self._found.layout
        reader = self._found.reader(layout.columns(), repair=self._repair, counts=self.counts)
        feed = SnapshotFeed(reader, LEVELS, opens="09:30")
        for block in reader.blocks(self._found.blocks[self._word]):
            words, at = words_of(block.column(layout.symbol))
            mine = block.filter(np.array([word == self._word for word in words], bool)[at])
            if len(mine):
                snapshots = self._snapshots(mine, layout)
                reader.count("snapshots", len(snapshots.lines))
                rows, lines = feed.rows(snapshots)
                if len(rows):
                    yield Batch(rows, lines, block.done)

    def _snapshots(self, block: Block, layout: Layout) -> Snapshots:
        day = block.read("MDDate", read_dates, "day such as 20200901")
        ts_event = day + block.read("MDTime", _times, "time such as 093000000")
        ts_recv = ts_event.copy()
        if layout.received:
            ts_recv = block.read(layout.received, _stamps, "time such as 20200901093000502")
        state = block.codes("TradingPhaseCode", {k: int(v) for k, v in _PHASES.items()})
        volume = block.steps(block.floats("TotalVolumeTrade"), self.spec.lot, "qty")
        out = Snapshots(
            lines=block.lines,
            ts_event=ts_event,
            ts_recv=ts_recv,
            volume_lots=volume,
            turnover_ticks=in_ticks(block.floats("TotalValueTrade"), self.spec),
            last_ticks=block.steps(block.floats("LastPx"), self.spec.tick, "price"),
            bids=self._side(block, layout, 0),
            asks=self._side(block, layout, 1),
            state=state,
        )
        block.count_bad()
        return out if block.good.all() else out.take(block.good)

    def _side(self, block: Block, layout: Layout, side: int) -> Ints:
        prices = [block.floats(name) for name in layout.levels(side, layout.price)]
        sizes = [block.floats(name) for name in layout.levels(side, layout.size)]
        return levels_of(
            block.steps(np.stack(prices, axis=1), self.spec.tick, "price"),
            block.steps(np.stack(sizes, axis=1), self.spec.lot, "qty"),
        )


def _times(column: Any) -> Read:
    """093000000 or 09:30:00.000."""
    first = str(column[0].as_py() or "") if len(column) else ""
    return read_times(column) if ":" in first.lstrip("b'") else read_digits(column)


def _stamps(column: Any) -> Read:
    """Numbers such as 20200901093000502."""
    values, bad = integers(column)
    days, times = np.divmod(values, 1_000_000_000)
    starts, wrong = number_dates(days)
    ns, odd = digits_ns(times, bad)
    return starts + ns, odd | wrong

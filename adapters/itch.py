"""Nasdaq TotalView-ITCH 5.0: a day's binary file of all stocks, plain or gzip.

Before each message stand two bytes of its length; the core decodes them (framework/core/wire/).
Times are ns since midnight in New York; the day is in the file's name (`01302020.NASDAQ_ITCH50.gz`,
`S013020-v50.txt.gz`, or one with `2020-01-30` or `20200130`), or given by `--date`. Rows of one
time are one packet, since several executions of one order share it. `seq` is the number of the
message in the file, which is that of the session where the file is whole.

E and C become EXECUTE, at the order's price or the one given, NO_PRINT where the message says that
it is not printable; P and Q are prints without an aggressor. Trading state: see Decoder in
framework/core/wire/itch.hpp. Each stock is a pass over the file.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator
from datetime import date, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from hft import _core
from hft.data.checks import Events
from hft.data.importing import Batch
from hft.data.repairs import set_last
from hft.data.sources import Request
from hft.errors import ConfigError, DataError
from hft.types import EVENT, InstrumentSpec

PIECE_BYTES = 1 << 20  # read at once
BATCH_ROWS = 1 << 17

_Bytes = NDArray[np.uint8]
_DAMAGE = (OSError, EOFError, zlib.error)
_PRICE_UNITS = 10_000  # a dollar
_DATES = (
    (re.compile(r"(?<!\d)(\d{4})[-_]?(\d{2})[-_]?(\d{2})(?!\d)"), (0, 1, 2)),
    (re.compile(r"(?<!\d)(\d{2})(\d{2})(\d{4})(?!\d)"), (2, 0, 1)),
    (re.compile(r"^S(\d{2})(\d{2})(\d{2})(?!\d)"), (2, 0, 1)),
)


def open_files(request: Request) -> list[ItchFile]:
    """One source a file and stock: those asked for, else all that have more than a listing."""
    sources = []
    for path in request.paths:
        day = request.date or date_of(path)
        for symbol, locate in _stocks(path, request.symbols()):
            spec = request.spec_of_whole(symbol=symbol, venue="NASDAQ", tick=0.01, currency="USD")
            source = ItchFile(path, spec, locate, day, repair=request.repair)
            if "tick" not in request.facts:
                source.inferred.append("tick 0.01")
            sources.append(source)
    return sources


def date_of(path: Path) -> date:
    """The trading day that a file's name holds.

    Raises:
        ConfigError: it holds none.
    """
    for pattern, order in _DATES:
        for found in pattern.findall(path.name):
            year, month, day = (int(found[i]) for i in order)
            year += 2000 * (year < 100)
            if 2000 <= year < 2100 and 1 <= month <= 12 and 1 <= day <= 31:
                try:
                    return date(year, month, day)
                except ValueError:  # no such day of that month
                    continue
    raise ConfigError(
        f"{path}: an ITCH file holds times of the day alone; give --date YYYY-MM-DD, or a name "
        "such as 01302020.NASDAQ_ITCH50 or 2020-01-30.itch"
    )


def _stocks(path: Path, wanted: list[str]) -> list[tuple[str, int]]:
    """Symbol and stock locate, by the file's own directory."""
    directory = _core.ItchDirectory()
    found: dict[str, tuple[int, int]] = {}
    pieces = _Pieces(path, repair=True)  # damage is left for the import to find
    for data in pieces:
        pieces.keep(data[directory.read(data) :])
        # A directory is sent before anything else, so whoever knows what he wants need not read on.
        if wanted:
            found = {symbol: (locate, n) for symbol, locate, n in directory.stocks()}
            if found.keys() >= set(wanted):
                break
    else:
        found = {symbol: (locate, n) for symbol, locate, n in directory.stocks()}
    if not found:
        raise DataError(
            f"{path}: no stock directory (messages R), so this is no ITCH 5.0 file, or not the "
            f"beginning of one{'; ' * bool(pieces.damage)}{pieces.damage}"
        )
    missing = [symbol for symbol in wanted if symbol not in found]
    if missing:
        raise ConfigError(
            f"{path}: no symbol {', '.join(missing)} among {len(found):,}, such as "
            f"{', '.join(list(found)[:5])}"
        )
    names = wanted or [symbol for symbol, (_, messages) in found.items() if messages]
    return [(symbol, found[symbol][0]) for symbol in names]


class ItchFile:
    """One stock of a file.

    Args:
        path: the file.
        spec: the stock; its tick is a multiple of 0.0001, its lot one share.
        locate: its stock locate of that day.
        day: the trading day.
        repair: leave out messages that cannot be read and take a cut file as far as it goes.
    """

    reorders = False
    cannot_tell = (
        "no receive time: rows reach us as they happen",
        "hidden executions and crosses are prints without an aggressor",
        "orders that Nasdaq does not display",
    )

    def __init__(
        self, path: Path, spec: InstrumentSpec, locate: int, day: date, *, repair: bool = False
    ) -> None:
        self.name = f"{path} {spec.symbol}"
        self.spec = spec
        self.counts: dict[str, int] = {}
        self.inferred: list[str] = []
        self._path = path
        self._repair = repair
        midnight = datetime(day.year, day.month, day.day, tzinfo=ZoneInfo("America/New_York"))
        tick = round(spec.tick * _PRICE_UNITS)
        if tick < 1 or abs(tick / _PRICE_UNITS - spec.tick) > 1e-12:
            raise ConfigError(
                f"{spec.name}: tick {spec.tick:g}; prices of ITCH are in 0.0001, so want a tick "
                "that is a multiple of it"
            )
        self._new_rows = (locate, int(midnight.timestamp()) * 1_000_000_000, tick, repair)

    def batches(self) -> Iterator[Batch]:
        """Rows in file order, in batches that end with a packet."""
        decoder = _core.ItchRows(*self._new_rows)
        rows, count = np.empty(BATCH_ROWS, EVENT), 0
        pieces = _Pieces(self._path, repair=self._repair)
        self.counts = {}
        for data in pieces:
            at, full = 0, True
            while full:
                at, count = self._fill(decoder, data, at, rows, count)
                full = count == len(rows)
                if full:
                    batch, count = _take(rows)
                    yield Batch(batch, done=pieces.done)
            pieces.keep(data[at:])
        self.counts = {what: n for what, n in decoder.counts().items() if n}
        if pieces.damage:
            self.counts["files damaged at the end"] = 1
        last = rows[:count].copy()
        set_last(last)
        yield Batch(last, done=1.0)

    def _fill(
        self, decoder: _core.ItchRows, data: _Bytes, at: int, rows: Events, count: int
    ) -> tuple[int, int]:
        try:
            used, more = decoder.fill(data[at:], rows[count:].view(np.uint8))
        except DataError as error:
            raise DataError(f"{self._path}: {error}") from None
        return at + used, count + more


def _take(rows: Events) -> tuple[Events, int]:
    """The packets that are whole; the rest moves to the front, and its length."""
    other = rows["ts_event"] != rows["ts_event"][-1]
    whole = len(rows) - int(other[::-1].argmax()) if other.any() else len(rows)
    batch = rows[:whole].copy()
    set_last(batch)
    rest = len(rows) - whole
    rows[:rest] = rows[whole:].copy()
    return batch, rest


class _Pieces:
    """A file's bytes, each piece after what the reader kept of the one before.

    Args:
        path: plain or gzip.
        repair: end where a damage begins instead of refusing it.
    """

    def __init__(self, path: Path, *, repair: bool) -> None:
        self.done = 0.0
        self.damage = ""
        self._path = path
        self._repair = repair
        self._kept = np.empty(0, np.uint8)

    def keep(self, rest: _Bytes) -> None:
        """Bytes that come again, before the next ones."""
        self._kept = rest

    def __iter__(self) -> Iterator[_Bytes]:
        read = 0
        try:
            size = max(self._path.stat().st_size, 1)
            with self._path.open("rb") as file:
                packed = file.peek()[:2] == b"\x1f\x8b"
                plain: Any = gzip.GzipFile(fileobj=file) if packed else file
                while piece := plain.read1(PIECE_BYTES):
                    read += len(piece)
                    self.done = min(file.tell() / size, 1.0)
                    yield np.concatenate([self._kept, np.frombuffer(piece, np.uint8)])
        except FileNotFoundError:
            raise DataError(f"{self._path}: no such file") from None
        except _DAMAGE as error:
            self.damage = f"damaged after byte {read:,}: {error}"
        if len(self._kept) and not self.damage:
            self.damage = f"the message at byte {read - len(self._kept):,} is cut"
        if self.damage and not (self._repair and read):
            raise DataError(f"{self._path}: {self.damage}")

"""WonderTrader history ticks (`.dsb`): level-1 snapshots of a contract, every 500 ms.

A header, then packed structs, mostly under zstd:

    8 bytes, "&^%$#@!" and a zero | type u16, 24 | version u16 | size u64, if packed | structs

Versions 1 (plain) and 2 (zstd) hold structs of 402 bytes, 3 and 4 those of 512 bytes that came in
2021 (WonderTrader's WTSTickStruct). Both have room for ten levels; futures fill one. There is no
receive time. docs/formats-china.md has the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hft.adapters.china import inferred, want_asked_for
from hft.adapters.china.clock import OFFSET_NS, Ints, digits_ns, number_dates
from hft.adapters.china.futures import facts_of, phases_of
from hft.adapters.china.snapshots import (
    CANNOT_TELL,
    NO_RECEIVE_TIME,
    PUBLISHED_SESSIONS,
    SnapshotFeed,
    Snapshots,
    in_ticks,
    levels_of,
)
from hft.data.blocks import Reading
from hft.data.exact import on_grid
from hft.data.importing import Batch
from hft.data.sources import Request
from hft.errors import DataError, SchemaError
from hft.types import InstrumentSpec

MAGIC = b"&^%$#@!\0"
TICKS = 24
BLOCK_ROWS = 1 << 13
PIECE_BYTES = 1 << 16

_NO_PRICE = 1e300  # an empty side's price is the largest double


def _struct(*, wide: bool) -> np.dtype[Any]:
    """Narrow ones are packed and count in whole numbers, wide ones in doubles."""
    count, signed = ("<f8", "<f8") if wide else ("<u4", "<i4")
    names = ("price", "open", "high", "low", "settle", "upper_limit", "lower_limit")
    fields: list[Any] = [("exchange", "S16" if wide else "S10"), ("code", "S32")]
    fields += [(name, "<f8") for name in names]
    fields += [("total_volume", count), ("volume", count)]
    fields += [("total_turnover", "<f8"), ("turnover", "<f8")]
    fields += [("interest", count), ("interest_change", signed)]
    fields += [("trading_date", "<u4"), ("date", "<u4"), ("time", "<u4")]
    fields += [("reserved", "<u4")] if wide else []
    fields += [("pre_close", "<f8"), ("pre_settle", "<f8"), ("pre_interest", signed)]
    fields += [("bid", "<f8", 10), ("ask", "<f8", 10)]
    fields += [("bid_size", count, 10), ("ask_size", count, 10)]
    return np.dtype(fields)


NARROW, WIDE = _struct(wide=False), _struct(wide=True)
_VERSIONS = {1: (NARROW, False), 2: (NARROW, True), 3: (WIDE, False), 4: (WIDE, True)}


class Header(NamedTuple):
    """What the first bytes say."""

    struct: np.dtype[Any]
    packed: bool
    start: int
    """Where the structs begin."""
    size: int
    """Of what follows, in bytes; of plain structs not said: -1."""


def open_files(request: Request) -> list[WonderTraderFile]:
    """One source a file."""
    return [_source(request, path) for path in request.paths]


def _source(request: Request, path: Path) -> WonderTraderFile:
    header = header_of(path)
    reading = Reading(str(path), "row", repair=True, counts=None)
    first, _ = next(structs(path, header, reading), (np.zeros(0, header.struct), 0.0))
    if not len(first):
        raise DataError(f"{path}: no tick in it")
    code = _text(first["code"][0])
    want_asked_for(request, code, str(path))
    known = {
        "symbol": code,
        "venue": _text(first["exchange"][0]),
        "currency": "CNY",
        **facts_of(code),
    }
    deep = first["bid_size"][:, 1:].any() or first["ask_size"][:, 1:].any()
    spec = request.spec(**known)
    facts = inferred(request, spec, "tick", "lot", "multiplier")
    depth = 10 if deep else 1
    return WonderTraderFile(path, header, spec, depth, repair=request.repair, inferred=facts)


def _text(word: bytes) -> str:
    return word.decode("ascii", "replace")


def header_of(path: Path) -> Header:
    """The header.

    Raises:
        SchemaError: another file, or another kind of block.
        DataError: cut short.
    """
    if not path.is_file():
        raise DataError(f"{path}: no such file")
    with path.open("rb") as file:
        raw = file.read(20)
    if not raw.startswith(MAGIC):
        raise SchemaError(f"{path}: begins with {raw[:8]!r}, want {MAGIC!r}: no .dsb file")
    if len(raw) < 20:
        raise DataError(f"{path}: {len(raw)} bytes, want a header of 20: the file is cut short")
    kind, version = np.frombuffer(raw, "<u2", 2, 8).tolist()
    if kind != TICKS or version not in _VERSIONS:
        raise SchemaError(
            f"{path}: block of type {kind}, version {version}; want history ticks, type {TICKS}, "
            f"version {', '.join(map(str, _VERSIONS))}"
        )
    struct, packed = _VERSIONS[version]
    size = int.from_bytes(raw[12:20], "little") if packed else -1
    return Header(struct, packed, 20 if packed else 12, size)


def structs(path: Path, header: Header, reading: Reading) -> Iterator[tuple[NDArray[Any], float]]:
    """Ticks in file order, and the share read."""
    there = path.stat().st_size - header.start
    if header.packed and there != header.size and not reading.repair:
        raise DataError(
            f"{path}: {there:,} bytes after the header, which says {header.size:,}: the file is "
            "cut short or damaged"
        )
    row, rest, each = 0, bytearray(), header.struct.itemsize
    with path.open("rb") as file:
        for piece in _pieces(file, path, header, reading):
            rest += piece
            if len(rest) >= BLOCK_ROWS * each or not piece:
                whole = len(rest) // each
                if whole:
                    ticks = np.frombuffer(bytes(rest[: whole * each]), header.struct)
                    yield ticks, _share(file, there, header)
                row += whole
                del rest[: whole * each]
    if rest and not reading.damaged:
        if not reading.repair:
            raise DataError(
                f"{path}: {len(rest)} bytes after row {row}, want a tick of {each}: the file is "
                "cut short"
            )
        reading.broke_off()


def _pieces(file: Any, path: Path, header: Header, reading: Reading) -> Iterator[bytes]:
    """The structs' bytes as they are unpacked, and at the end an empty piece."""
    import pyarrow as pa

    file.seek(header.start)
    try:
        stream: Any = pa.CompressedInputStream(file, "zstd") if header.packed else file
        # Small, since where damage is in a piece, all of it is lost.
        while piece := stream.read(PIECE_BYTES):
            yield piece
    except (pa.ArrowException, OSError, ValueError) as error:
        if not reading.repair:
            raise DataError(f"{path}: damaged: {error}") from error
        reading.broke_off()
    yield b""


def _share(file: Any, there: int, header: Header) -> float:
    return min(float(file.tell() - header.start) / max(there, 1), 1.0)


class WonderTraderFile:
    """One contract's ticks.

    Args:
        path: the file.
        header: its header.
        spec: the contract.
        depth: levels a side that are filled.
        repair: leave out ticks of another contract or that go back in time, and what comes after a
            damage; counted.
        inferred: facts that nobody gave.
    """

    reorders = False

    def __init__(
        self,
        path: Path,
        header: Header,
        spec: InstrumentSpec,
        depth: int,
        *,
        repair: bool,
        inferred: list[str],
    ) -> None:
        self.name = str(path)
        self.spec = spec
        self.counts: dict[str, int] = {}
        self.inferred = inferred
        states = PUBLISHED_SESSIONS if spec.venue == "CFFEX" else "the trading state"
        self.cannot_tell = (*CANNOT_TELL, NO_RECEIVE_TIME, states)
        self._path = path
        self._header = header
        self._depth = depth
        self._repair = repair

    def batches(self) -> Iterator[Batch]:
        """Rows by difference; a batch ends with a packet."""
        self.counts.clear()
        reading = Reading(self.name, "row", repair=self._repair, counts=self.counts)
        feed: SnapshotFeed | None = None
        row = 1
        for ticks, done in structs(self._path, self._header, reading):
            snapshots = self._snapshots(ticks, np.arange(row, row + len(ticks)), reading)
            row += len(ticks)
            reading.count("snapshots", len(snapshots.lines))
            if len(snapshots.lines):
                feed = feed or self._feed(reading, int(snapshots.ts_event[0]))
                rows, lines = feed.rows(snapshots)
                if len(rows):
                    yield Batch(rows, lines, done)
        for rows in feed.finish() if feed else ():
            yield Batch(rows, done=1.0)

    def _feed(self, reading: Reading, first: int) -> SnapshotFeed:
        day = datetime.fromtimestamp((first + OFFSET_NS) / 1e9, UTC).date()
        phases = phases_of(self.spec.symbol, day) if self.spec.venue == "CFFEX" else ()
        opens = phases[1].at if phases else ""
        return SnapshotFeed(reading, self._depth, phases=phases, opens=opens)

    def _snapshots(self, ticks: NDArray[Any], rows: Ints, reading: Reading) -> Snapshots:
        ticks, rows = self._readable(ticks, rows, reading)
        ts_event = number_dates(ticks["date"])[0] + digits_ns(ticks["time"].astype(np.int64))[0]
        return Snapshots(
            lines=rows,
            ts_event=ts_event,
            ts_recv=ts_event.copy(),
            volume_lots=self._steps(ticks["total_volume"], self.spec.lot, "qty", rows),
            turnover_ticks=in_ticks(ticks["total_turnover"], self.spec),
            last_ticks=self._steps(ticks["price"], self.spec.tick, "price", rows),
            bids=self._side(ticks, "bid", rows, reading),
            asks=self._side(ticks, "ask", rows, reading),
        )

    def _readable(
        self, ticks: NDArray[Any], rows: Ints, reading: Reading
    ) -> tuple[NDArray[Any], Ints]:
        """Ticks of this contract with a time; in a damaged file there may be others."""
        other = ticks["code"] != self.spec.symbol.encode()
        timeless = number_dates(ticks["date"])[1] | digits_ns(ticks["time"].astype(np.int64))[1]
        bad = other | timeless
        if bad.any():
            at = int(bad.argmax())
            if not self._repair:
                raise DataError(
                    f"{self.name}: row {rows[at]}: code {_text(ticks['code'][at])}, date "
                    f"{ticks['date'][at]}, time {ticks['time'][at]}; want {self.spec.symbol}, "
                    "YYYYMMDD and HHMMSSmmm"
                )
            reading.count("rows unreadable", int(np.count_nonzero(bad)))
        return ticks[~bad], rows[~bad]

    def _side(self, ticks: NDArray[Any], side: str, rows: Ints, reading: Reading) -> Ints:
        prices, sizes = ticks[side], ticks[f"{side}_size"]
        if sizes[:, self._depth :].any():
            deeper = np.count_nonzero(sizes[:, self._depth :].any(1))
            reading.count("snapshots with deeper levels, left out", int(deeper))
        prices = prices[:, : self._depth]
        prices = np.where(np.abs(prices) < _NO_PRICE, prices, 0.0)
        return levels_of(
            self._steps(prices, self.spec.tick, "price", rows),
            self._steps(sizes[:, : self._depth], self.spec.lot, "qty", rows),
        )

    def _steps(self, values: NDArray[Any], step: float, what: str, rows: Ints) -> Ints:
        flat = values.astype(np.float64).ravel()
        each = np.repeat(rows, flat.size // max(len(rows), 1))
        return on_grid(flat, step, what, rows=each, source=self.name)[0].reshape(values.shape)

"""CFFEX futures as csv: five levels with a header line, or headerless ticks without quotes.

**Five levels** (`TF1603_20151225_L5.csv`): `B01`..`B05`, `BV01`.., `S01`.., `SV01`.., totals, and
three clocks, of which the venue's (`TDATETIME`) and the recorder's (`LOCALTIME`, in ms) are read;
`RECTIME` is in whole seconds.

**Headerless** (`CFFEX.IF2203.20220218.csv`): code, trading day, day, HHMMSSmmm, local time, last
price, and totals; other exchanges' files of that kind are read too. There is no bid or ask, so it
gives prints alone. A first row of price 0 is what the recorder had before the first tick came:
refused, or with repair left out. docs/formats-china.md has the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np

from hft.adapters.china import inferred, want_asked_for
from hft.adapters.china.clock import (
    OFFSET_NS,
    Ints,
    read_dates,
    read_digits,
    read_stamps,
    read_times,
)
from hft.adapters.china.futures import at_cffex, facts_of, phases_of
from hft.adapters.china.sessions import Phase
from hft.adapters.china.snapshots import (
    CANNOT_TELL,
    PUBLISHED_SESSIONS,
    SnapshotFeed,
    Snapshots,
    in_ticks,
    levels_of,
)
from hft.data.blocks import Block
from hft.data.importing import Batch
from hft.data.sources import Request
from hft.data.text import TextFile, text_files
from hft.data.text_blocks import TextReader, names_in
from hft.errors import DataError, SchemaError
from hft.types import InstrumentSpec

LEVELS = 5

NAMES = (
    "code", "trading_day", "day", "time", "local", "last", "volume_total", "interest",
    "turnover_total", "volume", "interest_change", "turnover",
)  # fmt: skip
"""Columns of the headerless file."""

_QUOTES = [f"{side}{n:02}" for side in ("B", "BV", "S", "SV") for n in range(1, LEVELS + 1)]
_DEEP = ["CONTRACTID", "TDATETIME", "LOCALTIME", "LASTPRICE", "VOLUME", "AMOUNT", *_QUOTES]
_PLAIN = ["code", "day", "time", "local", "last", "volume_total", "turnover_total"]
_SECOND_NS = 1_000_000_000


def open_files(request: Request) -> list[CffexFile]:
    """One source a file, or member of a zip."""
    files = [file for path in request.paths for file in text_files(path)]
    return [_source(request, file) for file in files]


def _source(request: Request, file: TextFile) -> CffexFile:
    header = names_in(file)
    deep = "CONTRACTID" in header
    missing = [name for name in _DEEP if name not in header]
    if deep and missing:
        raise SchemaError(f"{file.name}: no column {missing[0]!r}; it has {header}")
    if not deep and (len(header) != len(NAMES) or not header[1].isdigit()):
        raise SchemaError(
            f"{file.name}: first line is {','.join(header)[:80]!r}; want a header with "
            f"{', '.join(_DEEP[:6])}, or the {len(NAMES)} columns {', '.join(NAMES)}"
        )
    code, day = _first(file, deep=deep)
    want_asked_for(request, code, file.name)
    known = {"symbol": code, "currency": "CNY", **facts_of(code)}
    exchange = _exchange(file, code)
    if exchange:
        known["venue"] = exchange
    spec = request.spec(**known)
    facts = inferred(request, spec, "tick", "lot", "multiplier")
    return CffexFile(
        file, spec, deep=deep, phases=phases_of(code, day), repair=request.repair, inferred=facts
    )


def _exchange(file: TextFile, code: str) -> str:
    """From a name such as SHFE.rb2205.20220218.csv; CFFEX by its products."""
    parts = Path(file.member or file.path.name).name.split(".")
    if len(parts) > 2 and parts[1] == code:
        return parts[0]
    return "CFFEX" if at_cffex(code) else ""


def _first(file: TextFile, *, deep: bool) -> tuple[str, date]:
    """The contract and the day of the first row."""
    columns = ("CONTRACTID", "TDATETIME") if deep else ("code", "day")
    reader = TextReader(file, columns, names=() if deep else NAMES, repair=True)
    for block in reader.blocks():
        code = (block.column(columns[0])[0].as_py() or b"").decode("utf-8", "replace").strip()
        days, bad = (read_stamps if deep else read_dates)(block.column(columns[1]).slice(0, 1))
        if code and not bad[0]:
            return code, datetime.fromtimestamp((int(days[0]) + OFFSET_NS) / 1e9, UTC).date()
        break
    raise DataError(f"{file.name}: the first row has no contract or no day")


class CffexFile:
    """One contract's file.

    Args:
        file: what to read.
        spec: the contract.
        deep: it has five levels and a header.
        phases: of the day.
        repair: leave out rows that cannot be read, have no price or go back in time; counted.
        inferred: facts that nobody gave.
    """

    reorders = False

    def __init__(
        self,
        file: TextFile,
        spec: InstrumentSpec,
        *,
        deep: bool,
        phases: Sequence[Phase],
        repair: bool,
        inferred: list[str],
    ) -> None:
        self.name = file.name
        self.spec = spec
        self.counts: dict[str, int] = {}
        self.inferred = inferred
        self.cannot_tell = (
            *CANNOT_TELL[0 if deep else 1 :],
            *((PUBLISHED_SESSIONS,) if phases else ("the trading state: no STATUS rows",)),
            *(() if deep else _NO_QUOTES),
        )
        self._file = file
        self._deep = deep
        self._phases = phases
        self._repair = repair

    def batches(self) -> Iterator[Batch]:
        """Rows by difference; a batch ends with a packet."""
        self.counts.clear()
        wanted, names = (_DEEP, ()) if self._deep else (_PLAIN, NAMES)
        reader = TextReader(
            self._file, wanted, names=names, repair=self._repair, counts=self.counts
        )
        opens = self._phases[1].at if self._phases else ""
        feed = SnapshotFeed(reader, LEVELS, phases=self._phases, opens=opens)
        for block in reader.blocks():
            snapshots = self._five_levels(block) if self._deep else self._ticks(block)
            reader.count("snapshots", len(snapshots.lines))
            rows, lines = feed.rows(snapshots)
            if len(rows):
                yield Batch(rows, lines, block.done)
        for rows in feed.finish():
            yield Batch(rows, done=1.0)

    def _five_levels(self, block: Block) -> Snapshots:
        self._want_one_code(block, "CONTRACTID")
        stamps = "time such as 2015-12-25 09:20:00.100"
        out = Snapshots(
            lines=block.lines,
            ts_event=block.read("TDATETIME", read_stamps, stamps),
            ts_recv=block.read("LOCALTIME", read_stamps, stamps),
            volume_lots=block.steps(block.floats("VOLUME"), self.spec.lot, "qty"),
            turnover_ticks=in_ticks(block.floats("AMOUNT"), self.spec),
            last_ticks=block.steps(block.floats("LASTPRICE"), self.spec.tick, "price"),
            bids=self._side(block, "B"),
            asks=self._side(block, "S"),
        )
        return _good(block, out)

    def _side(self, block: Block, side: str) -> Ints:
        at = range(1, LEVELS + 1)
        prices = np.stack([block.floats(f"{side}{n:02}") for n in at], axis=1)
        sizes = np.stack([block.floats(f"{side}V{n:02}") for n in at], axis=1)
        return levels_of(
            block.steps(prices, self.spec.tick, "price"), block.steps(sizes, self.spec.lot, "qty")
        )

    def _ticks(self, block: Block) -> Snapshots:
        self._want_one_code(block, "code")
        day = block.read("day", read_dates, "day such as 20220218")
        turnover: Any = in_ticks(block.floats("turnover_total"), self.spec)
        if self.spec.venue == "CZCE":
            turnover = None  # there it is volume times a rounded average price
        last = block.floats("last")
        self._want_price(block, last)
        # To the second, cut off: it came by the end of that second at the latest.
        local = block.read("local", read_times, "time such as 11:20:03") + _SECOND_NS - 1
        out = Snapshots(
            lines=block.lines,
            ts_event=day + block.read("time", read_digits, "time such as 112003000"),
            ts_recv=day + local,
            volume_lots=block.steps(block.floats("volume_total"), self.spec.lot, "qty"),
            turnover_ticks=turnover,
            last_ticks=block.steps(last, self.spec.tick, "price"),
            bids=None,
            asks=None,
        )
        return _good(block, out)

    def _want_price(self, block: Block, last: Any) -> None:
        none = block.good & (last == 0)
        if none.any():
            if not self._repair:
                raise DataError(
                    f"{self.name}: line {block.lines[int(none.argmax())]}: price 0, from before "
                    "the recorder's first tick; want a price, and with repair it is left out"
                )
            block.reader.count("rows without a price", int(np.count_nonzero(none)))
            block.leave_out(none)

    def _want_one_code(self, block: Block, column: str) -> None:
        block.codes(column, {self.spec.symbol: 1})


_NO_QUOTES = (
    "any quote: the file has no bid and no ask, only prints",
    "our own receive time below a second: ts_recv is the end of the recorder's second",
)


def _good(block: Block, snapshots: Snapshots) -> Snapshots:
    block.count_bad()
    return snapshots if block.good.all() else snapshots.take(block.good)

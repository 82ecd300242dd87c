"""The event store: a folder of days, each one file of EVENT rows.

    STORE/venue=BINANCE/symbol=BTCUSDT/date=2024-08-08/events.parquet   kept and exchanged
                                                       events.arrow     the same rows, mapped into
                                                       memory

A day is a UTC date of `ts_recv`. A day file appears whole or not at all: it is written under a
temporary name in its own folder, synced, and renamed when everything before it went well. Rows hold
no instrument number: it belongs to a run, which gives its own.

The raw form is only believed while its hash equals that of the Parquet file beside it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

import numpy as np

from hft.data import files
from hft.data.checks import Events, check
from hft.data.columns import to_events
from hft.data.files import Meta, RawForm
from hft.data.reading import chosen, kind_codes, layout, scan, within
from hft.data.repairs import repair as repair_events
from hft.data.writing import Writer
from hft.errors import ConfigError, DataError
from hft.types import InstrumentSpec
from hft.whole_files import replacing

if TYPE_CHECKING:
    import polars as pl

Time = int | str | None
"""An instant: ns since the epoch, or ISO text (`2024-08-08`, `2024-08-08T12:00`), UTC unless it
says else."""


def instant(value: Time) -> int | None:
    """`value` in ns since the epoch."""
    if value is None:
        return None
    if isinstance(value, int | np.integer):
        return int(value)
    if not isinstance(value, str):
        raise ConfigError(f"{value!r} is no time: want ns since the epoch or ISO text")
    try:
        moment = datetime.fromisoformat(value)
    except ValueError as error:
        raise ConfigError(f"{value!r} is no ISO date or time, such as 2024-08-08T12:00") from error
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1_000_000_000 + since.microseconds * 1_000


class Store:
    """A folder of market data by venue, symbol and day."""

    def __init__(self, path: str | Path, *, create: bool = True) -> None:
        self.path = Path(path)
        if self.path.exists() and not self.path.is_dir():
            raise DataError(f"{self.path} is a file, want a store folder")
        if not create and not self.path.is_dir():
            raise DataError(f"{self.path}: no such store folder")

    def __repr__(self) -> str:
        return f"Store({str(self.path)!r})"

    def symbols(self) -> list[str]:
        """Names of all instruments, `SYMBOL.VENUE`."""
        found = set()
        for file in self.path.glob("venue=*/symbol=*/date=*/events.parquet"):
            venue, symbol = (unquote(p.name.partition("=")[2]) for p in file.parents[2:0:-1])
            found.add(f"{symbol}.{venue}")
        return sorted(found)

    def days(self, name: str) -> list[str]:
        """Dates there are rows for, in order."""
        folder = self._folder(name)
        return sorted(f.parent.name[5:] for f in folder.glob("date=*/events.parquet"))

    def spec(self, name: str) -> InstrumentSpec:
        """Facts of an instrument, as of its newest day."""
        return self.meta(name, self._known_days(name)[-1]).spec

    def meta(self, name: str, day: str) -> Meta:
        """What one day's file says about itself."""
        path = self.file(name, day)
        if not path.exists():
            raise DataError(f"{self.path}: {name} has no day {day}")
        meta = files.parquet_meta(path)
        if meta is None:
            raise DataError(f"{path}: a Parquet file without the facts of an hft store")
        return meta

    def kinds(self, name: str, start: Time = None, end: Time = None) -> frozenset[str]:
        """Kinds of rows on the days of [start, end)."""
        days = self._metas(name, instant(start), instant(end))
        return frozenset().union(*(self.day_kinds(name, day) for day, _ in days))

    def day_kinds(self, name: str, day: str) -> frozenset[str]:
        """Kinds of rows of one day."""
        known = self.meta(name, day).kinds
        return frozenset(files.kinds_in(self.file(name, day)) if known is None else known)

    def is_split(self, name: str, start: Time = None, end: Time = None) -> bool:
        """Whether a day of [start, end) holds rows seen by one side alone, or may."""
        metas = self._metas(name, instant(start), instant(end))
        return any(meta.split_rows != 0 for _, meta in metas)

    def cannot_tell(self, name: str, start: Time = None, end: Time = None) -> tuple[str, ...]:
        """What the days of [start, end) leave open, as their imports said."""
        metas = self._metas(name, instant(start), instant(end))
        return unsaid(meta.imported for _, meta in metas)

    def hash(self, name: str, start: Time = None, end: Time = None) -> str:
        """Hash of the content of [start, end), made of the day hashes kept at writing time."""
        first, last = instant(start), instant(end)
        state = hashlib.blake2b(digest_size=16)
        for day, meta in self._metas(name, first, last):
            # A day cut by the range counts with the cut; outside of it the bounds do not matter.
            low = first if first is not None and first > meta.ts_first else None
            high = last if last is not None and last <= meta.ts_last else None
            state.update(f"{day}:{meta.hash}:{low}:{high};".encode())
        return state.hexdigest()

    def read(
        self,
        name: str,
        start: Time = None,
        end: Time = None,
        *,
        columns: Sequence[str] | None = None,
        kinds: Iterable[str] | None = None,
    ) -> Events:
        """All rows with `start <= ts_recv < end`, in memory; see `chunks`."""
        chunks = list(self.chunks(name, start, end, columns=columns, kinds=kinds))
        return np.concatenate(chunks) if chunks else np.empty(0, layout(columns))

    def chunks(
        self,
        name: str,
        start: Time = None,
        end: Time = None,
        rows: int = files.ROW_GROUP,
        *,
        columns: Sequence[str] | None = None,
        kinds: Iterable[str] | None = None,
    ) -> Iterator[Events]:
        """Rows with `start <= ts_recv < end`, at most `rows` at a time.

        From the raw form these are read-only views of the memory map, from Parquet decoded copies.
        A chunk may end inside a packet. Days and row groups (a million rows) that hold nothing
        asked for are not read.

        Args:
            name: the instrument.
            start: first `ts_recv`.
            end: `ts_recv` to stop before.
            rows: most rows of a chunk.
            columns: fields of EVENT to read; the rows have these alone, in this order.
            kinds: names of the kinds of rows wanted, such as `("TRADE", "EXECUTE")`.
        """
        for day in self.days_of_one_grid(name, start, end):
            yield from self.day_rows(name, day, start, end, rows, columns=columns, kinds=kinds)

    def day_rows(
        self,
        name: str,
        day: str,
        start: Time = None,
        end: Time = None,
        rows: int = files.ROW_GROUP,
        *,
        columns: Sequence[str] | None = None,
        kinds: Iterable[str] | None = None,
    ) -> Iterator[Events]:
        """The part of `chunks` that lies in one day's file."""
        if rows < 1:
            raise ConfigError(f"rows is {rows}, want at least 1")
        first, last = instant(start), instant(end)
        if columns is None and kinds is None:
            return within(self.day_chunks(name, day, rows, first, last), first, last)
        wanted = layout(columns)
        codes = None if kinds is None else kind_codes(kinds)
        read = tuple(n for n in files.NAMES if n in (*(wanted.names or ()), "ts_recv", "kind"))
        found = files.parquet_chunks(
            self.file(name, day), rows, first, last, columns=read, kinds=codes
        )
        return chosen(within(found, first, last), wanted, codes)

    def scan(
        self,
        name: str,
        start: Time = None,
        end: Time = None,
        *,
        kinds: Iterable[str] | None = None,
    ) -> pl.LazyFrame:
        """The same rows as a polars LazyFrame over the Parquet files; nothing is read yet.

        Besides EVENT's columns, prices in ticks, it has the partition's `venue`, `symbol` and
        `date`, `time` and `time_event` (UTC), `price_at` and `amount` (price and quantity as
        numbers) and `what` (the kind's name). A column that is not used costs nothing.
        """
        first, last = instant(start), instant(end)
        days = self.days_of_one_grid(name, first, last)
        if not days:  # the columns, and no row
            days, last = self.days(name)[:1], np.iinfo(np.int64).min
        codes = None if kinds is None else kind_codes(kinds)
        return scan([self.file(name, day) for day in days], self.spec(name), first, last, codes)

    def cache(self, name: str, start: Time = None, end: Time = None) -> list[Path]:
        """Write the raw form of each day that has none yet; returns the files of the range."""
        made = []
        for day, meta in self._metas(name, instant(start), instant(end)):
            path = self.file(name, day).with_name("events.arrow")
            if not self._raw_is_current(path, meta):
                with replacing(path) as temporary:
                    form = RawForm(temporary)
                    try:
                        for chunk in files.parquet_chunks(self.file(name, day)):
                            form.write(chunk)
                    except BaseException:
                        form.abandon()
                        raise
                    form.finish(meta)
            made.append(path)
        return made

    def write(
        self,
        rows: Any,
        spec: InstrumentSpec,
        *,
        raw: bool = False,
        overwrite: bool = False,
        append: bool = False,
        repair: bool = False,
    ) -> list[str]:
        """Check rows and write them, a file a day; returns the days.

        Args:
            rows: EVENT array, or a polars, pandas or Arrow table, or a dict of columns with EVENT's
                names. Integer `price` and `qty` are ticks and lots; floats are prices and
                quantities and must lie on the spec's tick and lot. `side` may be `B`/`S`, `kind` a
                name; `flags` may be left out.
            spec: facts of the instrument.
            raw: also write the memory-mapped form.
            overwrite: replace days that exist.
            append: merge into days that exist, by `ts_recv`.
            repair: mend what can be mended (checks.repair) instead of refusing; the counts are kept
                in the metadata.

        Raises:
            DataError: names the first bad row, or the day that exists.
        """
        events = to_events(rows, spec)
        report = check(events, spec)
        if repair and not report.ok:
            events, report = repair_events(events, spec)
        report.require()
        with self.writer(spec, raw=raw, overwrite=overwrite, append=append) as writer:
            writer.add(events)
            if report.repaired:
                writer.note(repaired=report.repaired)
        return writer.days

    @contextmanager
    def writer(
        self,
        spec: InstrumentSpec,
        *,
        raw: bool = False,
        overwrite: bool = False,
        append: bool = False,
    ) -> Iterator[Writer]:
        """Write checked rows chunk by chunk; nothing appears in the store if the block raises."""
        if overwrite and append:
            raise ConfigError("overwrite and append exclude each other")
        self._same_instrument(spec, overwrite=overwrite)
        writer = Writer(self, spec, raw=raw, overwrite=overwrite, append=append)
        try:
            yield writer
            writer.commit()
        except BaseException:
            writer.abandon()
            raise

    def _same_instrument(self, spec: InstrumentSpec, *, overwrite: bool) -> None:
        if spec.tick <= 0 or spec.lot <= 0 or not np.isfinite([spec.tick, spec.lot]).all():
            raise DataError(f"{spec.name}: tick {spec.tick} and lot {spec.lot} must be above zero")
        if not (spec.symbol and spec.venue):
            raise DataError(f"symbol {spec.symbol!r} and venue {spec.venue!r} must not be empty")
        if overwrite or not self.days(spec.name):
            return
        known = self.spec(spec.name)
        if (known.tick, known.lot) != (spec.tick, spec.lot):
            raise DataError(
                f"{spec.name}: tick {spec.tick} and lot {spec.lot} differ from the store's "
                f"{known.tick} and {known.lot}"
            )

    def _folder(self, name: str) -> Path:
        symbol, dot, venue = name.rpartition(".")
        if not dot or not symbol:
            raise DataError(f"instrument {name!r} is not SYMBOL.VENUE; known: {self._known()}")
        return self.path / f"venue={quote(venue, safe='')}" / f"symbol={quote(symbol, safe='')}"

    def file(self, name: str, day: str) -> Path:
        """Where a day's Parquet file lies, or would."""
        return self._folder(name) / f"date={day}" / "events.parquet"

    def _known(self) -> str:
        return ", ".join(self.symbols()) or "none"

    def _known_days(self, name: str) -> list[str]:
        days = self.days(name)
        if not days:
            raise DataError(f"{self.path}: no instrument {name!r}; known: {self._known()}")
        return days

    def _metas(self, name: str, start: int | None, end: int | None) -> Iterator[tuple[str, Meta]]:
        for day in self._known_days(name):
            meta = self.meta(name, day)
            if (end is None or meta.ts_first < end) and (start is None or meta.ts_last >= start):
                yield day, meta

    def days_of_one_grid(self, name: str, start: Time = None, end: Time = None) -> list[str]:
        """Days with rows in [start, end), which must share the newest day's tick and lot."""
        spec, days = self.spec(name), []
        for day, meta in self._metas(name, instant(start), instant(end)):
            if (meta.spec.tick, meta.spec.lot) != (spec.tick, spec.lot):
                raise DataError(
                    f"{name}: tick {meta.spec.tick} and lot {meta.spec.lot} on {day} are not "
                    f"those of its newest day, {spec.tick} and {spec.lot}; read each stretch by "
                    "itself"
                )
            days.append(day)
        return days

    def _raw_is_current(self, path: Path, meta: Meta) -> bool:
        if not path.exists():
            return False
        try:
            return files.raw_meta(path).hash == meta.hash
        except DataError:
            return False

    def day_chunks(
        self, name: str, day: str, rows: int = files.ROW_GROUP, start: Time = None, end: Time = None
    ) -> Iterator[Events]:
        """Rows of one day; [start, end) only saves reading, it does not cut."""
        path = self.file(name, day)
        raw = path.with_name("events.arrow")
        if self._raw_is_current(raw, self.meta(name, day)):
            return files.raw_chunks(raw, rows)
        return files.parquet_chunks(path, rows, instant(start), instant(end))


def unsaid(imports: Iterable[dict[str, Any]]) -> tuple[str, ...]:
    """What imports could not tell, each sentence once, earlier merged imports included."""
    found: dict[str, None] = {}
    for facts in imports:
        found |= dict.fromkeys(facts.get("cannot_tell", ()))
        found |= dict.fromkeys(unsaid([facts["before"]]) if "before" in facts else ())
    return tuple(found)

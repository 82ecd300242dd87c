"""A CSV or Parquet file as a source of EVENT rows."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from hft.adapters.table.layout import Map, words_of
from hft.adapters.table.packets import Packets, Part, Snapshots
from hft.adapters.table.readers import (
    Bad,
    Reader,
    Salvaged,
    Utf8,
    floats,
    integers,
    text,
    time_reader,
    undecoded,
    word_reader,
)
from hft.data.exact import on_grid
from hft.data.importing import Batch
from hft.errors import ConfigError, DataError, HftError, SchemaError
from hft.types import EVENT, SEEN_BY_BOTH, Kind

if TYPE_CHECKING:
    import pyarrow as pa

BLOCK_BYTES = 1 << 23  # of CSV text
BATCH_ROWS = 1 << 18  # of Parquet

Format = Literal["csv", "parquet"]
Table = tuple[Any, NDArray[np.int64], float]  # Arrow batch, line of each row, share done

_WANTED = {
    "ts_event": "time",
    "ts_recv": "time",
    "price": "finite number",
    "qty": "finite number",
    "kind": "kind",
    "side": "side",
    "order_id": "whole number",
    "ref_id": "whole number",
    "seq": "whole number",
}


class TableFile:
    """One CSV or Parquet file as a source of EVENT rows.

    Args:
        path: the file; CSV may be gzip.
        columns: the map.
        form: what the file is.
        repair: leave out rows that cannot be read, and round prints off the tick; counted.
    """

    cannot_tell = ()

    def __init__(
        self, path: str | Path, columns: Map, form: Format, *, repair: bool = False
    ) -> None:
        self.name = str(path)
        self.spec = columns.instrument
        self.reorders = columns.reorders
        self.counts: dict[str, int] = {}
        self.inferred: list[str] = []
        self._path = Path(path)
        self._map = columns
        self._form = form
        self._repair = repair
        self._words = words_of(columns.columns)
        if not self._path.is_file():
            raise DataError(f"{path}: no such file")
        for what, step in (("tick", self.spec.tick), ("lot", self.spec.lot)):
            if not (step > 0 and np.isfinite(step)):
                raise ConfigError(f"instrument.{what} is {step}, want above 0")

    def batches(self) -> Iterator[Batch]:
        """Rows in file order; a batch ends with a packet."""
        self.counts = {"rows": 0}
        snapshots, packets = Snapshots(), Packets(self._map.packets)
        for table, lines, done in self._csv() if self._form == "csv" else self._parquet():
            self._count("rows", len(lines))
            part = packets.feed(snapshots.feed(*self._part(table, lines)))
            if len(part.events):
                yield Batch(part.events, part.lines, done)
        part = packets.flush(snapshots.flush())
        if len(part.events):
            yield Batch(part.events, part.lines, 1.0)

    def _count(self, what: str, by: int = 1) -> None:
        if by:
            self.counts[what] = self.counts.get(what, 0) + by

    def _part(self, table: pa.RecordBatch, lines: NDArray[np.int64]) -> tuple[Part, Bad]:
        """The rows that are wanted and can be read, and which of them rebuild the book."""
        wanted = np.ones(len(lines), bool)
        for name, value in self._map.where.items():
            wanted &= text(table.column(name)) == value
        self._count("rows of other instruments", int(np.count_nonzero(~wanted)))
        table, lines = table.filter(_arrow(wanted)), lines[wanted]
        values, good = self._values(table, lines)
        events = self._events(values, lines, good)
        keys = np.zeros(len(lines), np.int8)
        if self._map.packets not in ("time", "row"):
            keys = text(table.column(self._map.packets))
        marked = np.zeros(len(lines), bool)
        snapshot = self._map.columns.snapshot
        if snapshot:
            marked = np.isin(text(table.column(snapshot.column)), snapshot.values)
        return Part(events[good], lines[good], keys[good]), marked[good]

    def _values(
        self, table: pa.RecordBatch, lines: NDArray[np.int64]
    ) -> tuple[dict[str, NDArray[Any]], Bad]:
        """Each field's values, and the rows where all of them could be read."""
        c = self._map.columns
        readers: dict[str, tuple[str, Reader]] = {
            "ts_event": (c.ts_event.column, time_reader(c.ts_event)),
            "ts_recv": (c.ts_recv.column, time_reader(c.ts_recv)),
            "price": (c.price, floats),
            "qty": (c.qty, floats),
        }
        values: dict[str, NDArray[Any]] = {}
        for field, words in self._words.items():
            column, codes = words
            if column:
                readers[field] = (column, word_reader(codes))
            else:
                values[field] = np.full(len(lines), codes[""])
        for field in ("order_id", "ref_id", "seq"):
            if getattr(c, field):
                readers[field] = (getattr(c, field), integers)
        good = np.ones(len(lines), bool)
        for field, (column, read) in readers.items():
            values[field], bad = read(table.column(column))
            if bad.any():
                self._refuse(bad, table.column(column), column, field, lines)
                good &= ~bad
        self._count("rows unreadable", int(np.count_nonzero(~good)))
        return values, good

    def _refuse(
        self, bad: Bad, column: pa.Array, name: str, field: str, lines: NDArray[np.int64]
    ) -> None:
        if self._repair:
            return
        at = int(bad.argmax())
        value = undecoded(column)[at].as_py()
        shown = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
        raise DataError(
            f"{self.name}: line {lines[at]}, column {name}: {shown!r} is no {_WANTED[field]}"
            f"{self._hint(field)}"
        )

    def _hint(self, field: str) -> str:
        if field in self._words:
            return f"; the map knows {sorted(self._words[field][1])}"
        if field in ("ts_event", "ts_recv"):
            return f" in {getattr(self._map.columns, field).unit}"
        return ""

    def _events(
        self, values: dict[str, NDArray[Any]], lines: NDArray[np.int64], good: Bad
    ) -> NDArray[Any]:
        events = np.zeros(len(lines), EVENT)
        amounts = (("price", self.spec.tick), ("qty", self.spec.lot))
        for field, step in amounts:
            raw = np.where(good, values.pop(field), 0.0)
            loose = (values["kind"] == Kind.TRADE) if self._repair and field == "price" else None
            try:
                events[field], rounded = on_grid(
                    raw, step, field, loose=loose, rows=lines, where="line"
                )
            except DataError as error:
                raise DataError(f"{self.name}: {error}") from None
            self._count("prints rounded", rounded)
        for field, array in values.items():
            events[field] = np.where(good, array, 0)
        events["flags"] = SEEN_BY_BOTH
        return events

    def _wanted(self) -> list[str]:
        c = self._map.columns
        names = [c.ts_event.column, c.ts_recv.column, c.price, c.qty, c.order_id, c.ref_id, c.seq]
        names += [words[0] for words in self._words.values()]
        names += [c.snapshot.column if c.snapshot else "", *self._map.where]
        names.append("" if self._map.packets in ("time", "row") else self._map.packets)
        return list(dict.fromkeys(name for name in names if name))

    def _want_columns(self, found: list[str]) -> None:
        missing = [name for name in self._wanted() if name not in found]
        if missing:
            raise SchemaError(f"{self.name}: no column {missing[0]!r}; it has {found}")

    def _csv(self) -> Iterator[Table]:
        size = max(self._path.stat().st_size, 1)
        numbers = _Lines(1 if self._map.names else 2)
        with self._path.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
            file.seek(0)
            plain = Salvaged(gzip.GzipFile(fileobj=file) if packed else file)
            try:
                reader = self._open_csv(Utf8(plain), numbers)
                self._want_columns(reader.schema.names)
                for batch in reader:
                    yield batch, numbers.take(batch.num_rows), min(file.tell() / size, 1.0)
            except HftError:
                if not plain.damage:
                    raise
            except (OSError, ValueError, KeyError) as error:
                # Arrow's own errors are ValueError and KeyError too
                plain.damage = plain.damage or error
        if plain.damage:
            self._damaged(f"line {numbers.given}", plain.damage, begun=bool(numbers.given))
        self._count("rows unreadable", len(numbers.skipped))

    def _damaged(self, after: str, error: Exception, *, begun: bool) -> None:
        if not self._repair or not begun:
            raise DataError(f"{self.name}: damaged after {after}: {error}") from error
        self._count("files damaged at the end")

    def _open_csv(self, file: Any, numbers: _Lines) -> Any:
        import pyarrow as pa
        from pyarrow import csv

        def on_invalid(row: Any) -> str:
            numbers.skipped.append(row.number)
            return "skip" if self._repair else "error"

        return csv.open_csv(
            file,
            read_options=csv.ReadOptions(
                block_size=BLOCK_BYTES, use_threads=False, column_names=self._map.names or None
            ),
            parse_options=csv.ParseOptions(
                delimiter=self._map.separator,
                invalid_row_handler=on_invalid,
                ignore_empty_lines=False,
            ),
            convert_options=csv.ConvertOptions(
                column_types=dict.fromkeys(self._wanted(), pa.binary()), strings_can_be_null=False
            ),
        )

    def _parquet(self) -> Iterator[Table]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        done = 0
        try:
            with pq.ParquetFile(self._path) as file:
                self._want_columns(file.schema_arrow.names)
                total = max(file.metadata.num_rows, 1)
                for batch in file.iter_batches(BATCH_ROWS, columns=self._wanted()):
                    lines = np.arange(done + 1, done + batch.num_rows + 1)
                    done += batch.num_rows
                    yield batch, lines, done / total
        except (pa.ArrowException, OSError) as error:
            self._damaged(f"row {done}", error, begun=done > 0)


class _Lines:
    """Line numbers of rows that come in order, some of them skipped."""

    def __init__(self, first: int) -> None:
        self.skipped: list[int] = []
        self.given = 0
        self._next = first

    def take(self, count: int) -> NDArray[np.int64]:
        lines = np.arange(self._next, self._next + count + len(self.skipped))
        lines = lines[~np.isin(lines, self.skipped)][:count]
        if count:
            self.given = int(lines[-1])
            self._next = self.given + 1
        return lines


def _arrow(mask: Bad) -> pa.Array:
    import pyarrow as pa

    return pa.array(mask)

"""The two forms a day takes on disk: Parquet to keep and exchange, raw rows to map into memory.

Parquet is zstd 3 over DELTA_BINARY_PACKED integer columns: 7 bytes a row on a crypto feed, 73 ns a
row to read. The raw form is Arrow IPC with one column of 64-byte values, which readers get as views
of the mapping, at memory speed. Trap: bodies written by pyarrow are 8-byte aligned, not 64, and
batches are not contiguous, so rows are handed out batch by batch.

Facts about the rows travel inside the file under the key `hft`: in Parquet's key-value metadata,
and in the raw form on an empty last batch, since the hash is only known once all rows are written.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from hft.data.parquet_file import open_parquet
from hft.errors import DataError, SchemaError
from hft.types import EVENT, InstrumentSpec, Kind

if TYPE_CHECKING:
    import pyarrow as pa

Events = NDArray[Any]

SCHEMA_VERSION = 1
KEY = b"hft"
ROW_GROUP = 1 << 20  # rows in a Parquet row group and in a raw batch
NAMES = tuple(EVENT.names or ())


class Meta(msgspec.Struct, frozen=True, kw_only=True):
    """What a file says about its rows."""

    schema: int = SCHEMA_VERSION
    spec: InstrumentSpec
    rows: int
    hash: str
    """BLAKE2b-128 of the 64-byte rows, so the same in both forms and for any chunking."""
    ts_first: int
    """Smallest `ts_recv`; of an empty file 0."""
    ts_last: int
    """Largest `ts_recv`."""
    parts: list[str] = []
    """Hash of each import that was merged into this day."""
    imported: dict[str, Any] = {}
    """Where the rows came from, what was counted and repaired, and the clock correction."""
    kinds: list[str] | None = None
    """Names of the kinds of rows there are, sorted; None in a file written before they were kept:
    see `kinds_in`."""
    split_rows: int | None = None
    """Rows seen by one side alone (reorder.py); None in a file written before they were counted."""


class RowHash:
    """BLAKE2b-128 over rows as they pass."""

    def __init__(self) -> None:
        self._state = hashlib.blake2b(digest_size=16)

    def add(self, events: Events) -> None:
        """Take the next rows in."""
        self._state.update(np.ascontiguousarray(events).view(np.uint8).data)

    def hex(self) -> str:
        """The hash of all rows so far."""
        return self._state.hexdigest()


class Form(Protocol):
    """A file being written: rows, then its facts."""

    def write(self, events: Events) -> None:
        """Append rows."""

    def finish(self, meta: Meta) -> None:
        """Add the facts, close, and wait until the bytes are on the disk."""

    def abandon(self) -> None:
        """Close without a care for what was written."""


class ParquetForm:
    """Writes one Parquet file; rows are buffered until a row group is full."""

    def __init__(self, path: Path) -> None:
        import pyarrow.parquet as pq

        self.path = path
        self._pending: list[Events] = []
        self._count = 0
        self._writer = pq.ParquetWriter(
            path,
            event_schema(),
            compression="zstd",
            compression_level=3,
            use_dictionary=False,
            column_encoding=dict.fromkeys(NAMES, "DELTA_BINARY_PACKED"),
            write_page_checksum=True,
        )

    def write(self, events: Events) -> None:
        """Append rows."""
        self._pending.append(events.copy())  # the caller may reuse its buffer
        self._count += len(events)
        if self._count >= ROW_GROUP:
            self._flush()

    def _flush(self) -> None:
        rows = np.concatenate(self._pending) if len(self._pending) > 1 else self._pending[0]
        self._writer.write_table(to_table(rows), row_group_size=ROW_GROUP)
        self._pending, self._count = [], 0

    def finish(self, meta: Meta) -> None:
        """Add the facts, close, and wait until the bytes are on the disk."""
        if self._count:
            self._flush()
        self._writer.add_key_value_metadata({KEY: msgspec.json.encode(meta)})
        self._writer.close()
        sync(self.path)

    def abandon(self) -> None:
        """Close without a care for what was written."""
        self._writer.close()


class RawForm:
    """Writes one Arrow IPC file of 64-byte rows."""

    def __init__(self, path: Path) -> None:
        import pyarrow as pa

        self.path = path
        self._schema = pa.schema([pa.field("event", pa.binary(EVENT.itemsize), nullable=False)])
        self._sink = pa.OSFile(str(path), "wb")
        self._writer = pa.ipc.new_file(self._sink, self._schema)
        self._closed = False

    def write(self, events: Events) -> None:
        """Append rows, in batches of at most ROW_GROUP."""
        for start in range(0, len(events), ROW_GROUP):
            self._writer.write_batch(self._batch(events[start : start + ROW_GROUP]))

    def _batch(self, events: Events) -> pa.RecordBatch:
        import pyarrow as pa

        body = pa.py_buffer(np.ascontiguousarray(events).view(np.uint8))
        column = pa.Array.from_buffers(self._schema[0].type, len(events), [None, body])
        return pa.record_batch([column], schema=self._schema)

    def finish(self, meta: Meta) -> None:
        """Add the facts, close, and wait until the bytes are on the disk."""
        facts = {KEY: msgspec.json.encode(meta)}
        self._writer.write_batch(self._batch(np.empty(0, EVENT)), custom_metadata=facts)
        self.abandon()
        sync(self.path)

    def abandon(self) -> None:
        """Close without a care for what was written."""
        if not self._closed:
            self._closed = True
            self._writer.close()
            self._sink.close()


def sync(path: Path) -> None:
    """Wait until a file's, or a folder's, bytes are on the disk."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def event_schema() -> pa.Schema:
    """EVENT's fields as Arrow columns."""
    import pyarrow as pa

    fields = [pa.field(n, pa.from_numpy_dtype(EVENT[n]), nullable=False) for n in NAMES]
    return pa.schema(fields)


def to_table(events: Events) -> pa.Table:
    """Rows as Arrow columns."""
    import pyarrow as pa

    columns = [pa.array(np.ascontiguousarray(events[name])) for name in NAMES]
    return pa.Table.from_arrays(columns, schema=event_schema())


def parquet_meta(path: Path) -> Meta | None:
    """The facts in a Parquet file; None if it is not one of ours."""
    with open_parquet(path) as file:
        raw = (file.metadata.metadata or {}).get(KEY)
    return None if raw is None else _decode_meta(raw, path)


def kind_names(present: NDArray[Any]) -> list[str]:
    """Sorted names of the kinds whose entry in `present`, (256,), is not zero."""
    known = {int(kind): kind.name for kind in Kind}
    return sorted(known.get(k, f"kind {k}") for k in np.flatnonzero(present).tolist())


def kinds_in(path: Path) -> list[str]:
    """Kinds of rows in a Parquet or raw file, found by reading one byte a row and no more."""
    present = np.zeros(256, bool)
    for kinds in _raw_kinds(path) if path.suffix == ".arrow" else _parquet_kinds(path):
        present[kinds] = True
    return kind_names(present)


def _raw_kinds(path: Path) -> Iterator[NDArray[np.uint8]]:
    return (rows["kind"] for rows in raw_chunks(path))


def _parquet_kinds(path: Path) -> Iterator[NDArray[np.uint8]]:
    with open_parquet(path) as file:
        _want_columns(file.schema_arrow, path)
        for group in range(file.num_row_groups):
            least, most = _range_of(file, group, "kind")
            if least == most:
                yield np.array([least], np.uint8)
            else:
                yield file.read_row_group(group, columns=["kind"]).column(0).to_numpy()


def parquet_chunks(
    path: Path,
    rows: int = ROW_GROUP,
    start: int | None = None,
    end: int | None = None,
    *,
    columns: tuple[str, ...] = NAMES,
    kinds: frozenset[int] | None = None,
) -> Iterator[Events]:
    """Rows of a Parquet file with EVENT's columns, skipping row groups that hold nothing wanted.

    Args:
        path: the file.
        rows: at most so many at a time.
        start: row groups wholly before are not read; rows are not cut.
        end: the same for those from here on.
        columns: fields to read; the rows have these alone.
        kinds: row groups without any of them are not read; rows are not cut.
    """
    import pyarrow as pa

    with open_parquet(path) as file:
        _want_columns(file.schema_arrow, path)
        groups = row_groups(file, start, end, kinds)
        try:
            for batch in file.iter_batches(rows, row_groups=groups, columns=list(columns)):
                yield from_batch(batch, columns)
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"{path}: damaged Parquet data: {error}") from error


def from_batch(batch: pa.RecordBatch, columns: tuple[str, ...] = NAMES) -> Events:
    """Arrow columns as rows."""
    layout = EVENT if columns == NAMES else np.dtype([(name, EVENT[name]) for name in columns])
    events = np.empty(batch.num_rows, layout)
    for name in columns:
        column = batch.column(name)
        if column.null_count:
            raise SchemaError(f"column {name} has {column.null_count} missing values, want none")
        events[name] = column.to_numpy(zero_copy_only=False)
    return events


def _want_columns(schema: pa.Schema, path: Path) -> None:
    for name in NAMES:
        at = schema.get_field_index(name)
        found = "no such column" if at < 0 else str(schema.field(at).type)
        wanted = str(event_schema().field(name).type)
        if found != wanted:
            raise SchemaError(
                f"{path}: column {name}: {found}, want {wanted}; other layouts come in through "
                "`hft data import parquet --map`"
            )


def row_groups(
    file: Any, start: int | None, end: int | None, kinds: frozenset[int] | None
) -> list[int]:
    """Row groups that may hold a row in [start, end) of one of `kinds`, by their statistics."""
    chosen = []
    for group in range(file.num_row_groups):
        first, last = _range_of(file, group, "ts_recv")
        least, most = _range_of(file, group, "kind")
        in_time = (end is None or first < end) and (start is None or last >= start)
        if in_time and (kinds is None or any(least <= kind <= most for kind in kinds)):
            chosen.append(group)
    return chosen


def _range_of(file: Any, group: int, name: str) -> tuple[float, float]:
    place = file.schema_arrow.get_field_index(name)  # others' files may have another order
    stats = file.metadata.row_group(group).column(place).statistics
    if stats is None or not stats.has_min_max:
        return -np.inf, np.inf
    return stats.min, stats.max


def raw_meta(path: Path) -> Meta:
    """The facts in a raw file."""
    with _mapped(path) as source:
        return _decode_meta(_raw_facts(_open_raw(source, path), path), path)


def raw_chunks(path: Path, rows: int = ROW_GROUP) -> Iterator[Events]:
    """Read-only views of a raw file's rows in the memory map; a view keeps the mapping alive."""
    reader = _open_raw(_mapped(path), path)
    for at in range(reader.num_record_batches):
        events = _mapped_rows(reader, at, path)
        for start in range(0, len(events), rows):
            yield events[start : start + rows]


def _mapped_rows(reader: Any, at: int, path: Path) -> Events:
    import pyarrow as pa

    try:
        column = reader.get_batch(at).column(0)
        if not len(column):
            return np.empty(0, EVENT)
        body = column.buffers()[1]
        return np.frombuffer(body, EVENT, len(column), column.offset * EVENT.itemsize)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DataError(f"{path}: damaged Arrow file: {error}") from error


def _mapped(path: Path) -> Any:
    import pyarrow as pa

    try:
        return pa.memory_map(str(path), "r")
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path}: cannot be mapped: {error}") from error


def _open_raw(source: Any, path: Path) -> Any:
    import pyarrow as pa

    try:
        reader = pa.ipc.open_file(source)
        layout = str(reader.schema.field(0).type)
    except (pa.ArrowException, OSError, IndexError) as error:
        raise DataError(f"{path}: not a whole Arrow IPC file: {error}") from error
    if layout != "fixed_size_binary[64]":
        raise SchemaError(f"{path}: column is {layout}, want fixed_size_binary[64]")
    return reader


def _raw_facts(reader: Any, path: Path) -> bytes:
    import pyarrow as pa

    last = reader.num_record_batches - 1
    try:
        facts = reader.get_batch_with_custom_metadata(last)[1] if last >= 0 else None
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path}: damaged Arrow file: {error}") from error
    if facts is None or KEY not in facts:
        raise SchemaError(f"{path}: an Arrow file without the facts of `Store.cache`")
    return bytes(facts[KEY])


def _decode_meta(raw: bytes, path: Path) -> Meta:
    try:
        meta = msgspec.json.decode(raw, type=Meta)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: damaged metadata: {error}") from error
    if meta.schema != SCHEMA_VERSION:
        raise SchemaError(f"{path}: schema version {meta.schema}, this hft reads {SCHEMA_VERSION}")
    return meta


def load_numpy(path: Path) -> NDArray[Any]:
    """The array of a `.npy`, mapped and not read, or `data` of a `.npz`."""
    if not path.is_file():
        raise DataError(f"{path}: no such file")
    try:
        return np.asarray(_load_npz(path) if path.suffix == ".npz" else np.load(path, "r"))
    except SchemaError:
        raise
    except Exception as error:  # zip, zlib and header parsers raise anything on damage
        raise DataError(f"{path}: not a whole NumPy file: {error}") from error


def _load_npz(path: Path) -> Any:
    with path.open("rb") as file:  # opened here, since NumPy leaves a damaged one open
        data = np.load(file)
        if isinstance(data, np.ndarray):
            return data
        if "data" not in data.files:
            raise SchemaError(f"{path}: holds {data.files}, want an array `data`")
        return data["data"]

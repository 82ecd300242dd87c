"""Data by path: a store folder, or one file of rows, behind the same few calls.

A file written by a store is trusted as its store would be. Any other file is checked as it is read,
and needs the instrument's facts given, since it holds none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import numpy as np

from hft.data import files
from hft.data.checks import Checker, Events
from hft.data.importing import Batch
from hft.data.reading import within
from hft.data.store import Store, Time, instant, unsaid
from hft.data.writing import DAY_NS, day_name
from hft.errors import ConfigError, DataError, SchemaError
from hft.types import EVENT, InstrumentSpec


class MarketData(Protocol):
    """What replay needs of data; `Store` and `FileData` have it."""

    def symbols(self) -> list[str]:
        """Names of all instruments, `SYMBOL.VENUE`."""

    def spec(self, name: str) -> InstrumentSpec:
        """Facts of an instrument."""

    def days(self, name: str) -> list[str]:
        """Dates there are rows for, in order."""

    def kinds(self, name: str, start: Time = None, end: Time = None) -> frozenset[str]:
        """Names of the kinds of rows there are."""

    def is_split(self, name: str, start: Time = None, end: Time = None) -> bool:
        """Whether there are rows seen by one side alone, or may be."""

    def cannot_tell(self, name: str, start: Time = None, end: Time = None) -> tuple[str, ...]:
        """What the data leave open, a sentence each."""

    def hash(self, name: str, start: Time = None, end: Time = None) -> str:
        """Hash of the content of [start, end)."""

    def read(self, name: str, start: Time = None, end: Time = None) -> Events:
        """All rows with `start <= ts_recv < end`."""

    def chunks(
        self, name: str, start: Time = None, end: Time = None, rows: int = files.ROW_GROUP
    ) -> Iterator[Events]:
        """The same, at most `rows` at a time."""


def open_data(
    path: str | Path, spec: InstrumentSpec | None = None, *, check: bool = True
) -> Store | FileData:
    """Open a store folder, or a `.npy`, `.npz`, `.parquet` or `.arrow` file of rows.

    Args:
        path: NumPy files hold EVENT rows, or hftbacktest's, which are converted on the way.
        spec: facts of the instrument, for a file that does not hold them.
        check: refuse bad rows of a file that no store wrote.

    Raises:
        DataError: no such path, or its content is not what its name says.
    """
    path = Path(path)
    if path.is_dir():
        store = Store(path, create=False)
        if not store.symbols():
            raise DataError(f"{path} holds no market data")
        return store
    if not path.exists():
        raise DataError(f"{path}: no such file or store folder")
    return FileData(path, spec, check=check)


class FileData:
    """One file of rows of one instrument."""

    def __init__(
        self, path: str | Path, spec: InstrumentSpec | None = None, *, check: bool = True
    ) -> None:
        self.path = Path(path)
        self._check = check
        self.meta = self._meta()
        known = self.meta.spec if self.meta else spec
        if known is None:
            raise DataError(
                f"{self.path} holds no facts about its instrument; give symbol, venue, tick and lot"
            )
        self._spec = known
        self._hash = self.meta.hash if self.meta else ""

    def __repr__(self) -> str:
        return f"FileData({str(self.path)!r})"

    def symbols(self) -> list[str]:
        """The one instrument's name."""
        return [self._spec.name]

    def spec(self, name: str) -> InstrumentSpec:
        """Facts of the instrument."""
        if name != self._spec.name:
            raise DataError(f"{self.path}: no instrument {name!r}; known: {self._spec.name}")
        return self._spec

    def days(self, name: str) -> list[str]:
        """Dates of `ts_recv` there are rows for, in order."""
        days: set[int] = set()
        for chunk in self.chunks(name):
            days.update(np.unique(chunk["ts_recv"] // DAY_NS).tolist())
        return [day_name(day) for day in sorted(days)]

    def kinds(self, name: str, start: Time = None, end: Time = None) -> frozenset[str]:
        """Names of the kinds of rows in the file, whatever the range."""
        self.spec(name)
        if self.meta is not None and self.meta.kinds is not None:
            return frozenset(self.meta.kinds)
        if self.path.suffix in (".parquet", ".arrow"):
            return frozenset(files.kinds_in(self.path))
        present = np.zeros(256, bool)
        for chunk in self.chunks(name):
            present[chunk["kind"]] = True
        return frozenset(files.kind_names(present))

    def is_split(self, name: str, start: Time = None, end: Time = None) -> bool:
        """Whether the file holds rows seen by one side alone, or may."""
        self.spec(name)
        return self.meta is None or self.meta.split_rows != 0

    def cannot_tell(self, name: str, start: Time = None, end: Time = None) -> tuple[str, ...]:
        """What the file's import said that its data leave open."""
        self.spec(name)
        return unsaid([self.meta.imported]) if self.meta is not None else ()

    def hash(self, name: str, start: Time = None, end: Time = None) -> str:
        """Hash of the file's rows and of the range; computed once if the file does not hold it."""
        self.spec(name)
        if not self._hash:
            row_hash = files.RowHash()
            for chunk in self.chunks(name):
                row_hash.add(chunk)
            self._hash = row_hash.hex()
        text = f"{self._hash}:{instant(start)}:{instant(end)}"
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    def read(self, name: str, start: Time = None, end: Time = None) -> Events:
        """All rows with `start <= ts_recv < end`, in memory."""
        chunks = list(self.chunks(name, start, end))
        return np.concatenate(chunks) if chunks else np.empty(0, EVENT)

    def chunks(
        self, name: str, start: Time = None, end: Time = None, rows: int = files.ROW_GROUP
    ) -> Iterator[Events]:
        """Rows with `start <= ts_recv < end`, at most `rows` at a time."""
        self.spec(name)
        if rows < 1:
            raise ConfigError(f"rows is {rows}, want at least 1")
        first, last = instant(start), instant(end)
        return within(self._checked(rows), first, last)

    def _meta(self) -> files.Meta | None:
        if self.path.suffix == ".parquet":
            return files.parquet_meta(self.path)
        if self.path.suffix == ".arrow":
            return files.raw_meta(self.path)
        if self.path.suffix not in (".npy", ".npz"):
            raise DataError(
                f"{self.path}: want a .npy, .npz, .parquet or .arrow file, or a store folder"
            )
        return None

    def _checked(self, rows: int) -> Iterator[Events]:
        trusted = self.meta is not None or not self._check
        checker = None if trusted else Checker(self._spec, source=str(self.path))
        for chunk in self._decoded(rows):
            if not len(chunk):
                continue
            if checker:
                checker.feed(chunk)
                checker.report().require()
            yield chunk

    def _decoded(self, rows: int) -> Iterator[Events]:
        if self.path.suffix == ".parquet":
            return files.parquet_chunks(self.path, rows)
        if self.path.suffix == ".arrow":
            return files.raw_chunks(self.path, rows)
        data = files.load_numpy(self.path)
        if data.dtype == EVENT:
            return (data[i : i + rows] for i in range(0, len(data), rows))
        if data.dtype.names is None:
            raise SchemaError(
                f"{self.path}: dtype {data.dtype}; want hft.EVENT rows, or hftbacktest's"
            )
        return _slices(self._converted(), rows)

    def _converted(self) -> Iterator[Batch]:
        from hft.adapters.hftbacktest import HftbacktestFile

        return HftbacktestFile(self.path, self._spec).batches()


def _slices(batches: Iterator[Batch], rows: int) -> Iterator[Events]:
    for batch in batches:
        for i in range(0, len(batch.events), rows):
            yield batch.events[i : i + rows]

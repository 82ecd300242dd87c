"""Rows on their way into a store, a file a day: whole or not at all."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count, pairwise
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from hft.data import files
from hft.data.checks import Events, as_events
from hft.data.files import Form, Meta, ParquetForm, RawForm, RowHash
from hft.data.repairs import in_order, unsplit
from hft.errors import DataError
from hft.types import SEEN_BY_BOTH, InstrumentSpec

DAY_NS = 86_400_000_000_000

_number = count()


class Target(Protocol):
    """What a writer must know of its store."""

    path: Path

    def file(self, name: str, day: str) -> Path:
        """Where a day's Parquet file lies."""

    def meta(self, name: str, day: str) -> Meta:
        """What one day's file says about itself."""


def day_name(day: int) -> str:
    """ISO date of a day counted from the epoch."""
    return str(np.datetime64(day, "D"))


class Writer:
    """Rows on their way into a store, a file a day; see `Store.writer`."""

    def __init__(
        self, store: Target, spec: InstrumentSpec, *, raw: bool, overwrite: bool, append: bool
    ) -> None:
        self.days: list[str] = []
        self.rows = 0
        self._store = store
        self._spec = spec
        self._raw = raw
        self._overwrite = overwrite
        self._append = append
        self._notes: dict[str, Any] = {}
        self._written: list[_Day] = []
        self._ts_max = 0
        self._last_day: int | None = None

    def note(self, **facts: Any) -> None:
        """Keep facts about the import in the metadata of every day."""
        self._notes.update(facts)

    def add(self, events: Events) -> None:
        """Append rows that were checked."""
        as_events(events)
        if not len(events):
            return
        # The venue's half of a split row may carry an older ts_recv: a day never goes back.
        seen = np.maximum.accumulate(np.maximum(events["ts_recv"], self._ts_max))
        self._ts_max = int(seen[-1])
        days = seen // DAY_NS
        cuts = [0, *(np.flatnonzero(np.diff(days)) + 1).tolist(), len(events)]
        for start, stop in pairwise(cuts):
            self._day(int(days[start])).add(events[start:stop])
        self.rows += len(events)

    def commit(self) -> None:
        """Give every day its name."""
        if self._written:
            self._written[-1].close()
        for day in self._written:
            day.finish(self._notes)
        if self._written:
            with _alone(self._store.file(self._spec.name, self.days[0]).parents[1]):
                for day in self._written:
                    self._still_as_it_was(day)
                for day in self._written:
                    day.publish()

    def _still_as_it_was(self, day: _Day) -> None:
        """Another process may have written the day since it was opened."""
        if self._overwrite or not day.path.exists():
            return
        if day.old is None:
            raise DataError(self._taken(day.path.parent.name[5:]))
        if files.parquet_meta(day.path) != day.old:
            raise DataError(f"{day.path}: another process changed the day: append once more")

    def _taken(self, day: str) -> str:
        return f"{self._store.path}: {self._spec.name} already has {day}; overwrite or append"

    def abandon(self) -> None:
        """Leave the store as it was."""
        for day in reversed(self._written):  # the first made the folders of the others
            day.abandon()

    def _day(self, day: int) -> _Day:
        if day != self._last_day:
            if self._written:
                self._written[-1].close()
            self._written.append(self._new(day_name(day)))  # Ctrl-C from here on leaves nothing
            self._written[-1].open()
            self._last_day = day
        return self._written[-1]

    def _new(self, day: str) -> _Day:
        path = self._store.file(self._spec.name, day)
        old = None
        if path.exists() and not self._overwrite:
            if not self._append:
                raise DataError(self._taken(day))
            old = self._store.meta(self._spec.name, day)
        self.days.append(day)
        return _Day(path, self._spec, old, raw=self._raw)


class _Day:
    """One day being written. Rows go straight to disk, but a day that is merged waits in memory."""

    def __init__(self, path: Path, spec: InstrumentSpec, old: Meta | None, *, raw: bool) -> None:
        self.path = path
        self._spec = spec
        self.old = old
        self._made: list[Path] = []
        self._forms: list[Form] = []
        self._names: list[tuple[Path, Path]] = []
        """Where a form is written, and what it will be called."""
        self._hash, self._new_hash = RowHash(), RowHash()
        self._rows, self._first, self._last = 0, np.iinfo(np.int64).max, 0
        self._kinds = np.zeros(256, bool)
        self._split = 0
        self._waiting: list[Events] = []
        self._facts: dict[str, Any] = {}
        for final in (path, path.with_suffix(".arrow"))[: 1 + raw]:
            unique = f"{os.getpid()}-{next(_number)}"  # a process may write a day twice at once
            self._names.append((final.with_name(f".{final.name}.{unique}.tmp"), final))

    def open(self) -> None:
        """Make the folders and begin the files."""
        _make_folders(self.path.parent, self._made)
        _sweep(self.path.parent)
        for temporary, final in self._names:
            form_of = ParquetForm if final == self.path else RawForm
            self._forms.append(_opened(form_of, temporary))

    def add(self, events: Events) -> None:
        if events["instrument"].any():
            events = events.copy()
            events["instrument"] = 0
        if self.old is None:
            self._put(events)
        else:
            self._new_hash.add(events)
            self._waiting.append(events.copy())

    def _put(self, events: Events) -> None:
        self._hash.add(events)
        self._rows += len(events)
        self._kinds[events["kind"]] = True
        self._split += int(np.count_nonzero(events["flags"] & SEEN_BY_BOTH != SEEN_BY_BOTH))
        self._first = min(self._first, int(events["ts_recv"].min()))
        self._last = max(self._last, int(events["ts_recv"].max()))
        for form in self._forms:
            form.write(events)

    def close(self) -> None:
        """Merge if the day existed: all rows are known now."""
        if self.old is not None:
            new = self._new_hash.hex()
            if new in self.old.parts:
                raise DataError(
                    f"{self.path}: these {sum(map(len, self._waiting)):,} rows are in it already"
                )
            chunks = [*files.parquet_chunks(self.path), *self._waiting]
            merged, self._facts["merged"] = merge(chunks)
            self._waiting = []
            self._put(merged)

    def finish(self, notes: dict[str, Any]) -> None:
        """Add the facts and wait for the disk; the names come after."""
        new = self._new_hash.hex() if self.old else self._hash.hex()
        before = self.old.parts if self.old else []
        imported = notes | self._facts
        if self.old:
            imported["before"] = self.old.imported
        meta = Meta(
            spec=self._spec,
            rows=self._rows,
            hash=self._hash.hex(),
            ts_first=self._first,
            ts_last=self._last,
            parts=[*before, new],
            imported=imported,
            kinds=files.kind_names(self._kinds),
            split_rows=self._split,
        )
        for form in self._forms:
            form.finish(meta)

    def publish(self) -> None:
        for temporary, final in self._names:
            os.replace(temporary, final)
        if len(self._names) == 1:
            self.path.with_suffix(".arrow").unlink(missing_ok=True)  # of the day that was replaced
        files.sync(self.path.parent)

    def abandon(self) -> None:
        for form in self._forms:
            form.abandon()
        for temporary, _ in self._names:
            temporary.unlink(missing_ok=True)
        for folder in reversed(self._made):
            with suppress(OSError):  # others write into it
                folder.rmdir()


def merge(chunks: list[Events]) -> tuple[Events, dict[str, int]]:
    """Rows of several feeds of one instrument in one order, by `ts_recv`, the earlier feed first.

    Two feeds rarely interleave on the venue's clock as they do on ours: late rows are split by
    side.
    """
    rows = unsplit(np.concatenate(chunks))
    return in_order(rows[np.argsort(rows["ts_recv"], kind="stable")])


def _make_folders(folder: Path, made: list[Path]) -> None:
    """Make a folder and those above it; `made` gets those that were not there."""
    missing = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for path in reversed(missing):
        made.append(path)
        path.mkdir(exist_ok=True)


def _opened(form_of: Callable[[Path], Form], path: Path) -> Form:
    """A file begun; the folder is made again if a writer that gave up took it away meanwhile."""
    for _ in range(9):
        with suppress(FileNotFoundError):
            return form_of(path)
        path.parent.mkdir(parents=True, exist_ok=True)
    return form_of(path)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Nobody else names days in an instrument's folder meanwhile."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _sweep(folder: Path) -> None:
    """Remove what a process that was killed left behind."""
    for path in folder.glob(".events.*.tmp"):
        pid = path.name.split(".")[-2].partition("-")[0]
        try:
            os.kill(int(pid), 0)
        except (ProcessLookupError, ValueError, OverflowError):
            path.unlink(missing_ok=True)
        except PermissionError:
            continue  # alive, of another user

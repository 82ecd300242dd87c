"""`hft check skew`: the features of a run, made once more the way training makes them.

A run's journal has a digest of every features row. Here the rows are made again from what the run
heard, by the code that makes datasets, and compared digest by digest. Where digests differ, values
are wanted: the run is repeated (a replay again, a live session from its journal) with its rows
kept, and those whose digest the journal has are the run's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hft import run_folder
from hft.features import as_words
from hft.journal import RecordKind

if TYPE_CHECKING:
    from hft.feeds import Feed
    from hft.plan import Plan

Int = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Rows = tuple[Int, Floats]

_BLOCK = 1 << 16


@dataclass(slots=True)
class SourceSkew:
    """One instrument's rows of one source."""

    instrument: str
    source: str
    names: tuple[str, ...]
    rows: int = 0
    """In the journal."""
    differ: int = 0
    """Rows whose bits are not those of training, and rows that only one side has."""
    first: str = ""
    """The first that differs, in words."""
    largest: Floats = field(default_factory=lambda: np.empty(0))
    """(k,) largest absolute difference a column over rows that both sides have."""
    unknown: int = 0
    """Rows whose digest in the journal is not of the run repeated: what they held is lost."""


@dataclass(frozen=True, slots=True)
class Skew:
    """What came of it."""

    run: Path
    sources: tuple[SourceSkew, ...]
    notes: tuple[str, ...]

    @property
    def differ(self) -> int:
        """Rows that differ, of all sources."""
        return sum(source.differ for source in self.sources)


def check_skew(folder: Path) -> Skew:
    """Compares a run's features with those that training would see.

    Raises:
        ConfigError: a run in progress, or code, bundle or data are not what the run used.
        DataError: not a run folder, or a file of it is damaged.
    """
    from hft.inference.dataset.command import heard
    from hft.live import verify

    run_folder.require_ended(folder)
    facts = verify.facts_of(folder)
    plan = verify.plan_of(folder, facts)
    live = (folder / run_folder.MARKET_FILE).is_file()
    notes = verify.changes(facts, plan, live)
    journal = verify.whole_records(run_folder.read_journal(folder), live)
    feeds, status = heard(plan), verify.status_of(folder)
    if status != "complete":
        notes.append(f"the run ended as {status}: compared up to there")
    sides = [
        _Side(plan, number, instrument, feed, folder if live else None, status == "complete")
        for number, source in enumerate(plan.sources)
        for instrument, feed in enumerate(feeds)
        if not source.features.reactive
    ]
    notes += [
        f"{source.name} is reactive: made of the book less what we took, which no data set has; "
        "not compared"
        for source in plan.sources
        if source.features.reactive
    ]
    for side in sides:
        side.compare_digests(journal)
    wrong = [side for side in sides if side.skew.differ]
    if wrong:
        joins = {(side.instrument, side.number): _Join(side, journal) for side in wrong}

        def kept(keys: Int, values: Floats) -> None:
            for key, rows in _by_source(plan, keys, values).items():
                if key in joins:
                    joins[key].run_has(*rows)

        verify.keep_rows_again(plan, folder, journal, kept)
        for join in joins.values():
            join.end()
    return Skew(folder, tuple(side.skew for side in sides), tuple(notes))


def digests(x: Floats) -> Int:
    """The core's digest of each row of doubles, (n,): `hft::digest`."""
    h = np.full(len(x), x.shape[1], np.uint64)
    bits = np.ascontiguousarray(x, np.float64).view(np.uint64)
    with np.errstate(over="ignore"):
        for column in range(x.shape[1]):
            h = (h ^ bits[:, column]) * np.uint64(0xFF51AFD7ED558CCD)
            h ^= h >> np.uint64(32)
    return h.view(np.int64)


@dataclass(slots=True)
class _Side:
    """A source's rows as training makes them."""

    plan: Plan
    number: int
    instrument: int
    feed: Feed
    folder: Path | None
    """Of a live run, whose rows are the market as it heard it."""
    is_whole: bool
    skew: SourceSkew = field(init=False)

    def __post_init__(self) -> None:
        source = self.plan.sources[self.number]
        self.skew = SourceSkew(self.feed.spec.name, source.name, source.features.names)
        self.skew.largest = np.zeros(len(self.skew.names))

    def made(self) -> Iterator[Rows]:
        """Rows block by block."""
        from hft import _core

        source = self.plan.sources[self.number]
        for chunks in self._chunks():
            stream = _core.FeatureStream(*source.features.to_core())
            for chunk in chunks:
                if len(chunk):
                    yield stream.feed(as_words(chunk))

    def _chunks(self) -> Iterator[Iterator[npt.NDArray[Any]]]:
        if self.folder is not None:
            yield self._market(self.folder)
        elif self.plan.recipe.engine.overnight == "flatten":
            for day in self.feed.days.names():
                yield self.feed.days.chunks(day)
        else:
            yield self.feed.chunks()

    def _market(self, folder: Path) -> Iterator[npt.NDArray[Any]]:
        rows = run_folder.read_market(folder)
        for start in range(0, len(rows), _BLOCK):
            block = rows[start : start + _BLOCK]
            yield block[block["instrument"] == self.instrument]

    def told(self, journal: npt.NDArray[Any]) -> tuple[Int, Int]:
        """When the engine made each row, and its digest."""
        ts, digest = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for start in range(0, len(journal), _BLOCK):  # a long run's journal is larger than memory
            block = journal[start : start + _BLOCK]
            mine = (block["kind"] == RecordKind.ROW) & (block["b"] == self.number)
            mine &= block["instrument"] == self.instrument
            ts.append(block["ts"][mine])
            digest.append(block["a"][mine])
        return np.concatenate(ts), np.concatenate(digest)

    def compare_digests(self, journal: npt.NDArray[Any]) -> None:
        """Row by row, in order."""
        told_ts, told = self.told(journal)
        skew, at, last = self.skew, 0, 0
        skew.rows = len(told)
        for ts, x in self.made():
            n = min(len(ts), len(told) - at)
            wrong = np.flatnonzero(digests(x[:n]) != told[at : at + n])
            if len(wrong) and not skew.first:
                row = at + int(wrong[0])
                skew.first = f"row {row:,} of the run, at {int(told_ts[row])}"
            skew.differ += len(wrong)
            if n < len(ts) and self.is_whole:
                skew.differ += len(ts) - n
                skew.first = skew.first or f"training has a row at {int(ts[n])}, the run has none"
            at, last = at + n, int(ts[-1]) if len(ts) else last
        if at < len(told):
            # A clock goes on to the end of the run, a feed ends with its last packet.
            beyond = told_ts[at:] > last if self.is_clocked else np.zeros(len(told) - at, bool)
            extra = int((~beyond).sum())
            skew.differ += extra
            if extra and not skew.first:
                skew.first = f"the run has a row at {int(told_ts[at])}, training has none"

    @property
    def is_clocked(self) -> bool:
        """Its rows come by the clock, which goes on when the feed has ended."""
        return self.plan.sources[self.number].features.trigger.kind == "clock"


class _Join:
    """The run's rows beside training's, by time; both come in order, block by block.

    Rows of the run have a last column of their own: 1 where the journal has another digest.
    """

    def __init__(self, side: _Side, journal: npt.NDArray[Any]) -> None:
        self._side, self._told = side, side.told(journal)[1]
        width = len(side.skew.names)
        self._made = _spooled(side.made(), width)
        self._at = 0
        self._ours: Rows = np.empty(0, np.int64), np.empty((0, width + 1))
        self._theirs: Rows = np.empty(0, np.int64), np.empty((0, width))
        self._last_ours = self._last_theirs = np.iinfo(np.int64).min
        self._differ = 0

    def run_has(self, ts: Int, x: Floats) -> None:
        """The next rows of the run repeated; of one that was cut short, those it had."""
        told = self._told[self._at : self._at + len(ts)]
        self._at += len(ts)
        ts, x = ts[: len(told)], x[: len(told)]
        if not len(ts):
            return
        strange = digests(x) != told
        self._side.skew.unknown += int(strange.sum())
        self._ours = _then(self._ours, (ts, np.column_stack([x, strange])))
        self._last_ours = int(ts[-1])
        self._settle(self._last_ours)

    def end(self) -> None:
        """There are no more."""
        self._settle(self._last_ours + 1)
        left = len(self._theirs[0]) + sum(len(ts) for ts, _ in self._made)
        self._side.skew.differ = self._differ + (left if self._side.is_whole else 0)

    def _settle(self, until: int) -> None:
        """Compares all rows before `until`; at that instant more may come."""
        while self._last_theirs < until:
            block = next(self._made, None)
            if block is None:
                break
            if len(block[0]):
                self._theirs = _then(self._theirs, block)
                self._last_theirs = int(block[0][-1])
        ours, self._ours = _cut(self._ours, until)
        theirs, self._theirs = _cut(self._theirs, until)
        _, i, j = np.intersect1d(
            _keys(ours[0]), _keys(theirs[0]), assume_unique=True, return_indices=True
        )
        run, training = ours[1][i], theirs[1][j]
        unlike = (run[:, :-1].view(np.int64) != training.view(np.int64)).any(axis=1)
        self._differ += int((unlike | (run[:, -1] > 0)).sum())
        self._differ += len(theirs[0]) - len(j)
        alone = np.delete(ours[0], i)
        self._differ += len(alone) if not self._side.is_clocked else self._before_the_end(alone)
        if len(i):
            off = np.abs(run[:, :-1] - training).max(axis=0)
            self._side.skew.largest = np.maximum(self._side.skew.largest, off)

    def _before_the_end(self, ts: Int) -> int:
        """How many of these are no strikes of a clock after the feed's last packet."""
        return int((ts <= self._last_theirs).sum())


def _spooled(blocks: Iterator[Rows], width: int) -> Iterator[Rows]:
    """The same rows from a file, all made now.

    An own feature that looks at what the strategy left lying about would see it here too, were it
    called while the run is repeated.
    """
    from tempfile import TemporaryFile

    file = TemporaryFile()  # noqa: SIM115 - lives as long as the generator below
    for ts, x in blocks:
        file.write(np.column_stack([ts.view(np.float64), x]).tobytes())
    file.flush()
    return _read_back(file, width + 1)


def _read_back(file: Any, width: int) -> Iterator[Rows]:
    with file:
        file.seek(0)
        while text := file.read(_BLOCK * width * 8):
            words = np.frombuffer(text, np.float64).reshape(-1, width)
            yield words[:, 0].copy().view(np.int64), words[:, 1:].copy()


def _by_source(plan: Plan, keys: Int, values: Floats) -> dict[tuple[int, int], Rows]:
    """Kept rows by instrument and source."""
    width = np.array([len(source.features) for source in plan.sources])[keys[:, 2]]
    start = np.cumsum(width) - width
    found = {}
    for instrument, number in np.unique(keys[:, 1:], axis=0).tolist():
        mine = np.flatnonzero((keys[:, 1] == instrument) & (keys[:, 2] == number))
        columns = np.arange(len(plan.sources[number].features))
        x = values[start[mine][:, None] + columns]
        found[instrument, number] = (keys[mine, 0], x)
    return found


def _then(rows: Rows, more: Rows) -> Rows:
    return np.concatenate([rows[0], more[0]]), np.concatenate([rows[1], more[1]])


def _cut(rows: Rows, until: int) -> tuple[Rows, Rows]:
    n = int(np.searchsorted(rows[0], until))
    return (rows[0][:n], rows[1][:n]), (rows[0][n:], rows[1][n:])


def _keys(ts: Int) -> npt.NDArray[Any]:
    """Each row's time and which of that instant it is, as one value to match by."""
    nth = np.arange(len(ts)) - np.searchsorted(ts, ts)
    keys = np.empty(len(ts), [("ts", "<i8"), ("nth", "<i8")])
    keys["ts"], keys["nth"] = ts, nth
    return keys

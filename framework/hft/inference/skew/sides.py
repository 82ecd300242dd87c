"""Rows of one source as training makes them, against the digests that a run's journal has."""

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

BLOCK = 1 << 16


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
class Side:
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
        for start in range(0, len(rows), BLOCK):
            block = rows[start : start + BLOCK]
            yield block[block["instrument"] == self.instrument]

    def told(self, journal: npt.NDArray[Any]) -> tuple[Int, Int]:
        """When the engine made each row, and its digest."""
        ts, digest = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for start in range(0, len(journal), BLOCK):  # a long run's journal is larger than memory
            block = journal[start : start + BLOCK]
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

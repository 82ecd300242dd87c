"""Training rows in memory: of events, or of a dataset that `hft dataset` wrote.

Both come from one extractor (extract.py), so both have the same features and the same labels.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from hft.errors import DataError
from hft.features import Features
from hft.inference.card import TrailingEntry
from hft.inference.dataset.extract import LONGEST_ROW_NS, Block, Extractor, Wanted
from hft.inference.dataset.label_latency import constant
from hft.inference.dataset.splitting import PARTS, Cuts, Part
from hft.inference.dataset.trailing import Trailed

Int = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
SECOND_NS = 1_000_000_000
STORM = 2.0
"""A second is a storm with more than so many times the median number of events."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Labelled rows of one instrument, in order."""

    ts: Int
    """(n,) our clock [ns]."""
    x: Floats
    """(n, k), unscaled."""
    moves: dict[int, Floats]
    """By horizon [ns]: (n,) of the mid [ticks]; NaN: not known."""
    label_end: Int
    """(n,) where the longest label ends [ns]."""
    alive_ns: Int
    """(n,) how long each was the newest."""
    stretch: Int
    """(n,) of trading without a break, ascending."""
    storm: npt.NDArray[np.bool_]
    """(n,) for reports only: a storm is known when the data are over."""
    sha256: str
    """Of the events."""
    trailed: Trailed | None = None
    """What a model that trails scales `x` by; None: it does not, or `x` is in its terms already."""
    memory: Int | None = None
    """(n,) ascending: rows of one number are remembered together, a run's models forget between
    two. None: all are."""

    def __len__(self) -> int:
        return len(self.ts)

    @property
    def weight(self) -> Floats:
        """How long each was the newest, with mean 1.

        Without weights the many rows of a storm, where the signal is faint, drown those of the
        calm.
        """
        alive = np.maximum(self.alive_ns.astype(np.float64), 1.0)
        return np.asarray(alive / alive.mean())

    def pieces(self, start: int, stop: int) -> list[slice]:
        """Rows [start, stop) cut wherever a run's models forget."""
        if self.memory is None or stop <= start:
            return [slice(start, stop)]
        edges = np.flatnonzero(np.diff(self.memory[start:stop])) + 1 + start
        bounds = [start, *edges.tolist(), stop]
        return [slice(a, b) for a, b in pairwise(bounds)]

    def since_fresh(self) -> Int:
        """How many rows lie between each and where a run's models last forgot, (n,)."""
        if self.memory is None:
            return np.arange(len(self))
        return rows_behind(self.memory)

    def require_horizons(self, horizons_ns: Iterable[int]) -> None:
        """Refuses rows that lack a horizon.

        Raises:
            DataError: names it.
        """
        missing = sorted(set(horizons_ns) - set(self.moves))
        if missing:
            raise DataError(f"rows have labels of {sorted(self.moves)} ns, not of {missing}")


def collect(
    days: Iterable[Iterable[npt.NDArray[Any]]],
    features: Features,
    *,
    latency_ns: int,
    horizons_ns: tuple[int, ...],
    longest_row_ns: int = LONGEST_ROW_NS,
    trailing: TrailingEntry | None = None,
) -> Rows:
    """Runs one instrument's events through the core.

    Args:
        days: chunks of each run; most have one, days apart one each.
        features: columns.
        latency_ns: from a row to the earliest trade on it.
        horizons_ns: from there to where its labels end.
        longest_row_ns: a row that stays the newest for longer weighs no more.
        trailing: scales that trail, too.

    Raises:
        DataError: too little data for a single row.
    """
    wanted = Wanted(features, constant(latency_ns), horizons_ns, longest_row_ns=longest_row_ns)
    extractor, seconds, digest = Extractor(wanted, trailing), Seconds(), hashlib.sha256()
    blocks: list[Block] = []
    for number, chunks in enumerate(days):
        if number:
            blocks.append(extractor.new_day())
        for chunk in chunks:
            digest.update(np.ascontiguousarray(chunk).data)
            seconds.add(chunk)
            blocks.append(extractor.feed(chunk))
    blocks.append(extractor.rest())
    require_any(sum(map(len, blocks)))
    ts = np.concatenate([b.ts for b in blocks])
    latency = np.concatenate([b.latency_ns for b in blocks])
    move = np.concatenate([b.labels.move for b in blocks])
    stretch = np.concatenate([b.labels.stretch for b in blocks])
    return Rows(
        ts,
        np.concatenate([b.x for b in blocks]),
        {horizon_ns: move[:, h] for h, horizon_ns in enumerate(horizons_ns)},
        ts + latency + max(horizons_ns),
        np.concatenate([b.alive_ns for b in blocks]),
        stretch,
        seconds.stormy(ts),
        digest.hexdigest(),
        _trailed(extractor, np.concatenate([b.period for b in blocks])),
        memories(np.array(extractor.stretches.fresh), stretch),
    )


def _trailed(extractor: Extractor, period: Int) -> Trailed | None:
    if extractor.trailing is None:
        return None
    made = extractor.trailing.estimates()
    return Trailed(extractor.trailing.rule, period, made.mean, made.scale)


def rows_behind(number: Int) -> Int:
    """How many rows of the same number lie directly before each, (n,)."""
    edges = np.flatnonzero(np.diff(number, prepend=number[:1] - 1))
    first = np.repeat(edges, np.diff(np.append(edges, len(number))))
    return np.asarray(np.arange(len(number)) - first)


def memories(fresh: npt.NDArray[np.bool_], stretch: Int) -> Int:
    """Of rows in these stretches, (n,): a number that grows where a stretch begins afresh."""
    return np.asarray(np.cumsum(fresh)[stretch])


def require_any(rows: int) -> None:
    """Refuses data that gave nothing.

    Raises:
        DataError: no row.
    """
    if not rows:
        raise DataError(
            "the data gives no features row: too short, its book never became live, or its market "
            "never open"
        )


@dataclass(slots=True)
class Seconds:
    """Events by second, to tell storms from calm."""

    _second: Int = field(default_factory=lambda: np.empty(0, np.int64))
    """Ascending, those with events."""
    _count: Int = field(default_factory=lambda: np.empty(0, np.int64))
    _parts: list[tuple[Int, Int]] = field(default_factory=list)
    """Of chunks since; the last second of one may be the first of the next."""

    def add(self, events: npt.NDArray[Any]) -> None:
        """EVENT rows."""
        self._parts.append(np.unique(events["ts_recv"] // SECOND_NS, return_counts=True))

    def stormy(self, ts: Int) -> npt.NDArray[np.bool_]:
        """Whether each time lies in a storm, (n,); seconds without events are not counted."""
        self._sum_up()
        storm = self._count > STORM * np.median(self._count)
        second = ts // SECOND_NS
        at = np.minimum(np.searchsorted(self._second, second), len(self._second) - 1)
        return np.asarray(storm[at] & (self._second[at] == second))

    def _sum_up(self) -> None:
        if not self._parts:
            return
        parts = [(self._second, self._count), *self._parts]
        self._second, place = np.unique(np.concatenate([s for s, _ in parts]), return_inverse=True)
        self._count = np.zeros(len(self._second), np.int64)
        np.add.at(self._count, place, np.concatenate([c for _, c in parts]))
        self._parts = []


@dataclass(frozen=True, slots=True)
class Split:
    """Row ranges in time order; what lies between two of them is purged or embargoed."""

    train: slice
    calibrate: slice
    test: slice


def split(rows: Rows, cuts: Cuts) -> Split:
    """Slices of the last fold.

    Raises:
        DataError: too few labelled rows.
    """
    known = ~np.isnan(np.stack(list(rows.moves.values()))).all(axis=0)
    if not known.any():
        raise DataError(f"none of {len(rows)} rows has a label: the data are too short")
    spans = spans_of(rows.ts[known], rows.stretch[known])
    parts = cuts.by_time(spans)[-1]
    slices = [_slice(rows, part) for part in parts]
    for part, found in zip(parts, slices, strict=True):
        if found.stop <= found.start:
            raise DataError(
                f"{known.sum()} labelled rows over {sum(b - a for a, b in spans) / 1e9:.0f} s are "
                f"too few to split: {part.name} has none after purge and embargo"
            )
    return Split(*slices)


def spans_of(ts: Int, stretch: Int) -> list[tuple[int, int]]:
    """First and last of these rows in each stretch."""
    first = np.flatnonzero(np.diff(stretch, prepend=-1))
    last = np.append(first[1:], len(ts)) - 1
    return list(zip(ts[first].tolist(), ts[last].tolist(), strict=True))


def _slice(rows: Rows, part: Part) -> slice:
    start, stop = np.searchsorted(rows.ts, [part.start_ts, part.end_ts]).tolist()
    late = np.flatnonzero(rows.label_end[start:stop] > part.labels_by_ts)
    return slice(start, start + int(late[0]) if len(late) else stop)


def joined(parts: dict[str, Rows]) -> tuple[Rows, Split]:
    """Parts of a dataset as rows that follow each other, and where each lies."""
    rows = [parts[name] for name in PARTS]
    ends = np.cumsum([len(part) for part in rows]).tolist()
    whole = replace(
        rows[0],
        ts=np.concatenate([r.ts for r in rows]),
        x=np.concatenate([r.x for r in rows]),
        moves={h: np.concatenate([r.moves[h] for r in rows]) for h in rows[0].moves},
        label_end=np.concatenate([r.label_end for r in rows]),
        alive_ns=np.concatenate([r.alive_ns for r in rows]),
        stretch=np.concatenate([r.stretch for r in rows]),
        storm=np.concatenate([r.storm for r in rows]),
        memory=np.concatenate([_remembered(r) for r in rows]),
        trailed=_joined_trailed(rows),
    )
    starts = [0, *ends[:-1]]
    return whole, Split(*(slice(a, b) for a, b in zip(starts, ends, strict=True)))


def _joined_trailed(rows: list[Rows]) -> Trailed | None:
    """The parts have the same estimates."""
    trailed = [r.trailed for r in rows if r.trailed is not None]
    if not trailed:
        return None
    return replace(trailed[0], period=np.concatenate([t.period for t in trailed]))


def _remembered(rows: Rows) -> Int:
    return np.zeros(len(rows), np.int64) if rows.memory is None else rows.memory

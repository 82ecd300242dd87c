"""From events to labelled rows, chunk by chunk: what training holds in memory and a dataset writes.

Rows are the engine's own (`_core.FeatureStream`), labels those of moves.py. A row leaves when no
later data can change its labels, so memory is bounded by the longest label and one chunk.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from hft.features import Features, as_words, depth_lots
from hft.inference.card import TrailingEntry
from hft.inference.dataset.label_latency import LabelLatency
from hft.inference.dataset.moves import LabelMaker, Labels
from hft.inference.dataset.stretches import Stretches
from hft.inference.dataset.trailing import Trailing

Int = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
LONGEST_ROW_NS = 50_000_000
ONE_SIDED_NS = 1_000_000_000
PAUSE_NS = 300_000_000_000
OF_LEVELS = ("depth_lots", "level_distance", "order_count")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is made of a feed."""

    features: Features
    latency: LabelLatency
    horizons_ns: tuple[int, ...]
    one_sided_ns: int = ONE_SIDED_NS
    """How long a missing side is bridged."""
    pause_ns: int = PAUSE_NS
    """A feed that is silent for longer breaks the stretch."""
    longest_row_ns: int = LONGEST_ROW_NS
    """A row that stays the newest for longer weighs no more."""

    @property
    def levels(self) -> tuple[int, int]:
        """The deepest level of bids and of asks that a column reads by itself, 0: none."""
        used = [f for f in self.features if f.kind in OF_LEVELS]
        bid, ask = (max((f.levels for f in used if f.side == s), default=0) for s in (1, -1))
        return bid, ask


@dataclass(frozen=True, slots=True)
class Block:
    """Rows in order that have their labels."""

    ts: Int
    """(n,) our clock [ns]."""
    x: Floats
    """(n, k), unscaled."""
    latency_ns: Int
    alive_ns: Int
    """(n,) how long each was the newest, `longest_row_ns` at most."""
    labels: Labels
    number: Int
    """(n,) place in its stretch, from 0."""
    filled: npt.NDArray[np.bool_]
    """(n,) repeats the row before: a clock struck while a side was missing."""
    period: Int
    """(n,) number of the trailing estimate that holds; -1: none yet, or none are made."""
    levels: npt.NDArray[np.uint8]
    """(n, 2) levels there were of bids and asks, as far down as a column reads."""

    def __len__(self) -> int:
        return len(self.ts)


@dataclass(slots=True)
class _Waiting:
    ts: Int
    x: Floats
    filled: npt.NDArray[np.bool_]
    period: Int

    def __len__(self) -> int:
        return len(self.ts)

    def cut(self, start: int, stop: int) -> _Waiting:
        s = slice(start, stop)
        return _Waiting(self.ts[s], self.x[s], self.filled[s], self.period[s])

    def where(self, kept: npt.NDArray[np.bool_]) -> _Waiting:
        return _Waiting(self.ts[kept], self.x[kept], self.filled[kept], self.period[kept])

    def then(self, other: _Waiting) -> _Waiting:
        return _Waiting(
            np.concatenate([self.ts, other.ts]),
            np.concatenate([self.x, other.x]),
            np.concatenate([self.filled, other.filled]),
            np.concatenate([self.period, other.period]),
        )


@dataclass(slots=True)
class Extractor:
    """Rows of one instrument."""

    wanted: Wanted
    rule: TrailingEntry | None = None
    """Of trailing scales; None: none are made."""
    outside: int = 0
    """Rows made while no stretch lasted: left out."""
    labels: LabelMaker = field(init=False)
    trailing: Trailing | None = None
    """Of all rows that a run makes, outside of stretches too."""
    _stream: Any = None
    _waiting: _Waiting = field(init=False)
    _newest: _Waiting = field(init=False)
    """The last row of all, or none."""
    _last: tuple[int, int] = (-1, -1)
    """Stretch and place of the last row that left."""

    def __post_init__(self) -> None:
        stretches = Stretches(self.wanted.pause_ns, self.wanted.one_sided_ns)
        self.labels = LabelMaker(self.wanted.horizons_ns, stretches)
        width = len(self._columns())
        if self.rule is not None:
            self.trailing = Trailing(self.rule, len(self.wanted.features))
        none = np.empty(0, np.int64)
        nothing = _Waiting(none, np.empty((0, width)), np.empty(0, bool), none)
        self._waiting = self._newest = nothing

    @property
    def stretches(self) -> Stretches:
        """Found so far."""
        return self.labels.stretches

    def feed(self, events: npt.NDArray[Any]) -> Block:
        """The rows whose labels these events decide."""
        from hft import _core

        if self._stream is None:
            specs, trigger = self._columns().to_core()
            self._stream = _core.FeatureStream(specs, trigger)
        self.labels.feed(events)
        ts, x = self._stream.feed(as_words(events))
        self._take(_Waiting(ts, x, np.zeros(len(ts), bool), self._scaled_by(ts, x)))
        return self._leave(self._ready())

    def new_day(self) -> Block:
        """The next rows are of another day, with a book of its own; gives those of this one."""
        last = self.stretches.last_ts
        if last is not None:
            assert self.stretches.last_event is not None
            self.stretches.end(last + 1, self.stretches.last_event + 1, "day")
        block = self.rest()
        self._stream = None
        if self.trailing is not None:
            self.trailing.restart()
        self.labels.new_book()
        self._newest = self._newest.cut(0, 0)
        return block

    def _scaled_by(self, ts: Int, x: Floats) -> Int:
        if self.trailing is None:
            return np.full(len(ts), -1)
        return self.trailing.feed(ts, x[:, : self.trailing.columns])

    def rest(self) -> Block:
        """The rows left at the end of the data; labels that reach beyond it are not known."""
        return self._leave(len(self._waiting))

    def _columns(self) -> Features:
        """The features, and below them the levels that tell how deep the book is."""
        bid, ask = self.wanted.levels
        sides = [(1, n) for n in range(1, bid + 1)] + [(-1, n) for n in range(1, ask + 1)]
        depth = [depth_lots(side, n).named(f"_{side + 1}_{n}") for side, n in sides]
        features = self.wanted.features
        return Features(*features, *depth, trigger=features.trigger)

    def _take(self, rows: _Waiting) -> None:
        if self.wanted.features.trigger.kind == "clock":
            rows = self._filled(rows)
        if len(rows):
            self._newest = rows.cut(len(rows) - 1, len(rows))
        self._waiting = self._waiting.then(rows)

    def _filled(self, rows: _Waiting) -> _Waiting:
        """Repeats a row wherever the clock struck in its stretch and made none."""
        every = self.wanted.features.trigger.interval_ns
        rows = self._newest.then(rows)
        if not len(rows):
            return rows
        stretch = self.stretches.of(rows.ts)
        ends, last = self.stretches.ends_of(stretch), self.stretches.last_ts
        assert last is not None
        # The core makes the row of an instant when a later packet comes.
        until = np.minimum(np.append(rows.ts[1:], last), ends)
        missing = np.where(stretch >= 0, (until - 1 - rows.ts) // every, 0)
        times = 1 + np.maximum(missing, 0)
        source = np.repeat(np.arange(len(rows)), times)
        step = np.arange(len(source)) - np.repeat(np.cumsum(times) - times, times)
        made = _Waiting(
            rows.ts[source] + step * every,
            rows.x[source],
            rows.filled[source] | (step > 0),
            rows.period[source],
        )
        return made.cut(len(self._newest), len(made))

    def _ready(self) -> int:
        waiting, last = self._waiting, self.stretches.last_ts
        if not len(waiting) or last is None:
            return 0
        ready = self.labels.ready(waiting.ts, self.wanted.latency.of(waiting.ts))
        ready = min(ready, int(np.searchsorted(waiting.ts, last)))  # of that instant more may come
        followed = last - int(waiting.ts[-1]) > self.wanted.longest_row_ns
        return ready if followed else min(ready, len(waiting) - 1)

    def _leave(self, n: int) -> Block:
        rows, after = self._waiting.cut(0, n), self._waiting.cut(n, n + 1)
        self._waiting = self._waiting.cut(n, len(self._waiting))
        inside = self.stretches.of(rows.ts) >= 0
        self.outside += int((~inside).sum())
        alive_ns, rows = self._alive(rows.ts, after.ts)[inside], rows.where(inside)
        latency_ns = self.wanted.latency.of(rows.ts)
        labels = self.labels.label(rows.ts, latency_ns)
        if len(self._waiting):
            self.labels.forget(int(self._waiting.ts[0]))
        elif self.stretches.last_ts is not None:
            self.labels.forget(self.stretches.last_ts)
        k = len(self.wanted.features)
        return Block(
            rows.ts,
            rows.x[:, :k],
            latency_ns,
            alive_ns,
            labels,
            self._numbered(labels.stretch),
            rows.filled,
            rows.period,
            self._levels(rows.x[:, k:]),
        )

    def _alive(self, ts: Int, after: Int) -> Int:
        if not len(ts):
            return ts
        longest = self.wanted.longest_row_ns
        later = np.append(ts[1:], after if len(after) else ts[-1:] + longest)
        until = np.minimum(later, self.stretches.ends_of(self.stretches.of(ts)))
        return np.minimum(until - ts, longest)

    def _numbered(self, stretch: Int) -> Int:
        if not len(stretch):
            return stretch
        first = np.searchsorted(stretch, stretch)
        number = np.arange(len(stretch)) - first
        number[stretch == self._last[0]] += self._last[1] + 1
        self._last = int(stretch[-1]), int(number[-1])
        return number

    def _levels(self, lots: Floats) -> npt.NDArray[np.uint8]:
        bid, _ = self.wanted.levels
        there = lots > 0
        sides = [np.cumprod(side, axis=1).sum(axis=1) for side in (there[:, :bid], there[:, bid:])]
        return np.stack(sides, axis=1).astype(np.uint8)

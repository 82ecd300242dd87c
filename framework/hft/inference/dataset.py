"""From events to training rows: the engine's own features, and the moves that came after them.

Nothing here looks ahead except the label, which starts where an order sent at the row's time could
trade at the earliest (`latency_ns` later) and ends `horizon_ns` after that.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hft.errors import DataError
from hft.features import Features, OnTouch, as_words, mid

Floats = npt.NDArray[np.float64]
SECOND_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Rows:
    """Features rows of one instrument, in order, and its mid for labels."""

    ts: npt.NDArray[np.int64]
    """(n,) our clock [ns]."""
    x: Floats
    """(n, k), unscaled."""
    mid_ts: npt.NDArray[np.int64]
    """(m,) when the touch changed [ns]."""
    mids: Floats
    """(m,) [ticks]."""
    storm: npt.NDArray[np.bool_]
    """(n,) the row's second had more than twice the median number of events; for reports only."""
    sha256: str
    """Of the events."""

    def __len__(self) -> int:
        return len(self.ts)

    def between(self, start: int, stop: int) -> Rows:
        """Rows [start, stop); the mid stays whole."""
        s = slice(start, stop)
        return Rows(self.ts[s], self.x[s], self.mid_ts, self.mids, self.storm[s], self.sha256)


def collect(chunks: Iterable[npt.NDArray[Any]], features: Features) -> Rows:
    """Runs chunks of one instrument's events through the core.

    Raises:
        DataError: too little data for a single row.
    """
    from hft import _core

    rows = _core.FeatureStream(*features.to_core())
    touch = _core.FeatureStream(*Features(mid(), trigger=OnTouch()).to_core())
    digest = hashlib.sha256()
    made, mids, seconds = [], [], []
    for chunk in chunks:
        words = as_words(chunk)
        digest.update(words.data)
        made.append(rows.feed(words))
        mids.append(touch.feed(words))
        seconds.append(np.unique(chunk["ts_recv"] // SECOND_NS, return_counts=True))
    if not sum(len(ts) for ts, _ in made):
        raise DataError("the data gives no features row: too short, or its book never became live")
    ts, x = (np.concatenate(part) for part in zip(*made, strict=True))
    mid_ts, mid_rows = (np.concatenate(part) for part in zip(*mids, strict=True))
    return Rows(ts, x, mid_ts, mid_rows[:, 0], _stormy(ts, seconds), digest.hexdigest())


def _stormy(
    ts: npt.NDArray[np.int64],
    seconds: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]],
) -> npt.NDArray[np.bool_]:
    first = int(seconds[0][0][0])
    counts = np.zeros(max(int(s[-1]) for s, _ in seconds) - first + 1, np.int64)
    for second, count in seconds:
        np.add.at(counts, second - first, count)
    storm: npt.NDArray[np.bool_] = counts > 2 * np.median(counts)
    return storm[ts // SECOND_NS - first]


def future_moves(rows: Rows, latency_ns: int, horizon_ns: int) -> tuple[Floats, int]:
    """Mid from `latency_ns` to `latency_ns + horizon_ns` after each row [ticks].

    Returns:
        moves (n,), and how many leading rows have their whole label within the data.
    """
    start = rows.ts + latency_ns
    known = int(np.searchsorted(start + horizon_ns, rows.mid_ts[-1], side="right"))
    before, after = _mid_at(rows, start), _mid_at(rows, start + horizon_ns)
    return after - before, known


def _mid_at(rows: Rows, ts: npt.NDArray[np.int64]) -> Floats:
    last = np.searchsorted(rows.mid_ts, ts, side="right") - 1
    return np.asarray(rows.mids[np.maximum(last, 0)])


def time_weights(ts: npt.NDArray[np.int64], longest_ns: int) -> Floats:
    """How long each row was the newest, `longest_ns` at most, with mean 1.

    Without weights the many rows of a storm, where the signal is faint, drown those of the calm.
    """
    alive = np.minimum(np.diff(ts, append=ts[-1:] + longest_ns), longest_ns).astype(np.float64)
    alive = np.maximum(alive, 1.0)
    return np.asarray(alive / alive.mean())


@dataclass(frozen=True, slots=True)
class Split:
    """Row ranges in time order; between two of them a label's length of rows is left out."""

    train: slice
    calibrate: slice
    test: slice


def split(
    rows: Rows, known: int, label_ns: int, shares: tuple[float, float] = (0.6, 0.15)
) -> Split:
    """First the training rows, then calibration, then test: `shares` are those of the first two."""
    t0, t1 = int(rows.ts[0]), int(rows.ts[known - 1])
    cuts = [t0 + round((t1 - t0) * share) for share in (shares[0], sum(shares))]
    first, second = (int(np.searchsorted(rows.ts, cut)) for cut in cuts)
    purged = [int(np.searchsorted(rows.ts, cut - label_ns)) for cut in cuts]
    if not 0 < purged[0] <= first < purged[1] <= second < known:
        raise DataError(f"{known} labelled rows over {(t1 - t0) / 1e9:.0f} s are too few to split")
    return Split(slice(0, purged[0]), slice(first, purged[1]), slice(second, known))

"""Which rows make a batch: lanes that carry state from batch to batch, or shuffled windows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hft.errors import ConfigError, DataError
from hft.inference.dataset.in_memory import Int, Rows, rows_behind

NO_ROW = -1


@dataclass(frozen=True, slots=True)
class Lanes:
    """Consecutive rows of training time, lane by lane.

    A lane's rows are cut into spans; where a run would forget a span ends early, is filled up with
    NO_ROW, and the lane's next one begins from nothing.
    """

    at: Int
    """(spans, lanes, reach) numbers of rows, NO_ROW where there is none."""
    keeps: npt.NDArray[np.float32]
    """(spans, lanes) 1 where a span goes on from the state of the one before."""
    begins: Int
    """(lanes,) the first row of each, whose state is not that of a run."""


def lanes_of(rows: Rows, cut: slice, lanes: int, reach: int) -> Lanes:
    """Cuts training rows into lanes.

    Raises:
        ConfigError: too few rows for two spans a lane.
    """
    count = cut.stop - cut.start
    per_lane = count // lanes
    if per_lane < 2 * reach:
        raise ConfigError(
            f"{count} training rows are too few for {lanes} lanes of two spans of {reach} rows: "
            "want more data, fewer lanes (--lanes) or shorter spans (--reach)"
        )
    first = cut.stop - per_lane * lanes
    found = [_spans(rows, first + n * per_lane, per_lane, reach) for n in range(lanes)]
    longest = max(len(spans) for spans, _ in found)
    at = np.full((longest, lanes, reach), NO_ROW, np.int64)
    keeps = np.zeros((longest, lanes), np.float32)
    for lane, (spans, goes_on) in enumerate(found):
        at[: len(spans), lane] = spans
        keeps[: len(spans), lane] = goes_on
    return Lanes(at, keeps, first + per_lane * np.arange(lanes))


def _spans(rows: Rows, start: int, count: int, reach: int) -> tuple[Int, npt.NDArray[np.bool_]]:
    spans, goes_on = [], []
    for piece in rows.pieces(start, start + count):
        numbers = np.arange(piece.start, piece.stop)
        padded = np.full(-(-len(numbers) // reach) * reach, NO_ROW)
        padded[: len(numbers)] = numbers
        spans.append(padded.reshape(-1, reach))
        goes_on.append(np.arange(len(spans[-1])) > 0)
    return np.concatenate(spans), np.concatenate(goes_on)


def window_ends(rows: Rows, cut: slice, length: int, known: npt.NDArray[np.bool_]) -> Int:
    """Rows of a cut with a label and `length` rows of one stretch behind them, themselves included.

    Raises:
        DataError: there are none.
    """
    behind = rows_behind(rows.stretch[cut])
    ends = np.flatnonzero((behind >= length - 1) & known[cut]) + cut.start
    if not len(ends):
        raise DataError(
            f"no training row with a label ends a window of {length} rows: the longest stretch "
            f"has {int(behind.max(initial=-1)) + 1}; want a shorter window or more data"
        )
    return np.asarray(ends)

"""A run's rows beside training's, value by value, where digests said that they differ."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from hft.inference.skew.sides import BLOCK, Floats, Int, Rows, Side, digests


class Join:
    """The run's rows beside training's, by time; both come in order, block by block.

    Rows of the run have a last column of their own: 1 where the journal has another digest.
    """

    def __init__(self, side: Side, journal: npt.NDArray[Any]) -> None:
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
        while text := file.read(BLOCK * width * 8):
            words = np.frombuffer(text, np.float64).reshape(-1, width)
            yield words[:, 0].copy().view(np.int64), words[:, 1:].copy()


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

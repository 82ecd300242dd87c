"""The scales of core/trailing.hpp in NumPy, block by block: its twin."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Int = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

BLOCKS = 8
"""Blocks of a period: how often drift is looked for."""
FEWEST_ROWS = 100
"""Of an estimate."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Mean and scale of every column, for rows from `start_ts` on."""

    start_ts: int
    rows: int
    """It was made of."""
    mean: Floats
    scale: Floats
    drifted: bool
    """The block before looked unlike the estimate before; older ones are forgotten."""


@dataclass(slots=True)
class _Sums:
    """Of a block, about the stream's first row, so that squares keep their digits."""

    end_ts: int
    rows: int
    x: Floats
    x2: Floats


@dataclass(slots=True)
class Trailing:
    """Estimates along one instrument's rows; a row belongs to the newest made before it."""

    period_ns: int
    memory_ns: int
    """How far an estimate looks back."""
    drift: float
    """A block whose mean is off by more scales than this makes a new estimate; 0: never."""
    estimates: list[Estimate] = field(default_factory=list)
    _blocks: list[_Sums] = field(default_factory=list)
    _about: Floats | None = None
    _open: _Sums | None = None

    def feed(self, ts: Int, x: Floats) -> Int:
        """Rows in order, (n,) and (n, k); the number of each one's estimate, -1: none yet."""
        period = np.empty(len(ts), np.int64)
        if not len(ts):
            return period
        if self._about is None:
            self._about = x[0].copy()
        block = ts // self._block_ns
        edges = np.flatnonzero(np.diff(block)) + 1
        for part in np.split(np.arange(len(ts)), edges):
            self._enter((int(block[part[0]]) + 1) * self._block_ns)
            period[part] = len(self.estimates) - 1
            self._add(x[part] - self._about)
        return period

    @property
    def _block_ns(self) -> int:
        return max(self.period_ns // BLOCKS, 1)

    def _enter(self, end_ts: int) -> None:
        """Rows of the block that ends at `end_ts` are next: closes the one before."""
        last = self._open
        if last is not None and last.end_ts == end_ts:
            return
        if last is not None:
            self._close(last, end_ts - self._block_ns)
        assert self._about is not None
        zero = np.zeros(len(self._about))
        self._open = _Sums(end_ts, 0, zero, zero.copy())

    def _add(self, x: Floats) -> None:
        assert self._open is not None
        self._open.rows += len(x)
        self._open.x += x.sum(axis=0)
        self._open.x2 += (x * x).sum(axis=0)

    def _close(self, block: _Sums, now: int) -> None:
        self._blocks.append(block)
        drifted = self._has_drifted(block)
        if drifted:
            self._blocks = [block]
        self._blocks = [b for b in self._blocks if b.end_ts > now - self.memory_ns]
        due = not self.estimates or now // self.period_ns > self._last_start // self.period_ns
        if (due or drifted) and sum(b.rows for b in self._blocks) >= FEWEST_ROWS:
            self.estimates.append(self._estimate(now, drifted=drifted))

    @property
    def _last_start(self) -> int:
        return self.estimates[-1].start_ts

    def _has_drifted(self, block: _Sums) -> bool:
        if not self.estimates or not self.drift or block.rows < FEWEST_ROWS:
            return False
        assert self._about is not None
        known = self.estimates[-1]
        off = np.abs(self._about + block.x / block.rows - known.mean) / known.scale
        return bool(off.max() > self.drift)

    def _estimate(self, now: int, *, drifted: bool) -> Estimate:
        assert self._about is not None
        rows = sum(b.rows for b in self._blocks)
        mean = np.sum([b.x for b in self._blocks], axis=0) / rows
        square = np.sum([b.x2 for b in self._blocks], axis=0) / rows
        scale = np.sqrt(np.maximum(square - mean * mean, 0.0))
        mean = self._about + mean
        return Estimate(now, rows, mean, varying(mean, scale), drifted)


def varying(mean: Floats, scale: Floats) -> Floats:
    """The scale, 1 where a column does not vary: its noise must not be blown up."""
    return np.where(scale > 1e-9 * np.maximum(np.abs(mean), 1.0), scale, 1.0)

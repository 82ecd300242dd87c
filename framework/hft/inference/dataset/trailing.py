"""Scaling by what was seen lately: mean and scale of each column, anew every period and on drift.

The estimates are the core's (core/trailing.hpp), which a run makes too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from hft.inference.card import Scaler, TrailingEntry

Int = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Estimates:
    """Mean and scale of every column, one after the other."""

    start_ts: Int
    """(p,) from when each holds [ns]."""
    rows: Int
    """(p,) that it was made of."""
    drifted: npt.NDArray[np.bool_]
    """(p,) the block before looked unlike the estimate before; older ones are forgotten."""
    mean: Floats
    """(p, k)."""
    scale: Floats


@dataclass(frozen=True, slots=True)
class Trailed:
    """Which estimate each of n rows is scaled by."""

    rule: TrailingEntry
    period: Int
    """(n,) -1: there is none yet."""
    mean: Floats
    """(p, k) of the estimates."""
    scale: Floats

    def in_own_terms(self, x: Floats, own: Scaler) -> Floats:
        """Rows (n, k) as a run gives them to a network with that scaler.

        What the network makes of them is what the estimates make of `x`.
        """
        from hft import _core

        made: Floats = _core.in_own_terms(
            np.ascontiguousarray(x),
            np.ascontiguousarray(self.period, np.int64),
            np.ascontiguousarray(self.mean),
            np.ascontiguousarray(self.scale),
            list(own.mean),
            list(own.scale),
        )
        return made


@dataclass(slots=True)
class Trailing:
    """Estimates along one instrument's rows; a row belongs to the newest made before it."""

    rule: TrailingEntry
    columns: int
    _streams: list[Any] = field(default_factory=list)
    _earlier: int = 0
    """Estimates of the streams that are over."""

    def __post_init__(self) -> None:
        self._begin()

    def feed(self, ts: Int, x: Floats) -> Int:
        """Rows in order, (n,) and (n, k); the number of each one's estimate, -1: none yet."""
        number = self._streams[-1].feed(np.ascontiguousarray(ts), np.ascontiguousarray(x))
        return np.where(number < 0, -1, number + self._earlier)

    def restart(self) -> None:
        """The next rows are of a run of their own."""
        self._earlier += len(self._streams[-1].start_ts)
        self._begin()

    def estimates(self) -> Estimates:
        """All so far."""
        of = {
            name: np.concatenate([getattr(stream, name) for stream in self._streams])
            for name in ("start_ts", "rows", "drifted", "mean", "scale")
        }
        return Estimates(**{**of, "drifted": of["drifted"].astype(bool)})

    def _begin(self) -> None:
        from hft import _core

        rule = self.rule
        self._streams.append(
            _core.TrailingStream(rule.period_ns, rule.memory_ns, rule.drift, self.columns)
        )


def varying(mean: Floats, scale: Floats) -> Floats:
    """The scale, 1 where a column does not vary: its noise must not be blown up."""
    from hft import _core

    made: Floats = _core.varying_scales(np.ascontiguousarray(mean), np.ascontiguousarray(scale))
    return made

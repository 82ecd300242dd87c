"""Down, flat, up: moves as three classes, with a threshold in ticks or by share of the time."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from hft.errors import ConfigError

Floats = npt.NDArray[np.float64]

OUTPUTS = ("down", "flat", "up")
UNKNOWN = -1


@dataclass(frozen=True, slots=True)
class Classes:
    """A move beyond the threshold is up or down."""

    threshold_ticks: float
    move_ticks: tuple[float, ...]
    """Mean move of each class over the training rows, by weight."""

    def of(self, moves: Floats) -> npt.NDArray[np.int8]:
        """0 down, 1 flat, 2 up, (n,); UNKNOWN where the move is NaN."""
        label = np.where(
            moves > self.threshold_ticks, 2, np.where(moves < -self.threshold_ticks, 0, 1)
        )
        return np.where(np.isnan(moves), UNKNOWN, label).astype(np.int8)


@dataclass(slots=True)
class MoveWeights:
    """How much training weight each move has.

    Moves of a mid are whole half ticks, so a handful of counters holds a training set of any
    length.
    """

    weight: dict[int, float] = field(default_factory=dict)
    """By the move in half ticks."""

    def add(self, moves: Floats, weight: Floats) -> None:
        """Training rows, (n,) each; NaN moves are left out."""
        known = ~np.isnan(moves)
        half = np.rint(2 * moves[known]).astype(np.int64)
        values, place = np.unique(half, return_inverse=True)
        sums = np.bincount(place, weight[known], minlength=len(values))
        for value, more in zip(values.tolist(), sums.tolist(), strict=True):
            self.weight[value] = self.weight.get(value, 0.0) + more

    def classes(self, flat_share: float | None, threshold_ticks: float | None) -> Classes:
        """The classes of these moves.

        Args:
            flat_share: the smallest threshold at which at least this share of weight is flat.
            threshold_ticks: given instead.

        Raises:
            ConfigError: a class would be empty.
        """
        moves = np.array(sorted(self.weight), np.float64) / 2
        weight = np.array([self.weight[half] for half in sorted(self.weight)])
        if threshold_ticks is None:
            assert flat_share is not None
            order = np.argsort(np.abs(moves), kind="stable")
            passed = np.cumsum(weight[order])
            threshold_ticks = float(
                np.abs(moves[order])[np.searchsorted(passed, flat_share * passed[-1])]
            )
        label = Classes(threshold_ticks, ()).of(moves)
        empty = [name for c, name in enumerate(OUTPUTS) if not weight[label == c].sum() > 0]
        if empty:
            raise ConfigError(
                f"no training row is {' or '.join(empty)} with a threshold of {threshold_ticks:g} "
                "ticks: want another threshold, a longer horizon or more data"
            )
        means = tuple(
            float(np.average(moves[label == c], weights=weight[label == c]))
            for c in range(len(OUTPUTS))
        )
        return Classes(threshold_ticks, means)

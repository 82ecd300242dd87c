"""Train, calibrate, test: stretches of time in this order, purged and embargoed.

A row whose label reaches beyond the end of its part is left out (purged), and so are the rows at a
part's start (embargoed), whose features remember what the labels before were made of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hft.errors import ConfigError, DataError

Int = npt.NDArray[np.int64]

PARTS = ("train", "calibrate", "test")
NEVER = int(np.iinfo(np.int64).max)


@dataclass(frozen=True, slots=True)
class Part:
    """Rows of [start_ts, end_ts) whose labels end by `labels_by_ts`."""

    name: str
    border_ts: int
    """Where it would begin without embargo."""
    start_ts: int
    end_ts: int
    labels_by_ts: int

    def holds(self, ts: Int, label_end: Int) -> npt.NDArray[np.bool_]:
        """Which rows belong to it, (n,)."""
        return (ts >= self.start_ts) & (ts < self.end_ts) & (label_end <= self.labels_by_ts)

    def purges(self, ts: Int, label_end: Int) -> int:
        """How many rows are left out because their labels reach beyond it."""
        inside = (ts >= self.start_ts) & (ts < self.end_ts)
        return int((inside & (label_end > self.labels_by_ts)).sum())

    def embargoes(self, ts: Int) -> int:
        """How many rows are left out at its start."""
        return int(((ts >= self.border_ts) & (ts < min(self.start_ts, self.end_ts))).sum())


Fold = tuple[Part, Part, Part]


@dataclass(frozen=True, slots=True)
class Cuts:
    """How time is shared out."""

    shares: tuple[float, float] = (0.6, 0.15)
    """Of train and calibrate; the rest is test."""
    folds: int = 1
    """Walking forward: the test share is cut into so many blocks, each tested by a fold of its own
    that trains on everything before."""
    embargo_ns: int = 0

    def __post_init__(self) -> None:
        train, calibrate = self.shares
        if not (train > 0 and calibrate > 0 and train + calibrate < 1):
            raise ConfigError(
                f"shares of train and calibrate are {train:g} and {calibrate:g}: want both above 0 "
                "and less than 1 together, the rest is test"
            )
        if self.folds < 1:
            raise ConfigError(f"folds is {self.folds}: want at least 1")

    def by_time(self, spans: Sequence[tuple[int, int]]) -> list[Fold]:
        """Folds by shares of the time in which there are rows.

        Args:
            spans: first and last row of each stretch, in order; nights between them do not count.
        """
        last, folds = spans[-1][1], []
        for *cuts, stop in self._ends():
            at = [_instant(spans, share) for share in cuts]
            end = last + 1 if stop == 1.0 else _instant(spans, stop)
            folds.append(self._fold([spans[0][0], *at], end))
        return folds

    def by_day(self, day_starts: Sequence[int], last_ts: int) -> list[Fold]:
        """Likewise with borders between days; a day is a UTC date."""
        starts, folds = list(day_starts), []
        for shares in self._ends():
            at = [round(len(starts) * share) for share in shares]
            if not 0 < at[0] < at[1] < at[2]:
                raise ConfigError(
                    f"{len(starts)} days are too few for {self.folds} folds of whole days with "
                    f"shares {self.shares[0]:g} and {self.shares[1]:g}: want a day a part at least"
                )
            end = starts[at[2]] if at[2] < len(starts) else last_ts + 1
            folds.append(self._fold([starts[0], starts[at[0]], starts[at[1]]], end))
        return folds

    def _ends(self) -> list[tuple[float, float, float]]:
        """Where train, calibrate and test of each fold end, as shares of all."""
        train, calibrate = self.shares
        test = (1 - train - calibrate) / self.folds
        ends = []
        for fold in range(self.folds):
            start = train + fold * test
            last = 1.0 if fold == self.folds - 1 else start + calibrate + test
            ends.append((start, start + calibrate, last))
        return ends

    def _fold(self, borders: Sequence[int], end: int) -> Fold:
        train, calibrate, test = borders[:3]
        return (
            Part("train", train, train, calibrate, calibrate),
            Part("calibrate", calibrate, calibrate + self.embargo_ns, test, test),
            Part("test", test, test + self.embargo_ns, end, NEVER),  # nothing is learnt from it
        )


def _instant(spans: Sequence[tuple[int, int]], share: float) -> int:
    """When that share of the spans together is over."""
    left = round(sum(end - start for start, end in spans) * share)
    for start, end in spans:
        if left <= end - start:
            return start + left
        left -= end - start
    return spans[-1][1]


def require_rows(counts: dict[str, int], span_s: float) -> None:
    """Refuses a fold with a part that has no labelled row.

    Raises:
        DataError: names the part.
    """
    for name, rows in counts.items():
        if not rows:
            raise DataError(
                f"{sum(counts.values())} labelled rows over {span_s:.0f} s are too few to split: "
                f"{name} has none after purge and embargo"
            )

"""Rows that ranges and errors in 8 bits are measured on: they must have seen every weather.

A range taken in a quiet hour clips in a storm, and an error averaged over flat rows says nothing of
those that are traded on. So rise, fall, flat, calm and storm must each be there, or it is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Meta

from hft.errors import DataError
from hft.inference.training.task import Task

KINDS = ("rise", "fall", "flat", "calm", "storm")


class Cover(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What calibration rows must have of each kind."""

    least: Annotated[int, Meta(ge=1)] = 100
    """Rows."""
    least_share: Annotated[float, Meta(ge=0, lt=0.5)] = 0.01
    """Of the rows with a label."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """Consecutive rows, and how many of each kind are among them."""

    cut: slice
    counts: dict[str, int]
    rows: int
    """Those with a label; the others are run, for a model's state, and not counted."""

    def __str__(self) -> str:
        found = ", ".join(f"{kind} {count:,}" for kind, count in self.counts.items())
        return f"{self.rows:,} calibration rows: {found}"


def calibration(
    task: Task,
    cut: slice | None = None,
    cover: Cover | None = None,
    at_most: int = 50_000,
) -> Calibration:
    """The stretch of consecutive rows that covers best, if it covers enough.

    Args:
        task: labelled rows.
        cut: which of them; the calibration slice by default.
        cover: what there must be of each kind.
        at_most: rows of the stretch; of several, the one whose scarcest kind has most. If none
            covers enough, all rows are taken.

    Raises:
        DataError: names each kind that is missing, how many rows of it there were and are wanted.
    """
    cover = cover or Cover()
    cut = cut or task.parts.calibrate
    found = max((_count(task, part) for part in _stretches(cut, at_most)), key=_scarcest)
    if _missing(found, cover):
        found = _count(task, cut)  # no stretch has seen everything: all of them have, or none
    if missing := _missing(found, cover):
        raise DataError(
            f"calibration rows do not cover {', '.join(missing)}: want {_wanted(found, cover):,} "
            f"of each among {found.rows:,}; take data that rise, fall, stay flat, are calm and "
            "stormy, or a longer calibration slice"
        )
    return found


def kinds_of(task: Task, cut: slice) -> dict[str, npt.NDArray[np.bool_]]:
    """Which labelled rows are of a kind, (n,) each; a row has a direction and a weather."""
    known, label, storm = task.weight[cut] > 0, task.label[cut], task.rows.storm[cut]
    found = (label == 2, label == 0, label == 1, ~storm, storm)
    return {kind: known & at for kind, at in zip(KINDS, found, strict=True)}


def _count(task: Task, cut: slice) -> Calibration:
    counts = {kind: int(at.sum()) for kind, at in kinds_of(task, cut).items()}
    return Calibration(cut, counts, int((task.weight[cut] > 0).sum()))


def _wanted(found: Calibration, cover: Cover) -> int:
    return max(cover.least, int(np.ceil(cover.least_share * found.rows)))


def _missing(found: Calibration, cover: Cover) -> list[str]:
    wanted = _wanted(found, cover)
    return [f"{kind} ({count:,} rows)" for kind, count in found.counts.items() if count < wanted]


def _scarcest(found: Calibration) -> int:
    return min(found.counts.values())


def _stretches(cut: slice, at_most: int) -> list[slice]:
    last = max(cut.stop - at_most, cut.start)
    starts = [*range(cut.start, last, max(at_most // 2, 1)), last]
    return [slice(start, min(start + at_most, cut.stop)) for start in starts]

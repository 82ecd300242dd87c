"""The exact way from decimals to whole ticks and lots, and durations for people."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hft.errors import DataError

Mask = NDArray[np.bool_]

GRID_NOISE = 1e-6  # of a tick or lot: what decimal text leaves behind in a double


def on_grid(
    values: NDArray[np.float64],
    step: float,
    what: str,
    *,
    loose: Mask | None = None,
    rows: NDArray[np.int64] | int = 0,
    where: str = "row",
    source: str = "",
) -> tuple[NDArray[np.int64], int]:
    """Each value in whole steps, and how many were rounded.

    A value off the grid by more than float noise is refused, since a wrong tick or lot is the usual
    reason; where `loose` is true it is rounded instead and counted (prints inside the tick exist).

    Args:
        values: prices or quantities as floats.
        step: tick or lot.
        what: column name, for the message.
        loose: rows that may be rounded.
        rows: row number of each value, or of the first one.
        where: what those numbers count, `row` or `line`.
        source: file, for the message.

    Raises:
        DataError: names the row, the value and the nearest valid value.
    """
    with np.errstate(over="ignore"):  # refused below as too large
        scaled = values / step
    whole = np.rint(scaled)
    tolerance = np.maximum(GRID_NOISE, np.abs(whole) * 1e-15)
    with np.errstate(invalid="ignore"):
        off = ~(np.abs(scaled - whole) <= tolerance)  # so written that NaN counts as off
        lost = ~(np.abs(whole) < 2.0**53)
    rounded = 0
    if off.any() or lost.any():
        fatal = off | lost if loose is None else (off & ~loose) | lost
        if fatal.any():
            at = int(fatal.argmax())
            row = int(rows[at]) if isinstance(rows, np.ndarray) else rows + at
            place = f"{source}: {where} {row}" if source else f"{where} {row}"
            raise DataError(_off_grid(float(values[at]), step, what, place))
        rounded = int(np.count_nonzero(off))
    return whole.astype(np.int64), rounded


def _off_grid(value: float, step: float, what: str, where: str) -> str:
    unit = "tick" if what == "price" else "lot"
    if not np.isfinite(value):
        return f"{where}: {what} is {value}, want a finite number"
    if abs(value / step) >= 2.0**53:
        return f"{where}: {what} {value!r} is too large to count exactly in {unit}s of {step!r}"
    nearest = float(f"{round(value / step) * step:.12g}")
    return (
        f"{where}: {what} {value!r} is off the {unit} of {step!r}; the nearest valid value is "
        f"{nearest!r}"
    )


def duration(ns: int) -> str:
    """A duration for people: `1.271 s`, `350 us`."""
    for unit, size in (("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)):
        if abs(ns) >= size:
            return f"{ns / size:.4g} {unit}"
    return f"{ns} ns"

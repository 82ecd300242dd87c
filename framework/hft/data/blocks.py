"""Rows of a file in blocks, whose columns are converted and checked when asked for.

text_blocks.py and parquet_blocks.py read them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hft.data.arrow_columns import Bad, Read, coded, floats, integers, undecoded
from hft.data.exact import on_grid
from hft.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

Ints = NDArray[np.int64]


class Place(NamedTuple):
    """Where a block of whole lines is in the text."""

    at: int
    """First byte."""
    size: int
    line: int
    """Number of its first line."""


class Reading:
    """What reading a file in blocks of rows has met.

    Args:
        name: of the file.
        unit: what its rows are numbered by.
        repair: leave out what cannot be read, and count it, instead of refusing.
        counts: where to count.
    """

    def __init__(
        self, name: str, unit: str, *, repair: bool, counts: dict[str, int] | None
    ) -> None:
        self.name = name
        self.unit = unit
        self.repair = repair
        self.damaged = False
        """The last pass met the end too early; what came after is not known."""
        self.counts = {} if counts is None else counts

    def count(self, what: str, by: int = 1) -> None:
        """Count, unless it is nothing."""
        if by:
            self.counts[what] = self.counts.get(what, 0) + by

    def broke_off(self) -> None:
        """Count a file that was cut short."""
        self.damaged = True
        self.count("files damaged at the end")


class Block:
    """Some rows of a file; columns are converted when asked for.

    `good` says which rows could be read by all columns asked for so far; without repair the first
    that cannot is refused.
    """

    def __init__(
        self, reader: Reading, table: pa.Table, lines: Ints, done: float, place: Place
    ) -> None:
        self.reader = reader
        self.lines = lines
        self.done = done
        self.place = place
        self.good: Bad = np.ones(len(lines), bool)
        self._table = table
        self._left_out = 0

    def __len__(self) -> int:
        return len(self.lines)

    def filter(self, mask: Bad) -> Block:
        """Only the rows in `mask`."""
        import pyarrow as pa

        if mask.all():
            return self
        table = self._table.filter(pa.array(mask))
        return Block(self.reader, table, self.lines[mask], self.done, self.place)

    def column(self, name: str) -> pa.Array:
        """A column as it was read: bytes."""
        column = self._table.column(name)
        return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()

    def read(self, name: str, convert: Callable[[Any], Read], wanted: str) -> NDArray[Any]:
        """A column's values by `convert`, which also says which rows it could not read."""
        values, bad = convert(self.column(name))
        if bad.any():
            self._bad(name, bad, wanted)
        return values

    def floats(self, name: str) -> NDArray[np.float64]:
        """A column of finite numbers."""
        return self.read(name, floats, "finite number")

    def integers(self, name: str) -> Ints:
        """A column of whole numbers."""
        return self.read(name, integers, "whole number")

    def codes(self, name: str, codes: dict[str, int]) -> Ints:
        """A column of few different words, each by its code."""
        return self.read(name, lambda column: coded(column, codes), f"one of {', '.join(codes)}")

    def steps(
        self, values: NDArray[Any], step: float, what: str, *, loose: Bad | None = None
    ) -> Ints:
        """Prices in ticks or quantities in lots, (n,) or (n, levels).

        Args:
            values: as in the file.
            step: tick or lot.
            what: `price` or `qty`.
            loose: rows that are prints, whose price is rounded and counted, (n,).
        """
        values = np.where(self.good if values.ndim == 1 else self.good[:, None], values, 0.0)
        rows = np.repeat(self.lines, values.size // max(len(values), 1))
        whole, rounded = on_grid(
            values.ravel(),
            step,
            what,
            loose=loose,
            rows=rows,
            where=self.reader.unit,
            source=self.reader.name,
        )
        self.reader.count("prints rounded", rounded)
        return whole.reshape(values.shape)

    def leave_out(self, rows: Bad) -> None:
        """Count these as no good, for a reason that has been told."""
        self.good &= ~rows
        self._left_out += int(np.count_nonzero(rows))

    def count_bad(self) -> None:
        """Count the rows that were left out."""
        self.reader.count("rows unreadable", int(np.count_nonzero(~self.good)) - self._left_out)

    def _bad(self, name: str, bad: Bad, wanted: str) -> None:
        if not self.reader.repair:
            at = int(bad.argmax())
            value = undecoded(self.column(name))[at].as_py()
            text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
            raise DataError(
                f"{self.reader.name}: {self.reader.unit} {self.lines[at]}, column {name}: "
                f"{text!r}, want {wanted}"
            )
        self.good &= ~bad

"""LOBSTER's order book file: the best levels after each message."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hft.adapters.lobster.view import ADD, EXECUTE, Worst
from hft.data.csv_blocks import Block, CsvFile
from hft.errors import DataError, SchemaError

Ints = NDArray[np.int64]
Levels = tuple[Ints, Ints, Ints]
"""Price, size and side, (n,) each."""

NAMES = ("ask", "ask size", "bid", "bid size")  # of a level; the best level first
NO_PRICE = 9_999_999_999  # of a level that is not there; bids have it negative


class BookFile:
    """One order book file, plain or packed.

    Args:
        path: the file.
        follow: it has a row a message; else its first row alone is taken.
        repair: where it ends early, go on without it.
    """

    def __init__(self, path: Path, *, follow: bool, repair: bool) -> None:
        self._file = CsvFile(path, NAMES, repair=repair)
        self.path = path
        self.follow = follow
        self._repair = repair
        if len(self._file.header) % 4:
            raise SchemaError(f"{path}: {len(self._file.header)} columns, want 4 a level")
        self._first = self._first_row()

    def _first_row(self) -> Levels:
        kinds: dict[str, Any] = dict.fromkeys(self._file.header, "int")
        block = next(self._file.blocks(kinds, {}), None)
        if block is None or not len(block.lines):
            raise DataError(f"{self.path}: no row, want the book after each message")
        row = np.array([values[0] for values in block.columns.values()]).reshape(-1, 2, 2)
        price, size = row[..., 0].ravel(), row[..., 1].ravel()
        side = np.tile([-1, 1], len(row))
        there = _is_there(price, size)
        return price[there], size[there], side[there]

    def before(self, first: Block) -> Levels:
        """The levels before the first message: those after it, with it undone."""
        c = first.columns
        kind, size, price, side = (int(c[n][0]) for n in ("type", "size", "price", "side"))
        prices, sizes, sides = (values.tolist() for values in self._first)
        levels = dict(zip(zip(prices, sides, strict=True), sizes, strict=True))
        if kind <= EXECUTE:
            change = -size if kind == ADD else size
            levels[price, side] = levels.get((price, side), 0) + change
        kept = [(*level, lots) for level, lots in levels.items() if lots > 0]
        price_, side_, size_ = np.array(kept, np.int64).reshape(-1, 3).T
        return price_, size_, side_

    def rows(self, counts: dict[str, int]) -> Rows:
        """A pass over the N-th levels."""
        names = self._file.header[-4:]
        kinds: dict[str, Any] = dict.fromkeys(names, "int")
        blocks = self._file.blocks(kinds, counts) if self.follow else iter(())
        return Rows(self, blocks, self._file.first_line, counts, repair=self._repair)


class Rows:
    """The N-th levels after each message, in step with the messages."""

    def __init__(
        self,
        file: BookFile,
        blocks: Iterator[Block],
        first_line: int,
        counts: dict[str, int],
        *,
        repair: bool,
    ) -> None:
        self._file = file
        self._blocks = blocks
        self._first_line = first_line
        self._counts = counts
        self._repair = repair
        self._held = np.empty((5, 0), np.int64)  # number of the row, and its four columns

    def worst(self, rows: Ints) -> list[Worst]:
        """Of both sides, after these messages; none if the file is not followed."""
        if not self._file.follow:
            return []
        self._read_to(int(rows[-1]))
        at = np.searchsorted(self._held[0], rows, "right") - 1  # a line that was left out: the last
        ask, ask_size, bid, bid_size = self._held[1:, np.maximum(at, 0)]
        self._held = self._held[:, max(int(at[-1]), 0) :]
        return [
            Worst(side, price, np.where(_is_there(price, size), size, 0))
            for side, price, size in ((-1, ask, ask_size), (1, bid, bid_size))
        ]

    def _read_to(self, row: int) -> None:
        parts = [self._held]
        last = int(self._held[0, -1]) if self._held.shape[1] else -1
        while last < row:
            block = next(self._blocks, None)
            if block is None:
                self._ended(last, row)
                break
            if len(block.lines):
                number = block.lines - self._first_line
                parts.append(np.stack([number, *block.columns.values()]))
                last = int(number[-1])
        self._held = np.concatenate(parts, axis=1)

    def _ended(self, last: int, row: int) -> None:
        if not self._repair:
            raise DataError(
                f"{self._file.path}: ends after row {last + 1}, but there is a message {row + 1}; "
                "want a row after each message"
            )
        self._counts["order book ends after row"] = last + 1


def _is_there(price: Ints, size: Ints) -> NDArray[np.bool_]:
    there: NDArray[np.bool_] = (size > 0) & (np.abs(price) != NO_PRICE)
    return there

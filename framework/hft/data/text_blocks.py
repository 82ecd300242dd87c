"""Delimited text in blocks of rows whose columns stay bytes until they are asked for.

A pass that wants one instrument of many reads only the blocks that hold it (`blocks(only=…)`): in a
plain file it goes from one to the next, in a packed one the others are unpacked, but not parsed.
Values may be quoted, but a line is a row: line breaks in quotes are refused. Where columns are
plain numbers and words, csv_blocks.py parses them at once and is faster.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from hft.data.blocks import Block, Place, Reading
from hft.data.text import DAMAGE, TextFile, as_utf8
from hft.errors import DataError, SchemaError

if TYPE_CHECKING:
    import pyarrow as pa


class TextReader(Reading):
    """Reads some columns of a text file in blocks.

    Args:
        file: what to read.
        wanted: columns.
        names: of all columns, where the file has no header line.
        separator: of columns.
        repair: leave out what cannot be read, and count it, instead of refusing.
        counts: where to count.
    """

    def __init__(
        self,
        file: TextFile,
        wanted: Sequence[str],
        *,
        names: Sequence[str] = (),
        separator: str = ",",
        repair: bool = False,
        counts: dict[str, int] | None = None,
    ) -> None:
        super().__init__(file.name, "line", repair=repair, counts=counts)
        self.file = file
        self._wanted = list(wanted)
        self._separator = separator
        self._has_header = not names
        self._names = list(names)

    def blocks(self, only: set[Place] | None = None) -> Iterator[Block]:
        """Rows in file order; with `only`, those of the blocks at these places, and no others."""
        self.damaged = False
        if self._has_header:
            self._names = names_in(self.file, self._separator)
        missing = [name for name in self._wanted if name not in self._names]
        if missing:
            raise SchemaError(f"{self.name}: no column {missing[0]!r}; it has {self._names}")
        if only and self.file.is_plain():
            yield from self._jumping(sorted(only))
            return
        at, line = self.file.mark_bytes(), 1
        end = max(only, default=Place(-1, 0, 0)).at if only is not None else None
        try:
            for data, share in self.file.blocks():
                if end is not None and at > end:
                    return
                place = Place(at, len(data), line)
                lines = _count_lines(data)
                if only is None or place in only:
                    yield from self._parse(data, place, lines, share)
                at += len(data)
                line += lines
        except DAMAGE as error:
            if not self.repair:
                raise DataError(f"{self.name}: damaged after line {line - 1}: {error}") from error
            self.broke_off()

    def _jumping(self, places: list[Place]) -> Iterator[Block]:
        size = max(self.file.path.stat().st_size, 1)
        with self.file.path.open("rb") as file:
            for place in places:
                file.seek(place.at)
                data = file.read(place.size)
                yield from self._parse(data, place, _count_lines(data), file.tell() / size)

    def _parse(self, data: bytes, place: Place, lines: int, share: float) -> Iterator[Block]:
        first_line = place.line
        if first_line == 1 and self._has_header:
            data = data.partition(b"\n")[2]
            first_line, lines = 2, lines - 1
        if not lines:
            return
        data = as_utf8(data)
        table, odd = self._table(data, first_line)
        self._count_odd(odd, cut=odd[-1:] == [lines - 1] and not data.endswith(b"\n"))
        if table.num_rows + len(odd) != lines:
            raise DataError(
                f"{self.name}: lines {first_line} to {first_line + lines - 1} hold "
                f"{table.num_rows + len(odd)} rows, want one a line: quoted or bare line breaks "
                "are not read"
            )
        kept = np.delete(np.arange(lines), odd) + first_line
        if table.num_rows:
            yield Block(self, table.combine_chunks(), kept, share, place)

    def _count_odd(self, odd: list[int], *, cut: bool) -> None:
        if cut:
            self.broke_off()
        self.count("rows unreadable", len(odd) - cut)

    def _table(self, data: bytes, first_line: int) -> tuple[pa.Table, list[int]]:
        """The rows, and the numbers of those with too few or too many columns."""
        import pyarrow as pa
        from pyarrow import csv

        odd: list[Any] = []

        def on_odd(row: Any) -> str:
            odd.append(row)
            return "skip" if self.repair else "error"

        try:
            table = csv.read_csv(
                pa.BufferReader(data),
                read_options=csv.ReadOptions(
                    column_names=self._names, use_threads=False, block_size=len(data) + 1
                ),
                parse_options=csv.ParseOptions(
                    delimiter=self._separator, invalid_row_handler=on_odd, ignore_empty_lines=False
                ),
                convert_options=csv.ConvertOptions(
                    include_columns=self._wanted,
                    column_types=dict.fromkeys(self._wanted, pa.binary()),
                    strings_can_be_null=False,
                ),
            )
        except (pa.ArrowException, ValueError, KeyError) as error:
            self._refuse(odd, first_line, error)
        return table, [row.number - 1 for row in odd]

    def _refuse(self, odd: list[Any], first_line: int, error: Exception) -> NoReturn:
        where = self.name
        if odd:
            row = odd[0]
            raise DataError(
                f"{where}: line {first_line + row.number - 1}: {row.actual_columns} columns, want "
                f"{row.expected_columns}: {row.text[:60]!r}; with repair it is left out"
            ) from None
        raise DataError(f"{where}: unreadable from line {first_line}: {error}") from error


def _count_lines(data: bytes) -> int:
    # bytes.count finds one line end at a time
    ends = int(np.count_nonzero(np.frombuffer(data, np.uint8) == ord("\n")))
    return ends + bool(data and not data.endswith(b"\n"))


def names_in(file: TextFile, separator: str = ",") -> list[str]:
    """Columns that the first line names.

    Raises:
        DataError: the file is empty, or ends or breaks before its first line does.
    """
    return [word.strip().strip('"') for word in file.first_line().split(separator)]

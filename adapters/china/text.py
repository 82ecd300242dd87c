"""CSV text, plain, packed or in a zip, read in blocks of whole lines.

Blocks are cut here and not by Arrow, so that a pass that wants one instrument of many reads only
the blocks that hold it (`Reader.blocks(only=…)`): in a plain file it goes from one to the next, in
a packed one the others are unpacked, but not parsed. A line is a row: these venues' files hold no
quoted line breaks.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from hft.adapters.china.blocks import Block, Place, Reading
from hft.data.csv_blocks import DAMAGE, open_packed
from hft.errors import DataError, SchemaError

if TYPE_CHECKING:
    import pyarrow as pa


BLOCK_BYTES = 1 << 22
PIECE_BYTES = 1 << 17
LONGEST_LINE = 1 << 24  # bytes; what has no line end for longer is no text

_ASCII = bytes(range(128)) + b"?" * 128  # what is read is ASCII; names of companies are not
_DAMAGE = (*DAMAGE, zipfile.BadZipFile)


@dataclass(frozen=True, slots=True)
class TextFile:
    """A text file, or a member of a zip."""

    path: Path
    member: str = ""

    @property
    def name(self) -> str:
        """For messages."""
        return f"{self.path}:{self.member}" if self.member else str(self.path)

    @contextmanager
    def open(self) -> Iterator[tuple[Any, Callable[[], float]]]:
        """The unpacked bytes, and a function that says what share of them has been read."""
        if self.member:
            with zipfile.ZipFile(self.path) as archive, archive.open(self.member) as stream:
                total = max(archive.getinfo(self.member).file_size, 1)
                yield stream, lambda: stream.tell() / total
            return
        size = max(self.path.stat().st_size, 1)
        with self.path.open("rb") as file:
            yield open_packed(file), lambda: min(file.tell() / size, 1.0)

    def is_plain(self) -> bool:
        """Not packed, so that it can be read from any place on."""
        if self.member:
            return False
        with self.path.open("rb") as file:
            return open_packed(file) is file

    def header(self) -> list[str]:
        """Names in the first line.

        Raises:
            DataError: the file ends or breaks before its first line does.
        """
        try:
            with self.open() as (stream, _):
                line = stream.readline(LONGEST_LINE)
        except _DAMAGE as error:
            raise DataError(f"{self.name}: damaged before its first line: {error}") from error
        return _names(line)


def text_files(path: Path) -> list[TextFile]:
    """The file itself, or the csv members of a zip in the order they are in.

    Raises:
        DataError: no such file, or a zip that is not whole or holds no csv file.
    """
    if not path.is_file():
        raise DataError(f"{path}: no such file")
    with path.open("rb") as file:
        if file.read(4) != b"PK\x03\x04":
            return [TextFile(path)]
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.namelist()
    except _DAMAGE as error:
        raise DataError(
            f"{path}: not a whole zip, whose table of contents is at its end: {error}"
        ) from error
    files = [TextFile(path, name) for name in members if name.lower().endswith(".csv")]
    if not files:
        raise SchemaError(f"{path}: a zip without a csv file, want one; it holds {members[:5]}")
    return files


class Reader(Reading):
    """Reads some columns of a text file in blocks.

    Args:
        file: what to read.
        wanted: columns.
        names: of all columns, where the file has no header line.
        repair: leave out what cannot be read, and count it, instead of refusing.
        counts: where to count.
    """

    def __init__(
        self,
        file: TextFile,
        wanted: Sequence[str],
        *,
        names: Sequence[str] = (),
        repair: bool = False,
        counts: dict[str, int] | None = None,
    ) -> None:
        super().__init__(file.name, "line", repair=repair, counts=counts)
        self.file = file
        self._wanted = list(wanted)
        self._given = list(names)
        self._names = list(names)

    def blocks(self, only: set[Place] | None = None) -> Iterator[Block]:
        """Rows in file order; with `only`, those of the blocks at these places, and no others."""
        self.damaged = False
        if only and self.file.is_plain():
            yield from self._jumping(sorted(only))
            return
        at, line = 0, 1
        end = max(only, default=Place(-1, 0, 0)).at if only is not None else None
        for data, share in self._whole_lines():
            if end is not None and at > end:
                return
            place = Place(at, len(data), line)
            lines = _count_lines(data)
            if only is None or place in only:
                yield from self._parse(data, place, lines, share)
            at += len(data)
            line += lines

    def _jumping(self, places: list[Place]) -> Iterator[Block]:
        size = max(self.file.path.stat().st_size, 1)
        with self.file.path.open("rb") as file:
            for place in places:
                file.seek(place.at)
                data = file.read(place.size)
                yield from self._parse(data, place, _count_lines(data), file.tell() / size)

    def _take_header(self, data: bytes) -> bytes:
        first, _, rest = data.partition(b"\n")
        self._names = _names(first)
        missing = [name for name in self._wanted if name not in self._names]
        if missing:
            raise SchemaError(f"{self.name}: no column {missing[0]!r}; it has {self._names}")
        return rest

    def _whole_lines(self) -> Iterator[tuple[bytes, float]]:
        kept: list[bytes] = []
        held, share = 0, 0.0
        try:
            with self.file.open() as (stream, told):
                # Small pieces: where damage is in one, the rest of its block is not lost with it.
                while piece := getattr(stream, "read1", stream.read)(PIECE_BYTES):
                    kept.append(piece)
                    held += len(piece)
                    if held >= BLOCK_BYTES:
                        text, rest = self._cut(kept)
                        kept, held, share = [rest], len(rest), told()
                        if text:
                            yield text, share
        except _DAMAGE as error:
            if not self.repair:
                raise DataError(f"{self.name}: damaged, ends too early: {error}") from error
            self.broke_off()
            yield self._cut(kept)[0], 1.0  # but for the line it broke off in
            return
        if held:
            yield b"".join(kept), 1.0

    def _cut(self, kept: list[bytes]) -> tuple[bytes, bytes]:
        text = b"".join(kept)
        at = text.rfind(b"\n") + 1
        if len(text) - at > LONGEST_LINE:
            raise DataError(f"{self.name}: a line of over {LONGEST_LINE:,} bytes, want text")
        return text[:at], text[at:]

    def _parse(self, data: bytes, place: Place, lines: int, share: float) -> Iterator[Block]:
        first_line = place.line
        if first_line == 1 and not self._given:
            data = self._take_header(data)
            first_line, lines = 2, lines - 1
        elif not self._names:
            self._take_header(",".join(self.file.header()).encode())
        if not lines:
            return
        if not data.isascii():
            # Arrow passes over odd rows that are no UTF-8 without telling us.
            data = data.translate(_ASCII)
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
                    invalid_row_handler=on_odd, ignore_empty_lines=False
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


def _names(line: bytes) -> list[str]:
    text = line.decode("utf-8-sig", "replace").strip()
    return [name.strip().strip('"') for name in text.split(",")]

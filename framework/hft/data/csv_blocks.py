"""Delimited text, plain or packed, as blocks of typed columns at the speed of the parser.

A block is parsed with types at once. Only where that fails is it parsed again as bytes, value by
value, to name the first bad line and column, or with `repair` to leave bad lines out and count
them. For columns with a meaning of their own (times of day), files of many instruments, and files
that quote, see text_blocks.py, which is slower.

A file cut in the middle of a line is told by its last line, which lacks columns or ends in half a
value. A cut inside the digits of the last number is seen by the missing newline alone, so `ended`
asks for one where a format always has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hft.data.text import DAMAGE, TextFile, as_utf8
from hft.errors import DataError, SchemaError

if TYPE_CHECKING:
    import pyarrow as pa

Kind = Literal["int", "float", "maybe"] | dict[str, int]
"""A whole number; a finite number; likewise, NaN where empty; words, by the code of each."""

_WANTED = {"int": "whole number", "float": "finite number", "maybe": "finite number"}
_UNKNOWN = np.iinfo(np.int64).min  # code of a word that is not known


class Words(NamedTuple):
    """A column of text."""

    codes: NDArray[Any]
    """Which word each row has, (n,)."""
    words: list[str]

    def among(self, rows: NDArray[np.bool_]) -> list[str]:
        """The different words of these rows."""
        return [self.words[code] for code in np.unique(self.codes[rows]).tolist()]


NO_WORDS: Mapping[str, str] = {}


class Want(NamedTuple):
    """What of a file is read."""

    kinds: Mapping[str, Kind]
    where: Mapping[str, str]


class Block(NamedTuple):
    """Some lines of a file."""

    columns: dict[str, NDArray[Any]]
    lines: NDArray[np.int64]
    """Line number of each row, the header counted."""
    done: float
    """Share of the file that has been read."""


class CsvFile:
    """A file of delimited lines.

    Args:
        path: the file.
        names: columns by position, if a header line, where there is one, does not name them.
            A file may have more columns than names; they are not read.
        ended: a last line without a newline is one that was cut; else it is taken as whole.
        repair: leave out and count lines that cannot be read, and what is after a damage.
    """

    def __init__(
        self,
        path: str | Path,
        names: tuple[str, ...] = (),
        *,
        ended: bool = False,
        repair: bool = False,
    ) -> None:
        self.path = Path(path)
        self._text = TextFile(self.path)
        self._ended = ended
        self._repair = repair
        words = [word.strip() for word in self._text.first_line().split(",")]
        self._has_header = not names or not words[0][:1].isdigit()
        self.header = list(names) + [f"#{at + 1}" for at in range(len(names), len(words))]
        if not names:
            self.header = words
        if len(words) < len(names):
            raise SchemaError(
                f"{path}: line 1 has {len(words)} columns, want {len(names)}: {', '.join(names)}"
            )

    @property
    def first_line(self) -> int:
        """Line of the first row."""
        return 2 if self._has_header else 1

    def want(self, names: Iterable[str]) -> None:
        """Refuse a file whose header lacks one of `names`."""
        missing = [name for name in names if name not in self.header]
        if missing:
            raise SchemaError(f"{self.path}: no column {missing[0]!r}; it has {self.header}")

    def blocks(
        self, kinds: Mapping[str, Kind], counts: dict[str, int], where: Mapping[str, str] = NO_WORDS
    ) -> Iterator[Block]:
        """Columns of these kinds, in file order.

        Args:
            kinds: what each column holds.
            counts: told what was left out.
            where: only lines with these words in these columns.
        """
        self.want([*kinds, *where])
        line = 1
        try:
            for chunk, done in self._text.blocks():
                text = as_utf8(chunk)
                if self._ended and not text.endswith(b"\n"):
                    text = self._without_end(text, line, counts)
                lines = text.count(b"\n") + (bool(text) and not text.endswith(b"\n"))
                if line == 1 and self._has_header:
                    text = text.partition(b"\n")[2]
                    line, lines = 2, lines - 1
                if text:
                    yield self._block(text, Want(kinds, where), line, counts, done)
                line += lines
        except DAMAGE as error:
            if not self._repair:
                raise DataError(f"{self.path}: damaged after line {line - 1}: {error}") from error
            count(counts, "files damaged at the end")

    def _without_end(self, text: bytes, line: int, counts: dict[str, int]) -> bytes:
        if not self._repair:
            number = line + text.count(b"\n")
            raise DataError(f"{self.path}: line {number} is cut: it does not end in a newline")
        count(counts, "lines cut at the end")
        return text[: text.rfind(b"\n") + 1]

    def sample(self, names: Iterable[str], lines: int) -> dict[str, Words]:
        """Columns of the first lines, as they are written."""
        import pyarrow as pa

        names = list(names)
        self.want(names)
        text: list[bytes] = []
        try:
            for chunk, _ in self._text.blocks():
                text += as_utf8(chunk).split(b"\n", lines + 1 - len(text))
                if len(text) > lines:
                    break
        except DAMAGE:
            pass  # whoever reads on meets it again and tells
        width = len(self.header) - 1
        # What is no row is not for a sample to tell; \r is, to the parser, an end too.
        body = [line for line in text[self.first_line - 1 : lines] if line.count(b",") == width]
        if not body:
            return {name: Words(np.empty(0, np.int64), []) for name in names}
        try:
            table = self._parse(b"\n".join(body), {name: _arrow_type({}) for name in names})
        except pa.ArrowException as error:
            raise DataError(f"{self.path}: the first lines are no columns: {error}") from error
        return {name: _words(table.column(name)) for name in names}

    def _block(
        self, text: bytes, want: Want, line: int, counts: dict[str, int], done: float
    ) -> Block:
        import pyarrow as pa

        types = {name: _arrow_type(kind) for name, kind in want.kinds.items()}
        types |= {name: _arrow_type({}) for name in want.where}
        try:
            table = self._parse(text, types)
            columns = {name: _values(table.column(name), kind) for name, kind in want.kinds.items()}
            lines = np.arange(line, line + table.num_rows)
        except (pa.ArrowException, _Bad):
            return Block(*self._carefully(text, want, line, counts), done)
        wanted = np.ones(table.num_rows, bool)
        for name, word in want.where.items():
            wanted &= _is(table.column(name), word)
        if wanted.all():
            return Block(columns, lines, done)
        count(counts, "rows of other instruments", int(np.count_nonzero(~wanted)))
        columns = {name: values[wanted] for name, values in columns.items()}
        return Block(columns, lines[wanted], done)

    def _carefully(
        self, text: bytes, want: Want, line: int, counts: dict[str, int]
    ) -> tuple[dict[str, NDArray[Any]], NDArray[np.int64]]:
        """The lines that can be read, one by one; the first that cannot is refused by name."""
        found: list[list[float]] = []
        lines = []
        rows = text.decode("utf-8", "replace").split("\n")
        for number, row in enumerate(rows if rows[-1] else rows[:-1], line):
            try:
                values = self._line(row.rstrip("\r").split(","), want)
            except _Bad as bad:
                if not self._repair:
                    raise DataError(f"{self.path}: line {number}: {bad}") from None
                count(counts, "lines unreadable")
                continue
            if values is None:
                count(counts, "rows of other instruments")
                continue
            lines.append(number)
            found.append(values)
        columns = {}
        for at, (name, kind) in enumerate(want.kinds.items()):
            dtype = np.float64 if kind in ("float", "maybe") else np.int64
            columns[name] = np.array([values[at] for values in found], dtype)
        return columns, np.array(lines, np.int64)

    def _line(self, words: list[str], want: Want) -> list[float] | None:
        if len(words) != len(self.header):
            raise _Bad(f"{len(words)} columns, want {len(self.header)}")
        row = dict(zip(self.header, words, strict=True))
        values = [_value(row[name], name, kind) for name, kind in want.kinds.items()]
        return values if all(row[name] == word for name, word in want.where.items()) else None

    def _parse(self, text: bytes, types: dict[str, Any]) -> pa.Table:
        import pyarrow as pa
        from pyarrow import csv

        return csv.read_csv(
            pa.BufferReader(text),
            read_options=csv.ReadOptions(
                use_threads=False, block_size=len(text) + 1, column_names=self.header
            ),
            parse_options=csv.ParseOptions(quote_char=False, ignore_empty_lines=False),
            convert_options=csv.ConvertOptions(
                column_types=types, include_columns=list(types), null_values=[""]
            ),
        )


def _is(column: pa.ChunkedArray, word: str) -> NDArray[np.bool_]:
    import pyarrow.compute as pc

    same = pc.equal(column, word).combine_chunks()
    return np.asarray(pc.fill_null(same, False).to_numpy(zero_copy_only=False))


class _Bad(Exception):
    pass


def _arrow_type(kind: Kind) -> Any:
    import pyarrow as pa

    if isinstance(kind, dict):
        return pa.dictionary(pa.int32(), pa.string())
    return pa.int64() if kind == "int" else pa.float64()


def _words(column: pa.ChunkedArray) -> Words:
    import pyarrow.compute as pc

    array = pc.fill_null(column.combine_chunks(), "")
    array = array.chunk(0) if hasattr(array, "chunk") else array
    words = [word.strip() for word in array.dictionary.to_pylist()]
    return Words(array.indices.to_numpy(), words)


def _values(column: pa.ChunkedArray, kind: Kind) -> NDArray[Any]:
    array = column.combine_chunks()
    array = array.chunk(0) if hasattr(array, "chunk") else array
    if isinstance(kind, dict):
        words = array.dictionary.to_pylist()
        codes = np.array([kind.get(word, _UNKNOWN) for word in words], np.int64)
        if array.null_count or (codes == _UNKNOWN).any():
            raise _Bad
        coded: NDArray[Any] = codes[array.indices.to_numpy()]
        return coded
    if kind != "maybe" and array.null_count:
        raise _Bad
    values: NDArray[Any] = array.to_numpy(zero_copy_only=False)
    if kind != "int" and np.count_nonzero(~np.isfinite(values)) != array.null_count:
        raise _Bad
    return values


def _value(word: str, name: str, kind: Kind) -> float:
    word = word.strip()
    try:
        if isinstance(kind, dict):
            return kind[word]
        if kind == "maybe" and not word:
            return np.nan
        number = int(word) if kind == "int" else float(word)
    except (ValueError, KeyError):
        want = f"no {_WANTED[kind]}" if isinstance(kind, str) else f"none of {sorted(kind)}"
        raise _Bad(f"column {name}: {word!r} is {want}") from None
    if not (-(2**63) <= number < 2**63 if kind == "int" else np.isfinite(number)):
        raise _Bad(f"column {name}: {word!r} is no {_WANTED[str(kind)]}")
    return number


def count(counts: dict[str, int], what: str, by: int = 1) -> None:
    """Add to a count; what never happened is not named."""
    if by:
        counts[what] = counts.get(what, 0) + by


def decimals(numbers: Iterable[str]) -> int:
    """Most decimals that any of these numbers is written with, trailing zeros left out."""
    most = 0
    for text in numbers:
        if "e" in text or "E" in text:
            try:
                text = f"{Decimal(text):f}"
            except InvalidOperation:
                continue
        most = max(most, len(text.partition(".")[2].rstrip("0")))
    return most

"""Arrow columns, of text or typed, as NumPy arrays and a mask of what could not be read."""

from __future__ import annotations

import codecs
import io
import sys
import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hft.adapters.table.layout import TimeColumn
from hft.data.checks import TS_END
from hft.data.importing import duration_ns

if TYPE_CHECKING:
    import pyarrow as pa

Bad = NDArray[np.bool_]
Read = tuple[NDArray[Any], Bad]
Reader = Callable[[Any], Read]

_PER_UNIT = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
_UNKNOWN = 99  # code of a word that the map does not have


LINE_BYTES = 1 << 24


class Salvaged:
    """A byte stream that ends where it is damaged, after the last whole line before that."""

    def __init__(self, file: Any) -> None:
        self.damage: Exception | None = None
        self._file = file
        self._ended = False
        self._whole, self._rest = bytearray(), bytearray()

    def read(self, size: int = -1) -> bytes:
        """Up to `size` bytes; empty at the end."""
        wanted = size if size >= 0 else sys.maxsize
        while len(self._whole) < wanted and not self._ended:
            self._more()
        out = bytes(self._whole[:wanted])
        del self._whole[:wanted]
        return out

    def _more(self) -> None:
        try:
            piece = self._file.read1(1 << 16)
        except (EOFError, zlib.error, OSError) as error:
            self.damage, self._ended = error, True
            return
        self._rest += piece
        whole = self._rest.rfind(b"\n", -len(piece)) + 1 if piece else len(self._rest)
        if len(self._rest) > LINE_BYTES:  # no text; to be refused by who reads it
            whole = len(self._rest)
        self._whole += self._rest[:whole]
        del self._rest[:whole]
        self._ended = not piece


class Utf8(io.RawIOBase):
    """A byte stream with `?` for each byte that is not UTF-8.

    Arrow cannot tell of a malformed row that holds such bytes, and would pass over it in silence.
    """

    def __init__(self, file: Any) -> None:
        self._file = file
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        """Up to `size` bytes; empty at the end."""
        out = b""
        while not out:
            # Up to three bytes of a letter may wait in the decoder and come on top.
            raw = self._file.read(max(size - 3, 1) if size >= 0 else size)
            text = self._decode(raw, final=not raw)
            plain = raw.isascii() and len(text) == len(raw)
            out = raw if plain else text.replace("\ufffd", "?").encode()
            if not raw:
                break
        return out


def text(column: pa.Array) -> NDArray[Any]:
    """Words without blanks around them, (n,) of str; missing ones are empty."""
    words, at = _words(column)
    return np.array(words, object)[at]


def _words(column: pa.Array) -> tuple[list[str], NDArray[np.int64]]:
    """The different words of a column, and which of them each row has."""
    packed = column.dictionary_encode()
    words = [
        value.decode("utf-8", "replace").strip() if isinstance(value, bytes) else str(value)
        for value in undecoded(packed.dictionary).to_pylist()
    ]
    at = np.asarray(packed.indices.fill_null(len(words)))
    return [*words, ""], at.astype(np.int64)


def _read(column: pa.Array, convert: Callable[[pa.Array], NDArray[Any]], none: Any) -> Read:
    """Convert the whole column, or find the values that cannot be by converting one at a time."""
    import pyarrow as pa

    if not column.null_count:
        try:
            values = convert(column)
            return values, np.zeros(len(values), bool)
        except (pa.ArrowException, ValueError, OverflowError):
            pass
    values = np.full(len(column), none)
    bad = np.zeros(len(column), bool)
    for row in range(len(column)):
        try:
            one = column.slice(row, 1)
            if one.null_count:
                raise ValueError("missing")
            values[row] = convert(one)[0]
        except (pa.ArrowException, ValueError, OverflowError):
            bad[row] = True
    return values, bad


def _plain(column: pa.Array) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_binary(column.type):
        column = pc.cast(column, pa.string())
    return pc.utf8_trim_whitespace(column) if _is_text(column) else column


def undecoded(column: pa.Array) -> pa.Array:
    """Text as bytes: in a damaged Parquet file it may be no UTF-8."""
    import pyarrow as pa

    return column.cast(pa.large_binary()) if _is_text(column) else column


def _is_text(column: pa.Array) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(column.type) or pa.types.is_large_string(column.type))


def floats(column: pa.Array) -> Read:
    import pyarrow as pa
    import pyarrow.compute as pc

    def convert(part: pa.Array) -> NDArray[Any]:
        return np.array(pc.cast(_plain(part), pa.float64()))

    values, bad = _read(column, convert, 0.0)
    return values, bad | ~np.isfinite(values)


def integers(column: pa.Array) -> Read:
    import pyarrow as pa
    import pyarrow.compute as pc

    return _read(column, lambda part: np.array(pc.cast(_plain(part), pa.int64())), 0)


def word_reader(codes: dict[str, int]) -> Reader:
    def convert(column: pa.Array) -> Read:
        words, at = _words(column)
        values = np.array([codes.get(word, _UNKNOWN) for word in words], np.int64)[at]
        return np.where(values == _UNKNOWN, 0, values), values == _UNKNOWN

    return convert


def time_reader(time: TimeColumn) -> Reader:
    add_ns = duration_ns(time.add)

    def convert(part: pa.Array) -> NDArray[Any]:
        plain = _plain(part)
        ns = _iso_ns(plain, time.zone) if time.unit == "iso" else _epoch_ns(plain, time.unit)
        return np.asarray(ns + add_ns)

    return lambda column: _read(column, convert, 0)


def _iso_ns(column: pa.Array, zone: str) -> NDArray[np.int64]:
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        times = pc.cast(column, pa.timestamp("ns"))
    except pa.ArrowInvalid:
        times = pc.cast(column, pa.timestamp("ns", "UTC"))  # text that names its zone
    if times.type.tz is None:
        times = pc.assume_timezone(times, zone)
    return np.array(pc.cast(times, pa.int64()))


def _epoch_ns(column: pa.Array, unit: str) -> NDArray[np.int64]:
    """Whole numbers and decimal text exactly; a float column as exact as a double is."""
    import pyarrow as pa
    import pyarrow.compute as pc

    per = _PER_UNIT[unit]
    if pa.types.is_floating(column.type):
        seconds = np.array(column)
        if not (np.abs(seconds) < TS_END / per).all():
            raise ValueError("out of range")
        return np.asarray(np.rint(seconds * per), np.int64)
    try:
        whole = np.array(pc.cast(column, pa.int64()))
    except pa.ArrowInvalid:
        exact = pc.cast(column, pa.decimal128(27, 9))
        scaled = pc.multiply(exact, pa.scalar(per, pa.decimal128(10, 0)))
        return np.array(pc.cast(scaled, pa.int64()))
    if (np.abs(whole) > TS_END // per).any():
        raise ValueError("out of range")
    return np.asarray(whole * per)

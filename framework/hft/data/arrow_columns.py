"""Arrow columns, of text or typed, as NumPy arrays and a mask of what could not be read."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hft.data.checks import TS_END

if TYPE_CHECKING:
    import pyarrow as pa

Bad = NDArray[np.bool_]
Read = tuple[NDArray[Any], Bad]
Reader = Callable[[Any], Read]

_PER_UNIT = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}


def text(column: pa.Array) -> NDArray[Any]:
    """Words without blanks around them, (n,) of str; missing ones are empty."""
    words, at = words_of(column)
    return np.array(words, object)[at]


def words_of(column: pa.Array) -> tuple[list[str], NDArray[np.int64]]:
    """The different words of a column, and which of them each row has."""
    packed = column.dictionary_encode()
    words = [
        value.decode("utf-8", "replace").strip() if isinstance(value, bytes) else str(value)
        for value in undecoded(packed.dictionary).to_pylist()
    ]
    indices = packed.indices
    if indices.null_count:
        indices = indices.fill_null(len(words))
        words.append("")
    return words, np.asarray(indices).astype(np.int64)


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


def coded(column: pa.Array, codes: dict[str, int]) -> Read:
    """The code of each word."""
    words, at = words_of(column)
    values = np.array([codes.get(word, 0) for word in words], np.int64)
    known = np.array([word in codes for word in words], bool)
    return values[at], ~known[at]


def times(column: pa.Array, unit: str, zone: str = "UTC", add_ns: int = 0) -> Read:
    """Times since the epoch in `s`, `ms`, `us` or `ns`, or `iso` text or timestamps, in ns.

    Args:
        column: text or typed.
        unit: of the times.
        zone: of ISO text that names none itself.
        add_ns: added to each.
    """

    def convert(part: pa.Array) -> NDArray[Any]:
        plain = _plain(part)
        ns = _iso_ns(plain, zone) if unit == "iso" else _epoch_ns(plain, unit)
        return np.asarray(ns + add_ns)

    return _read(column, convert, 0)


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

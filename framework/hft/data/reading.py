"""Reading a part of a store's rows: some columns, some kinds, a stretch of time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hft.data.files import NAMES, Events
from hft.errors import ConfigError
from hft.types import EVENT, InstrumentSpec, Kind

if TYPE_CHECKING:
    import polars as pl


def layout(columns: Sequence[str] | None) -> np.dtype[Any]:
    """EVENT, or a row of some of its fields.

    Raises:
        ConfigError: no such field.
    """
    if columns is None:
        return EVENT
    for name in columns:
        if name not in NAMES:
            raise ConfigError(f"no column {name!r}; there are {', '.join(NAMES)}")
    return np.dtype([(name, EVENT[name]) for name in columns])


def kind_codes(kinds: Iterable[str]) -> frozenset[int]:
    """Codes of kinds by name.

    Raises:
        ConfigError: no such kind.
    """
    kinds = (kinds,) if isinstance(kinds, str) else tuple(kinds)
    for name in kinds:
        if name not in Kind.__members__:
            raise ConfigError(f"no kind {name!r}; there are {', '.join(Kind.__members__)}")
    return frozenset(int(Kind[name]) for name in kinds)


def _decimals(step: float) -> int:
    exponent = Decimal(repr(step)).as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def chosen(
    chunks: Iterator[Events], wanted: np.dtype[Any], codes: frozenset[int] | None
) -> Iterator[Events]:
    """Rows of some kinds (None: all) with the fields of `wanted`."""
    keep = np.ones(256, bool)
    if codes is not None:
        keep[:] = False
        keep[list(codes)] = True
    for chunk in chunks:
        rows = chunk if codes is None else chunk[keep[chunk["kind"]]]
        if not len(rows):
            continue
        cut = np.empty(len(rows), wanted)
        for name in wanted.names or ():
            cut[name] = rows[name]
        yield cut


def within(chunks: Iterator[Events], start: int | None, end: int | None) -> Iterator[Events]:
    """Cut chunks to `start <= ts_recv < end`; a chunk wholly inside passes as it is."""
    if start is None and end is None:  # looking for the bounds would cost as much as the replay
        yield from chunks
        return
    for chunk in chunks:
        ts = chunk["ts_recv"]
        low, high = int(ts.min()), int(ts.max())
        if (start is None or low >= start) and (end is None or high < end):
            yield chunk
            continue
        keep = np.ones(len(chunk), bool)
        if start is not None:
            keep &= ts >= start
        if end is not None:
            keep &= ts < end
        if keep.any():
            yield chunk[keep]


def scan(
    paths: list[Path],
    spec: InstrumentSpec,
    start: int | None,
    end: int | None,
    codes: frozenset[int] | None,
) -> pl.LazyFrame:
    """Files of a store as a LazyFrame with helper columns; see `Store.scan`."""
    import polars as pl

    partition = {"venue": pl.String, "symbol": pl.String, "date": pl.Date}
    frame = pl.scan_parquet(paths, glob=False, hive_partitioning=True, hive_schema=partition)
    bounds = [pl.col("ts_recv") >= start] if start is not None else []
    bounds += [pl.col("ts_recv") < end] if end is not None else []
    bounds += [pl.col("kind").is_in(sorted(codes))] if codes is not None else []
    names = {int(kind): kind.name for kind in Kind}
    return (frame.filter(*bounds) if bounds else frame).with_columns(
        time=pl.from_epoch("ts_recv", "ns").dt.replace_time_zone("UTC"),
        time_event=pl.from_epoch("ts_event", "ns").dt.replace_time_zone("UTC"),
        price_at=(pl.col("price") * spec.tick).round(_decimals(spec.tick)),
        amount=(pl.col("qty") * spec.lot).round(_decimals(spec.lot)),
        what=pl.col("kind").replace_strict(names, return_dtype=pl.Enum(sorted(names.values()))),
    )

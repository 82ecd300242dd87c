"""Turns a recipe's latency legs into what the core takes, and shifts a feed to another delay."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hft.config import Leg, Series
from hft.durations import parse_ns
from hft.errors import ConfigError, DataError


def core_latency(leg: Leg, scale: float) -> Any:
    """A leg as `_core.Latency`, multiplied by `scale`."""
    from hft import _core

    if isinstance(leg, Series):
        return _core.Latency.recorded(*read_series(leg)).scaled(leg.scale * scale)
    return _core.Latency.constant(parse_ns(leg)).scaled(scale)


def read_series(series: Series) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Times and durations of a recorded series, (n,) each [ns].

    Raises:
        ConfigError: no such file, or it is neither CSV nor Parquet.
        DataError: a column is missing, not whole numbers, unordered or negative.
    """
    import polars as pl

    path = Path(series.file)
    if not path.is_file():
        raise ConfigError(f"latency series: no file {path}")
    try:
        frame = pl.read_parquet(path) if path.suffix == ".parquet" else pl.read_csv(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataError(f"latency series {path}: {error}") from error
    columns = []
    for name in (series.ts, series.column):
        if name not in frame.columns:
            raise DataError(f"latency series {path} has no column {name!r}; it has {frame.columns}")
        if not frame[name].dtype.is_integer() or frame[name].null_count():
            raise DataError(f"latency series {path}: column {name!r} must be whole ns without gaps")
        columns.append(frame[name].cast(pl.Int64).to_numpy())
    return columns[0], columns[1]


def delayed(chunks: Iterator[NDArray[Any]], feed: Leg, scale: float) -> Iterator[NDArray[Any]]:
    """Rows whose `ts_recv` follows another feed latency.

    With `data`, each row's own delay is scaled; otherwise the leg replaces it. A feed never
    reorders, so `ts_recv` is raised to the row before it. Input arrays are not changed.
    """
    if feed == "data" and scale == 1.0:
        yield from chunks
        return
    last = np.iinfo(np.int64).min
    series = read_series(feed) if isinstance(feed, Series) else None
    for rows in chunks:
        moved = rows.copy()
        moved["ts_recv"] = rows["ts_event"] + _delay(rows, feed, series, scale)
        if len(moved):
            moved["ts_recv"][0] = max(int(moved["ts_recv"][0]), last)
            np.maximum.accumulate(moved["ts_recv"], out=moved["ts_recv"])
            last = int(moved["ts_recv"][-1])
        yield moved


def _delay(
    rows: NDArray[Any],
    feed: Leg,
    series: tuple[NDArray[np.int64], NDArray[np.int64]] | None,
    scale: float,
) -> NDArray[np.int64] | int:
    if feed == "data":
        delay: NDArray[np.int64] = rows["ts_recv"] - rows["ts_event"]
        return _whole(delay * scale)
    if series is None:
        return round(parse_ns(feed) * scale)  # type: ignore[arg-type]
    assert isinstance(feed, Series)
    ts, ns = series
    at = np.maximum(np.searchsorted(ts, rows["ts_event"], side="right") - 1, 0)
    held: NDArray[np.int64] = ns[at]
    return _whole(held * (feed.scale * scale))


def _whole(ns: NDArray[Any]) -> NDArray[np.int64]:
    whole: NDArray[np.int64] = np.rint(ns).astype(np.int64)
    return whole

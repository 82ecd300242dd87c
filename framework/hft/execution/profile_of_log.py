"""A latency profile of an order log: stamps of request, exchange and response by message.

CSV, Parquet, or the `.npz` of hftbacktest's order latencies (`data` with req_ts, exch_ts, resp_ts).
Request and response come from our clock, the exchange's stamp from its own, so their offset is
estimated (clock_offset.py) and taken off; what cannot be known of it is written beside it.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from hft.durations import UNITS_NS
from hft.errors import ConfigError, DataError
from hft.execution.clock_offset import corrected, offset_bounds
from hft.execution.draws import draw_uniform
from hft.execution.market_rate import rate_of
from hft.execution.profiles import (
    MESSAGES,
    NONE,
    ClockOffset,
    LatencyProfile,
    ProfileFacts,
    make_profile,
)
from hft.recipe_checks import to_recipe

if TYPE_CHECKING:
    import polars as pl

Int = NDArray[np.int64]

STAMPS = ("request", "exchange", "response")
_QUANTUM_STREAM = 2000


@dataclass(frozen=True, slots=True)
class LogColumns:
    """Names of a log's columns; the first three there must be, the others if they were asked for.

    Attributes:
        request: when we sent it, our clock.
        exchange: when the venue had it, its clock; 0 or less: it never did.
        response: when its answer reached us, our clock.
        order_id: whole numbers.
        message: new, cancel or replace.
        feed_exchange: venue's stamp of the market data behind it.
        feed_receive: when they reached us.
    """

    request: str = "req_ts"
    exchange: str = "exch_ts"
    response: str = "resp_ts"
    order_id: str = "order_id"
    message: str = "message"
    feed_exchange: str = "feed_exch_ts"
    feed_receive: str = "feed_recv_ts"


@dataclass(frozen=True, slots=True)
class LogOptions:
    """How stamps are read.

    Attributes:
        unit: of all stamps, ns, us, ms or s.
        quantum_ns: what the venue rounds its stamps down to; above 1 they are spread by keyed
            uniform draws.
        offset: `estimate`, `none`, or our clock less the venue's [ns].
        market: a store or file for the message rates; empty: none.
    """

    unit: str = "ns"
    quantum_ns: int = 1
    offset: str | int = "estimate"
    market: str = ""


def profile_of_log(
    path: Path, columns: LogColumns | None = None, options: LogOptions | None = None
) -> LatencyProfile:
    """The profile of a log.

    Raises:
        ConfigError: no such file or column, or an option is wrong.
        DataError: it cannot be read, or its stamps contradict each other.
    """
    columns, options = columns or LogColumns(), options or LogOptions()
    if options.unit not in ("ns", "us", "ms", "s"):
        raise ConfigError(f"unit is {options.unit!r}: want ns, us, ms or s")
    if not 1 <= options.quantum_ns <= UNITS_NS["s"]:
        raise ConfigError(f"quantum is {options.quantum_ns} ns: want at least 1ns, at most 1s")
    log = _read(path, columns, options.unit)
    notes = []
    log, lost = _without_unmatched(log)
    if lost:
        notes.append(
            f"Left out for want of a stamp, as where they never arrived: {lost:,} of the log."
        )
    if not log.request.size:
        raise DataError(f"{path}: no message has all three stamps, {', '.join(STAMPS)}")
    _require_causal(path, log)
    network, offset = _network(log, options, notes)
    made: dict[str, NDArray[Any] | list[Any]] = {
        "kind": ["order"] * log.request.size,
        "ts": log.request,
        **network,
    }
    if log.order_id is not None:
        made["order_id"] = log.order_id
    made["message"] = log.message if log.message is not None else ["new"] * log.request.size
    if options.market:
        made["rate"] = _rates(options.market, log.request)
    facts = ProfileFacts(
        origin="measured",
        source=path.name,
        clock_offset=offset,
        created_from={**dataclasses.asdict(options), "columns": dataclasses.asdict(columns)},
        notes=tuple(notes),
    )
    return make_profile(str(path), facts, made)


@dataclass(frozen=True, slots=True)
class _Log:
    request: Int
    exchange: Int
    response: Int
    feed_exchange: Int | None
    feed_receive: Int | None
    order_id: Int | None
    message: list[str] | None

    def kept(self, rows: NDArray[np.bool_]) -> _Log:
        columns: dict[str, Any] = {}
        for field in dataclasses.fields(self):
            values = getattr(self, field.name)
            if isinstance(values, list):
                columns[field.name] = [v for v, keep in zip(values, rows, strict=True) if keep]
            else:
                columns[field.name] = None if values is None else values[rows]
        return _Log(**columns)


def _read(path: Path, columns: LogColumns, unit: str) -> _Log:
    frame = _frame(path)
    if frame.is_empty():
        raise DataError(f"{path}: no message in it")
    asked = LogColumns()
    found: dict[str, Any] = {}
    for field in dataclasses.fields(columns):
        name = getattr(columns, field.name)
        if name in frame.columns:
            found[field.name] = frame[name]
        elif field.name in STAMPS or name != getattr(asked, field.name):
            raise ConfigError(
                f"{path} has no column {name!r} for the {field.name.replace('_', ' ')}; it has "
                f"{', '.join(frame.columns)}"
            )
    if ("feed_exchange" in found) != ("feed_receive" in found):
        raise ConfigError(f"{path}: want both stamps of the feed, exchange and receive, or neither")
    stamps = (*STAMPS, "feed_exchange", "feed_receive")
    times = {
        name: _times(path, found[name], UNITS_NS[unit]) if name in found else None
        for name in stamps
    }
    message = _messages(path, found["message"]) if "message" in found else None
    ids = _times(path, found["order_id"], 1) if "order_id" in found else None
    return _Log(**times, order_id=ids, message=message)  # type: ignore[arg-type]


def _frame(path: Path) -> pl.DataFrame:
    import polars as pl

    if not path.is_file():
        raise ConfigError(f"no order log at {path}")
    try:
        if path.suffix in (".npz", ".npy"):
            return _numpy_frame(path)
        return pl.read_parquet(path) if path.suffix == ".parquet" else pl.read_csv(path)
    except (pl.exceptions.PolarsError, OSError, ValueError, EOFError, BadZipFile) as error:
        raise DataError(f"{path} cannot be read as an order log: {error}") from error


def _numpy_frame(path: Path) -> pl.DataFrame:
    import polars as pl

    with path.open("rb") as file:
        loaded = np.load(file, allow_pickle=False)
        if not isinstance(loaded, np.ndarray):  # an .npz, whatever its name
            if "data" not in loaded:
                raise DataError(f"{path}: want an array `data`, has {', '.join(loaded)}")
            loaded = loaded["data"]
    names = loaded.dtype.names
    if names is None:
        raise DataError(f"{path}: want rows of req_ts, exch_ts, resp_ts; was {loaded.dtype}")
    return pl.DataFrame({name: np.ascontiguousarray(loaded[name]) for name in names})


def _times(path: Path, column: pl.Series, unit_ns: int) -> Int:
    """Whole ns, NONE where there is no stamp."""
    import polars as pl

    if not (column.dtype.is_numeric() or column.dtype == pl.Null):
        numbers = column.cast(pl.Float64, strict=False)
        rows = (numbers.is_null() & column.is_not_null()).arg_true()
        told = f"; {column[rows[0]]!r} in row {rows[0]}" if len(rows) else ""
        raise DataError(f"{path}: column {column.name} is {column.dtype}{told}: want numbers")
    if column.dtype.is_float():
        column = column.fill_nan(None)
    far = (column.cast(pl.Float64).abs() * unit_ns >= 2.0**63).arg_true()
    if len(far):
        raise DataError(
            f"{path}: {column.name} is {column[far[0]]} in row {far[0]}: no time in units of "
            f"{unit_ns} ns; is it another unit?"
        )
    scaled = column * unit_ns if column.dtype.is_float() else column.cast(pl.Int64) * unit_ns
    whole: Int = scaled.round().cast(pl.Int64).fill_null(NONE).to_numpy().astype(np.int64)
    return whole


def _messages(path: Path, column: pl.Series) -> list[str]:
    words: list[str] = [str(word).lower() for word in column.to_list()]
    for row, word in enumerate(words):
        if word not in MESSAGES:
            raise DataError(
                f"{path}: {column.name} is {word!r} in row {row}: want {', '.join(MESSAGES)}"
            )
    return words


def _without_unmatched(log: _Log) -> tuple[_Log, int]:
    """Messages with all their stamps: hftbacktest writes 0 or less for one refused on the way."""
    whole = (log.exchange > 0) & (log.request != NONE) & (log.response != NONE)
    return log.kept(whole), int((~whole).sum())


def _require_causal(path: Path, log: _Log) -> None:
    bad = np.flatnonzero(log.response < log.request)
    if bad.size:
        row = int(bad[0])
        raise DataError(
            f"{path}: response {log.response[row]} comes before request {log.request[row]} in row "
            f"{row}: both are our clock's, want the request first"
        )


def _network(
    log: _Log, options: LogOptions, notes: list[str]
) -> tuple[dict[str, Int], ClockOffset | None]:
    """The three legs on one clock."""
    entry, response = log.exchange - log.request, log.response - log.exchange
    feed = None
    if log.feed_exchange is not None and log.feed_receive is not None:
        known = (log.feed_exchange > 0) & (log.feed_receive != NONE)
        feed = np.where(known, log.feed_receive - log.feed_exchange, NONE)
    offset = _offset(entry, response, feed, options)
    if options.quantum_ns > 1:
        entry, response, feed = _spread(entry, response, feed, options.quantum_ns)
        notes.append(f"Exchange stamps spread over their {options.quantum_ns:,} ns.")
    elif log.exchange.size > 20 and not (log.exchange % 1_000_000).any():
        notes.append("Exchange stamps are whole ms; --quantum 1ms spreads them.")
    if offset is not None:
        theta = offset.estimate_ns
        entry, response = corrected(entry, response, theta)
        if feed is not None:
            feed = np.where(feed == NONE, NONE, np.maximum(feed - theta, 0))
    legs = {"entry_ns": entry, "response_ns": response}
    return legs | ({"feed_ns": feed} if feed is not None else {}), offset


def _offset(entry: Int, response: Int, feed: Int | None, options: LogOptions) -> ClockOffset | None:
    if options.offset == "none":
        return None
    if not isinstance(options.offset, int) and options.offset != "estimate":
        raise ConfigError(f"clock offset is {options.offset!r}: want estimate, none or whole ns")
    known = None if feed is None else feed[feed != NONE]
    bounds = offset_bounds(entry, response, known, options.quantum_ns)
    if not isinstance(options.offset, int):
        return bounds.offset
    if not bounds.low <= options.offset <= bounds.high:
        raise ConfigError(
            f"clock offset is {options.offset} ns, our clock less the venue's: that would make a "
            f"leg negative, the stamps want {bounds.low} to {bounds.high} ns"
        )
    return ClockOffset(estimate_ns=options.offset, half_width_ns=0)


def _spread(
    entry: Int, response: Int, feed: Int | None, quantum_ns: int
) -> tuple[Int, Int, Int | None]:
    """Venue's stamps moved on by a keyed share of what was rounded off."""
    rows = np.arange(entry.size, dtype=np.uint64)
    late = np.floor(draw_uniform(0, _QUANTUM_STREAM, rows) * quantum_ns).astype(np.int64)
    later = np.floor(draw_uniform(0, _QUANTUM_STREAM, rows, 1) * quantum_ns).astype(np.int64)
    if feed is not None:
        feed = np.where(feed == NONE, NONE, feed - later)
    return entry + late, response - late, feed


def _rates(market: str, ts: Int) -> Int:
    from hft.feeds import open_feeds

    rate = rate_of(feed.chunks() for feed in open_feeds(to_recipe({"data": {"path": market}})))
    if rate is None or ts.max() < rate.ts_first or ts.min() > rate.ts_last:
        raise ConfigError(f"market {market} and the log have no time in common")
    return rate.before(ts)

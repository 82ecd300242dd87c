"""Rows of a run as tables: polars frames with names instead of numbers, and the way back.

Times stay int64 nanoseconds (null where the thing never happened); prices come twice, as whole
ticks and in currency.
"""

from __future__ import annotations

from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hft.analysis.mids import MIDS, Mids
from hft.analysis.records import (
    FILL_ROW,
    MARKOUT_NS,
    NO_PRICE,
    NO_TIME,
    ORDER_ROW,
    REUSE_SECOND,
    SAMPLE_ROW,
    FillReason,
    OrderState,
    Reason,
    Tif,
)
from hft.analysis.run_data import Rows, RunData
from hft.analysis.units import MONEY_PER_UNIT, span
from hft.errors import DataError

if TYPE_CHECKING:
    import polars as pl

SIDES = ("sell", "none", "buy")
"""Names of side -1, 0, +1."""
MARKOUT_COLUMNS = tuple(f"mid2_after_{span(ns).replace(' ', '')}" for ns in MARKOUT_NS)

_ORDER_TIMES = (
    "ts_cause_event",
    "ts_cause_recv",
    "ts_model_start",
    "ts_model_end",
    "ts_decide",
    "ts_handled",
    "ts_send",
    "ts_arrive",
    "ts_ack",
    "ts_done",
)


def orders_frame(run: RunData) -> pl.DataFrame:
    """One row an order, in order of submission."""
    import polars as pl

    rows = run.orders
    filled = np.where(rows["cum_lots"] > 0, rows["cum_lots"], 1)
    average = np.where(rows["cum_lots"] > 0, rows["cum_ticks"] / filled, np.nan)
    tags = [run.tags[tag] if tag < len(run.tags) else None for tag in rows["tag"].tolist()]
    return pl.DataFrame(
        {
            "id": rows["id"],
            "instrument": _instrument(run, rows),
            "side": _side(rows["side"]),
            "price_ticks": _nullable(rows["price"], NO_PRICE),
            "price": _currency(run, rows, rows["price"]),
            "lots": rows["lots"],
            "cum_lots": rows["cum_lots"],
            "cum_ticks": rows["cum_ticks"],
            "avg_price": pl.Series(average * _tick(run, rows)).fill_nan(None),
            "tif": _named(Tif, rows["tif"], "tif"),
            "state": _named(OrderState, rows["state"], "state"),
            "reason": _named(Reason, rows["reason"], "reason"),
            "ahead_at_accept": rows["ahead_at_accept"],
            **{name: _nullable(rows[name], NO_TIME) for name in _ORDER_TIMES},
            "cause_row": rows["cause_row"],
            "tag": pl.Series(tags, dtype=pl.String),
            "tag_id": rows["tag"],
            "parent": rows["parent"],
            "replaces": rows["replaces"],
            "by_signal": rows["by_signal"].astype(bool),
        }
    )


def fills_frame(run: RunData) -> pl.DataFrame:
    """One row a fill, in the venue's order."""
    import polars as pl

    rows = run.fills
    return pl.DataFrame(
        {
            "order": rows["order"],
            "instrument": _instrument(run, rows),
            "side": _side(rows["side"]),
            "price_ticks": rows["price"],
            "price": _currency(run, rows, rows["price"]),
            "lots": rows["lots"],
            "fee_e9": rows["fee"],
            "fee": rows["fee"] / MONEY_PER_UNIT,
            "impact_e9": rows["impact"],
            "impact": rows["impact"] / MONEY_PER_UNIT,
            "maker": rows["maker"].astype(bool),
            "extrapolated": rows["extrapolated"].astype(bool),
            "reason": _named(FillReason, rows["reason"], "fill reason"),
            "ts_venue": _nullable(rows["ts_venue"], NO_TIME),
            "ts_recv": _nullable(rows["ts_recv"], NO_TIME),
            "mid2": _nullable(rows["mid2"], NO_PRICE),
            "mid": _currency(run, rows, rows["mid2"], halves=True),
            "ahead_at_accept": rows["ahead_at_accept"],
            "cause_row": rows["cause_row"],
            "position": rows["position"],
            **{
                name: _nullable(rows["markout_mid2"][:, k], NO_PRICE)
                for k, name in enumerate(MARKOUT_COLUMNS)
            },
        }
    )


def samples_frame(run: RunData) -> pl.DataFrame:
    """One row an instrument and sample time."""
    import polars as pl

    rows = run.samples
    return pl.DataFrame(
        {
            "ts": rows["ts"],
            "instrument": _instrument(run, rows),
            "bid_ticks": _nullable(rows["bid"], NO_PRICE),
            "ask_ticks": _nullable(rows["ask"], NO_PRICE),
            "bid": _currency(run, rows, rows["bid"]),
            "ask": _currency(run, rows, rows["ask"]),
            "position": rows["position"],
            "equity_e9": rows["equity"],
            "fees_e9": rows["fees"],
            "funding_e9": rows["funding"],
            "impact_e9": rows["impact"],
            "open_orders": rows["open_orders"],
        }
    )


def write_rows(run: RunData, folder: Path) -> None:
    """Write the row files of a run folder."""
    import polars as pl

    orders_frame(run).write_parquet(folder / "orders.parquet")
    fills_frame(run).write_parquet(folder / "fills.parquet")
    samples_frame(run).write_parquet(folder / "samples.parquet")
    feed = pl.DataFrame({"feed_latency_ns": run.feed_latency_ns})
    feed.write_parquet(folder / "feed_latency.parquet")
    for name in ("model_wait", "model_service"):
        if (values := getattr(run, f"{name}_ns")).size:
            pl.DataFrame({f"{name}_ns": values}).write_parquet(folder / f"{name}.parquet")
    if run.reuse.size:
        seconds = {name: run.reuse[name] for name in REUSE_SECOND.names or ()}
        pl.DataFrame(seconds).write_parquet(folder / "reuse.parquet")
    if run.mids is not None:
        columns = {name: _nullable(run.mids.orders[:, k], NO_PRICE) for k, name in enumerate(MIDS)}
        frame = pl.DataFrame({"id": run.orders["id"], **columns})
        frame.write_parquet(folder / "mids.parquet")
        touch = _nullable(run.mids.touch, NO_PRICE)
        frame = pl.DataFrame({"order": run.fills["order"], "touch_ticks": touch})
        frame.write_parquet(folder / "touches.parquet")


def read_rows(folder: Path, names: list[str]) -> dict[str, Any]:
    """Read them back as keyword arguments of `RunData`.

    Args:
        folder: the run's folder.
        names: `SYMBOL.VENUE` by instrument id.
    """
    feed = _read(folder / "feed_latency.parquet")["feed_latency_ns"]
    models = {
        f"{name}_ns": _read(folder / f"{name}.parquet")[f"{name}_ns"].to_numpy().astype(np.int64)
        for name in ("model_wait", "model_service")
        if (folder / f"{name}.parquet").is_file()
    }
    return {
        "orders": _order_rows(_read(folder / "orders.parquet"), names),
        "fills": _fill_rows(_read(folder / "fills.parquet"), names),
        "samples": _sample_rows(_read(folder / "samples.parquet"), names),
        "feed_latency_ns": feed.to_numpy().astype(np.int64),
        **models,
        "reuse": _reuse(folder),
        "mids": _mids(folder) if (folder / "mids.parquet").is_file() else None,
    }


def _reuse(folder: Path) -> Rows:
    if not (folder / "reuse.parquet").is_file():
        return np.zeros(0, REUSE_SECOND)
    frame = _read(folder / "reuse.parquet")
    rows = np.zeros(frame.height, REUSE_SECOND)
    for name in REUSE_SECOND.names or ():
        rows[name] = frame[name].to_numpy()
    return rows


def _mids(folder: Path) -> Mids:
    frame = _read(folder / "mids.parquet")
    touch = _read(folder / "touches.parquet")["touch_ticks"]
    columns = [_filled(frame[name], NO_PRICE) for name in MIDS]
    return Mids(np.column_stack(columns).astype(np.int64), _filled(touch, NO_PRICE))


def _order_rows(frame: pl.DataFrame, names: list[str]) -> NDArray[np.void]:
    rows = np.zeros(frame.height, ORDER_ROW)
    plain = (
        "id",
        "lots",
        "cum_lots",
        "cum_ticks",
        "ahead_at_accept",
        "cause_row",
        "parent",
        "replaces",
    )
    for name in (*plain, "by_signal"):
        rows[name] = frame[name].to_numpy()
    rows["tag"] = frame["tag_id"].to_numpy()
    rows["price"] = _filled(frame["price_ticks"], NO_PRICE)
    for name in _ORDER_TIMES:
        rows[name] = _filled(frame[name], NO_TIME)
    rows["instrument"] = _numbers(frame["instrument"], {name: i for i, name in enumerate(names)})
    rows["side"] = _numbers(frame["side"], {name: i - 1 for i, name in enumerate(SIDES)})
    for name, kind in (("tif", Tif), ("state", OrderState), ("reason", Reason)):
        rows[name] = _numbers(frame[name], {member.name: member.value for member in kind})
    return rows


def _fill_rows(frame: pl.DataFrame, names: list[str]) -> NDArray[np.void]:
    rows = np.zeros(frame.height, FILL_ROW)
    for name in (
        "order",
        "lots",
        "ahead_at_accept",
        "cause_row",
        "position",
        "maker",
        "extrapolated",
    ):
        rows[name] = frame[name].to_numpy()
    rows["price"] = frame["price_ticks"].to_numpy()
    rows["fee"] = frame["fee_e9"].to_numpy()
    rows["impact"] = frame["impact_e9"].to_numpy()
    rows["mid2"] = _filled(frame["mid2"], NO_PRICE)
    rows["ts_venue"] = _filled(frame["ts_venue"], NO_TIME)
    rows["ts_recv"] = _filled(frame["ts_recv"], NO_TIME)
    for k, name in enumerate(MARKOUT_COLUMNS):
        rows["markout_mid2"][:, k] = _filled(frame[name], NO_PRICE)
    rows["instrument"] = _numbers(frame["instrument"], {name: i for i, name in enumerate(names)})
    rows["side"] = _numbers(frame["side"], {name: i - 1 for i, name in enumerate(SIDES)})
    rows["reason"] = _numbers(frame["reason"], {member.name: member.value for member in FillReason})
    return rows


def _sample_rows(frame: pl.DataFrame, names: list[str]) -> NDArray[np.void]:
    rows = np.zeros(frame.height, SAMPLE_ROW)
    for name in ("ts", "position", "open_orders"):
        rows[name] = frame[name].to_numpy()
    for name in ("equity", "fees", "funding", "impact"):
        rows[name] = frame[f"{name}_e9"].to_numpy()
    for name in ("bid", "ask"):
        rows[name] = _filled(frame[f"{name}_ticks"], NO_PRICE)
    rows["instrument"] = _numbers(frame["instrument"], {name: i for i, name in enumerate(names)})
    return rows


def _read(path: Path) -> pl.DataFrame:
    import polars as pl

    if not path.is_file():
        raise DataError(f"the run folder is not whole: {path} is missing")
    try:
        return pl.read_parquet(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataError(f"{path} is damaged: {error}") from error


def _instrument(run: RunData, rows: NDArray[np.void]) -> pl.Series:
    return _choice(run.instrument_names, rows["instrument"])


def _side(side: NDArray[np.int8]) -> pl.Series:
    return _choice(list(SIDES), side.astype(np.int64) + 1)


def _named(kind: type[IntEnum], values: NDArray[Any], what: str) -> pl.Series:
    names = [member.name for member in kind]  # every enum here counts from 0 without holes
    if values.size and int(values.max()) >= len(names):
        raise DataError(f"{what} {int(values.max())} is unknown; this version knows {len(names)}")
    return _choice(names, values)


def _choice(names: list[str], index: NDArray[Any]) -> pl.Series:
    import polars as pl

    return pl.Series(names, dtype=pl.String).gather(index).cast(pl.Enum(names))


def _numbers(column: pl.Series, values: dict[str, int]) -> NDArray[np.int64]:
    import polars as pl

    text = column.cast(pl.String)
    known = text.replace_strict(values, default=None, return_dtype=pl.Int64)
    if known.null_count():
        stranger = text.filter(known.is_null())[0]
        raise DataError(
            f"column {column.name} holds {stranger!r}; this version knows {list(values)}"
        )
    return known.to_numpy()


def _nullable(values: NDArray[np.int64], none: int) -> pl.Series:
    import polars as pl

    return pl.Series(values).set(pl.Series(values == none), None)


def _filled(column: pl.Series, none: int) -> NDArray[np.int64]:
    return column.fill_null(none).to_numpy()


def _currency(
    run: RunData, rows: NDArray[np.void], ticks: NDArray[np.int64], *, halves: bool = False
) -> pl.Series:
    import polars as pl

    scale = _tick(run, rows) * (0.5 if halves else 1.0)
    # Rounded, so that 1234567 ticks of 0.1 read 123456.7 and not its neighbour.
    return pl.Series(np.where(ticks == NO_PRICE, np.nan, (ticks * scale).round(10))).fill_nan(None)


def _tick(run: RunData, rows: NDArray[np.void]) -> NDArray[np.float64]:
    ticks = np.array([facts.spec.tick for facts in run.instruments], np.float64)
    return ticks[rows["instrument"]] if rows.size else np.zeros(0)

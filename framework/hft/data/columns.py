"""A user's table as EVENT rows: columns by name, times of any unit, prices as decimals or as ticks.

Integer `price` and `qty` are ticks and lots, floats are prices and quantities. The rule is by type
so that it never depends on the values; a table that mixes the two is refused.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hft.data.checks import Events, as_events
from hft.data.exact import on_grid
from hft.data.repairs import set_last
from hft.errors import SchemaError
from hft.types import EVENT, SEEN_BY_BOTH, InstrumentSpec, Kind

SIDES = {
    **dict.fromkeys(("b", "buy", "buyer", "bid", "+1", "1"), 1),
    **dict.fromkeys(("s", "sell", "seller", "a", "ask", "offer", "-1"), -1),
    **dict.fromkeys(("", "n", "none", "0"), 0),
}
_REQUIRED = ("ts_event", "ts_recv", "price", "qty", "kind", "side")
_KINDS = {kind.name.lower(): int(kind) for kind in Kind}


def to_events(table: Any, spec: InstrumentSpec) -> Events:
    """`table` as EVENT rows.

    Args:
        table: EVENT array (returned as it is), polars, pandas or Arrow table, or a dict of columns.
            Needs `ts_event ts_recv price qty kind side`; `order_id ref_id seq flags` default to
            0 and to packets of equal timestamps that both sides see.
        spec: tick and lot for float columns.

    Raises:
        SchemaError: a column is missing, unknown or of a type that cannot be meant.
        DataError: names the first row off the tick or lot.
    """
    if isinstance(table, np.ndarray):
        return as_events(table)
    names = _names(table)
    missing = [name for name in _REQUIRED if name not in names]
    unknown = [name for name in names if name not in (EVENT.names or ())]
    if missing or unknown:
        raise SchemaError(
            f"columns missing: {missing or 'none'}, unknown: {unknown or 'none'}; want "
            f"{list(_REQUIRED)} and perhaps order_id, ref_id, seq, flags, instrument"
        )
    columns = {name: _array(table, name) for name in names}
    events = np.zeros(len(columns["price"]), EVENT)
    for name in ("ts_event", "ts_recv"):
        events[name] = _times(columns[name], name)
    events["kind"] = _coded(columns["kind"], "kind", _KINDS)
    events["side"] = _coded(columns["side"], "side", SIDES)
    _fill_amounts(events, columns, spec)
    for name in ("order_id", "ref_id", "seq", "flags", "instrument"):
        if name in columns:
            events[name] = _integers(columns[name], name)
    if "flags" not in columns:
        events["flags"] = SEEN_BY_BOTH
        set_last(events)
    return events


def _names(table: Any) -> list[str]:
    if isinstance(table, dict):
        return list(table)
    names = getattr(table, "column_names", None)  # Arrow; polars and pandas say `columns`
    if names is None:
        names = getattr(table, "columns", None)
    if names is None:
        raise SchemaError(
            f"want an EVENT array or a table with columns, not {type(table).__name__}"
        )
    return [str(name) for name in names]


def _array(table: Any, name: str) -> NDArray[Any]:
    column = table[name]
    if getattr(getattr(column, "dtype", None), "tz", None) is not None:  # pandas, with a zone
        return np.asarray(column.to_numpy(dtype="datetime64[ns]"))
    values = np.asarray(column.to_numpy() if hasattr(column, "to_numpy") else column)
    if values.ndim != 1:
        raise SchemaError(f"column {name} has shape {values.shape}, want one dimension")
    return values


def _times(values: NDArray[Any], name: str) -> NDArray[np.int64]:
    if values.dtype.kind == "M":
        if np.isnat(values).any():
            raise SchemaError(f"row {int(np.isnat(values).argmax())}: {name} is missing")
        return values.astype("datetime64[ns]").astype(np.int64)
    return _integers(values, name)


def _integers(values: NDArray[Any], name: str) -> NDArray[np.int64]:
    if values.dtype.kind not in "iu":
        raise SchemaError(f"column {name} is {values.dtype}, want integers" + _hint(name))
    if values.dtype.kind == "u" and len(values) and values.max() > np.iinfo(np.int64).max:
        raise SchemaError(f"row {int(values.argmax())}: {name} {values.max()} does not fit 63 bits")
    info = np.iinfo(EVENT[name])
    bad = (values < info.min) | (values > info.max)
    if bad.any():
        at = int(bad.argmax())
        raise SchemaError(f"row {at}: {name} {values[at]} does not fit {EVENT[name]}")
    return values.astype(np.int64)


def _hint(name: str) -> str:
    return " (ns since the epoch) or datetimes" if name.startswith("ts_") else ""


def _coded(values: NDArray[Any], name: str, words: dict[str, int]) -> NDArray[np.int64]:
    if values.dtype.kind in "iu":
        return _integers(values, name)
    found, inverse = np.unique(values.astype(str), return_inverse=True)
    codes = np.array([words.get(str(w).strip().lower(), 99) for w in found], np.int64)
    bad = codes[inverse] == 99
    if bad.any():
        at = int(bad.argmax())
        raise SchemaError(f"row {at}: {name} is {str(values[at])!r}, want one of {sorted(words)}")
    return codes[inverse]


def _fill_amounts(events: Events, columns: dict[str, Any], spec: InstrumentSpec) -> None:
    price, qty = columns["price"], columns["qty"]
    if (price.dtype.kind in "iu") != (qty.dtype.kind in "iu"):
        raise SchemaError(
            f"price is {price.dtype} and qty is {qty.dtype}: give both as integers (ticks and "
            "lots) or both as floats (prices and quantities)"
        )
    if price.dtype.kind in "iu":
        events["price"], events["qty"] = _integers(price, "price"), _integers(qty, "qty")
        return
    if price.dtype.kind != "f" or qty.dtype.kind != "f":
        raise SchemaError(f"price is {price.dtype} and qty is {qty.dtype}, want numbers")
    events["price"], _ = on_grid(price.astype(np.float64), spec.tick, "price")
    events["qty"], _ = on_grid(qty.astype(np.float64), spec.lot, "qty")

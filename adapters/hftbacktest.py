"""Files of hftbacktest: `.npy`, or `.npz` with key `data`, of its 64-byte event rows.

    ev u8 | exch_ts i8 | local_ts i8 | px f8 | qty f8 | order_id u8 | ival i8 | fval f8

`ev` holds the kind in its low byte and four bits: EXCH and LOCAL say which side sees the row, BUY
and SELL whose it is (of a trade, the aggressor's). Rows of one (local_ts, exch_ts) become one
packet. Snapshot rows act as plain updates after a clear there, and so here, marked RECOVERED.
`ival` and `fval` are not read.

Order by order: a CANCEL there takes all of an order, whatever its size says. A FILL changes nothing
in the book, the CANCEL or MODIFY that follows it does: EXECUTE, NO_PRINT and NO_CHANGE here. A
TRADE beside FILL rows tells of the same lots again, so it is NO_CHANGE.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hft.data.checks import BLOCK, Events
from hft.data.exact import on_grid
from hft.data.importing import Batch
from hft.data.numpy_blocks import Header, NumpyFile
from hft.data.repairs import set_last
from hft.data.sources import Request
from hft.errors import DataError, SchemaError
from hft.types import EVENT, Flag, InstrumentSpec, Kind

EVENT_DTYPE = np.dtype(
    [
        ("ev", "<u8"),
        ("exch_ts", "<i8"),
        ("local_ts", "<i8"),
        ("px", "<f8"),
        ("qty", "<f8"),
        ("order_id", "<u8"),
        ("ival", "<i8"),
        ("fval", "<f8"),
    ]
)
CHUNK = 1 << 17  # rows in a batch

_TRADE, _CLEAR, _SNAPSHOT = 2, 3, 4
_FIRST_L3 = 10
_KIND_OF = np.zeros(256, np.uint8)
for _code, _kind in {
    1: Kind.LEVEL,
    _TRADE: Kind.TRADE,
    _CLEAR: Kind.CLEAR,
    _SNAPSHOT: Kind.LEVEL,
    5: Kind.BBO,
    10: Kind.ADD,
    11: Kind.CANCEL,
    12: Kind.MODIFY,
    13: Kind.EXECUTE,
}.items():
    _KIND_OF[_code] = _kind
# The four top bits of `ev` as one index: EXCH 8, LOCAL 4, BUY 2, SELL 1.
_SIDE_OF = np.array([0, -1, 1, 0] * 4, np.int8)
_FLAGS_OF = np.array([0] * 4 + [2] * 4 + [1] * 4 + [3] * 4, np.uint16)
_BOTH_SIDES = 3


def open_files(request: Request) -> list[HftbacktestFile]:
    """One source a file, all of one instrument."""
    spec = request.spec()
    return [HftbacktestFile(path, spec, repair=request.repair) for path in request.paths]


class HftbacktestFile:
    """One `.npy` or `.npz` file as a source of EVENT rows."""

    reorders = False
    cannot_tell = ()

    def __init__(self, path: str | Path, spec: InstrumentSpec, *, repair: bool = False) -> None:
        want_spec(spec)
        self.name = str(path)
        self.spec = spec
        self.counts: dict[str, int] = {}
        self.inferred: list[str] = []
        self._file = NumpyFile(Path(path), repair=repair)
        _want_header(self._file.header, str(path))
        self._by_order = self._holds_orders()
        self._repair = repair

    def batches(self) -> Iterator[Batch]:
        """Decoded rows, in batches that end with a packet."""
        total = max(self._file.header.shape[0], 1)
        self.counts = {"rows": 0, "prints rounded": 0}
        for rows in self._packets():
            events, rounded = _convert(
                rows,
                self.spec,
                self.counts["rows"],
                by_order=self._by_order,
                loose=self._repair,
            )
            self.counts["rows"] += len(rows)
            self.counts["prints rounded"] += rounded
            yield Batch(events, done=self.counts["rows"] / total)
        if self._file.damaged:
            self.counts["files damaged at the end"] = 1

    def _packets(self) -> Iterator[NDArray[Any]]:
        """Stretches of rows that end with a packet."""
        rest = np.empty(0, self._file.header.dtype)
        for block in self._file.blocks(CHUNK):
            rows = np.concatenate([rest, block]) if len(rest) else block
            cut = _last_packet(rows)
            if not cut and len(rows) > CHUNK:  # no packet is that long
                cut = len(rows)
            if cut:
                yield rows[:cut]
            rest = rows[cut:]
        if len(rest):
            yield rest

    def _holds_orders(self) -> bool:
        told = (holds_orders(rows) for rows in self._file.blocks(CHUNK))
        return next((by_order for by_order in told if by_order is not None), False)


def to_events(rows: NDArray[Any], spec: InstrumentSpec, *, repair: bool = False) -> Events:
    """Hftbacktest's rows as EVENT rows, unchecked; `rows` is not changed.

    Args:
        rows: (n,) hftbacktest events.
        spec: tick and lot.
        repair: round prints that lie off the tick instead of refusing.
    """
    want_spec(spec)
    rows = want_layout(rows, "rows")
    return _convert(rows, spec, 0, by_order=bool(holds_orders(rows)), loose=repair)[0]


def holds_orders(rows: NDArray[Any]) -> bool | None:
    """Whether the book is told order by order: the first row that is no trade says so, if any."""
    for start in range(0, len(rows), BLOCK):
        code = rows["ev"][start : start + BLOCK] & np.uint64(0xFF)
        book = (code != _TRADE) & (code != _CLEAR)
        if book.any():
            return bool(code[book.argmax()] >= _FIRST_L3)
    return None


def want_layout(rows: Any, where: str) -> NDArray[Any]:
    """`rows` itself if it has hftbacktest's layout, else SchemaError."""
    if not isinstance(rows, np.ndarray):
        raise SchemaError(
            f"{where}: {type(rows).__name__}, want an array of {EVENT_DTYPE.descr}, hftbacktest's "
            "event_dtype"
        )
    _want_header(Header(rows.dtype, rows.shape), where)
    return rows


def _want_header(header: Header, where: str) -> None:
    if not is_layout(header.dtype):
        raise SchemaError(
            f"{where}: dtype is {header.dtype}, want hftbacktest's event_dtype {EVENT_DTYPE.descr}"
        )
    if len(header.shape) != 1:
        raise SchemaError(f"{where}: shape is {header.shape}, want one dimension")


def is_layout(dtype: np.dtype[Any]) -> bool:
    """Whether `dtype` is hftbacktest's, aligned or not."""
    return dtype.names == EVENT_DTYPE.names and dtype.fields == EVENT_DTYPE.fields


def want_spec(spec: InstrumentSpec) -> None:
    """The file holds no facts about its instrument, so tick and lot must be given."""
    for name, step in (("tick", spec.tick), ("lot", spec.lot)):
        if not (step > 0 and np.isfinite(step)):
            raise DataError(
                f"{spec.name}: {name} is {step}; an hftbacktest file needs it given, above 0"
            )


def _last_packet(rows: NDArray[Any]) -> int:
    """The last row that both sides see and that starts a packet; 0: none does."""
    for start in (max(len(rows) - BLOCK, 1), 1):
        here, before = rows[start:], rows[start - 1 : -1]
        starts = here["local_ts"] != before["local_ts"]
        starts &= here["exch_ts"] != before["exch_ts"]
        starts &= here["ev"] >> np.uint64(30) == _BOTH_SIDES
        if starts.any():
            return start + int(np.flatnonzero(starts)[-1])
    return 0


def _convert(
    rows: NDArray[Any], spec: InstrumentSpec, first: int, *, by_order: bool, loose: bool
) -> tuple[Events, int]:
    out = np.empty(len(rows), EVENT)
    rounded = 0
    for start in range(0, len(rows), BLOCK):
        block = slice(start, start + BLOCK)
        rounded += _convert_block(rows[block], out[block], spec, first + start, loose=loose)
        if by_order:
            _as_orders(out[block])
    set_last(out)
    return out, rounded


def _convert_block(
    rows: NDArray[Any], out: Events, spec: InstrumentSpec, first: int, *, loose: bool
) -> int:
    code, top = rows["ev"] & np.uint64(0xFF), rows["ev"] >> np.uint64(28)
    kind = _KIND_OF[code]
    _want_known(rows, kind, top, first)
    price, qty = rows["px"], rows["qty"]
    if (kind == Kind.CLEAR).any():
        price, qty = _clear_amounts(kind, price, qty)
    ticks, rounded = on_grid(
        price, spec.tick, "price", loose=kind == Kind.TRADE if loose else None, rows=first
    )
    out["price"] = ticks
    out["qty"], _ = on_grid(qty, spec.lot, "qty", rows=first)
    out["ts_event"], out["ts_recv"] = rows["exch_ts"], rows["local_ts"]
    out["order_id"] = _order_ids(rows["order_id"], first)
    out["kind"], out["side"], out["flags"] = kind, _SIDE_OF[top], _FLAGS_OF[top]
    out["flags"][code == _SNAPSHOT] |= np.uint16(Flag.RECOVERED)
    out["ref_id"] = (kind == Kind.CLEAR) & (ticks > 0) & (out["side"] != 0)
    out["seq"] = out["instrument"] = 0
    return rounded


def _as_orders(out: Events) -> None:
    """What the rows of an order-by-order file mean there; `flags` and `qty` are set."""
    kind, flags = out["kind"], out["flags"]
    out["qty"][kind == Kind.CANCEL] = 0
    flags[kind == Kind.EXECUTE] |= np.uint16(Flag.NO_PRINT | Flag.NO_CHANGE)
    flags[kind == Kind.TRADE] |= np.uint16(Flag.NO_CHANGE)


def _want_known(rows: NDArray[Any], kind: NDArray[Any], top: NDArray[Any], first: int) -> None:
    bad = (kind == 0) | (top > 15) | (top & np.uint64(_BOTH_SIDES) == _BOTH_SIDES)
    if bad.any():
        at = int(bad.argmax())
        raise DataError(
            f"row {first + at}: ev is {int(rows['ev'][at]):#x}; want a kind 1-5 or 10-13 in the "
            "low byte, the bits EXCH 31, LOCAL 30, BUY 29 or SELL 28, and no other"
        )


def _clear_amounts(
    kind: NDArray[Any], price: NDArray[Any], qty: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """A clear without a price (NaN, infinite or 0) drops the whole side."""
    clear = kind == Kind.CLEAR
    return np.where(clear & ~np.isfinite(price), 0.0, price), np.where(clear, 0.0, qty)


def _order_ids(ids: NDArray[np.uint64], first: int) -> NDArray[np.int64]:
    signed = ids.view(np.int64) if ids.flags.c_contiguous else ids.astype(np.int64)
    if len(signed) and signed.min() < 0:
        at = int((signed < 0).argmax())
        raise DataError(f"row {first + at}: order_id {int(ids[at])} does not fit 63 bits")
    return signed

"""Records of one instrument as EVENT rows: orders (MBO), levels (MBP, TBBO) and prints.

**MBO.** A trade of Databento is told three times: T is the print, F each resting order's fill, and
then C or M does to the book what the fill did. So T and F change nothing here, F prints nothing,
and a cancel may be a fill. A match in an auction has no side (N).

**MBP.** Each record shows all levels after it; rows are the differences to the record before, and a
level that is pushed out of the view is taken away, since its changes are no longer told. A trade's
record, of TBBO too, shows the book before the trade.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hft.adapters.databento.records import (
    F_BAD_TS_RECV,
    F_LAST,
    F_MAYBE_BAD_BOOK,
    F_SNAPSHOT,
    UNDEF_PRICE,
)
from hft.data.checks import Events
from hft.data.exact import on_grid
from hft.errors import DataError
from hft.types import EVENT, SEEN_BY_BOTH, Flag, InstrumentSpec, Kind

Records = NDArray[Any]
Numbers = NDArray[np.int64]
Counts = dict[str, int]

_UNIT = 1e-9  # fixed-point prices
_UNKNOWN, _NOTHING = 255, 0
_KIND_OF = np.full(256, _UNKNOWN, np.uint8)
for _action, _kind in {
    "A": Kind.ADD,
    "C": Kind.CANCEL,
    "M": Kind.MODIFY,
    "R": Kind.CLEAR,
    "T": Kind.TRADE,
    "F": Kind.EXECUTE,
    "N": _NOTHING,
}.items():
    _KIND_OF[ord(_action)] = _kind
_SIDE_OF = np.full(256, 2, np.int8)
for _letter, _side in {"B": 1, "A": -1, "N": 0}.items():
    _SIDE_OF[ord(_letter)] = _side
_COUNTED = {
    "A": "adds",
    "C": "cancels",
    "M": "modifies",
    "R": "clears",
    "T": "trades",
    "F": "fills",
    "N": "records without an action",
}


class Orders:
    """Rows of MBO records."""

    def __init__(self, spec: InstrumentSpec, counts: Counts) -> None:
        self._spec = spec
        self._counts = counts
        self._latest = 0  # venue time of the last row

    def rows(self, records: Records, numbers: Numbers, packets: Any) -> Events:
        """Whole packets as rows.

        Args:
            records: (n,) MBO records.
            numbers: of each record in the file.
            packets: number of each record's packet, rising.
        """
        kind = _kinds(records, numbers, self._counts)
        begins = _begins(records)
        kind[(kind == Kind.CLEAR) & begins] = Kind.SNAPSHOT_BEGIN
        prints = (kind == Kind.TRADE) | (kind == Kind.EXECUTE)
        kept = _usable(records, kind, prints, self._counts)
        snapshot = records["flags"] & F_SNAPSHOT != 0
        _add(self._counts, "snapshot records", snapshot)
        out = _framed(records, kind, self._counts)
        out["ts_event"] = self._raised(out["ts_event"], snapshot)
        self._amounts(out, records, numbers, kept, prints)
        _want_ids(records["order_id"], numbers)
        rests = (kind == Kind.ADD) | (kind == Kind.CANCEL) | (kind == Kind.MODIFY)
        named = rests | (kind == Kind.EXECUTE)
        ids = records["order_id"].astype(np.int64)
        out["order_id"] = np.where(named, ids, 0)
        out["ref_id"] = np.where(kind == Kind.TRADE, ids, 0)  # the aggressor
        out["side"][~rests & ~prints] = 0
        out["flags"][prints] |= np.uint16(Flag.NO_CHANGE)
        out["flags"][kind == Kind.EXECUTE] |= np.uint16(Flag.NO_PRINT)
        out["flags"][snapshot] |= np.uint16(Flag.RECOVERED)
        if not kept.all():
            out, packets, begins, snapshot = (x[kept] for x in (out, packets, begins, snapshot))
        out, packets = _with_ends(out, packets, begins, snapshot)
        _set_last(out, packets)
        return out

    def _raised(self, ts: Any, snapshot: Any) -> Any:
        """A snapshot's orders may be older than the rows before it: they come now."""
        reached = np.maximum(np.maximum.accumulate(ts), self._latest)
        late = snapshot & (ts < reached)
        _add(self._counts, "snapshot times raised", late)
        ts = np.where(late, reached, ts)
        self._latest = int(reached[-1])
        return ts

    def _amounts(
        self, out: Events, records: Records, numbers: Numbers, kept: Any, prints: Any
    ) -> None:
        whole = np.isin(out["kind"], (Kind.CLEAR, Kind.SNAPSHOT_BEGIN))
        price = np.where(kept & ~whole & (records["price"] != UNDEF_PRICE), records["price"], 0)
        out["price"] = _ticks(price, self._spec, numbers, prints, self._counts)
        out["qty"] = np.where(whole, 0, records["size"])


class Prints:
    """Rows of trade records."""

    def __init__(self, spec: InstrumentSpec, counts: Counts) -> None:
        self._spec = spec
        self._counts = counts

    def rows(self, records: Records, numbers: Numbers, packets: Any) -> Events:
        """Whole packets as rows, arguments as of Orders."""
        kind = _kinds(records, numbers, self._counts)
        kind[kind != Kind.TRADE] = _NOTHING
        out, kept = _prints(records, numbers, kind, self._spec, self._counts)
        _set_last(out, packets[kept])
        return out


class Levels:
    """Rows of MBP and TBBO records."""

    def __init__(self, spec: InstrumentSpec, counts: Counts, levels: int) -> None:
        self._spec = spec
        self._counts = counts
        self._empty = (np.zeros((1, levels), np.int64), np.zeros((1, levels), np.int64))
        self._shown = [self._empty, self._empty]
        self._opened = False

    def rows(self, records: Records, numbers: Numbers, packets: Any) -> Events:
        """Whole packets as rows, arguments as of Orders."""
        kind = _kinds(records, numbers, self._counts)
        clears = kind == Kind.CLEAR
        parts = [self._marks(records, clears)]
        for at, side in enumerate((1, -1)):
            parts += self._side(records, clears, at, side)
        record, place, row_kind, side_of, price, qty = (
            np.concatenate(column) for column in zip(*parts, strict=True)
        )
        order = np.lexsort((place, record))
        record = record[order]
        book = _framed(records[record], row_kind[order], self._counts)
        book["side"], book["qty"] = side_of[order], qty[order]
        book["price"] = _ticks(
            price[order], self._spec, numbers[record], np.zeros(len(record), bool), self._counts
        )
        kind[kind != Kind.TRADE] = _NOTHING
        prints, kept = _prints(records, numbers, kind, self._spec, self._counts)
        where = np.concatenate([record, np.flatnonzero(kept)])
        order = np.argsort(where, kind="stable")
        out = np.concatenate([book, prints])[order]
        _set_last(out, packets[where[order]])
        return out

    def _marks(self, records: Records, clears: Any) -> tuple[Any, ...]:
        """Clears, and the begin and end of the first book."""
        at = np.flatnonzero(clears)
        place = np.zeros(len(at), np.int64)
        kinds = np.full(len(at), Kind.CLEAR, np.uint8)
        if not self._opened and len(records):
            self._opened = True
            at = np.concatenate([[0, 0], at[at > 0]])
            place = np.concatenate([[0, 9], np.zeros(len(at) - 2, np.int64)])
            marks = np.array([Kind.SNAPSHOT_BEGIN, Kind.SNAPSHOT_END], np.uint8)
            kinds = np.concatenate([marks, np.full(len(at) - 2, Kind.CLEAR, np.uint8)])
        none = np.zeros(len(at), np.int64)
        return at, place, kinds, none, none, none

    def _side(self, records: Records, clears: Any, which: int, side: int) -> list[tuple[Any, ...]]:
        """Levels of one side that are gone, and those that are new or of another size."""
        name = ("bid", "ask")[which]
        price = records["levels"][f"{name}_px"].astype(np.int64)
        size = records["levels"][f"{name}_sz"].astype(np.int64)
        size[price == UNDEF_PRICE] = 0
        price[size == 0] = 0
        before_price, before_size = (
            np.concatenate([old, new[:-1]])
            for old, new in zip(self._shown[which], (price, size), strict=True)
        )
        before_price[clears], before_size[clears] = 0, 0
        self._shown[which] = (price[-1:], size[-1:])
        at = np.flatnonzero(((price != before_price) | (size != before_size)).any(axis=1))
        price, size = price[at], size[at]
        before_price, before_size = before_price[at], before_size[at]
        same = price[:, :, None] == before_price[:, None, :]
        as_before = same & (size[:, :, None] == before_size[:, None, :])
        gone = (before_size > 0) & ~same.any(axis=1)
        new = (size > 0) & ~as_before.any(axis=2)
        return [
            _level_rows(at, gone, 1, side, before_price, np.zeros_like(size)),
            _level_rows(at, new, 2, side, price, size),
        ]


def _level_rows(
    at: Any, chosen: Any, place: int, side: int, price: Any, size: Any
) -> tuple[Any, ...]:
    row, level = np.nonzero(chosen)
    n = len(row)
    return (
        at[row],
        np.full(n, place),
        np.full(n, Kind.LEVEL, np.uint8),
        np.full(n, side),
        price[row, level],
        size[row, level],
    )


def _kinds(records: Records, numbers: Numbers, counts: Counts) -> Any:
    """Kind by action; actions counted."""
    kind = _KIND_OF[records["action"]]
    bad = (kind == _UNKNOWN) | (_SIDE_OF[records["side"]] == 2)
    if bad.any():
        at = int(bad.argmax())
        action, side = (bytes([records[name][at]]) for name in ("action", "side"))
        raise DataError(
            f"record {numbers[at]}: action {action!r} and side {side!r}, want one of ACMRTFN and "
            "one of BAN"
        )
    met = np.bincount(records["action"], minlength=256)
    counts["records"] = counts.get("records", 0) + len(records)
    for letter, what in _COUNTED.items():
        _add(counts, what, met[ord(letter)])
    return kind


def _begins(records: Records) -> Any:
    """Records that begin a snapshot."""
    snapshot, last = (records["flags"] & flag != 0 for flag in (F_SNAPSHOT, F_LAST))
    begins = snapshot.copy()
    ended = last[:-1] & (records["ts_recv"][1:] != records["ts_recv"][:-1])
    begins[1:] &= ~snapshot[:-1] | (records["action"][1:] == ord("R")) | ended
    return begins


def packet_ends(records: Records, *, by_flag: bool) -> Any:
    """Records that end a packet; the last one does not unless it says so.

    A snapshot is one packet, whatever its records say.
    """
    ends = np.zeros(len(records), bool)
    if not by_flag:
        for name in ("ts_event", "ts_recv"):
            ends[:-1] |= records[name][1:] != records[name][:-1]
        return ends
    snapshot = records["flags"] & F_SNAPSHOT != 0
    ends = (records["flags"] & F_LAST != 0) & ~snapshot
    ends[:-1] |= snapshot[:-1] & (~snapshot[1:] | _begins(records)[1:])
    ends[:-1] |= ~snapshot[:-1] & snapshot[1:]
    return ends


def _usable(records: Records, kind: Any, prints: Any, counts: Counts) -> Any:
    """Records that give a row."""
    priced = prints | (kind == Kind.ADD) | (kind == Kind.MODIFY)
    unpriced = priced & (records["price"] == UNDEF_PRICE)
    empty = prints & ~unpriced & (records["size"] == 0)
    _add(counts, "records without a price", unpriced)
    _add(counts, "prints without a size", empty)
    return (kind != _NOTHING) & ~unpriced & ~empty


def _framed(records: Records, kind: Any, counts: Counts) -> Events:
    """Rows with what all kinds share."""
    out = np.zeros(len(records), EVENT)
    out["ts_event"], out["ts_recv"] = records["ts_event"], records["ts_recv"]
    out["kind"], out["side"] = kind, _SIDE_OF[records["side"]]
    out["seq"] = records["sequence"]
    bad_book, bad_recv = (records["flags"] & f != 0 for f in (F_MAYBE_BAD_BOOK, F_BAD_TS_RECV))
    _add(counts, "rows of a book that may be bad", bad_book)
    _add(counts, "rows with a doubtful ts_recv", bad_recv)
    out["flags"] = SEEN_BY_BOTH | np.where(bad_book | bad_recv, int(Flag.UNCERTAIN), 0)
    return out


def _prints(
    records: Records, numbers: Numbers, kind: Any, spec: InstrumentSpec, counts: Counts
) -> tuple[Events, Any]:
    """TRADE rows, and the records that gave one."""
    kept = _usable(records, kind, kind == Kind.TRADE, counts)
    records = records[kept]
    out = _framed(records, Kind.TRADE, counts)
    loose = np.ones(len(out), bool)
    out["price"] = _ticks(records["price"], spec, numbers[kept], loose, counts)
    out["qty"] = records["size"]
    return out, kept


def _ticks(price: Any, spec: InstrumentSpec, numbers: Numbers, loose: Any, counts: Counts) -> Any:
    """Whole ticks; prints between two are rounded."""
    try:
        ticks, rounded = on_grid(
            price * _UNIT, spec.tick, "price", loose=loose, rows=numbers, where="record"
        )
    except DataError as error:
        raise DataError(f"{error}; a tick can be given") from None
    _add(counts, "prints rounded", rounded)
    return ticks


def _want_ids(ids: Any, numbers: Numbers) -> None:
    large = ids >= 1 << 63
    if large.any():
        at = int(large.argmax())
        raise DataError(f"record {numbers[at]}: order_id {ids[at]} does not fit 63 bits")


def _with_ends(out: Events, packets: Any, begins: Any, snapshot: Any) -> tuple[Events, Any]:
    """The same rows with a begin before each snapshot that lacks one, and an end after each."""
    missing = begins | (snapshot & ~np.r_[False, snapshot[:-1]])
    missing &= out["kind"] != Kind.SNAPSHOT_BEGIN
    ends = snapshot & ~np.r_[snapshot[1:] & ~begins[1:], False]
    if not (missing.any() or ends.any()):
        return out, packets
    before, after = np.flatnonzero(missing), np.flatnonzero(ends)
    source = np.concatenate([before, np.arange(len(out)), after])
    order = np.lexsort((np.repeat([0, 1, 2], [len(before), len(out), len(after)]), source))
    more = out[source]
    mark = np.repeat(
        np.array([Kind.SNAPSHOT_BEGIN, 0, Kind.SNAPSHOT_END], np.uint8),
        [len(before), len(out), len(after)],
    )
    marks = mark != 0
    for name in ("price", "qty", "order_id", "ref_id", "side"):
        more[name][marks] = 0
    more["kind"][marks] = mark[marks]
    return more[order], packets[source[order]]


def _set_last(out: Events, packets: Any) -> None:
    if len(out):
        ends = np.r_[packets[1:] != packets[:-1], True]
        out["flags"][ends] |= np.uint16(Flag.LAST)


def _add(counts: Counts, what: str, by: Any) -> None:
    if isinstance(by, np.ndarray):
        by = np.count_nonzero(by)
    if by:
        counts[what] = counts.get(what, 0) + int(by)

"""What a feed must satisfy before it is replayed.

Rules a row breaks alone (kind, flags, side, qty, price, time range, latency) and rules between rows
(order on each clock, sequence) are masks over blocks of rows, so that a day is checked at memory
speed. Between blocks only a handful of last values is carried.

A row counts on a clock only where its flags say that side sees it: feeds that reorder are stored
with some rows split in two, one seen by the venue and one by us, and each half is in order on its
own clock alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hft.data.exact import duration
from hft.errors import DataError, OutOfOrder, SchemaError, SequenceGap
from hft.types import EVENT, SEEN_BY_BOTH, Datum, Flag, InstrumentSpec, Kind, Trading

Events = NDArray[Any]
Mask = Any  # (n,) bool; fields of a structured array are Any to mypy
Sequence = Literal["ignore", "increasing", "contiguous"]

TS_END = 7_258_118_400_000_000_000  # 2200-01-01
FARTHEST = 9_000_000_000_000_000
"""Largest price in ticks or size in lots: up to here a float of them is whole, sums fit 64 bits."""
BLOCK = 1 << 15  # rows; 2 MiB, so that a dozen passes over a block stay in cache

_ANY = np.iinfo(np.int64).min
_KIND_KNOWN = np.zeros(256, bool)
_KIND_KNOWN[[int(k) for k in Kind]] = True
_BOOK_SIDES = (Kind.LEVEL, Kind.BBO, Kind.ADD, Kind.MODIFY, Kind.REPLACE)
_NEEDS_SIDE = np.zeros(256, bool)
_NEEDS_SIDE[[int(k) for k in _BOOK_SIDES]] = True
_LEAST_QTY = np.full(256, _ANY)
for _kind in (Kind.LEVEL, Kind.BBO, Kind.MODIFY, Kind.CANCEL):
    _LEAST_QTY[_kind] = 0
for _kind in (Kind.TRADE, Kind.ADD, Kind.EXECUTE, Kind.REPLACE):
    _LEAST_QTY[_kind] = 1
_LEAST_PRICE = np.full(256, _ANY)
for _kind in (Kind.LEVEL, Kind.TRADE, Kind.ADD, Kind.MODIFY, Kind.REPLACE):
    _LEAST_PRICE[_kind] = 1
_FLAGS_KNOWN = int(sum(Flag))
_TRADES = (int(Kind.TRADE), int(Kind.EXECUTE))


@dataclass(slots=True)
class Finding:
    """One kind of fault: how often, and the first row that has it."""

    rule: str
    row: int
    count: int
    message: str
    error: type[DataError] = DataError


@dataclass(slots=True)
class Report:
    """What a check found. `require` raises for the first bad row, if there is one."""

    rows: int = 0
    findings: list[Finding] = field(default_factory=list)
    repaired: dict[str, int] = field(default_factory=dict)
    """What a repair changed, by what it did, in rows."""
    counted: dict[str, int] = field(default_factory=dict)
    """What is no fault of a row but worth knowing: orders named that are not there ..."""
    least_latency_ns: int | None = None
    """Smallest `ts_recv - ts_event`; None: no rows."""

    @property
    def ok(self) -> bool:
        """No rule was broken."""
        return not self.findings

    def require(self) -> Report:
        """Raise the error of the earliest bad row; return the report if there is none."""
        if self.findings:
            first = min(self.findings, key=lambda f: f.row)
            more = sum(f.count for f in self.findings) - 1
            also = f" ({more:,} more faults)" if more else ""
            raise first.error(first.message + also)
        return self


def as_events(rows: Events) -> Events:
    """`rows` itself if it has the EVENT layout, else SchemaError."""
    if not isinstance(rows, np.ndarray) or rows.dtype != EVENT:
        what = f"dtype {rows.dtype}" if isinstance(rows, np.ndarray) else type(rows).__name__
        raise SchemaError(f"rows must be an array of dtype hft.EVENT, not {what}")
    if rows.ndim != 1:
        raise SchemaError(f"rows must have one dimension, not shape {rows.shape}")
    return rows


def _bad_kind(e: Events) -> Mask:
    return ~_KIND_KNOWN[e["kind"]]


def _bad_flags(e: Events) -> Mask:
    flags = e["flags"]
    return ((flags & ~np.uint16(_FLAGS_KNOWN)) != 0) | ((flags & SEEN_BY_BOTH) == 0)


def _bad_side(e: Events) -> Mask:
    side = e["side"]
    return (side < -1) | (side > 1) | ((side == 0) & _NEEDS_SIDE[e["kind"]])


def _bad_qty(e: Events) -> Mask:
    return np.less(e["qty"], _LEAST_QTY[e["kind"]])


def _bad_price(e: Events) -> Mask:
    return np.less(e["price"], _LEAST_PRICE[e["kind"]])


def _bad_range(e: Events) -> Mask:
    return (e["price"] > FARTHEST) | (e["price"] < -FARTHEST) | (e["qty"] > FARTHEST)


def _bad_order_id(e: Events) -> Mask:
    kind = e["kind"]
    bad = is_order(kind) & ((e["order_id"] == 0) | (e["order_id"] == _ANY))
    return bad | ((kind == Kind.REPLACE) & ((e["ref_id"] == 0) | (e["ref_id"] == _ANY)))


def is_order(kind: Any) -> Mask:
    """Rows of a kind that tells a single order."""
    return (kind >= Kind.ADD) & (kind <= Kind.REPLACE)


def _bad_payload(e: Events) -> Mask:
    kind = e["kind"]
    if not (kind >= Kind.STATUS).any():
        return np.zeros(len(e), bool)
    bad_state = (kind == Kind.STATUS) & ~np.isin(e["ref_id"], [int(t) for t in Trading])
    return bad_state | ((kind == Kind.DATUM) & ~np.isin(e["order_id"], [int(d) for d in Datum]))


def _bad_time(e: Events) -> Mask:
    event, recv = e["ts_event"], e["ts_recv"]
    return (event < 0) | (event >= TS_END) | (recv < 0) | (recv >= TS_END)


def _say_kind(r: Any) -> str:
    return f"kind is {r['kind']}, want one of {', '.join(f'{int(k)} {k.name}' for k in Kind)}"


def _say_flags(r: Any) -> str:
    return (
        f"flags are {r['flags']:#x}, want bits of {_FLAGS_KNOWN:#x} with SEEN_BY_VENUE or "
        "SEEN_BY_US"
    )


def _say_side(r: Any) -> str:
    return f"side of a {_name(r)} row is {r['side']}, want +1 (bid, buyer) or -1 (ask, seller)"


def _say_qty(r: Any) -> str:
    return f"qty of a {_name(r)} row is {r['qty']} lots, want at least {_LEAST_QTY[r['kind']]}"


def _say_price(r: Any) -> str:
    return (
        f"price of a {_name(r)} row is {r['price']} ticks, want at least {_LEAST_PRICE[r['kind']]} "
        "unless the instrument has negative_price (hft data import --negative-price)"
    )


def _say_range(r: Any) -> str:
    return f"price {r['price']} or qty {r['qty']} of a {_name(r)} row is beyond {FARTHEST}"


def _say_order_id(r: Any) -> str:
    return f"order_id {r['order_id']} or ref_id {r['ref_id']} of a {_name(r)} row is no order's"


def _say_payload(r: Any) -> str:
    if r["kind"] == Kind.STATUS:
        return f"ref_id of a STATUS row is {r['ref_id']}, want a Trading value 0..{max(Trading)}"
    return f"order_id of a DATUM row is {r['order_id']}, want a Datum value 1..{max(Datum)}"


def _say_one_book(r: Any) -> str:
    other = "levels" if is_order(r["kind"]) else "orders"
    return f"a {_name(r)} row in a feed that tells {other}; want one or the other"


def _say_time(r: Any) -> str:
    return (
        f"ts_event {r['ts_event']} or ts_recv {r['ts_recv']} is no time between 1970 and 2200 "
        "in ns since the epoch"
    )


def _name(r: Any) -> str:
    return Kind(int(r["kind"])).name


Rule = tuple[str, Callable[[Events], Mask], Callable[[Any], str]]
ROW_RULES: tuple[Rule, ...] = (
    ("kind", _bad_kind, _say_kind),
    ("flags", _bad_flags, _say_flags),
    ("side", _bad_side, _say_side),
    ("qty", _bad_qty, _say_qty),
    ("price", _bad_price, _say_price),
    ("range", _bad_range, _say_range),
    ("order id", _bad_order_id, _say_order_id),
    ("payload", _bad_payload, _say_payload),
    ("time", _bad_time, _say_time),
)


def row_rules(spec: InstrumentSpec | None, *, negative_price: bool = False) -> tuple[Rule, ...]:
    """Rules for rows of an instrument, each by itself."""
    if negative_price or (spec is not None and spec.negative_price):
        return tuple(rule for rule in ROW_RULES if rule[0] != "price")
    return ROW_RULES


class Checker:
    """Checks a feed block by block; `report` sums up.

    Args:
        spec: facts of the instrument, for messages.
        sequence: `increasing` wants the `seq` of book rows, and that of prints, never to go back;
            `contiguous` wants one `seq` over all rows that rises by one a packet. Venues differ, so
            the default does not look.
        negative_price: prices at or below zero are valid, whatever `spec` says.
    """

    def __init__(
        self,
        spec: InstrumentSpec | None = None,
        *,
        sequence: Sequence = "ignore",
        negative_price: bool = False,
        source: str = "",
    ) -> None:
        self._where = f"{source}: " if source else (f"{spec.name}: " if spec else "")
        self._sequence = sequence
        self._by_orders: bool | None = None
        self._rules = row_rules(spec, negative_price=negative_price)
        self._found: dict[str, Finding] = {}
        self._rows = 0
        self._last_ts: dict[str, int] = {}
        self._last_seq: dict[str, int] = {}
        self._least: int | None = None

    def feed(self, events: Events, lines: NDArray[np.int64] | None = None) -> None:
        """Check the next rows; `lines` are those of the source file."""
        as_events(events)
        for start in range(0, len(events), BLOCK):
            block = events[start : start + BLOCK]
            self._block(block, None if lines is None else lines[start : start + BLOCK])
            self._rows += len(block)

    def report(self) -> Report:
        """All findings so far, the earliest row first."""
        found = sorted(self._found.values(), key=lambda f: f.row)
        return Report(rows=self._rows, findings=found, least_latency_ns=self._least)

    def _block(self, e: Events, lines: NDArray[np.int64] | None) -> None:
        for rule, bad_of, say in self._rules:
            self._note(rule, bad_of(e), e, lines, say)
        self._one_book(e, lines)
        seen = e["flags"] & SEEN_BY_BOTH
        self._latency(e, lines)
        self._order(e, "ts_event", seen & Flag.SEEN_BY_VENUE != 0, "venue", lines)
        self._order(e, "ts_recv", seen & Flag.SEEN_BY_US != 0, "receiver", lines)
        if self._sequence == "contiguous":
            self._chain(e, "packet", e["seq"] != 0, lines)
        elif self._sequence == "increasing":
            trade = np.isin(e["kind"], _TRADES)
            self._chain(e, "trade", trade & (e["seq"] != 0), lines)
            self._chain(e, "book", ~trade & (e["seq"] != 0), lines)

    def _note(
        self,
        rule: str,
        bad: Mask,
        e: Events,
        lines: NDArray[np.int64] | None,
        say: Callable[[Any], str],
        error: type[DataError] = DataError,
    ) -> None:
        count = int(np.count_nonzero(bad))
        if not count:
            return
        if rule in self._found:
            self._found[rule].count += count
            return
        at = int(bad.argmax())
        line = "" if lines is None else f" (line {lines[at]})"
        text = f"{self._where}row {self._rows + at}{line}: {say(e[at])}"
        self._found[rule] = Finding(rule, self._rows + at, count, text, error)

    def _one_book(self, e: Events, lines: NDArray[np.int64] | None) -> None:
        """Levels follow from orders: a feed that tells both would count each lot twice."""
        orders = is_order(e["kind"])
        levels = (e["kind"] == Kind.LEVEL) | (e["kind"] == Kind.BBO)
        if self._by_orders is None and (told := orders | levels).any():
            self._by_orders = bool(orders[told.argmax()])
        self._note("one book", levels if self._by_orders else orders, e, lines, _say_one_book)

    def _latency(self, e: Events, lines: NDArray[np.int64] | None) -> None:
        latency = e["ts_recv"] - e["ts_event"]
        least = int(latency.min())
        self._least = least if self._least is None else min(self._least, least)
        if least < 0:
            self._note("latency", latency < 0, e, lines, _say_latency)

    def _order(
        self, e: Events, clock: str, seen: Mask, whose: str, lines: NDArray[np.int64] | None
    ) -> None:
        every = bool(seen.all())
        ts = e[clock] if every else e[clock][seen]
        if not len(ts):
            return
        before = np.empty(len(ts), np.int64)
        before[0] = self._last_ts.get(clock, _ANY)
        before[1:] = ts[:-1]
        back = ts < before
        self._last_ts[clock] = int(ts[-1])
        if back.any():
            previous = int(before[int(back.argmax())])
            bad = back
            if not every:
                bad = np.zeros(len(e), bool)
                bad[np.flatnonzero(seen)[back]] = True
            self._note(
                f"order of {clock}", bad, e, lines, _say_order(clock, previous, whose), OutOfOrder
            )

    def _chain(self, e: Events, family: str, mine: Mask, lines: NDArray[np.int64] | None) -> None:
        seq = e["seq"][mine]
        if not len(seq):
            return
        before = np.empty(len(seq), np.int64)
        before[0] = self._last_seq.get(family, int(seq[0]))
        before[1:] = seq[:-1]
        self._last_seq[family] = int(seq[-1])
        step = seq - before
        wrong = (step < 0) | (step > 1) if self._sequence == "contiguous" else step < 0
        if wrong.any():
            bad = np.zeros(len(e), bool)
            bad[np.flatnonzero(mine)[wrong]] = True
            say = _say_chain(family, int(before[int(wrong.argmax())]))
            self._note(f"{family} sequence", bad, e, lines, say, SequenceGap)


def _say_latency(r: Any) -> str:
    behind_ns = int(r["ts_event"]) - int(r["ts_recv"])
    return (
        f"ts_recv {r['ts_recv']} is {duration(behind_ns)} before ts_event {r['ts_event']}: "
        "the receiver's clock is behind the venue's"
    )


def _say_order(clock: str, previous: int, whose: str) -> Callable[[Any], str]:
    def say(r: Any) -> str:
        back = duration(previous - int(r[clock]))
        return f"{clock} {r[clock]} goes back {back} on the {whose}'s clock, after {previous}"

    return say


def _say_chain(family: str, previous: int) -> Callable[[Any], str]:
    return lambda r: f"{family} seq is {r['seq']} after {previous}"


def check(
    events: Events,
    spec: InstrumentSpec | None = None,
    *,
    sequence: Sequence = "ignore",
    negative_price: bool = False,
) -> Report:
    """Check a whole feed; the report lists every broken rule with its first row."""
    checker = Checker(spec, sequence=sequence, negative_price=negative_price)
    checker.feed(events)
    return checker.report()

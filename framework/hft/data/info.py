"""What a feed holds, and whether it is sound, in a table for people."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hft.data import files
from hft.data.checks import Checker, Finding, Report, Sequence
from hft.data.course import Course
from hft.data.exact import duration
from hft.data.opening import FileData, MarketData
from hft.data.store import Store, Time
from hft.data.writing import DAY_NS, day_name
from hft.types import Flag, InstrumentSpec, Kind

if TYPE_CHECKING:
    from rich.console import Console

_BINS_PER_OCTAVE = 64  # of the latency histogram: percentiles within 1.1 %


@dataclass(slots=True)
class Info:
    """Figures of one instrument's rows."""

    spec: InstrumentSpec
    days: list[str]
    """Dates of the rows that were read."""
    rows: int = 0
    kinds: dict[str, int] = field(default_factory=dict)
    packets: int = 0
    split_rows: int = 0
    """Rows seen by one side alone."""
    ts_first: int = 0
    ts_last: int = 0
    latency_ns: dict[str, int] = field(default_factory=dict)
    """`min` exactly, `p50` and `p99` within 1.1 %."""
    touch: tuple[int, int, int, int] | None = None
    """Bid ticks and lots, ask ticks and lots, after the last row."""
    crossed: int = 0
    gaps: int = 0
    live_orders: int = 0
    """Orders that rest after the last row, where there are orders."""
    faults: dict[str, int] = field(default_factory=dict)
    """What an order-by-order feed got wrong: `unknown_id`, `reused_id`, `overfill`."""
    cannot_tell: tuple[str, ...] = ()
    """What the data leave open, as their import said."""
    steps: NDArray[Any] | None = None
    """How it went (course.STEP), in steps of `step_s` seconds."""
    step_s: int = 0
    imported: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By day: what the import counted, repaired and shifted."""


def describe(
    data: MarketData, name: str, start: Time = None, end: Time = None, *, book: bool = True
) -> Info:
    """Read all rows once and sum up.

    Args:
        data: a store or a file, from `open_data`.
        name: the instrument.
        start: first `ts_recv`, see `Store.chunks`.
        end: `ts_recv` to stop before.
        book: also follow the book: touch, depth and how they went.
    """
    info = Info(spec=data.spec(name), days=[])
    days: set[int] = set()
    kinds = np.zeros(256, np.int64)
    latency, course, least = _Histogram(), Course(), np.iinfo(np.int64).max
    info.cannot_tell = data.cannot_tell(name, start, end)
    for chunk in data.chunks(name, start, end):
        info.ts_first = info.ts_first if info.rows else int(chunk["ts_recv"][0])
        info.ts_last = max(info.ts_last, int(chunk["ts_recv"].max()))
        info.rows += len(chunk)
        days.update(np.unique(chunk["ts_recv"] // DAY_NS).tolist())
        seen = chunk["flags"] & (Flag.SEEN_BY_VENUE | Flag.SEEN_BY_US)
        ours = seen & Flag.SEEN_BY_US != 0
        info.split_rows += int(np.count_nonzero(seen != Flag.SEEN_BY_VENUE | Flag.SEEN_BY_US))
        info.packets += int(np.count_nonzero(ours & (chunk["flags"] & Flag.LAST != 0)))
        kinds += np.bincount(chunk["kind"][ours], minlength=256)
        delay = chunk["ts_recv"][ours] - chunk["ts_event"][ours]
        least = min(least, int(delay.min())) if len(delay) else least
        latency.add(delay)
        if book:
            course.feed(chunk)
    info.days = [day_name(day) for day in sorted(days)]
    info.imported = _imported(data, name, info.days)
    if info.rows:
        info.latency_ns = {"min": least, "p50": latency.at(0.50), "p99": latency.at(0.99)}
    info.kinds = {Kind(k).name: int(kinds[k]) for k in np.flatnonzero(kinds).tolist()}
    if book:
        info.touch, info.crossed, info.gaps = course.last_touch, course.crossed, course.gaps
        info.live_orders, info.faults = course.book.live_orders, course.book.faults
        info.steps, info.step_s = course.steps()
    return info


def _imported(data: MarketData, name: str, days: list[str]) -> dict[str, dict[str, Any]]:
    if isinstance(data, Store):
        return {day: data.meta(name, day).imported for day in data.days(name) if day in days}
    if isinstance(data, FileData) and data.meta:
        return {str(data.path): data.meta.imported}
    return {}


class _Histogram:
    """Counts of latencies on a logarithmic scale."""

    def __init__(self) -> None:
        self._counts = np.zeros(64 * _BINS_PER_OCTAVE, np.int64)

    def add(self, ns: NDArray[np.int64]) -> None:
        bins = (np.log2(np.maximum(ns, 1)) * _BINS_PER_OCTAVE).astype(np.int64)
        self._counts += np.bincount(bins, minlength=len(self._counts))

    def at(self, share: float) -> int:
        total = np.cumsum(self._counts)
        place = int(np.searchsorted(total, share * total[-1]))
        return round(2 ** ((place + 0.5) / _BINS_PER_OCTAVE)) if place else 0


def check_data(
    data: MarketData,
    name: str,
    start: Time = None,
    end: Time = None,
    *,
    book: bool = False,
    sequence: Sequence = "ignore",
) -> Report:
    """Check all rows of an instrument, and that they are those its files were written with.

    Args:
        data: a store or a file, from `open_data`.
        name: the instrument.
        start: first `ts_recv`, see `Store.chunks`.
        end: `ts_recv` to stop before.
        book: also check that no packet leaves the book crossed while trading is open, and that an
            order-by-order feed names no order that is not there.
        sequence: see `Checker`.
    """
    checker, course = Checker(data.spec(name), sequence=sequence), Course()
    for chunk in data.chunks(name, start, end):
        checker.feed(chunk)
        if book:
            course.feed(chunk)
    report = checker.report()
    report.findings += _damaged(data, name)
    if course.first_crossed is not None:
        row = course.first_crossed
        text = f"{name}: row {row}: the book is crossed while open"
        report.findings.append(Finding("crossed book", row, course.crossed, text))
    if book:
        report.counted = course.book.faults
    return report


def _damaged(data: MarketData, name: str) -> list[Finding]:
    """Days whose rows no longer have the hash they were written with."""
    found = []
    for day, wanted in _hashes(data, name).items():
        row_hash, rows = files.RowHash(), 0
        for chunk in data.day_chunks(name, day) if isinstance(data, Store) else data.chunks(name):
            row_hash.add(chunk)
            rows += len(chunk)
        if row_hash.hex() != wanted:
            text = f"{name}: {day}: the {rows:,} rows are not those that were written"
            found.append(Finding("content hash", 0, 1, text))
    return found


def _hashes(data: MarketData, name: str) -> dict[str, str]:
    if isinstance(data, Store):
        return {day: data.meta(name, day).hash for day in data.days(name)}
    if isinstance(data, FileData) and data.meta:
        return {str(data.path): data.meta.hash}
    return {}


def show(info: Info, console: Console) -> None:
    """Print figures as a table."""
    from rich.table import Table
    from rich.text import Text

    from hft.data.picture import sparklines

    table = Table(title=info.spec.name, show_header=False)
    for label, value in [*figures(info), *sparklines(info)]:
        table.add_row(Text(label), Text(value))
    console.print(table)


def figures(info: Info) -> list[tuple[str, str]]:
    """Every figure with its label, in words."""
    spec = info.spec
    span_s = max(info.ts_last - info.ts_first, 0) / 1e9
    rate = f"{info.rows / span_s:,.0f} rows/s" if span_s else "no time passes"
    latency = ", ".join(f"{name} {duration(ns)}" for name, ns in info.latency_ns.items())
    rows = [
        ("tick, lot", f"{spec.tick:g}, {spec.lot:g} {spec.currency}".strip()),
        ("days", _days(info.days)),
        ("rows", f"{info.rows:,} in {info.packets:,} packets; {rate}"),
        ("kinds", ", ".join(f"{name} {count:,}" for name, count in info.kinds.items())),
        ("first, last", f"{_utc(info.ts_first)}, {_utc(info.ts_last)}" if info.rows else "no rows"),
        ("feed latency", latency or "no rows"),
        ("split by side", f"{info.split_rows:,} rows"),
        ("touch at the end", _touch(info)),
        ("crossed, gaps", f"{info.crossed:,} packets, {info.gaps:,}"),
    ]
    if info.live_orders or any(info.faults.values()):
        rows.append(("orders at the end", f"{info.live_orders:,}"))
        rows.append(("faults of the feed", counted(info.faults)))
    rows += [("the data cannot tell", sentence) for sentence in info.cannot_tell]
    before: dict[str, Any] = {}
    for day, facts in info.imported.items():
        if facts != before:  # days of one import say the same
            told = {name: value for name, value in facts.items() if name != "cannot_tell"}
            rows += [(f"{day} {name}", _flat(value)) for name, value in told.items() if value]
        before = facts
    return rows


def counted(faults: dict[str, int]) -> str:
    """What an order-by-order feed got wrong, in words."""
    words = {"unknown_id": "unknown ids", "reused_id": "reused ids", "overfill": "overfills"}
    return ", ".join(f"{count:,} {words.get(name, name)}" for name, count in faults.items())


def _touch(info: Info) -> str:
    if info.touch is None:
        return "none"
    bid, bid_lots, ask, ask_lots = info.touch
    tick, lot = info.spec.tick, info.spec.lot
    return f"{bid * tick:.10g} x {bid_lots * lot:.8g} / {ask * tick:.10g} x {ask_lots * lot:.8g}"


def _days(days: list[str]) -> str:
    if len(days) > 3:
        return f"{len(days)}: {days[0]} to {days[-1]}"
    return f"{len(days)}: {', '.join(days)}" if days else "none"


def _utc(ts: int) -> str:
    return str(np.datetime64(ts, "ns"))


def _flat(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_flat(part)}" for name, part in value.items())
    return f"{value:,}" if isinstance(value, int) else str(value)

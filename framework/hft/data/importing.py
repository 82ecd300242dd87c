"""The one way into a store: source -> clock -> checks or repair -> writer.

A `Source` is an adapter's view of one file: it decodes, converts to ticks and lots, and names its
line in errors. Everything that holds for any feed happens here, so that no adapter can forget it.

Without repair a feed streams through and memory does not grow with it. With repair it is held whole
(64 bytes a row), since a row may have to move anywhere.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hft.data.checks import Checker, Events, Report, Sequence
from hft.data.exact import duration
from hft.data.reorder import WINDOW_NS, Reorder
from hft.data.repairs import repair as repair_events
from hft.data.store import Store
from hft.data.writing import Writer
from hft.durations import parse_ns
from hft.errors import ConfigError, DataError, HftError, OutOfOrder
from hft.types import InstrumentSpec

LATENCY_FLOOR_NS = 1_000_000
"""Feed latency that `--clock-offset auto` gives the fastest row. One-way delay cannot be told from
clock offset, so this is an assumption, kept in the metadata; venues stamp in ms, which is its
size."""


NO_DEPTH = "levels beyond the first, and whose orders they are"
"""In `cannot_tell` of a source that shows the best level of each side alone; runs warn of it."""

Tick = Callable[[int, float], None]


@dataclass(slots=True)
class Batch:
    """Rows from a source, theirs to be changed."""

    events: Events
    lines: NDArray[np.int64] | None = None
    """Line of the file that each row came from, if it has lines."""
    done: float = 0.0
    """Share of the source that has been read."""


class Source(Protocol):
    """One file being imported. `batches` may be called again and then starts anew."""

    name: str
    spec: InstrumentSpec
    reorders: bool
    """Its rows reach us in another order than they happened (reorder.py); else that is refused."""
    counts: dict[str, int]
    """What the last pass met: messages by kind, and what it dropped or changed."""
    cannot_tell: tuple[str, ...]
    """What such data leave open, a sentence each: no receive time, no prints, snapshots only."""
    inferred: list[str]
    """Facts of the instrument that nobody gave, in words."""

    def batches(self) -> Iterator[Batch]:
        """Decoded rows in file order."""


@dataclass(slots=True)
class Imported:
    """What an import did."""

    spec: InstrumentSpec
    rows: int
    days: list[str]
    counts: dict[str, int]
    repaired: dict[str, int]
    clock: dict[str, Any]
    least_latency_ns: int | None
    seconds: float = field(default=0.0)


def import_source(
    source: Source,
    store: Store,
    *,
    repair: bool = False,
    clock_offset: str | int | None = None,
    sequence: Sequence = "ignore",
    raw: bool = False,
    overwrite: bool = False,
    append: bool = False,
    tick: Tick = lambda rows, done: None,
    turn: Callable[[], None] = lambda: None,
) -> Imported:
    """Import one file; the store is as it was if anything is refused.

    Args:
        source: the file, opened by an adapter.
        store: where to.
        repair: mend and count instead of refusing.
        clock_offset: added to every `ts_recv`: a duration (`1271ms`), ns, or `auto`, which makes
            the smallest feed latency LATENCY_FLOOR_NS if it is negative.
        sequence: what to ask of `seq`, see `Checker`.
        raw: also write the memory-mapped form.
        overwrite: replace days that exist.
        append: merge into days that exist.
        tick: told (rows, share done) as the import goes on.
        turn: returns when days may appear in the store.

    Raises:
        DataError: names the first bad row and its line.
    """
    began = time.perf_counter()
    clock = _clock(source, clock_offset)
    with store.writer(source.spec, raw=raw, overwrite=overwrite, append=append) as writer:
        move = _whole if repair else _stream
        report = move(source, writer, clock["shift_ns"], sequence, tick)
        if not writer.rows:
            raise DataError(
                f"{source.name}: no row to import; the file holds {_said(source.counts)}"
            )
        facts = {"source": source.name, "counts": source.counts, "repaired": report.repaired}
        writer.note(
            **facts,
            clock=clock,
            least_latency_ns=report.least_latency_ns,
            cannot_tell=list(source.cannot_tell),
        )
        before_turn = time.perf_counter()
        turn()
        began += time.perf_counter() - before_turn  # waiting is no work
    return Imported(
        spec=source.spec,
        rows=writer.rows,
        days=writer.days,
        counts=source.counts,
        repaired=report.repaired,
        clock=clock,
        least_latency_ns=report.least_latency_ns,
        seconds=time.perf_counter() - began,
    )


def _said(counts: dict[str, int]) -> str:
    return ", ".join(f"{value:,} {name}" for name, value in counts.items()) or "nothing"


def _stream(
    source: Source, writer: Writer, shift_ns: int, sequence: Sequence, tick: Tick
) -> Report:
    checker = Checker(source.spec, sequence=sequence, source=source.name)
    shifted = _shifted(source, shift_ns)
    batches = _reordered(shifted, source) if source.reorders else shifted
    for batch in batches:
        checker.feed(batch.events, batch.lines)
        report = checker.report()
        if not report.ok:
            _refuse(report, batches)
        writer.add(batch.events)
        tick(writer.rows, batch.done)
    return checker.report()


def _whole(source: Source, writer: Writer, shift_ns: int, sequence: Sequence, tick: Tick) -> Report:
    held, rows = [], 0
    for batch in _shifted(source, shift_ns):
        held.append(batch.events)
        rows += len(batch.events)
        tick(rows, batch.done)
    if not held:
        return Report()
    events, report = repair_events(np.concatenate(held), source.spec)
    if not report.ok:
        _refuse(report, iter(()))
    checker = Checker(source.spec, sequence=sequence, source=source.name)
    checker.feed(events)
    checker.report().require()
    writer.add(events)
    return report


def _shifted(source: Source, shift_ns: int) -> Iterator[Batch]:
    for batch in source.batches():
        batch.events["ts_recv"] += shift_ns
        yield batch


def _reordered(batches: Iterator[Batch], source: Source) -> Iterator[Batch]:
    reorder, done = Reorder(), 0.0
    for batch in batches:
        done = batch.done
        rows = Batch(*reorder.feed(batch.events, batch.lines), done)
        if reorder.raised_by_ns > WINDOW_NS:
            raise OutOfOrder(
                f"{source.name}: ts_event goes back {duration(reorder.raised_by_ns)} on the "
                f"venue's clock, further than the {duration(WINDOW_NS)} that streams may be apart"
            )
        if len(rows.events):
            yield rows
    yield Batch(*reorder.flush(), done)
    source.counts |= reorder.counts()


def _refuse(report: Report, rest: Iterator[Batch]) -> None:
    """Raise; for a clock that is behind, first read on to say by how much."""
    first = min(report.findings, key=lambda f: f.row)
    if first.rule != "latency":
        report.require()
    least = min(report.least_latency_ns or 0, _least_latency(rest) or 0)
    raise DataError(
        f"{first.message} by at least {duration(-least)} over the file; "
        "--clock-offset auto, or a duration, corrects it"
    )


def _least_latency(batches: Iterator[Batch]) -> int | None:
    checker = Checker()
    try:
        for batch in batches:
            checker.feed(batch.events)
    except HftError:
        pass  # the bound is over what could be read; the import itself reports the fault
    return checker.report().least_latency_ns


def _clock(source: Source, offset: str | int | None) -> dict[str, Any]:
    """How `ts_recv` is corrected, as it is kept in the metadata."""
    if offset is None:
        return {"mode": "as recorded", "shift_ns": 0}
    if offset != "auto":
        try:
            return {"mode": "given", "shift_ns": duration_ns(offset)}
        except ConfigError as error:
            raise ConfigError(f"clock offset: {error}, or auto") from None
    least = _least_latency(source.batches())
    if least is None or least >= 0:
        return {"mode": "auto", "shift_ns": 0, "least_latency_before_ns": least}
    return {
        "mode": "auto",
        "shift_ns": LATENCY_FLOOR_NS - least,
        "least_latency_before_ns": least,
        "behind_by_at_least_ns": -least,
        "assumed_floor_ns": LATENCY_FLOOR_NS,
    }


def duration_ns(text: str | int) -> int:
    """A duration that may be negative, such as `-350us`, in ns."""
    if isinstance(text, int):
        return text
    bare = text.strip()
    return -parse_ns(bare[1:]) if bare.startswith("-") else parse_ns(bare.removeprefix("+"))

"""From what a survey of the files has found to sources: symbols, venues, facts, trading states."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from datetime import UTC, date, datetime
from functools import cache, partial
from math import gcd
from typing import Any, NamedTuple

from hft.adapters.databento.records import (
    LEVELS,
    MBO,
    MBP_1,
    MBP_10,
    STATUS,
    TBBO,
    TRADES,
    DbnFile,
    library,
)
from hft.adapters.databento.sessions import Sessions, globex
from hft.adapters.databento.source import DbnSource, Interval, Part
from hft.adapters.databento.survey import Change, Definition, Seen, Survey, survey
from hft.data.sources import Request
from hft.errors import ConfigError, DataError

_BEST_FIRST = (MBO, MBP_10, MBP_1, TBBO, TRADES, STATUS)  # what is read where there are several
_ALWAYS = (0, (1 << 63) - 1)
_DAY_NS = 86_400_000_000_000


class _Found(NamedTuple):
    """One symbol of one publisher in one file."""

    file: DbnFile
    symbol: str
    publisher: int
    intervals: list[Interval]
    seen: Seen


def open_files(request: Request) -> list[DbnSource]:
    """One source a symbol, venue and file."""
    files = [DbnFile(path, repair=request.repair) for path in request.paths]
    surveys = [survey(file) for file in files]
    definitions = {k: v for s in surveys for k, v in s.definitions.items()}
    found = [
        one
        for file, s in zip(files, surveys, strict=True)
        for one in _symbols(file, s, definitions)
    ]
    known, wanted = {one.symbol for one in found}, request.symbols()
    missing = [symbol for symbol in wanted if symbol not in known]
    if missing:
        raise ConfigError(
            f"{_names(files)}: no symbol {', '.join(missing)}; there are "
            f"{', '.join(sorted(known)[:20]) or 'none'}"
        )
    chosen = [one for one in found if not wanted or one.symbol in wanted]
    books = {(one.symbol, one.publisher) for one in chosen if _rtype(one.seen) != STATUS}
    sources = [
        _source(request, one, chosen, definitions)
        for one in chosen
        if _rtype(one.seen) != STATUS or (one.symbol, one.publisher) not in books
    ]
    if not sources:
        raise DataError(f"{_names(files)}: neither book nor prints; {_held(surveys)}")
    return sources


def _names(files: list[DbnFile]) -> str:
    return " ".join(str(file.path) for file in files)


def _held(surveys: list[Survey]) -> str:
    held: Counter[str] = sum((s.others for s in surveys), Counter())
    held["definition"] += sum(len(s.definitions) for s in surveys)
    said = ", ".join(f"{n:,} {what}" for what, n in held.items() if n)
    return f"there are records of {said}" if said else "there are no records"


def _rtype(seen: Seen) -> int:
    return next(rtype for rtype in _BEST_FIRST if seen.rtypes[rtype])


# Symbols.


def _symbols(file: DbnFile, s: Survey, definitions: dict[int, Definition]) -> list[_Found]:
    """What the file holds, by symbol and publisher."""
    mapped: dict[int, list[tuple[str, Interval]]] = {}
    for symbol, interval in _mappings(file.metadata):
        mapped.setdefault(interval.instrument, []).append((symbol, interval))
    groups: dict[tuple[str, int], _Found] = {}
    for (publisher, instrument), seen in s.seen.items():
        named = [
            (symbol, interval)
            for symbol, interval in mapped.get(instrument, [])
            if interval.start <= seen.last_recv and seen.first_recv < interval.end
        ]
        for symbol, interval in named or [_unmapped(instrument, s, definitions)]:
            group = groups.setdefault(
                (symbol, publisher), _Found(file, symbol, publisher, [], Seen())
            )
            group.intervals.append(interval)
            _merge(group.seen, seen)
    return list(groups.values())


def _mappings(metadata: Any) -> list[tuple[str, Interval]]:
    """Symbol and instrument id of each interval; the id is whichever of the two is a number."""
    out = []
    for name, intervals in metadata.mappings.items():
        for interval in intervals:
            first, last = (_ns(interval[key]) for key in ("start_date", "end_date"))
            if interval["symbol"].isdigit():
                out.append((name, Interval(int(interval["symbol"]), first, last)))
            elif interval["symbol"] and name.isdigit():
                out.append((interval["symbol"], Interval(int(name), first, last)))
    return out


def _ns(day: date) -> int:
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()) * 1_000_000_000


def _unmapped(
    instrument: int, s: Survey, definitions: dict[int, Definition]
) -> tuple[str, Interval]:
    defined = definitions.get(instrument)
    symbol = s.symbols.get(instrument) or (defined.symbol if defined else "") or str(instrument)
    return symbol, Interval(instrument, *_ALWAYS)


def _merge(into: Seen, more: Seen) -> None:
    into.rtypes += more.rtypes
    into.step = gcd(into.step, more.step)
    into.packets |= more.packets
    into.first_recv = min(into.first_recv, more.first_recv)
    into.last_recv = max(into.last_recv, more.last_recv)
    into.first_event = min(into.first_event, more.first_event)
    into.last_event = max(into.last_event, more.last_event)
    into.changes += more.changes


# Facts and states of one source.


def _source(
    request: Request, one: _Found, all_found: list[_Found], definitions: dict[int, Definition]
) -> DbnSource:
    rtype, metadata = _rtype(one.seen), one.file.metadata
    before_trades = rtype == TBBO or (rtype == MBP_1 and str(metadata.schema) == "tbbo")
    book = rtype in (MBO, *LEVELS) and not before_trades
    part = Part(
        one.publisher,
        one.intervals,
        rtype,
        before_trades,
        by_flag=book and one.seen.packets,
        left_out=sum(n for other, n in one.seen.rtypes.items() if other not in (rtype, STATUS)),
    )
    inferred: list[str] = []
    facts = _facts(request, one, definitions, inferred)
    venue = _venue(one.publisher, metadata.dataset)
    spec = request.spec_of_whole(symbol=one.symbol, venue=venue, **facts)
    changes = _changes(one, all_found)
    assumed = book and not changes and metadata.dataset.startswith("GLBX")
    if assumed:
        changes = globex(one.seen.first_event, one.seen.last_event)
        inferred.append("trading hours of Globex")
    sessions: Callable[[], Sessions] = partial(Sessions, changes, assumed=assumed)
    return DbnSource(one.file, spec, part, sessions, inferred)


def _facts(
    request: Request, one: _Found, definitions: dict[int, Definition], inferred: list[str]
) -> dict[str, Any]:
    defined = next(
        (definitions[i.instrument] for i in one.intervals if i.instrument in definitions), None
    )
    facts: dict[str, Any] = {}
    if defined:
        known = {"tick": defined.tick, "multiplier": defined.multiplier}
        facts = {name: value for name, value in known.items() if value}
        if defined.currency:
            facts["currency"] = defined.currency
    tick = one.seen.tick
    if "tick" not in facts and "tick" not in request.facts and tick:
        facts["tick"] = tick
        inferred.append(f"tick {tick:g}")
    if not facts.keys() | request.facts.keys() >= {"tick"}:
        raise ConfigError(
            f"{one.file.path}: neither a definition nor a price of {one.symbol} shows its tick; "
            "give --tick"
        )
    return facts


@cache
def _venue(publisher: int, dataset: str) -> str:
    """The library has publishers' names in what it prints alone: `GLBX.MDP3.GLBX (1)`."""
    dbn = library()
    message = dbn.MBOMsg(publisher, 0, 0, 0, 0, 0, dbn.Action.NONE, dbn.Side.NONE, 0)
    name = re.search(r"publisher_id=[\w.]*\.(\w+) \(", str(message))
    return name[1] if name else str(dataset.partition(".")[0])


def _changes(one: _Found, all_found: list[_Found]) -> list[Change]:
    """Changes of the state, those of other files too on the days of this one."""
    first, last = one.seen.first_recv // _DAY_NS, one.seen.last_recv // _DAY_NS
    return [
        change
        for other in all_found
        if (other.symbol, other.publisher) == (one.symbol, one.publisher)
        for change in other.seen.changes
        if other is one or first <= change.ts_recv // _DAY_NS <= last
    ]

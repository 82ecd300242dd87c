"""The days of a feed, each readable by itself, and when trading ends on each.

A day is what a store calls one: a UTC date of `ts_recv`. Of a store only the file of the day asked
for is read; rows from elsewhere are read from their beginning to that day.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from hft.data import files
from hft.data.checks import Events
from hft.data.reading import within
from hft.data.store import Store, Time, instant
from hft.data.writing import DAY_NS, day_name
from hft.types import EVENT, Kind, Trading

Chunks = Callable[[], Iterator[Events]]


@dataclass(frozen=True, slots=True)
class FeedDays:
    """Days of one instrument."""

    names: Callable[[], list[str]]
    """Dates there are rows for, in order."""
    chunks: Callable[[str], Iterator[Events]]
    """Rows of one day."""
    end: Callable[[str], int]
    """When trading ends on a day [ns]; see `end_of_trading`."""
    kinds: Callable[[str], frozenset[str]]
    """Kinds of rows of a day."""

    def through(self, change: Callable[[Iterator[Events]], Iterator[Events]]) -> FeedDays:
        """The same days, their rows changed on the way."""
        return replace(self, chunks=lambda day: change(self.chunks(day)))


def end_of_trading(status: Events, last: int) -> int:
    """When trading ends: the last STATUS row that leaves OPEN, else the last row.

    A day that opens again after such a row, or whose last state is OPEN, ends with its last row.
    A gap of the feed is no end of trading.

    Args:
        status: STATUS rows of the day.
        last: time of its last row [ns].
    """
    state = status["ref_id"]
    told = status[(status["kind"] == Kind.STATUS) & (state != Trading.GAP)]
    closed = told["ref_id"] != Trading.OPEN
    if not len(told) or not closed[-1]:
        return last
    leaves = closed & np.append(True, ~closed[:-1])
    return int(told["ts_event"][np.flatnonzero(leaves)[-1]])


def stored_days(store: Store, name: str, start: Time, end: Time, rows: int) -> FeedDays:
    """Days of a store in [start, end)."""
    first, last = instant(start), instant(end)

    @cache  # a file is opened for each day
    def names() -> list[str]:
        return store.days_of_one_grid(name, first, last)

    def close(day: str) -> int:
        status = list(store.day_rows(name, day, first, last, kinds=["STATUS"]))
        return end_of_trading(np.concatenate([np.empty(0, EVENT), *status]), last_row(day))

    def last_row(day: str) -> int:
        seen = store.meta(name, day).ts_last
        if last is None or seen < last:
            return seen
        times = store.day_rows(name, day, first, last, columns=["ts_recv"])
        return max(int(rows["ts_recv"].max()) for rows in times)

    return FeedDays(
        names,
        lambda day: store.day_rows(name, day, first, last, rows),
        close,
        lambda day: store.day_kinds(name, day),
    )


def scanned_days(chunks: Chunks) -> FeedDays:
    """Days of rows that know nothing of days; they are read once to find them."""

    @cache
    def found() -> dict[str, _Scanned]:
        days: dict[str, _Scanned] = {}
        for chunk in chunks():
            day = chunk["ts_recv"] // DAY_NS
            for number in np.unique(day).tolist():
                days.setdefault(day_name(number), _Scanned()).add(chunk[day == number])
        return dict(sorted(days.items()))

    def rows_of(day: str) -> Iterator[Events]:
        begin = instant(day) or 0
        for chunk in chunks():
            if int(chunk["ts_recv"].min()) >= begin + DAY_NS:
                return
            yield from within(iter([chunk]), begin, begin + DAY_NS)

    return FeedDays(
        lambda: list(found()),
        rows_of,
        lambda day: end_of_trading(np.concatenate(found()[day].status), found()[day].last),
        lambda day: frozenset(files.kind_names(found()[day].kinds)),
    )


class _Scanned:
    """What a pass over the rows of a day finds."""

    def __init__(self) -> None:
        self.status = [np.empty(0, EVENT)]
        self.last = 0
        self.kinds = np.zeros(256, bool)

    def add(self, rows: Events) -> None:
        self.status.append(rows[rows["kind"] == Kind.STATUS])
        self.last = max(self.last, int(rows["ts_recv"].max()))
        self.kinds[rows["kind"]] = True

"""Mending a feed that its checks refuse, and counting every change."""

from __future__ import annotations

import numpy as np

from hft.data.checks import Events, Mask, Report, Rule, as_events, check, row_rules
from hft.data.reorder import Reorder
from hft.errors import DataError
from hft.types import SEEN_BY_BOTH, Flag, InstrumentSpec


def set_last(events: Events) -> None:
    """Set LAST in place on the last row of each packet: rows that share both timestamps.

    Rows that only the venue sees form packets of their own.
    """
    flags = events["flags"]
    flags &= ~np.uint16(Flag.LAST)
    ours = flags & Flag.SEEN_BY_US != 0
    for mine in (ours,) if ours.all() else (ours, ~ours):
        at = np.flatnonzero(mine)
        if len(at):
            recv, event = events["ts_recv"][at], events["ts_event"][at]
            ends = np.ones(len(at), bool)
            ends[:-1] = (recv[1:] != recv[:-1]) | (event[1:] != event[:-1])
            flags[at[ends]] |= np.uint16(Flag.LAST)


def repair(
    events: Events, spec: InstrumentSpec | None = None, *, negative_price: bool = False
) -> tuple[Events, Report]:
    """A copy that passes, and a report of what was changed.

    Rows that break a rule alone are dropped. Rows out of order on our clock are sorted by
    `ts_recv`, equal times in their old order. Rows out of order on the venue's clock are split by
    side (reorder.py). A negative feed latency stays and is reported: only a clock offset mends it
    (importing.py).
    """
    as_events(events)
    kept, counts = _drop_invalid(events, row_rules(spec, negative_price=negative_price))
    if (np.diff(kept["ts_recv"][kept["flags"] & Flag.SEEN_BY_US != 0]) < 0).any():
        kept = unsplit(kept)
        counts["rows sorted by ts_recv"] = int(np.count_nonzero(np.diff(kept["ts_recv"]) < 0))
        kept = kept[np.argsort(kept["ts_recv"], kind="stable")]
        set_last(kept)
    kept, changed = in_order(kept)
    counts |= changed
    report = check(kept, spec, negative_price=negative_price)
    report.repaired = counts
    return kept, report


def _drop_invalid(events: Events, rules: tuple[Rule, ...]) -> tuple[Events, dict[str, int]]:
    counts: dict[str, int] = {}
    bad = np.zeros(len(events), bool)
    for rule, bad_of, _ in rules:
        mask = bad_of(events) & ~bad
        if mask.any():
            counts[f"rows dropped: {rule}"] = int(np.count_nonzero(mask))
            bad |= mask
    kept = events[~bad].copy()
    if len(kept):
        _hand_on_last(events, bad, kept)
    return kept, counts


def _hand_on_last(events: Events, bad: Mask, kept: Events) -> None:
    """A packet that lost its last row ends at the row before, if that row is of the same packet."""
    lost = np.flatnonzero(bad & (events["flags"] & Flag.LAST != 0))
    at = np.cumsum(~bad)[lost] - 1
    lost, at = lost[at >= 0], at[at >= 0]
    same = kept["ts_recv"][at] == events["ts_recv"][lost]
    kept["flags"][at[same]] |= np.uint16(Flag.LAST)


def unsplit(events: Events) -> Events:
    """Rows in order of arrival, the halves of split rows put together again.

    Raises:
        DataError: the halves do not pair, so some rows were never seen by one side.
    """
    seen = events["flags"] & SEEN_BY_BOTH
    if (seen == SEEN_BY_BOTH).all():
        return events
    sides = (Flag.SEEN_BY_VENUE, Flag.SEEN_BY_US)
    venue, us = (int(np.count_nonzero(seen == side)) for side in sides)
    if venue != us:
        raise DataError(
            f"{venue:,} rows are seen by the venue alone and {us:,} by us alone: they are no "
            "pairs, so the feed can neither be sorted nor merged"
        )
    whole: Events = events[seen != Flag.SEEN_BY_VENUE].copy()
    whole["flags"] |= np.uint16(SEEN_BY_BOTH)
    return whole


def in_order(events: Events) -> tuple[Events, dict[str, int]]:
    """Rows in order on both clocks, late ones split by side, and what was changed."""
    reorder = Reorder()
    first, _ = reorder.feed(events.copy())
    rest, _ = reorder.flush()
    return np.concatenate([first, rest]), reorder.counts()

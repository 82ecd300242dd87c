"""Mending a feed that its checks refuse, and counting every change."""

from __future__ import annotations

import numpy as np

from hft.data.checks import ROW_RULES, Events, Mask, Report, as_events, check
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

    Rows that break a rule alone are dropped. Rows that came out of order on our clock are sorted by
    `ts_recv`, equal times in their old order; then a `ts_event` that goes back is raised to the
    largest one before it. A feed that is already split by side is not sorted: each clock is raised
    on its own. A negative feed latency stays and is reported: only a clock offset mends it
    (importing.py).
    """
    as_events(events)
    kept, counts = _drop_invalid(events, negative_price=negative_price)
    both = bool((kept["flags"] & SEEN_BY_BOTH == SEEN_BY_BOTH).all())
    if both and (np.diff(kept["ts_recv"]) < 0).any():
        counts["rows sorted by ts_recv"] = int(np.count_nonzero(np.diff(kept["ts_recv"]) < 0))
        kept = kept[np.argsort(kept["ts_recv"], kind="stable")]
        set_last(kept)
    for clock, flag in (("ts_recv", Flag.SEEN_BY_US), ("ts_event", Flag.SEEN_BY_VENUE)):
        raised = raise_clock(kept, clock, flag)
        if raised:
            counts[f"{clock} raised to the one before"] = raised
    report = check(kept, spec, negative_price=negative_price)
    report.repaired = counts
    return kept, report


def _drop_invalid(events: Events, *, negative_price: bool) -> tuple[Events, dict[str, int]]:
    counts: dict[str, int] = {}
    bad = np.zeros(len(events), bool)
    for rule, bad_of, _ in ROW_RULES:
        if rule == "price" and negative_price:
            continue
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


def raise_clock(events: Events, clock: str, flag: Flag) -> int:
    """Raise in place each `clock` that goes back among rows with `flag`; returns how many were."""
    mine = np.flatnonzero(events["flags"] & flag != 0)
    ts = events[clock][mine]
    risen = np.maximum.accumulate(ts) if len(ts) else ts
    raised = int(np.count_nonzero(risen != ts))
    if raised:
        events[clock][mine] = risen
    return raised

"""What the market was when something of ours happened, looked up after the run in one pass.

Every stamp of an order is looked up in the venue's book: what had happened there by then, whether
or not we could know it. `as of t` is after all rows with `ts_event` <= t, as an order that arrives
at t meets the rows of that instant before it. The rows of a live session are what it heard, on the
clocks that they bear; there `as of` an arrival is just before it, since the market's rows of that
instant already tell what our order did.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hft.analysis.records import NO_PRICE, NO_TIME

if TYPE_CHECKING:
    from hft.analysis.run_data import RunData

Int = NDArray[np.int64]
RowsOf = Callable[[int], Iterator[NDArray[Any]]]
"""EVENT rows of an instrument, in chunks, in order of `ts_event`."""

STAMPS = (
    "ts_cause_event",
    "ts_cause_recv",
    "ts_model_start",
    "ts_model_end",
    "ts_decide",
    "ts_send",
    "ts_arrive",
    "ts_done",
)
"""Of ORDER_ROW, in the order of an order's life."""
MIDS = tuple(stamp.replace("ts_", "mid2_") for stamp in STAMPS)
"""Columns of mids.parquet. An order that never ended has its last mid at the end of the run."""


@dataclass(frozen=True, slots=True)
class Mids:
    """Mids and touches of a run; NO_PRICE where there was no believable book with two sides.

    Attributes:
        orders: bid + ask at STAMPS, (orders, 8) [half ticks].
        touch: best price on the side that a taker's fill took from, (fills,) [ticks]; NO_PRICE for
            makers.
    """

    orders: Int
    touch: Int


def with_mids(run: RunData, rows_of: RowsOf) -> RunData:
    """The run with its mids; Ctrl-C on the way leaves them out and ends it as interrupted."""
    try:
        return dataclasses.replace(run, mids=mids_of(run, rows_of))
    except KeyboardInterrupt:
        why = run.error or "stopped while the mids of its orders were looked up"
        return dataclasses.replace(run, status="interrupted", error=why)


def mids_of(run: RunData, rows_of: RowsOf) -> Mids:
    """Look up all that the implementation shortfall of a run needs."""
    stamps = np.column_stack([run.orders[name] for name in STAMPS])
    never_ended = stamps[:, -1] == NO_TIME
    stamps[never_ended, -1] = run.ts_end
    takes_at = run.fills["ts_venue"]
    if run.kind == "live":
        # A live market's rows tell what our order did when it came: look just before it.
        arrive = stamps[:, STAMPS.index("ts_arrive")]
        arrive[arrive != NO_TIME] -= 1
        takes_at = takes_at - 1
    mids = Mids(np.full(stamps.shape, NO_PRICE), np.full(len(run.fills), NO_PRICE))
    for instrument in range(len(run.instruments)):
        orders = np.flatnonzero(run.orders["instrument"] == instrument)
        takes = (run.fills["instrument"] == instrument) & (run.fills["maker"] == 0)
        fills = np.flatnonzero(takes)
        asked = np.concatenate([stamps[orders].ravel(), takes_at[fills]])
        if not asked.size:
            continue
        touches = touches_at(rows_of(instrument), asked)
        bid, ask = touches[: orders.size * len(STAMPS)].T
        mid2 = np.where((bid == NO_PRICE) | (ask == NO_PRICE), NO_PRICE, bid + ask)
        mids.orders[orders] = mid2.reshape(-1, len(STAMPS))
        bid, ask = touches[orders.size * len(STAMPS) :].T
        mids.touch[fills] = np.where(run.fills["side"][fills] > 0, ask, bid)
    return mids


def touches_at(chunks: Iterator[NDArray[Any]], ts: Int) -> Int:
    """The venue's (bid, ask) at any times, (n, 2) [ticks]; NO_PRICE for both at NO_TIME."""
    from hft import _core

    times, where = np.unique(ts, return_inverse=True)
    words = (np.ascontiguousarray(rows).view(np.int64).reshape(-1, 8) for rows in chunks)
    touches: Int = _core.touches_at(words, times)[where.reshape(-1)]
    touches[ts == NO_TIME] = NO_PRICE
    return touches


def joined(days: Sequence[Mids | None]) -> Mids | None:
    """Mids of days in order as one; None unless every day has them."""
    known = [day for day in days if day is not None]
    if len(known) < len(days):
        return None
    orders = np.concatenate([day.orders for day in known])
    return Mids(orders, np.concatenate([day.touch for day in known]))

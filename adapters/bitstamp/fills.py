"""Which order events are fills, and which two fills are one trade."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hft.adapters.bitstamp.readers import CHANGED, DELETED
from hft.data.checks import Events
from hft.types import EVENT, SEEN_BY_BOTH, Flag, Kind

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

PAIR_NS = 100_000_000
"""Between the two events of a trade; 35 ms at most were seen, 2 ms are usual."""

_NONE = -1  # nothing is known to be left of the order
_ANY = -1  # a fill of an unknown order: whatever its partner lost


class Parsed(NamedTuple):
    """Some order events in ns, ticks and lots, (n,) each."""

    order_id: Ints
    ts: Ints
    price: Ints
    left: Ints
    action: Ints
    side: Ints
    lines: Ints


class Fills:
    """Order events in, EVENT rows out, a trade's two events told from the rest.

    Live orders are kept as sorted arrays, merged once a block, so memory is that of the book.
    Events from a fill on whose partner may follow wait for the next block.

    Args:
        tolerance_lots: by how much the two sides of a trade may differ.
    """

    def __init__(self, tolerance_lots: int) -> None:
        self._tolerance_lots = tolerance_lots
        self._kept = Parsed(*(np.empty(0, np.int64) for _ in Parsed._fields))
        self._ids = np.empty(0, np.int64)
        self._left = np.empty(0, np.int64)
        self._price = np.empty(0, np.int64)
        self._paired = 0
        self._alone = 0
        self._moved = 0

    def counts(self) -> dict[str, int]:
        """What was found so far."""
        found = {
            "trades with both sides": self._paired,
            "fills without another side": self._alone,
            "market orders moved on": self._moved,
        }
        return {what: n for what, n in found.items() if n}

    def feed(self, events: Parsed) -> tuple[Events, Ints]:
        """Take the next events; rows of those that no later event can change, and their lines."""
        return self._rows(_join(self._kept, events), final=False)

    def flush(self) -> tuple[Events, Ints]:
        """The rest."""
        return self._rows(self._kept, final=True)

    def _rows(self, e: Parsed, *, final: bool) -> tuple[Events, Ints]:
        if not len(e.ts):
            return np.empty(0, EVENT), e.lines
        before, price_before = self._before(e)
        lost = _lost(e, before, price_before)
        fills = np.flatnonzero(lost != 0)
        first = self._pairs(e, lost, fills)
        cut = len(e.ts)
        if not final and len(fills) and (not len(first) or first[-1] + 1 < len(fills) - 1):
            at = int(fills[-1])
            if e.ts[-1] - e.ts[at] <= PAIR_NS:
                cut = at
        self._kept = _part(e, slice(cut, None))
        e, lost, before = _part(e, slice(cut)), lost[:cut], before[:cut]
        self._remember(e)
        self._moved += int(
            np.count_nonzero((e.action == CHANGED) & (lost == 0) & (before != _NONE))
        )
        a, b = fills[first], fills[first + 1]
        return self._convert(e, lost, a[b < cut], b[b < cut]), e.lines

    def _convert(self, e: Parsed, lost: Ints, a: Ints, b: Ints) -> Events:
        rows = np.zeros(len(e.ts), EVENT)
        rows["ts_event"] = rows["ts_recv"] = e.ts
        rows["price"], rows["order_id"], rows["side"] = e.price, e.order_id, e.side
        rows["flags"] = SEEN_BY_BOTH
        rows["kind"] = np.choose(e.action, [Kind.ADD, Kind.MODIFY, Kind.CANCEL])
        rows["qty"] = np.where(e.action == DELETED, 0, e.left)
        known = lost > 0
        rows["kind"][known], rows["qty"][known] = Kind.EXECUTE, lost[known]
        rows["flags"][known] |= np.uint16(Flag.UNCERTAIN)
        older = np.where(e.order_id[a] < e.order_id[b], a, b)
        younger = a + b - older
        for mine, other in ((older, younger), (younger, older)):
            rows["kind"][mine] = Kind.EXECUTE
            rows["flags"][mine] |= np.uint16(Flag.UNCERTAIN)
            rows["ref_id"][mine] = e.order_id[other]
            unknown = lost[mine] == _ANY
            rows["qty"][mine[unknown]] = lost[other[unknown]]
        rows["flags"][younger] |= np.uint16(Flag.NO_PRINT)
        self._paired += len(a)
        self._alone += int(np.count_nonzero(known)) - int(
            np.count_nonzero(known[a]) + np.count_nonzero(known[b])
        )
        return rows

    def _pairs(self, e: Parsed, lost: Ints, fills: Ints) -> Ints:
        """Index into `fills` of the first of each two that are one trade."""
        a, b = fills[:-1], fills[1:]
        unknown = (lost[a] == _ANY).astype(np.int8) + (lost[b] == _ANY)
        equal = np.abs(lost[a] - lost[b]) <= self._tolerance_lots
        link = (
            ((equal & (unknown == 0)) | (unknown == 1))
            & (e.side[a] != e.side[b])
            & (e.order_id[a] != e.order_id[b])
            & (e.ts[b] - e.ts[a] <= PAIR_NS)
        )
        # In a run of links every other one is a trade.
        at = np.flatnonzero(link)
        starts = np.diff(at, prepend=-2) > 1
        run = np.cumsum(starts) - 1
        offset = at - at[starts][run] if len(at) else at
        first: Ints = at[offset % 2 == 0]
        return first

    def _before(self, e: Parsed) -> tuple[Ints, Ints]:
        """What was left of each order, and its price, before each event."""
        order = np.argsort(e.order_id, kind="stable")
        ids = e.order_id[order]
        left = np.where(e.action == DELETED, _NONE, e.left)[order]
        before, price = np.full(len(ids), _NONE), np.zeros(len(ids), np.int64)
        again = np.flatnonzero(ids[1:] == ids[:-1]) + 1
        before[again], price[again] = left[again - 1], e.price[order][again - 1]
        first = np.flatnonzero(np.diff(ids, prepend=ids[0] - 1))
        slot, live = self._find(ids[first])
        before[first[live]] = self._left[slot[live]]
        price[first[live]] = self._price[slot[live]]
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        return before[back], price[back]

    def _find(self, ids: Ints) -> tuple[Ints, Mask]:
        slot = np.searchsorted(self._ids, ids)
        live = slot < len(self._ids)
        live[live] = self._ids[slot[live]] == ids[live]
        return slot, live

    def _remember(self, e: Parsed) -> None:
        ids, last = np.unique(e.order_id[::-1], return_index=True)
        last = len(e.ts) - 1 - last
        slot, live = self._find(ids)
        stays = last[e.action[last] != DELETED]
        merged = np.concatenate([np.delete(self._ids, slot[live]), e.order_id[stays]])
        left = np.concatenate([np.delete(self._left, slot[live]), e.left[stays]])
        price = np.concatenate([np.delete(self._price, slot[live]), e.price[stays]])
        order = np.argsort(merged, kind="stable")
        self._ids, self._left, self._price = merged[order], left[order], price[order]


def _lost(e: Parsed, before: Ints, price_before: Ints) -> Ints:
    """What each event says was filled; _ANY of an unknown order, 0: it is no fill."""
    fell = (e.action == CHANGED) & (e.left < before) & (e.price == price_before)
    gone = (e.action == DELETED) & (e.left == 0)
    lost = np.where(fell | (gone & (before > 0)), before - e.left, 0)
    return np.where(gone & (before == _NONE), _ANY, lost)


def _join(a: Parsed, b: Parsed) -> Parsed:
    return Parsed(*(np.concatenate(pair) for pair in zip(a, b, strict=True)))


def _part(e: Parsed, rows: slice) -> Parsed:
    return Parsed(*(values[rows] for values in e))

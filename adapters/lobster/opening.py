"""The book that a LOBSTER file starts from, known by its levels."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hft.data.checks import Events
from hft.data.csv_blocks import Block, CsvFile
from hft.data.exact import on_grid
from hft.errors import DataError
from hft.types import EVENT, SEEN_BY_BOTH, Flag, Kind

Ints = NDArray[np.int64]

PRICE_UNIT = 10_000  # prices are in 1/10000 of a dollar

_NO_PRICE = 9_999_999_999  # of an empty level; bids have it negative
_ADD, _DELETE, _EXECUTE = 1, 3, 4


class Levels(NamedTuple):
    """Levels of the opening book, (n,) each."""

    price: Ints
    size: Ints
    side: Ints


def first_levels(path: Path) -> Levels:
    """The levels in the first row of an order book file: ask price and size, bid price and size."""
    columns = CsvFile(path, ("ask", "ask size", "bid", "bid size"))
    if len(columns.header) % 4:
        raise DataError(f"{path}: {len(columns.header)} columns, want 4 a level")
    kinds: dict[str, Any] = dict.fromkeys(columns.header, "int")
    block = next(columns.blocks(kinds, {}), None)
    if block is None or not len(block.lines):
        raise DataError(f"{path}: no row, want the book after each message")
    row = np.array([values[0] for values in block.columns.values()]).reshape(-1, 2, 2)
    price, size = row[..., 0].ravel(), row[..., 1].ravel()
    side = np.tile([-1, 1], len(row))
    there = (size > 0) & (np.abs(price) != _NO_PRICE)
    return Levels(price[there], size[there], side[there])


class Opening:
    """What is left of the opening book, level by level, and which orders were added since.

    Live orders are kept as a sorted array of ids and sizes, merged once a block, so memory is that
    of the book.

    Args:
        levels: the book after message 1.
        first: messages, of which the first is undone.
        tick: of the instrument.
    """

    def __init__(self, levels: Levels, first: Block, tick: float) -> None:
        kind, size, price, side = (
            int(first.columns[name][0]) for name in ("type", "size", "price", "side")
        )
        keys = zip(levels.price.tolist(), levels.side.tolist(), strict=True)
        before = dict(zip(keys, levels.size.tolist(), strict=True))
        if kind <= _EXECUTE:
            change = -size if kind == _ADD else size
            before[price, side] = before.get((price, side), 0) + change
        there = sorted((key, lots) for key, lots in before.items() if lots > 0)
        self._price = np.array([price for (price, _), _ in there], np.int64)
        self._side = np.array([side for (_, side), _ in there], np.int64)
        self._left = np.array([lots for _, lots in there], np.int64)
        self._key = _level_key(self._price, self._side)
        self._tick = tick
        self._ids = np.empty(0, np.int64)
        self._sizes = np.empty(0, np.int64)
        self.reduced = 0

    def rows(self, first: Any) -> Events:
        """The opening book as ADD rows at the time of the first row."""
        n = len(self._price)
        rows = np.zeros(n + 2, EVENT)
        rows["ts_event"], rows["ts_recv"] = first["ts_event"], first["ts_recv"]
        rows["flags"] = SEEN_BY_BOTH | Flag.UNCERTAIN
        rows["kind"] = Kind.ADD
        rows["kind"][[0, -1]] = Kind.SNAPSHOT_BEGIN, Kind.SNAPSHOT_END
        rows["flags"][-1] |= Flag.LAST
        body = rows[1:-1]
        body["price"], _ = on_grid(self._price / PRICE_UNIT, self._tick, "price")
        body["qty"], body["side"] = self._left, self._side
        body["order_id"] = _own_id(np.arange(n))
        return rows

    def reduce(self, events: Events, lines: Ints, m: Block) -> tuple[Events, Ints]:
        """Rows about orders that were never added, turned to the opening levels they come from."""
        c = m.columns
        unknown = self._never_added(c)
        at = np.flatnonzero(unknown)
        if not len(at) or not self._left.any():
            return events, lines
        level, size = self._level_of(c["price"][at], c["side"][at]), c["size"][at]
        at, level, size = at[level >= 0], level[level >= 0], size[level >= 0]
        taken = self._take(level, size)
        hit = taken > 0
        at, level, size, taken = at[hit], level[hit], size[hit], taken[hit]
        self.reduced += len(at)
        rest = events[at].copy()
        events["order_id"][at] = _own_id(level)
        events["qty"][at] = taken
        events["flags"][at] |= np.uint16(Flag.UNCERTAIN)
        rest["qty"] = size - taken
        beyond = rest["qty"] > 0
        place = at[beyond] + 1
        return np.insert(events, place, rest[beyond]), np.insert(lines, place, lines[at[beyond]])

    def _level_of(self, price: Ints, side: Ints) -> Ints:
        """Which opening level each price is; -1: none."""
        key = _level_key(price, side)
        slot = np.minimum(np.searchsorted(self._key, key), len(self._key) - 1)
        return np.where(self._key[slot] == key, slot, -1)

    def _take(self, level: Ints, size: Ints) -> Ints:
        """Take sizes from levels in order; how much each got."""
        order = np.argsort(level, kind="stable")
        level, size = level[order], size[order]
        before = np.cumsum(size) - size
        starts = np.flatnonzero(np.diff(level, prepend=-1))
        before -= np.repeat(before[starts], np.diff(starts, append=len(level)))
        got = np.clip(self._left[level] - before, 0, size)
        np.subtract.at(self._left, level, got)
        taken = np.empty_like(got)
        taken[order] = got
        return taken

    def _never_added(self, c: dict[str, NDArray[Any]]) -> NDArray[np.bool_]:
        """Which messages reduce an order that is not live by the messages before."""
        at = np.flatnonzero(c["type"] <= _EXECUTE)
        kind, size = c["type"][at], c["size"][at]
        ids, index = np.unique(c["order_id"][at], return_inverse=True)
        adds = np.flatnonzero(kind == _ADD)
        first_add = np.full(len(ids), len(at))
        first_add[index[adds[::-1]]] = adds[::-1]
        slot, live = self._find(ids)
        known = live[index] | (first_add[index] < np.arange(len(at)))
        unknown = np.zeros(len(c["type"]), bool)
        unknown[at] = (kind != _ADD) & ~known
        change = np.where(kind == _ADD, size, np.where(known, -size, 0))
        left = np.bincount(index, change, len(ids)).astype(np.int64)
        left[live] += self._sizes[slot[live]]
        last = np.empty(len(ids), np.int64)
        last[index] = kind
        self._merge(ids, np.where(last == _DELETE, 0, left), slot[live])
        return unknown

    def _find(self, ids: Ints) -> tuple[Ints, NDArray[np.bool_]]:
        slot = np.searchsorted(self._ids, ids)
        live = slot < len(self._ids)
        live[live] = self._ids[slot[live]] == ids[live]
        return slot, live

    def _merge(self, ids: Ints, left: Ints, slots: Ints) -> None:
        merged = np.concatenate([np.delete(self._ids, slots), ids[left > 0]])
        sizes = np.concatenate([np.delete(self._sizes, slots), left[left > 0]])
        order = np.argsort(merged, kind="stable")
        self._ids, self._sizes = merged[order], sizes[order]


def _level_key(price: Ints, side: Ints) -> Ints:
    return price * 2 + (side > 0)


def _own_id(level: Ints) -> Ints:
    return -1 - level

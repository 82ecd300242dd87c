"""The part of the book that LOBSTER shows, and what messages alone do not tell of it.

Messages are complete for the levels in view, the best N of each side. What they lack, the order
book file tells through the N-th level alone, since a message changes one level:

- it moves away from the touch: a level came into view. Its orders are not known, so it becomes one
  order with a negative id;
- it moves towards the touch: the level before left the view. What happens to its orders is not told
  any more, so they are cancelled.

A message about an order that is not live reduces the unknown order at its price while that has
lots; what is beyond goes on as it is, and the book counts an unknown order.

All is found a block at a time: when each order dies and when its level leaves, whichever is first;
which messages are about orders that are not live; which stretch in view of their level they fall
into. Live orders are kept sorted by id, and levels of unknown orders by price, so memory is that of
the book.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from hft.data.checks import Events
from hft.data.exact import on_grid
from hft.types import EVENT, SEEN_BY_BOTH, Flag, Kind

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

PRICE_UNIT = 10_000  # prices are in 1/10000 of a dollar
ADD, DELETE, EXECUTE = 1, 3, 4

_BEFORE = -1  # born before the block
_NEVER = np.iinfo(np.int64).max
_INFERRED = np.uint16(SEEN_BY_BOTH | Flag.UNCERTAIN)


class Messages(NamedTuple):
    """Messages of a block, (n,) each, and the rows they become."""

    kind: Ints
    order_id: Ints
    size: Ints
    key: Ints
    lines: Ints
    events: Events


class Worst(NamedTuple):
    """The N-th level of one side after each message, (n,) each; size 0: not there."""

    side: int
    price: Ints
    size: Ints


class Orders(NamedTuple):
    """Orders of known ids, (n,) each, `born` and `end` being messages of the block."""

    id: Ints
    left: Ints
    key: Ints
    born: Ints
    end: Ints


class Stretches(NamedTuple):
    """Levels in view as one unknown order each, (n,) each, sorted by key and `born`."""

    own_id: Ints
    left: Ints
    key: Ints
    born: Ints
    end: Ints


Resting = TypeVar("Resting", Orders, Stretches)


def level_key(price: Any, side: Any) -> Any:
    """One number for a price of a side."""
    return price * 2 + (side > 0)


class View:
    """Completes messages, block by block.

    Args:
        levels: price, size and side of the levels before the first message, (n,) each.
        tick: of the instrument.
    """

    def __init__(self, levels: tuple[Ints, Ints, Ints], tick: float) -> None:
        price, size, side = levels
        n = len(price)
        key, born, end = level_key(price, side), np.full(n, _BEFORE), np.full(n, _NEVER)
        order = np.argsort(key)
        self._levels = Stretches(-1 - np.arange(n), size[order], key[order], born, end)
        self._orders = Orders(*(np.empty(0, np.int64) for _ in Orders._fields))
        self._worst: dict[int, tuple[int, int]] = {}
        self._tick = tick
        self._named = n
        self._reduced = 0

    def counts(self) -> dict[str, int]:
        """What messages did not tell."""
        return {
            "levels of unknown orders": self._named,
            "messages about unknown orders in view": self._reduced,
        }

    def opening(self, first: Any) -> Events:
        """The levels before the first message as rows at its time."""
        frame = np.zeros(1, EVENT)
        rows = np.concatenate([frame, self._rows(Kind.ADD, self._levels), frame])
        rows["ts_event"], rows["ts_recv"] = first["ts_event"], first["ts_recv"]
        rows["kind"][[0, -1]] = Kind.SNAPSHOT_BEGIN, Kind.SNAPSHOT_END
        rows["flags"] = _INFERRED
        rows["flags"][-1] |= np.uint16(Flag.LAST)
        return rows

    def feed(self, m: Messages, worst: list[Worst]) -> tuple[Events, Ints]:
        """Rows of the next messages and of what they do not tell, and the line of each."""
        came, left_at, left_key = self._moves(worst)
        leaves = _Leaves(np.append(left_at, came.born), np.append(left_key, came.key))
        orders, known = self._follow(m, leaves)
        levels = self._stretches(came, leaves)
        rest, rest_at = self._reduce(m, ~known, levels)
        dropped = _part(orders, (orders.end != _NEVER) & (leaves.end(orders) == orders.end))
        ended = _part(levels, (levels.left > 0) & (levels.end != _NEVER))
        pieces = [
            (m.events, np.arange(len(m.events))),
            (rest, rest_at),
            (self._rows(Kind.CANCEL, dropped), dropped.end),
            (self._rows(Kind.CANCEL, ended), ended.end),
            (self._rows(Kind.ADD, came), came.born),
        ]
        self._orders = _carried(orders)
        self._levels = _carried(_part(levels, levels.left > 0))
        return _woven(m, pieces)

    def _moves(self, worst: list[Worst]) -> tuple[Stretches, Ints, Ints]:
        """Levels that come into view; where and which leave it."""
        came: list[Any] = [np.empty((3, 0), np.int64)]
        left: list[Any] = [np.empty((2, 0), np.int64)]
        for w in worst:
            # Nothing is known of the level before the first message of all.
            price_before, size_before = self._worst.get(w.side, (0, 0))
            before, had = np.append(price_before, w.price[:-1]), np.append(size_before, w.size[:-1])
            self._worst[w.side] = int(w.price[-1]), int(w.size[-1])
            both = (had > 0) & (w.size > 0)
            deeper = np.flatnonzero(both & ((w.price - before) * w.side < 0))
            nearer = np.flatnonzero(both & ((w.price - before) * w.side > 0))
            came.append([deeper, level_key(w.price[deeper], w.side), w.size[deeper]])
            left.append([nearer, level_key(before[nearer], w.side)])
        moved = np.concatenate(came, axis=1)
        at, key, size = moved[:, np.argsort(moved[0], kind="stable")]
        own_id = -1 - self._named - np.arange(len(at))
        self._named += len(at)
        left_at, left_key = np.concatenate(left, axis=1)
        return Stretches(own_id, size, key, at, np.full(len(at), _NEVER)), left_at, left_key

    def _follow(self, m: Messages, leaves: _Leaves) -> tuple[Orders, Mask]:
        """All orders of the block with where they end, and the messages about live ones."""
        rows = np.flatnonzero(m.kind <= EXECUTE)
        ids, index = np.unique(m.order_id[rows], return_inverse=True)
        by_id = np.argsort(index, kind="stable")
        rows, index = rows[by_id], index[by_id]
        adds = np.flatnonzero(m.kind[rows] == ADD)[::-1]
        born, key = np.full(len(ids), _NEVER), np.zeros(len(ids), np.int64)
        born[index[adds]], key[index[adds]] = rows[adds], m.key[rows[adds]]
        slot, live = _find(self._orders.id, ids)
        born[live], key[live] = _BEFORE, self._orders.key[slot[live]]
        left = np.zeros(len(ids), np.int64)
        left[live] = self._orders.left[slot[live]]
        change = np.where(m.kind[rows] == ADD, m.size[rows], -m.size[rows])
        change[rows < born[index]] = 0
        after = np.cumsum(change)
        starts = np.flatnonzero(np.diff(index, prepend=-1))
        after += (left - (after[starts] - change[starts]))[index]
        over = ((after <= 0) | (m.kind[rows] == DELETE)) & (m.kind[rows] != ADD)
        over = np.flatnonzero(over & (rows > born[index]))[::-1]
        end = np.full(len(ids), _NEVER)
        end[index[over]] = rows[over]
        left = after[np.append(starts[1:], len(rows))[: len(ids)] - 1]
        told = _part(Orders(ids, left, key, born, end), born != _NEVER)
        others = Orders(*(np.delete(values, slot[live]) for values in self._orders))
        orders = _joined(told, others)
        orders = orders._replace(end=np.minimum(orders.end, leaves.end(orders)))
        end[born != _NEVER] = orders.end[: len(told.id)]
        orders = _part(orders, np.argsort(orders.id, kind="stable"))
        known = np.zeros(len(m.kind), bool)
        known[rows] = (born[index] < rows) & (rows <= end[index])
        known |= (m.kind == ADD) | (m.kind > EXECUTE)
        return orders, known

    def _stretches(self, came: Stretches, leaves: _Leaves) -> Stretches:
        both = _joined(self._levels, came)
        levels = Stretches(*(values[np.lexsort((both.born, both.key))] for values in both))
        return levels._replace(end=leaves.end(levels))

    def _reduce(self, m: Messages, unknown: Mask, levels: Stretches) -> tuple[Events, Ints]:
        """Turn rows to the unknown order they reduce; rows of what is beyond it, and where."""
        at = np.flatnonzero(unknown)
        level = _latest(levels, m.key[at], at)
        at, level = at[level >= 0], level[level >= 0]
        taken = _take(levels.left, level, m.size[at])
        at, level, taken = at[taken > 0], level[taken > 0], taken[taken > 0]
        self._reduced += len(at)
        rest = m.events[at].copy()
        m.events["order_id"][at], m.events["qty"][at] = levels.own_id[level], taken
        m.events["flags"][at] |= np.uint16(Flag.UNCERTAIN)
        rest["qty"] = m.size[at] - taken
        return rest[rest["qty"] > 0], at[rest["qty"] > 0]

    def _rows(self, kind: Kind, orders: Orders | Stretches) -> Events:
        """Rows that add, or cancel whole, these orders."""
        rows = np.zeros(len(orders.key), EVENT)
        price, side = orders.key // 2, orders.key % 2 * 2 - 1
        rows["kind"], rows["side"], rows["order_id"] = kind, side, orders[0]
        rows["price"], _ = on_grid(price / PRICE_UNIT, self._tick, "price")
        rows["qty"] = orders.left if kind == Kind.ADD else 0
        rows["flags"] = _INFERRED
        return rows


class _Leaves:
    """When levels leave the view, sorted by level and time."""

    def __init__(self, at: Ints, key: Ints) -> None:
        order = np.lexsort((at, key))
        self._at, self._key = at[order], key[order]

    def end(self, orders: Orders | Stretches) -> Ints:
        """The first leave of each one's level after it was born; _NEVER: none."""
        if not len(self._at):
            return np.full(len(orders.key), _NEVER)
        slot = _after(self._key, self._at, orders.key, orders.born + 1)
        there = slot < len(self._at)
        there[there] = self._key[slot[there]] == orders.key[there]
        return np.where(there, self._at[np.minimum(slot, len(self._at) - 1)], _NEVER)


def _after(keys: Ints, ats: Ints, key: Ints, at: Ints) -> Ints:
    """The first of (keys, ats), sorted by both, that is not before each (key, at)."""
    span = int(max(ats.max(initial=0), at.max(initial=0))) + 2
    found = np.unique(keys)
    base = np.searchsorted(found, keys) * span + ats + 1
    slot = np.searchsorted(found, key)
    exact = slot < len(found)
    exact[exact] = found[slot[exact]] == key[exact]
    return np.searchsorted(base, slot * span + np.where(exact, at + 1, 0))


def _latest(levels: Stretches, key: Ints, at: Ints) -> Ints:
    """The stretch of each key that began before `at` and is not over; -1: none."""
    slot = _after(levels.key, levels.born, key, at) - 1
    there = slot >= 0
    there[there] = (levels.key[slot[there]] == key[there]) & (levels.end[slot[there]] >= at[there])
    return np.where(there, slot, -1)


def _take(left: Ints, level: Ints, size: Ints) -> Ints:
    """Take sizes from levels in order; how much each got. `left` is changed."""
    order = np.argsort(level, kind="stable")
    level, size = level[order], size[order]
    before = np.cumsum(size) - size
    starts = np.flatnonzero(np.diff(level, prepend=-1))
    before -= np.repeat(before[starts], np.diff(starts, append=len(level)))
    got = np.clip(left[level] - before, 0, size)
    np.subtract.at(left, level, got)
    taken = np.empty_like(got)
    taken[order] = got
    return taken


def _find(ids: Ints, wanted: Ints) -> tuple[Ints, Mask]:
    slot = np.searchsorted(ids, wanted)
    live = slot < len(ids)
    live[live] = ids[slot[live]] == wanted[live]
    return slot, live


def _part(orders: Resting, mask: Any) -> Resting:
    return type(orders)(*(values[mask] for values in orders))


def _joined(a: Resting, b: Resting) -> Resting:
    return type(a)(*(np.concatenate(pair) for pair in zip(a, b, strict=True)))


def _carried(orders: Resting) -> Resting:
    """Those that have not ended, for the next block."""
    kept = _part(orders, orders.end == _NEVER)
    return kept._replace(born=np.full(len(kept.key), _BEFORE))


def _woven(m: Messages, pieces: list[tuple[Events, Ints]]) -> tuple[Events, Ints]:
    """All pieces by message, those of one message in the order given."""
    rows = np.concatenate([rows for rows, _ in pieces])
    place = np.concatenate([at for _, at in pieces])
    for name in ("ts_event", "ts_recv"):
        rows[name] = m.events[name][place]
    order = np.argsort(place, kind="stable")
    return rows[order], m.lines[place[order]]

"""Where hftbacktest is right on order-by-order feeds, we agree with it; see test_agreement.py.

Its rules: a FILL fills our orders at its price that stand before the order it names, wholly; an
offer at or through our bid fills it wholly; nothing else does. So the feed here lets no order of
ours stand at a better price than all others: levels are contiguous, a tick apart at the touch, and
an aggressor who empties a level rests with what is left of him at its price.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from agreement import (
    BY_US,
    BY_VENUE,
    IS_BUY,
    IS_SELL,
    MID,
    MS,
    SPEC,
    at_peer,
    ours,
    random_latencies,
    random_script,
)
from sim import T0

from hft.adapters.hftbacktest import EVENT_DTYPE, to_events
from hft.types import Kind

SEEDS = range(12)
DEPTH, A_LEVEL = 25, 3
ADD, CANCEL, MODIFY, FILL = 10, 11, 12, 13


class Tape:
    """The peer's rows and the queues they lead to: `queues[price]` is a list of [number, lots]."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng, self.ts, self.number = rng, T0, 0
        self.rows: list[tuple[Any, ...]] = []
        self.queues: dict[int, list[list[int]]] = {}
        self.bid = MID
        for k in range(DEPTH):
            for side, price in ((1, MID - k), (-1, MID + 1 + k)):
                for _ in range(A_LEVEL):
                    self.add(side, price, self.lots())

    def side(self, price: int) -> int:
        return 1 if price <= self.bid else -1

    def lots(self) -> int:
        return int(self.rng.choice([1, 2, 5, 10]))

    def near(self) -> int:
        """A price a few ticks from the touch."""
        side, depth = int(self.rng.choice([1, -1])), int(self.rng.integers(0, 7))
        return self.bid - depth if side > 0 else self.bid + 1 + depth

    def put(self, code: int, side: int, price: int, lots: int, number: int) -> None:
        ev = code | BY_VENUE | BY_US | (IS_BUY if side > 0 else IS_SELL)
        self.rows.append((ev, self.ts, self.ts + MS // 2, price, lots, number, 0, 0.0))

    def add(self, side: int, price: int, lots: int) -> None:
        self.number += 1
        self.put(ADD, side, price, lots, self.number)
        self.queues.setdefault(price, []).append([self.number, lots])

    def cancel(self) -> None:
        price = self.near()
        queue = self.queues[price]
        if len(queue) > 1:
            number, lots = queue.pop(int(self.rng.integers(0, len(queue))))
            self.put(CANCEL, self.side(price), price, lots, number)

    def modify(self) -> None:
        price = self.near()
        queue, side = self.queues[price], self.side(price)
        at = int(self.rng.integers(0, len(queue)))
        number, before = queue[at]
        to, lots = price - side * int(self.rng.integers(0, 3)), self.lots()
        if to != price and len(queue) == 1:
            return
        if to == price and lots <= before:
            queue[at][1] = lots
        else:
            queue.pop(at)
            self.queues[to].append([number, lots])
        self.put(MODIFY, side, to, lots, number)

    def execute(self) -> None:
        side = int(self.rng.choice([1, -1]))
        price = self.bid if side > 0 else self.bid + 1
        queue, left = self.queues[price], int(self.rng.choice([1, 3, 8, 20, 40]))
        while left and queue:
            number, lots = queue[0]
            part = min(left, lots)
            self.put(FILL, side, price, part, number)
            left -= part
            if part == lots:
                queue.pop(0)
                self.put(CANCEL, side, price, 0, number)
            else:
                queue[0][1] -= part
                self.put(MODIFY, side, price, lots - part, number)
        if not queue:
            self.bid -= side
            self.add(-side, price, max(left, 1))

    def step(self) -> None:
        self.ts += int(self.rng.integers(2, 6)) * MS
        draw = self.rng.random()
        if draw < 0.4:
            self.execute()
        elif draw < 0.55:
            self.cancel()
        elif draw < 0.75:
            self.modify()
        else:
            price = self.near()
            self.add(self.side(price), price, self.lots())


def random_case(seed: int) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    rng = np.random.default_rng(seed)
    tape = Tape(rng)
    start = tape.ts + MS
    while len(tape.rows) < 700:
        tape.step()
    last, tape.ts = tape.ts, tape.ts + 2_000 * MS
    tape.add(1, 1, 1)
    rows = np.array(tape.rows, EVENT_DTYPE)
    case = {"script": random_script(rng, start, last), **random_latencies(rng)}
    return to_events(rows, SPEC), rows, {**case, "end": last + 1_000 * MS + 1}


@pytest.fixture(scope="module")
def theirs(peer_python: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    cases = {str(seed): random_case(seed) for seed in SEEDS}
    return at_peer(peer_python, tmp_path_factory.mktemp("cases"), cases)


@pytest.mark.parametrize("seed", SEEDS)
def test_same_orders_in_the_same_queues_same_fills_position_and_cash(
    seed: int, theirs: dict[str, Any]
) -> None:
    rows, _, case = random_case(seed)
    mine = ours(rows, case)
    assert (rows["kind"] == Kind.EXECUTE).sum() > 100
    assert sum(o[0] == "FILLED" for o in mine["orders"].values()) > 5
    assert mine == theirs[str(seed)]

"""One table of orders serves the venue's book and ours, where nobody asks for the orders of ours.

A strategy must see and get exactly what it would with a table each.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from random_orders import random_order_tape
from sim import T0, rechunked
from twins import MS, Randomly, random_script

from hft import Strategy
from hft.engine import run_once
from hft.plan import prepare
from hft.types import BUY, EVENT, SEEN_BY_BOTH, SELL, Datum, Flag, InstrumentSpec, Kind

NAMES = ("A.V", "B.V", "C.W")


class Looks(Randomly):
    """Keeps what all books show whenever it is called."""

    seen: list[Any]

    def look(self) -> None:
        for inst in self.all:
            book = self.book(inst)
            shown: tuple[Any, ...] = (book.ts_event, book.live)
            if book.live:
                shown += (book.levels(BUY, 9), book.levels(SELL, 9), book.last_price)
            self.seen.append((self.now, inst.name, shown))

    def play(self, *step: Any) -> None:
        self.look()
        super().play(*step)

    def on_fill(self, fill: Any) -> None:
        self.look()
        super().on_fill(fill)


class LooksAtPackets(Looks):
    def on_book(self, book: Any) -> None:
        self.look()


def market(rng: np.random.Generator) -> dict[str, np.ndarray]:
    tapes = {name: random_order_tape(rng, 250, T0) for name in NAMES}
    end = max(int(t["ts_recv"].max()) for t in tapes.values()) + 500 * MS
    quiet = (end, end, 0, 0, Datum.SIGNAL, 0, 0, 0, Kind.DATUM, 0, SEEN_BY_BOTH | Flag.LAST)
    return {name: np.append(t, np.array([quiet], EVENT)) for name, t in tapes.items()}


def halves(rows: np.ndarray) -> np.ndarray:
    """Each row as two, one seen by the venue and one by us, in order of their times."""
    venue, ours = rows.copy(), rows.copy()
    venue["flags"] ^= np.uint16(Flag.SEEN_BY_US)
    ours["flags"] ^= np.uint16(Flag.SEEN_BY_VENUE)
    times = np.concatenate([rows["ts_event"], rows["ts_recv"]])
    return np.concatenate([venue, ours])[np.argsort(times, kind="stable")]


def outcome(
    base: type[Strategy],
    tapes: dict[str, np.ndarray],
    script: list[Any],
    chunk: int,
    needs: tuple[str, ...] = (),
    **recipe: Any,
) -> list[Any]:
    seen: list[Any] = []
    facts = {"script": script, "seen": seen, "needs": needs, "__module__": __name__}
    specs = [InstrumentSpec(symbol=name[0], venue=name[2], tick=0.5, lot=1.0) for name in tapes]
    latency = {"entry": 1_000, "response": 700_000, "compute": 20_000}
    recipe = {"latency": latency, "engine": {"bracket": False}, **recipe}
    plan = prepare(type("Play", (base,), facts), tapes, specs=specs, recipe=recipe)
    run = run_once(rechunked(plan, chunk)).run
    assert run.status == "complete", run.error
    fills, orders = run.fills.copy(), run.orders.copy()
    fills["cause_row"] = orders["cause_row"] = 0  # halves have other numbers
    faults = {name: n for name, n in run.counters.items() if name.startswith("l3_")}
    return [seen, fills.tobytes(), orders.tobytes(), run.samples.tobytes(), faults]


@pytest.mark.parametrize("base", [Looks, LooksAtPackets])
@pytest.mark.parametrize("seed", range(6))
def test_one_table_of_orders_shows_what_two_show(base: type[Strategy], seed: int) -> None:
    rng = np.random.default_rng(seed)
    data = market(rng)
    end = max(int(t["ts_recv"].max()) for t in data.values()) - 500 * MS
    script = random_script(rng, len(data), end)
    one = outcome(base, data, script, chunk=50)
    assert one == outcome(base, data, script, chunk=1_000, needs=("L3",))
    split = {name: halves(rows) for name, rows in data.items()}
    assert one == outcome(base, split, script, chunk=7)
    assert len(one[0]) > 100
    assert one[1]


@pytest.mark.parametrize("seed", range(4))
def test_halves_told_as_levels_are_the_rows_told_as_levels(seed: int) -> None:
    rng = np.random.default_rng(seed)
    data = market(rng)
    end = max(int(t["ts_recv"].max()) for t in data.values()) - 500 * MS
    script = random_script(rng, len(data), end)
    split = {name: halves(rows) for name, rows in data.items()}
    levels = {"data": {"as_levels": True}}
    whole = outcome(LooksAtPackets, data, script, chunk=50, **levels)
    assert whole == outcome(LooksAtPackets, split, script, chunk=7, **levels)

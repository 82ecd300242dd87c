"""What the market was when: by hand, and against what the core looked up itself on the way."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from random_market import random_tape
from random_orders import random_order_tape
from sim import T0, Sim, rechunked
from twins import MS, Randomly, random_script

import hft
from hft.analysis.mids import Mids, joined, mids_of, touches_at, with_mids
from hft.analysis.records import MARKOUT_NS, NO_PRICE, NO_TIME
from hft.analysis.run_data import RunData
from hft.engine import run_once
from hft.errors import DataError
from hft.plan import prepare
from hft.types import BUY, EVENT, SEEN_BY_BOTH, SELL, Datum, Flag, InstrumentSpec, Kind, Trading

Tape = Callable[[np.random.Generator, int, int], np.ndarray]
NONE = [NO_PRICE, NO_PRICE]


def played(seed: int, tape: Tape, instruments: int = 1, **recipe: Any) -> tuple[RunData, list[Any]]:
    """A random script on random markets: the run, and its tapes."""
    rng = np.random.default_rng(seed)
    tapes = [tape(rng, 400, T0) for _ in range(instruments)]
    end = max(int(rows["ts_recv"].max()) for rows in tapes)
    quiet = (end + 500 * MS, end + 500 * MS, 0, 0, int(Datum.SIGNAL), 0, 0, 0, Kind.DATUM, 0)
    last = np.array([(*quiet, int(SEEN_BY_BOTH | Flag.LAST))], EVENT)
    tapes = [np.append(rows, last) for rows in tapes]
    specs = [
        InstrumentSpec(symbol=f"I{i}", venue="V", tick=0.5, lot=1.0) for i in range(instruments)
    ]
    data = {spec.name: rows for spec, rows in zip(specs, tapes, strict=True)}
    script = random_script(rng, instruments, end)
    cls = type("Play", (Randomly,), {"script": script, "__module__": __name__})
    recipe = {
        "seed": seed + 1,
        "latency": {"entry": 700_000, "response": 300_000, "compute": 20_000},
        "venue": {"maker_fee": -0.00001, "taker_fee": 0.0005},
        "engine": {"bracket": False},
        **recipe,
    }
    run = run_once(rechunked(prepare(cls, data, specs=specs, recipe=recipe), 50)).run
    assert run.status == "complete", run.error
    return run, tapes


def asked(sim: Sim, *times: int) -> list[list[int]]:
    rows = sim.markets["X.SIM"].array()
    return touches_at(iter([rows[:3], rows[3:]]), T0 + np.array(times)).tolist()


def test_a_time_counts_all_rows_that_bear_it() -> None:
    sim = Sim()
    sim.book(bids={99: 1}, asks={101: 1}, at=10)
    sim.level(SELL, 101, 0, at=20)
    sim.level(SELL, 103, 5, at=20)
    sim.level(BUY, 100, 2, at=30)
    assert asked(sim, 9, 10, 19, 20, 30, 99) == [
        NONE, [99, 101], [99, 101], [99, 103], [100, 103], [100, 103],
    ]  # fmt: skip
    assert asked(sim, 99, 10, 99) == [[100, 103], [99, 101], [100, 103]]  # in any order
    assert touches_at(iter([]), np.array([T0, NO_TIME])).tolist() == [NONE, NONE]


def test_an_empty_side_a_snapshot_and_a_gap_are_unknown() -> None:
    sim = Sim()
    sim.book(bids={99: 1}, asks={101: 1}, at=0)
    sim.level(SELL, 101, 0, at=10)
    sim.mark(Kind.SNAPSHOT_BEGIN, at=20)
    sim.level(BUY, 90, 1, at=25, flags=int(SEEN_BY_BOTH))
    sim.level(SELL, 91, 1, at=26, flags=int(SEEN_BY_BOTH))
    sim.mark(Kind.SNAPSHOT_END, at=30)
    sim.status(Trading.GAP, at=40)
    assert asked(sim, 10, 20, 26, 30, 40) == [[99, NO_PRICE], NONE, NONE, [90, 91], NONE]


def test_rows_that_we_alone_see_do_not_move_the_venue() -> None:
    sim = Sim()
    sim.book(bids={99: 1}, asks={101: 1}, at=0)
    sim.level(BUY, 100, 1, at=10, flags=int(Flag.SEEN_BY_US | Flag.LAST))
    assert asked(sim, 10) == [[99, 101]]


def test_times_must_ascend_in_the_core() -> None:
    from hft import _core

    with pytest.raises(DataError, match="5 came after 6"):
        _core.touches_at(iter([]), np.array([6, 5]))


@pytest.mark.parametrize("tape", [random_tape, random_order_tape])
@pytest.mark.parametrize("seed", range(4))
def test_mids_are_those_that_the_core_marked_fills_at(tape: Tape, seed: int) -> None:
    run, tapes = played(seed, tape, 2)
    compared = 0
    for instrument, rows in enumerate(tapes):
        fills = run.fills[run.fills["instrument"] == instrument]
        for k, horizon in enumerate(MARKOUT_NS):
            bid, ask = touches_at(iter([rows]), fills["ts_venue"] + horizon).T
            then = fills["markout_mid2"][:, k]
            both = (then != NO_PRICE) & (bid != NO_PRICE) & (ask != NO_PRICE)
            np.testing.assert_array_equal(then[both], (bid + ask)[both])
            compared += int(both.sum())
    assert compared > 30


@pytest.mark.parametrize("seed", range(4))
def test_a_taker_never_got_better_than_the_touch(seed: int) -> None:
    run, _ = played(seed, random_tape)
    assert run.mids is not None
    takes = run.fills["maker"] == 0
    assert (run.mids.touch[~takes] == NO_PRICE).all()
    fills, touch = run.fills[takes], run.mids.touch[takes]
    known = touch != NO_PRICE
    worse = fills["side"] * (fills["price"] - touch)
    assert (worse[known] >= 0).all()
    assert (worse[known] == 0).any()


def test_an_order_that_never_ended_is_looked_up_at_the_end() -> None:
    sim = Sim()
    sim.book(bids={99: 1}, asks={101: 1}, at=0)
    sim.submit(BUY, price=98, lots=1, at=10)
    sim.level(BUY, 100, 1, at=500)
    sim.call(lambda s: None, at=600)
    mids = sim.run().run.mids
    assert mids is not None
    assert mids.orders[0].tolist() == [200, 200, NO_PRICE, NO_PRICE, 200, 200, 200, 201]


def test_a_run_can_do_without(tmp_path: Path) -> None:
    sim = Sim(engine={"shortfall": False})
    sim.book(bids={99: 1}, asks={101: 1}, at=0)
    sim.submit(BUY, lots=1, at=10)
    assert sim.run().run.mids is None


def test_variants_go_without() -> None:
    settings = {"data.synth.duration_s": 5.0, "latency.entry": "1ms"}
    strategy = Path(__file__).parents[2] / "strategies" / "quote_at_touch.py"
    run = hft.backtest(strategy, "synth", settings=settings).run
    assert run.mids is not None
    assert len(run.orders) > 10
    assert run.bracket is not None
    assert run.bracket.mids is None


def test_ctrl_c_on_the_way_leaves_the_run_without_them(three_fills: RunData) -> None:
    def rows(instrument: int) -> Iterator[np.ndarray]:
        raise KeyboardInterrupt
        yield

    three_fills.mids = None
    run = with_mids(three_fills, rows)
    assert (run.mids, run.status) == (None, "interrupted")
    assert "looked up" in run.error


def test_a_run_without_orders_reads_no_rows(empty_run: RunData) -> None:
    def rows(instrument: int) -> Iterator[np.ndarray]:
        raise AssertionError("read")

    mids = mids_of(empty_run, rows)
    assert mids.orders.shape == (0, 8)


def test_days_are_put_together_only_if_all_have_them() -> None:
    day = Mids(np.zeros((2, 8), np.int64), np.zeros(1, np.int64))
    both = joined([day, day])
    assert both is not None
    assert (both.orders.shape, both.touch.shape) == ((4, 8), (2,))
    assert joined([day, None]) is None


def test_mids_of_other_orders_are_refused(three_fills: RunData) -> None:
    with pytest.raises(
        DataError, match="mids are of 4 orders and 3 fills, but the run has 4 and 2"
    ):
        dataclasses.replace(three_fills, fills=three_fills.fills[:2])

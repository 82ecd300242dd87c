"""Parent orders, tags, what is left at the end, and parameters."""

from __future__ import annotations

import pytest
from recorder import Recorder, do, market, played
from sim import T0, Scripted, Sim

from hft import Params
from hft.errors import ConfigError
from hft.types import BUY, IOC


def test_parent_orders_sum_their_slices() -> None:
    class Look(Recorder):
        def on_start(self) -> None:
            self.parent = self.parent_order(self.listed[0], BUY, 7)
            self.at(T0 + 10, lambda: self.submit(BUY, 3, 102, IOC, parent=self.parent))
            self.at(T0 + 20, lambda: self.submit(BUY, 2, 102, IOC, parent=self.parent))

    s = played(market(), Look)
    assert (s.parent.lots, s.parent.filled_lots, s.parent.leaves_lots, s.parent.side) == (
        7,
        5,
        2,
        1,
    )
    assert s.parent.instrument is s.listed[0]


def test_a_flatten_on_stop_that_walks_many_levels_is_answered_to_the_last_fill() -> None:
    class Stop(Scripted):
        def on_stop(self) -> None:
            self.flatten()

    sim = Sim()
    sim.strategy = Stop
    sim.book(bids={100 - k: 1 for k in range(90)}, asks={102: 90}, at=0)
    sim.submit(BUY, lots=90, price=102, tif=IOC, at=10)
    sim.run()
    assert sim.position() == 0


def test_flatten_on_stop_leaves_no_position() -> None:
    class Stop(Scripted):
        def on_stop(self) -> None:
            self.flatten()

    sim = market(entry=10, response=10, risk={"max_order_lots": 4})
    sim.submit(BUY, lots=4, price=102, tif=IOC, at=10)
    sim.submit(BUY, lots=4, price=102, tif=IOC, at=15)
    sim.submit(BUY, lots=3, price=99, at=10)
    sim.strategy = Stop
    sim.run()
    assert sim.position() == 0
    assert sim.outcome.run.tags[int(sim.outcome.run.orders[-1]["tag"])] == "flatten"


def test_fees_of_a_leg_are_in_currency() -> None:
    sim = market(also=("B.SIM",), tick=0.5, venue={"taker_fee": 0.001})
    out = do(sim, 10, lambda s: s.fees(*s.listed))
    sim.run()
    assert out == [pytest.approx(2 * 0.001 * 101 * 0.5)]


def test_rng_follows_the_seed_and_log_bears_the_module() -> None:
    draws = []
    for seed in (1, 1, 2):
        sim = market(recipe={"seed": seed})
        out = do(sim, 10, lambda s: (float(s.rng.random()), s.log.name))
        sim.run()
        draws += out
    assert draws[0] == draws[1]
    assert draws[0] != draws[2]
    assert draws[0][1] == "sim"


class Sized(Params, frozen=True):
    lots: int = 2
    edge: float = 0.5


class WithParams(Recorder):
    params: Sized

    def on_start(self) -> None:
        self.note("params", (self.params.lots, self.params.edge))


def test_params_come_from_the_recipe_and_unknown_ones_are_refused() -> None:
    sim = market(recipe={"params": {"lots": 7}})
    assert played(sim, WithParams).of("params") == [(0, (7, 0.5))]
    with pytest.raises(ConfigError, match="no key lotz; did you mean lots"):
        played(market(recipe={"params": {"lotz": 7}}), WithParams)

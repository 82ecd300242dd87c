"""Implementation shortfall: by hand, and its identity on real replays, order by order."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_up_runs import INVERSE
from random_market import random_tape
from random_orders import random_order_tape
from sim import Sim
from test_mids import played
from twins import MS

import hft
from hft.analysis import execution_tables, pnl
from hft.analysis.figures import by_currency, figures_of
from hft.analysis.mids import MIDS
from hft.analysis.records import NO_PRICE, NO_TIME
from hft.analysis.report import Report
from hft.analysis.run_data import InstrumentFacts, RunData
from hft.analysis.shortfall import STAGES, Shortfall, parents_of, shortfall, shortfalls
from hft.analysis.shortfall_figures import shortfall_figures
from hft.types import BUY, SELL, InstrumentSpec, Tif

Tape = Callable[[np.random.Generator, int, int], np.ndarray]
TICK2 = 2_000_000_000
"""Half units of 1e-9 currency in a tick of one lot, where that is worth 1."""


def of(run: RunData, instrument: int = 0) -> Shortfall:
    short = shortfall(run, instrument)
    assert short is not None
    return short


def costs(short: Shortfall, order: int = 0) -> dict[str, float]:
    """One order's stages that cost or gave something [ticks of a lot]."""
    return {name: part[order] / TICK2 for name, part in short.parts.items() if part[order]}


def test_three_fills_by_hand(three_fills: RunData) -> None:
    short = of(three_fills)
    # A tick of one lot is 100,000 units; half a tick is as many half units.
    lot_half_ticks = {name: (part / 100_000).tolist() for name, part in short.parts.items()}
    assert lot_half_ticks == {
        "feed": [2, 0, 0, 0],  # two lots, the mid half a tick up
        "wait": [0, 0, 0, 0],
        "service": [4, 0, 0, 0],
        "gateway": [-2, 0, 0, 0],
        "network": [4, 0, 1, 0],
        "timing": [-4, -1, 0, 0],
        "spread": [-2, -1, -1, 0],
        "walk": [0, 0, 2, 0],  # sold at 999 with the touch at 1000
        "charged": [0, 0, 0, 0],
        "opportunity": [0, 52, 0, 0],  # two lots not sold, the mid 13 ticks down
        "fees": [-0.2, -0.1004, 0.7992, 0],
    }
    assert short.holds
    assert (short.residual == 0).all()
    assert short.mid2.tolist() == [1999, 2006, 2000, 2000]


def test_a_taker_pays_stage_by_stage() -> None:
    sim = Sim(feed=100, entry=30, venue={"taker_fee": 0.001})
    sim.book(bids={99: 5}, asks={101: 5}, at=0)  # the order's cause: mid 100
    sim.book(bids={101: 5, 99: 0}, asks={103: 5, 104: 5, 101: 0}, at=50)  # 102 before we hear of it
    sim.submit(BUY, lots=7, at=120, tif=Tif.IOC)
    sim.book(bids={102: 5}, asks={103: 0, 106: 9}, at=140)  # while it travels
    short = of(sim.run().run)
    assert costs(short) == {
        "feed": 7 * 2.0,
        "network": 7 * (103.0 - 102.0),
        "spread": 7 * (104.0 - 103.0),
        "walk": 2 * 2.0,
        "fees": 0.001 * (5 * 104 + 2 * 106),
    }
    assert short.total[0] / TICK2 == 5 * 104 + 2 * 106 - 7 * 100 + 0.001 * (5 * 104 + 2 * 106)
    assert (short.holds, short.residual[0]) == (True, 0)


def test_a_maker_waits_earns_the_spread_and_misses_the_rest() -> None:
    sim = Sim(feed=10, entry=10)
    sim.book(bids={99: 5}, asks={101: 5}, at=0)
    order = sim.submit(SELL, price=101, lots=6, at=20)
    sim.level(BUY, 100, 3, at=40)  # the mid half a tick our way
    sim.trade(BUY, 101, 7, at=50)  # five stood before us
    sim.cancel(order, at=60)
    sim.book(asks={101: 0, 110: 5}, at=65)
    sim.call(lambda s: None, at=200)
    short = of(sim.run().run)
    assert sim.filled(order) == 2
    assert costs(short) == {
        "timing": -2 * 0.5,
        "spread": -2 * 0.5,
        "opportunity": -4 * 5.0,  # the market went up: what was not sold is worth more
    }
    assert (short.holds, short.residual[0]) == (True, 0)


@pytest.mark.parametrize("tape", [random_tape, random_order_tape])
@pytest.mark.parametrize("seed", range(5))
def test_the_identity_is_exact_for_every_order(tape: Tape, seed: int) -> None:
    run, _ = played(seed, tape, 2)
    for instrument in range(2):
        short = of(run, instrument)
        assert (short.residual == 0).all()
        assert short.holds
        assert short.left_out + short.orders.size == (run.orders["instrument"] == instrument).sum()
    assert run.orders["replaces"].any()
    assert (run.fills["maker"] == 0).any()
    assert (run.fills["maker"] == 1).any()


@pytest.mark.parametrize("seed", [0, 2])  # in others a fill has no mid
def test_spread_and_walk_are_what_the_account_calls_spread(seed: int) -> None:
    run, _ = played(seed, random_tape)
    known = (run.fills["mid2"] != NO_PRICE).all() and (run.fills["ts_recv"] != NO_TIME).all()
    assert known
    short, split = of(run), pnl.split(run, 0)
    paid = short.parts["spread"].sum() + short.parts["walk"].sum()
    assert split.late_fills == 0
    assert -paid == split.spread2


@pytest.mark.parametrize(
    "spec",
    [
        dict(tick=0.5, lot=1, multiplier=100, inverse=True, currency="BTC"),
        dict(tick=1e-8, lot=1e-3),
        dict(tick=3e-9, lot=1e-2),
        dict(tick=5e-6, lot=0.001),
    ],
)
def test_other_contracts_agree_within_a_unit_a_fill(spec: dict[str, Any]) -> None:
    facts = InstrumentFacts(InstrumentSpec(symbol="A", venue="B", **spec), 0.0, 0.0)
    for seed in range(3):
        run, _ = played(seed, random_tape)
        short = of(dataclasses.replace(run, instruments=[facts]))
        assert short.holds
        assert short.parts["network"].any() or facts.spec.tick < 1e-6
        units = np.abs(short.residual) / 2
        assert (
            units
            <= np.bincount(run.fills["order"], minlength=run.orders.size + 1)[
                short.orders["id"].astype(np.int64)
            ]
            + 0.5
        ).all()


@pytest.mark.parametrize("name", ["quote_at_touch", "glft_mm", "obi_mm", "lstm_mm"])
def test_the_identity_is_exact_on_what_ships(name: str) -> None:
    strategy = Path(__file__).parents[2] / "strategies" / f"{name}.py"
    run = hft.backtest(strategy, "synth", settings={"data.synth.duration_s": 20.0}).run
    short = of(run)
    assert short.orders.size > 20
    assert (short.residual == 0).all()
    (account,) = shortfall_figures(shortfalls(run), by_currency(run))
    total = account["all"]["total"]["money"]
    assert total == pytest.approx(sum(account["all"][stage]["money"] for stage in STAGES))


def test_days_apart_keep_the_identity() -> None:
    strategy = Path(__file__).parents[2] / "strategies" / "quote_at_touch.py"
    settings = {
        "data.synth.duration_s": 12.0,
        "data.synth.start": "2024-01-01T23:59:54",
        "data.synth.symbols": ["AAA", "BBB"],
        "engine.overnight": "flatten",
        "engine.flatten_before": "2s",
    }
    run = hft.backtest(strategy, "synth", settings=settings).run
    assert len(set((run.orders["ts_decide"] // 86_400_000_000_000).tolist())) == 2
    for instrument in range(2):
        assert (of(run, instrument).residual == 0).all()
        assert of(run, instrument).holds


@pytest.mark.parametrize("seed", range(3))
def test_missing_mids_move_costs_and_never_break_the_sum(seed: int) -> None:
    run, _ = played(seed, random_tape)
    assert run.mids is not None
    rng = np.random.default_rng(seed)
    run.mids.orders[rng.random(run.mids.orders.shape) < 0.6] = NO_PRICE
    run.mids.orders[::7] = NO_PRICE
    run.mids.touch[::2] = NO_PRICE
    run.fills["mid2"][::3] = NO_PRICE
    short = of(run)
    assert (short.residual == 0).all()
    assert short.holds


def test_a_fill_that_the_order_does_not_know_is_caught(three_fills: RunData) -> None:
    three_fills.orders["cum_ticks"][0] += 1
    short = of(three_fills)
    assert (short.residual[0], short.holds) == (-200_000, False)
    figures = figures_of(three_fills)
    assert any(note.startswith("Implementation shortfall broken") for note in figures["notes"])
    assert "BROKEN" in execution_tables.shortfalls(figures)[0].note
    three_fills.instruments = [INVERSE]
    three_fills.orders["cum_lots"][0] += 1
    assert not of(three_fills).holds


def test_orders_without_a_mid_or_a_price_are_left_out(three_fills: RunData) -> None:
    three_fills.orders["price"][3] = NO_PRICE
    short = of(three_fills)
    assert (short.left_out, short.orders.size) == (1, 3)
    note = execution_tables.shortfalls(figures_of(three_fills))[0].note
    assert "1 orders without any mid are left out." in note


def test_a_fill_never_reported_to_us_does_not_count(three_fills: RunData) -> None:
    three_fills.fills["ts_recv"][2] = NO_TIME
    three_fills.orders["cum_lots"][2] = three_fills.orders["cum_ticks"][2] = 0
    short = of(three_fills)
    assert short.holds
    assert short.filled.tolist() == [2, 1, 0, 0]


def test_a_parent_adds_the_way_to_its_children() -> None:
    sim = Sim(entry=5)
    sim.book(bids={99: 50}, asks={101: 50}, at=0)
    parent: dict[str, Any] = {}
    sim.call(lambda s: parent.update(it=s.parent_order("X.SIM", BUY, 6)), at=5)
    for at in (10, 110):
        sim.call(lambda s: s.submit("X.SIM", BUY, 3, None, Tif.IOC, parent=parent["it"]), at=at)
    sim.book(bids={102: 50}, asks={101: 0, 104: 50}, at=100)
    run = sim.run().run
    parents = parents_of(of(run))
    told = {name: part.tolist() for name, part in parents.parts.items() if part.any()}
    assert told == {"scheduling": [3 * 3 * TICK2], "spread": [6 * TICK2]}
    assert (parents.lots.tolist(), parents.notional.tolist()) == ([6], [600.0])
    assert parents.took_ns.tolist() == [105]
    paid = int((run.fills["price"] * run.fills["lots"]).sum())
    assert sum(part.sum() for part in parents.parts.values()) == TICK2 * (paid - 6 * 100)


def test_basis_points_over_orders_by_hand(three_fills: RunData) -> None:
    (account,) = shortfall_figures(shortfalls(three_fills), by_currency(three_fills))
    assert (account["orders"], account["filled_orders"], account["residual_e9"]) == (4, 3, 0)
    network = account["all"]["network"]
    # Lots of 0.001 at ticks of 0.1: orders ask for 2 at 999.5, 3 at 1003, 1 at 1000, 4 at 1000.
    asked = 1e-4 * np.array([2 * 999.5, 3 * 1003, 1000, 4000])
    assert network["money"] == pytest.approx(2.5e-4)
    assert network["bps"] == pytest.approx(1e4 * 2.5e-4 / asked.sum())
    each = 1e4 * np.array([2e-4, 0, 0.5e-4, 0]) / asked
    assert network["median"] == pytest.approx(np.median(each))
    assert (network["q25"], network["q75"]) == pytest.approx(np.quantile(each, (0.25, 0.75)))
    filled = account["filled"]["network"]
    traded = 1e-4 * np.array([2 * 999.5, 1003, 1000])
    assert filled["bps"] == pytest.approx(1e4 * 2.5e-4 / traded.sum())
    assert "opportunity" not in account["filled"]


def test_without_mids_there_is_no_shortfall(three_fills: RunData) -> None:
    three_fills.mids = None
    assert shortfall(three_fills, 0) is None
    figures = figures_of(three_fills)
    assert figures["shortfall"] == []
    assert execution_tables.shortfalls(figures) == []


def test_columns_of_the_file_are_named_after_stamps() -> None:
    assert MIDS[0] == "mid2_cause_event"
    assert len(MIDS) == 8


def test_a_live_session_is_looked_up_in_what_it_heard(tmp_path: Path) -> None:
    from hft.live.session import run_sim
    from hft.plan import prepare

    strategy = Path(__file__).parents[2] / "strategies" / "quote_at_touch.py"
    plan = prepare(strategy, "synth", settings={"data.synth.messages_per_s": 5_000.0})
    run = run_sim(plan, tmp_path, 700_000_000).run
    assert run.status == "complete"
    short = of(run)
    assert short.orders.size > 3
    assert (short.residual == 0).all()
    assert short.holds
    plan = prepare(strategy, "synth", settings={"engine.shortfall": False})
    (tmp_path / "other").mkdir()
    assert run_sim(plan, tmp_path / "other", 1).run.mids is None


def test_it_comes_as_a_frame(three_fills: RunData) -> None:
    report = Report(three_fills)
    first = report.shortfall.row(0, named=True)
    assert (first["id"], first["filled_lots"], first["network"]) == (1, 2, 2e-4)
    assert first["mid"] == pytest.approx(99.95)
    assert first["total"] == pytest.approx(sum(first[stage] for stage in STAGES))
    assert len(report.to_pandas("shortfall")) == 4
    three_fills.mids = None
    assert Report(three_fills).shortfall.is_empty()


OVERLAY = {"weights": (0.02, 0.011), "half_lives": (5 * MS, 80 * MS), "permanent": 0.003}
MODELS: dict[str, dict[str, Any]] = {
    "overlay": {"impact": OVERLAY},
    "fade": {"fade": 0.3, "refill_probability": 0.5},
    "cap": {"participation_window": 40 * MS, "participation_cap": 0.3},
    "touch": {"depth": "touch", "slippage": {"model": "spread", "coefficient": 0.4}},
    "touch and overlay": {
        "depth": "touch",
        "participation_window": 40 * MS,
        "slippage": {"model": "square_root", "coefficient": 0.8},
        "impact": OVERLAY,
    },
}


@pytest.mark.parametrize("name", MODELS)
def test_the_identity_is_exact_under_every_model_of_impact(name: str) -> None:
    fees = {"maker_fee": -0.00001, "taker_fee": 0.0005}
    for seed in range(3):
        run, _ = played(seed, random_tape, venue={**fees, **MODELS[name]})
        short = of(run)
        assert (short.residual == 0).all()
        assert short.holds
        assert short.parts["charged"].sum() == 2 * run.fills["impact"].sum()
        assert run.fills["impact"].any() == ("impact" in MODELS[name] or "slippage" in MODELS[name])
        if "depth" in MODELS[name]:  # filled whole at the touch
            assert not short.parts["walk"].any()
        assert figures_of(run)["headline"]["identity_holds"]

"""Counts, inventory, mark-outs and latency legs of three fills, by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from made_up_runs import MS, RunMaker

from hft.analysis import legs, trading
from hft.analysis.figures import figures_of
from hft.analysis.records import FILL_ROW, MARKOUT_NS, NO_TIME, ORDER_ROW
from hft.analysis.run_data import RunData


def test_activity_by_hand(three_fills: RunData) -> None:
    done = trading.activity(three_fills.orders, three_fills.fills)
    assert (done.orders, done.fills, done.filled_lots, done.refused) == (4, 3, 4, 1)
    assert done.fill_ratio == pytest.approx(4 / 10)
    assert done.passive_fill_ratio == pytest.approx(3 / 5)
    assert done.maker_share == pytest.approx(3 / 4)
    assert done.cancel_ratio == pytest.approx(1 / 3)
    assert done.order_to_trade == pytest.approx((3 + 2 + 1) / 3)


def test_headline_by_hand(three_fills: RunData) -> None:
    head = figures_of(three_fills)["headline"]
    assert head["net"] == pytest.approx(0.00027506)
    assert head["gross"] == pytest.approx(0.0003)
    assert head["turnover"] == pytest.approx(0.4003)
    assert head["bps_of_turnover"] == pytest.approx(6.8713, abs=1e-4)
    assert head["max_drawdown"] == pytest.approx(489_960e-9)


def test_refusals_and_endings_by_name(three_fills: RunData) -> None:
    assert trading.refusals(three_fills.orders) == {"POSITION_LIMIT": 1}
    assert trading.endings(three_fills.orders) == {"FILLED": 2, "CANCELED": 1, "REJECTED": 1}


def test_inventory_by_hand(three_fills: RunData) -> None:
    held = trading.inventory(three_fills.samples["position"])  # 0 2 1 0 0
    assert (held.mean_abs, held.p99_abs, held.max_abs, held.last) == (0.6, 2.0, 2, 0)
    assert held.time_flat == pytest.approx(0.6)


def test_queue_ahead_counts_maker_fills_only(three_fills: RunData) -> None:
    ahead = trading.queue_ahead(three_fills.fills)
    assert ahead["n"] == 2
    assert ahead["p50"] == pytest.approx(3.75)
    assert ahead["max"] == 7.5


def test_markouts_by_hand(three_fills: RunData) -> None:
    fills = three_fills.fills
    at_fill, ten_ms, *_, last = trading.markouts(fills[fills["maker"] == 1])
    assert at_fill.ticks == pytest.approx((2 * 0.5 + 0.5) / 3)
    # +0.5 on two lots, -0.5 on one; both fills stand alone in their 10 ms.
    assert ten_ms.ticks == pytest.approx(0.5 / 3)
    assert ten_ms.ticks_se == pytest.approx(math.sqrt(2 * (4 / 9 + 4 / 9)) / 3)
    assert ten_ms.bps == pytest.approx((2 * 0.5 / 1000 - 0.5 / 1004) / 3 * 1e4)
    assert (last.horizon_ns, last.fills, last.ticks) == (MARKOUT_NS[-1], 0, None)
    (taker, *_) = trading.markouts(fills[fills["maker"] == 0])
    assert (taker.ticks, taker.ticks_se) == (-0.5, None)


def test_fills_of_one_moment_count_as_one_observation() -> None:
    values = np.repeat(np.random.default_rng(1).normal(size=50), 20)
    weights, moment = np.ones(values.size), np.repeat(np.arange(50), 20)
    _, clustered = trading.weighted_mean(values, weights, moment)
    _, naive = trading.weighted_mean(values, weights, np.arange(values.size))
    assert clustered == pytest.approx(values[::20].std(ddof=1) / math.sqrt(50))
    assert naive is not None
    assert naive < clustered / 4


def test_legs_by_hand(three_fills: RunData) -> None:
    took = legs.durations(three_fills.orders)
    assert {name: (values // MS).tolist() for name, values in took.items()} == {
        "feed": [2],
        "compute": [2],
        "entry": [5, 1, 4],
        "response": [3, 1, 5],
        "signal age at venue": [9],
    }
    assert legs.quantiles(took["entry"]) == {
        "n": 3, "p50": 4 * MS, "p90": 5 * MS, "p99": 5 * MS, "p99.9": 5 * MS, "max": 5 * MS,
    }  # fmt: skip


def test_legs_add_up_to_signal_age(random_run: RunMaker) -> None:
    orders = random_run(2).orders
    sent = orders[(orders["by_signal"] == 1) & (orders["state"] != 7)]
    parts = [legs.leg_ns(sent, *legs.LEGS[name]) for name in ("feed", "compute", "entry")]
    assert (sum(parts) == legs.signal_age_ns(sent)).all()


def test_nothing_traded_gives_no_ratio() -> None:
    orders, fills = np.zeros(0, ORDER_ROW), np.zeros(0, FILL_ROW)
    done = trading.activity(orders, fills)
    assert (done.fill_ratio, done.maker_share, done.cancel_ratio, done.order_to_trade) == (
        None,
    ) * 4
    assert trading.markouts(fills)[0].ticks is None
    assert trading.queue_ahead(fills) == {
        "n": 0,
        "p10": None,
        "p50": None,
        "p90": None,
        "max": None,
    }
    assert trading.inventory(np.zeros(0, np.int64)).mean_abs is None
    assert legs.quantiles(legs.signal_age_ns(orders))["p50"] is None


def test_stages_of_an_order_add_up_end_to_end(three_fills: RunData) -> None:
    first = three_fills.orders[:1]
    stages = {name: int(ns[0]) for name, ns in legs.parts_of_compute(first).items()}
    assert list(stages.values()) == [100_000, 800_000, 100_000, 600_000, 400_000]
    whole = {name: int(legs.leg_ns(first, *legs.LEGS[name])[0]) for name in legs.LEGS}
    assert sum(stages.values()) == whole["compute"]
    assert sum(whole.values()) == int(first["ts_ack"][0] - first["ts_cause_event"][0])


def test_an_order_of_no_signal_waits_for_the_strategy_alone(three_fills: RunData) -> None:
    first = three_fills.orders[:1]
    first["ts_model_start"] = first["ts_model_end"] = NO_TIME
    stages = legs.parts_of_compute(first)
    assert stages["model wait"].size == stages["model service"].size == 0
    assert stages["strategy wait"].tolist() == [1 * MS]

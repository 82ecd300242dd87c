"""What the shipped makers promise, in a minute of their own market."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hft.analysis.records import OrderState
from hft.engine import run_once
from hft.plan import prepare
from hft.types import BUY, SELL, Flag, Kind, Tif, Trading

MAKERS = ("quote_at_touch", "glft_mm", "obi_mm", "lstm_mm")
CAP = 200


@pytest.mark.parametrize("name", MAKERS)
def test_makes_markets_within_its_cap(run, name):
    done = run(name, 60.0).run
    assert done.status == "complete"
    assert len(done.fills) > 50
    assert set(done.fills["side"]) == {BUY, SELL}
    assert done.fills["maker"].all()
    assert (done.orders["tif"] == Tif.POST_ONLY).all()
    assert abs(done.fills["position"]).max() <= CAP
    assert done.counters["refused_by_risk"] == 0


@pytest.mark.parametrize("name", MAKERS)
def test_never_asks_for_more_than_the_cap(run, name):
    """A small cap, slow answers: what is held and what is on its way stay under it together."""
    done = run(name, 40.0, lots=20, max_lots=50, latency__entry="20ms", latency__response="20ms")
    assert len(done.run.fills) > 10
    assert abs(done.run.fills["position"]).max() <= 50


@pytest.mark.parametrize("name", MAKERS)
def test_quotes_each_instrument(run, name):
    done = run(name, 40.0, data__synth__symbols=["AAA", "BBB"]).run
    assert {0, 1} == set(done.fills["instrument"])


@pytest.mark.parametrize("name", MAKERS)
def test_pulls_its_quotes_when_the_feed_breaks(shipped, name, broken_feed):
    rows, specs, ts_gap = broken_feed
    done = run_once(prepare(shipped(name), rows, specs=specs)).run
    alive = done.orders["ts_done"] > ts_gap
    assert (done.orders["ts_send"] < ts_gap).any()
    assert (done.orders["ts_send"] < ts_gap + 1_000_000).all()
    assert (done.orders["ts_done"][alive] < ts_gap + 20_000_000).all()


@pytest.fixture(scope="module")
def market():
    from hft.data.synth import SynthConfig, synthesize

    config = SynthConfig(seed=11, duration_s=45.0, price0_ticks=60_000, tick=0.01, lot=0.01)
    rows, specs = synthesize(config)
    return rows["BTCUSDT.SIM"], specs


@pytest.fixture(scope="module")
def broken_feed(market):
    """Thirty seconds of market, then lost messages and prints alone."""
    rows, specs = market
    at = int(np.searchsorted(rows["ts_recv"], rows["ts_recv"][0] + 30_000_000_000))
    at += int(np.argmax((rows["flags"][at:] & int(Flag.LAST)) != 0)) + 1
    gap = rows[at : at + 1].copy()
    gap["kind"], gap["ref_id"], gap["qty"], gap["side"] = Kind.STATUS, Trading.GAP, 0, 0
    gap["flags"] |= int(Flag.LAST)
    rest = prints_alone(rows[at + 1 :])
    return {"BTCUSDT.SIM": np.concatenate([rows[:at], gap, rest])}, specs, int(gap["ts_recv"][0])


def prints_alone(rows):
    """A market that trades without its book ever moving."""
    prints = rows[rows["kind"] == Kind.TRADE].copy()
    prints["flags"] |= int(Flag.LAST)
    return prints


def test_imbalance_maker_pulls_the_side_about_to_be_run_over(run):
    pulled = run("obi_mm", 20.0, pull_at=0.0)
    assert len(pulled.run.orders) == 0
    never = run("obi_mm", 20.0, pull_at=1.0, lean_ticks=0.0).run
    some = run("obi_mm", 20.0, pull_at=0.6, lean_ticks=0.0).run
    assert len(some.fills) < len(never.fills)


def test_glft_waits_until_it_has_measured(run):
    done = run("glft_mm", 20.0, warm_up_s=5.0).run
    assert done.orders["ts_send"].min() >= done.ts_start + 5_000_000_000


# ---- lstm_mm: what guards its quotes


def forecast_of(folder, alpha_ticks):
    """A bundle that says the same of every row."""
    from hft.features import Features, OnTouch, spread
    from hft.inference.bundle import save_bundle
    from hft.inference.card import Card, LayerEntry, Readout, Scaler, Training, entries_of

    features, trigger = entries_of(Features(spread(), trigger=OnTouch()))
    card = Card(
        format=2,
        name="constant",
        outputs=("down", "flat", "up"),
        horizon_ns=500_000_000,
        latency_ns=1_000_000,
        warm_up_rows=0,
        trigger=trigger,
        features=features,
        layers=(LayerEntry(kind="dense", units=3, activation="softmax"),),
        scaler=Scaler(mean=(0.0,), scale=(1.0,), clip=5.0),
        readout=Readout(move_ticks=(alpha_ticks,) * 3, shrink=1.0),
        training=Training(data="none", data_sha256="", start_ts=0, end_ts=1, rows=0, seed=0),
    )
    zeros = {"kernel": np.zeros((1, 3), np.float32), "bias": np.zeros(3, np.float32)}
    return save_bundle(folder / "constant.bundle", card, [zeros]).path


@pytest.fixture
def told(shipped, tmp_path):
    """`told(alpha)`: lstm_mm with a model that always forecasts `alpha` ticks."""
    from hft.inference.model import Model
    from hft.loader import load_strategy

    def make(alpha_ticks):
        model = Model(str(forecast_of(tmp_path, alpha_ticks)))
        return type("Told", (load_strategy(shipped("lstm_mm")),), {"model": model})

    return make


@pytest.mark.parametrize("side", [BUY, SELL])
def test_a_strong_forecast_pulls_the_side_it_would_run_over(run, told, side):
    done = run(told(5.0 * side)).run
    assert len(done.orders) > 5
    assert (done.orders["side"] == side).all()
    assert done.fills["position"][-1] == side * CAP  # at the cap nothing adds, nothing leaves
    last = done.fills["ts_recv"][-1]
    assert (done.orders["ts_send"] <= last).all()


def test_a_forecast_leans_the_quotes(run, told):
    up, level, down = (mean_depths(run(told(a), pull_ticks=99.0).run) for a in (2.0, 0.0, -2.0))
    assert up[0] < level[0] < down[0]  # a rise forecast: the bid nearer, the ask further
    assert up[1] > level[1] > down[1]


def mean_depths(done):
    """Ticks from the mid at which bids and asks were filled, on average."""
    away = (done.fills["mid2"] / 2 - done.fills["price"]) * done.fills["side"]
    return away[done.fills["side"] == BUY].mean(), away[done.fills["side"] == SELL].mean()


RECORD = np.dtype("<i8, <u8, <i8, V32, <u4, <u2, <u2")  # as tests/pipe/sim.py has it
RECORD.names = ("ts", "order", "price", "rest", "instrument", "kind", "check")
NEW, REPLACE = 7, 9


def test_moves_nearer_only_for_more_than_the_queue_place_and_after_a_rest(run):
    outcome = run("lstm_mm", 60.0, queue_ticks=2.0, rest="30ms")
    side = {int(o["id"]): int(o["side"]) for o in outcome.run.orders}
    last = {}
    nearer = away = 0
    for record in outcome.journal.view(RECORD):
        if record["kind"] not in (NEW, REPLACE):
            continue
        order, price, ts = int(record["order"]), int(record["price"]), int(record["ts"])
        if order in last and price != last[order][0]:
            ticks = side[order] * (price - last[order][0])
            if ticks > 0:
                nearer += 1
                assert ticks > 2
                assert ts - last[order][1] >= 30_000_000
            else:
                away += 1
        if order not in last or price != last[order][0]:
            last[order] = (price, ts)
    assert nearer > 20
    assert away > 20


def test_half_spread_is_no_less_than_fee_and_fill_cost(run, told):
    """Flat, without a forecast: 3 bp of 60,000 ticks is 18 ticks, and 4 on top."""
    done = run(told(0.0), venue__maker_fee=0.0003, fill_cost_ticks=4.0, gamma=1e-6).run
    assert min(mean_depths(done), default=math.nan) > 18


def test_an_old_forecast_is_no_forecast(run):
    assert len(run("lstm_mm", latency__inference="11ms").run.orders) == 0
    assert len(run("lstm_mm", latency__inference="5ms").run.orders) > 0


def test_a_silent_model_pulls_the_quotes(shipped, market):
    rows, specs = market
    at = int(np.searchsorted(rows["ts_recv"], rows["ts_recv"][0] + 30_000_000_000))
    rows = np.concatenate([rows[:at], prints_alone(rows[at:])])
    settings = {"max_silence": "500ms", "engine.sample": "100ms"}
    plan = prepare(shipped("lstm_mm"), {"BTCUSDT.SIM": rows}, specs=specs, settings=settings)
    samples = run_once(plan).run.samples
    since = samples["ts"] - int(rows["ts_recv"][at])
    assert samples["open_orders"][since < 0].max() > 0
    assert samples["open_orders"][since > 700_000_000].max() == 0


def test_a_loss_ends_quoting_flat(run, told):
    outcome = run(told(-0.9), 60.0, max_loss=0.05, alpha_weight=-4.0)  # a maker with bad judgement
    done = outcome.run
    assert outcome.strategy.stopped
    assert done.samples["position"][-1] == 0
    assert done.samples["open_orders"][-1] == 0
    flatten = done.orders[done.orders["tif"] == Tif.IOC]
    assert len(flatten) >= 1
    assert (done.orders["ts_send"] <= flatten["ts_send"][-1]).all()
    assert done.samples["equity"][-1] > -0.5e9
    assert (flatten["state"] == OrderState.FILLED).any()


def test_the_forecast_earns_shuffled_it_loses_and_latency_eats_it(run):
    """Five minutes of a seed that nothing was tuned on; the margins are several times as wide."""
    patient = {"max_age": "60s", "max_silence": "60s", "data__synth__seed": 21}
    with_model = run("lstm_mm", 300.0, **patient)
    shuffled = run("lstm_mm", 300.0, **patient, engine__placebo=True)
    late = run("lstm_mm", 300.0, **patient, latency__scale=64.0)
    net = [int(o.run.samples["equity"][-1]) for o in (with_model, shuffled, late)]
    assert net[0] > 1_000_000_000
    assert net[1] < -1_000_000_000
    assert net[2] < net[0] - 1_000_000_000

import math

import numpy as np
import pytest
from event_streams import random_stream, row
from naive_features import NaiveFeatures

from hft import features as f
from hft.errors import ConfigError, DataError, OrderError, SchemaError, StrategyError
from hft.features import Every, Features, OnPacket, OnTouch, OnTrade, compute_features, feature
from hft.types import EVENT, Flag, Kind

BUY, SELL = 1, -1


def every_feature() -> list[f.Feature]:
    return [
        f.mid(), f.micro_price(), f.micro_price_minus_mid(), f.spread(),
        f.imbalance(1), f.imbalance(5), f.ofi(1), f.ofi(5), f.ofi(3, "20ms"), f.ofi(5, "5ms").log(),
        f.trade_flow("30ms"), f.trade_flow(), f.trade_flow("2ms").log(),
        f.trade_lots("10ms"), f.trade_lots(), f.trade_count("10ms"), f.trade_count(),
        f.volatility("20ms"), f.mid_return("50ms"), f.mid_return("3ms"),
        f.depth_lots(BUY, 1), f.depth_lots(SELL, 7), f.level_distance(BUY, 3),
        f.level_distance(SELL, 9),
        f.since_event(), f.since_trade(), f.since_row(),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "trigger",
    [OnPacket(), OnTouch(), OnTouch(sizes=True), OnTrade(), Every("3ms")],
    ids=lambda t: t.kind,
)
@pytest.mark.parametrize("seed", range(4))
def test_every_feature_equals_its_plain_twin(trigger, seed):
    events = random_stream(seed, packets=1_000)
    features = Features(*every_feature(), trigger=trigger)
    twin = NaiveFeatures(features)
    twin.feed(events)
    ts, rows = compute_features(events, features)
    assert len(rows) > 20
    assert ts.tolist() == [t for t, _ in twin.rows]
    expected = np.array([r for _, r in twin.rows])
    for i, name in enumerate(features.names):
        np.testing.assert_allclose(rows[:, i], expected[:, i], rtol=1e-9, atol=1e-9, err_msg=name)


def test_chunks_give_the_same_bytes_as_one_array():
    events = random_stream(9)
    features = Features(*every_feature(), trigger=OnPacket())
    whole = compute_features(events, features)
    parts = compute_features(np.array_split(events, 17), features)
    assert whole[0].tobytes() == parts[0].tobytes()
    assert whole[1].tobytes() == parts[1].tobytes()


def test_rows_are_finite_and_come_only_after_the_windows_are_filled():
    events = random_stream(3, faults=False)
    features = Features(f.trade_flow("30ms"), trigger=OnPacket())
    ts, rows = compute_features(events, features)
    assert ts[0] >= events["ts_recv"][0] + 120_000_000
    assert np.isfinite(rows).all()


def test_half_life_of_a_trade_is_the_window():
    events = random_stream(0, packets=1, faults=False)
    start = int(events["ts_recv"][0])
    tail = np.array(
        [
            row(start + 40_000_000, Kind.TRADE, BUY, 1_000, 64),
            row(start + 60_000_000, Kind.LEVEL, BUY, 990, 5),
        ],
        dtype=EVENT,
    )
    tail["flags"] |= int(Flag.LAST)
    features = Features(f.trade_flow("10ms"), trigger=OnPacket())
    _, rows = compute_features(np.concatenate([events, tail]), features)
    assert rows[:, 0].tolist() == [64.0, 16.0]


def test_our_own_prints_and_rows_only_the_venue_sees_do_not_count():
    events = random_stream(5, faults=False)
    features = Features(f.trade_lots(), f.imbalance(5), trigger=OnTouch())
    plain = compute_features(events, features)
    noise = events[events["kind"] == Kind.TRADE].copy()
    noise["flags"] = int(Flag.SEEN_BY_VENUE)
    own = noise.copy()
    own["flags"] = int(Flag.SEEN_BY_US | Flag.OWN)
    mixed = np.concatenate([noise, own, events])
    mixed = mixed[np.argsort(mixed["ts_recv"], kind="stable")]
    assert plain[1].tobytes() == compute_features(mixed, features)[1].tobytes()


def test_own_feature_keeps_its_state_and_starts_again_after_a_gap():
    seen = []

    @feature(window="250ms", state={"calls": 0})
    def pressure(state, row):
        state["calls"] += 1
        seen.append((row.ts, row.bid, row.ask, row.mid, row.micro_price, row.depth_lots(5)))
        return state, state["calls"]

    events = random_stream(1, packets=4_000, faults=False)
    _, rows = compute_features(events, Features(pressure, f.mid(), trigger=OnTouch()))
    assert rows[:, 0].tolist() == list(range(1, len(rows) + 1))
    assert [s[3] for s in seen] == rows[:, 1].tolist()
    gap = np.array([(row(int(events["ts_recv"][-1]), Kind.STATUS, ref_id=4))], dtype=EVENT)
    _, rows = compute_features([events, gap, later(events)], Features(pressure, trigger=OnTouch()))
    calls = rows[:, 0].tolist()
    assert calls.count(1.0) == 2


def later(events):
    moved = events.copy()
    for clock in ("ts_event", "ts_recv"):
        moved[clock] += events["ts_recv"][-1] - events["ts_recv"][0] + 1_000
    return moved


def test_own_flow_is_that_of_trade_flow():
    @feature(window="20ms", state=None)
    def flow(state, row):
        return state, row.signed_lots

    @feature(state=None)
    def lots(state, row):
        return state, row.traded_lots

    features = Features(flow, f.trade_flow("20ms"), lots, f.trade_lots(), trigger=OnTouch())
    _, rows = compute_features(random_stream(2), features)
    assert rows[:, 0].tobytes() == rows[:, 1].tobytes()
    assert rows[:, 2].tobytes() == rows[:, 3].tobytes()


def test_what_an_own_feature_raises_comes_through():
    @feature()
    def broken(state, row):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        compute_features(random_stream(0), Features(broken, trigger=OnPacket()))


@pytest.mark.parametrize(
    ("returned", "words"),
    [((0, math.nan), "finite"), (1.0, r"\(state, value\)"), ((1, 2, 3), r"\(state, value\)")],
)
def test_what_an_own_feature_returns_is_checked(returned, words):
    @feature(name="odd")
    def update(state, row):
        return returned

    with pytest.raises(StrategyError, match=f"'odd' must return .*{words}"):
        compute_features(random_stream(0), Features(update, trigger=OnPacket()))


def test_an_own_row_is_dead_after_its_call():
    kept = []

    @feature()
    def keeper(state, row):
        kept.append(row)
        return state, 0.0

    compute_features(random_stream(0), Features(keeper, trigger=OnPacket()))
    with pytest.raises(OrderError, match="after its update returned"):
        _ = kept[0].bid


def test_names_and_their_errors():
    features = Features(
        f.imbalance(levels=5), f.trade_flow("1s"), f.ofi(3, "250ms").log(), f.depth_lots(SELL, 2),
        f.mid_return("100ms"), f.volatility("1min").named("vol"), trigger=OnTouch(),
    )  # fmt: skip
    assert features.names == (
        "imbalance_5", "trade_flow_1s", "ofi_3_250ms_log", "depth_ask_2", "return_100ms", "vol",
    )  # fmt: skip
    with pytest.raises(ConfigError, match="'spread' is used twice"):
        Features(f.spread(), f.spread(), trigger=OnTouch())
    with pytest.raises(ConfigError, match="at least one"):
        Features(trigger=OnTouch())
    with pytest.raises(ConfigError, match="OnTouch"):
        Features(f.spread(), trigger="touch")
    with pytest.raises(ConfigError, match="not a feature"):
        Features(f.spread, trigger=OnTouch())
    with pytest.raises(ConfigError, match="levels is 33"):
        f.imbalance(33)
    with pytest.raises(ConfigError, match="side is 0"):
        f.depth_lots(0)
    with pytest.raises(ConfigError, match="1us or more"):
        f.volatility("500ns")
    with pytest.raises(ConfigError, match="plain identifier"):
        f.spread().named("my spread")
    with pytest.raises(ConfigError, match="longer than 0"):
        Every(0)


def test_rows_that_are_not_ours_are_refused():
    features = Features(f.spread(), trigger=OnPacket())
    with pytest.raises(SchemaError, match=r"must be hft\.EVENT"):
        compute_features(np.zeros((3, 8)), features)
    events = random_stream(0)
    events["instrument"][-1] = 3
    with pytest.raises(SchemaError, match="instruments 0 and 3"):
        compute_features(events, features)
    events["instrument"][-1] = 0
    orders = Features(f.order_count(BUY), trigger=OnPacket())
    with pytest.raises(DataError, match=r"order_count_bid_1|orders_bid_1 needs every order"):
        compute_features(events, orders)

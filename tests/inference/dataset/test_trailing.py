"""Scales that trail: the core's, against a twin and against what they claim."""

from __future__ import annotations

import math
from itertools import pairwise

import naive_trailing
import numpy as np
import pytest

from hft._core import Trails
from hft.errors import ConfigError
from hft.inference.card import Scaler, TrailingEntry
from hft.inference.dataset.trailing import Trailed, Trailing, varying


def rule(period_ns, memory_ns, drift=0.0):
    return TrailingEntry(period_ns=period_ns, memory_ns=memory_ns, drift=drift)


def walk(n=20_000, seed=3):
    rng = np.random.default_rng(seed)
    ts = np.cumsum(rng.integers(1, 100, n)) + 1_000_000
    return ts, np.cumsum(rng.standard_normal((n, 2)), axis=0) * [0.01, 5.0] + [3.0, 1e6]


def in_pieces(trailing, ts, x, pieces):
    edges = [0, *pieces, len(ts)]
    return np.concatenate([trailing.feed(ts[a:b], x[a:b]) for a, b in pairwise(edges)])


@pytest.mark.parametrize("seed", range(12))
def test_the_core_and_its_twin_agree_on_random_rows(seed):
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(500, 6_000)), int(rng.integers(2, 9))
    ts = 1_700_000_000_000_000_000 + np.cumsum(rng.integers(0, 2_000, n) ** 2)
    x = rng.standard_normal((n, k)) * 10.0 ** rng.integers(-3, 4, k) + rng.standard_normal(k) * 100
    x[:, 0] = 7.0
    for jump in rng.integers(0, n, 3):
        x[jump:, 1] += rng.choice([-1, 1]) * 20 * np.std(x[:, 1])
    period = int(rng.integers(50_000_000, 900_000_000))
    memory = period * int(rng.integers(1, 6)) + int(rng.integers(0, period))
    drift = float(rng.choice([0.0, 1.0, 3.0]))
    twin = naive_trailing.Trailing(period, memory, drift)
    wanted = twin.feed(ts, x)
    core = Trailing(rule(period, memory, drift), k)
    found = in_pieces(core, ts, x, sorted(rng.integers(0, n, 4).tolist()))
    made = core.estimates()
    assert np.array_equal(found, wanted)
    assert len(twin.estimates) > 3
    assert made.start_ts.tolist() == [e.start_ts for e in twin.estimates]
    assert made.rows.tolist() == [e.rows for e in twin.estimates]
    assert made.drifted.tolist() == [e.drifted for e in twin.estimates]
    assert np.array_equal(made.mean, [e.mean for e in twin.estimates])
    assert np.array_equal(made.scale, [e.scale for e in twin.estimates])
    assert (made.scale[:, 0] == 1).all()


def test_a_scale_is_made_of_the_past_alone():
    ts, x = walk()
    trailing = Trailing(rule(80_000, 200_000), 2)
    period = in_pieces(trailing, ts, x, [7_001])
    made = trailing.estimates()
    assert (np.diff(period) >= 0).all()
    assert len(made.rows) > 8
    for number, start_ts in enumerate(made.start_ts):
        assert (ts[period == number] >= start_ts).all()
        used = (ts < start_ts) & (ts >= start_ts - 210_000)
        inside = x[used][-made.rows[number] :]
        assert made.mean[number] == pytest.approx(inside.mean(axis=0))
        assert made.scale[number] == pytest.approx(inside.std(axis=0), rel=1e-6)
    later = x.copy()
    later[ts >= made.start_ts[4]] *= 7
    other = Trailing(rule(80_000, 200_000), 2)
    other.feed(ts, later)
    assert np.array_equal(made.mean[:5], other.estimates().mean[:5])
    assert np.array_equal(made.scale[:5], other.estimates().scale[:5])


def test_drift_makes_a_new_scale_and_forgets_the_old():
    rng = np.random.default_rng(0)
    ts = np.arange(20_000) * 10
    x = rng.standard_normal((20_000, 2))
    x[10_000:, 1] += 8
    steady, alert = Trailing(rule(80_000, 80_000), 2), Trailing(rule(80_000, 80_000, 3.0), 2)
    steady.feed(ts, x)
    alert.feed(ts, x)
    made = alert.estimates()
    drifted = np.flatnonzero(made.drifted)
    assert len(drifted) == 1
    assert made.start_ts[drifted[0]] == 110_000  # the first block after 100,000 is over
    assert made.mean[drifted[0], 1] == pytest.approx(8, abs=0.2)
    assert not steady.estimates().drifted.any()


def test_a_column_that_does_not_vary_is_not_blown_up():
    trailing = Trailing(rule(1_000, 1_000, 3.0), 1)
    trailing.feed(np.arange(5_000), np.full((5_000, 1), 1e6 / 3))
    assert set(trailing.estimates().scale.ravel()) == {1.0}
    assert varying(np.array([0.0, 1e6, 1e6]), np.array([0.5, 1e-4, 0.1])).tolist() == [0.5, 1, 0.1]


def test_a_row_that_is_not_finite_leaves_no_trace():
    ts, x = walk()
    holes = np.sort(np.random.default_rng(5).choice(len(ts), 500, replace=False))
    holes[0] = 0  # nor are sums about such a row
    bad = x.copy()
    bad[holes, holes % 2] = np.resize([np.nan, np.inf, -np.inf], 500)
    kept = np.delete(np.arange(len(ts)), holes)
    trailing, whole = (
        Trailing(rule(80_000, 200_000, 2.0), 2),
        Trailing(rule(80_000, 200_000, 2.0), 2),
    )
    period = trailing.feed(ts, bad)
    assert np.array_equal(period[kept], whole.feed(ts[kept], x[kept]))
    assert np.array_equal(trailing.estimates().mean, whole.estimates().mean)
    assert np.array_equal(trailing.estimates().start_ts, whole.estimates().start_ts)


def test_days_apart_have_scales_of_their_own():
    ts, x = walk(2_000)
    trailing, fresh = Trailing(rule(8_000, 8_000), 2), Trailing(rule(8_000, 8_000), 2)
    first = trailing.feed(ts[:1_000], x[:1_000])
    made = len(trailing.estimates().rows)
    trailing.restart()
    second = trailing.feed(ts[1_000:], x[1_000:])
    wanted = fresh.feed(ts[1_000:], x[1_000:])
    assert first.max() == made - 1
    assert second[0] == -1
    assert np.array_equal(second, np.where(wanted < 0, -1, wanted + made))
    assert np.array_equal(trailing.estimates().mean[made:], fresh.estimates().mean)


def test_in_a_networks_own_terms_its_scaler_gives_what_the_estimate_would():
    ts, x = walk()
    trailing = Trailing(rule(80_000, 200_000), 2)
    period, made = trailing.feed(ts, x), trailing.estimates()
    own = Scaler(mean=(5.0, -3.0), scale=(0.5, 20.0), clip=5.0)
    put = Trailed(trailing.rule, period, made.mean, made.scale).in_own_terms(x, own)
    has = period >= 0
    assert 0.5 < has.mean() < 1
    assert np.array_equal(put[~has], x[~has])
    mean, scale = np.array(own.mean), np.array(own.scale)
    p = period[has]
    assert np.array_equal(put[has], mean + (x[has] - made.mean[p]) * (scale / made.scale[p]))
    assert (put[has] - mean) / scale == pytest.approx(
        (x[has] - made.mean[p]) / made.scale[p], abs=1e-9
    )


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ((0, 10, 1.0), "scales of every 0 ns look back 10 ns: want a period above 0"),
        ((10, 5, 1.0), "scales of every 10 ns look back 5 ns"),
        ((10, 10_010, 1.0), "scales of every 10 ns look back 1001 periods, want at most 1000"),
        ((10, 10, -1.0), "drift of trailing scales is -1"),
        ((10, 10, math.inf), "drift of trailing scales is inf, want 0"),
    ],
)
def test_rules_that_mean_nothing_are_refused(settings, words):
    with pytest.raises(ConfigError, match=words):
        Trailing(rule(*settings), 2)


def test_rows_of_another_width_are_refused():
    with pytest.raises(ConfigError, match="rows of 3 columns, want 2"):
        Trailing(rule(10, 10), 2).feed(np.arange(4), np.zeros((4, 3)))
    with pytest.raises(ConfigError, match="3 rows, 4 times"):
        Trailing(rule(10, 10), 2).feed(np.arange(4), np.zeros((3, 2)))


def test_estimates_that_are_not_those_of_the_rows_are_refused():
    rows, made = np.zeros((3, 2)), np.ones((2, 2))
    own = Scaler(mean=(0.0, 0.0), scale=(1.0, 1.0), clip=5.0)

    def put(period, mean, scale):
        Trailed(rule(10, 10), np.asarray(period), mean, scale).in_own_terms(rows, own)

    with pytest.raises(ConfigError, match="3 rows, 1 numbers of estimates"):
        put([0], made, made)
    with pytest.raises(ConfigError, match="2 rows, 1 scales"):
        put([0, 1, 1], made, made[:1])
    with pytest.raises(ConfigError, match="a row of estimate 2, there are 2"):
        put([0, 1, 2], made, made)
    with pytest.raises(ConfigError, match="rows of 1 columns, want 2"):
        Trails(period_ns=10, memory_ns=10, drift=0.0, mean=[0.0, 1.0], scale=[1.0])

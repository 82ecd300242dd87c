"""Resampling keeps what a trace has: its clusters, its law, its law when the market is busy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from hft.errors import ConfigError
from hft.execution.draws import draw_normal, draw_uniform
from hft.execution.market_rate import BEYOND, Buckets, MarketRate, buckets_of, rate_of
from hft.execution.profiles import RATE_WINDOW_NS
from hft.execution.resampling import (
    Layout,
    Trace,
    ar1,
    autocovariance,
    block_length,
    fit_lognormal,
    lay_out,
    lognormal_series,
    mean_block,
)
from hft.types import EVENT, Flag

STEP = 1_000_000
START = 1_700_000_000_000_000_000 // RATE_WINDOW_NS * RATE_WINDOW_NS


def shocks(size: int, stream: int = 1) -> np.ndarray:
    return draw_normal(7, stream, np.arange(size, dtype=np.uint64))


def ar_trace(n: int = 20_000, phi: float = 0.9, rate: np.ndarray | None = None) -> Trace:
    ns = np.rint(1e5 * np.exp(0.5 * ar1(shocks(n), phi))).astype(np.int64)
    return Trace("made up", np.arange(n) * STEP, {"entry": ns}, rate)


def market(seconds: float, counts: np.ndarray | None = None) -> MarketRate:
    windows = round(seconds * 10)
    counts = np.full(windows, 5) if counts is None else counts
    numbers = START // RATE_WINDOW_NS + np.arange(counts.size)
    return MarketRate(numbers, counts, START, START + round(seconds * 1e9))


def played(trace: Trace, layout: Layout, ts: np.ndarray) -> np.ndarray:
    """Rows of the trace at times of the market, for traces of an even step."""
    block = np.searchsorted(layout.block_ts, ts, side="right") - 1
    at = layout.ts[layout.block_at[block]] + ts - layout.block_ts[block]
    right = np.clip(np.searchsorted(layout.ts, at), 1, layout.ts.size - 1)
    nearer_left = at - layout.ts[right - 1] <= layout.ts[right] - at
    return layout.rows[np.where(nearer_left, right - 1, right)]


def test_autocovariance_falls_by_the_chance_of_a_restart() -> None:
    """E*[acov(k)] = (1 - p)^k acov(k), with p = 1 / L (Politis & Romano 1994)."""
    trace, length = ar_trace(phi=0.98), 200.0
    circular = np.fft.fft(trace.legs["entry"] - trace.legs["entry"].mean())
    true = np.fft.ifft(circular * circular.conj()).real / trace.ts.size
    found = []
    for seed in range(12):
        layout = lay_out(trace, length, market(400.0), seed, 2)
        ts = START + np.arange(400_000) * STEP
        values = trace.legs["entry"][played(trace, layout, ts)].astype(np.float64)
        values -= trace.legs["entry"].mean()
        found.append([np.mean(values[k:] * values[: values.size - k]) for k in (1, 10, 50)])
    for k, mean, error in zip((1, 10, 50), np.mean(found, 0), np.std(found, 0), strict=True):
        theory = np.exp(-k / length) * true[k]
        assert abs(mean - theory) < 4 * error / np.sqrt(12) + 0.01 * true[0], k


def test_blocks_are_exponential_and_begin_anywhere() -> None:
    trace = ar_trace()
    layout = lay_out(trace, 200.0, market(3000.0), 3, 2)
    lengths = np.diff(layout.block_ts)[:-1]
    whole = lengths[layout.block_at[:-2] != 0]  # the others go round the end of the trace
    assert 0.9 < lengths.mean() / (200 * STEP) < 1.1
    assert stats.kstest(whole / (200 * STEP), "expon").pvalue > 1e-3
    assert stats.kstest(layout.block_at / trace.ts.size, "uniform").pvalue > 1e-3


def two_speeds(n: int = 40_000) -> Trace:
    """Latency that depends on the rate: three bands, in stretches of 50 rows."""
    band = np.repeat(
        np.searchsorted([0.6, 0.96], draw_uniform(1, 2, np.arange(n // 50, dtype=np.uint64))), 50
    )
    rate = np.array([10, 100, 1000])[band] + np.arange(n) % 3
    ns = (np.array([1_000, 5_000, 50_000])[band] + np.arange(n) % 500).astype(np.int64)
    return Trace("bands", np.arange(n) * STEP, {"entry": ns}, rate.astype(np.int64))


def test_conditioned_latencies_follow_the_law_of_their_bucket() -> None:
    trace = two_speeds()
    assert trace.rate is not None
    buckets = buckets_of(trace.rate)
    assert len(buckets.borders) == 2  # octaves without 200 rows are joined
    counts = np.repeat(np.tile([5, 100, 3000], 400), 10)
    run = market(counts.size / 10, counts)
    layout = lay_out(trace, 200.0, run, 5, 2, conditioned=True)
    ts = START + np.arange(0, counts.size * RATE_WINDOW_NS, 20 * STEP)
    rows = played(trace, layout, ts)
    state = buckets.along(counts)
    now = np.maximum((ts - START) // RATE_WINDOW_NS - 1, 0)
    mine = buckets.of(trace.rate)
    for bucket in range(3):
        inside = state[now] == bucket
        assert inside.sum() > 1000
        assert (mine[rows[inside]] == bucket).all()
        # Draws of one block hang together: a tenth of them is about independent.
        drawn = trace.legs["entry"][rows[inside]][::50]
        own = trace.legs["entry"][mine == bucket]
        assert stats.ks_2samp(drawn, own).pvalue > 1e-3


def test_a_trace_of_one_rate_is_the_unconditioned_bootstrap() -> None:
    trace = ar_trace(rate=np.full(20_000, 4))
    plain = lay_out(trace, 200.0, market(60.0), 5, 2)
    bucketed = lay_out(trace, 200.0, market(60.0), 5, 2, conditioned=True)
    for name in ("rows", "ts", "block_ts", "block_at"):
        assert (getattr(plain, name) == getattr(bucketed, name)).all()


def test_a_layout_depends_on_seed_and_stream_alone_and_longer_ones_begin_alike() -> None:
    trace = ar_trace()
    once = lay_out(trace, 200.0, market(60.0), 5, 2)
    again = lay_out(trace, 200.0, market(60.0), 5, 2)
    longer = lay_out(trace, 200.0, market(90.0), 5, 2)
    other = lay_out(trace, 200.0, market(60.0), 6, 2)
    assert (once.block_ts == again.block_ts).all()
    assert (once.block_at == longer.block_at[: once.block_at.size]).all()
    assert not np.array_equal(once.block_at[:9], other.block_at[:9])


def test_a_bucket_is_entered_at_its_border_and_left_well_below() -> None:
    buckets = Buckets((100, 1000))
    rate = np.array([90, 99, 100, 90, 80, 79, 1000, 900, 799, 5])
    assert buckets.along(rate).tolist() == [0, 0, 1, 1, 1, 0, 2, 2, 1, 0]
    assert BEYOND == 0.2


def test_a_bucket_follows_from_the_window_before() -> None:
    trace = two_speeds()
    counts = np.array([5] * 10 + [3000] * 10 + [5] * 10)
    layout = lay_out(trace, 200.0, market(3.0, counts), 5, 2, conditioned=True)
    assert trace.rate is not None
    mine = buckets_of(trace.rate).of(trace.rate)
    rises = START + 11 * RATE_WINDOW_NS  # window 10 is the first busy one, and decides for 11
    rows = played(trace, layout, np.array([rises - 1, rises]))
    assert mine[rows].tolist() == [0, 2]


def test_before_the_first_window_the_market_is_quiet() -> None:
    layout = lay_out(two_speeds(), 200.0, market(0.5, np.full(5, 3000)), 5, 2, conditioned=True)
    trace = two_speeds()
    assert trace.rate is not None
    mine = buckets_of(trace.rate).of(trace.rate)
    known = START + RATE_WINDOW_NS
    assert mine[played(trace, layout, np.array([START, known - 1, known]))].tolist() == [0, 0, 2]


def test_a_pause_of_a_year_is_quiet() -> None:
    trace, year = two_speeds(), 365 * 24 * 36_000
    first = START // RATE_WINDOW_NS
    windows = first + np.array([0, 1, year, year + 1])
    last = int(windows[-1] + 1) * RATE_WINDOW_NS
    run = MarketRate(windows, np.full(4, 3000), START, last)
    layout = lay_out(trace, 1e9, run, 5, 2, conditioned=True)
    assert trace.rate is not None
    mine = buckets_of(trace.rate).of(trace.rate)
    asked = np.array([1, 3, year, year + 1]) * RATE_WINDOW_NS + START
    assert mine[played(trace, layout, asked)].tolist() == [2, 0, 0, 2]


def test_buckets_are_octaves_about_the_median_with_200_rows_each() -> None:
    rates = np.concatenate([np.full(900, 100), np.full(300, 130), np.full(250, 400), [900] * 50])
    # 100 * sqrt(2) = 141.4; nothing lies between that and 283; the 50 rows beyond 566 are too few.
    assert buckets_of(rates).borders == (142,)
    assert buckets_of(rates).names == ["0-141", "142+"]
    assert buckets_of(np.full(1000, 7)).borders == ()
    assert buckets_of(np.zeros(1000, np.int64)).borders == ()


def test_the_rate_counts_packets_that_we_see() -> None:
    rows = np.zeros(5, EVENT)
    rows["ts_recv"] = START + np.array([1, 2, 3, RATE_WINDOW_NS + 1, 5 * RATE_WINDOW_NS])
    both = int(Flag.SEEN_BY_US | Flag.LAST)
    rows["flags"] = [both, int(Flag.SEEN_BY_US), int(Flag.LAST), both, both]
    rate = rate_of([iter([rows[:3]]), iter([rows[3:]])])
    assert rate is not None
    assert (rate.windows - START // RATE_WINDOW_NS).tolist() == [0, 1, 5]
    assert rate.counts.tolist() == [1, 1, 1]
    asked = START + np.array([0, RATE_WINDOW_NS, 2 * RATE_WINDOW_NS, 60 * RATE_WINDOW_NS])
    assert rate.before(asked).tolist() == [0, 1, 1, 0]
    assert rate_of([iter([rows[1:3]])]) is None


def test_block_length_is_near_theory_for_an_ar1() -> None:
    """(2 (a / (1 - a^2))^2)^(1/3) as Politis & White, for n = 20000 and a = 0.9: 121.5 rows."""
    n, a = 20_000, 0.9
    theory = (2 * a / ((1 - a) * (1 + a))) ** (2 / 3) * n ** (1 / 3)
    found = [block_length(np.rint(1e6 * ar1(shocks(n, s), a)).astype(np.int64)) for s in range(8)]
    assert round(theory, 1) == 121.5
    assert 0.8 * theory < np.mean(found) < 1.25 * theory


def test_block_length_of_noise_is_short() -> None:
    noise = np.rint(1e6 * shocks(20_000)).astype(np.int64)
    assert block_length(noise) < 15
    assert block_length(np.full(5000, 3)) == 1.0


def test_short_traces_are_refused_with_both_numbers() -> None:
    trace = ar_trace(999)
    with pytest.raises(ConfigError, match=r"too short to resample honestly: it has 999 rows.*1000"):
        trace.require_long()
    with pytest.raises(
        ConfigError, match=r"has 5000 rows.*block of 600.*tenth.*latency.model = .recor"
    ):
        mean_block(ar_trace(5000), 600 * STEP)
    with pytest.raises(ConfigError, match="all its 1000 rows at 0"):
        Trace("still", np.arange(1000), {"entry": np.ones(1000, np.int64)}).require_long()
    assert mean_block(ar_trace(5000), 400 * STEP) == pytest.approx(400)


def test_a_drift_is_refused() -> None:
    slow = Trace("slow", np.arange(1000) * STEP, {"entry": np.arange(1000)})
    with pytest.raises(ConfigError, match=r"has 1000 rows, and entry that is still correlated by"):
        mean_block(slow)


def test_blocks_are_at_least_200_rows_and_at_most_a_tenth() -> None:
    noise = {"entry": np.rint(1e6 + 1e3 * shocks(20_000)).astype(np.int64)}
    assert mean_block(Trace("noise", np.arange(20_000) * STEP, noise)) == 200
    short = {"entry": noise["entry"][:1500]}
    assert mean_block(Trace("noise", np.arange(1500) * STEP, short)) == 150


def test_lognormal_has_the_law_it_was_fitted_to() -> None:
    n = 60_000
    z = ar1(shocks(n), 0.9)
    ns = np.rint(20_000 + np.exp(10 + 0.7 * z)).astype(np.int64)
    model, _ = fit_lognormal(ns)
    assert model.floor_ns == pytest.approx(20_000, rel=0.1)
    assert model.s == pytest.approx(0.7, rel=0.1)
    assert model.phi == pytest.approx(0.9, abs=0.02)
    drawn = lognormal_series({"entry": ns}, 1, 2)["entry"]
    assert drawn.mean() == pytest.approx(20_000 + np.exp(10 + 0.7**2 / 2), rel=0.05)
    cov = autocovariance(np.log(np.maximum(drawn - model.floor_ns, 1)), 10)
    assert cov[5] / cov[0] == pytest.approx(model.phi**5, abs=0.03)
    assert stats.ks_2samp(drawn[::100], ns[::50]).pvalue > 1e-3


def test_lognormal_legs_move_together_as_they_were_seen_to() -> None:
    n = 40_000
    shared, own = shocks(n), shocks(n, 2)
    legs = {
        "entry": np.rint(np.exp(10 + 0.5 * ar1(shared, 0.8))).astype(np.int64),
        "response": np.rint(np.exp(9 + 0.5 * ar1(0.6 * shared + 0.8 * own, 0.8))).astype(np.int64),
    }
    drawn = lognormal_series(legs, 3, 2)
    was = np.corrcoef(np.log(legs["entry"]), np.log(legs["response"]))[0, 1]
    now = np.corrcoef(np.log(drawn["entry"]), np.log(drawn["response"]))[0, 1]
    assert now == pytest.approx(was, abs=0.05)

"""Queues against closed forms, batches against their rules, fitted lines against the true ones."""

from __future__ import annotations

import time
import tomllib
from collections import defaultdict
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hft.errors import ConfigError
from hft.inference.bench.batching import Batcher, recipe_of, run, simulate
from hft.inference.bench.company import arrivals, compare
from hft.inference.bench.curve import Curve, fit_curve, measure_curve
from hft.inference.bench.rate import open_loop, poisson, queued, recorded, waits
from hft.recipe_checks import to_recipe


def line(alpha: float, beta: float) -> Curve:
    return Curve(
        alpha, beta, (alpha, alpha), (beta, beta), (1, 2), (alpha + beta, alpha + 2 * beta)
    )


# ---- arrivals and queues


def test_poisson_arrivals_have_their_rate_and_no_memory() -> None:
    ts = poisson(50_000.0, 200_000)
    gaps = np.diff(ts)
    assert ts[-1] / 1e9 == pytest.approx(4.0, rel=0.01)
    assert gaps.std() / gaps.mean() == pytest.approx(1.0, rel=0.02)
    assert abs(np.corrcoef(gaps[1:], gaps[:-1])[0, 1]) < 0.01
    assert np.array_equal(ts[:100], poisson(50_000.0, 100))


@pytest.mark.parametrize("load", [0.3, 0.7, 0.9])
def test_waits_are_those_of_m_d_1(load: float) -> None:
    service = 10_000
    ts = poisson(load / service * 1e9, 1_000_000)
    served = queued(ts, np.full(ts.size, service, np.int64))
    assert served.wait_ns.mean() == pytest.approx(load * service / (2 * (1 - load)), rel=0.04)
    assert (served.wait_ns == 0).mean() == pytest.approx(1 - load, abs=0.005)
    assert served.load == pytest.approx(load, rel=0.01)


def test_waits_by_the_formula_are_those_of_a_server_run_step_by_step() -> None:
    rng = np.random.default_rng(3)
    ts = np.cumsum(rng.integers(0, 100, 500))
    service = rng.integers(1, 120, 500)
    free, expected = 0, []
    for arrived, took in zip(ts.tolist(), service.tolist(), strict=True):
        start = max(arrived, free)
        expected.append(start - arrived)
        free = start + took
    assert waits(ts, service).tolist() == expected


def test_a_feed_keeps_its_gaps_and_closes_its_nights() -> None:
    ts = np.array([5, 5, 8, 8 + 3_600_000_000_000], np.int64)
    assert recorded(ts).tolist() == [0, 0, 3, 1_000_000_003]
    with pytest.raises(ConfigError, match="go back in row 2"):
        recorded(np.array([5, 6, 4]))
    with pytest.raises(ConfigError, match="two or more"):
        recorded(np.array([5]))


def test_an_open_loop_calls_in_order_and_says_when() -> None:
    ts = np.arange(40, dtype=np.int64) * 200_000
    called: list[int] = []
    served = open_loop(called.append, ts, seconds=1.0)
    assert called == list(range(40))
    assert served.arrival_ns.tolist() == ts.tolist()
    assert (served.wait_ns >= 0).all()
    assert (np.diff(ts + served.answer_ns) > 0).all()


def test_an_open_loop_ends_in_time_though_rows_still_wait() -> None:
    ts = np.zeros(1000, np.int64)
    served = open_loop(lambda i: time.sleep(0.005), ts, seconds=0.03)
    assert 1 <= served.wait_ns.size < 100
    assert (np.diff(served.wait_ns) > 0).all()


def test_rows_wait_for_other_work_and_it_is_no_service() -> None:
    ts = np.zeros(10, np.int64)
    served = open_loop(lambda i: None, ts, seconds=1.0, between=lambda: time.sleep(0.002))
    assert np.median(served.service_ns) < 1_000_000
    assert (np.diff(served.wait_ns) >= 2_000_000).all()


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan"), 1e9])
def test_a_rate_that_is_none_is_refused(rate: float) -> None:
    with pytest.raises(ConfigError, match="want more than 0"):
        poisson(rate, 10)


# ---- batches


@st.composite
def feeds(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, int, int, Curve]:
    streams = draw(st.integers(1, 6))
    row = st.tuples(st.integers(0, 300), st.integers(0, streams - 1))  # after the last; of which
    gaps, of = zip(*draw(st.lists(row, min_size=1, max_size=80)), strict=True)
    most, deadline = draw(st.integers(1, 8)), draw(st.integers(0, 500))
    curve = line(draw(st.integers(0, 200)), draw(st.integers(1, 50)))
    return np.cumsum(gaps), np.array(of), most, deadline, curve


@given(feeds())
def test_nothing_is_lost_and_streams_keep_their_order(feed) -> None:
    ts, of, most, deadline, curve = feed
    batches: list[list[tuple[int, int]]] = []

    class Watched(Batcher):
        def take(self):
            batch = super().take()
            batches.append([(item.stream, item.row) for item in batch])
            return batch

    served = simulate(ts, of, Watched(most, deadline), curve.service_ns)
    assert served.arrival_ns.tolist() == ts.tolist()
    rows = defaultdict(list)
    for batch in batches:
        assert 1 <= len(batch) <= most
        assert len({stream for stream, _ in batch}) == len(batch)
        for stream, row in batch:
            assert of[row] == stream
            rows[stream].append(row)
    for numbers in rows.values():
        assert numbers == sorted(numbers)
    assert sorted(row for numbers in rows.values() for row in numbers) == list(range(ts.size))


@given(feeds())
def test_services_do_not_overlap_and_take_what_the_line_says(feed) -> None:
    ts, of, most, deadline, curve = feed
    served = simulate(ts, of, Batcher(most, deadline), curve.service_ns)
    starts = served.arrival_ns + served.wait_ns
    spans = {(int(s), int(s + n)) for s, n in zip(starts, served.service_ns, strict=True)}
    ordered = sorted(spans)
    assert all(a[1] <= b[0] for a, b in pairwise(ordered))
    for service, k in zip(served.service_ns, served.batch, strict=True):
        assert service == curve.service_ns(int(k))


@given(feeds())
def test_no_row_waits_beyond_deadline_and_one_service(feed) -> None:
    """Where every stream has at most one row under way and a batch has room for all of them."""
    ts, _, _, deadline, curve = feed
    streams = ts.size
    served = simulate(ts, np.arange(streams), Batcher(streams, deadline), curve.service_ns)
    longest = int(served.service_ns.max())
    assert int(served.wait_ns.max()) <= deadline + longest


def test_a_full_batch_does_not_wait_for_the_deadline() -> None:
    ts = np.array([0, 10, 20, 30])
    served = simulate(ts, np.array([0, 1, 2, 3]), Batcher(4, 1_000_000), lambda k: 5)
    assert served.wait_ns.tolist() == [30, 20, 10, 0]
    assert served.batch.tolist() == [4] * 4


def test_deadline_0_takes_what_is_there_when_it_is_free() -> None:
    ts = np.array([0, 10, 20, 500])
    served = simulate(ts, np.array([0, 1, 2, 3]), Batcher(4, 0), lambda k: 100)
    assert served.wait_ns.tolist() == [0, 90, 80, 0]
    assert served.batch.tolist() == [1, 2, 2, 1]


def test_two_rows_of_a_stream_go_one_after_the_other() -> None:
    ts = np.array([0, 0, 0])
    served = simulate(ts, np.array([7, 7, 8]), Batcher(4, 50), lambda k: 100)
    assert served.wait_ns.tolist() == [50, 150, 50]


def test_a_real_batcher_answers_every_row() -> None:
    ts = np.arange(60, dtype=np.int64) * 50_000
    of = np.arange(60) % 5
    answered: list[int] = []
    served = run(ts, of, Batcher(5, 200_000), lambda s, rows: answered.extend(rows), seconds=2.0)
    assert sorted(answered) == list(range(60))
    assert served.batch.max() > 1
    assert (served.wait_ns >= 0).all()


@pytest.mark.parametrize(
    ("most", "deadline", "words"), [(0, 5, "max_batch is 0"), (1, -1, "-1 ns")]
)
def test_a_batcher_that_could_not_work_is_refused(most: int, deadline: int, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        Batcher(most, deadline)


def test_batches_win_where_a_call_is_dear_and_lose_where_it_is_not() -> None:
    dear, cheap = line(100_000.0, 1_000.0), line(10.0, 600.0)
    cells = {
        (c.rows_a_second, c.streams): c
        for c in compare(
            dear, deadline_ns=50_000, max_batch=64, together=False, rates=(10.0, 1_000.0), n=2000
        )
    }
    assert cells[1_000.0, 64].load > 1
    assert cells[1_000.0, 64].best != "one by one"
    assert cells[10.0, 1].best == "one by one"
    for c in compare(cheap, deadline_ns=50_000, max_batch=64, together=False, n=1000):
        assert c.best == "one by one"


def test_waiting_for_company_wins_where_streams_move_together() -> None:
    dear = line(100_000.0, 1_000.0)
    (cell,) = compare(
        dear, deadline_ns=25_000, max_batch=16, together=True, rates=(100.0,), streams=(16,), n=2000
    )
    assert cell.best == "deadline"


def test_streams_that_move_together_have_a_row_each() -> None:
    ts, of = arrivals(100.0, 8, together=True, n=800)
    assert (np.diff(ts) >= 0).all()
    assert np.bincount(of).tolist() == [100] * 8


def test_a_recipe_charges_what_the_line_says() -> None:
    recipe = to_recipe(tomllib.loads("\n".join(recipe_of(line(80_000.4, 1_500.2), 16, 5_000))))
    assert recipe.latency.inference == "81500ns"
    assert recipe.latency.server.max_batch == 16
    assert recipe.latency.server.hold == "5us"
    assert recipe.latency.server.per_item == recipe.latency.server.per_row == "1500ns"


# ---- the line


@pytest.mark.parametrize(("alpha", "beta"), [(5_000.0, 700.0), (200.0, 600.0), (1e6, 30.0)])
def test_a_line_is_found_within_its_interval(alpha: float, beta: float) -> None:
    inside = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        sizes = np.tile([1, 2, 4, 8, 16, 32, 64], 12)
        ns = (alpha + beta * sizes) * (1 + 0.05 * rng.standard_normal(sizes.size))
        found = fit_curve(sizes, ns)
        low, high = found.alpha_interval
        inside += low <= alpha <= high
        low, high = found.beta_interval
        inside += low <= beta <= high
        assert found.alpha_ns + found.beta_ns == pytest.approx(alpha + beta, rel=0.1)
    assert inside >= 0.87 * 80  # 95 % of intervals, less five standard errors


def test_a_call_costs_nothing_below_zero() -> None:
    sizes = np.tile([1, 2, 4, 8], 10)
    rng = np.random.default_rng(1)
    found = fit_curve(sizes, 100.0 * sizes**1.1 * (1 + 0.01 * rng.standard_normal(40)))
    assert found.alpha_ns == 0.0
    assert found.beta_ns > 0


def test_a_bend_is_told() -> None:
    sizes = np.repeat([1, 8, 64], 5)
    assert fit_curve(sizes, 100.0 + 10.0 * sizes).worst_misfit < 1e-9
    assert fit_curve(sizes, 10.0 * sizes**1.5).worst_misfit > 0.3


def test_one_size_makes_no_line() -> None:
    with pytest.raises(ConfigError, match="two or more sizes"):
        fit_curve(np.array([4, 4, 4]), np.array([1.0, 2.0, 3.0]))


def test_a_curve_is_measured() -> None:
    def busy(k: int) -> None:
        sum(range(2000 * k))

    found = measure_curve(busy, seconds=0.05, sizes=(1, 4, 16))
    assert found.beta_ns > 0
    assert found.sizes == (1, 4, 16)

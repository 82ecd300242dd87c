"""The queue model's n: recovered where it is known, refused where it cannot be seen."""

from __future__ import annotations

from pathlib import Path

import made_up_tapes as made
import numpy as np
import pytest

from hft.errors import DataError
from hft.fitting.queue import exponent, fit_queue, share_ahead
from hft.fitting.tape import read_cancels
from hft.types import BUY, SELL, Kind


@pytest.mark.parametrize("n", [1.0, 2.0, 4.0])
def test_n_of_a_feed_of_orders_lies_in_its_interval(n: float, tmp_path: Path) -> None:
    source = made.source_of(made.orders_with_cancels(n, 3_000, seed=round(10 * n)), tmp_path)
    fit = fit_queue(source)
    assert fit.cancels == 3_000
    assert fit.n.holds(n)
    assert fit.n.value == pytest.approx(n, rel=0.1)
    assert fit.se == pytest.approx(n / np.sqrt(3_000), rel=0.2)
    # What was drawn is Beta(n, 1), and its cumulative law shows it.
    assert fit.largest_gap < 0.04
    assert fit.curve[0] == 0
    assert fit.curve[-1] == pytest.approx(1)


def test_the_right_model_loses_least_and_finds_n_by_its_answers_too(tmp_path: Path) -> None:
    fit = fit_queue(made.source_of(made.orders_with_cancels(3.0, 4_000, seed=5), tmp_path))
    models = {each.model: each for each in fit.models}
    assert set(models) == {"power1", "power2", "power3", "log1", "log2", "uniform"}
    assert min(fit.models, key=lambda each: each.loss).model == "power3"
    assert models["power3"].n.value == pytest.approx(3.0, rel=0.15)
    assert models["power3"].loss < models["uniform"].loss < 1.0


def test_midpoints_of_few_orders_are_off_and_intervals_are_not() -> None:
    cancels = made.cancel_places(4.0, 4_000, seed=3, orders=4)
    n, _ = exponent(cancels)
    middle = (cancels["ahead"] + cancels["gone"] / 2) / cancels["level"]
    assert n.holds(4.0)
    assert abs(-len(cancels) / np.log(middle).sum() - 4.0) > 4 * abs(n.value - 4.0)


def test_the_interval_covers_the_truth_in_four_of_five_runs_at_least() -> None:
    truths = [1.0, 2.0, 4.0] * 14
    covered = [
        exponent(made.cancel_places(n, 400, seed=seed))[0].holds(n) for seed, n in enumerate(truths)
    ]
    assert np.mean(covered) >= 0.8


def test_places_of_cancels_can_be_checked_by_hand(tmp_path: Path) -> None:
    ts = made.START
    source = made.source_of(
        made.rows(
            [
                (ts, Kind.ADD, BUY, 100, 10, 1),
                (ts, Kind.ADD, BUY, 100, 20, 2),
                (ts, Kind.ADD, BUY, 100, 30, 3),
                (ts, Kind.ADD, SELL, 103, 5, 4),
                (ts, Kind.ADD, BUY, 90, 5, 5),
                (ts + 1, Kind.CANCEL, BUY, 100, 5, 2),  # in part: its last lots
                (ts + 2, Kind.MODIFY, BUY, 100, 40, 3),  # to the back: stays in the level
                (ts + 3, Kind.EXECUTE, BUY, 100, 4, 1),  # a trade
                (ts + 4, Kind.CANCEL, BUY, 90, 0, 5),  # too far away
                (ts + 5, Kind.MODIFY, BUY, 99, 15, 2),  # to another price: left the level
                (ts + 6, Kind.CANCEL, BUY, 100, 0, 3),
            ]
        ),
        tmp_path,
    )
    cancels = read_cancels(source, near_ticks=4)
    told = [
        tuple(int(row[name]) for name in ("level", "ahead", "gone", "distance", "spread", "orders"))
        for row in cancels
    ]
    assert told == [(60, 25, 5, 0, 3, 3), (61, 6, 15, 0, 3, 3), (46, 6, 40, 0, 3, 2)]
    # The last had one order before it: that one is the reference, and the cancel was behind it.
    assert [int(cancels[-1][name]) for name in ("ref_front", "ref_back", "ref_ahead")] == [0, 40, 0]


def test_levels_are_refused_with_what_could_tell(tmp_path: Path) -> None:
    source = made.source_of(made.levels_with_refill(1.0, seed=1, duration_s=20), tmp_path)
    with pytest.raises(DataError, match=r"cannot tell the queue model's n\. Data of orders"):
        fit_queue(source)


def test_too_few_cancels_are_counted_in_the_refusal(tmp_path: Path) -> None:
    source = made.source_of(made.orders_with_cancels(2.0, 30, seed=1), tmp_path)
    with pytest.raises(DataError, match="30 cancels within 4 ticks"):
        fit_queue(source)


def test_shares_ahead_are_those_of_the_engine() -> None:
    front, back = np.array([30.0]), np.array([70.0])
    expected = {"power1": 9 / 58, "power2": 0.51, "power3": 0.09, "uniform": 0.3}
    for model, share in expected.items():
        assert share_ahead(model, 2.0, front, back)[0] == pytest.approx(share)

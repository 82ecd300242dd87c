"""Half-life and share of what comes back: recovered where known, doubted where they should be."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import made_up_tapes as made
import numpy as np
import pytest

from hft.errors import DataError
from hft.fitting.refill import fit_depth, fit_refill
from hft.fitting.tape import Source, read_tape
from hft.types import BUY, SELL, Kind

NOWHERE = Source(None, "MADE.UP", "made")  # type: ignore[arg-type]


@pytest.mark.parametrize("half_life_s", [0.5, 2.0, 5.0])
def test_half_life_of_a_feed_of_levels_lies_in_its_interval(
    half_life_s: float, tmp_path: Path
) -> None:
    rows = made.levels_with_refill(half_life_s, seed=101)
    fit = fit_refill(made.source_of(rows, tmp_path))
    assert fit.untold == ()
    assert fit.half_life_s.holds(half_life_s)
    assert fit.half_life_s.value == pytest.approx(half_life_s, rel=0.25)
    assert fit.b.value == pytest.approx(1.0, abs=0.1)


def test_the_interval_covers_the_truth_in_four_of_five_runs_at_least() -> None:
    fits = [
        fit_depth(made.depth_tape(2.0, seed=seed, duration_s=300, step_s=0.2), NOWHERE)
        for seed in range(30)
    ]
    assert np.mean([fit.half_life_s.holds(2.0) for fit in fits]) >= 0.8
    assert np.mean([fit.b.holds(1.0) for fit in fits]) >= 0.8
    assert not any(fit.untold for fit in fits)


def test_a_share_of_trades_that_refill_is_told_from_all_of_them() -> None:
    facts = {"duration_s": 3000.0, "step_s": 0.2, "size": 20.0, "rate": 0.5}
    always = fit_depth(made.depth_tape(1.0, seed=1, **facts), NOWHERE).share
    some = fit_depth(made.depth_tape(1.0, seed=1, refills=0.4, **facts), NOWHERE).share
    assert always is not None
    assert always.probability.value > 0.9
    assert some is not None
    assert some.probability.value == pytest.approx(0.4, abs=0.2)
    assert some.probability.high < always.probability.low


def test_a_last_point_that_stands_alone_does_not_matter() -> None:
    tape = made.depth_tape(2.0, seed=3)
    alone = tape.grid[-1:].copy()
    alone["ts"] += 60_000_000_000  # a session that opens once more for an instant
    fit = fit_depth(dataclasses.replace(tape, grid=np.concatenate([tape.grid, alone])), NOWHERE)
    assert fit.half_life_s.value == pytest.approx(fit_depth(tape, NOWHERE).half_life_s.value, 0.1)


def test_depth_that_no_trade_takes_is_said_not_to_tell() -> None:
    fit = fit_depth(made.depth_tape(2.0, seed=3, b=0.0), NOWHERE)
    assert any("may be nothing" in why for why in fit.untold)
    assert fit.share is None


def test_depth_that_stays_away_is_said_not_to_tell() -> None:
    fit = fit_depth(made.depth_tape(2.0, seed=4, refills=0.0, forget_s=1e6), NOWHERE)
    assert fit.untold


def test_short_data_are_refused_with_what_could_be_told() -> None:
    with pytest.raises(DataError, match="want more data or a smaller --step"):
        fit_depth(made.depth_tape(2.0, seed=5, duration_s=40, step_s=1.0, rate=2.0), NOWHERE)
    with pytest.raises(DataError, match="want at least 30"):
        fit_depth(made.depth_tape(2.0, seed=5, rate=0.01), NOWHERE)


def test_grid_and_sweeps_can_be_checked_by_hand(tmp_path: Path) -> None:
    ts, ms = made.START, 1_000_000
    events = [
        (ts, Kind.LEVEL, BUY, 100, 10, 0),
        (ts, Kind.LEVEL, BUY, 98, 20, 0),
        (ts, Kind.LEVEL, BUY, 97, 40, 0),
        (ts, Kind.LEVEL, SELL, 101, 7, 0),
        (ts + 150 * ms, Kind.TRADE, SELL, 100, 10, 0),
        (ts + 150 * ms, Kind.TRADE, SELL, 98, 5, 0),
        (ts + 160 * ms, Kind.TRADE, SELL, 98, 15, 0),  # before the book shows the first two
        (ts + 170 * ms, Kind.LEVEL, BUY, 100, 0, 0),
        (ts + 170 * ms, Kind.LEVEL, BUY, 98, 0, 0),
        (ts + 180 * ms, Kind.TRADE, 0, 97, 1, 0),  # nobody knows who took
        (ts + 390 * ms, Kind.LEVEL, SELL, 101, 9, 0),
    ]
    tape = read_tape(made.source_of(made.rows(events), tmp_path), step_ns=100 * ms, levels=2)
    assert (tape.grid["ts"] - ts).tolist() == [0, 100 * ms, 200 * ms, 300 * ms]
    assert tape.grid["bid_depth"].tolist() == [30, 30, 40, 40]
    assert tape.grid["mid2"].tolist() == [201, 201, 198, 198]
    sweeps = [tuple(int(x) for x in row) for row in tape.sweeps]
    assert sweeps == [
        (ts + 150 * ms, -1, 15, 201, 2, 10),
        (ts + 160 * ms, -1, 15, 201, 1, 10),
    ]
    assert tape.unsided == 1
    assert [tuple(map(int, row)) for row in tape.mids] == [
        (ts, 201),
        (ts + 170 * ms, 199),
        (ts + 170 * ms, 198),
    ]

"""A run folder gives back what was put in, and its report says the same."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from made_up_runs import RunMaker

from hft.analysis import run_data
from hft.analysis.records import NO_PRICE
from hft.analysis.report import Report
from hft.analysis.run_data import RunData
from hft.errors import ConfigError, DataError


def assert_same(a: RunData, b: RunData) -> None:
    rows = ("orders", "fills", "samples")
    for name in rows:
        for column in getattr(a, name).dtype.names:
            if column != "pad":
                np.testing.assert_array_equal(getattr(a, name)[column], getattr(b, name)[column])
    arrays = ("feed_latency_ns", "model_wait_ns", "model_service_ns", "reuse")
    for name in arrays:
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    assert (a.mids is None) == (b.mids is None)
    if a.mids is not None and b.mids is not None:
        np.testing.assert_array_equal(a.mids.orders, b.mids.orders)
        np.testing.assert_array_equal(a.mids.touch, b.mids.touch)
    for name in {*RunData.__dataclass_fields__} - {*rows, *arrays, "mids", "bracket", "variants"}:
        assert getattr(a, name) == getattr(b, name), name
    assert (a.bracket is None) == (b.bracket is None)
    if a.bracket is not None and b.bracket is not None:
        assert_same(a.bracket, b.bracket)
    assert [name for name, _ in a.variants] == [name for name, _ in b.variants]
    for (_, x), (_, y) in zip(a.variants, b.variants, strict=True):
        assert_same(x, y)


def test_everything_comes_back(rich_run: RunData, tmp_path: Path) -> None:
    rich_run.status, rich_run.error = "interrupted", "Ctrl-C"
    run_data.save(rich_run, tmp_path)
    loaded = run_data.load(tmp_path)
    assert_same(rich_run, loaded)
    assert Report(loaded).figures == Report(rich_run).figures


def test_holes_come_back(three_fills: RunData, tmp_path: Path) -> None:
    three_fills.samples["bid"][0] = NO_PRICE
    three_fills.fills["mid2"][0] = NO_PRICE
    run_data.save(three_fills, tmp_path)
    assert_same(three_fills, run_data.load(tmp_path))


def test_an_empty_run_comes_back(empty_run: RunData, tmp_path: Path) -> None:
    run_data.save(empty_run, tmp_path)
    assert_same(empty_run, run_data.load(tmp_path))


def test_parquet_is_for_people(three_fills: RunData, tmp_path: Path) -> None:
    run_data.save(three_fills, tmp_path)
    orders = pl.read_parquet(tmp_path / "orders.parquet")
    first = orders.row(0, named=True)
    assert (first["instrument"], first["side"], first["tif"]) == ("BTCUSDT.SIM", "buy", "GTC")
    assert (first["state"], first["price"], first["avg_price"]) == ("FILLED", 100.0, 100.0)
    market = orders.row(2, named=True)
    assert (market["price"], market["price_ticks"], market["ts_cause_event"]) == (None, None, None)
    fill = pl.read_parquet(tmp_path / "fills.parquet").row(1, named=True)
    assert (fill["reason"], fill["maker"], fill["mid"]) == ("THROUGH", True, 100.35)
    assert (fill["mid2_after_10ms"], fill["mid2_after_1min"]) == (2009, None)


def test_report_json_holds_no_surprises(rich_run: RunData, tmp_path: Path) -> None:
    run_data.save(rich_run, tmp_path)
    figures = json.loads((tmp_path / "report.json").read_text())
    assert list(figures) == [
        "version", "run", "notes", "headline", "accounts", "instruments", "orders", "shortfall",
        "latency", "model_server", "reuse", "footprint", "venue_limits", "cost_checks", "stages_s",
        "counters", "environment", "recipe", "bracket", "variants",
    ]  # fmt: skip
    assert figures["headline"]["identity_holds"]
    assert [variant["name"] for variant in figures["variants"]][:2] == ["placebo", "latency x0"]


def test_a_folder_without_a_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"not a run folder: it has no run\.json"):
        run_data.load(tmp_path)
    (tmp_path / "environment.json").write_text("{}")  # written before a live session starts
    with pytest.raises(DataError, match="died before the report was written"):
        run_data.load(tmp_path)


def test_damage_is_named(three_fills: RunData, tmp_path: Path) -> None:
    run_data.save(three_fills, tmp_path)
    (tmp_path / "fills.parquet").write_text("garbage")
    with pytest.raises(DataError, match=r"fills\.parquet is damaged"):
        run_data.load(tmp_path)
    (tmp_path / "fills.parquet").unlink()
    with pytest.raises(DataError, match=r"fills\.parquet is missing"):
        run_data.load(tmp_path)
    (tmp_path / "run.json").write_text('{"format": 1')
    with pytest.raises(DataError, match="damaged"):
        run_data.load(tmp_path)


def test_rows_of_an_unlisted_instrument_are_refused(three_fills: RunData) -> None:
    with pytest.raises(DataError, match="name instrument 0, but the run lists 0"):
        RunData(
            kind="backtest", name="x", strategy="x.py", instruments=[], orders=three_fills.orders
        )


def test_report_gives_frames_and_a_short_line(random_run: RunMaker) -> None:
    report = Report(random_run(1))
    assert report.orders.height == 200
    assert report.equity["net"][-1] == pytest.approx(report.figures["headline"]["net"])
    assert report.to_pandas("fills")["lots"].sum() == report.fills["lots"].sum()
    assert str(report).startswith("backtest random-1, complete: net result ")
    assert len(str(report)) < 160
    assert 'class="hft-report"' in report._repr_html_()
    with pytest.raises(ConfigError, match="orders, fills, samples, equity"):
        report.to_pandas("trades")  # type: ignore[arg-type]


def test_a_run_that_failed_before_it_knew_its_instruments_is_kept(tmp_path: Path) -> None:
    run = RunData(
        kind="live",
        name="x",
        strategy="x.py",
        instruments=[],
        status="failed",
        error="DataError: no",
    )
    run_data.save(run, tmp_path)
    assert_same(run, run_data.load(tmp_path))
    assert "DataError: no" in (tmp_path / "report.html").read_text()
    assert str(Report(run)).startswith("live x, failed")

"""The model server, our footprint, and what must be said about both."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hft.analysis import execution_tables
from hft.analysis.execution import model_server
from hft.analysis.figures import figures_of
from hft.analysis.footprint import footprint
from hft.analysis.html import page
from hft.analysis.run_data import RunData, load, save

MS = 1_000_000
SERVED = {
    "signals": 30,
    "services": 20,
    "signals_conflated": 7,
    "signals_skipped": 0,
    "signals_expired": 2,
    "signals_overflowed": 1,
}


@pytest.fixture
def served(three_fills: RunData) -> RunData:
    wait = np.arange(100) * MS
    return replace(
        three_fills,
        counters=dict(SERVED),
        model_wait_ns=wait,
        model_service_ns=np.full(20, 3 * MS),
    )


def test_the_model_server_by_hand(served: RunData) -> None:
    server = model_server(served)
    assert server is not None
    assert (server["wait"]["n"], server["wait"]["p50"], server["wait"]["max"]) == (
        100, 49 * MS, 99 * MS,
    )  # fmt: skip
    assert server["service"]["p99"] == 3 * MS
    assert server["signals_a_service"] == 1.5
    table = execution_tables.model_server(figures_of(served))
    assert [row[0] for row in table.rows] == ["wait", "service", "signal age at venue"]
    assert table.note == (
        "30 signals, 1.50 a service; rows never answered: 7 conflated, 0 skipped, 2 expired, "
        "1 overflowed."
    )


def test_rows_that_warm_a_live_model_up_are_served_too(served: RunData) -> None:
    server = model_server(replace(served, kind="live", counters=SERVED | {"inferences": 50}))
    assert server is not None
    assert server["signals_a_service"] == 2.5


def test_an_answer_given_again_is_no_service(served: RunData) -> None:
    again = np.zeros(2, served.reuse.dtype)
    again["reused"] = (4, 6)
    server = model_server(replace(served, reuse=again))
    assert server is not None
    assert server["signals_a_service"] == 1.0


def test_without_a_model_there_is_no_server(three_fills: RunData) -> None:
    assert model_server(three_fills) is None
    assert execution_tables.model_server(figures_of(three_fills)).rows == []


def test_footprint_by_hand(three_fills: RunData) -> None:
    three_fills.traded_lots, three_fills.overlay_ticks = [80], [1.5]
    three_fills.fills["impact"][2], three_fills.fills["extrapolated"][1:] = 50_000, 1
    three_fills.samples["position"][-1] = -2  # a short that was pushed up is worth less
    (each,) = footprint(three_fills)
    assert each["impact"] == pytest.approx(5e-5)
    assert (each["taker_lots"], each["volume_share"]) == (1, 4 / 80)
    assert (each["extrapolated_fills"], each["extrapolated_share"]) == (2, 0.5)
    assert each["overlay_worth"] == pytest.approx(-2 * 1.5 * 1e-4)


def test_what_is_extrapolated_is_said_plainly(three_fills: RunData) -> None:
    three_fills.fills["extrapolated"][1:] = 1
    notes = figures_of(three_fills)["notes"]
    assert any(
        note.startswith("2 of 3 fills (50.0 % of the lots) are extrapolated") for note in notes
    )


def test_the_footprint_table_tells_net_with_and_without_the_overlay(three_fills: RunData) -> None:
    three_fills.overlay_ticks = [2.0]
    three_fills.samples["position"][-1] = 1
    three_fills.counters = {"taker_unfilled_lots": 12, "faded_lots": 5, "capped_lots": 3}
    figures = figures_of(three_fills)
    table = execution_tables.footprint(figures)
    row = dict(zip(table.head, table.rows[0], strict=True))
    assert (row["lots taken"], row["overlay left [ticks]"]) == ("1", "+2")
    assert float(row["net with overlay"]) - float(row["net"]) == pytest.approx(2e-4, abs=1e-9)
    assert "12 unfilled in all, 5 faded before they came, 3 beyond" in table.note


def test_a_maker_that_stirred_nothing_has_no_footprint(three_fills: RunData) -> None:
    three_fills.fills["maker"] = 1
    assert execution_tables.footprint(figures_of(three_fills)).rows == []


def test_everything_comes_back_from_a_folder(served: RunData, tmp_path: Path) -> None:
    served.traded_lots, served.overlay_ticks = [80], [0.1]
    save(served, tmp_path)
    back = load(tmp_path)
    np.testing.assert_array_equal(back.model_wait_ns, served.model_wait_ns)
    np.testing.assert_array_equal(back.model_service_ns, served.model_service_ns)
    assert (back.traded_lots, back.overlay_ticks) == ([80], [0.1])
    assert figures_of(back) == figures_of(served)


def test_the_page_shows_them_all(served: RunData) -> None:
    served.traded_lots = [400]
    text = page(served, figures_of(served))
    for title in (
        "Implementation shortfall [USDT]",
        "Implementation shortfall USDT",
        "Model server",
        "Footprint",
        "Costs beside laws",
    ):
        assert f"<h2>{title}</h2>" in text

"""The table of reused answers, by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hft.analysis import execution_tables
from hft.analysis.figures import figures_of
from hft.analysis.html import page
from hft.analysis.records import REUSE_SECOND
from hft.analysis.reuse import reuse
from hft.analysis.run_data import RunData, load, save


@pytest.fixture
def reused(three_fills: RunData) -> RunData:
    """Model 1 on two instruments: seconds of 10, 20 and 30 rows, then one of 70; and model 0."""
    rows = np.zeros(6, REUSE_SECOND)
    rows["second"] = [100, 101, 102, 102, 103, 100]
    rows["model"] = [1, 1, 1, 1, 1, 0]
    rows["instrument"] = [0, 0, 0, 1, 1, 0]
    rows["rows"] = [10, 20, 12, 18, 70, 5]
    rows["reused"] = [6, 10, 10, 8, 7, 0]
    rows["shadows"] = [1, 2, 0, 2, 1, 0]
    rows["compared"] = [1, 2, 0, 2, 0, 0]
    rows["disagreed"] = [0, 1, 0, 0, 0, 0]
    rows["trips"] = [0, 0, 0, 1, 0, 0]
    rows["far"] = [3, 8, 2, 8, 0, 0]
    rows["under_way"] = [0, 0, 0, 0, 62, 0]
    rows["no_answer"] = [0, 0, 0, 0, 0, 5]
    return replace(three_fills, reuse=rows, models=["light", "full"])


def test_by_hand(reused: RunData) -> None:
    light, full = reuse(reused)
    assert (light["name"], full["name"]) == ("light", "full")
    assert light["all"]["hit_rate"] == 0
    every, calm, storm = full["all"], full["calm"], full["storm"]
    assert (every["seconds"], calm["seconds"], storm["seconds"]) == (4, 3, 1)  # median 25
    assert (every["rows"], every["reused"], every["shadows"], every["misses"]) == (130, 41, 6, 83)
    assert every["hit_rate"] == pytest.approx(47 / 130)
    assert every["saved"] == pytest.approx(41 / 130)
    assert calm["to_compute_a_second"] == {"p50": 10, "p99": 12, "max": 12}
    assert storm["to_compute_a_second"] == {"p50": 63, "p99": 63, "max": 63}
    assert (every["compared"], every["disagreed"], every["trips"]) == (5, 1, 1)
    assert every["disagreement"] == pytest.approx(0.2)
    reasons = full["reasons"]
    assert (reasons["far"], reasons["under_way"], reasons["unsure"]) == (21, 62, 0)


def test_the_table(reused: RunData) -> None:
    table = execution_tables.reuse(figures_of(reused))
    assert [row[0] for row in table.rows] == [
        "light, all", "light, calm", "full, all", "full, calm", "full, storm",
    ]  # fmt: skip
    row = dict(zip(table.head, table.rows[-1], strict=True))
    assert (row["rows"], row["hit rate"], row["shadows disagreed"]) == ("70", "11.4 %", "0 of 0")
    assert "full missed: 62 an answer was under way, 21 inputs too far." in table.note
    assert "<h2>Reuse of answers</h2>" in page(reused, figures_of(reused))


def test_it_comes_back_from_a_folder(reused: RunData, tmp_path: Path) -> None:
    save(reused, tmp_path)
    back = load(tmp_path)
    np.testing.assert_array_equal(back.reuse, reused.reuse)
    assert figures_of(back) == figures_of(reused)


def test_without_reuse_there_is_no_table(three_fills: RunData) -> None:
    assert reuse(three_fills) == []
    assert "Reuse of answers" not in page(three_fills, figures_of(three_fills))

"""The page stands alone, says when it must not be trusted, and draws what happened."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from made_up_runs import RunMaker

from hft.analysis import pictures, svg
from hft.analysis.figures import figures_of
from hft.analysis.html import page
from hft.analysis.run_data import RunData


def html_of(run: RunData) -> str:
    return page(run, figures_of(run))


@pytest.mark.parametrize("which", ["rich_run", "empty_run", "three_fills"])
def test_page_asks_for_nothing_and_is_well_formed(
    which: str, request: pytest.FixtureRequest
) -> None:
    text = html_of(request.getfixturevalue(which))
    assert not re.search(r"https?://|<script|<link|@import|url\(|\bsrc=", text)
    body = text[text.index("<div class") : text.index("</body>")]
    root = ET.fromstring(body)  # every element closed, every text escaped
    charts = root.findall(".//figure/svg")
    assert len(charts) == {"rich_run": 10, "empty_run": 0, "three_fills": 6}[which]
    assert "nan" not in text.lower().replace("finance", "")


def test_a_whole_sound_run_has_no_banner(random_run: RunMaker) -> None:
    assert 'class="banner"' not in html_of(random_run(1))


def test_an_interrupted_run_is_marked(random_run: RunMaker) -> None:
    run = random_run(1)
    run.status = "interrupted"
    assert "Partial report: the run was interrupted." in html_of(run)


def test_a_failed_run_tells_why_without_running_it(empty_run: RunData) -> None:
    empty_run.status, empty_run.error = "failed", "StrategyError: <script>alert(1)</script>"
    text = html_of(empty_run)
    assert "Partial report: the run failed. StrategyError: &lt;script&gt;" in text


def test_a_broken_identity_is_marked(random_run: RunMaker) -> None:
    run = random_run(1)
    run.samples["equity"][-1] += 1_000_000_000
    text = html_of(run)
    assert "Identity broken" in text
    assert "BROKEN: 1.00" in text


def test_latency_ladder_reads_names_and_adds_the_run_itself(rich_run: RunData) -> None:
    ladder = pictures.latency_ladder(figures_of(rich_run))
    assert [times for times, _ in ladder] == [0.0, 0.5, 1.0, 2.0, 4.0]
    assert ladder[2][1] == figures_of(rich_run)["headline"]["net"]


def test_thinning_keeps_extremes_and_holes() -> None:
    y = np.random.default_rng(1).normal(size=100_003)
    y[50_000], y[777], y[60_000] = 99.0, -99.0, np.nan
    keep = svg.thin(np.arange(y.size), y)
    assert keep.size <= svg.MAX_POINTS
    assert {0, 777, 50_000, 60_000, y.size - 1} <= set(keep.tolist())
    assert (np.diff(keep) > 0).all()


def test_a_hole_breaks_the_line() -> None:
    y = np.array([1.0, 2.0, np.nan, 2.0, 1.0])
    text = svg.draw(svg.Axes("y"), [svg.Line("l", np.arange(5.0), y, "net")], "t")
    path = re.search(r'class="line net" d="([^"]+)"', text)
    assert path is not None
    assert path[1].count("M") == 2


def test_bars_stand_between_their_ends_and_an_empty_one_is_seen() -> None:
    x, low, high = np.arange(2.0), np.array([-1.0, 2.0]), np.array([3.0, 2.0])
    bars = svg.Bars("b", x, low, high, "buy", texts=["first <1>", ""])
    text = svg.draw(svg.Axes("y", x="named", names=["a", "b"]), [bars], "t")
    boxes = re.findall(
        r'<rect class="bar buy" x="[\d.]+" y="([\d.]+)" width="[\d.]+" height="([\d.]+)">', text
    )
    (top, tall), (middle, flat) = [(float(y), float(h)) for y, h in boxes]
    assert flat == 1.0
    assert top < middle < top + tall
    assert "<title>first &lt;1&gt;</title>" in text
    assert text.count('class="bar buy"') == 3  # the legend's key too


def test_times_of_several_days_have_dates() -> None:
    day = 86_400 * 10**9
    first = int(np.datetime64("2024-03-04T21:00", "ns").astype(int))
    told = [text for _, text in svg.time_ticks(first, first + 6 * day // 10)]
    assert told == ["21:00", "03-05", "03:00", "06:00", "09:00"]
    told = [text for _, text in svg.time_ticks(first + day // 8, first + day // 2)]
    assert told == ["00:00", "02:00", "04:00", "06:00", "08:00"]


def test_ticks_are_round() -> None:
    assert svg.nice_ticks(0.0, 10.0) == ([0.0, 2.0, 4.0, 6.0, 8.0, 10.0], 2.0)
    values, _ = svg.nice_ticks(-0.31, 0.17)
    assert values == pytest.approx([-0.3, -0.2, -0.1, 0.0, 0.1])

"""The picture of a day shows what happened in it."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from hft.cli.main import cli
from hft.data import Store
from hft.data.books import NO_PRICE, BookStream
from hft.data.course import DEPTH_LEVELS, MOST_STEPS, SECOND_NS, Course, merged
from hft.data.info import describe, figures
from hft.data.picture import panels_of, span_name, sparklines, with_holes
from hft.data.synth import SynthConfig, synthesize
from hft.types import EVENT, SEEN_BY_BOTH, Flag, InstrumentSpec, Kind, Trading


@pytest.fixture(scope="module", params=[False, True], ids=["levels", "orders"])
def market(request: pytest.FixtureRequest):
    """Forty minutes of a market, and its facts."""
    config = SynthConfig(
        duration_s=2_400.0, messages_per_s=25, funding=False, order_by_order=request.param
    )
    rows, (spec,) = synthesize(config)
    return rows[spec.name], spec


def followed(rows, chunk: int = 1 << 20) -> Course:
    course = Course()
    for start in range(0, len(rows), chunk):
        course.feed(rows[start : start + chunk])
    return course


def test_steps_are_the_feed_in_numbers(market) -> None:
    rows, _ = market
    steps, width_s = followed(rows).steps()
    assert width_s == 60
    minute = rows["ts_recv"] // (60 * SECOND_NS)
    assert (steps["ts"] // (60 * SECOND_NS) == np.unique(minute)).all()
    assert steps["rows"].tolist() == np.unique(minute, return_counts=True)[1].tolist()
    is_print = np.isin(rows["kind"], (Kind.TRADE, Kind.EXECUTE))
    buyer = np.where(rows["kind"] == Kind.EXECUTE, -rows["side"], rows["side"])
    assert steps["bought"].sum() == rows["qty"][is_print & (buyer > 0)].sum()
    assert steps["sold"].sum() == rows["qty"][is_print & (buyer < 0)].sum()
    touch = BookStream().feed(rows)
    good = (touch["bid"] != NO_PRICE) & (touch["ask"] != NO_PRICE)
    mid = (touch["bid"] + touch["ask"])[good] / 2
    at = touch["ts_recv"][good] // (60 * SECOND_NS)
    for step in steps:
        mine = mid[at == step["ts"] // (60 * SECOND_NS)]
        assert (step["mid"], step["low"], step["high"]) == (mine[-1], mine.min(), mine.max())
    assert steps["spread"].sum() == (touch["ask"] - touch["bid"])[good].sum()
    assert steps["quotes"].sum() == good.sum()


def test_depth_is_that_of_the_book_at_the_end_of_a_step(market) -> None:
    rows, _ = market
    steps, width_s = followed(rows).steps()
    book = BookStream()
    book.feed(rows[rows["ts_recv"] < steps["ts"][20] + width_s * SECOND_NS])
    for side, name in ((1, "bid_depth"), (-1, "ask_depth")):
        assert steps[name][20] == book.levels(side, DEPTH_LEVELS)[:, 1].sum()


@pytest.mark.parametrize("chunk", [977, 50_000])
def test_chunks_do_not_show(market, chunk: int) -> None:
    rows, _ = market
    whole, cut = followed(rows), followed(rows, chunk)
    for a, b in zip(whole.steps()[0].tolist(), cut.steps()[0].tolist(), strict=True):
        assert a == pytest.approx(b, nan_ok=True)
    assert (whole.last_touch, whole.crossed) == (cut.last_touch, cut.crossed)


def quiet(ts_s: np.ndarray, *rows: tuple[int, int, int, int, int]) -> np.ndarray:
    out = np.zeros(len(ts_s), EVENT)
    out["ts_event"] = out["ts_recv"] = ts_s * SECOND_NS
    for name, values in zip(
        ("kind", "side", "price", "qty", "ref_id"), zip(*rows, strict=True), strict=True
    ):
        out[name] = np.resize(values, len(out))
    out["flags"] = SEEN_BY_BOTH | Flag.LAST
    return out


def test_steps_grow_with_the_day_and_hold_every_row() -> None:
    rows = quiet(
        np.arange(0, 40 * 86_400, 97), (Kind.LEVEL, 1, 99, 5, 0), (Kind.LEVEL, -1, 101, 5, 0)
    )
    steps, width_s = followed(rows, 1_000).steps()
    assert width_s == 3_600
    assert len(steps) <= MOST_STEPS
    assert steps["rows"].sum() == len(rows)
    assert (np.diff(steps["ts"]) == width_s * SECOND_NS).all()


def test_steps_of_many_years_are_longer_than_a_day() -> None:
    rows = quiet(
        np.arange(0, 4_000 * 86_400, 86_400),
        (Kind.LEVEL, 1, 99, 5, 0),
        (Kind.LEVEL, -1, 101, 5, 0),
    )
    steps, width_s = followed(rows, 100).steps()
    assert width_s == 4 * 86_400
    assert steps["rows"].sum() == len(rows)
    assert span_name(width_s) == "in 4 days"


def test_no_mid_from_a_crossed_or_broken_book() -> None:
    t = Trading
    rows = quiet(
        np.arange(8),
        (Kind.LEVEL, 1, 99, 5, 0),
        (Kind.LEVEL, -1, 101, 5, 0),
        (Kind.LEVEL, 1, 103, 5, 0),
        (Kind.STATUS, 0, 0, 0, t.GAP),
        (Kind.LEVEL, 1, 104, 5, 0),
        (Kind.SNAPSHOT_BEGIN, 0, 0, 0, 0),
        (Kind.SNAPSHOT_END, 0, 0, 0, 0),
        (Kind.LEVEL, 1, 98, 5, 0),
    )
    for chunk in (1, 3, 8):
        course = followed(rows, chunk)
        steps, _ = course.steps()
        assert np.isfinite(steps["mid"]).tolist() == [False, True] + [False] * 6
        assert (course.crossed, course.first_crossed, course.gaps) == (1, 2, 1)


def test_a_line_breaks_where_nothing_came() -> None:
    rows = quiet(
        np.array([0, 1, 2, 500, 501]), (Kind.LEVEL, 1, 99, 5, 0), (Kind.LEVEL, -1, 101, 5, 0)
    )
    steps, width_s = followed(rows).steps()
    holed = with_holes(steps, width_s)
    assert holed["ts"].tolist() == [t * SECOND_NS for t in (0, 1, 2, 3, 499, 500, 501)]
    assert np.isnan(holed["mid"]).tolist() == [True, False, False, True, True, False, False]
    assert merged(steps[:0], 5).size == 0


def test_the_svg_stands_by_itself_and_the_page_too(market, tmp_path: Path) -> None:
    rows, spec = market
    Store(tmp_path / "s").write(rows, spec)
    for name in ("day.svg", "day.html"):
        arguments = ["data", "info", str(tmp_path / "s"), "--picture", str(tmp_path / name)]
        done = CliRunner().invoke(cli, arguments)
        assert done.exit_code == 0, done.output
        assert "picture: " in done.output
        assert "▁" in done.output
    root = ET.parse(tmp_path / "day.svg").getroot()
    texts = [e.text for e in root.iter() if e.tag.endswith("text")]
    for title in ("Mid", "Spread", "Traded a minute", "Messages a minute", "Depth at 5 levels"):
        assert title in texts
    assert "BTCUSDT.SIM" in texts
    style = next(e.text for e in root if e.tag.endswith("style"))
    assert "var(" not in style
    assert ".tone1{color:#" in style.replace(" ", "")
    page = (tmp_path / "day.html").read_text()
    assert page.count('role="img"') == 5
    assert "http" not in page.replace("http://www.w3.org", "")


def test_info_and_check_follow_orders(tmp_path: Path) -> None:
    config = SynthConfig(duration_s=5.0, order_by_order=True, funding=False)
    rows, (spec,) = synthesize(config)
    mine = rows[spec.name]
    cancel = np.flatnonzero(mine["kind"] == Kind.CANCEL)[-3:]
    mine["order_id"][cancel] = 10**9 + np.arange(3)
    store = Store(tmp_path / "s")
    with store.writer(spec) as writer:
        writer.add(mine)
        writer.note(cannot_tell=["who was first"])
    info = describe(store, spec.name)
    assert info.faults["unknown_id"] == 3
    assert info.live_orders > 0
    done = CliRunner().invoke(cli, ["data", "check", str(store.path), "--book"])
    assert "3 unknown ids, 0 reused ids" in done.output
    shown = CliRunner().invoke(cli, ["data", "info", str(store.path)])
    assert "who was first" in shown.output
    assert "3 unknown ids" in shown.output


def test_a_picture_needs_a_name_that_says_its_form(tmp_path: Path, feed, spec) -> None:
    Store(tmp_path / "s").write(feed, spec)
    done = CliRunner().invoke(cli, ["data", "info", str(tmp_path / "s"), "--picture", "day.png"])
    assert "a picture is a .svg or .html file, day.png is .png" in str(done.exception)
    nowhere = ["--picture", str(tmp_path / "absent" / "day.svg")]
    done = CliRunner().invoke(cli, ["data", "info", str(tmp_path / "s"), *nowhere])
    assert "no such folder as" in str(done.exception)
    more = ["--picture", "day.svg", "--no-book"]
    assert CliRunner().invoke(cli, ["data", "info", str(tmp_path / "s"), *more]).exit_code == 2


def test_days_and_times_are_those_of_the_range(tmp_path: Path, feed, spec) -> None:
    store = Store(tmp_path / "s")
    store.write(feed, spec)
    assert len(store.days(spec.name)) == 2
    info = describe(store, spec.name, "2024-08-09")
    assert info.days == ["2024-08-09"]
    assert list(info.imported) == ["2024-08-09"]
    none = dict(figures(describe(store, spec.name, "2030-01-01")))
    assert none["days"] == "none"
    assert none["first, last"] == "no rows"
    path = tmp_path / "x.svg"
    command = ["data", "info", str(store.path), "--from", "2030-01-01", "--picture", str(path)]
    assert CliRunner().invoke(cli, command).exit_code == 0
    assert "1970" not in path.read_text()
    assert "no rows" in path.read_text()


def test_nothing_to_draw_is_no_error(tmp_path: Path) -> None:
    spec = InstrumentSpec(symbol="X", venue="V", tick=1, lot=1)
    rows = quiet(np.array([5]), (Kind.TRADE, 0, 100, 5, 0))
    Store(tmp_path / "s").write(rows, spec)
    info = describe(Store(tmp_path / "s"), spec.name)
    assert sparklines(info) == []
    titles = [title for title, _, series in panels_of(info) if series]
    assert titles == ["Traded a second", "Messages a second"]
    path = tmp_path / "x.svg"
    done = CliRunner().invoke(cli, ["data", "info", str(tmp_path / "s"), "--picture", str(path)])
    assert done.exit_code == 0, done.output
    ET.parse(path)

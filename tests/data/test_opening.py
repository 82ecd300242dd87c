"""Data by path, what is said of it, and the commands."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from hft.adapters.hftbacktest import EVENT_DTYPE, to_events
from hft.cli.data import data as command
from hft.data import Store, open_data
from hft.data.course import Course
from hft.data.files import to_table
from hft.data.info import check_data, describe, figures
from hft.data.progress import progress
from hft.errors import ConfigError, DataError, HftError, SchemaError
from hft.types import EVENT, SEEN_BY_BOTH, Flag, InstrumentSpec, Kind, Trading


@pytest.fixture
def paths(tmp_path: Path, feed, spec) -> dict[str, Path]:
    """The same rows in every form."""
    import pyarrow.parquet as pq

    store = Store(tmp_path / "store")
    store.write(feed, spec, raw=True)
    np.save(tmp_path / "f.npy", feed)
    np.savez(tmp_path / "f.npz", data=feed)
    pq.write_table(to_table(feed), tmp_path / "f.parquet")
    return {"store": store.path} | {s: tmp_path / f"f.{s}" for s in ("npy", "npz", "parquet")}


@pytest.mark.parametrize("form", ["store", "npy", "npz", "parquet"])
def test_every_form_reads_alike(paths, feed, spec, form: str) -> None:
    market = open_data(paths[form], spec)
    assert market.symbols() == [spec.name]
    assert market.spec(spec.name) == spec
    assert market.days(spec.name) == ["2024-08-08", "2024-08-09"]
    assert (market.read(spec.name) == feed).all()
    start, end = int(feed["ts_recv"][10]), int(feed["ts_recv"][-10])
    inside = (feed["ts_recv"] >= start) & (feed["ts_recv"] < end)
    chunks = list(market.chunks(spec.name, start, end, rows=50))
    assert (np.concatenate(chunks) == feed[inside]).all()
    assert market.hash(spec.name) == open_data(paths[form], spec).hash(spec.name)
    assert market.hash(spec.name) != market.hash(spec.name, end=end)


def test_one_day_file_of_a_store_knows_its_instrument(paths, spec) -> None:
    for name in ("events.parquet", "events.arrow"):
        day = paths["store"] / "venue=TEST" / "symbol=BTCUSDT" / "date=2024-08-09" / name
        market = open_data(day)
        assert market.spec(spec.name) == spec
        assert market.days(spec.name) == ["2024-08-09"]


def test_what_cannot_be_opened(tmp_path: Path, paths, feed, spec) -> None:
    with pytest.raises(DataError, match="no such file or store"):
        open_data(tmp_path / "none")
    with pytest.raises(DataError, match="no facts about its instrument"):
        open_data(paths["npy"])
    (tmp_path / "x.txt").write_text("x")
    with pytest.raises(DataError, match=r"want a \.npy"):
        open_data(tmp_path / "x.txt", spec)
    with pytest.raises(DataError, match=r"no instrument 'A\.B'"):
        open_data(paths["npy"], spec).read("A.B")
    with pytest.raises(ConfigError, match="rows is 0"):
        open_data(paths["npy"], spec).chunks(spec.name, rows=0)
    np.save(tmp_path / "g.npy", np.zeros((4, 8)))
    with pytest.raises(SchemaError):
        open_data(tmp_path / "g.npy", spec).read(spec.name)
    pl.DataFrame({"ts_event": [1]}).write_parquet(tmp_path / "g.parquet")
    with pytest.raises(SchemaError, match="column ts_recv: no such column"):
        open_data(tmp_path / "g.parquet", spec).read(spec.name)


def test_a_foreign_file_is_checked_as_it_is_read(tmp_path: Path, feed, spec) -> None:
    feed["qty"][200] = -1
    np.save(tmp_path / "f.npy", feed)
    with pytest.raises(DataError, match="row 200: qty"):
        open_data(tmp_path / "f.npy", spec).read(spec.name)
    report = check_data(open_data(tmp_path / "f.npy", spec, check=False), spec.name)
    assert [f.rule for f in report.findings] == ["qty"]


def test_check_finds_rows_that_are_not_those_written(paths, spec) -> None:
    assert check_data(open_data(paths["store"]), spec.name).ok
    path = next(paths["store"].rglob("*.arrow"))
    raw = bytearray(path.read_bytes())
    price = open_data(path).read(spec.name)["price"][7]
    at = raw.index(int(price).to_bytes(8, "little"))
    raw[at] ^= 1
    path.write_bytes(raw)
    report = check_data(open_data(paths["store"]), spec.name)
    assert [f.rule for f in report.findings] == ["content hash"]


def test_hftbacktest_rows_are_converted_on_the_way(tmp_path: Path, spec) -> None:

    rows = np.zeros(10, EVENT_DTYPE)
    rows["ev"], rows["px"], rows["qty"] = 0xE0000001, 100.0, 1.0
    rows["local_ts"] = 5
    np.save(tmp_path / "f.npy", rows)
    assert (open_data(tmp_path / "f.npy", spec).read(spec.name) == to_events(rows, spec)).all()


def book_rows(*rows: tuple[int, int, int, int, int]) -> np.ndarray:
    """Rows of (kind, side, price, qty, ref_id), each a packet."""
    out = np.zeros(len(rows), EVENT)
    fields = ("kind", "side", "price", "qty", "ref_id")
    for name, column in zip(fields, zip(*rows, strict=True), strict=True):
        out[name] = column
    out["flags"] = SEEN_BY_BOTH | Flag.LAST
    return out


def followed(*rows: tuple[int, int, int, int, int]) -> Course:
    course = Course()
    course.feed(book_rows(*rows))
    return course


def test_the_touch_follows_levels_clears_and_snapshots() -> None:
    course = followed((Kind.LEVEL, 1, 100, 5, 0), (Kind.LEVEL, 1, 99, 6, 0))
    assert course.last_touch is None
    course.feed(book_rows((Kind.LEVEL, -1, 102, 7, 0), (Kind.LEVEL, 1, 100, 0, 0)))
    assert course.last_touch == (99, 6, 102, 7)
    course.feed(book_rows((Kind.LEVEL, 1, 98, 1, 0), (Kind.CLEAR, 1, 99, 0, 1)))
    assert course.last_touch == (98, 1, 102, 7)
    course.feed(book_rows((Kind.CLEAR, -1, 0, 0, 0)))
    assert course.last_touch is None
    course.feed(book_rows((Kind.SNAPSHOT_BEGIN, 0, 0, 0, 0), (Kind.LEVEL, -1, 50, 2, 0)))
    course.feed(book_rows((Kind.LEVEL, 1, 49, 3, 0), (Kind.SNAPSHOT_END, 0, 0, 0, 0)))
    assert course.last_touch == (49, 3, 50, 2)
    assert course.crossed == 0


def test_a_crossed_book_counts_only_while_open() -> None:
    crossing = ((Kind.LEVEL, 1, 100, 5, 0), (Kind.LEVEL, -1, 99, 6, 0))
    course = followed((Kind.STATUS, 0, 0, 0, Trading.AUCTION), *crossing)
    assert course.crossed == 0
    course.feed(book_rows((Kind.STATUS, 0, 0, 0, Trading.OPEN)))
    assert (course.crossed, course.first_crossed) == (1, 3)
    course.feed(book_rows((Kind.STATUS, 0, 0, 0, Trading.GAP)))
    assert (course.crossed, course.gaps) == (1, 1)


def test_info_says_what_is_there(paths, feed, spec) -> None:
    info = describe(open_data(paths["store"]), spec.name)
    assert info.rows == 402
    assert info.packets == 134
    assert info.kinds == {"LEVEL": 322, "TRADE": 80}
    latency = feed["ts_recv"] - feed["ts_event"]
    assert info.latency_ns["min"] == latency.min()
    assert info.latency_ns["p50"] == pytest.approx(np.median(latency), rel=0.02)
    assert info.touch is not None
    words = dict(figures(info))
    assert words["rows"].startswith("402 in 134 packets")
    assert words["tick, lot"] == "0.1, 0.001 USDT"


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(command, [str(a) for a in arguments])
    if isinstance(result.exception, HftError):
        return result.exception.exit_code, f"{result.output}{result.exception}"
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output


def test_commands(tmp_path: Path, capture: list[str]) -> None:
    (tmp_path / "c").write_text("\n".join(capture))
    store = tmp_path / "s"
    code, said = run("import", "binance", tmp_path / "c", "--store", store, "--raw")
    assert code == 0, said
    assert "BTCUSDT.BINANCE: " in said
    assert "inferred: symbol BTCUSDT, tick 0.1, lot 0.001" in said
    code, said = run("import", "binance", tmp_path / "c", "--store", store)
    assert (code, "already has" in said) == (5, True)
    code, said = run("check", store, "--sequence", "increasing")
    assert code == 0, said
    assert "rows are sound" in said
    code, said = run("info", store)
    assert code == 0, said
    assert "diffs 60" in said
    assert "events.arrow" in {p.name for p in store.rglob("*")}


def test_commands_refuse_with_the_reason(tmp_path: Path, feed) -> None:
    np.save(tmp_path / "f.npy", feed[::-1])
    code, said = run("import", "hftbacktest", tmp_path / "f.npy", "--store", tmp_path / "s")
    assert (code, said) == (
        2,
        "the file holds no symbol, venue, tick, lot; give --symbol --venue --tick --lot",
    )
    code, said = run("import", "csv", tmp_path / "f.npy", "--store", tmp_path / "s")
    assert code == 2
    assert "--map" in said
    facts = ("--symbol=F", "--venue=V", "--tick=0.1", "--lot=0.001", "--store", tmp_path / "s")
    np.save(tmp_path / "h.npy", np.zeros(1, EVENT_DTYPE))
    code, said = run("import", "hftbacktest", *[tmp_path / "h.npy"] * 2, "--overwrite", *facts)
    assert (code, "given twice" in said) == (2, True)
    code, said = run("import", "xml", tmp_path / "f.npy", "--store", tmp_path / "s")
    assert (code, "want one of bars, binance, bitstamp" in said) == (2, True)
    code, said = run("check", tmp_path / "f.npy", "--tick", 0.1, "--lot", 0.001)
    assert code == 5
    assert "x order of ts_event: f.FILE: row 3" in said
    code, said = run("info", tmp_path / "none")
    assert code == 5
    assert not (tmp_path / "s").exists()


def test_synth_writes_a_market(tmp_path: Path) -> None:
    settings = ["--set", "symbols=A,B", "--set", "duration_s=5", "--set", "messages_per_s=200"]
    code, said = run("synth", "--store", tmp_path / "s", *settings)
    assert code == 0, said
    assert Store(tmp_path / "s").symbols() == ["A.SIM", "B.SIM"]
    code, said = run("check", tmp_path / "s", "--book")
    assert code == 0, said
    code, said = run("synth", "--store", tmp_path / "s", "--set", "colour=red")
    assert (code, "colour" in said) == (2, True)


def test_progress_outside_a_terminal_is_a_line_now_and_then(monkeypatch) -> None:
    import hft.data.progress as module

    monkeypatch.setattr(module, "LINE_EVERY_S", 0.0)
    out = io.StringIO()
    with progress("x.gz", out) as tell:
        tell(1000, 0.5)
    assert out.getvalue().startswith("x.gz: 1,000 rows, ")
    assert "s left" in out.getvalue()


def test_spec_of_two_instruments(tmp_path: Path, feed, spec) -> None:
    other = InstrumentSpec(symbol="ETH", venue="TEST", tick=0.5, lot=1)
    store = Store(tmp_path / "s")
    store.write(feed, spec)
    store.write(feed, other)
    assert open_data(tmp_path / "s").symbols() == ["BTCUSDT.TEST", "ETH.TEST"]
    assert store.spec("ETH.TEST") == other

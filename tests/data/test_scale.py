"""A store of many days and instruments: what is in it, and reading only what is asked for."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner, Result

from hft.cli.main import cli
from hft.config import Recipe
from hft.data import FileData, Store, open_data
from hft.data import files as forms
from hft.data.import_jobs import Opening, import_sources
from hft.data.synth import SynthConfig, synthesize
from hft.errors import ConfigError, DataError
from hft.feeds import open_feeds
from hft.types import EVENT, InstrumentSpec, Kind, Trading


@pytest.mark.parametrize("order_by_order", [False, True])
def test_a_synthetic_feed_says_which_kinds_it_has(order_by_order: bool) -> None:  # noqa: FBT001
    config = SynthConfig(duration_s=8.5 * 3600, messages_per_s=2, order_by_order=order_by_order)
    recipe = msgspec.convert({"data": {"synth": msgspec.to_builtins(config)}}, Recipe)
    (feed,) = open_feeds(recipe)
    arrays, specs = synthesize(config)
    (same,) = open_feeds(recipe, arrays, specs)
    assert feed.kinds == same.kinds
    assert "TRADE" in feed.kinds or "EXECUTE" in feed.kinds


@pytest.mark.parametrize("raw", [False, True])
def test_kinds_of_a_store_are_those_of_the_days_asked_for(
    tmp_path: Path,
    feed,
    spec,
    raw: bool,  # noqa: FBT001
) -> None:
    store = Store(tmp_path / "s")
    cut = int(np.searchsorted(feed["ts_recv"], midnight_of(feed)))
    feed["kind"][:cut] = 1
    with store.writer(spec, raw=raw) as writer:
        writer.add(feed)
        writer.note(cannot_tell=["no receive time"])
    assert store.kinds(spec.name) == {"LEVEL", "TRADE"}
    assert store.kinds(spec.name, end="2024-08-09") == {"LEVEL"}
    assert store.cannot_tell(spec.name) == ("no receive time",)
    path = next(store.path.rglob("date=2024-08-09/*.arrow" if raw else "date=2024-08-09/*.parquet"))
    assert FileData(path).kinds(spec.name) == {"LEVEL", "TRADE"}
    assert FileData(path).cannot_tell(spec.name) == ("no receive time",)


def midnight_of(feed) -> int:
    return int(feed["ts_recv"][-1]) // 86_400_000_000_000 * 86_400_000_000_000


def test_a_day_written_before_kinds_were_kept_is_scanned(
    tmp_path: Path, feed, spec, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path / "s")
    monkeypatch.setattr(forms, "kind_names", lambda present: None)
    store.write(feed, spec, raw=True)
    monkeypatch.undo()
    assert store.meta(spec.name, "2024-08-09").kinds is None
    assert store.kinds(spec.name) == {"LEVEL", "TRADE"}
    assert forms.kinds_in(next(store.path.rglob("*.arrow"))) == ["LEVEL", "TRADE"]


def test_kinds_of_a_numpy_file(tmp_path: Path, feed, spec) -> None:
    np.save(tmp_path / "f.npy", feed)
    assert open_data(tmp_path / "f.npy", spec).kinds(spec.name) == {"LEVEL", "TRADE"}


# ---- reading only what is asked for


@pytest.fixture
def many(tmp_path: Path, feed, spec, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A store whose row groups hold 25 rows, with one status row in the second day."""
    monkeypatch.setattr(forms, "ROW_GROUP", 25)
    at = 300
    feed["kind"][at], feed["qty"][at], feed["side"][at] = Kind.STATUS, 0, 0
    feed["ref_id"][at] = Trading.AUCTION
    store = Store(tmp_path / "s")
    with store.writer(spec) as writer:
        for start in range(0, len(feed), 25):
            writer.add(feed[start : start + 25])
    return store


@pytest.fixture
def read_groups(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Row groups read since, one number each."""
    groups: list[int] = []
    chosen = forms.row_groups

    def counted(*arguments) -> list[int]:
        groups.extend(chosen(*arguments))
        return chosen(*arguments)

    monkeypatch.setattr(forms, "row_groups", counted)
    return groups


def test_row_groups_outside_the_time_range_are_not_read(many, feed, spec, read_groups) -> None:
    ts = feed["ts_recv"]
    assert (many.read(spec.name) == feed).all()
    assert len(read_groups) == 17  # 150 rows of one day, 252 of the next
    read_groups.clear()
    some = many.read(spec.name, int(ts[200]), int(ts[220]))
    assert (some == feed[(ts >= ts[200]) & (ts < ts[220])]).all()
    assert len(read_groups) <= 2


def test_row_groups_without_the_kinds_asked_for_are_not_read(many, feed, spec, read_groups) -> None:
    status = many.read(spec.name, kinds=["STATUS"])
    assert (status == feed[300:301]).all()
    assert len(read_groups) == 1
    read_groups.clear()
    trades = many.read(spec.name, kinds=["TRADE", "STATUS"], columns=["price", "ts_event"])
    wanted = feed[np.isin(feed["kind"], (Kind.TRADE, Kind.STATUS))]
    assert trades.dtype.names == ("price", "ts_event")
    assert all((trades[name] == wanted[name]).all() for name in trades.dtype.names)


@pytest.mark.parametrize("raw", [False, True])
def test_columns_and_kinds_are_the_same_in_both_forms(
    tmp_path: Path,
    feed,
    spec,
    raw: bool,  # noqa: FBT001
) -> None:
    store = Store(tmp_path / "s")
    store.write(feed, spec, raw=raw)
    middle = int(feed["ts_recv"][200])
    chunks = list(store.chunks(spec.name, middle, rows=10, columns=["qty"], kinds=["LEVEL"]))
    wanted = feed["qty"][(feed["kind"] == Kind.LEVEL) & (feed["ts_recv"] >= middle)]
    assert (np.concatenate(chunks)["qty"] == wanted).all()
    assert max(map(len, chunks)) <= 10
    assert len(store.read(spec.name, "2030-01-01", columns=["qty"], kinds=["LEVEL"])) == 0


def test_unknown_columns_and_kinds_are_named(many, spec) -> None:
    with pytest.raises(ConfigError, match="no column 'prise'; there are ts_event, ts_recv"):
        many.read(spec.name, columns=["prise"])
    with pytest.raises(ConfigError, match="no kind 'TRADES'; there are LEVEL, CLEAR"):
        many.read(spec.name, kinds=["TRADES"])


def test_scan_gives_the_same_rows_and_helpers(many, feed, spec) -> None:
    lazy = many.scan(spec.name)
    frame = lazy.collect()
    assert (frame.select(EVENT.names).to_numpy(structured=True)["price"] == feed["price"]).all()
    assert frame["what"].cast(pl.String).to_list() == [Kind(k).name for k in feed["kind"]]
    assert frame["price_at"].to_list() == [round(p * 0.1, 1) for p in feed["price"].tolist()]
    assert frame["time"].to_physical().to_list() == feed["ts_recv"].tolist()
    assert frame["date"].dtype == pl.Date
    middle = int(feed["ts_recv"][200])
    some = many.scan(spec.name, middle, middle + 50_000_000, kinds=["TRADE"]).collect()
    same = many.read(spec.name, middle, middle + 50_000_000, kinds=["TRADE"])
    assert some["seq"].to_list() == same["seq"].tolist()
    assert many.scan(spec.name, "2030-01-01").collect().height == 0


def test_a_store_may_lie_in_a_folder_with_brackets_in_its_name(tmp_path: Path, feed, spec) -> None:
    store = Store(tmp_path / "mine[1]*")
    store.write(feed, spec)
    assert store.scan(spec.name).collect().height == len(feed)


def test_columns_may_stand_in_any_order(tmp_path: Path, feed, spec) -> None:
    """Statistics are found by name: by place, a part would be left out without a word."""
    import pyarrow.parquet as pq

    order = ["seq", "qty", "flags", *(n for n in EVENT.names if n not in ("seq", "qty", "flags"))]
    path = tmp_path / "mine.parquet"
    pq.write_table(forms.to_table(feed).select(order), path, row_group_size=25)
    middle = int(feed["ts_recv"][200])
    late = np.concatenate(list(forms.parquet_chunks(path, start=middle)))
    assert (late["ts_recv"] >= middle).sum() == (feed["ts_recv"] >= middle).sum()
    assert len(late) < len(feed)
    prints = np.concatenate(list(forms.parquet_chunks(path, kinds=frozenset({int(Kind.TRADE)}))))
    assert (prints["kind"] == Kind.TRADE).sum() == (feed["kind"] == Kind.TRADE).sum()
    order.insert(EVENT.names.index("kind"), order.pop(order.index("instrument")))
    pq.write_table(forms.to_table(feed).select(order), path)
    assert open_data(path, spec).kinds(spec.name) == {
        Kind(kind).name for kind in np.unique(feed["kind"])
    }


def test_a_time_of_a_row_is_a_time(many, feed, spec) -> None:
    ts = feed["ts_recv"][200]
    assert many.read(spec.name, ts)["ts_recv"].min() == ts
    with pytest.raises(ConfigError, match=r"1\.5 is no time: want ns since the epoch or ISO text"):
        many.read(spec.name, 1.5)


def test_days_of_another_tick_are_not_scanned_together(tmp_path: Path, feed, spec) -> None:
    store = Store(tmp_path / "s")
    store.write(feed[:30], spec)
    other = InstrumentSpec(symbol="BTCUSDT", venue="TEST", tick=0.5, lot=0.001)
    store.write(feed[200:], other, overwrite=True)
    with pytest.raises(DataError, match=r"tick 0\.1 and lot 0\.001 on 2024-08-08"):
        store.scan(spec.name)
    assert store.scan(spec.name, "2024-08-09").collect().height == 202


# ---- many sources at once


def table_files(tmp_path: Path, days: int) -> list[str]:
    """A CSV file a day, and their map."""
    (tmp_path / "map.toml").write_text(
        """
        packets = "row"
        [instrument]
        symbol = "AAA"
        venue = "MINE"
        tick = 0.01
        lot = 1
        [columns]
        ts_event = { column = "t", unit = "ns" }
        ts_recv = { column = "t", unit = "ns" }
        price = "p"
        qty = "q"
        kind = "level"
        side = "s"
        """
    )
    files = []
    for day in range(days):
        t0 = 1_723_161_600_000_000_000 + day * 86_400_000_000_000
        lines = [f"{t0 + k * 1_000_000},{10 + k % 7 / 100:.2f},{k % 5},B" for k in range(2000)]
        files.append(str(tmp_path / f"AAA-{day}.csv"))
        Path(files[-1]).write_text("t,p,q,s\n" + "\n".join(lines) + "\n")
    return files


def imported(store: Path, files: list[str], *more: str) -> Result:
    arguments = ["data", "import", "csv", *files, "--store", str(store), *more]
    return CliRunner().invoke(cli, [*arguments, "--map", str(Path(files[0]).parent / "map.toml")])


def hashes(store: Path) -> dict[str, str]:
    return {
        str(path.relative_to(store)): forms.parquet_meta(path).hash
        for path in sorted(store.rglob("events.parquet"))
    }


def test_several_processes_import_what_one_does(tmp_path: Path) -> None:
    files = table_files(tmp_path, 5)
    one = imported(tmp_path / "one", files)
    several = imported(tmp_path / "several", files, "--jobs", "3")
    assert (one.exit_code, several.exit_code) == (0, 0), several.output
    assert hashes(tmp_path / "one") == hashes(tmp_path / "several")
    assert len(hashes(tmp_path / "one")) == 5
    said = [re.sub(r"[\d,]+/s", "", result.output) for result in (one, several)]
    assert said[0] == said[1]


def test_with_append_an_instrument_is_one_process(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    files = table_files(tmp_path, 1) + table_files(tmp_path / "other", 1)
    later = Path(files[1])
    later.write_text(later.read_text().replace(",10.", ",11."))
    for jobs in ("1", "2"):
        done = imported(tmp_path / f"jobs{jobs}", files, "--append", "--jobs", jobs)
        assert done.exit_code == 0, done.output
    assert hashes(tmp_path / "jobs1") == hashes(tmp_path / "jobs2")
    assert Store(tmp_path / "jobs2").read("AAA.MINE").size == 4000


@pytest.mark.parametrize("jobs", ["1", "3"])
def test_a_file_that_fails_is_named_and_the_days_before_it_are_whole(
    tmp_path: Path, jobs: str
) -> None:
    files = table_files(tmp_path, 4)
    path = Path(files[2])
    lines = path.read_text().splitlines()
    lines[1500] = lines[1500].replace("10.", "ten.")
    path.write_text("\n".join(lines))
    done = imported(tmp_path / "s", files, "--jobs", jobs)
    assert isinstance(done.exception, DataError)
    assert "AAA-2.csv: line 1501" in str(done.exception)
    assert Store(tmp_path / "s").days("AAA.MINE") == ["2024-08-09", "2024-08-10"]
    left = [p.name for p in (tmp_path / "s").rglob("*") if p.is_file()]
    assert left == ["events.parquet"] * 2


@pytest.mark.parametrize("jobs", ["1", "3"])
def test_two_files_of_one_day_are_refused_whoever_comes_first(tmp_path: Path, jobs: str) -> None:
    files = table_files(tmp_path, 2)
    again = shutil.copy(files[0], tmp_path / "again.csv")
    done = imported(tmp_path / "s", [*files, str(again)], "--jobs", jobs)
    assert isinstance(done.exception, DataError)
    assert "already has 2024-08-09; overwrite or append" in str(done.exception)
    assert len(hashes(tmp_path / "s")) == 2


def test_a_day_that_another_process_wrote_meanwhile_is_refused(tmp_path: Path, feed, spec) -> None:
    store = Store(tmp_path / "s")
    with pytest.raises(DataError, match="already has 2024-08-08"):
        write_beside(store, feed, feed[:30], spec)
    assert len(store.read(spec.name)) == 30
    late = feed[30:60].copy()
    late["seq"] += 1
    with pytest.raises(DataError, match="another process changed the day"):
        write_beside(store, late, feed[30:60], spec, append=True)
    assert len(store.read(spec.name)) == 60
    assert [p.name for p in store.path.rglob("*") if p.is_file()] == ["events.parquet"]


def test_ctrl_c_while_a_file_is_begun_leaves_nothing(
    tmp_path: Path, feed, spec, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Cut(forms.ParquetForm):
        def __init__(self, path: Path) -> None:
            super().__init__(path)
            raise KeyboardInterrupt

    monkeypatch.setattr("hft.data.writing.ParquetForm", Cut)
    with pytest.raises(KeyboardInterrupt):
        Store(tmp_path / "s").write(feed, spec)
    assert list(tmp_path.iterdir()) == []


def write_beside(store: Store, mine, others, spec, **options) -> None:
    with store.writer(spec, **options) as writer:
        writer.add(mine)
        Store(store.path).write(others, spec, **options)


def test_ctrl_c_ends_an_import_of_many_sources_with_whole_days(tmp_path: Path) -> None:
    files = table_files(tmp_path, 3)
    for path in map(Path, files):
        head, *lines = path.read_text().splitlines()
        first = int(lines[0].split(",")[0])
        many = [f"{first + k * 10_000},10.{k % 90 + 10},{k % 5},B" for k in range(700_000)]
        path.write_text("\n".join([head, *many]))
    store, script = tmp_path / "s", "from hft.cli.main import main; main()"
    arguments = ["data", "import", "csv", *files, "--store", str(store), "--jobs", "2"]
    command = [sys.executable, "-c", script, *arguments, "--map", str(tmp_path / "map.toml")]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE)
    while process.poll() is None and not list(store.rglob("*.tmp")):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert not list(store.rglob("*.tmp"))
    days = Store(store).days("AAA.MINE")
    assert len(days) < 3
    assert all(Store(store).meta("AAA.MINE", day).rows == 700_000 for day in days)


def test_sources_that_cannot_travel_are_opened_again(tmp_path: Path) -> None:
    class Tied:
        def __init__(self, source) -> None:
            self.source, self.open = source, open(tmp_path / "map.toml")  # noqa: SIM115

        def __getattr__(self, name: str):
            return getattr(self.source, name)

    files = [Path(f) for f in table_files(tmp_path, 2)]
    opening = Opening("csv", files, {"columns": tmp_path / "map.toml"})
    tied = [Tied(source) for source in opening.sources()]
    import_sources(opening, tied, Store(tmp_path / "s"), jobs=2)
    for source in tied:
        source.open.close()
    assert len(hashes(tmp_path / "s")) == 2


# ---- larger than memory


def test_a_store_larger_than_memory_is_written_and_replayed(tmp_path: Path) -> None:
    rows, limit_mib = 22_000_000, 400

    def limited(what: str) -> str:
        script = Path(__file__).with_name("larger_than_memory.py")
        command = [sys.executable, str(script), str(tmp_path), str(rows), str(limit_mib), what]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    for what in ("write", "replay"):
        feed_mib, used_mib = map(int, limited(what).split())
        assert feed_mib > 3 * limit_mib
        assert used_mib < limit_mib
    assert limited("hold") == "no room\n"
    assert len(Store(tmp_path / "store").days("BIG.SIM")) == 2


def test_the_reads_that_the_docs_show_agree(
    tmp_path: Path, feed, spec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Store("data").write(feed, spec, raw=True)
    other = InstrumentSpec(symbol="A/B", venue="TEST", tick=0.1, lot=0.001)
    Store("data").write(feed[:150], other)
    page = Path(__file__).parents[2] / "docs" / "store.md"
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.S)
    names: dict[str, Any] = {}
    for block in blocks:
        exec(block.replace("symbols()[0]", "symbols()[-1]"), names)
    trades = feed[feed["kind"] == Kind.TRADE]
    assert names["name"] == spec.name
    assert names["per_minute"]["amount"].sum() == pytest.approx(trades["qty"].sum() * 0.001)
    assert names["busiest"].rows()[0][0] == "BTCUSDT"
    assert set(names["busiest"]["symbol"]) == {"BTCUSDT", "A/B"}
    first = trades[trades["ts_recv"] < midnight_of(feed)]
    assert names["frame"]["price"].tolist() == first["price"].tolist()
    lots = sum(row[3] for row in names["traded"] if row[0] == "BTCUSDT")
    assert lots == trades["qty"].sum()

"""A store of many days and instruments: what is in it, and reading only what is asked for."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import polars as pl
import pytest

from hft.config import Recipe
from hft.data import FileData, Store, open_data
from hft.data import files as forms
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


def test_days_of_another_tick_are_not_scanned_together(tmp_path: Path, feed, spec) -> None:
    store = Store(tmp_path / "s")
    store.write(feed[:30], spec)
    other = InstrumentSpec(symbol="BTCUSDT", venue="TEST", tick=0.5, lot=0.001)
    store.write(feed[200:], other, overwrite=True)
    with pytest.raises(DataError, match=r"tick 0\.1 and lot 0\.001 on 2024-08-08"):
        store.scan(spec.name)
    assert store.scan(spec.name, "2024-08-09").collect().height == 202

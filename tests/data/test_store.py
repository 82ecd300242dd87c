"""The store keeps what it is given, whole or not at all."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np
import pandas as pd
import polars as pl
import pytest

from hft.data import Store
from hft.data.files import parquet_meta
from hft.errors import ConfigError, DataError, OutOfOrder, SchemaError
from hft.types import EVENT, Flag, InstrumentSpec


def files_of(store: Store) -> list[str]:
    return sorted(p.name for p in store.path.rglob("*") if p.is_file())


def test_round_trip_over_two_days(tmp_path: Path, feed, spec) -> None:
    store = Store(tmp_path / "s")
    assert store.write(feed, spec) == ["2024-08-08", "2024-08-09"]
    assert store.symbols() == ["BTCUSDT.TEST"]
    assert store.days(spec.name) == ["2024-08-08", "2024-08-09"]
    assert store.spec(spec.name) == spec
    assert (store.read(spec.name) == feed).all()


@pytest.mark.parametrize("rows", [1, 7, 1 << 20])
def test_raw_form_is_the_same_rows_as_views(tmp_path: Path, feed, spec, rows: int) -> None:
    store = Store(tmp_path / "s")
    store.write(feed, spec, raw=True)
    chunks = list(store.chunks(spec.name, rows=rows))
    assert (np.concatenate(chunks) == feed).all()
    assert max(map(len, chunks)) <= rows
    assert not chunks[0].flags.writeable
    assert chunks[0].base is not None


def test_cache_makes_the_raw_form_once_and_a_stale_one_is_not_believed(
    tmp_path: Path, feed, spec
) -> None:
    store = Store(tmp_path / "s")
    store.write(feed, spec)
    first = store.cache(spec.name)
    assert [p.name for p in first] == ["events.arrow"] * 2
    stamps = [p.stat().st_mtime_ns for p in first]
    assert [p.stat().st_mtime_ns for p in store.cache(spec.name)] == stamps
    stale = {p: p.read_bytes() for p in first}
    changed = feed.copy()
    changed["qty"] += 1
    store.write(changed, spec, overwrite=True)
    for path, content in stale.items():
        path.write_bytes(content)
    assert (store.read(spec.name) == changed).all()


@pytest.mark.parametrize("raw", [False, True])
def test_range_is_half_open_on_ts_recv(tmp_path: Path, feed, spec, raw: bool) -> None:  # noqa: FBT001
    store = Store(tmp_path / "s")
    store.write(feed, spec, raw=raw)
    start, end = int(feed["ts_recv"][30]), int(feed["ts_recv"][300])
    wanted = feed[(feed["ts_recv"] >= start) & (feed["ts_recv"] < end)]
    assert (store.read(spec.name, start, end) == wanted).all()
    assert len(store.read(spec.name, "2024-08-09")) == (feed["ts_recv"] >= store_day()).sum()
    assert len(store.read(spec.name, end="2024-08-08T00:00")) == 0


def store_day() -> int:
    return 1_723_161_600_000_000_000


def test_hash_is_of_content_not_of_chunks_or_form(tmp_path: Path, feed, spec) -> None:
    whole, parts = Store(tmp_path / "a"), Store(tmp_path / "b")
    whole.write(feed, spec, raw=True)
    with parts.writer(spec) as writer:
        for start in range(0, len(feed), 37):
            writer.add(feed[start : start + 37])
    assert whole.hash(spec.name) == parts.hash(spec.name)
    assert whole.hash(spec.name) != whole.hash(spec.name, start=int(feed["ts_recv"][9]))
    other = feed.copy()
    other["qty"][7] += 1
    whole.write(other, spec, overwrite=True)
    assert whole.hash(spec.name) != parts.hash(spec.name)


def test_rows_hold_no_instrument_number(tmp_path: Path, feed, spec) -> None:
    mine = feed.copy()
    mine["instrument"] = 7
    store = Store(tmp_path / "s")
    store.write(mine, spec)
    assert (store.read(spec.name)["instrument"] == 0).all()
    assert (mine["instrument"] == 7).all()


def test_existing_day_is_refused_then_replaced(tmp_path: Path, feed, spec) -> None:
    store = Store(tmp_path / "s")
    store.write(feed, spec)
    before = store.hash(spec.name)
    with pytest.raises(DataError, match="already has 2024-08-08"):
        store.write(feed, spec)
    assert store.hash(spec.name) == before
    store.write(feed[:30], spec, overwrite=True)
    assert len(store.read(spec.name, end="2024-08-09")) == 30
    with pytest.raises(ConfigError, match="exclude"):
        store.write(feed, spec, overwrite=True, append=True)


def test_append_merges_by_receive_time_and_refuses_the_same_rows_twice(
    tmp_path: Path, feed, spec
) -> None:
    store = Store(tmp_path / "s")
    trades = feed["kind"] == 5
    store.write(feed[~trades], spec)
    store.write(feed[trades], spec, append=True)
    merged = store.read(spec.name)
    assert len(merged) == len(feed)
    assert (np.diff(merged["ts_recv"]) >= 0).all()
    assert sorted(merged.tolist()) == sorted(feed.tolist())
    with pytest.raises(DataError, match="in it already"):
        store.write(feed[trades], spec, append=True)
    assert (store.read(spec.name) == merged).all()


def test_append_splits_rows_that_interleave_otherwise_at_the_venue(
    tmp_path: Path, feed, spec
) -> None:
    store = Store(tmp_path / "s")
    day = feed[:30]
    day["kind"] = 1
    late = day[10:11].copy()
    late["kind"], late["ts_event"], late["qty"] = 5, day["ts_event"][3], 77
    store.write(day, spec)
    store.write(late, spec, append=True)
    rows = store.read(spec.name)
    halves = rows[rows["qty"] == 77]
    assert [int(f) & 3 for f in halves["flags"]] == [int(Flag.SEEN_BY_VENUE), int(Flag.SEEN_BY_US)]
    venue = rows["ts_event"][rows["flags"] & Flag.SEEN_BY_VENUE != 0]
    assert (np.diff(venue) >= 0).all()


def test_an_error_or_interrupt_in_the_block_leaves_nothing(tmp_path: Path, feed, spec) -> None:
    store = Store(tmp_path / "s")
    for error in (RuntimeError, KeyboardInterrupt):
        with pytest.raises(error):
            break_off(store, feed, spec, error())
    assert not store.path.exists()
    store.write(feed, spec)
    before = files_of(store), store.hash(spec.name)
    with pytest.raises(KeyboardInterrupt):
        break_off(store, feed[:50], spec, KeyboardInterrupt(), overwrite=True)
    assert (files_of(store), store.hash(spec.name)) == before


def break_off(store: Store, feed, spec, error: BaseException, **options) -> None:
    with store.writer(spec, raw=True, **options) as writer:
        writer.add(feed)
        raise error


def test_a_killed_writer_leaves_no_day_and_is_swept_up(tmp_path: Path, feed, spec) -> None:
    store = Store(tmp_path / "s")
    np.save(tmp_path / "f.npy", feed)
    script = (
        "import os, signal, sys, numpy, msgspec; from hft.data import Store; "
        "from hft.types import InstrumentSpec; "
        "spec = msgspec.json.decode(sys.argv[3], type=InstrumentSpec)\n"
        "with Store(sys.argv[1]).writer(spec, raw=True) as writer:\n"
        "    writer.add(numpy.load(sys.argv[2])); os.kill(os.getpid(), signal.SIGKILL)"
    )
    arguments = [str(store.path), str(tmp_path / "f.npy"), msgspec.json.encode(spec).decode()]
    killed = subprocess.run([sys.executable, "-c", script, *arguments], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert len(files_of(store)) == 4
    assert store.symbols() == []
    store.write(feed, spec)
    assert files_of(store) == ["events.parquet"] * 2


def test_another_tick_is_refused(tmp_path: Path, feed, spec) -> None:
    store = Store(tmp_path / "s")
    store.write(feed[:30], spec)
    other = InstrumentSpec(symbol="BTCUSDT", venue="TEST", tick=0.5, lot=0.001)
    with pytest.raises(DataError, match=r"tick 0\.5"):
        store.write(feed[200:], other)


def test_names_with_odd_letters(tmp_path: Path, feed) -> None:
    spec = InstrumentSpec(symbol="BTC/USD:1.5 %", venue="A B", tick=1, lot=1)
    store = Store(tmp_path / "s")
    store.write(feed, spec)
    assert store.symbols() == ["BTC/USD:1.5 %.A B"]
    assert len(store.read(spec.name)) == len(feed)


def test_unknown_instrument_says_what_there_is(tmp_path: Path, feed, spec) -> None:
    store = Store(tmp_path / "s")
    store.write(feed, spec)
    with pytest.raises(DataError, match=r"known: BTCUSDT\.TEST"):
        store.read("ETHUSDT.TEST")
    with pytest.raises(DataError, match=r"SYMBOL\.VENUE"):
        store.read("ETHUSDT")
    with pytest.raises(DataError, match="no such store"):
        Store(tmp_path / "none", create=False)


def natural(feed) -> dict[str, object]:
    return {
        "ts_event": feed["ts_event"],
        "ts_recv": feed["ts_recv"],
        "price": np.round(feed["price"] * 0.1, 1),
        "qty": np.round(feed["qty"] * 0.001, 3),
        "kind": ["trade" if k == 5 else "level" for k in feed["kind"]],
        "side": ["B" if s > 0 else "S" for s in feed["side"]],
        "seq": feed["seq"],
    }


@pytest.mark.parametrize("frame", [dict, pl.DataFrame, pd.DataFrame])
def test_frames_in_prices_or_in_ticks(tmp_path: Path, feed, spec, frame) -> None:
    store = Store(tmp_path / "s")
    store.write(frame(natural(feed)), spec)
    assert (store.read(spec.name) == feed).all()
    ticks = natural(feed) | {"price": feed["price"], "qty": feed["qty"]}
    store.write(frame(ticks), spec, overwrite=True)
    assert (store.read(spec.name) == feed).all()


def test_frames_with_datetimes(tmp_path: Path, feed, spec) -> None:
    store = Store(tmp_path / "s")
    columns = natural(feed)
    times = {n: columns[n].astype("datetime64[ns]") for n in ("ts_event", "ts_recv")}
    zoned = pd.DataFrame(columns | times)
    zoned["ts_recv"] = zoned["ts_recv"].dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo")
    store.write(zoned, spec)
    store.write(pl.DataFrame(columns | times), spec, overwrite=True)
    assert (store.read(spec.name) == feed).all()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"price": None}, r"missing: \['price'\]"),
        ({"extra": [1] * 402}, r"unknown: \['extra'\]"),
        ({"price": [1] * 402}, "both as integers"),
        ({"side": ["X"] * 402}, "row 0: side is 'X'"),
        ({"ts_event": [1.5] * 402}, "ns since the epoch"),
        ({"kind": ["nothing"] * 402}, "row 0: kind is 'nothing'"),
        ({"seq": np.full(402, 2**63, np.uint64)}, "63 bits"),
        ({"flags": np.full(402, 1 << 20)}, "does not fit"),
    ],
)
def test_frames_that_cannot_be_meant(tmp_path: Path, feed, spec, change, says: str) -> None:
    columns = {k: v for k, v in (natural(feed) | change).items() if v is not None}
    with pytest.raises(SchemaError, match=says):
        Store(tmp_path / "s").write(columns, spec)


def test_a_price_off_the_tick_names_row_value_and_neighbour(tmp_path: Path, feed, spec) -> None:
    columns = natural(feed)
    columns["price"][5] = 60000.04
    with pytest.raises(DataError, match=r"row 5: price 60000\.04 is off the tick of 0\.1; .*60000"):
        Store(tmp_path / "s").write(columns, spec)


def test_wrong_arrays_are_refused(tmp_path: Path, feed, spec) -> None:
    store = Store(tmp_path / "s")
    for bad in (np.zeros((5, 8)), feed.reshape(2, -1), np.zeros(3, EVENT.descr[:3])):
        with pytest.raises(SchemaError):
            store.write(bad, spec)
    backwards = feed[::-1].copy()
    with pytest.raises(OutOfOrder, match="row 3: ts_event"):
        store.write(backwards, spec)
    assert not store.path.exists()


def test_facts_are_in_the_parquet_metadata(tmp_path: Path, feed, spec) -> None:
    store = Store(tmp_path / "s")
    shuffled = feed[::-1].copy()
    store.write(shuffled, spec, repair=True)
    path = next(store.path.rglob("*.parquet"))
    meta = parquet_meta(path)
    assert meta is not None
    assert meta.spec == spec
    assert meta.imported["repaired"]["rows sorted by ts_recv"] > 0
    polars = pl.read_parquet(path)
    assert polars.columns == list(EVENT.names or ())
    assert len(polars) == meta.rows

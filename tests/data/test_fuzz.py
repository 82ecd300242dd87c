"""Damaged input: a typed error and an untouched store, or a counted repair; never anything else."""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import hypothesis
import numpy as np
import pytest
from damage import cut, double, drop, flip

from hft.adapters.binance import BinanceCapture
from hft.adapters.hftbacktest import EVENT_DTYPE, HftbacktestFile
from hft.adapters.table import TableFile, load_map
from hft.data import Source, Store, check, import_source, open_data
from hft.data.info import describe
from hft.errors import HftError
from hft.types import InstrumentSpec

ROUNDS = 2 * hypothesis.settings().max_examples // 5  # 40; 8,000 in `make nightly`
SPEC = InstrumentSpec(symbol="X", venue="V", tick=0.1, lot=0.001)
MAP = """
reorders = true
[instrument]
symbol = "X"
venue = "V"
tick = 0.1
lot = 0.001
[columns]
ts_event = { column = "t", unit = "ns" }
ts_recv = { column = "r", unit = "ns" }
price = "p"
qty = "q"
kind = { column = "k", values = { T = "trade", L = "level" } }
side = "s"
"""


def shuffle_lines(rng: random.Random, raw: bytes) -> bytes:
    first, *lines = raw.split(b"\n")
    rng.shuffle(lines)
    return b"\n".join([first, *lines])


def double_lines(rng: random.Random, raw: bytes) -> bytes:
    lines = raw.split(b"\n")
    at = rng.randrange(len(lines))
    return b"\n".join(lines[:at] + lines[at : at + 5] * 2 + lines[at + 5 :])


BYTES = (flip, cut, drop, double)
LINES = (*BYTES, shuffle_lines, double_lines)


def damaged(raw: bytes, ways: tuple[Callable, ...], *, packed: bool = False) -> Iterator[bytes]:
    """Seeded damage; `packed`: of the text inside a gzip as often as of the gzip."""
    for seed in range(ROUNDS):
        rng = random.Random(seed)
        way = ways[seed % len(ways)]
        if not packed:
            yield way(rng, raw)
        elif seed % 3:
            yield gzip.compress(way(rng, raw), 1)
        else:
            yield BYTES[seed % 4](rng, gzip.compress(raw, 1))


def survive(store: Store, opened: Callable[..., Source], days: list[str]) -> int:
    """Import with and without repair; returns how often it went through."""
    went = 0
    for repair in (False, True):
        done = None
        with suppress(HftError):
            done = import_source(opened(repair=repair), store, repair=repair, overwrite=True)
        if done is None:
            assert day_files(store) == days
            continue
        went += 1
        rows = store.read(done.spec.name, end=None)
        assert check(rows, done.spec).ok
        describe(store, done.spec.name)
        for path in store.path.rglob("*.parquet"):
            path.unlink()
    assert not [p for p in store.path.rglob("*") if p.is_file()]
    return went


def day_files(store: Store) -> list[str]:
    return [str(p) for p in store.path.rglob("*") if p.is_file()]


def test_hftbacktest(tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    rows = np.zeros(60, EVENT_DTYPE)
    rows["exch_ts"] = 1_700_000_000_000_000_000 + np.arange(60) * 1_000_000
    rows["local_ts"] = rows["exch_ts"] + 2_000_000
    rows["ev"] = np.where(rng.random(60) < 0.5, 1 << 29, 1 << 28) | (3 << 30) | 1
    rows["px"], rows["qty"] = 100.1, np.round(rng.integers(0, 99, 60) * 0.001, 3)
    went = 0
    for suffix in ("npy", "npz"):
        path = tmp_path / f"f.{suffix}"
        np.save(path, rows) if suffix == "npy" else np.savez_compressed(path, data=rows)
        for raw in damaged(path.read_bytes(), BYTES):
            (tmp_path / f"g.{suffix}").write_bytes(raw)
            store = Store(tmp_path / "s")
            went += survive(
                store, lambda s=suffix, **o: HftbacktestFile(tmp_path / f"g.{s}", SPEC, **o), []
            )
    assert went > 5


@pytest.mark.parametrize("packed", [False, True])
def test_binance(tmp_path: Path, capture: list[str], packed: bool) -> None:  # noqa: FBT001
    raw = "\n".join(capture).encode()
    went = 0
    for content in damaged(raw, LINES, packed=packed):
        (tmp_path / "c").write_bytes(content)
        store = Store(tmp_path / "s")
        went += survive(store, lambda **o: BinanceCapture(tmp_path / "c", **o), [])
    assert went > ROUNDS / 2


def table_text(feed) -> bytes:
    lines = ["t,r,p,q,k,s"]
    for row in feed[:150]:
        kind, side = "T" if row["kind"] == 5 else "L", "B" if row["side"] > 0 else "S"
        price, qty = f"{row['price'] / 10:.1f}", f"{row['qty'] / 1000:.3f}"
        lines.append(f"{row['ts_event']},{row['ts_recv']},{price},{qty},{kind},{side}")
    return "\n".join(lines).encode()


@pytest.mark.parametrize("packed", [False, True])
def test_csv(tmp_path: Path, feed, packed: bool) -> None:  # noqa: FBT001
    (tmp_path / "m.toml").write_text(MAP)
    layout = load_map(tmp_path / "m.toml")
    went = 0
    for content in damaged(table_text(feed), LINES, packed=packed):
        (tmp_path / "f.csv").write_bytes(content)
        store = Store(tmp_path / "s")
        went += survive(store, lambda **o: TableFile(tmp_path / "f.csv", layout, "csv", **o), [])
    assert went > ROUNDS / 2


def test_parquet(tmp_path: Path, feed) -> None:
    import polars as pl

    (tmp_path / "m.toml").write_text(MAP)
    layout = load_map(tmp_path / "m.toml")
    pl.read_csv(table_text(feed)).write_parquet(tmp_path / "f.parquet")
    for content in damaged((tmp_path / "f.parquet").read_bytes(), BYTES):
        (tmp_path / "g.parquet").write_bytes(content)
        store = Store(tmp_path / "s")
        survive(store, lambda **o: TableFile(tmp_path / "g.parquet", layout, "parquet", **o), [])


@pytest.mark.parametrize("name", ["events.parquet", "events.arrow"])
def test_a_damaged_day_of_a_store(tmp_path: Path, feed, spec, name: str) -> None:
    store = Store(tmp_path / "s")
    store.write(feed, spec, raw=True)
    day = tmp_path / "s" / "venue=TEST" / "symbol=BTCUSDT" / "date=2024-08-09"
    whole = {p: p.read_bytes() for p in day.iterdir()}
    for content in damaged(whole[day / name], BYTES):
        for path, good in whole.items():
            path.write_bytes(good)
        (day / name).write_bytes(content)
        for market in (lambda: Store(tmp_path / "s"), lambda: open_data(day / name)):
            with suppress(HftError):
                opened = market()
                assert len(opened.read(spec.name)) <= len(feed) * 2
                opened.hash(spec.name)


def test_a_shuffled_feed_is_refused_or_sorted(tmp_path: Path, feed, spec) -> None:
    for seed in range(ROUNDS):
        order = np.random.default_rng(seed).permutation(len(feed))
        store = Store(tmp_path / "s")
        with pytest.raises(HftError, match="goes back"):
            store.write(feed[order], spec)
        assert not store.path.exists()
        store.write(feed[order], spec, repair=True, overwrite=True)
        assert check(store.read(spec.name)).ok
        for path in store.path.rglob("*.parquet"):
            path.unlink()
        for folder in sorted(store.path.rglob("*"), reverse=True):
            folder.rmdir()
        store.path.rmdir()

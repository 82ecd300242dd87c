"""Tardis CSV: each type of file, several together, and what cannot be merged."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hft.adapters.tardis import TardisFeed, open_files
from hft.data import Store, check, import_source
from hft.data.books import BookStream
from hft.data.sources import Request
from hft.errors import ConfigError, DataError, OutOfOrder, SchemaError
from hft.types import SEEN_BY_BOTH, Flag, Kind

T0 = 1_582_329_600_000_000  # us

BOOK = ("is_snapshot,side,price,amount",)
TRADES = ("id,side,price,amount",)
QUOTES = ("ask_amount,ask_price,bid_price,bid_amount",)

BOOK_LINES = (
    "0,5,true,bid,99.9,2",
    "0,5,true,bid,99.8,1.5",
    "0,5,true,ask,100.1,3",
    "10,16,false,ask,100.1,0",
    "10,16,false,ask,100.05,1",
    "20,29,true,bid,99.7,1",
    "20,29,true,ask,99.9,1",
)
TRADE_LINES = ("9,16,501,buy,100.1,3", "11,17,502,sell,99.9,0.25", "12,40,503,unknown,99.9,1")


def write(folder: Path, name: str, head: str, *lines: str, symbol: str = "XY") -> Path:
    path = folder / name
    text = f"exchange,symbol,timestamp,local_timestamp,{head}\n"
    for line in lines:
        event, recv, rest = line.split(",", 2)
        text += f"made-up,{symbol},{T0 + int(event)},{T0 + int(recv)},{rest}\n"
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


def feed_of(*paths: Path, **facts: Any) -> TardisFeed:
    return open_files(Request("tardis", list(paths), facts))[0]


def rows_of(source: TardisFeed) -> Any:
    return np.concatenate([batch.events for batch in source.batches()])


def kinds(rows: Any) -> list[str]:
    return [Kind(kind).name for kind in rows["kind"]]


def last(rows: Any) -> list[bool]:
    return [bool(flags & Flag.LAST) for flags in rows["flags"]]


def test_an_incremental_book(tmp_path: Path) -> None:
    source = feed_of(write(tmp_path, "book.csv.gz", *BOOK, *BOOK_LINES))
    rows = rows_of(source)
    begin, end = "SNAPSHOT_BEGIN", "SNAPSHOT_END"
    assert kinds(rows) == [begin, *["LEVEL"] * 3, end, *["LEVEL"] * 2, begin, *["LEVEL"] * 2, end]
    assert np.flatnonzero(last(rows)).tolist() == [4, 6, 10]
    assert rows["ts_event"][5] == (T0 + 10) * 1000
    assert rows["ts_recv"][5] == (T0 + 16) * 1000
    assert (source.spec.name, source.spec.tick, source.spec.lot) == ("XY.MADE_UP", 0.01, 0.1)
    assert source.inferred == ["tick 0.01", "lot 0.1"]
    book = BookStream()
    book.feed(rows[:7])
    assert book.levels(1, 9)[:, :2].tolist() == [[9_990, 20], [9_980, 15]]
    assert book.levels(-1, 9)[:, :2].tolist() == [[10_005, 10]]
    book.feed(rows[7:])
    assert book.levels(1, 9)[:, :2].tolist() == [[9_970, 10]]


def test_a_snapshot_over_the_end_of_a_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, "book.csv", *BOOK, *BOOK_LINES)
    whole = rows_of(feed_of(path))
    for size in (40, 90, 170):
        monkeypatch.setattr("hft.data.text.BLOCK_BYTES", size)
        assert (rows_of(feed_of(path)) == whole).all()


def test_trades(tmp_path: Path) -> None:
    rows = rows_of(feed_of(write(tmp_path, "trades.csv", *TRADES, *TRADE_LINES)))
    assert rows["side"].tolist() == [1, -1, 0]
    assert rows["seq"].tolist() == [501, 502, 503]
    assert rows["qty"].tolist() == [300, 25, 100]
    assert all(last(rows))


def test_ids_that_are_no_numbers_are_not_taken(tmp_path: Path) -> None:
    rows = rows_of(feed_of(write(tmp_path, "trades.csv", *TRADES, "1,2,b2c1-77,buy,100.1,3")))
    assert rows["seq"].tolist() == [0]


def test_quotes_are_the_best_of_both_sides(tmp_path: Path) -> None:
    lines = ("1,2,5,100.2,100.1,7", "2,3,,,100.1,7")
    rows = rows_of(feed_of(write(tmp_path, "quotes.csv", *QUOTES, *lines)))
    assert kinds(rows) == ["SNAPSHOT_BEGIN", "LEVEL", "LEVEL", "SNAPSHOT_END", "LEVEL"]
    assert (rows["price"].tolist(), rows["qty"].tolist()) == (
        [0, 1001, 1002, 0, 1002],
        [0, 7, 5, 0, 0],
    )
    assert last(rows) == [False, False, False, True, True]
    book = BookStream()
    book.feed(rows)
    assert len(book.levels(-1, 1)) == 0


def test_snapshots_of_the_best_levels(tmp_path: Path) -> None:
    names = [f"{s}[{i}].{w}" for i in (0, 1) for s, w in (("asks", "price"), ("asks", "amount"))]
    names += [name.replace("asks", "bids") for name in names]
    lines = ("1,2,100.2,1,100.3,2,100.1,7,,", "3,4,100.2,1,100.4,2,100.1,9,100.0,1")
    source = feed_of(write(tmp_path, "snap.csv", ",".join(names), *lines))
    rows = rows_of(source)
    assert (rows["flags"] & Flag.UNCERTAIN != 0).all()
    book = BookStream()
    book.feed(rows)
    assert book.levels(1, 9)[:, :2].tolist() == [[1001, 9], [1000, 1]]
    assert book.levels(-1, 9)[:, :2].tolist() == [[1002, 1], [1004, 2]]


def test_files_of_one_instrument_are_merged_by_arrival(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = write(tmp_path, "book.csv", *BOOK, *BOOK_LINES)
    trades = write(tmp_path, "trades.csv", *TRADES, *TRADE_LINES)
    source = feed_of(book, trades)
    rows = rows_of(source)
    arrived = [(int(r["ts_recv"]) // 1000 - T0, Kind(r["kind"]).name) for r in rows[5:]]
    assert arrived == [
        (16, "LEVEL"),
        (16, "LEVEL"),
        (16, "TRADE"),
        (17, "TRADE"),
        (29, "SNAPSHOT_BEGIN"),
        (29, "LEVEL"),
        (29, "LEVEL"),
        (29, "SNAPSHOT_END"),
        (40, "TRADE"),
    ]
    assert source.spec.lot == 0.01  # the finer of both files
    monkeypatch.setattr("hft.data.text.BLOCK_BYTES", 60)
    assert (rows_of(feed_of(book, trades)) == rows).all()
    imported = import_source(feed_of(book, trades), Store(tmp_path / "s"))
    assert imported.counts["rows split by side"] == 2  # trades told after a later book
    seen = Store(tmp_path / "s").read("XY.MADE_UP")
    assert (seen["flags"] & SEEN_BY_BOTH != 0).all()
    assert check(seen).ok


def test_several_symbols_in_one_file(tmp_path: Path) -> None:
    path = write(tmp_path, "trades.csv", *TRADES, *TRADE_LINES)
    other = write(tmp_path, "other.csv", *TRADES, "3,4,9,buy,7.1234,5", symbol="ZZ")
    path.write_text(path.read_text() + other.read_text().splitlines()[1] + "\n")
    first, second = open_files(Request("tardis", [path]))
    assert (first.spec.symbol, second.spec.symbol) == ("XY", "ZZ")
    assert (first.spec.tick, second.spec.tick) == (0.1, 0.0001)
    assert (len(rows_of(first)), len(rows_of(second))) == (3, 1)
    assert second.counts == {"lines": 1, "rows of other instruments": 3}
    (only,) = open_files(Request("tardis", [path], {"symbol": "ZZ"}))
    assert only.spec.symbol == "ZZ"
    with pytest.raises(ConfigError, match=r"no AA in the first .* they hold XY, ZZ"):
        open_files(Request("tardis", [path], {"symbol": "AA"}))


def test_what_is_given_counts_more_than_decimals(tmp_path: Path) -> None:
    path = write(tmp_path, "trades.csv", *TRADES, *TRADE_LINES)
    source = feed_of(path, tick=0.05, venue="VENUE")
    assert (source.spec.name, source.spec.tick) == ("XY.VENUE", 0.05)
    assert source.inferred == ["lot 0.01"]
    with pytest.raises(DataError, match=r"trades.csv: line 2: price 100.1 is off the tick of 0.2"):
        rows_of(feed_of(path, tick=0.2))


def test_refusals_name_the_file_and_line(tmp_path: Path) -> None:
    good = TRADE_LINES[0]
    for line, says in {
        "1,2,7,hold,100.1,3": "line 3: column side: 'hold'",
        "1,2,7,buy,100.1,": "line 3: column amount: '' is no finite number",
        "1,2,7,buy,inf,3": "line 3: column price: 'inf'",
        "-9999999999999999,2,7,buy,100.1,3": "line 3: timestamp .* is no time in us",
    }.items():
        path = write(tmp_path, "trades.csv", *TRADES, good, line)
        with pytest.raises(DataError, match=f"trades.csv: {says}"):
            rows_of(feed_of(path))
        mended = open_files(Request("tardis", [path], repair=True))[0]
        assert len(rows_of(mended)) == 1
    with pytest.raises(SchemaError, match="want incremental_book_L2, trades"):
        feed_of(write(tmp_path, "x.csv", "open,close", "1,2,3,4"))


def test_two_files_of_one_type_are_refused(tmp_path: Path) -> None:
    paths = [write(tmp_path, name, *TRADES, *TRADE_LINES) for name in ("a.csv", "b.csv")]
    with pytest.raises(ConfigError, match="trades, trades of one instrument"):
        feed_of(*paths)


def test_arrival_that_goes_back_is_named_in_a_merge(tmp_path: Path) -> None:
    book = write(tmp_path, "book.csv", *BOOK, *BOOK_LINES)
    trades = write(tmp_path, "trades.csv", *TRADES, TRADE_LINES[2], TRADE_LINES[0])
    with pytest.raises(OutOfOrder, match=r"trades.csv: line 3: local_timestamp .* goes back"):
        rows_of(feed_of(book, trades))
    mended = open_files(Request("tardis", [book, trades], repair=True))[0]
    done = import_source(mended, Store(tmp_path / "s"), repair=True)
    assert done.repaired["rows sorted by ts_recv"] == 1


def test_a_cut_file_gives_what_came_before(tmp_path: Path) -> None:
    lines = [f"{at},{at + 5},{at},buy,100.1,3" for at in range(5_000)]
    path = write(tmp_path, "trades.csv.gz", *TRADES, *lines)
    path.write_bytes(path.read_bytes()[:-500])
    with pytest.raises(DataError, match=r"damaged after line \d+"):
        rows_of(feed_of(path))
    mended = open_files(Request("tardis", [path], repair=True))[0]
    assert 0 < len(rows_of(mended)) < 5_000
    assert mended.counts["files damaged at the end"] == 1


def test_a_last_number_may_be_cut_too(tmp_path: Path) -> None:
    path = write(tmp_path, "trades.csv", *TRADES, TRADE_LINES[0], "11,17,502,sell,99.9,0.25")
    path.write_bytes(path.read_bytes()[:-2])  # 0.2
    with pytest.raises(DataError, match="line 3 is cut: it does not end in a newline"):
        rows_of(feed_of(path))
    mended = open_files(Request("tardis", [path], repair=True))[0]
    assert len(rows_of(mended)) == 1
    assert mended.counts["lines cut at the end"] == 1


# Real files.

QUOTES_FILE = "crypto_l2/tardis_binance-futures_quotes_20200222.csv.gz"
TRADES_FILE = "crypto_l2/tardis_binance-futures_trades_20200222.csv.gz"


def test_quotes_and_trades_of_binance_futures(data_dir: Path, tmp_path: Path) -> None:
    paths = [data_dir / QUOTES_FILE, data_dir / TRADES_FILE]
    for path in paths:
        if not path.is_file():
            pytest.skip(f"no {path}")
    source = feed_of(*paths)
    assert (source.spec.name, source.spec.tick) == ("BTCUSDT.BINANCE_FUTURES", 0.01)
    done = import_source(source, Store(tmp_path))
    assert source.counts["lines"] == 9_999 + 9_999
    assert done.least_latency_ns is not None
    assert done.least_latency_ns > 100_000_000  # as recorded: 115 ms and more
    rows = Store(tmp_path).read("BTCUSDT.BINANCE_FUTURES")
    ours = rows[rows["flags"] & Flag.SEEN_BY_US != 0]
    assert np.count_nonzero(ours["kind"] == Kind.TRADE) == 9_999
    book = BookStream()
    touch = book.feed(ours)
    assert len(book.levels(1, 9)) == len(book.levels(-1, 9)) == 1
    both = (touch["bid_lots"] > 0) & (touch["ask_lots"] > 0)
    assert not (both & (touch["bid"] >= touch["ask"])).any()

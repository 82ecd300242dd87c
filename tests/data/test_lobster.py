"""LOBSTER: types of messages, the opening book, and the book of the real files."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from hft.adapters.lobster import LobsterFile, open_files
from hft.data.books import BookStream
from hft.data.sources import Request
from hft.errors import ConfigError, DataError, SchemaError
from hft.types import Flag, Kind, Trading

MIDNIGHT = 1_340_251_200_000_000_000  # 2012-06-21 in New York
NAME = "ACME_2012-06-21_34200000_57600000_message_2.csv"

MESSAGES = """\
34200.000000001,1,11,30,1000000,1
34200.5,1,12,10,1000200,-1
34201,2,11,5,1000000,1
34201.25,4,11,5,1000000,1
34202,5,0,7,1000150,-1
34203,6,0,100,1000100,-1
34204,7,0,0,-1,-1
34205,7,0,0,0,-1
34206,7,0,0,1,-1
34207,3,11,20,1000000,1
"""


def source_of(folder: Path, text: str, name: str = NAME, **more: Any) -> LobsterFile:
    path = folder / name
    path.write_text(text)
    return open_files(Request("lobster", [path], **more))[0]


def rows_of(source: LobsterFile) -> Any:
    return np.concatenate([batch.events for batch in source.batches()])


def each_line_a_packet(source: LobsterFile) -> tuple[Any, Any]:
    """Rows with LAST after each line of the file and nowhere else, and their lines."""
    batches = list(source.batches())
    rows = np.concatenate([batch.events for batch in batches])
    lines = np.concatenate([batch.lines for batch in batches])
    ends = np.append(lines[1:] != lines[:-1], True)
    rows["flags"] &= ~np.uint16(Flag.LAST)
    rows["flags"][ends] |= np.uint16(Flag.LAST)
    return rows, lines[ends]


def test_every_type_of_message(tmp_path: Path) -> None:
    source = source_of(tmp_path, MESSAGES)
    rows = rows_of(source)
    said = [(Kind(r["kind"]).name, r["side"], r["price"], r["qty"], r["order_id"]) for r in rows]
    assert said == [
        ("ADD", 1, 10_000, 30, 11),
        ("ADD", -1, 10_002, 10, 12),
        ("CANCEL", 1, 10_000, 5, 11),
        ("EXECUTE", 1, 10_000, 5, 11),
        ("TRADE", 1, 10_002, 7, 0),  # a hidden seller: the buyer took; inside the tick, rounded
        ("TRADE", 0, 10_001, 100, 0),
        ("STATUS", 0, 0, 0, 0),
        ("STATUS", 0, 0, 0, 0),
        ("STATUS", 0, 0, 0, 0),
        ("CANCEL", 1, 10_000, 0, 11),
    ]
    assert rows["ref_id"][6:9].tolist() == [Trading.HALT, Trading.AUCTION, Trading.OPEN]
    assert rows["ts_event"][0] == MIDNIGHT + 34_200_000_000_001
    assert (rows["ts_recv"] == rows["ts_event"]).all()
    assert source.counts == {"messages": 10, "prints rounded": 1}
    assert source.spec.name == "ACME.NASDAQ"
    assert (source.spec.tick, source.spec.lot, source.spec.currency) == (0.01, 1.0, "USD")


def test_header_gzip_and_further_columns_change_nothing(tmp_path: Path) -> None:
    whole = rows_of(source_of(tmp_path, MESSAGES))
    more = "".join(f"{line},null\n" for line in MESSAGES.splitlines())
    with_header = "Time,Type,OrderID,Size,Price,Direction\n" + MESSAGES
    assert (rows_of(source_of(tmp_path, with_header)) == whole).all()
    assert (rows_of(source_of(tmp_path, more)) == whole).all()
    path = tmp_path / f"{NAME}.gz"
    path.write_bytes(gzip.compress(MESSAGES.encode()))
    assert (rows_of(open_files(Request("lobster", [path]))[0]) == whole).all()


# Bids 100.00 x 50 and 99.99 x 40, asks 100.02 x 60: the book after the first message.
BOOK = "1000200,60,1000000,50,9999999999,0,999900,40\n"


def with_book(folder: Path, text: str) -> Any:
    (folder / NAME.replace("message", "orderbook")).write_text(BOOK)
    source = source_of(folder, text)
    return source, rows_of(source)


def test_the_opening_book_is_before_the_first_message(tmp_path: Path) -> None:
    # The first message added 20 of the 50, so 30 rested before.
    source, rows = with_book(tmp_path, "34200,1,7,20,1000000,1\n")
    assert [Kind(k).name for k in rows["kind"]] == [
        "SNAPSHOT_BEGIN",
        *["ADD"] * 3,
        "SNAPSHOT_END",
        "ADD",
    ]
    opening = rows[1:4]
    assert sorted(zip(opening["side"], opening["price"], opening["qty"], strict=True)) == [
        (-1, 10_002, 60),
        (1, 9_999, 40),
        (1, 10_000, 30),
    ]
    assert (opening["order_id"] < 0).all()
    assert (opening["flags"] & Flag.UNCERTAIN != 0).all()
    assert "orderbook" in source.inferred[0]
    book = BookStream()
    book.feed(rows)
    assert book.levels(1, 2).tolist() == [[10_000, 50, 2], [9_999, 40, 1]]
    assert book.queue(1, 10_000)[:, 1].tolist() == [30, 20]


def test_an_execution_undone_gives_the_level_back(tmp_path: Path) -> None:
    _, rows = with_book(tmp_path, "34200,4,7,20,1000000,1\n")
    book = BookStream()
    book.feed(rows[:5])
    assert book.levels(1, 1).tolist() == [[10_000, 70, 1]]
    book.feed(rows[5:])
    assert book.levels(1, 1).tolist() == [[10_000, 50, 1]]
    assert book.faults["unknown_id"] == 0


def test_orders_never_added_reduce_the_opening_level_while_it_has_lots(tmp_path: Path) -> None:
    text = """\
34200,1,7,20,1000000,1
34201,4,5,10,1000000,1
34202,2,7,5,1000000,1
34203,3,6,25,1000000,1
34204,3,4,9,1000000,1
34205,3,3,9,990000,1
"""
    source, rows = with_book(tmp_path, text)
    said = [(Kind(r["kind"]).name, r["order_id"] < 0, r["qty"]) for r in rows[6:]]
    assert said == [
        ("EXECUTE", True, 10),  # 30 before the file began: 20 left
        ("CANCEL", False, 5),  # an order we know
        ("CANCEL", True, 20),  # 25 of an order we do not know: 20 from the level ...
        ("CANCEL", False, 5),  # ... and 5 beyond
        ("CANCEL", False, 0),  # nothing left of the level
        ("CANCEL", False, 0),  # no such level
    ]
    assert source.counts["messages about the opening book"] == 2
    book = BookStream()
    book.feed(rows)
    assert book.faults["unknown_id"] == 3
    assert book.queue(1, 10_000).tolist() == [[7, 15]]


def test_blocks_do_not_change_what_the_opening_book_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(5)
    lines, live = [], list(range(1, 40))  # of which none was added
    for at in range(600):
        if at % 2 and live:
            one = live.pop(int(rng.integers(len(live))))
            price = 1_000_000 - one % 3 * 100
            lines.append(f"{34200 + at},{rng.choice([3, 4])},{one},{one % 7 + 1},{price},1")
        else:
            one = 100 + at
            price = 1_000_000 - one % 3 * 100
            lines.append(f"{34200 + at},1,{one},{one % 7 + 1},{price},1")
            live.append(one)
    _, whole = with_book(tmp_path, "\n".join(lines) + "\n")
    assert (whole["order_id"][5:] < 0).any()
    monkeypatch.setattr("hft.data.csv_blocks.BLOCK_BYTES", 100)
    assert (rows_of(open_files(Request("lobster", [tmp_path / NAME]))[0]) == whole).all()


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("34200,8,1,1,1000000,1", "line 1: type is 8, want 1 to 7"),
        ("34200,1,1,0,1000000,1", "line 1: size is 0, want above 0"),
        ("34200,1,1,5,1000000,0", "line 1: side is 0"),
        ("34200,1,1,5,-5,1", "line 1: price is -5"),
        ("99999,1,1,5,1000000,1", "line 1: time is 99999"),
        ("34200,1,1,5,1000050,1", "off the tick"),
        ("34200,1,1,5,x,1", "line 1: column price: 'x' is no whole number"),
        ("34200,1,1,5,1000000", "6: time, type, order_id, size, price, side"),
    ],
)
def test_impossible_messages_are_refused_by_line(line: str, says: str, tmp_path: Path) -> None:
    with pytest.raises((DataError, SchemaError), match=says):
        rows_of(source_of(tmp_path, line + "\n"))


def test_repair_leaves_out_what_cannot_be_and_counts(tmp_path: Path) -> None:
    text = MESSAGES + "34208,9,1,1,1000000,1\n34209,1,,\n34210,1,13,5,1000000,1\n"
    source = source_of(tmp_path, text, repair=True)
    assert len(rows_of(source)) == 11
    assert source.counts["messages impossible"] == 1
    assert source.counts["lines unreadable"] == 1


def test_the_name_must_say_symbol_and_date(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="SYMBOL_YYYY-MM-DD"):
        source_of(tmp_path, MESSAGES, "messages.csv")
    with pytest.raises(ConfigError, match="is no date"):
        source_of(tmp_path, MESSAGES, "ACME_2012-13-21_message_2.csv")
    lone = tmp_path / "ACME_2012-06-22_orderbook_2.csv"
    lone.write_text(BOOK)
    with pytest.raises(ConfigError, match="no message file"):
        open_files(Request("lobster", [lone]))


# Real files.

AAPL = "us_l3/AAPL_2012-06-21_0930-1030_message_50.csv.gz"
AAPL_BOOK = "us_l3/AAPL_2012-06-21_first672_orderbook_50.csv.gz"
AAPL_TOUCH = "us_l3/AAPL_2012-06-21_0930-1030_orderbook_50_L1cols.csv.gz"
AMZN = "us_l3/AMZN_2012-06-21_message_1.csv.gz"
AMZN_BOOK = "us_l3/AMZN_2012-06-21_orderbook_1.csv.gz"


def real(folder: Path, *names: str) -> list[Path]:
    paths = [folder / name for name in names]
    for path in paths:
        if not path.is_file():
            pytest.skip(f"no {path}")
    return paths


def test_aapl_from_the_50_level_book(data_dir: Path) -> None:
    messages, seed, touch = real(data_dir, AAPL, AAPL_BOOK, AAPL_TOUCH)
    rows, lines = each_line_a_packet(open_files(Request("lobster", [messages, seed]))[0])
    book = BookStream()
    seen = book.feed(rows)
    assert lines.tolist() == list(range(1, 91_998))
    ask, ask_lots, bid, bid_lots = pl.read_csv(touch, has_header=False).to_numpy()[1:].T
    seen = seen[1:]
    price = (seen["ask"] * 100 == ask) & (seen["bid"] * 100 == bid)
    size = (seen["ask_lots"] == ask_lots) & (seen["bid_lots"] == bid_lots)
    assert len(price) == 91_996
    assert np.count_nonzero(price) >= 91_918
    assert np.count_nonzero(price & size) >= 91_906
    assert book.faults == {"unknown_id": 46, "reused_id": 0, "overfill": 0}


def test_amzn_executions_are_at_the_touch_before_them(data_dir: Path) -> None:
    messages, touch = real(data_dir, AMZN, AMZN_BOOK)
    source = open_files(Request("lobster", [messages]))[0]
    assert AMZN_BOOK.rpartition("/")[2] in source.inferred[0]
    rows, lines = each_line_a_packet(source)
    assert source.counts["messages"] == 57_515
    assert lines.tolist() == list(range(2, 57_517))  # the header is line 1
    books = pl.read_csv(touch).to_numpy()
    batches = list(source.batches())
    line = np.concatenate([batch.lines for batch in batches])
    executed = rows["kind"] == Kind.EXECUTE
    before = books[line[executed] - 3]  # row k of the book is after message k, at line k + 2
    best = np.where(rows["side"][executed] > 0, before[:, 2], before[:, 0])
    assert np.count_nonzero(best == rows["price"][executed] * 100) == 8_974 == executed.sum()


def test_the_same_day_twice_is_the_same(data_dir: Path) -> None:
    source = open_files(Request("lobster", real(data_dir, AMZN)))[0]
    first = rows_of(source)
    counts = dict(source.counts)
    assert (rows_of(source) == first).all()
    assert source.counts == counts

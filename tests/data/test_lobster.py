"""LOBSTER: types of messages, the opening book, and the book of the real files."""

from __future__ import annotations

import gzip
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from hft.adapters.lobster import LobsterFile, open_files
from hft.adapters.lobster.books import NO_PRICE
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


SEED = "ACME_2012-06-21_opening_orderbook_2.csv"


def with_book(folder: Path, text: str) -> Any:
    """Messages, and an order book file that has its first row only."""
    (folder / SEED).write_text(BOOK)
    (folder / NAME).write_text(text)
    source = open_files(Request("lobster", [folder / NAME, folder / SEED]))[0]
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
    assert source.counts["messages about unknown orders in view"] == 2
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
    monkeypatch.setattr("hft.data.text.BLOCK_BYTES", 100)
    paths = [tmp_path / NAME, tmp_path / SEED]
    assert (rows_of(open_files(Request("lobster", paths))[0]) == whole).all()


# One level a side: what is worse than the touch is out of view.
FOLLOWED = """\
34200,1,1,30,1000000,1
34201,1,2,20,1000100,1
34202,3,2,20,1000100,1
34203,4,77,10,1000000,1
34204,4,77,25,1000000,1
34205,1,3,5,999900,1
"""
FOLLOWED_BOOK = """\
1000200,60,1000000,30
1000200,60,1000100,20
1000200,60,1000000,35
1000200,60,1000000,25
1000200,60,999800,40
1000200,60,999900,5
"""


def followed(folder: Path, messages: str = FOLLOWED, book: str = FOLLOWED_BOOK) -> LobsterFile:
    (folder / NAME.replace("message", "orderbook")).write_text(book)
    return source_of(folder, messages)


def test_the_book_shows_the_levels_in_view(tmp_path: Path) -> None:
    source = followed(tmp_path)
    rows, lines = each_line_a_packet(source)
    own = [("x" if i < 0 else int(i)) for i in rows["order_id"]]
    said = [
        (Kind(k).name, o, int(q)) for k, o, q in zip(rows["kind"], own, rows["qty"], strict=True)
    ]
    assert said[3:] == [
        ("ADD", 1, 30),
        ("ADD", 2, 20),
        ("CANCEL", 1, 0),  # its level leaves the view
        ("CANCEL", 2, 0),
        ("ADD", "x", 35),  # and is back, with 5 more that nobody told
        ("EXECUTE", "x", 10),
        ("EXECUTE", "x", 25),
        ("ADD", "x", 40),
        ("ADD", 3, 5),
        ("CANCEL", "x", 0),
    ]
    book = BookStream()
    seen = book.feed(rows)
    told = np.array([line.split(",") for line in FOLLOWED_BOOK.split()], np.int64)
    assert (seen["bid"] * 100).tolist() == told[:, 2].tolist()
    assert seen["bid_lots"].tolist() == told[:, 3].tolist()
    assert not any(book.faults.values())
    assert len(lines) == 6
    assert source.counts["levels of unknown orders"] == 3


def market(rng: np.random.Generator, steps: int, n: int) -> tuple[list[str], list[Any]]:
    """A random book of which LOBSTER shows `n` levels: messages, and the view after each."""
    orders: dict[int, list[int]] = {}  # side, price, size

    def view() -> list[Any]:
        out = []
        for side in (-1, 1):
            sizes: dict[int, int] = {}
            for s, price, size in orders.values():
                if s == side:
                    sizes[price] = sizes.get(price, 0) + size
            best = sorted(sizes, reverse=side > 0)[:n]
            out.append([(price, sizes[price]) for price in best])
        return out

    messages, views = [], []
    for at in range(steps):
        before, side = view(), int(rng.choice([-1, 1]))
        mine = [i for i, order in orders.items() if order[0] == side]
        what = int(rng.choice([1, 1, 1, 2, 3, 3, 4]))
        if what == 1 or len(mine) < 2:
            what, which = 1, 1000 + at
            away = 100 * int(rng.integers(1, 12))
            order = [side, 1_000_000 - side * away, int(rng.integers(1, 9))]
            orders[which], size = order, order[2]
        else:
            which = int(rng.choice(mine))
            if what == 4:  # the first of the best level
                which = max(mine, key=lambda i: (orders[i][1] * orders[i][0], -i))
            order = orders[which]
            size = order[2] if what == 3 or order[2] == 1 else int(rng.integers(1, order[2]))
            what = 3 if what == 2 and size == order[2] else what
            order[2] -= size
            if not order[2]:
                del orders[which]
        if view() != before:
            messages.append(f"{34200 + at},{what},{which},{size},{order[1]},{side}")
            views.append(view())
    return messages, views


@pytest.mark.parametrize("n", [1, 2, 5, 20])
def test_the_book_is_the_view_of_a_random_market(
    n: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages, views = market(np.random.default_rng(n), 700, n)
    start = 40
    lines = []
    for view in views[start:]:
        sides = [
            side + [(NO_PRICE * sign, 0)] * (n - len(side))
            for side, sign in zip(view, (1, -1), strict=True)
        ]
        flat = [number for pair in zip(*sides, strict=True) for level in pair for number in level]
        lines.append(",".join(map(str, flat)))
    source = followed(tmp_path, "\n".join(messages[start:]) + "\n", "\n".join(lines) + "\n")
    rows, _ = each_line_a_packet(source)
    book = BookStream()
    ends = np.flatnonzero(rows["flags"] & Flag.LAST) + 1
    for view, part in zip(views[start:], np.split(rows, ends[:-1]), strict=True):
        book.feed(part)
        for side, levels in zip((-1, 1), view, strict=True):
            told = [(price // 100, size) for price, size in levels]
            assert [(p, q) for p, q, _ in book.levels(side, n + 1).tolist()] == told
    assert not any(book.faults.values())
    monkeypatch.setattr("hft.data.text.BLOCK_BYTES", 300)
    assert (each_line_a_packet(source)[0] == rows).all()


def test_an_order_book_file_that_ends_early(tmp_path: Path) -> None:
    short = FOLLOWED_BOOK.splitlines(keepends=True)[:3]
    with pytest.raises(DataError, match="ends after row 3, but there is a message 6"):
        rows_of(followed(tmp_path, book="".join(short)))
    mended = open_files(Request("lobster", [tmp_path / NAME], repair=True))[0]
    assert len(rows_of(mended))
    assert mended.counts["order book ends after row"] == 3


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


def test_symbol_and_date_may_be_given(tmp_path: Path) -> None:
    named = rows_of(source_of(tmp_path, MESSAGES))
    given: dict[str, Any] = {"facts": {"symbol": "ACME"}, "date": date(2012, 6, 21)}
    for name in ("messages.csv", "ACME_2012-06-22_message_2.csv"):
        source = source_of(tmp_path, MESSAGES, name, **given)
        assert source.spec.name == "ACME.NASDAQ"
        assert (rows_of(source) == named).all()
    with pytest.raises(ConfigError, match="give --symbol and --date"):
        source_of(tmp_path, MESSAGES, "messages.csv", date=date(2012, 6, 21))
    with pytest.raises(ConfigError, match="no message file of ACM; those given are of ACME"):
        source_of(tmp_path, MESSAGES, facts={"symbol": "ACM"})


def test_sizes_are_shares_whatever_lot_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"ACME.NASDAQ: lot 100; .* want lot 1"):
        source_of(tmp_path, MESSAGES, facts={"lot": 100.0})


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


def test_aapl_with_all_50_levels(data_dir: Path, tmp_path: Path) -> None:
    messages, book_file = real(data_dir, AAPL, AAPL_BOOK)
    text = gzip.decompress(messages.read_bytes()).splitlines(keepends=True)[:672]
    (tmp_path / "AAPL_2012-06-21_message_50.csv").write_bytes(b"".join(text))
    (tmp_path / "AAPL_2012-06-21_orderbook_50.csv.gz").write_bytes(book_file.read_bytes())
    rows = rows_of(open_files(Request("lobster", sorted(tmp_path.iterdir())))[0])
    book = BookStream()
    book.feed(rows)
    told = pl.read_csv(book_file, has_header=False).to_numpy()[-1].reshape(-1, 2, 2)
    for side, at in ((1, 1), (-1, 0)):
        assert (book.levels(side, 99)[:, :2] == told[:, at] // [100, 1]).all()
    assert book.faults == {"unknown_id": 0, "reused_id": 0, "overfill": 0}


def test_amzn_book_is_the_order_book_file(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    messages, touch = real(data_dir, AMZN, AMZN_BOOK)
    source = open_files(Request("lobster", [messages]))[0]  # the book lies beside it
    assert AMZN_BOOK.rpartition("/")[2] in source.inferred[0]
    rows, lines = each_line_a_packet(source)
    assert source.counts["messages"] == 57_515
    assert lines.tolist() == list(range(2, 57_517))  # the header is line 1
    book = BookStream()
    seen = book.feed(rows)
    told = pl.read_csv(touch).to_numpy()
    for at, name in enumerate(("ask", "ask_lots", "bid", "bid_lots")):
        unit = 100 if at % 2 == 0 else 1
        assert (seen[name] * unit == told[:, at]).all()
    assert book.faults == {"unknown_id": 0, "reused_id": 0, "overfill": 0}
    monkeypatch.setattr("hft.data.text.BLOCK_BYTES", 100_000)
    assert (each_line_a_packet(source)[0] == rows).all()


def test_amzn_executions_are_at_the_touch_before_them(data_dir: Path) -> None:
    rows, lines = each_line_a_packet(open_files(Request("lobster", real(data_dir, AMZN)))[0])
    seen = BookStream().feed(rows)
    executed = np.flatnonzero(rows["kind"] == Kind.EXECUTE)
    before = np.searchsorted(seen["row"], executed) - 1  # the packet before
    best = np.where(rows["side"][executed] > 0, seen["bid"][before], seen["ask"][before])
    assert len(seen) == len(lines)
    assert len(executed) == 8_974
    assert np.count_nonzero(best == rows["price"][executed]) == 8_974


def test_the_same_day_twice_is_the_same(data_dir: Path) -> None:
    source = open_files(Request("lobster", real(data_dir, AMZN)))[0]
    first = rows_of(source)
    counts = dict(source.counts)
    assert (rows_of(source) == first).all()
    assert source.counts == counts

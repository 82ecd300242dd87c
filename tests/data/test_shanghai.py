"""Shanghai order and trade files: the rule of what is published, the merge, and real days."""

from __future__ import annotations

import gzip
import zipfile
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hft.data import Store, check, import_source
from hft.data.books import BookStream
from hft.data.sources import open_sources
from hft.errors import ConfigError, DataError, OutOfOrder, SchemaError, SequenceGap
from hft.types import EVENT, Flag, Kind, Trading

DAY = "20230201"
ORDERS = (
    "DataStatus,OrderIndex,OrderChannel,SecurityID,OrderTime,OrderType,OrderNO,OrderPrice,Balance,"
    "OrderBSFlag,BizIndex,LocalTime,SeqNo"
)
TRADES = (
    "DataStatus,TradeIndex,TradeChan,SecurityID,TradTime,TradPrice,TradVolume,TradeMoney,"
    "TradeBuyNo,TradeSellNo,TradeBSFlag,BizIndex,LocalTime,SeqNo"
)


def order(seq: int, time: str, what: str, number: int, price: str, left: int, side: str) -> str:
    return f"0,1,6,600519,{time},{what},{number},{price},{left},{side},{seq},{time},1"


def trade(seq: int, time: str, price: str, qty: int, buyer: int, seller: int, flag: str) -> str:
    return f"0,1,6,600519,{time},{price},{qty},0,{buyer},{seller},{flag},{seq},{time},1"


def day(folder: Path, orders: list[str], trades: list[str]) -> list[Path]:
    """The two files, trades first: the order in which they are given must not matter."""
    paths = [folder / f"trade_{DAY}.csv", folder / f"entrust_{DAY}.csv"]
    for path, header, lines in zip(paths, (TRADES, ORDERS), (trades, orders), strict=True):
        path.write_text("\n".join([header, *lines, ""]))
    return paths


def rows_of(paths: list[Path], **options: Any) -> Any:
    """Rows of the only source."""
    (source,) = open_sources("shanghai", paths, **options)
    return np.concatenate([np.empty(0, EVENT), *(b.events for b in source.batches())])


def told(rows: Any) -> list[tuple[Any, ...]]:
    fields = ("kind", "side", "price", "qty", "order_id", "ref_id")
    return [(Kind(int(r["kind"])).name, *(int(r[f]) for f in fields[1:])) for r in rows]


def test_a_taker_is_published_with_what_is_left(tmp_path: Path) -> None:
    at = "10:00:00.010"
    paths = day(
        tmp_path,
        [
            order(1, "09:59:00.000", "A", 11, "10.00999999999999", 300, "S"),
            order(4, at, "A", 12, "10.010", 200, "B"),
            order(5, at, "D", 12, "0", 200, "B"),
        ],
        [
            trade(2, at, "10.010000000000001", 100, 12, 11, "B"),
            trade(3, at, "10.01", 200, 12, 11, "B"),
        ],
    )
    rows = rows_of(paths)
    assert told(rows) == [
        ("CLEAR", 0, 0, 0, 0, 0),
        ("STATUS", 0, 0, 0, 0, Trading.OPEN),
        ("ADD", -1, 1001, 300, 11, 0),
        ("EXECUTE", -1, 1001, 100, 11, 12),
        ("EXECUTE", -1, 1001, 200, 11, 12),
        ("ADD", 1, 1001, 200, 12, 0),
        ("CANCEL", 1, 0, 200, 12, 0),
    ]
    assert rows["seq"].tolist() == [0, 0, 1, 2, 3, 4, 5]
    last = rows["flags"] & Flag.LAST != 0
    assert last.tolist() == [False, True, True, False, False, True, True]  # a taker is one packet
    book = BookStream()
    book.feed(rows)
    assert book.live_orders == 0
    assert not any(book.faults.values())


def test_an_auction_matches_two_that_rest_and_ends_with_its_matches(tmp_path: Path) -> None:
    match = "09:25:00.940"
    paths = day(
        tmp_path,
        [
            order(1, "09:15:00.000", "A", 1, "10.02", 500, "B"),
            order(2, "09:16:00.000", "A", 2, "10.00", 300, "S"),
            order(5, "09:30:00.010", "A", 3, "10.03", 100, "S"),
        ],
        [trade(3, match, "10.01", 200, 1, 2, "N"), trade(4, match, "10.01", 100, 1, 2, "N")],
    )
    rows = rows_of(paths)
    assert told(rows)[1:] == [
        ("STATUS", 0, 0, 0, 0, Trading.AUCTION),
        ("ADD", 1, 1002, 500, 1, 0),
        ("ADD", -1, 1000, 300, 2, 0),
        ("EXECUTE", 0, 1001, 200, 1, 2),
        ("EXECUTE", 0, 1001, 100, 1, 2),
        ("STATUS", 0, 0, 0, 0, Trading.HALT),
        ("STATUS", 0, 0, 0, 0, Trading.OPEN),
        ("ADD", -1, 1003, 100, 3, 0),
    ]
    assert (rows["flags"][rows["kind"] == Kind.STATUS] & Flag.UNCERTAIN).all()
    book = BookStream()
    touch = book.feed(rows)
    crossed = (touch["bid"] >= touch["ask"]) & (touch["bid_lots"] > 0) & (touch["ask_lots"] > 0)
    assert (touch["trading"][crossed] == Trading.AUCTION).all()
    assert book.levels(1, 5).tolist() == [[1002, 200, 1]]


def test_a_row_is_received_once_those_before_it_are(tmp_path: Path) -> None:
    late = order(1, "10:00:00.000", "A", 1, "10.01", 100, "S").replace(
        "1,10:00:00.000,1", "1,10:00:07.000,1"
    )
    paths = day(tmp_path, [late], [trade(2, "10:00:00.000", "10.01", 100, 2, 1, "B")])
    (source,) = open_sources("shanghai", paths)
    rows = next(iter(source.batches())).events
    assert (rows["ts_recv"] - rows["ts_event"] == 7_000_000_000)[2:].all()
    assert source.counts == {"trade": 1, "entrust": 1, "receive times raised": 1}
    assert "ts_recv" in " ".join(source.cannot_tell)


def two_orders() -> list[str]:
    return [order(n, f"10:00:0{n}.000", "A", n, "10.01", 100, "S") for n in (1, 3)]


def one_trade() -> list[str]:
    return [trade(2, "10:00:02.000", "10.01", 100, 9, 1, "B")]


def test_files_come_packed_and_each_day_has_its_own_book(tmp_path: Path) -> None:
    paths = day(tmp_path, two_orders(), one_trade())
    whole = rows_of(paths)
    with zipfile.ZipFile(tmp_path / "next.zip", "w") as archive:
        for path in paths:
            name = path.name.replace(DAY, "20230202")
            archive.writestr(name, path.read_bytes())
        archive.writestr("snapshot.csv", "UpdateTime,SecurityID\n")
    packed = []
    for path in paths:
        packed.append(path.with_suffix(".csv.gz"))
        packed[-1].write_bytes(gzip.compress(path.read_bytes()))
    assert (rows_of(packed[::-1]) == whole).all()
    rows = rows_of([tmp_path / "next.zip", *paths])
    assert len(rows) == 2 * len(whole)
    assert (rows[len(whole) :]["kind"] == whole["kind"]).all()
    assert rows["kind"][len(whole)] == Kind.CLEAR
    (source,) = open_sources("shanghai", [tmp_path / "next.zip", *paths])
    done = import_source(source, Store(tmp_path / "store"))
    assert done.days == ["2023-02-01", "2023-02-02"]


def test_the_day_must_be_known(tmp_path: Path) -> None:
    paths = day(tmp_path, two_orders(), one_trade())
    for path in paths:
        path.rename(tmp_path / f"{path.name[:5]}.csv")
    bare = [tmp_path / "trade.csv", tmp_path / "entru.csv"]
    with pytest.raises(ConfigError, match=r"--date YYYY-MM-DD, or a name .* YYYYMMDD"):
        rows_of(bare)
    given = rows_of(bare, date=date(2023, 2, 1))
    assert (given == rows_of(day(tmp_path, two_orders(), one_trade()))).all()


def test_orders_alone_make_no_book(tmp_path: Path) -> None:
    paths = day(tmp_path, two_orders(), one_trade())
    with pytest.raises(ConfigError, match="orders of 600519 without trades"):
        rows_of(paths[1:])
    with pytest.raises(ConfigError, match="trades of 600519 without orders"):
        rows_of(paths[:1])


@pytest.mark.parametrize(
    ("trades", "error", "message"),
    [
        ([trade(2, "10:00:02.000", "10.x", 1, 9, 1, "B")], DataError, "line 2.*TradPrice.*'10.x'"),
        ([trade(2, "10:00:02.000", "10.011", 1, 9, 1, "B")], DataError, "line 2.*off the tick"),
        ([trade(2, "10:61:02.000", "10.01", 1, 9, 1, "B")], DataError, "line 2.*'10:61:02.000'"),
        ([trade(2, "10:00:02.000", "10.01", 1, 9, 1, "X")], DataError, "line 2.*one of B, S, N"),
        ([*one_trade(), *one_trade()], OutOfOrder, "line 3.*BizIndex 2 comes twice"),
        ([trade(3, "10:00:03.000", "10.01", 1, 9, 1, "B")], SequenceGap, "BizIndex 3 is in both"),
    ],
)
def test_bad_rows_are_named(
    tmp_path: Path, trades: list[str], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        rows_of(day(tmp_path, two_orders(), trades))


def test_repair_leaves_out_what_cannot_be_read(tmp_path: Path) -> None:
    bad = trade(2, "10:00:02.000", "10.x", 1, 9, 1, "B")
    paths = day(tmp_path, two_orders(), [bad, "1,2,3", *one_trade()])
    (source,) = open_sources("shanghai", paths, repair=True)
    assert sum(len(batch.events) for batch in source.batches()) == 5
    assert source.counts == {"rows unreadable": 2, "trade": 1, "entrust": 2}


def test_where_one_file_ends_early_the_book_ends(tmp_path: Path) -> None:
    paths = day(tmp_path, two_orders(), one_trade())
    with paths[0].open("a") as file:
        file.write("0,1,6,600519,10:0")
    with pytest.raises(DataError, match="line 3: 5 columns, want 14"):
        rows_of(paths)
    (source,) = open_sources("shanghai", paths, repair=True)
    rows = np.concatenate([batch.events for batch in source.batches()])
    assert rows["seq"].tolist() == [0, 0, 1, 2]  # the order numbered 3 is after the cut
    assert source.counts["files damaged at the end"] == 1


def test_only_shanghai_has_this_rule(tmp_path: Path) -> None:
    path = tmp_path / "both.csv"
    header = "SecurityID,Date,Time,SourceType,Type,Price,Qty,BSFlag,BuyNo,SellNo,ApplSeqNum"
    path.write_text(f"{header}\n000001.SZ,2023.07.11,10:34:56.390,1,0,92500,200,2,1,2,3\n")
    with pytest.raises(SchemaError, match=r"holds 000001\.SZ"):
        rows_of([path])
    path.write_text("a,b\n1,2\n")
    with pytest.raises(SchemaError, match="no Shanghai order or trade file"):
        rows_of([path])


def test_one_file_may_hold_orders_and_trades(tmp_path: Path) -> None:
    path = tmp_path / "both.csv"
    path.write_text(
        "SecurityID,Date,Time,SourceType,Type,Price,Qty,BSFlag,BuyNo,SellNo,ApplSeqNum\n"
        "600519.SH,2023.07.11,10:34:56.390,0,2,92500,300,1,7,0,3\n"
        "600519.SH,2023.07.11,10:34:56.400,1,0,92500,200,2,7,8,4\n"
        "600519.SH,2023.07.11,10:34:57.000,0,10,92500,100,1,7,0,5\n"
    )
    assert told(rows_of([path]))[2:] == [
        ("ADD", 1, 925, 300, 7, 0),
        ("EXECUTE", 1, 925, 200, 7, 8),
        ("CANCEL", 1, 0, 100, 7, 0),
    ]


# Real days.


def files(data_dir: Path, *names: str) -> list[Path]:
    paths = [data_dir / name for name in names]
    for path in paths:
        if not path.is_file():
            pytest.skip(f"no {path}")
    return paths


def moutai(data_dir: Path) -> Any:
    return rows_of(files(data_dir, "cn_l3/sse_600519_20230201_tonglian.zip"))


def test_a_real_day_adds_up(data_dir: Path) -> None:
    rows = moutai(data_dir)
    check(rows).require()
    trades = rows[rows["kind"] == Kind.EXECUTE]
    assert len(rows) == 54_735 + 27_135 + 8
    assert trades["qty"].sum() == 3_397_389
    assert (trades["qty"] * trades["price"]).sum() == 624_467_892_461  # 6,244,678,924.61
    book = BookStream()
    touch = book.feed(rows)
    assert book.faults == {"unknown_id": 0, "reused_id": 0, "overfill": 0}
    assert book.live_orders == 3401
    assert book.trading == Trading.CLOSED
    trading = touch[touch["trading"] == Trading.OPEN]
    assert (trading["bid"] < trading["ask"]).all()
    states = rows[rows["kind"] == Kind.STATUS]["ref_id"].tolist()
    assert [Trading(state).name for state in states] == [
        "AUCTION", "HALT", "OPEN", "HALT", "OPEN", "AUCTION", "CLOSED",
    ]  # fmt: skip


def test_the_book_is_the_exchanges_own(data_dir: Path) -> None:
    """Ten levels with their orders, and the first queue of each side, order by order.

    A snapshot's time is cut to the second, so it shows one of the states of the second before or
    after; the total volume in it says which.
    """
    import polars as pl

    pack, queue_file = files(
        data_dir,
        "cn_l3/sse_600519_20230201_tonglian.zip",
        "cn_l3/sse_600519_20230201_OrderQueue.csv.gz",
    )
    with zipfile.ZipFile(pack) as archive:
        shown = pl.read_csv(archive.read("20230201/snapshot.csv"), infer_schema_length=None).filter(
            pl.col("InstruStatus").is_in(["TRADE", "CLOSE", "ENDTR"])
        )
    queues = pl.read_csv(queue_file, infer_schema_length=None)
    rows = moutai(data_dir)
    states = States(rows)
    in_queue = {(r["UpdateTime"], r["SeqNo"], r["Side"]): r for r in queues.iter_rows(named=True)}
    continuous = equal = queues_equal = 0
    for snapshot in shown.iter_rows(named=True):
        fits = [s for s in states.near(snapshot) if s.shows(snapshot)]
        inside = "09:30" <= snapshot["UpdateTime"] < "14:57"
        assert fits or not inside, snapshot["UpdateTime"]
        equal += bool(fits)
        continuous += inside
        if inside:
            for name, side in (("B", 1), ("S", -1)):
                want = in_queue[snapshot["UpdateTime"], snapshot["SeqNo"], name]
                queues_equal += any(s.queue_is(want, side) for s in fits)
    assert continuous == 4841
    assert queues_equal == 2 * 4841
    assert equal == shown.height  # after the auctions too


class State:
    """The book after one packet."""

    def __init__(self, book: BookStream) -> None:
        self.levels = {side: book.levels(side, 10) for side in (1, -1)}
        self.queues = {side: book.queue(side, int(self.levels[side][0, 0])) for side in (1, -1)}

    def shows(self, snapshot: dict[str, Any]) -> bool:
        for side, price, lots, orders in (
            (1, "BidPrice", "BidVolume", "NumOrdersB"),
            (-1, "AskPrice", "AskVolume", "NumOrdersS"),
        ):
            want = [
                [
                    round(snapshot[f"{price}{n}"] * 100),
                    snapshot[f"{lots}{n}"],
                    snapshot[f"{orders}{n}"],
                ]
                for n in range(1, 11)
                if snapshot[f"{lots}{n}"]
            ]
            if self.levels[side].tolist() != want:
                return False
        return True

    def queue_is(self, want: dict[str, Any], side: int) -> bool:
        sizes = [want[f"OrderQty{n}"] for n in range(1, 51) if want[f"OrderQty{n}"] is not None]
        price, lots, orders = self.levels[side][0].tolist()
        return [price, lots, orders] == [
            round(want["Price"] * 100),
            want["Volume"],
            want["NumOrders"],
        ] and self.queues[side][:50, 1].tolist() == sizes


class States:
    """Books after the packets that a snapshot may show, each built once, in order."""

    def __init__(self, rows: Any) -> None:
        self._rows = rows
        self._touch = BookStream().feed(rows)
        traded = np.where(rows["kind"] == Kind.EXECUTE, rows["qty"], 0)
        self._volume = np.cumsum(traded)[self._touch["row"]]
        self._midnight = int(np.datetime64("2023-01-31T16:00:00", "ns").astype(np.int64))
        self._book, self._at = BookStream(), 0
        self._known: dict[int, State] = {}

    def near(self, snapshot: dict[str, Any]) -> list[State]:
        hour, minute, second = snapshot["UpdateTime"].split(":")
        seconds = int(hour) * 3600 + int(minute) * 60 + float(second)
        shown = self._midnight + int(seconds * 1e9)
        ts = self._touch["ts_event"]
        first = max(int(np.searchsorted(ts, shown - 1_000_000_000)) - 1, 0)
        end = int(np.searchsorted(ts, shown + 1_000_000_000, "right"))
        touch = self._touch[first:end]
        same = self._volume[first:end] == snapshot["TradVolume"]
        same &= touch["bid"] == round((snapshot["BidPrice1"] or 0) * 100)
        same &= touch["ask"] == round((snapshot["AskPrice1"] or 0) * 100)
        same &= touch["bid_lots"] == snapshot["BidVolume1"]
        same &= touch["ask_lots"] == snapshot["AskVolume1"]
        return [self._state(int(packet)) for packet in first + np.flatnonzero(same)]

    def _state(self, packet: int) -> State:
        if packet not in self._known:
            end = int(self._touch["row"][packet]) + 1
            self._book.feed(self._rows[self._at : end])
            self._at = end
            self._known[packet] = State(self._book)
        return self._known[packet]


def test_five_stocks_of_two_files(data_dir: Path) -> None:
    paths = files(
        data_dir,
        "cn_l3/sse_5stocks_20230711_SHtrans.zip",
        "cn_l3/sse_5stocks_20230711_SHorders.zip",
    )
    left = {"605580": 2244, "600536": 4861, "600961": 2077, "601825": 1747, "600761": 562}
    sources = open_sources("shanghai", paths)
    assert {source.spec.symbol for source in sources} == set(left)
    orders = trades = 0
    for source in sources:
        book = BookStream()
        for batch in source.batches():
            check(batch.events, source.spec).require()
            book.feed(batch.events)
        assert book.live_orders == left[source.spec.symbol]
        assert not any(book.faults.values())
        orders += source.counts["orders"]
        trades += source.counts["trades"]
    assert (orders, trades) == (149_359, 109_616)


def test_a_real_file_that_was_cut(data_dir: Path) -> None:
    paths = files(data_dir, "faults/SHorderTrans_truncated_tail.csv.gz")
    with pytest.raises(DataError, match="line 2001: 3 columns, want 12"):
        rows_of(paths)
    (source,) = open_sources("shanghai", paths, repair=True)
    rows = np.concatenate([batch.events for batch in source.batches()])
    assert (rows["kind"] == Kind.EXECUTE).sum() == 1999
    assert source.counts == {"files damaged at the end": 1, "orders and trades": 1999}
    book = BookStream()
    book.feed(rows)
    assert book.faults["unknown_id"] == 1999  # the end of a day, trades alone

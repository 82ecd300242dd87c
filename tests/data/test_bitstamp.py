"""Bitstamp order logs: fills and their pairs, both forms of file, and the faults of a real day."""

from __future__ import annotations

import json
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hft.adapters.bitstamp import BitstampLog, open_files
from hft.data import Store, import_source
from hft.data.books import BookStream
from hft.data.sources import Request
from hft.errors import ConfigError, DataError, SchemaError
from hft.types import Flag, Kind

HEAD = "id,timestamp,exchange.timestamp,price,volume,action,direction\n"
T0 = 1_430_438_404_000


def source_of(folder: Path, *lines: str, head: str = HEAD, **more: Any) -> BitstampLog:
    path = folder / "orders.csv"
    path.write_text(head + "".join(line + "\n" for line in lines))
    return open_files(Request("bitstamp", [path], {"symbol": "BTCUSD"}, **more))[0]


def event(order_id: int, ms: int, price: str, volume: int, action: str, side: str) -> str:
    return f"{order_id},{T0 + ms},{T0},{price},{volume},{action},{side}"


def rows_of(source: BitstampLog) -> Any:
    return np.concatenate([batch.events for batch in source.batches()])


def said(rows: Any) -> list[tuple[Any, ...]]:
    """Kind, with ~ if it is no print; order, other order, price, lots."""
    out = []
    for row in rows:
        quiet = "~" if row["flags"] & Flag.NO_PRINT else ""
        numbers = (int(row[name]) for name in ("order_id", "ref_id", "price", "qty"))
        out.append((quiet + Kind(row["kind"]).name, *numbers))
    return out


def test_the_older_order_makes_the_price_of_a_trade(tmp_path: Path) -> None:
    source = source_of(
        tmp_path,
        event(1, 0, "236.47", 500, "created", "bid"),
        event(2, 10, "236.40", 200, "created", "ask"),  # crosses until its trade is told
        event(1, 120, "236.47", 300, "changed", "bid"),
        event(2, 122, "236.40", 0, "deleted", "ask"),
        event(1, 900, "236.47", 300, "deleted", "bid"),
    )
    rows = rows_of(source)
    assert said(rows) == [
        ("ADD", 1, 0, 23_647, 500),
        ("ADD", 2, 0, 23_640, 200),
        ("EXECUTE", 1, 2, 23_647, 200),
        ("~EXECUTE", 2, 1, 23_640, 200),
        ("CANCEL", 1, 0, 23_647, 0),
    ]
    assert rows["side"].tolist() == [1, -1, 1, -1, 1]
    uncertain = rows["flags"] & Flag.UNCERTAIN != 0
    assert uncertain.tolist() == [False, False, True, True, False]
    assert (rows["ts_event"] == rows["ts_recv"]).all()
    assert rows["ts_event"][2] == (T0 + 120) * 1_000_000
    assert source.counts["trades with both sides"] == 1
    assert source.inferred == ["tick 0.01"]
    book = BookStream()
    book.feed(rows)
    assert book.live_orders == 0
    assert not any(book.faults.values())


def test_sides_may_differ_by_two_satoshi(tmp_path: Path) -> None:
    def lines(more: int) -> list[str]:
        return [
            event(1, 0, "236.47", 500, "created", "bid"),
            event(2, 10, "236.40", 200 + more, "created", "ask"),
            event(2, 120, "236.40", 0, "deleted", "ask"),
            event(1, 122, "236.47", 300, "changed", "bid"),
        ]

    assert said(rows_of(source_of(tmp_path, *lines(2))))[2:] == [
        ("~EXECUTE", 2, 1, 23_640, 202),
        ("EXECUTE", 1, 2, 23_647, 200),
    ]
    alone = source_of(tmp_path, *lines(3))
    assert [row[0] for row in said(rows_of(alone))[2:]] == ["EXECUTE", "EXECUTE"]
    assert alone.counts["fills without another side"] == 2


def test_a_fill_without_another_side_is_a_print(tmp_path: Path) -> None:
    rows = rows_of(
        source_of(
            tmp_path,
            event(1, 0, "236.47", 500, "created", "bid"),
            event(1, 120, "236.47", 100, "changed", "bid"),
        )
    )
    assert said(rows)[1] == ("EXECUTE", 1, 0, 23_647, 400)


def test_the_other_side_may_be_an_order_never_seen(tmp_path: Path) -> None:
    rows = rows_of(
        source_of(
            tmp_path,
            event(9, 0, "236.40", 500, "created", "ask"),
            event(3, 120, "236.47", 0, "deleted", "bid"),
            event(9, 121, "236.40", 100, "changed", "ask"),
            event(4, 900, "230.00", 0, "deleted", "bid"),
            event(5, 901, "230.00", 70, "deleted", "bid"),
            event(6, 902, "230.00", 70, "changed", "bid"),
        )
    )
    assert said(rows)[1:] == [
        ("EXECUTE", 3, 9, 23_647, 400),
        ("~EXECUTE", 9, 3, 23_640, 400),
        ("CANCEL", 4, 0, 23_000, 0),
        ("CANCEL", 5, 0, 23_000, 0),
        ("MODIFY", 6, 0, 23_000, 70),
    ]
    book = BookStream()
    book.feed(rows)
    assert book.faults == {"unknown_id": 4, "reused_id": 0, "overfill": 0}


def test_a_market_order_moves_on_by_a_changed_price(tmp_path: Path) -> None:
    source = source_of(
        tmp_path,
        event(1, 0, "236.47", 500, "created", "bid"),
        event(1, 120, "236.50", 498, "changed", "bid"),
    )
    assert said(rows_of(source))[1] == ("MODIFY", 1, 0, 23_650, 498)
    assert source.counts["market orders moved on"] == 1


def test_blocks_do_not_change_what_is_paired(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = []
    for at in range(200):
        lines += [
            event(2 * at, 50 * at, "236.47", 500, "created", "bid"),
            event(2 * at + 1, 50 * at + 1, "236.47", 300, "created", "ask"),
            event(2 * at, 50 * at + 20, "236.47", 200, "changed", "bid"),
            event(2 * at + 1, 50 * at + 22, "236.47", 0, "deleted", "ask"),
        ]
    whole = rows_of(source_of(tmp_path, *lines[4:]))
    for size in (60, 200, 555):
        monkeypatch.setattr("hft.data.text.BLOCK_BYTES", size)
        assert (rows_of(source_of(tmp_path, *lines[4:])) == whole).all()
    assert np.count_nonzero(whole["flags"] & Flag.NO_PRINT) == 199


def test_volumes_in_coins(tmp_path: Path) -> None:
    head = HEAD.replace("exchange.timestamp", "exchange_timestamp")
    rows = rows_of(source_of(tmp_path, "1,1430438404000,0,236.5,1.5,created,bid", head=head))
    assert rows["qty"].tolist() == [150_000_000]
    assert rows["price"].tolist() == [2_365]  # of a tick of 0.1


def log_line(ms: int, what: str, order_id: int, price: str, amount: str, side: int) -> str:
    body = {"price": price, "amount": amount, "datetime": "1", "id": order_id, "order_type": side}
    return f"{T0 + ms} order_{what} {json.dumps(body)}\n"


def test_the_raw_log_gives_the_same(tmp_path: Path) -> None:
    path = tmp_path / "raw.log.xz"
    text = (
        log_line(0, "created", 1, "236.47", "5.00000000", 0)
        + f'{T0 + 5} order_book {{"bids": [["236.47", "5.0"]], "asks": []}}\n'
        + log_line(10, "created", 2, "236.40", "2.00000000", 1)
        + log_line(120, "changed", 1, "236.47", "3.00000000", 0)
        + log_line(121, "deleted", 2, "236.40", "0.00000000", 1)
        + f'{T0 + 125} trade {{"price": 236.47, "amount": 2.0, "id": 8111041}}\n'
    )
    path.write_bytes(lzma.compress(text.encode()))
    source = open_files(Request("bitstamp", [path], {"symbol": "BTCUSD"}))[0]
    assert [row[0] for row in said(rows_of(source))] == ["ADD", "ADD", "EXECUTE", "~EXECUTE"]
    assert source.counts["trade left out"] == source.counts["order_book left out"] == 1


def test_what_cannot_be_is_refused_by_line(tmp_path: Path) -> None:
    good = event(1, 0, "236.47", 500, "created", "bid")
    bad = {
        event(2, 1, "236.47", 500, "amended", "bid"): "line 3: column action: 'amended'",
        event(2, 1, "236.47", 0, "created", "bid"): "line 3: timestamp .* a volume above 0",
        event(2, 1, "-1", 5, "created", "bid"): "line 3: .*price above 0",
        "2,1,1,1": "line 3: 4 columns, want 7",
    }
    for line, says in bad.items():
        with pytest.raises(DataError, match=says):
            rows_of(source_of(tmp_path, good, line))
        mended = source_of(tmp_path, good, line, good, repair=True)
        assert len(rows_of(mended)) == 2
    early = source_of(tmp_path, good, event(2, -5, "236.47", 500, "created", "bid"))
    with pytest.raises(DataError, match="goes back"):
        import_source(early, Store(tmp_path / "s"))
    with pytest.raises(ConfigError, match="--symbol"):
        open_files(Request("bitstamp", [tmp_path / "orders.csv"]))
    with pytest.raises(SchemaError, match="no column 'price'"):
        source_of(tmp_path, good, head=HEAD.replace("price", "prize"))


def test_a_damaged_line_of_the_log(tmp_path: Path) -> None:
    path = tmp_path / "raw.log"
    path.write_text(log_line(0, "created", 1, "236.47", "5.0", 0) + f"{T0} order_deleted {{\n")
    with pytest.raises(DataError, match=r"raw.log: line 2: .*want `<ms> <event> \{json\}`"):
        rows_of(open_files(Request("bitstamp", [path], {"symbol": "X"}))[0])
    mended = open_files(Request("bitstamp", [path], {"symbol": "X"}, repair=True))[0]
    assert len(rows_of(mended)) == 1
    assert mended.counts["lines unreadable"] == 1


# The real day.

ORDERS = "crypto_l3/bitstamp_btcusd_20150501_orders.csv.xz"
RAW = "crypto_l3/bitstamp_btcusd_20150501.log.xz"


@pytest.fixture
def real(data_dir: Path) -> Callable[[str], BitstampLog]:
    def opened(name: str) -> BitstampLog:
        if not (data_dir / name).is_file():
            pytest.skip(f"no {data_dir / name}")
        return open_files(Request("bitstamp", [data_dir / name], {"symbol": "BTCUSD"}))[0]

    return opened


def test_faults_of_the_real_day_are_counted(real: Callable[[str], BitstampLog]) -> None:
    source = real(ORDERS)
    rows = rows_of(source)
    assert source.counts["order events"] == len(rows) == 50_414
    rows["flags"] |= np.uint16(Flag.LAST)  # to see each event's book
    book = BookStream()
    seen = book.feed(rows)
    # 208 deletes and 5 changes of orders that were never created, or deleted before
    assert book.faults == {"unknown_id": 213, "reused_id": 0, "overfill": 0}
    both = (seen["bid_lots"] > 0) & (seen["ask_lots"] > 0)
    assert np.count_nonzero(both & (seen["bid"] > seen["ask"])) == 781
    assert np.count_nonzero(both & (seen["bid"] >= seen["ask"])) == 998
    assert book.live_orders == 184


def test_trades_of_the_real_day_are_those_of_its_log(
    real: Callable[[str], BitstampLog], data_dir: Path
) -> None:
    source = real(RAW)
    rows = rows_of(source)
    assert source.counts["trade left out"] == 575
    assert source.counts["order_book left out"] == 5_011
    told = []
    with lzma.open(data_dir / RAW, "rt") as log:
        for line in log:
            ms, what, body = line.split(" ", 2)
            if what == "trade":
                trade = json.loads(body)
                price, lots = round(trade["price"] * 100), round(trade["amount"] * 1e8)
                told.append((int(ms) * 1_000_000, price, lots))
    prints = rows[(rows["kind"] == Kind.EXECUTE) & (rows["flags"] & Flag.NO_PRINT == 0)]
    free = np.ones(len(prints), bool)
    for ts, price, lots in told:
        same = free & (prints["price"] == price) & (np.abs(prints["qty"] - lots) <= 2)
        same &= np.abs(prints["ts_event"] - ts) < 500_000_000
        if same.any():
            free[int(same.argmax())] = False
    assert (len(told), np.count_nonzero(~free), len(prints)) == (575, 574, 576)


def test_both_forms_of_the_real_day_agree(real: Callable[[str], BitstampLog]) -> None:
    table, log = rows_of(real(ORDERS)), rows_of(real(RAW))
    # The CSV's volumes were cut to whole satoshi where a double fell short of one.
    assert np.abs(table["qty"] - log["qty"]).max() <= 2
    table["qty"] = log["qty"] = 0
    assert (table == log).all()

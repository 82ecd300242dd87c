"""A user's own CSV and Parquet files, by a map."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import polars as pl
import pytest

from hft.adapters.table import TableFile, load_map
from hft.data import Store, import_source
from hft.data.info import check_data, describe
from hft.errors import ConfigError, DataError, SchemaError
from hft.types import Flag, Kind

INSTRUMENT = """
[instrument]
symbol = "AB"
venue = "V"
tick = 0.5
lot = 1
"""
TRADES = (
    INSTRUMENT
    + """
[columns]
ts_event = { column = "time", unit = "us" }
ts_recv = { column = "local", unit = "us" }
price = "px"
qty = "size"
kind = "trade"
side = { column = "taker", buy = ["buy"], sell = ["sell"] }
seq = "id"
"""
)
BOOK = (
    INSTRUMENT
    + """
[columns]
ts_event = { column = "t", unit = "iso", zone = "Asia/Shanghai" }
ts_recv = { column = "t", unit = "iso", zone = "Asia/Shanghai", add = "5ms" }
price = "p"
qty = "q"
kind = { column = "k", values = { T = "trade", D = "level" } }
side = "s"
snapshot = { column = "snap" }
"""
)
TRADES_CSV = """id,time,local,taker,px,size
1,1723078800000000,1723078800001000,buy,100.5,3
2,1723078800000000,1723078800001000,sell,100.0,1
3,1723078801000000,1723078801002000,buy,101,2
"""
BOOK_CSV = """t,p,q,k,s,snap
2024-08-08 09:00:00,100.5,3,D,B,true
2024-08-08 09:00:00,101,4,D,S,true
2024-08-08 09:00:01.5,101,1,T,B,false
2024-08-08 09:00:01.5,101,3,D,S,false
"""


def source(tmp_path: Path, layout: str, content: str | bytes, form="csv", **options) -> TableFile:
    (tmp_path / "map.toml").write_text(layout)
    path = tmp_path / f"data.{form}"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return TableFile(path, load_map(tmp_path / "map.toml"), form, **options)


def rows_of(table: TableFile):
    import numpy as np

    return np.concatenate([batch.events for batch in table.batches()])


def test_trades(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    done = import_source(source(tmp_path, TRADES, TRADES_CSV), store)
    rows = store.read("AB.V")
    assert done.rows == len(rows) == 3
    assert rows["price"].tolist() == [201, 200, 202]
    assert rows["qty"].tolist() == [3, 1, 2]
    assert rows["side"].tolist() == [1, -1, 1]
    assert rows["seq"].tolist() == [1, 2, 3]
    assert (rows["ts_recv"] - rows["ts_event"]).tolist() == [1_000_000, 1_000_000, 2_000_000]
    assert [bool(f & Flag.LAST) for f in rows["flags"]] == [False, True, True]


def test_book_with_snapshot_zone_and_assumed_latency(tmp_path: Path) -> None:
    rows = rows_of(source(tmp_path, BOOK, BOOK_CSV))
    kinds = [Kind(k).name for k in rows["kind"]]
    assert kinds == ["SNAPSHOT_BEGIN", "LEVEL", "LEVEL", "SNAPSHOT_END", "TRADE", "LEVEL"]
    assert rows["ts_event"][0] == 1_723_078_800_000_000_000  # 09:00 in Shanghai is 01:00 UTC
    assert set((rows["ts_recv"] - rows["ts_event"]).tolist()) == {5_000_000}
    assert [bool(f & Flag.RECOVERED) for f in rows["flags"]] == [True] * 4 + [False] * 2
    assert [bool(f & Flag.LAST) for f in rows["flags"]] == [False] * 3 + [True, False, True]


def test_the_same_rows_whatever_the_blocks(tmp_path: Path, monkeypatch) -> None:
    lines = BOOK_CSV.splitlines()
    content = "\n".join([lines[0], *lines[1:] * 200])
    whole = rows_of(source(tmp_path, BOOK, content))
    monkeypatch.setattr("hft.data.text.BLOCK_BYTES", 200)
    assert (rows_of(source(tmp_path, BOOK, content)) == whole).all()
    assert (whole["kind"] == Kind.SNAPSHOT_BEGIN).sum() == 200
    assert (whole["kind"] == Kind.SNAPSHOT_END).sum() == 200


def test_two_files_become_one_market(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    import_source(source(tmp_path, BOOK, BOOK_CSV), store)
    done = import_source(source(tmp_path, TRADES, TRADES_CSV), store, append=True)
    assert done.days == ["2024-08-08"]
    rows = store.read("AB.V")
    assert len(rows) == 9
    assert (rows["ts_recv"][1:] >= rows["ts_recv"][:-1]).all()


@pytest.mark.parametrize(
    ("by", "last"),
    [("time", [0, 1, 1]), ("row", [1, 1, 1]), ("px", [1, 1, 1]), ("size", [1, 1, 1])],
)
def test_packets(tmp_path: Path, by: str, last: list[int]) -> None:
    rows = rows_of(source(tmp_path, f'packets = "{by}"\n' + TRADES, TRADES_CSV))
    assert [int(bool(f & Flag.LAST)) for f in rows["flags"]] == last


@pytest.mark.parametrize(
    ("unit", "text", "ns"),
    [
        ("s", "1723078800", 1_723_078_800_000_000_000),
        ("s", "1723078800.123456789", 1_723_078_800_123_456_789),
        ("ms", "1723078800123.5", 1_723_078_800_123_500_000),
        ("us", " 1723078800123456 ", 1_723_078_800_123_456_000),
        ("ns", "1723078800123456789", 1_723_078_800_123_456_789),
        ("iso", "2024-08-08T01:00:00Z", 1_723_078_800_000_000_000),
        ("iso", "2024-08-08 03:00:00+02:00", 1_723_078_800_000_000_000),
        ("iso", "2024-08-08 01:00:00.123456789", 1_723_078_800_123_456_789),
    ],
)
def test_times_are_exact(tmp_path: Path, unit: str, text: str, ns: int) -> None:
    layout = TRADES.replace('"us"', f'"{unit}"')
    content = f"id,time,local,taker,px,size\n1,{text},{text},buy,100.5,3\n"
    rows = rows_of(source(tmp_path, layout, content))
    assert rows["ts_event"].tolist() == [ns]


@pytest.mark.parametrize(
    ("old", "new", "says", "error"),
    [
        ("100.5", "100.7", r"line 2: price 100\.7 is off the tick of 0\.5; .* 100\.5", DataError),
        ("100.5", "x", "line 2, column px: 'x', want finite number", DataError),
        ("100.5", "", "line 2, column px: '', want finite number", DataError),
        ("100.5", "nan", "line 2, column px: 'nan', want finite number", DataError),
        ("sell", "?", r"line 3, column taker: '\?', want a side; the map knows", DataError),
        ("3,1723078801000000", "3,yesterday", "line 4, column time: .* want time in us", DataError),
        ("3,1723078801000000", "z,1723078801000000", "column id: 'z', want whole", DataError),
        ("3,1723078801000000", "3,99999999999999999", "line 4, column time", DataError),
        (",size", ",amount", "no column 'size'; it has", SchemaError),
        (",buy,101,2", ",buy", "line 4: 4 columns, want 6", DataError),
        ("1723078801000000", "1723078700000000", r"line 4.*: ts_event .* goes back", DataError),
        ("1723078801002000", "1723078800900000", "line 4.*: ts_recv .* before ts_event", DataError),
        (TRADES_CSV, "", "empty file, want lines", DataError),
    ],
)
def test_a_bad_row_is_named(tmp_path: Path, old: str, new: str, says: str, error) -> None:
    store = Store(tmp_path / "s")
    with pytest.raises(error, match=says):
        import_source(source(tmp_path, TRADES, TRADES_CSV.replace(old, new, 1)), store)
    assert not store.path.exists()


def test_repair_leaves_out_what_cannot_be_read_and_rounds_prints(tmp_path: Path) -> None:
    content = TRADES_CSV.replace("sell", "?").replace("101,2", "101.2,2") + "4,cut\n"
    store = Store(tmp_path / "s")
    done = import_source(source(tmp_path, TRADES, content, repair=True), store, repair=True)
    assert done.counts["rows unreadable"] == 2
    assert done.counts["prints rounded"] == 1
    assert store.read("AB.V")["price"].tolist() == [201, 202]


def test_gzip_whole_and_cut(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("hft.data.text.BLOCK_BYTES", 4096)
    more = "".join(
        f"{n},{1723078801000000 + n},{1723078801002000 + n},buy,{100 + n % 7},2\n"
        for n in range(4, 3000)
    )
    packed = gzip.compress((TRADES_CSV + more).encode())
    assert len(rows_of(source(tmp_path, TRADES, packed))) == 2999
    with pytest.raises(DataError, match=r"damaged after line \d{3,}"):
        rows_of(source(tmp_path, TRADES, packed[:-900]))
    table = source(tmp_path, TRADES, packed[:-900], repair=True)
    assert 100 < len(rows_of(table)) < 2999
    assert table.counts["files damaged at the end"] == 1


def test_parquet_with_typed_columns(tmp_path: Path) -> None:
    frame = pl.read_csv(TRADES_CSV.encode()).with_columns(
        pl.from_epoch("time", "us").dt.replace_time_zone("UTC"), pl.from_epoch("local", "us")
    )
    frame.write_parquet(tmp_path / "x.parquet")
    layout = TRADES.replace('"us"', '"iso"')
    table = source(tmp_path, layout, (tmp_path / "x.parquet").read_bytes(), "parquet")
    assert (rows_of(table) == rows_of(source(tmp_path, TRADES, TRADES_CSV))).all()
    with pytest.raises(SchemaError, match="no column 't'"):
        rows_of(source(tmp_path, BOOK, (tmp_path / "x.parquet").read_bytes(), "parquet"))


def test_only_one_instrument_of_several(tmp_path: Path) -> None:
    layout = TRADES.replace("[columns]", '[where]\ntaker = "buy"\n[columns]')
    table = source(tmp_path, layout, TRADES_CSV)
    assert rows_of(table)["seq"].tolist() == [1, 3]
    assert table.counts["rows of other instruments"] == 1


def test_without_header(tmp_path: Path) -> None:
    layout = 'names = ["id", "time", "local", "taker", "px", "size"]\nseparator = ";"\n' + TRADES
    content = "\n".join(TRADES_CSV.replace(",", ";").splitlines()[1:])
    assert rows_of(source(tmp_path, layout, content))["seq"].tolist() == [1, 2, 3]
    with pytest.raises(DataError, match="line 1, column px"):
        rows_of(source(tmp_path, layout, content.replace("100.5", "x")))


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('unit = "us"', 'unit = "weeks"', r"weeks.*columns\.ts_event"),
        ("tick = 0.5", "tick = 0", "instrument.tick is 0.0"),
        ("tick = 0.5", "tik = 0.5", "tik"),
        ('kind = "trade"', 'kind = "tirade"', "'tirade' is no kind; want one of level"),
        ('price = "px"', "price = px", "not TOML"),
        ('kind = "trade"', "", "kind"),
    ],
)
def test_a_bad_map_names_its_key(tmp_path: Path, old: str, new: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        source(tmp_path, TRADES.replace(old, new, 1), TRADES_CSV)


def test_a_cut_row_with_bytes_that_are_no_text_is_named_too(tmp_path: Path) -> None:
    content = TRADES_CSV.encode().replace(b",buy,101,2", b",b\xacy")
    with pytest.raises(DataError, match="line 4: 4 columns, want 6"):
        rows_of(source(tmp_path, TRADES, content))
    umlaut = TRADES.replace('"taker"', '"täker"')
    content = TRADES_CSV.replace("taker", "täker").encode()
    assert len(rows_of(source(tmp_path, umlaut, content))) == 3


def test_missing_files(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load_map(tmp_path / "none.toml")
    (tmp_path / "map.toml").write_text(TRADES)
    with pytest.raises(DataError, match="no such file"):
        TableFile(tmp_path / "none.csv", load_map(tmp_path / "map.toml"), "csv")


def test_a_real_file_of_trades(tmp_path: Path, data_dir: Path) -> None:
    layout = """
[instrument]
symbol = "BTCUSDT"
venue = "BINANCE_USDM"
tick = 0.01
lot = 0.001
[columns]
ts_event = { column = "timestamp", unit = "us" }
ts_recv = { column = "local_timestamp", unit = "us" }
price = "price"
qty = "amount"
kind = "trade"
side = "side"
seq = "id"
"""
    (tmp_path / "map.toml").write_text(layout)
    path = data_dir / "crypto_l2" / "tardis_binance-futures_trades_20200222.csv.gz"
    table = TableFile(path, load_map(tmp_path / "map.toml"), "csv")
    done = import_source(table, Store(tmp_path / "s"), sequence="increasing")
    assert done.rows == 9999
    assert done.least_latency_ns == 115_088_000


def fences(kind: str) -> dict[str, str]:
    """Code blocks of the guide, by name."""
    text = (Path(__file__).parents[2] / "docs" / "data.md").read_text()
    found = re.findall(rf"^```{kind} (\w+)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return dict(found)


def test_the_guides_example(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    tables, maps = fences("csv"), fences("toml")
    import_source(source(tmp_path, maps["book"], tables["book"]), store)
    import_source(source(tmp_path, maps["trades"], tables["trades"]), store, append=True)
    info = describe(store, "BTCUSDT.MYVENUE")
    assert info.kinds == {"LEVEL": 5, "SNAPSHOT_BEGIN": 1, "SNAPSHOT_END": 1, "TRADE": 3}
    assert info.touch == (6_183_760, 310_000, 6_183_765, 100_000)
    assert info.split_rows == 0
    assert check_data(store, "BTCUSDT.MYVENUE", book=True).ok

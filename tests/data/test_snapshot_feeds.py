"""Formats that hold snapshots: Shenzhen, CFFEX and WonderTrader."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hft.adapters.china.snapshots import Snapshots
from hft.adapters.wondertrader import MAGIC, NARROW, WIDE
from hft.data import Store, check, import_source
from hft.data.books import BookStream
from hft.data.sources import open_sources
from hft.errors import ConfigError, DataError, OutOfOrder, SchemaError
from hft.types import EVENT, Flag, Kind, Trading

HOUR_NS = 3_600_000_000_000


def rows_of(source: Any) -> Any:
    return np.concatenate([np.empty(0, EVENT), *(b.events for b in source.batches())])


def traded(rows: Any) -> tuple[int, int]:
    """Lots, and ticks * lots, of all prints."""
    prints = rows[rows["kind"] == Kind.TRADE]
    assert (prints["side"] == 0).all()
    assert (prints["flags"] & Flag.UNCERTAIN).all()
    return int(prints["qty"].sum()), int((prints["qty"] * prints["price"]).sum())


def states(rows: Any) -> list[str]:
    return [Trading(r).name for r in rows[rows["kind"] == Kind.STATUS]["ref_id"].tolist()]


def want_books(rows: Any, shown: Snapshots, every: int) -> None:
    """The book after each `every`th snapshot is the snapshot."""
    assert shown.bids is not None
    assert shown.asks is not None
    book, fed = BookStream(), 0
    for at in range(0, len(shown.lines), every):
        end = int(np.searchsorted(rows["ts_event"], shown.ts_event[at], "right"))
        book.feed(rows[fed:end])
        fed = end
        for side, levels in ((1, shown.bids[at]), (-1, shown.asks[at])):
            want = levels[(levels > 0).all(1)].tolist()  # an auction shows its surplus at price 0
            assert book.levels(side, 20)[:, :2].tolist() == want


def file_of(data_dir: Path, name: str) -> Path:
    path = data_dir / name
    if not path.is_file():
        pytest.skip(f"no {path}")
    return path


# Shenzhen.


def shenzhen_row(time: str, phase: int, bid: float, ask: float, volume: int, **more: Any) -> Any:
    row: dict[str, Any] = {"MDDate": "2022.06.01", "MDTime": time, "SecurityID": "300918.SZ"}
    for n in range(1, 11):
        shown = n == 1 and bid > 0
        row |= {f"BuyPrice{n}": bid * shown, f"BuyOrderQty{n}": 300 * shown}
        row |= {f"SellPrice{n}": ask * shown, f"SellOrderQty{n}": 500 * shown}
    row |= {"LastPx": 8.17, "TotalVolumeTrade": volume, "TotalValueTrade": volume * 8.17}
    return row | {"TradingPhaseCode": phase} | more


def shenzhen_csv(folder: Path, rows: list[Any]) -> Path:
    import polars as pl

    path = folder / "tick.csv"
    pl.DataFrame(rows).write_csv(path)
    return path


SHENZHEN = [
    shenzhen_row("09:24:57.000", 1, 8.17, 8.17, 0),
    shenzhen_row("09:25:00.000", 2, 8.16, 8.18, 700, SellOrderQty2=900),
    shenzhen_row("09:30:00.000", 3, 8.16, 8.18, 700),
    shenzhen_row("09:30:03.000", 3, 8.15, 8.18, 900, TotalValueTrade=700 * 8.17 + 200 * 8.165),
]


def test_shenzhen_snapshots_become_changes_states_and_prints(tmp_path: Path) -> None:
    (source,) = open_sources("shenzhen", [shenzhen_csv(tmp_path, SHENZHEN)])
    rows = rows_of(source)
    check(rows, source.spec).require()
    assert source.spec.name == "300918.SZSE"
    assert [Kind(k).name for k in rows["kind"].tolist()] == [
        "STATUS", "SNAPSHOT_BEGIN", "LEVEL", "LEVEL", "SNAPSHOT_END",
        "STATUS", "TRADE", "LEVEL", "LEVEL", "LEVEL", "LEVEL",
        "STATUS", "TRADE", "TRADE", "LEVEL", "LEVEL",
    ]  # fmt: skip
    assert states(rows) == ["AUCTION", "HALT", "OPEN"]
    assert traded(rows) == (900, 700 * 817 + 100 * 816 + 100 * 817)
    assert (rows["ts_recv"] == rows["ts_event"]).all()
    assert "ts_recv is ts_event" in " ".join(source.cannot_tell)


def test_each_day_of_shenzhen_begins_with_a_snapshot(tmp_path: Path) -> None:
    next_day = [row | {"MDDate": "2022.06.02"} for row in SHENZHEN]
    (source,) = open_sources("shenzhen", [shenzhen_csv(tmp_path, SHENZHEN + next_day)])
    rows = rows_of(source)
    half = len(rows) // 2
    assert (rows["kind"][:half] == rows["kind"][half:]).all()
    assert traded(rows[:half]) == traded(rows[half:])


def test_shenzhen_of_many_symbols(tmp_path: Path) -> None:
    other = [row | {"SecurityID": "000400.SZ"} for row in SHENZHEN]
    path = shenzhen_csv(tmp_path, [r for pair in zip(SHENZHEN, other, strict=True) for r in pair])
    both = open_sources("shenzhen", [path])
    assert [s.spec.symbol for s in both] == ["300918", "000400"]
    assert (rows_of(both[0]) == rows_of(both[1])).all()
    (one,) = open_sources("shenzhen", [path], facts={"symbol": "000400"})
    assert one.spec.symbol == "000400"
    with pytest.raises(ConfigError, match="no row of 600519"):
        open_sources("shenzhen", [path], facts={"symbol": "600519"})


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"BuyPrice1": "8.x"}, DataError, "line 4, column BuyPrice1: '8.x'"),
        ({"BuyPrice1": 8.165}, DataError, "line 4: price 8.165 is off the tick"),
        ({"TradingPhaseCode": 12}, DataError, "line 4, column TradingPhaseCode: '12'"),
        ({"MDTime": "09:24:00.000"}, OutOfOrder, "line 4: the venue's time goes back 60000 ms"),
    ],
)
def test_bad_rows_of_shenzhen_are_named(
    tmp_path: Path, changed: dict[str, Any], error: type[Exception], message: str
) -> None:
    rows = [{k: str(v) for k, v in row.items()} for row in SHENZHEN]
    rows[2] |= {k: str(v) for k, v in changed.items()}
    path = shenzhen_csv(tmp_path, rows)
    with pytest.raises(error, match=message):
        rows_of(open_sources("shenzhen", [path])[0])
    if "off the tick" not in message:
        (source,) = open_sources("shenzhen", [path], repair=True)
        assert traded(rows_of(source))[0] == 900
        assert {"rows unreadable", "snapshots out of order"} & set(source.counts)


def test_real_shenzhen_parquet(data_dir: Path) -> None:
    import polars as pl

    path = file_of(data_dir, "cn_l2/MDStockRecord_000001.SZ_202009_01-10.parquet")
    (source,) = open_sources("shenzhen", [path])
    rows = rows_of(source)
    check(rows, source.spec).require()
    day = pl.col("MDDate")
    totals = (
        pl.scan_parquet(path)
        .group_by(day)
        .agg(pl.col("TotalVolumeTrade").last(), pl.col("TotalValueTrade").last())
        .collect()
    )
    assert source.counts == {"snapshots": 40_354}
    assert traded(rows) == (
        int(totals["TotalVolumeTrade"].sum()),
        round(totals["TotalValueTrade"].sum() * 100),
    )
    assert traded(rows) == (909_240_046, 1_380_672_741_663)
    one_day = ["CLOSED", "AUCTION", "HALT", "OPEN", "HALT", "OPEN", "AUCTION", "CLOSED"]
    assert states(rows) == 8 * one_day
    assert np.count_nonzero(rows["kind"] == Kind.SNAPSHOT_BEGIN) == 8
    touch = BookStream().feed(rows)
    in_session = touch[touch["trading"] == Trading.OPEN]
    assert (in_session["bid"] < in_session["ask"]).all()
    columns = [
        f"{side}{n}{what}"
        for side in ("Buy", "Sell")
        for n in range(1, 11)
        for what in ("Price", "OrderQty")
    ]
    raw = pl.read_parquet(path, columns=["ReceiveDateTime", *columns])
    levels = np.rint(raw.select(columns).to_numpy() * np.tile([100, 1], 20)).astype(np.int64)
    levels = levels.reshape(-1, 2, 10, 2)
    hours = (
        pl.read_parquet(path)
        .select((day + pl.col("MDTime")).str.to_datetime("%Y%m%d%H%M%S%3f", time_unit="ns"))
        .to_series()
    )
    ts = hours.to_physical().to_numpy() - 8 * HOUR_NS
    want_books(rows, shown(ts, levels[:, 0], levels[:, 1]), every=101)


def shown(ts: Any, bids: Any, asks: Any) -> Snapshots:
    return Snapshots(np.arange(len(ts)), ts, ts, ts, None, ts, bids, asks)


def test_real_shenzhen_csv(data_dir: Path) -> None:
    path = file_of(data_dir, "cn_l2/szse_5stocks_20220601_snapshot10.zip")
    volumes = {}
    for source in open_sources("shenzhen", [path]):
        rows = rows_of(source)
        check(rows, source.spec).require()
        volumes[source.spec.symbol] = traded(rows)[0]
    assert volumes == {
        "300918": 2_388_800, "300122": 10_507_570, "300288": 4_948_400,
        "300274": 28_408_275, "000400": 64_458_834,
    }  # fmt: skip


# CFFEX.


def five_levels(folder: Path) -> Path:
    """Two snapshots of a bond future; the recorder's clock is 11 s behind."""
    header = ["CONTRACTID", "TDATETIME", "LOCALTIME", "LASTPRICE", "VOLUME", "AMOUNT"]
    header += [f"{s}{n:02}" for s in ("B", "S", "BV", "SV") for n in range(1, 6)]
    lines = [",".join(header)]
    for second, first_bid, volume, amount in (
        (0, 100.945, 829, 836_813_100),
        (1, 100.94, 831, 838_832_000),
    ):
        prices = [f"{first_bid - n * 0.005:.3f}" for n in range(5)]
        prices += [f"{100.95 + n * 0.005:.3f}" for n in range(5)]
        stamps = [f"2015-12-25 09:20:0{second}.100", f"2015-12-25 09:19:4{second}.403"]
        lines.append(
            ",".join(
                ["TF1603", *stamps, "100.95", str(volume), str(amount), *prices, *["4.0"] * 10]
            )
        )
    path = folder / "TF1603.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_cffex_with_five_levels(tmp_path: Path) -> None:
    (source,) = open_sources("cffex", [five_levels(tmp_path)])
    assert (source.spec.tick, source.spec.multiplier, source.spec.venue) == (0.005, 10_000, "CFFEX")
    rows = rows_of(source)
    assert traded(rows) == (2, 20_189 + 20_189)  # the first total is where counting begins
    assert states(rows) == ["OPEN"]
    store = Store(tmp_path / "s")
    with pytest.raises(DataError, match="clock-offset auto"):
        import_source(source, store)
    import_source(source, store, clock_offset="auto")


def ticks(folder: Path, name: str, *lines: str) -> Path:
    path = folder / name
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


IF = (
    "IF2203,20220218,20220218,112003000,11:20:03,0,0,0,0,0,0,0",
    "IF2203,20220218,20220218,112002700,11:20:04,4612,30604,112880,42356791920,30604,112880,0",
    "IF2203,20220218,20220218,112004500,11:20:09,4611.8,30606,112881,42359559060,2,1,2767140",
)


def test_cffex_without_quotes_gives_prints(tmp_path: Path) -> None:
    (source,) = open_sources("cffex", [ticks(tmp_path, "CFFEX.IF2203.20220218.csv", *IF[1:])])
    rows = rows_of(source)
    assert set(rows["kind"].tolist()) == {Kind.STATUS, Kind.TRADE}
    assert traded(rows) == (2, 2_767_140 // 60)
    assert "no bid and no ask" in " ".join(source.cannot_tell)
    # The recorder's second was cut off, so it is taken at its end.
    assert (rows["ts_recv"] % 1_000_000_000 == 999_999_999).all()


def test_a_recorder_that_starts_without_a_price(tmp_path: Path) -> None:
    path = ticks(tmp_path, "CFFEX.IF2203.20220218.csv", *IF)
    with pytest.raises(DataError, match="line 1: price 0"):
        rows_of(open_sources("cffex", [path])[0])
    (source,) = open_sources("cffex", [path], repair=True)
    assert traded(rows_of(source))[0] == 2
    assert source.counts == {"rows without a price": 1, "snapshots": 2}
    path = ticks(tmp_path, "CFFEX.IF2203.20220218.csv", *IF[:0:-1])
    with pytest.raises(OutOfOrder, match="line 2: the venue's time goes back 1800 ms"):
        rows_of(open_sources("cffex", [path])[0])


def test_facts_that_no_exchange_told_us_are_asked_for(tmp_path: Path) -> None:
    line = IF[1].replace("IF2203", "XY2203")
    path = ticks(tmp_path, "ticks.csv", line)
    with pytest.raises(ConfigError, match="--venue --tick"):
        open_sources("cffex", [path])
    facts = {"venue": "DCE", "tick": 1.0, "multiplier": 10.0}
    (source,) = open_sources("cffex", [path], facts=facts)
    assert source.spec.name == "XY2203.DCE"
    with pytest.raises(SchemaError, match="want a header"):
        open_sources("cffex", [ticks(tmp_path, "other.csv", "a,b,c")])


@pytest.mark.parametrize(
    ("name", "volume", "repair"),
    [
        ("CFFEX.IF2203", 46_354 - 30_604, True),
        ("CZCE.TA205", 953_350 - 812_578, True),
        ("SHFE.au2204", 26_244 - 24_463, False),
        ("SHFE.rb2205", 1_382_270 - 1_172_085, False),
    ],
)
def test_real_ticks_without_quotes(data_dir: Path, name: str, volume: int, *, repair: bool) -> None:
    path = file_of(data_dir, f"cn_futures/{name}.20220218.csv.gz")
    if repair:
        with pytest.raises(DataError, match="line 1: price 0"):
            rows_of(open_sources("cffex", [path])[0])
    (source,) = open_sources("cffex", [path], repair=repair)
    rows = rows_of(source)
    check(rows, source.spec).require()
    assert traded(rows)[0] == volume
    prints = rows["price"][rows["kind"] == Kind.TRADE]
    assert prints.max() < 1.03 * prints.min()  # turnover and multiplier fit the prices


def test_real_five_levels(data_dir: Path, tmp_path: Path) -> None:
    import polars as pl

    path = file_of(data_dir, "cn_futures/TF1603_20151225_L5.csv.gz")
    (source,) = open_sources("cffex", [path])
    rows = rows_of(source)
    assert traded(rows) == (27_792 - 829, (28_026_313_950 - 836_813_100) // 50)
    assert states(rows) == ["OPEN", "HALT", "OPEN", "CLOSED"]
    raw = pl.read_csv(path, infer_schema_length=None)
    times = raw["TDATETIME"].str.to_datetime(time_unit="ns").to_physical().to_numpy() - 8 * HOUR_NS
    sides = [
        np.stack(
            [
                np.rint(raw.select(f"{side}{n:02}" for n in range(1, 6)).to_numpy() / 0.005),
                raw.select(f"{side}V{n:02}" for n in range(1, 6)).to_numpy(),
            ],
            axis=-1,
        ).astype(np.int64)
        for side in ("B", "S")
    ]
    want_books(rows, shown(times, *sides), every=50)
    done = import_source(source, Store(tmp_path / "s"), clock_offset="auto")
    assert done.clock["behind_by_at_least_ns"] == 11_943_000_000


# WonderTrader.


def made_ticks(struct: Any) -> Any:
    out = np.zeros(3, struct)
    out["exchange"], out["code"] = b"CFFEX", b"IF2101"
    out["trading_date"] = out["date"] = 20210104
    out["time"] = [92_900_400, 93_000_400, 93_000_900]
    out["price"] = [5230, 5230.2, 5230.4]
    out["total_volume"], out["volume"] = [240, 243, 243], [240, 3, 0]
    out["total_turnover"] = 300 * np.array(
        [240 * 5230.0, 240 * 5230 + 3 * 5230.2, 240 * 5230 + 3 * 5230.2]
    )
    out["bid"][:, 0], out["ask"][:, 0] = [5230, 5230, 5230.2], [5230.8, 5230.4, np.finfo(float).max]
    out["bid_size"][:, 0], out["ask_size"][:, 0] = 1, [2, 2, 0]
    return out


def dsb(path: Path, ticks: Any, version: int) -> Path:
    import pyarrow as pa

    head = MAGIC + np.array([24, version], "<u2").tobytes()
    body = ticks.tobytes()
    if version in (2, 4):
        body = pa.compress(body, "zstd", asbytes=True)
        head += len(body).to_bytes(8, "little")
    path.write_bytes(head + body)
    return path


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_wondertrader_versions_say_the_same(tmp_path: Path, version: int) -> None:
    assert (NARROW.itemsize, WIDE.itemsize) == (402, 512)
    made = made_ticks(NARROW if version < 3 else WIDE)
    (source,) = open_sources("wondertrader", [dsb(tmp_path / "x.dsb", made, version)])
    rows = rows_of(source)
    check(rows, source.spec).require()
    assert source.spec.name == "IF2101.CFFEX"
    assert states(rows) == ["AUCTION", "OPEN"]
    assert traded(rows) == (243, 240 * 26_150 + 3 * 26_151)  # what the auction traded is in it
    book = BookStream()
    book.feed(rows)
    assert book.levels(1, 9).tolist() == [[26_151, 1, 0]]
    assert book.levels(-1, 9).tolist() == []


def test_a_damaged_dsb_is_refused_or_read_as_far_as_it_goes(tmp_path: Path) -> None:
    path = dsb(tmp_path / "x.dsb", made_ticks(NARROW), 1)
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    with pytest.raises(DataError, match="397 bytes after row 2"):
        rows_of(open_sources("wondertrader", [path])[0])
    (source,) = open_sources("wondertrader", [path], repair=True)
    rows_of(source)
    assert source.counts == {"snapshots": 2, "files damaged at the end": 1}
    for text, error, message in (
        (b"text", SchemaError, "no .dsb file"),
        (whole[:8] + b"\x15" + whole[9:], SchemaError, "type 21"),
        (whole[:15], DataError, "cut short"),
    ):
        path.write_bytes(text)
        with pytest.raises(error, match=message):
            open_sources("wondertrader", [path])


def test_ticks_of_another_contract_are_named(tmp_path: Path) -> None:
    made = made_ticks(NARROW)
    made["code"][1] = b"IF2102"
    path = dsb(tmp_path / "x.dsb", made, 2)
    with pytest.raises(DataError, match="row 2: code IF2102"):
        rows_of(open_sources("wondertrader", [path])[0])


@pytest.mark.parametrize(
    ("day", "volume", "turnover"),
    [
        (4, 84_288, 132_807_388_020),
        (5, 88_203, 140_413_643_280),
        (6, 94_934, 153_535_642_320),
    ],
)
def test_real_wondertrader_days(data_dir: Path, day: int, volume: int, turnover: int) -> None:
    path = file_of(data_dir, f"cn_futures/CFFEX.IF.HOT_tick_2021010{day}.dsb")
    (source,) = open_sources("wondertrader", [path])
    rows = rows_of(source)
    check(rows, source.spec).require()
    assert traded(rows) == (volume, turnover // 60)
    assert states(rows) == ["AUCTION", "OPEN", "HALT", "OPEN", "CLOSED"]
    touch = BookStream().feed(rows)[1:]  # but for the state before the first snapshot
    assert (touch["bid"] < touch["ask"]).all()

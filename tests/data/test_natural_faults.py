"""Faults that real files came with: each is refused by name, or mended and counted.

Figures are those of the files' README. Not here: UDP captures, FIX and PITCH, which no importer
reads.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conformance import CASES, Case, rows_of

from hft.data import Source, Store, import_source
from hft.data.books import BookStream
from hft.data.sources import open_sources
from hft.data.text import TextFile
from hft.errors import DataError
from hft.types import Flag, Kind, Trading

NONE = np.iinfo(np.int64).min  # no price


def opened(
    form: str, data_dir: Path, *names: str, symbol: str = "", repair: bool = False
) -> Source:
    paths = [data_dir / name for name in names]
    for path in paths:
        if not path.is_file():
            pytest.skip(f"no {path}")
    (source,) = open_sources(form, paths, facts={"symbol": symbol}, repair=repair)
    return source


def followed(source: Source) -> tuple[BookStream, Any]:
    """The book after all rows, and what we saw of it after each packet."""
    book = BookStream()
    return book, np.concatenate([book.feed(batch.events) for batch in source.batches()])


def crossed(touch: Any) -> Any:
    return (touch["bid"] != NONE) & (touch["ask"] != NONE) & (touch["bid"] >= touch["ask"])


# A gzip whose checksum is wrong and whose content is readable.

PACKED = [case for case in CASES if case.name.endswith(".gz")]


@pytest.mark.parametrize("case", PACKED, ids=[case.name for case in PACKED])
def test_a_wrong_checksum_is_named_and_with_repair_all_before_it_is_read(
    case: Case, tmp_path: Path
) -> None:
    written = case.write(tmp_path, 500)
    whole = rows_of(case.open(written))
    (path,) = written.paths
    raw = path.read_bytes()
    path.write_bytes(raw[:-8] + bytes(4) + raw[-4:])
    with pytest.raises(DataError, match="CRC"):
        rows_of(case.open(written))
    (source,) = case.open(written, repair=True)
    assert (rows_of([source]) == whole).all()
    assert source.counts["files damaged at the end"] == 1


def test_the_checksum_of_the_bitfinex_log_is_wrong(data_dir: Path) -> None:
    path = data_dir / "faults/bitfinex_L3_feed_badcrc.log.gz"
    if not path.is_file():
        pytest.skip(f"no {path}")
    blocks, lines = TextFile(path).blocks(), []
    with pytest.raises(OSError, match="CRC"):
        lines.extend(text.count(b"\n") for text, _ in blocks)
    assert sum(lines) == 34_472


# A file cut in its last row.


def test_the_last_row_of_the_shanghai_file_is_cut(data_dir: Path) -> None:
    name = "faults/SHorderTrans_truncated_tail.csv.gz"
    with pytest.raises(DataError, match=r"line 2001: 3 columns, want 12: '.*11:00:'"):
        rows_of([opened("shanghai", data_dir, name)])
    source = opened("shanghai", data_dir, name, repair=True)
    assert int(np.count_nonzero(rows_of([source])["seq"])) == 1999
    assert source.counts == {"orders and trades": 1999, "files damaged at the end": 1}


# A receiver's clock that is behind.


@pytest.mark.parametrize("name", ["spot_btcusdt_20240808.gz", "usdm_btcusdt_20240808.gz"])
def test_a_clock_that_is_behind_is_refused_with_the_least_correction(
    data_dir: Path, tmp_path: Path, name: str
) -> None:
    source = opened("binance", data_dir, f"crypto_l2/{name}")
    with pytest.raises(DataError, match=r"behind the venue's by at least 1\.27\d? s"):
        import_source(source, Store(tmp_path / "s"))
    assert not (tmp_path / "s").exists()


def test_the_clock_is_corrected_when_asked(data_dir: Path, tmp_path: Path) -> None:
    source = opened("binance", data_dir, "crypto_l2/spot_btcusdt_20240808.gz")
    done = import_source(source, Store(tmp_path / "s"), clock_offset="auto")
    assert done.clock["behind_by_at_least_ns"] == pytest.approx(1.27e9, rel=0.01)
    assert done.least_latency_ns == done.clock["assumed_floor_ns"]


# Diffs from before the snapshot.


def test_diffs_from_before_the_snapshot_are_dropped_and_the_book_never_crosses(
    data_dir: Path,
) -> None:
    source = opened("binance", data_dir, "crypto_l2/spot_btcusdt_20240808.gz")
    _, touch = followed(source)
    assert source.counts["diffs dropped before the snapshot"] == 2
    assert not crossed(touch).any()


# A log without a time of the venue's, with changes of orders from before it began.


def test_bitstamps_unknown_orders_are_counted(data_dir: Path) -> None:
    name = "crypto_l3/bitstamp_btcusd_20150501_orders.csv.xz"
    source = opened("bitstamp", data_dir, name, symbol="BTCUSD")
    book, touch = followed(source)
    assert source.counts["order events"] == 50_414
    assert book.faults == {"unknown_id": 208 + 5, "reused_id": 0, "overfill": 0}
    assert np.count_nonzero(crossed(touch)) == 972  # of packets; 984 of rows


def test_bitstamps_creation_time_is_not_taken_for_the_events(data_dir: Path) -> None:
    name = "crypto_l3/bitstamp_btcusd_20150501_orders.csv.xz"
    rows = rows_of([opened("bitstamp", data_dir, name, symbol="BTCUSD")])
    assert (np.diff(rows["ts_event"]) >= 0).all()


# A first row from before the first tick.


@pytest.mark.parametrize(
    ("name", "rows"), [("CFFEX.IF2203.20220218", 6341), ("CZCE.TA205.20220218", 3148)]
)
def test_a_first_row_without_a_price(data_dir: Path, name: str, rows: int) -> None:
    path = f"cn_futures/{name}.csv.gz"
    with pytest.raises(DataError, match="line 1: price 0, from before the recorder's first tick"):
        rows_of([opened("cffex", data_dir, path)])
    source = opened("cffex", data_dir, path, repair=True)
    assert len(rows_of([source]))
    assert source.counts["rows without a price"] == 1
    assert source.counts["snapshots"] == rows


# A header where none belongs, times cut, and orders that rest outside the file's one level.


def test_amazons_orders_outside_the_level_are_told_as_levels(data_dir: Path) -> None:
    source = opened("lobster", data_dir, "us_l3/AMZN_2012-06-21_message_1.csv.gz")
    book, touch = followed(source)
    assert source.counts["messages"] == 57_515
    assert source.counts["messages about unknown orders in view"] > 7_467
    assert book.faults == {"unknown_id": 0, "reused_id": 0, "overfill": 0}
    assert not crossed(touch).any()


# A book that is crossed before the market opens, and a snapshot out of sequence.


def test_the_book_of_es_is_crossed_in_the_auction_alone(data_dir: Path) -> None:
    source = opened("databento", data_dir, "dbn/esh4-glbx-mdp3-20231225.mbo.dbn.zst")
    book, touch = followed(source)
    over = crossed(touch)
    assert np.count_nonzero(over) == 891
    assert (touch["trading"][over] == Trading.AUCTION).all()
    assert book.live_orders == 11_217
    assert (touch[["bid", "bid_lots", "ask", "ask_lots"]][-1].tolist()) == (19240, 22, 19241, 28)


def test_the_snapshot_of_es_may_be_out_of_sequence(data_dir: Path, tmp_path: Path) -> None:
    source = opened("databento", data_dir, "dbn/esh4-glbx-mdp3-20231225.mbo.dbn.zst")
    rows = rows_of([source])
    back = np.flatnonzero(np.diff(rows["seq"]) < 0)
    ends = int(np.flatnonzero(rows["kind"] == Kind.SNAPSHOT_END)[0])
    assert np.count_nonzero(back < ends) == 1684
    assert (rows["flags"][back[back < ends]] & Flag.RECOVERED != 0).all()
    import_source(source, Store(tmp_path / "s"))

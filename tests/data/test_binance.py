"""Binance captures: the snapshot rule, the chain, trades, and two real markets."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from hft.adapters.binance import BinanceCapture
from hft.data import Store, import_source
from hft.data.info import describe
from hft.errors import DataError, OutOfOrder
from hft.types import Flag, Kind, Trading

RECV = 1_723_161_600_000_000_000
MS = RECV // 1_000_000


class Capture:
    """Writes lines a second apart."""

    def __init__(self, *, futures: bool = False) -> None:
        self.lines: list[str] = []
        self._futures = futures
        self._ms = MS

    def add(self, body: dict) -> Capture:
        self._ms += 1000
        self.lines.append(f"{self._ms * 1_000_000 + 5_000_000} {json.dumps(body)}")
        return self

    def diff(self, first: int, last: int, before: int = 0, price: str = "100.01") -> Capture:
        body = {"e": "depthUpdate", "E": self._ms, "s": "AB", "U": first, "u": last}
        if self._futures:
            body |= {"pu": before, "T": self._ms - 1}
        return self.add(body | {"b": [[price, "1.5"]], "a": []})

    def snapshot(self, update: int) -> Capture:
        levels = {"bids": [["100.00", "1"]], "asks": [["100.02", "2"], ["100.03", "3"]]}
        return self.add({"lastUpdateId": update, **levels})

    def trade(self, number: int, event: str = "trade", **more: object) -> Capture:
        key = "t" if event == "trade" else "a"
        body = {"e": event, "E": self._ms, "T": self._ms - 1, "s": "AB", key: number}
        return self.add(body | {"p": "100.02", "q": "0.5", "m": False} | more)

    def rows(self, tmp_path: Path, **options: object) -> tuple[np.ndarray, dict[str, int]]:
        path = tmp_path / "capture"
        path.write_text("\n".join(self.lines) + "\n")
        source = BinanceCapture(path, **options)
        batches = [batch.events for batch in source.batches()]
        return np.concatenate(batches), source.counts


def kinds(rows: np.ndarray) -> list[str]:
    return [Kind(k).name for k in rows["kind"]]


def test_spot_drops_what_the_snapshot_holds_and_joins_at_the_next(tmp_path: Path) -> None:
    capture = Capture().diff(1, 5).diff(6, 9).snapshot(9).diff(10, 12).diff(13, 13)
    rows, counts = capture.rows(tmp_path)
    assert counts["diffs dropped before the snapshot"] == 2
    assert kinds(rows) == ["SNAPSHOT_BEGIN"] + ["LEVEL"] * 3 + ["SNAPSHOT_END"] + ["LEVEL"] * 2
    assert rows["seq"].tolist() == [9] * 5 + [12, 13]
    assert rows["side"].tolist() == [0, 1, -1, -1, 0, 1, 1]
    assert rows["price"].tolist() == [0, 10000, 10002, 10003, 0, 10001, 10001]
    ends = [bool(f & Flag.LAST) for f in rows["flags"]]
    assert ends == [False] * 4 + [True] * 3
    assert [bool(f & Flag.RECOVERED) for f in rows["flags"]] == [True] * 5 + [False] * 2
    assert (np.diff(rows["ts_recv"]) >= 0).all()


def test_waiting_diffs_are_applied_when_the_snapshot_comes(tmp_path: Path) -> None:
    rows, counts = Capture().diff(1, 5).diff(6, 9).snapshot(7).diff(10, 10).rows(tmp_path)
    assert counts["diffs dropped before the snapshot"] == 1
    assert rows["seq"].tolist() == [7] * 5 + [9, 10]
    assert rows["ts_recv"][5] == rows["ts_recv"][4]


def test_futures_join_with_the_snapshot_inside_and_chain_by_pu(tmp_path: Path) -> None:
    capture = Capture(futures=True).diff(1, 5, 0).snapshot(7).diff(6, 9, 5).diff(20, 22, 9)
    rows, counts = capture.rows(tmp_path)
    assert counts["diffs dropped before the snapshot"] == 1
    assert rows["seq"].tolist() == [7] * 5 + [9, 22]
    source = BinanceCapture(tmp_path / "capture")
    assert source.spec.name == "AB.BINANCE_USDM"
    assert rows["ts_event"][-1] % 1_000_000_000 == 999_000_000  # T, not E


@pytest.mark.parametrize("futures", [False, True])
def test_a_broken_chain_is_a_gap_until_the_next_snapshot(tmp_path: Path, futures) -> None:
    capture = Capture(futures=futures).snapshot(9).diff(9, 12, 8).diff(15, 16, 14).diff(17, 18, 16)
    rows, counts = capture.snapshot(16).diff(19, 19, 18).rows(tmp_path)
    assert counts["chain breaks"] == 1
    gap = rows[rows["kind"] == Kind.STATUS]
    assert gap["ref_id"].tolist() == [Trading.GAP]
    assert counts["snapshots"] == 2
    after = rows[int(np.flatnonzero(rows["kind"] == Kind.STATUS)[0]) + 1 :]
    assert after["seq"].tolist() == [16] * 5 + ([16] if futures else []) + [18, 19]


def test_a_snapshot_too_old_is_a_gap(tmp_path: Path) -> None:
    rows, counts = Capture().snapshot(5).diff(9, 12).snapshot(10).rows(tmp_path)
    assert counts["snapshots too old"] == 1
    assert rows["seq"][-1] == 12
    assert (rows["kind"] == Kind.STATUS).sum() == 1


def test_repeats_are_left_out_and_counted(tmp_path: Path) -> None:
    capture = (
        Capture().snapshot(9).diff(10, 12).diff(10, 12).trade(5).trade(5).trade(8).snapshot(12)
    )
    rows, counts = capture.rows(tmp_path)
    assert counts["diffs repeated"] == counts["trades repeated"] == 1
    assert counts["trade ids missing"] == 2
    assert counts["snapshots not needed"] == 1
    assert kinds(rows)[5:] == ["LEVEL", "TRADE", "TRADE"]


def test_the_buyer_as_maker_means_that_the_seller_was_the_aggressor(tmp_path: Path) -> None:
    rows, _ = Capture().trade(1, m=True).trade(2, m=False).rows(tmp_path)
    assert rows["side"].tolist() == [-1, 1]
    assert rows["qty"].tolist() == [5, 5]
    assert rows["seq"].tolist() == [1, 2]


def test_aggregated_trades_only_where_there_are_no_others(tmp_path: Path) -> None:
    rows, _ = Capture().trade(1, "aggTrade").rows(tmp_path)
    assert rows["seq"].tolist() == [1]
    rows, counts = Capture().trade(1, "aggTrade").trade(9).rows(tmp_path)
    assert rows["seq"].tolist() == [9]
    assert counts["aggTrade left out"] == 1


def test_other_messages_symbols_and_prints_are_left_out(tmp_path: Path) -> None:
    capture = Capture().trade(1).trade(2, s="CD").trade(2, X="INSURANCE_FUND")
    capture.add({"e": "24hrTicker", "E": MS, "p": 1, "s": "AB", "a": 1.5})
    capture.add({"stream": "x", "data": {"u": 1, "s": "AB", "b": "1", "B": "1", "a": "1"}})
    rows, counts = capture.rows(tmp_path)
    assert len(rows) == 1
    assert counts["other symbols"] == counts["prints off the market"] == 1
    assert counts["24hrTicker left out"] == counts["bookTicker left out"] == 1


def test_local_time_in_us_and_captures_that_follow_each_other(tmp_path: Path) -> None:
    first, second = Capture().snapshot(9).diff(10, 11), Capture().trade(1)
    second.lines.append(Capture().diff(12, 13).lines[0].replace("1723161601", "1723161609"))
    cut = [line.partition(" ") for line in first.lines]
    (tmp_path / "a.gz").write_bytes(
        gzip.compress("\n".join(f"{ts[:16]} {body}" for ts, _, body in cut).encode())
    )
    (tmp_path / "b").write_text("\n".join(second.lines))
    source = BinanceCapture(tmp_path / "a.gz", tmp_path / "b")
    rows = np.concatenate([b.events for b in source.batches()])
    assert rows["seq"].tolist() == [9] * 5 + [11, 1, 13]
    assert rows["ts_recv"][0] == RECV + 1_005_000_000


def test_tick_and_lot_from_the_decimals(tmp_path: Path, capture: list[str]) -> None:
    path = tmp_path / "c"
    path.write_text("\n".join(capture))
    source = BinanceCapture(path)
    assert (source.spec.tick, source.spec.lot) == (0.1, 0.001)
    assert source.inferred == ["symbol BTCUSDT", "tick 0.1", "lot 0.001"]
    given = BinanceCapture(path, tick=1.0, lot=0.001)
    with pytest.raises(DataError, match=r"line \d+: price 5999\d\.\d is off the tick of 1\.0"):
        list(given.batches())


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('1723161601000000000 {"e":"tra', "line 3: JSON is cut"),
        ('17231616010 {"e":"trade"}', "line 3: local time"),
        ('9223161601000000000 {"e":"trade"}', "line 3: local time .* after the year 2200"),
        ('1723161601000000000 {"e":"trade","T":17231616010000}', "neither in ms nor in us"),
        ("nonsense", "line 3: JSON is cut"),
        (
            '1723161601000000000 {"e":"trade","s":"AB","t":9,"p":"x","q":"1","T":1723161601000}',
            "line 3: price 'x' is no finite number",
        ),
        ('1723161601000000000 {"e":"trade","s":"AB","p":"1","q":"1"}', "line 3: trade without id"),
        ('1723161601000000000 {"e":"depthUpdate","s":"AB","b":3,"a":[]}', "line 3: depthUpdate"),
        ('1723161601000000000 {"e":"depthUpdate","E":"x"}', "line 3: depthUpdate: Expected `int`"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, says: str) -> None:
    capture = Capture().trade(1).trade(2)
    capture.lines.append(line)
    with pytest.raises(DataError, match=says):
        capture.rows(tmp_path)


def test_repair_leaves_out_lines_that_cannot_be_read(tmp_path: Path) -> None:
    capture = Capture().trade(1)
    capture.lines.append('1723161601000000000 {"e":"tra')
    rows, counts = capture.trade(2).rows(tmp_path, repair=True)
    assert len(rows) == 2
    assert counts["lines unreadable"] == 1


def test_a_truncated_gzip_leaves_nothing_or_what_was_readable(
    tmp_path: Path, capture: list[str]
) -> None:
    whole = gzip.compress("\n".join(capture).encode())
    path = tmp_path / "c.gz"
    path.write_bytes(whole[:-200])
    store = Store(tmp_path / "s")
    with pytest.raises(DataError, match=r"damaged after line \d+"):
        import_source(BinanceCapture(path), store)
    assert not store.path.exists()
    done = import_source(BinanceCapture(path, repair=True), store, repair=True)
    assert done.counts["files damaged at the end"] == 1
    assert done.rows > 50


def test_diffs_without_any_snapshot_make_no_book(tmp_path: Path) -> None:
    capture = Capture().diff(1, 2).trade(1)
    with pytest.raises(DataError, match="no snapshot line"):
        capture.rows(tmp_path)
    rows, _ = capture.rows(tmp_path, repair=True)
    assert kinds(rows) == ["TRADE"]


def test_a_venue_time_far_back_is_no_reordering(tmp_path: Path) -> None:
    capture = Capture().trade(1).trade(2).trade(3, T=MS - 3_600_000)
    (tmp_path / "c").write_text("\n".join(capture.lines))
    with pytest.raises(OutOfOrder, match=r"goes back 3601 s .* further than the 10 s"):
        import_source(BinanceCapture(tmp_path / "c"), Store(tmp_path / "s"))
    done = import_source(
        BinanceCapture(tmp_path / "c", repair=True), Store(tmp_path / "s"), repair=True
    )
    assert done.repaired["venue times raised"] == 1


def test_not_a_capture(tmp_path: Path) -> None:
    path = tmp_path / "c"
    path.write_text("")
    with pytest.raises(DataError, match="no Binance capture"):
        BinanceCapture(path)
    with pytest.raises(DataError, match="no such file"):
        BinanceCapture(tmp_path / "none")


REAL = {
    "spot": (3451, 2, 9757, 1.275, "61685.99 x 1.25869 / 61686 x 2.44807"),
    "usdm": (6551, 4, 21313, 1.272, "61659.7 x 1.486 / 61659.8 x 0.981"),
}


@pytest.mark.parametrize("market", ["spot", "usdm"])
def test_a_real_day(tmp_path: Path, data_dir: Path, market: str) -> None:
    diffs, dropped, trades, behind_s, touch = REAL[market]
    path = data_dir / "crypto_l2" / f"{market}_btcusdt_20240808.gz"
    store = Store(tmp_path / "s")
    source = BinanceCapture(path)
    with pytest.raises(DataError, match=rf"by at least {behind_s} s over the file"):
        import_source(source, store)
    assert not store.path.exists()
    done = import_source(source, store, clock_offset="auto")
    assert done.least_latency_ns == 1_000_000
    assert done.clock["behind_by_at_least_ns"] == pytest.approx(behind_s * 1e9, rel=1e-3)
    assert done.counts["diffs"] == diffs
    assert done.counts["diffs dropped before the snapshot"] == dropped
    assert done.counts["trades"] == trades
    assert "chain breaks" not in done.counts
    assert "trade ids missing" not in done.counts
    info = describe(store, done.spec.name)
    bid, bid_lots, ask, ask_lots = info.touch
    tick, lot = done.spec.tick, done.spec.lot
    assert touch.split(" x ")[0] == f"{bid * tick:.10g}"
    assert touch.split(" / ")[1].split(" x ")[0] == f"{ask * tick:.10g}"
    assert bid_lots * lot > 0
    assert ask_lots * lot > 0
    assert info.crossed == info.gaps == 0
    assert store.meta(done.spec.name, "2024-08-08").imported["clock"]["mode"] == "auto"


def test_a_real_day_of_2023_in_us(tmp_path: Path, data_dir: Path) -> None:
    folder = data_dir / "crypto_l2"
    spot = BinanceCapture(folder / "spot_btcusdt_20230405.dat.gz")
    with pytest.raises(DataError, match="3,929 depth diffs but no snapshot"):
        list(spot.batches())
    futures = BinanceCapture(folder / "usdm_btcusdt_20230404.dat.gz")
    done = import_source(futures, Store(tmp_path / "s"), clock_offset="20ms")
    assert done.counts["trades"] == 2197
    assert done.counts["diffs"] == 4322
    assert describe(Store(tmp_path / "s"), done.spec.name).crossed == 0

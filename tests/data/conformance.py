"""What the conformance suite knows of each importer: how to write a good file of its format.

A `Case` says how to make a file of a made-up market of any length, what rows it must give, and
which constants bound the blocks it is read in. `test_conformance.py` and `test_importer_fuzz.py`
run over CASES; a new importer is one more case (docs/adding-an-importer.md).

Run as a script, it imports one file and prints by how many bytes that raised the peak of memory.
"""

from __future__ import annotations

import gzip
import sys
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from hft.data import Source
from hft.data.sources import FORMATS, Request
from hft.types import EVENT, Flag, Kind

DAY_US = 1_723_161_600_000_000  # 2024-08-09T00:00
MODULES = {**FORMATS, "template": "hft.adapters.template"}


class Written(NamedTuple):
    """Files of a made-up market, and what must come out of them."""

    paths: list[Path]
    kinds: dict[Kind, int]
    """Rows by kind."""
    traded_lots: int
    columns: Path | None = None
    """The map, of a format that needs one."""


@dataclass(frozen=True)
class Case:
    """One importer on one kind of file."""

    name: str
    form: str
    write: Callable[[Path, int], Written]
    """Write into a folder what gives about so many rows."""
    facts: dict[str, Any] = field(default_factory=dict)
    blocks: tuple[str, ...] = ()
    """Constants that bound what is read at once: in bytes if their name ends so, else in rows."""
    settings: dict[str, Any] = field(default_factory=dict)
    packets: int = 1
    """That a line gives at most."""
    cut: str = "prefix"
    """What a file cut anywhere gives, with repair: `prefix`, what was before the cut; `open`, the
    same but for the last line's, since a last line may be taken as whole or a row depends on the
    next; `nothing`, if all hangs on the file's end; `merged`, a feed that lacks a stream's rest."""
    rows: int = 3000
    """Of a small file."""
    long: int = 50_000
    """Rows of the shorter of two files whose need of memory is compared."""
    real: tuple[str, ...] = ()
    """Files of real data, beneath HFT_DATA."""
    real_facts: dict[str, Any] = field(default_factory=dict)
    bare: str = "bytes"
    """What tests/bench/imports.py compares with: polars on `csv` or `parquet`, or unpacking."""

    def open(self, written: Written, *, repair: bool = False) -> list[Source]:
        """The sources of written files."""
        return self.sources(written.paths, written.columns, repair=repair)

    def sources(
        self, paths: list[Path], columns: Path | None = None, *, repair: bool = False
    ) -> list[Source]:
        """What the importer opens."""
        adapter = import_module(MODULES[self.form])
        opened: list[Source] = adapter.open_files(
            Request(
                self.form, paths, dict(self.facts), columns, repair=repair, settings=self.settings
            )
        )
        return opened


def rows_of(sources: list[Source]) -> Any:
    """All rows of all sources, in file order."""
    parts = [batch.events.copy() for source in sources for batch in source.batches()]
    return np.concatenate([np.empty(0, EVENT), *parts])


def kinds_of(rows: Any) -> dict[Kind, int]:
    """Rows by kind."""
    kinds, counts = np.unique(rows["kind"], return_counts=True)
    return {Kind(int(k)): int(n) for k, n in zip(kinds, counts, strict=True)}


def traded(rows: Any) -> int:
    """Lots of all prints."""
    printed = (rows["kind"] == Kind.TRADE) | (rows["kind"] == Kind.EXECUTE)
    return int(rows["qty"][printed & (rows["flags"] & Flag.NO_PRINT == 0)].sum())


def packed(case: Case) -> Case:
    """The same files, each as gzip."""

    def write(folder: Path, rows: int) -> Written:
        written = case.write(folder, rows)
        for path in written.paths:
            path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes(), 1))
            path.unlink()
        return written._replace(paths=[p.with_name(p.name + ".gz") for p in written.paths])

    cut = "prefix" if case.cut == "open" else case.cut
    return replace(case, name=f"{case.name}.gz", write=write, cut=cut, real=())


# A made-up market of levels and prints, and of orders; each format writes one of the two.


class Feed(NamedTuple):
    """Book levels and prints, two or three rows a packet; (n,) each."""

    us: Any
    trade: Any
    side: Any
    ticks: Any
    lots: Any

    def written(self, paths: list[Path], columns: Path | None = None, **more: int) -> Written:
        """What a format that holds just this must give."""
        prints = int(self.trade.sum())
        kinds = {Kind.LEVEL: len(self.us) - prints, Kind.TRADE: prints}
        return Written(paths, kinds, int(self.lots[self.trade].sum()), columns)


def feed(rows: int) -> Feed:
    """The same rows every time; a longer feed begins with a shorter one."""
    at = np.arange(rows)
    side = np.where(at * 7919 % 5 < 2, 1, -1)
    ticks = 60_000 + at // 50 % 100 - side * (1 + at * 31 % 40)
    return Feed(DAY_US + at // 3 * 700, at % 5 == 4, side, ticks, 1 + at * 17 % 900)


class Orders(NamedTuple):
    """Orders come, trade and go, each row a packet of its own; (n,) each."""

    us: Any
    what: Any
    """`A` add, `X` cancel of a part, `E` execution of a part, `D` delete of what is left, `F`
    execution of what is left, `P` print that touches no order."""
    id: Any
    """Of the resting order."""
    side: Any
    """Of the resting order."""
    ticks: Any
    lots: Any
    """That are added, traded or taken away."""
    left: Any
    """That the order has after it."""
    other: Any
    """Id of an aggressor that never rested."""


_LIVES = (
    # (what, which order of the eight-row stretch, lots)
    ("A", 0, 500),
    ("A", 1, 300),
    ("E", 0, 100),
    ("X", 1, 100),
    ("P", 0, 100),
    ("D", 0, 400),
    ("F", 1, 200),
    ("A", 2, 700),
)


def orders(rows: int) -> Orders:
    """The same rows every time; a longer stream begins with a shorter one."""
    stretch, step = np.divmod(np.arange(rows), len(_LIVES))
    which = np.array([order for _, order, _ in _LIVES])[step]
    left = {0: [500], 1: [300], 2: [700]}
    after = []
    for what, order, lots in _LIVES:
        if what in "EXDF":
            left[order].append(left[order][-1] - lots)
        after.append(left[order][-1])
    side = np.where(which == 1, -1, 1)
    return Orders(
        us=DAY_US + np.arange(rows) * 900,
        what=np.array([what for what, _, _ in _LIVES])[step],
        id=1 + stretch * 3 + which,
        side=side,
        ticks=60_000 + stretch % 50 - side * (1 + stretch % 7),
        lots=np.array([lots for _, _, lots in _LIVES])[step],
        left=np.array(after)[step],
        other=10**9 + np.arange(rows),
    )


def _csv(path: Path, columns: dict[str, Any], *, header: bool = True) -> Path:
    import polars as pl

    pl.DataFrame(columns).write_csv(path, include_header=header, float_precision=4)
    return path


# The formats.


def _template(folder: Path, rows: int) -> Written:
    f = feed(rows)
    book, prints = np.where(f.side > 0, "bid", "ask"), np.where(f.side > 0, "buy", "sell")
    words = np.where(f.trade, prints, book)
    columns = {"time": f.us, "what": words, "price": f.ticks / 100, "size": f.lots}
    return f.written([_csv(folder / "feed.txt", columns)])


def _hftbacktest(form: str) -> Callable[[Path, int], Written]:
    def write(folder: Path, rows: int) -> Written:
        from hft.adapters.hftbacktest import EVENT_DTYPE

        f = feed(rows)
        out = np.zeros(rows, EVENT_DTYPE)
        out["ev"] = np.where(f.side > 0, 1 << 29, 1 << 28) | (3 << 30) | np.where(f.trade, 2, 1)
        out["exch_ts"], out["local_ts"] = f.us * 1000, f.us * 1000 + 2_000_000
        out["px"], out["qty"] = f.ticks / 100, f.lots
        path = folder / f"feed.{form}"
        np.save(path, out) if form == "npy" else np.savez_compressed(path, data=out)
        return f.written([path])

    return write


_MAP = """
[instrument]
symbol = "X"
venue = "V"
tick = 0.01
lot = 1
[columns]
ts_event = { column = "t", unit = "us" }
ts_recv = { column = "t", unit = "us", add = "1ms" }
price = "p"
qty = "q"
kind = { column = "k", values = { T = "trade", L = "level" } }
side = "s"
"""


def _table(form: str) -> Callable[[Path, int], Written]:
    def write(folder: Path, rows: int) -> Written:
        import polars as pl

        f = feed(rows)
        kind, side = np.where(f.trade, "T", "L"), np.where(f.side > 0, "B", "S")
        columns = {"t": f.us, "k": kind, "s": side, "p": f.ticks / 100, "q": f.lots}
        (folder / "map.toml").write_text(_MAP)
        path = folder / f"feed.{form}"
        if form == "csv":
            _csv(path, columns)
        else:
            pl.DataFrame(columns).write_parquet(path, row_group_size=5000)
        return f.written([path], folder / "map.toml")

    return write


def _binance(folder: Path, rows: int) -> Written:
    """An early diff, a snapshot of two levels, then diffs of two levels and trades."""
    levels = '"bids": [["599.00", "1"]], "asks": [["601.00", "2"]]'
    early = f'"E": {DAY_US // 1000}, "s": "XY", "U": 100, "u": 100, "b": [], "a": []'
    lines = [
        f'{DAY_US + 900} {{"e": "depthUpdate", {early}}}',
        f'{DAY_US + 950} {{"lastUpdateId": 100, {levels}}}',
    ]
    diffs, trades = 0, 0
    while 4 + 2 * diffs + trades < rows:
        us = DAY_US + (1 + diffs) * 100_000
        price = f"{60_000 + diffs % 40}"
        bid, ask = f"{price[:3]}.{price[3:]}", f"6{price[1:3]}.5{price[4]}"
        update = f'"U": {101 + diffs}, "u": {101 + diffs}'
        body = f'"b": [["{bid}", "{1 + diffs % 9}"]], "a": [["{ask}", "{diffs % 9}"]]'
        head = f'"E": {us // 1000}, "s": "XY"'
        lines.append(f'{us + 900} {{"e": "depthUpdate", {head}, {update}, {body}}}')
        diffs += 1
        if diffs % 2:
            trades += 1
            body = f'"t": {trades}, "T": {us // 1000}, "p": "{bid}", "q": "3", "m": true'
            lines.append(f'{us + 1900} {{"e": "trade", {head}, {body}}}')
    path = folder / "capture"
    path.write_text("\n".join(lines) + "\n")
    kinds = {
        Kind.SNAPSHOT_BEGIN: 1,
        Kind.SNAPSHOT_END: 1,
        Kind.LEVEL: 2 + 2 * diffs,
        Kind.TRADE: trades,
    }
    return Written([path], kinds, 3 * trades)


def _order_kinds(rows: int) -> tuple[dict[Kind, int], int]:
    """What a format that holds `orders` gives, and the lots it trades."""
    o = orders(rows)
    count = {what: int(np.count_nonzero(o.what == what)) for what in "AXEDFP"}
    kinds = {
        Kind.TRADE: count["P"],
        Kind.ADD: count["A"],
        Kind.CANCEL: count["X"] + count["D"],
        Kind.EXECUTE: count["E"] + count["F"],
    }
    return kinds, int(o.lots[np.isin(o.what, ["E", "F", "P"])].sum())


_ITCH_HEAD = [("length", ">u2"), ("type", "S1"), ("locate", ">u2"), ("tracking", ">u2")]
_ITCH_HEAD += [("ts_high", ">u2"), ("ts_low", ">u4")]
_ITCH_REST: dict[str, tuple[str, list[tuple[str, str]]]] = {
    "A": ("A", [("id", ">u8"), ("side", "S1"), ("lots", ">u4"), ("stock", "S8"), ("price", ">u4")]),
    "E": ("E", [("id", ">u8"), ("lots", ">u4"), ("match", ">u8")]),
    "X": ("X", [("id", ">u8"), ("lots", ">u4")]),
    "D": ("D", [("id", ">u8")]),
    "P": ("P", []),
    "F": (
        "C",
        [("id", ">u8"), ("lots", ">u4"), ("match", ">u8"), ("shown", "S1"), ("price", ">u4")],
    ),
}
_ITCH_REST["P"] = ("P", [*_ITCH_REST["A"][1], ("match", ">u8")])


def _itch(folder: Path, rows: int) -> Written:
    """One stock: its directory, then orders."""
    rows = rows // len(_LIVES) * len(_LIVES)
    o, types = orders(rows), []
    for step, (what, _, _) in enumerate(_LIVES):
        types.append((str(step), np.dtype(_ITCH_HEAD + _ITCH_REST[what][1])))
    out = np.zeros(rows // len(_LIVES), np.dtype(types))
    for step, (what, _, _) in enumerate(_LIVES):
        part, mine = out[str(step)], slice(step, None, len(_LIVES))
        ns = (o.us[mine] - DAY_US) * 1000
        side = np.where(o.side[mine] > 0, b"B", b"S")
        values = {"length": part.dtype.itemsize - 2, "type": _ITCH_REST[what][0], "locate": 7}
        values |= {"ts_high": ns >> 32, "ts_low": ns & 0xFFFFFFFF, "stock": "XY      "}
        values |= {"id": o.id[mine], "lots": o.lots[mine], "side": side, "shown": b"Y"}
        values |= {"price": o.ticks[mine] * 100, "match": 1 + o.us[mine] - DAY_US}
        for name in part.dtype.names or ():
            part[name] = values.get(name, 0)
    directory = b"R" + (7).to_bytes(2, "big") + bytes(8) + b"XY      " + b"Q".ljust(20, b"\0")
    path = folder / "2024-08-09.itch"
    path.write_bytes(len(directory).to_bytes(2, "big") + directory + out.tobytes())
    return Written([path], *_order_kinds(rows))


_MBO = np.dtype(
    [
        ("length", "u1"),
        ("rtype", "u1"),
        ("publisher_id", "<u2"),
        ("instrument_id", "<u4"),
        ("ts_event", "<u8"),
        ("order_id", "<u8"),
        ("price", "<i8"),
        ("size", "<u4"),
        ("flags", "u1"),
        ("channel_id", "u1"),
        ("action", "S1"),
        ("side", "S1"),
        ("ts_recv", "<u8"),
        ("ts_in_delta", "<i4"),
        ("sequence", "<u4"),
    ]
)


def _dbn(form: str) -> Callable[[Path, int], Written]:
    """MBO records: an execution is told as trade, fill and cancel, as Databento does."""

    def write(folder: Path, rows: int) -> Written:
        dbn = pytest.importorskip("databento_dbn")
        o = orders(rows // 2)
        fills = np.isin(o.what, ["E", "F"])
        at = np.repeat(np.arange(len(o.us)), np.where(fills, 3, 1))
        step = np.arange(len(at)) - np.searchsorted(at, at, "left")
        words = {"A": b"A", "X": b"C", "D": b"C", "P": b"T", "E": b"T", "F": b"T"}
        action = np.array([words[what] for what in o.what.tolist()])[at]
        action = np.where(step == 1, b"F", np.where(step == 2, b"C", action))
        side = np.where((o.side[at] > 0) != (action == b"T"), b"B", b"A")
        out = np.zeros(len(at), _MBO)
        out["length"], out["rtype"], out["publisher_id"], out["instrument_id"] = 14, 160, 2, 7
        out["ts_event"], out["ts_recv"] = o.us[at] * 1000, o.us[at] * 1000 + 5_000
        out["order_id"] = np.where(action == b"T", o.other[at], o.id[at])
        out["price"], out["size"] = o.ticks[at] * 10_000_000, o.lots[at]
        out["action"], out["side"], out["sequence"] = action, side, 1 + at
        out["flags"][np.append(at[1:] != at[:-1], True)] = 128
        metadata = dbn.Metadata(
            "XNAS.ITCH",
            DAY_US * 1000,
            dbn.SType.RAW_SYMBOL,
            dbn.SType.INSTRUMENT_ID,
            dbn.Schema.MBO,
        )
        raw = bytes(metadata) + out.tobytes()
        path = folder / f"xnas.{form}"
        if form == "dbn":
            path.write_bytes(raw)
        else:
            path.write_bytes(_zstd(raw[: len(raw) // 2]) + _zstd(raw[len(raw) // 2 :]))
        count = {what: int(np.count_nonzero(o.what == what)) for what in "AXDP"}
        filled = int(np.count_nonzero(fills))
        kinds = {
            Kind.TRADE: count["P"] + filled,
            Kind.ADD: count["A"],
            Kind.CANCEL: count["X"] + count["D"] + filled,
            Kind.EXECUTE: filled,
        }
        return Written([path], kinds, int(o.lots[np.isin(o.what, ["E", "F", "P"])].sum()))

    return write


def _zstd(raw: bytes) -> bytes:
    import pyarrow as pa

    return bytes(pa.compress(raw, "zstd", asbytes=True))


def _clock(rows: int) -> Any:
    """Times of day in Beijing as the vendors write them, a millisecond apart, (rows,) of text."""
    import polars as pl

    ms = pl.Series(36_000_000 + np.arange(rows))
    return ms.cast(pl.Datetime("ms")).dt.strftime("%H:%M:%S%.3f").to_numpy()


def _shanghai(form: str) -> Callable[[Path, int], Written]:
    """Orders and trades: as two files, as a zip of both, or as one file."""

    def write(folder: Path, rows: int) -> Written:
        o = orders(rows)
        trade, order = np.isin(o.what, ["E", "F"]), np.isin(o.what, ["A", "D"])
        day = folder / "20240809"
        day.mkdir(exist_ok=True)
        clock, number = _clock(rows), 1 + np.arange(rows)
        buyer = np.where(o.side > 0, o.id, o.other)
        seller = np.where(o.side < 0, o.id, o.other)
        if form == "one":
            both = {
                "SecurityID": ["600519.SH"] * rows,
                "Date": ["2024.08.09"] * rows,
                "Time": clock,
                "SourceType": trade.astype(int),
                "Type": np.where(o.what == "D", 10, np.where(trade, 0, 2)),
                "Price": o.ticks * 100,
                "Qty": o.lots,
                "BSFlag": np.where((o.side > 0) != trade, 1, 2),
                "BuyNo": np.where(trade | (o.side > 0), buyer, 0),
                "SellNo": np.where(trade | (o.side < 0), seller, 0),
                "ApplSeqNum": number,
            }
            mine = trade | order
            paths = [_csv(day / "both.csv", {k: np.asarray(v)[mine] for k, v in both.items()})]
        else:
            same = {"SecurityID": np.full(rows, 600519), "BizIndex": number, "LocalTime": clock}
            entrust = {
                **same,
                "OrderTime": clock,
                "OrderType": o.what,
                "OrderNO": o.id,
                "OrderPrice": o.ticks / 100,
                "Balance": o.lots,
                "OrderBSFlag": np.where(o.side > 0, "B", "S"),
            }
            trades = {
                **same,
                "TradTime": clock,
                "TradPrice": o.ticks / 100,
                "TradVolume": o.lots,
                "TradeBuyNo": buyer,
                "TradeSellNo": seller,
                "TradeBSFlag": np.where(o.side > 0, "S", "B"),
            }
            paths = [
                _csv(day / "entrust.csv", {k: v[order] for k, v in entrust.items()}),
                _csv(day / "trade.csv", {k: v[trade] for k, v in trades.items()}),
            ]
        if form == "zip":
            with zipfile.ZipFile(
                day / "20240809.zip", "w", zipfile.ZIP_DEFLATED, True, 1
            ) as archive:
                for path in paths:
                    archive.write(path, f"20240809/{path.name}")
            paths = [day / "20240809.zip"]
        kinds = {
            Kind.CLEAR: 1,
            Kind.ADD: int(np.count_nonzero(o.what == "A")),
            Kind.CANCEL: int(np.count_nonzero(o.what == "D")),
            Kind.EXECUTE: int(np.count_nonzero(trade)),
            Kind.STATUS: 1,
        }
        return Written(paths, kinds, int(o.lots[trade].sum()))

    return write


class Quotes(NamedTuple):
    """Snapshots 10 ms apart, from 10:00 in Beijing; the best bid's size alone changes."""

    bids: Any
    """(levels, 2, n) of ticks and lots."""
    asks: Any
    volume: Any
    """Traded so far: five lots at the best ask in every second snapshot."""
    ms: Any
    """After midnight."""

    @property
    def hhmmssmmm(self) -> Any:
        """The time as a number."""
        seconds, ms = np.divmod(self.ms, 1000)
        minutes, seconds = np.divmod(seconds, 60)
        return ((minutes // 60 * 100 + minutes % 60) * 100 + seconds) * 1000 + ms

    def written(self, path: Path, *, book: bool = True) -> Written:
        """What a format that holds just this must give."""
        n, levels = len(self.ms), len(self.bids)
        kinds = {Kind.TRADE: n // 2, Kind.STATUS: 1}
        if book:
            frame = {Kind.SNAPSHOT_BEGIN: 1, Kind.SNAPSHOT_END: 1}
            kinds = {Kind.LEVEL: 2 * levels + n - 1, **frame, **kinds}
        return Written([path], dict(sorted(kinds.items())), 5 * (n // 2))


_BEST_ASK = 20_000  # ticks


def quotes(rows: int, levels: int) -> Quotes:
    """The same snapshots every time, of which about so many rows come."""
    n = max(rows * 2 // 3, 2)
    at, size = np.arange(n), np.ones(n, np.int64)
    bids = np.array([[(_BEST_ASK - 1 - k) * size, (100 + k) * size] for k in range(levels)])
    asks = np.array([[(_BEST_ASK + k) * size, (200 + k) * size] for k in range(levels)])
    bids[0, 1] = 1 + at % 7
    return Quotes(bids, asks, (at + 1) // 2 * 5, 36_000_000 + 10 * at)


def _shenzhen(form: str) -> Callable[[Path, int], Written]:
    def write(folder: Path, rows: int) -> Written:
        import polars as pl

        q = quotes(rows, 10)
        n = len(q.ms)
        columns = {
            "SecurityID" if form == "csv" else "HTSCSecurityID": ["000001.SZ"] * n,
            "MDDate": ["20240809"] * n,
            "MDTime": [f"{t:09}" for t in q.hhmmssmmm.tolist()],
            "TradingPhaseCode": ["3"] * n,
            "TotalVolumeTrade": q.volume.astype(float),
            "TotalValueTrade": q.volume * _BEST_ASK / 100,
            "LastPx": np.full(n, _BEST_ASK / 100),
        }
        csv = form == "csv"
        if not csv:
            columns["ReceiveDateTime"] = 20240809 * 10**9 + q.hhmmssmmm
        for side, levels in (("Buy", q.bids), ("Sell", q.asks)):
            for at, (ticks, lots) in enumerate(levels, 1):
                columns[f"{side}Price{at}" if csv else f"{side}{at}Price"] = ticks / 100
                columns[f"{side}OrderQty{at}" if csv else f"{side}{at}OrderQty"] = lots * 1.0
        path = folder / f"snapshots.{form}"
        frame = pl.DataFrame(columns)
        frame.write_csv(path) if csv else frame.write_parquet(path, row_group_size=3000)
        return q.written(path)

    return write


def _cffex_levels(folder: Path, rows: int) -> Written:
    q = quotes(rows, 5)
    n, clock = len(q.ms), _stamps(q.ms)
    columns = {
        "CONTRACTID": ["TF2412"] * n,
        "TDATETIME": clock,
        "LASTPRICE": np.full(n, _BEST_ASK * 0.005),
        "VOLUME": q.volume * 1.0,
        "AMOUNT": q.volume * _BEST_ASK * 50.0,
        "LOCALTIME": clock,
    }
    for side, levels in (("B", q.bids), ("S", q.asks)):
        for at, (ticks, lots) in enumerate(levels, 1):
            columns[f"{side}{at:02}"], columns[f"{side}V{at:02}"] = ticks * 0.005, lots * 1.0
    return q.written(_csv(folder / "TF2412.csv", columns))


def _stamps(ms: Any) -> Any:
    import polars as pl

    at = pl.Series(DAY_US // 1000 + ms).cast(pl.Datetime("ms"))
    return at.dt.strftime("%Y-%m-%d %H:%M:%S%.3f").to_numpy()


def _cffex_ticks(folder: Path, rows: int) -> Written:
    q = quotes(2 * rows, 1)
    n = len(q.ms)
    seconds = np.char.partition(_stamps(q.ms).astype(str), " ")[:, 2]
    turnover = q.volume * _BEST_ASK * 60
    columns = {
        "code": ["IF2409"] * n,
        "trading_day": ["20240809"] * n,
        "day": ["20240809"] * n,
        "time": q.hhmmssmmm,
        "local": [text[:8] for text in seconds.tolist()],
        "last": np.full(n, _BEST_ASK * 0.2),
        **{"total": q.volume, "interest": q.volume, "turnover": turnover},
        **{"volume": q.volume, "change": q.volume, "worth": turnover},
    }
    path = _csv(folder / "CFFEX.IF2409.20240809.csv", columns, header=False)
    return q.written(path, book=False)


def _wondertrader(folder: Path, rows: int) -> Written:
    from hft.adapters.wondertrader import MAGIC, NARROW

    q = quotes(rows, 1)
    out = np.zeros(len(q.ms), NARROW)
    out["exchange"], out["code"], out["date"], out["time"] = (
        "CFFEX",
        "IF2409",
        20240809,
        q.hhmmssmmm,
    )
    out["price"], out["total_volume"] = _BEST_ASK * 0.2, q.volume
    out["total_turnover"] = q.volume * _BEST_ASK * 60.0
    for side, levels in (("bid", q.bids), ("ask", q.asks)):
        out[side] = out[f"{side}_size"] = 0
        out[side][:, 0], out[f"{side}_size"][:, 0] = levels[0, 0] * 0.2, levels[0, 1]
    body = _zstd(out.tobytes())
    head = MAGIC + np.array([24, 2], "<u2").tobytes() + len(body).to_bytes(8, "little")
    path = folder / "CFFEX.IF2409_tick_20240809.dsb"
    path.write_bytes(head + body)
    return q.written(path)


def _lobster(folder: Path, rows: int) -> Written:
    o = orders(rows)
    types = {"A": 1, "X": 2, "D": 3, "E": 4, "F": 4, "P": 5}
    us = 34_200_000_000 + o.us - DAY_US
    columns = {
        "time": [f"{at // 1_000_000}.{at % 1_000_000:06}" for at in us.tolist()],
        "type": [types[what] for what in o.what.tolist()],
        "id": o.id,
        "size": o.lots,
        "price": o.ticks * 100,
        "side": o.side,
    }
    path = _csv(folder / "XY_2024-08-09_message_10.csv", columns, header=False)
    return Written([path], *_order_kinds(rows))


def _bitstamp(form: str) -> Callable[[Path, int], Written]:
    """In turn: a bid, an ask, a seller that meets the bid, their fills, and both cancelled."""
    lives = (
        # (action, id, left, side)
        ("created", 0, 900, 0),
        ("created", 1, 700, 1),
        ("created", 2, 200, 1),
        ("changed", 0, 700, 0),
        ("deleted", 2, 0, 1),
        ("deleted", 1, 700, 1),
        ("deleted", 0, 700, 0),
    )

    def write(folder: Path, rows: int) -> Written:
        n = max(rows // len(lives), 1)
        rows = n * len(lives)
        action, order, left, side = (np.array(column) for column in zip(*lives, strict=True))
        ms = DAY_US // 1000 + 5 * np.arange(rows)
        ids = np.tile(order, n) + np.repeat(1 + 3 * np.arange(n), len(lives))
        price = np.where(np.tile(order == 1, n), 610.25, 600.25)
        sides = np.tile(side, n)
        path = folder / f"orders.{form}"
        if form == "csv":
            columns = {
                "id": ids,
                "timestamp": ms,
                "exchange.timestamp": ms // 1000 * 1000,
                "price": price,
                "volume": np.tile(left, n),
                "action": np.tile(action, n),
                "direction": np.where(sides == 0, "bid", "ask"),
            }
            _csv(path, columns)
        else:
            values = zip(ms, np.tile(action, n), price, np.tile(left, n), ids, sides, strict=True)
            lines = [
                f'{ms} order_{action} {{"price": "{price}", "amount": "{left / 1e8:.8f}", '
                f'"id": {order}, "order_type": {side}}}\n'
                for ms, action, price, left, order, side in values
            ]
            path.write_text("".join(lines))
        kinds = {Kind.ADD: 3 * n, Kind.CANCEL: 2 * n, Kind.EXECUTE: 2 * n}
        return Written([path], kinds, 200 * n)

    return write


def _tardis(folder: Path, rows: int) -> Written:
    """Trades and quotes of one instrument, a file each."""
    n = max(rows // 2, 2)
    o = orders(n)
    same = {"exchange": ["binance-futures"] * n, "symbol": ["XY"] * n, "timestamp": o.us}
    same |= {"local_timestamp": o.us + 900}
    taker = np.where(o.side > 0, "sell", "buy")
    trades = {"id": o.id, "side": taker, "price": o.ticks / 100, "amount": o.lots}
    ((bid, bid_lots),), ((ask, ask_lots),) = (side[:, :, :n] for side in quotes(2 * n, 1)[:2])
    quotes_ = {"ask_amount": ask_lots, "ask_price": ask / 100}
    quotes_ |= {"bid_price": bid / 100, "bid_amount": bid_lots}
    paths = [
        _csv(folder / "trades.csv", same | trades),
        _csv(folder / "quotes.csv", same | {"timestamp": o.us + 300} | quotes_),
    ]
    kinds = {Kind.LEVEL: n + 1, Kind.SNAPSHOT_BEGIN: 1, Kind.SNAPSHOT_END: 1, Kind.TRADE: n}
    return Written(paths, kinds, int(o.lots.sum()))


def _tardis_book(folder: Path, rows: int) -> Written:
    f = feed(rows)
    columns = {
        "exchange": ["binance-futures"] * rows,
        "symbol": ["XY"] * rows,
        "timestamp": f.us,
        "local_timestamp": f.us + 900,
        "is_snapshot": np.where(np.arange(rows) < 3, "true", "false"),
        "side": np.where(f.side > 0, "bid", "ask"),
        "price": f.ticks / 100,
        "amount": f.lots,
    }
    path = _csv(folder / "incremental_book_L2.csv", columns)
    return Written([path], {Kind.LEVEL: rows, Kind.SNAPSHOT_BEGIN: 1, Kind.SNAPSHOT_END: 1}, 0)


def _tardis_depth(folder: Path, rows: int) -> Written:
    q = quotes(3 * rows // 2, 5)
    n = len(q.ms)
    us = DAY_US + q.ms * 1000
    columns = {"exchange": ["binance"] * n, "symbol": ["XY"] * n, "timestamp": us}
    columns["local_timestamp"] = us + 900
    for at, levels in enumerate(zip(q.asks, q.bids, strict=True)):
        for side, (ticks, lots) in zip(("asks", "bids"), levels, strict=True):
            columns[f"{side}[{at}].price"], columns[f"{side}[{at}].amount"] = ticks / 100, lots
    path = _csv(folder / "book_snapshot_5.csv", columns)
    kinds = {Kind.LEVEL: 10 + n - 1, Kind.SNAPSHOT_BEGIN: 1, Kind.SNAPSHOT_END: 1}
    return Written([path], kinds, 0)


def _bars(form: str) -> Callable[[Path, int], Written]:
    """Bars of a second, each of whose four prints lies two ticks or more from the one before."""

    def write(folder: Path, rows: int) -> Written:
        import polars as pl

        n = max(rows // 20, 2)
        at = np.arange(n)
        first = 60_000 + 40 * (at % 2)
        low, high = first - 3 - at % 3, first + 4 + at % 5
        columns = {
            "ts": DAY_US + at * 1_000_000,
            "open": first / 100,
            "high": high / 100,
            "low": low / 100,
            "close": np.where(at % 2, low + 2, high - 2) / 100,
            "volume": 4 + at * 17 % 900,
        }
        path = folder / f"bars.{form}"
        if form == "csv":
            _csv(path, columns)
        else:
            pl.DataFrame(columns).write_parquet(path, row_group_size=500)
        kinds = {Kind.LEVEL: 8 * n + 2 * (4 * n - 1), Kind.TRADE: 4 * n}
        return Written([path], kinds, int(columns["volume"].sum()))

    return write


_X = {"symbol": "X", "venue": "V", "tick": 0.01, "lot": 1.0}
_OF_BARS = {"stamp": "start", "bar": "1s", "unit": "us", "spread_ticks": 1}

_BLOCKS = ("hft.data.text.BLOCK_BYTES", "hft.data.text.PIECE_BYTES")
_TEMPLATE = Case(
    "template",
    "template",
    _template,
    {"symbol": "X", "tick": 0.01},
    _BLOCKS,
    cut="open",
    bare="csv",
)
_CSV = Case(
    "csv",
    "csv",
    _table("csv"),
    {},
    _BLOCKS,
    cut="open",
    bare="csv",
)
_BARS = Case(
    "bars",
    "bars",
    _bars("csv"),
    _X,
    _BLOCKS,
    settings=_OF_BARS,
    packets=4,
    cut="open",
    bare="csv",
)
_DBN = ("hft.adapters.databento.records.BLOCK_BYTES",)
_ITCH = Case(
    "itch", "itch", _itch, {}, ("hft.adapters.itch.PIECE_BYTES", "hft.adapters.itch.BATCH_ROWS")
)
_BINANCE = Case(
    "binance",
    "binance",
    _binance,
    {"tick": 0.01, "lot": 1.0},
    (*_BLOCKS, "hft.adapters.binance.capture.BATCH"),
    real=("crypto_l2/spot_btcusdt_20240808.gz",),
)

_BOOK = Case("tardis.book", "tardis", _tardis_book, blocks=_BLOCKS, cut="open", bare="csv")

CASES = (
    _TEMPLATE,
    packed(_TEMPLATE),
    _BINANCE,
    packed(_BINANCE),
    _CSV,
    packed(_CSV),
    _BARS,
    packed(_BARS),
    Case(
        "bars.parquet",
        "bars",
        _bars("parquet"),
        _X,
        ("hft.data.parquet_blocks.BATCH_ROWS",),
        settings=_OF_BARS,
        cut="nothing",
        rows=6000,
        bare="parquet",
    ),
    _ITCH,
    packed(_ITCH),
    Case("databento", "databento", _dbn("dbn"), {"tick": 0.01}, _DBN),
    Case(
        "databento.zst",
        "databento",
        _dbn("dbn.zst"),
        {"tick": 0.01},
        _DBN,
        real=("dbn/esh4-glbx-mdp3-20231225.mbo.dbn.zst",),
    ),
    Case(
        "shenzhen",
        "shenzhen",
        _shenzhen("parquet"),
        blocks=("hft.data.parquet_blocks.BATCH_ROWS",),
        cut="nothing",
        long=20_000,
        real=("cn_l2/MDStockRecord_000001.SZ_202009_01-10.parquet",),
        bare="parquet",
    ),
    Case(
        "shenzhen.csv",
        "shenzhen",
        _shenzhen("csv"),
        {"venue": "SZSE"},
        _BLOCKS,
        cut="open",
        rows=600,
        long=10_000,
        real=("cn_l2/szse_5stocks_20220601_snapshot10.zip",),
        bare="csv",
    ),
    Case(
        "cffex",
        "cffex",
        _cffex_levels,
        blocks=_BLOCKS,
        cut="open",
        rows=600,
        long=10_000,
        real=("cn_futures/TF1603_20151225_L5.csv.gz",),
        bare="csv",
    ),
    Case("cffex.ticks", "cffex", _cffex_ticks, blocks=_BLOCKS, cut="open", long=20_000, bare="csv"),
    Case(
        "wondertrader",
        "wondertrader",
        _wondertrader,
        blocks=("hft.adapters.wondertrader.BLOCK_ROWS", "hft.adapters.wondertrader.PIECE_BYTES"),
        real=("cn_futures/CFFEX.IF.HOT_tick_20210104.dsb",),
    ),
    Case(
        "lobster",
        "lobster",
        _lobster,
        blocks=_BLOCKS,
        cut="open",
        real=(
            "us_l3/AMZN_2012-06-21_message_1.csv.gz",
            "us_l3/AMZN_2012-06-21_orderbook_1.csv.gz",
        ),
        bare="csv",
    ),
    Case(
        "bitstamp",
        "bitstamp",
        _bitstamp("csv"),
        {"symbol": "XY"},
        _BLOCKS,
        cut="open",
        real=("crypto_l3/bitstamp_btcusd_20150501_orders.csv.xz",),
        real_facts={"symbol": "BTCUSD"},
        bare="csv",
    ),
    Case(
        "bitstamp.log",
        "bitstamp",
        _bitstamp("log"),
        {"symbol": "XY"},
        (*_BLOCKS, "hft.adapters.bitstamp.readers._BATCH"),
        cut="open",
        real=("crypto_l3/bitstamp_btcusd_20150501.log.xz",),
        real_facts={"symbol": "BTCUSD"},
    ),
    Case(
        "tardis",
        "tardis",
        _tardis,
        blocks=_BLOCKS,
        cut="merged",
        real=(
            "crypto_l2/tardis_binance-futures_trades_20200222.csv.gz",
            "crypto_l2/tardis_binance-futures_quotes_20200222.csv.gz",
        ),
        bare="csv",
    ),
    _BOOK,
    packed(_BOOK),
    Case(
        "tardis.depth", "tardis", _tardis_depth, blocks=_BLOCKS, cut="open", long=20_000, bare="csv"
    ),
    Case("shanghai", "shanghai", _shanghai("two"), blocks=_BLOCKS, cut="merged", bare="csv"),
    Case(
        "shanghai.zip",
        "shanghai",
        _shanghai("zip"),
        blocks=_BLOCKS,
        cut="nothing",
        real=("cn_l3/sse_600519_20230201_tonglian.zip",),
        bare="csv",
    ),
    Case("shanghai.one", "shanghai", _shanghai("one"), blocks=_BLOCKS, cut="open", bare="csv"),
    Case(
        "parquet",
        "parquet",
        _table("parquet"),
        blocks=("hft.data.parquet_blocks.BATCH_ROWS",),
        cut="nothing",
        bare="parquet",
    ),
    Case(
        "hftbacktest.npy",
        "hftbacktest",
        _hftbacktest("npy"),
        _X,
        ("hft.adapters.hftbacktest.CHUNK",),
    ),
    Case(
        "hftbacktest.npz",
        "hftbacktest",
        _hftbacktest("npz"),
        _X,
        ("hft.adapters.hftbacktest.CHUNK",),
        cut="nothing",
    ),
)


def real(case: Case) -> Case:
    """The case with what its real files need to be told."""
    return replace(case, facts=case.real_facts)


def resized(case: Case, size: int) -> Iterator[tuple[str, int]]:
    """The case's constants for blocks of so many bytes, or an eighth as many rows."""
    for name in case.blocks:
        yield name, size if name.endswith("BYTES") else size // 8


def _peak_growth(name: str, folder: Path, rows: int, *, hold: bool) -> int:
    """Bytes by which reading `folder`'s file of so many rows raises the peak of memory."""
    case = next(c for c in CASES if c.name == name)
    for where, size in resized(case, 1 << 16):
        module, _, attribute = where.rpartition(".")
        setattr(import_module(module), attribute, size)
    _drain(case, folder / "100", hold=False)
    before = _status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    _drain(case, folder / str(rows), hold=hold)
    return _status("VmHWM") - before


def _status(name: str) -> int:
    # Not getrusage: its peak is inherited from the process that started this one.
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line.split()[1] for line in lines if line.startswith(name)))


def _drain(case: Case, folder: Path, *, hold: bool) -> None:
    paths = [Path(line) for line in (folder / "paths").read_text().splitlines()]
    maps = sorted(folder.glob("*.toml"))
    held = []
    for source in case.sources(paths, maps[0] if maps else None):
        for batch in source.batches():
            assert batch.done <= 1
            if hold:
                held.append(batch)


if __name__ == "__main__":
    hold = sys.argv[4:] == ["hold"]
    print(_peak_growth(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), hold=hold))

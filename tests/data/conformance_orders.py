"""Cases of the conformance suite for LOBSTER, Bitstamp and Tardis."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from conformance import DAY_US, Case, Written, feed, orders, packed

from hft.types import Kind

BLOCKS = ("hft.data.csv_blocks.BLOCK_BYTES",)


def _kinds(what: Any, kind_of: dict[str, Kind]) -> dict[Kind, int]:
    counts: dict[Kind, int] = {}
    for letter, kind in kind_of.items():
        counts[kind] = counts.get(kind, 0) + int((what == letter).sum())
    return counts


def _lobster(folder: Path, rows: int) -> Written:
    """Orders from 9:30 on."""
    o = orders(rows)
    types = {"A": 1, "X": 2, "D": 3, "E": 4, "F": 4, "P": 5}
    us = o.us - DAY_US + 34_200_000_000
    columns = {
        "time": [f"{t // 10**6}.{t % 10**6:06d}" for t in us.tolist()],
        "type": [types[w] for w in o.what],
        "id": np.where(o.what == "P", 0, o.id),
        "size": o.lots,
        "price": o.ticks * 100,
        "side": o.side,
    }
    path = folder / "X_2024-08-09_message_10.csv"
    pl.DataFrame(columns).write_csv(path, include_header=False)
    kind_of = {"A": Kind.ADD, "X": Kind.CANCEL, "D": Kind.CANCEL, "P": Kind.TRADE}
    kind_of |= {"E": Kind.EXECUTE, "F": Kind.EXECUTE}
    return Written([path], _kinds(o.what, kind_of), int(o.lots[np.isin(o.what, list("EFP"))].sum()))


def _bitstamp(form: str) -> Callable[[Path, int], Written]:
    def write(folder: Path, rows: int) -> Written:
        """Fills without another side; what the log cannot say (partial cancels, prints) is left."""
        o = orders(rows)
        told = np.isin(o.what, list("AEDF"))
        # A cancel of a part is no event here, so what it took is traded by the fill that follows.
        action = {"A": "created", "E": "changed", "D": "deleted", "F": "deleted"}
        columns = {
            "id": o.id[told],
            "timestamp": (o.us // 1000 + np.arange(rows))[told],
            "exchange.timestamp": (o.us // 1000)[told],
            "price": [f"{t / 100:.2f}" for t in o.ticks[told]],
            "volume": np.where(o.what == "D", o.lots, o.left)[told],
            "action": [action[w] for w in o.what[told]],
            "direction": np.where(o.side > 0, "bid", "ask")[told],
        }
        path = folder / f"btcusd.{form}"
        if form == "csv":
            pl.DataFrame(columns).write_csv(path)
        else:
            path.write_text("".join(_log_lines(columns)))
        kinds = {"A": Kind.ADD, "E": Kind.EXECUTE, "D": Kind.CANCEL, "F": Kind.EXECUTE}
        traded = int(o.lots[o.what == "E"].sum()) + 300 * int((o.what == "F").sum())
        return Written([path], _kinds(o.what, kinds), traded)

    return write


def _log_lines(columns: dict[str, Any]) -> list[str]:
    lines = []
    for order_id, ms, _, price, volume, action, side in zip(*columns.values(), strict=True):
        body = {"price": price, "amount": f"{volume / 1e8:.8f}", "id": int(order_id)}
        body |= {"datetime": "0", "order_type": int(side == "ask")}
        lines.append(f"{ms} order_{action} {json.dumps(body)}\n")
        if action == "created":
            lines.append(f'{ms} order_book {{"bids": [], "asks": []}}\n')
    return lines


def _tardis(what: str) -> Callable[[Path, int], Written]:
    def write(folder: Path, rows: int) -> Written:
        f = feed(rows)
        book, prints = ~f.trade, f.trade
        lots = int(f.lots[prints].sum())
        kinds = {Kind.LEVEL: int(book.sum()), Kind.TRADE: int(prints.sum())}
        paths = [_tardis_book(folder, f, book), _tardis_trades(folder, f, prints)]
        if what == "book":
            return Written(paths[:1], {Kind.LEVEL: kinds[Kind.LEVEL]}, 0)
        if what == "trades":
            return Written(paths[1:], {Kind.TRADE: kinds[Kind.TRADE]}, lots)
        return Written(paths, kinds, lots)

    return write


def _head(f: Any, rows: Any) -> dict[str, Any]:
    count = int(rows.sum())
    times = {"timestamp": f.us[rows], "local_timestamp": f.us[rows] + 2000}
    return {"exchange": ["made-up"] * count, "symbol": ["XY"] * count} | times


def _tardis_book(folder: Path, f: Any, rows: Any) -> Path:
    path = folder / "incremental_book_L2.csv"
    columns = _head(f, rows) | {
        "is_snapshot": ["false"] * int(rows.sum()),
        "side": np.where(f.side[rows] > 0, "bid", "ask"),
        "price": [f"{t / 100:.2f}" for t in f.ticks[rows]],
        "amount": [f"{q}.0" for q in f.lots[rows]],
    }
    pl.DataFrame(columns).write_csv(path)
    return path


def _tardis_trades(folder: Path, f: Any, rows: Any) -> Path:
    path = folder / "trades.csv"
    columns = _head(f, rows) | {
        "id": 1 + np.arange(int(rows.sum())),
        "side": np.where(f.side[rows] > 0, "buy", "sell"),
        "price": [f"{t / 100:.2f}" for t in f.ticks[rows]],
        "amount": [f"{q}.0" for q in f.lots[rows]],
    }
    pl.DataFrame(columns).write_csv(path)
    return path


_LOBSTER = Case(
    "lobster",
    "lobster",
    _lobster,
    blocks=BLOCKS,
    cut="open",
    real=("us_l3/AMZN_2012-06-21_message_1.csv.gz",),
)
_BITSTAMP = Case(
    "bitstamp",
    "bitstamp",
    _bitstamp("csv"),
    {"symbol": "XY", "tick": 0.01},
    BLOCKS,
    cut="open",
    real=("crypto_l3/bitstamp_btcusd_20150501_orders.csv.xz",),
    real_facts={"symbol": "BTCUSD"},
)
_STEPS = {"tick": 0.01, "lot": 1.0}
_BOOK = Case("tardis.book", "tardis", _tardis("book"), _STEPS, BLOCKS, cut="open")

CASES = (
    _LOBSTER,
    packed(_LOBSTER),
    _BITSTAMP,
    packed(_BITSTAMP),
    replace(_BITSTAMP, name="bitstamp.log", write=_bitstamp("log"), real=(), real_facts={}),
    _BOOK,
    packed(_BOOK),
    Case("tardis.trades", "tardis", _tardis("trades"), _STEPS, BLOCKS, cut="open"),
    Case(
        "tardis",
        "tardis",
        _tardis("both"),
        _STEPS,
        BLOCKS,
        cut="merged",
        real=(
            "crypto_l2/tardis_binance-futures_quotes_20200222.csv.gz",
            "crypto_l2/tardis_binance-futures_trades_20200222.csv.gz",
        ),
    ),
)

"""`obi_mm` on every market there is data of, under one rule, as one table (docs/markets.md).

    python backtests/markets.py --data FOLDER [--out TABLE.md] [MARKET ...]

Nothing is tuned. A market's typical spread and touch size, while it trades, set the parameters: a
quarter of the touch an order, ten orders at most, quotes half a spread from fair; where the feed is
of snapshots, a look every half second instead of every 10 ms. Days end flat. Fees are left
out, since they would say more about the venue's price list than about fills. A feed of orders is
run twice, as it is and told as levels, where the queue must be estimated.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import hft
from hft.analysis.records import FillReason
from hft.data.books import NO_PRICE, BookStream
from hft.data.importing import import_source
from hft.data.sources import open_sources
from hft.data.store import Store
from hft.errors import HftError
from hft.types import Flag, Kind, Trading

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Market:
    """One import, and what must be said for it."""

    title: str
    form: str
    files: tuple[str, ...]
    facts: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    venue: dict[str, Any] = field(default_factory=dict)
    sessions: bool = False
    """Several days, each of which ends flat."""
    repair: bool = False


MARKETS = {
    "shanghai": Market(
        "Shanghai 600519, 2023-02-01", "shanghai", ("cn_l3/sse_600519_20230201_tonglian.zip",)
    ),
    "shanghai_bank": Market(
        "Shanghai 601825, 2023-07-11",
        "shanghai",
        ("cn_l3/sse_5stocks_20230711_SHorders.zip", "cn_l3/sse_5stocks_20230711_SHtrans.zip"),
        {"symbol": "601825"},
    ),
    "es": Market("CME ESH4, 2023-12-25", "databento", ("dbn/esh4-glbx-mdp3-20231225.mbo.dbn.zst",)),
    "aapl": Market(
        "Nasdaq AAPL, an hour, 50 levels",
        "lobster",
        (
            "us_l3/AAPL_2012-06-21_0930-1030_message_50.csv.gz",
            "us_l3/AAPL_2012-06-21_first672_orderbook_50.csv.gz",
        ),
    ),
    "amzn": Market(
        "Nasdaq AMZN, a day, 1 level",
        "lobster",
        ("us_l3/AMZN_2012-06-21_message_1.csv.gz", "us_l3/AMZN_2012-06-21_orderbook_1.csv.gz"),
    ),
    "bitstamp": Market(
        "Bitstamp BTCUSD, 2015-05-01",
        "bitstamp",
        ("crypto_l3/bitstamp_btcusd_20150501_orders.csv.xz",),
        {"symbol": "BTCUSD"},
        venue={"cross": "wait_trade"},  # takers are shown whole before their trades are
        repair=True,
    ),
    "usdm": Market(
        "Binance USD-M BTCUSDT",
        "binance",
        ("crypto_l2/usdm_btcusdt_20240808.gz",),
        options={"clock_offset": "auto"},
    ),
    "spot": Market(
        "Binance spot BTCUSDT",
        "binance",
        ("crypto_l2/spot_btcusdt_20240808.gz",),
        options={"clock_offset": "auto"},
    ),
    "tardis": Market(
        "Tardis, Binance futures, quotes",
        "tardis",
        (
            "crypto_l2/tardis_binance-futures_quotes_20200222.csv.gz",
            "crypto_l2/tardis_binance-futures_trades_20200222.csv.gz",
        ),
    ),
    "mbp": Market(
        "Databento futures, best level",
        "databento",
        ("dbn/futures_mbp-1_2024-07-01T23-58_2024-07-02T00-02.dbn.zst",),
    ),
    "shenzhen": Market(
        "Shenzhen 000001, 8 days",
        "shenzhen",
        ("cn_l2/MDStockRecord_000001.SZ_202009_01-10.parquet",),
        sessions=True,
    ),
    "cffex": Market(
        "CFFEX TF1603, 5 levels",
        "cffex",
        ("cn_futures/TF1603_20151225_L5.csv.gz",),
        options={"clock_offset": "auto"},
    ),
    "wondertrader": Market(
        "CFFEX IF, 3 days, 1 level",
        "wondertrader",
        tuple(f"cn_futures/CFFEX.IF.HOT_tick_2021010{d}.dsb" for d in (4, 5, 6)),
        sessions=True,
    ),
    "ticks": Market(
        "CFFEX IF2203, no quotes",
        "cffex",
        ("cn_futures/CFFEX.IF2203.20220218.csv.gz",),
        repair=True,
    ),
}

HEAD = (
    "| market | told as | rows | hours | orders | lots filled | queue / through / crossed | "
    "net, ticks a lot | mid 1 s after, ticks |"
)


def main() -> None:
    """Prints the table, and writes it where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    known = Path(os.environ.get("HFT_DATA", ROOT.parent / "shared/data"))
    parser.add_argument("--data", type=Path, default=known, help="folder of the files")
    parser.add_argument("--out", type=Path, help="file for the table")
    parser.add_argument("only", nargs="*", metavar="MARKET", help=" ".join(MARKETS))
    args = parser.parse_args()
    unknown = set(args.only) - set(MARKETS)
    if unknown:
        parser.error(f"unknown market {', '.join(sorted(unknown))}; there are {', '.join(MARKETS)}")
    lines, notes = [HEAD, "|---" * HEAD.count(" | ") + "|---|"], []
    print(*lines, sep="\n")
    for name in args.only or MARKETS:
        market = MARKETS[name]
        if not all((args.data / file).exists() for file in market.files):
            print(f"({market.title}: no {market.files[0]} in {args.data})")
            continue
        with tempfile.TemporaryDirectory() as folder:
            for line, note in rows_of(market, args.data, Path(folder)):
                lines.append(line)
                notes += [n for n in note if n not in notes]
                print(line, flush=True)
    print("", *notes, sep="\n")
    if args.out:
        args.out.write_text("\n".join([*lines, "", *notes]) + "\n")


def rows_of(market: Market, data: Path, folder: Path) -> list[tuple[str, list[str]]]:
    """Lines of the table of one market, each with what its data cannot tell."""
    store = Store(folder)
    paths = [data / file for file in market.files]
    sources = open_sources(market.form, paths, facts=market.facts, repair=market.repair)
    busiest = max(
        (
            import_source(s, store, repair=market.repair, append=True, **market.options)
            for s in sources
        ),
        key=lambda done: done.rows,
    )
    name = busiest.spec.name
    notes = [f"- {market.title}: {' '.join(f'{c}.' for c in store.cannot_tell(name))}"]
    if notes[0].endswith(": "):
        notes = []
    orders = "ADD" in store.kinds(name)
    views = [("orders", False), ("levels", True)] if orders else [("levels", False)]
    return [(line_of(market, store, name, what, as_levels=told), notes) for what, told in views]


def line_of(market: Market, store: Store, name: str, what: str, *, as_levels: bool) -> str:
    """One run, or why it was refused."""
    try:
        params = parameters(store, name)
        report = hft.backtest(
            ROOT / "strategies/obi_mm.py",
            store.path,
            recipe=recipe_of(market, store, name, params, as_levels=as_levels),
        )
    except HftError as error:
        return f"| {market.title} | {what} | refused: {error} | | | | | | |"
    return f"| {market.title} | {what} | {figures(report)} |"


def parameters(store: Store, name: str) -> dict[str, Any]:
    """From the typical spread and size of the touch while the market is open."""
    book, parts, snapshots = BookStream(), [], False
    for rows in store.chunks(name):
        parts.append(book.feed(rows))
        levels = rows["flags"][rows["kind"] == Kind.LEVEL]
        snapshots = snapshots or bool((levels & Flag.UNCERTAIN).any())
    touches = np.concatenate(parts)
    there = (touches["bid"] != NO_PRICE) & (touches["ask"] != NO_PRICE)
    there &= (touches["trading"] == Trading.OPEN) & (touches["bid"] < touches["ask"])
    if not there.any():
        return {}
    touches = touches[there]
    spread = float(np.median(touches["ask"] - touches["bid"]))
    lots = max(1, round(float(np.median(touches["bid_lots"] + touches["ask_lots"])) / 8))
    return {
        "lots": lots,
        "max_lots": 10 * lots,
        "levels": 1 if len(book.levels(1, 3)) < 3 else 5,
        "lean_ticks": 4 * spread,
        "half_spread_ticks": spread / 2,
        "skew_ticks_per_lot": spread / (10 * lots),
        "interval": "500ms" if snapshots else "10ms",
    }


def recipe_of(
    market: Market, store: Store, name: str, params: dict[str, Any], *, as_levels: bool
) -> dict[str, Any]:
    """A desk in the venue's region; where there is no receive time, a feed like it."""
    timed = not any("receive time" in said for said in store.cannot_tell(name))
    return {
        "data": {"symbols": [name], "as_levels": as_levels},
        "latency": {"feed": "data" if timed else "1ms", "entry": "1ms", "response": "1ms"},
        "engine": {
            "bracket": False,
            "overnight": "flatten" if market.sessions else "carry",
        },
        "venue": market.venue,
        "params": params,
    }


def figures(report: hft.Report) -> str:
    """The cells of a run."""
    run, head = report.run, report.figures["headline"]
    spec, fills = run.instruments[0].spec, run.fills
    lots = int(fills["lots"].sum())
    shares = [
        int(fills["lots"][fills["reason"] == reason].sum()) / max(lots, 1)
        for reason in (FillReason.QUEUE, FillReason.THROUGH, FillReason.CROSSED)
    ]
    worth = spec.tick * spec.lot * spec.multiplier
    markout = report.figures["instruments"][0]["markouts"]["maker"][3]
    after = "" if not markout["fills"] else f"{markout['ticks']:+.2f} ± {markout['ticks_se']:.2f}"
    hours = (run.ts_end - run.ts_start) / 3.6e12
    return " | ".join(
        [
            f"{run.rows:,}",
            f"{hours:.2f}",
            f"{head['orders']:,}",
            f"{lots:,}",
            " / ".join(f"{share:.0%}" for share in shares),
            f"{head['net'] / worth / lots:+.2f}" if lots else "",
            after,
        ]
    )


if __name__ == "__main__":
    main()

"""Which pictures a report has, and what is on them."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from hft.analysis import legs
from hft.analysis.equity import equity_path
from hft.analysis.execution_tables import STAGE_NAMES
from hft.analysis.figures import Figures, by_currency
from hft.analysis.records import NO_PRICE, FillReason
from hft.analysis.run_data import RunData
from hft.analysis.svg import Axes, Bars, Level, Line, Marks, Series, Shape, draw
from hft.analysis.units import span

MAX_INSTRUMENTS = 4
"""Instruments that get pictures of their own: those most traded."""
MAX_TEXTS = 500
"""Fills of one kind that still carry a text to hover over."""

_LATENCY = re.compile(r"latency\s*[x\u00d7*]?\s*(\d+(?:\.\d+)?)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawn chart, its heading and how to read it."""

    title: str
    caption: str
    html: str


def pictures_of(run: RunData, figures: Figures) -> list[Picture]:
    """Every picture of a run, the most asked for first."""
    order = sorted(
        range(len(run.instruments)), key=lambda i: -figures["instruments"][i]["turnover"]
    )
    chosen = order[:MAX_INSTRUMENTS]
    several = len(run.instruments) > 1
    pictures = [_equity(run, currency, group) for currency, group in by_currency(run).items()]
    for instrument in chosen:
        name = f" {run.instruments[instrument].name}" if several else ""
        pictures.append(_price(run, instrument, f"Price and fills{name}"))
        pictures.append(_inventory(run, instrument, f"Inventory{name}"))
        pictures.append(_markouts(figures["instruments"][instrument], f"Mark-outs{name}"))
    pictures += [_shortfall(account) for account in figures["shortfall"]]
    pictures.append(_latency(run))
    ladder = latency_ladder(figures)
    if len(ladder) > 1:
        pictures.append(_ladder(figures, ladder))
    return pictures


def latency_ladder(figures: Figures) -> list[tuple[float, float]]:
    """Net result by latency multiplier, ascending; the run itself stands at 1.

    A variant counts when its name reads like `latency x0.5`.
    """
    steps = {1.0: figures["headline"]["net"]}
    for variant in figures["variants"]:
        if found := _LATENCY.search(variant["name"]):
            steps[float(found[1])] = variant["net"]
    return sorted((times, net) for times, net in steps.items() if net is not None)


def _equity(run: RunData, currency: str, group: list[int]) -> Picture:
    path = equity_path(run, group)
    ts = path.ts.astype(np.float64)
    lines = [
        Line("net", ts, path.net, "net"),
        Line("gross", ts, path.gross, "tone1"),
        Line("spread", ts, path.spread, "tone2"),
        Line("inventory", ts, path.inventory, "tone3"),
        Line("fees", ts, -path.fees, "tone4"),
    ]
    if path.funding.any():
        lines.append(Line("funding", ts, path.funding, "tone5"))
    if path.impact.any():
        lines.append(Line("impact", ts, -path.impact, "quiet"))
    axes = Axes(f"cumulative [{currency or 'currency'}]", "UTC", "time", zero=True)
    caption = (
        "Net = spread + inventory - fees + funding - impact. What is paid is drawn below zero."
    )
    return Picture(f"Equity {currency}".strip(), caption, draw(axes, lines, "equity over time"))


def _price(run: RunData, instrument: int, title: str) -> Picture:
    facts = run.instruments[instrument]
    samples = run.samples[run.samples["instrument"] == instrument]
    known = (samples["bid"] != NO_PRICE) & (samples["ask"] != NO_PRICE)
    mid = np.where(known, (samples["bid"] + samples["ask"]) * (facts.spec.tick / 2), np.nan)
    series: list[Line | Marks] = [Line("mid", samples["ts"].astype(np.float64), mid, "quiet")]
    for maker in (1, 0):
        series += [_fills(run, instrument, side, maker) for side in (1, -1)]
    shown = [each for each in series if each.x.size]
    caption = "Triangles point at the fill: up for buys, down for sells; hollow where we took."
    unit = (
        "" if facts.spec.inverse else f" [{facts.spec.currency}]"
    )  # inverse: not what it settles in
    axes = Axes(f"price{unit}", "UTC", "time")
    return Picture(title, caption, draw(axes, shown, "price with fills"))


def _fills(run: RunData, instrument: int, side: int, maker: int) -> Marks:
    rows, facts = run.fills, run.instruments[instrument]
    rows = rows[
        (rows["instrument"] == instrument) & (rows["side"] == side) & (rows["maker"] == maker)
    ]
    shape: Shape = (
        ("up" if side > 0 else "down") if maker else ("up-open" if side > 0 else "down-open")
    )
    price = rows["price"] * facts.spec.tick
    texts = [
        f"order {row['order']}: {row['lots']} @ {at:.10g}, {FillReason(int(row['reason'])).name}"
        for row, at in zip(rows, price, strict=True)
        if len(rows) <= MAX_TEXTS
    ]
    return Marks(
        f"{'buy' if side > 0 else 'sell'}, {'maker' if maker else 'taker'}",
        rows["ts_venue"].astype(np.float64),
        price,
        "buy" if side > 0 else "sell",
        shape,
        texts=texts,
    )


def _inventory(run: RunData, instrument: int, title: str) -> Picture:
    samples = run.samples[run.samples["instrument"] == instrument]
    position = samples["position"].astype(np.float64)
    lines = [Line("position", samples["ts"].astype(np.float64), position, "tone1", step=True)]
    axes = Axes("position [lots]", "UTC", "time", zero=True)
    return Picture(title, "Long above zero, short below.", draw(axes, lines, "inventory over time"))


def _markouts(figures: Figures, title: str) -> Picture:
    series: list[Series] = []
    for role, tone, shift in (("maker", "tone1", -0.08), ("taker", "tone2", 0.08)):
        points = figures["markouts"][role]
        x = np.arange(len(points)) + shift
        y = np.array([np.nan if p["ticks"] is None else p["ticks"] for p in points], np.float64)
        error = np.array(
            [np.nan if p["ticks_se"] is None else 1.96 * p["ticks_se"] for p in points], np.float64
        )
        if np.isfinite(y).any():
            series += [
                Line(f"{role} fills", x, y, tone),
                Marks(f"{role} 95 %", x, y, tone, error=error),
            ]
    names = ["at fill", *(span(p["horizon_ns"]) for p in figures["markouts"]["maker"][1:])]
    axes = Axes("gain against later mid [ticks]", "time after the fill", "named", names, zero=True)
    caption = "Lot-weighted. A healthy maker starts at the half spread and settles above zero."
    return Picture(title, caption, draw(axes, series, "mark-outs by horizon"))


def _shortfall(account: Figures) -> Picture:
    """Stages piled up to the total, all orders; beside each, the middle half of filled ones."""
    stages = account["all"]
    names = [name for name in stages if name == "total" or stages[name]["money"]]
    bps = np.array([stages[name]["bps"] or 0.0 for name in names])
    high = np.append(np.cumsum(bps[:-1]), bps[-1])
    low = np.append(np.append(0.0, high[:-2]), 0.0) if len(names) > 1 else np.zeros(1)
    x = np.arange(len(names)) - 0.2
    series: list[Series] = []
    for label, tone, chosen in (
        ("cost", "sell", high > low),
        ("gain", "buy", high <= low),
    ):
        texts = [f"{STAGE_NAMES[names[i]]}: {bps[i]:+.3f} bps" for i in np.flatnonzero(chosen)]
        ends = np.minimum(low, high)[chosen], np.maximum(low, high)[chosen]
        if chosen.any():
            series.append(Bars(f"{label}, weighted mean", x[chosen], *ends, tone, 0.36, texts))
    filled = [(i, account["filled"].get(name)) for i, name in enumerate(names)]
    known = [(i, stage) for i, stage in filled if stage and stage["median"] is not None]
    if known:
        at = np.array([i for i, _ in known]) + 0.2
        low, high, middle = (
            np.array([stage[key] for _, stage in known]) for key in ("q25", "q75", "median")
        )
        series.append(Bars("middle half of filled orders", at, low, high, "tone1", 0.3))
        series.append(Marks("their median", at, middle, "tone1"))
    short = ["unfilled" if name == "opportunity" else name for name in names]
    axes = Axes("cost [bps]", "", "named", short, zero=True)
    caption = (
        "What carrying decisions out cost, stage after stage up to the total, of all orders; a bar "
        "down is a gain. Beside it how it lies over the orders that were filled, without "
        "opportunity."
    )
    currency = f" {account['currency']}" if account["currency"] else ""
    title = f"Implementation shortfall{currency}"
    return Picture(title, caption, draw(axes, series, "implementation shortfall by stage"))


def _latency(run: RunData) -> Picture:
    series: list[Series] = []
    for (name, values), tone in zip(
        legs.durations(run.orders).items(), ("tone1", "tone2", "tone3", "tone4", "net"), strict=True
    ):
        if values.size:
            ordered = np.sort(values).astype(np.float64)
            series.append(
                Line(name, ordered, np.arange(1, ordered.size + 1) / ordered.size, tone, step=True)
            )
    axes = Axes("share of orders", "at most this long", "log ns", y_share=True)
    caption = "Four legs of each order, and how old a signal's market data were at the venue."
    return Picture("Latency", caption, draw(axes, series, "latency legs"))


def _ladder(figures: Figures, ladder: list[tuple[float, float]]) -> Picture:
    x, y = np.array([step[0] for step in ladder]), np.array([step[1] for step in ladder])
    series: list[Series] = [
        Line("net", x, y, "net"),
        Marks(
            "one replay each", x, y, "net", texts=[f"latency x{a:g}: {b:,.2f}" for a, b in ladder]
        ),
    ]
    for variant in figures["variants"]:
        if variant["net"] is not None and "placebo" in variant["name"].lower():
            series.append(Level(variant["name"], variant["net"], "tone4"))
    currency = figures["headline"]["currency"] or "currency"
    axes = Axes(f"net result [{currency}]", "latency multiplied by", zero=True)
    caption = "A result that survives a shuffled signal was not earned by the signal."
    return Picture(
        "Net result against latency", caption, draw(axes, series, "net result by latency")
    )

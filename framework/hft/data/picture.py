"""A picture of a day: mid, spread, trades, messages and depth, as SVG, HTML or a few letters."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hft.analysis.sheet import sheet
from hft.analysis.svg import Axes, Line, Series, draw
from hft.data.course import DEPTH_LEVELS, SECOND_NS
from hft.errors import ConfigError

if TYPE_CHECKING:
    from hft.data.info import Info

SPARKS = "▁▂▃▄▅▆▇█"
SPARK_WIDTH = 50  # a table 80 columns wide has room for it
PANEL_HEIGHT = 190

Float = NDArray[np.float64]
Panel = tuple[str, Axes, list[Series]]


def draw_days(infos: list[Info], path: Path) -> None:
    """Write the pictures of instruments, each over its whole time, into one file.

    Args:
        infos: from `describe`, with the book.
        path: `.svg`, or `.html`.
    """
    require_picture(path)
    path.write_text(to_text(infos, path.suffix), encoding="utf-8")


def require_picture(path: Path) -> None:
    """Refuse a name that does not end as a picture's, or is in no folder."""
    if not path.absolute().parent.is_dir():
        raise ConfigError(f"{path}: no such folder as {path.parent}, want one that is there")
    if path.suffix not in (".svg", ".html"):
        ending = path.suffix or "without an ending"
        raise ConfigError(f"a picture is a .svg or .html file, {path} is {ending}")


def to_text(infos: list[Info], suffix: str) -> str:
    """The file's text, by how its name ends."""
    if suffix == ".svg":
        panels = [
            (f"{info.spec.name} {title}" if len(infos) > 1 else title, axes, series)
            for info in infos
            for title, axes, series in panels_of(info)
        ]
        name = infos[0].spec.name if len(infos) == 1 else f"{len(infos)} instruments"
        return sheet(panels, name, _period(infos))
    return _page(infos)


def _period(infos: list[Info]) -> str:
    infos = [info for info in infos if info.rows]
    if not infos:
        return "no rows"
    bounds = min(i.ts_first for i in infos), max(i.ts_last for i in infos)
    first, last = (str(np.datetime64(ts // SECOND_NS, "s")).replace("T", " ") for ts in bounds)
    return f"{first} to {last[11:] if first[:10] == last[:10] else last} UTC"


def panels_of(info: Info) -> list[Panel]:
    """Titles, layouts and lines, top to bottom; a panel whose data are missing has no points."""
    if info.steps is None or not len(info.steps):
        return []
    steps, width_s = with_holes(info.steps, info.step_s), info.step_s
    ts = (steps["ts"] + width_s * SECOND_NS // 2).astype(np.float64)
    tick, lot, each = info.spec.tick, info.spec.lot, span_name(width_s)

    def line(label: str, values: Float, tone: str) -> Line:
        return Line(label, ts, values, tone)

    def panel(title: str, unit: str, lines: list[Series], *, zero: bool = True) -> Panel:
        shown = [x for x in lines if isinstance(x, Line) and np.nan_to_num(x.y).any()]
        axes = Axes(unit, "UTC", "time", zero=zero, height=PANEL_HEIGHT)
        return title, axes, list(shown)

    unit = f"price [{info.spec.currency}]" if info.spec.currency else "price"
    traded = [(n, steps[n] * lot, t) for n, t in (("bought", "buy"), ("sold", "sell"))]
    traded.append(("no side told", steps["unsided"] * lot, "tone3"))
    return [
        panel(
            "Mid",
            unit,
            [
                line("highest", steps["high"] * tick, "quiet"),
                line("lowest", steps["low"] * tick, "quiet"),
                line("last", steps["mid"] * tick, "net"),
            ],
            zero=False,
        ),
        panel("Spread", "mean [ticks]", [line("spread", mean_spread(steps), "tone1")]),
        panel(f"Traded {each}", "quantity", [line(*parts) for parts in traded]),
        panel(
            f"Messages {each}",
            "packets",
            [line("packets", steps["packets"].astype(float), "tone5")],
        ),
        panel(
            f"Depth at {DEPTH_LEVELS} levels",
            "quantity",
            [
                line("bids", steps["bid_depth"] * lot, "buy"),
                line("asks", steps["ask_depth"] * lot, "sell"),
            ],
        ),
    ]


def with_holes(steps: NDArray[Any], width_s: int) -> NDArray[Any]:
    """Steps with one without anything at either end of each stretch without rows, (m,).

    So a line breaks over a night and falls to zero where nothing came.
    """
    width = width_s * SECOND_NS
    gaps = np.flatnonzero(np.diff(steps["ts"]) > width)
    hole = np.zeros(2 * len(gaps), steps.dtype)
    hole["ts"] = np.column_stack([steps["ts"][gaps] + width, steps["ts"][gaps + 1] - width]).ravel()
    for name in ("mid", "low", "high", "bid_depth", "ask_depth"):
        hole[name] = np.nan
    return np.insert(steps, np.repeat(gaps + 1, 2), hole)


def mean_spread(steps: NDArray[Any]) -> Float:
    """Mean over packets [ticks]; NaN where there was no quote, (n,)."""
    known = steps["quotes"] > 0
    mean: Float = np.full(len(steps), np.nan)
    mean[known] = steps["spread"][known] / steps["quotes"][known]
    return mean


def span_name(width_s: int) -> str:
    """`a minute`, `in 15 s`."""
    names = {1: "a second", 60: "a minute", 3600: "an hour", 86_400: "a day"}
    if width_s in names:
        return names[width_s]
    for unit_s, unit in ((86_400, "days"), (3600, "h"), (60, "min")):
        if width_s >= unit_s:
            return f"in {width_s // unit_s} {unit}"
    return f"in {width_s} s"


def _page(infos: list[Info]) -> str:
    style = Path(__file__).parents[1] / "analysis" / "report.css"
    parts = []
    for info in infos:
        parts.append(f"<h1>{escape(info.spec.name)}</h1>")
        parts.append(f'<p class="faint">{escape(_period([info]))}</p>')
        parts += [f'<p class="faint">Cannot tell: {escape(t)}.</p>' for t in info.cannot_tell]
        figures = (
            f"<figure><h2>{escape(title)}</h2>{draw(axes, series, title)}</figure>"
            for title, axes, series in panels_of(info)
        )
        parts.append(f'<div class="pictures">{"".join(figures)}</div>')
    title = escape(", ".join(info.spec.name for info in infos))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{title}</title><style>{style.read_text(encoding='utf-8')}body{{margin:0}}"
        "@media (prefers-color-scheme:dark){body{background:#12161d}}</style></head>"
        f'<body><div class="hft-report">{"".join(parts)}</div></body></html>\n'
    )


# ---- in a terminal


def sparklines(info: Info) -> list[tuple[str, str]]:
    """Label and letters of what the picture shows, with the least and the most said."""
    if info.steps is None or len(info.steps) < 2:
        return []
    steps, tick, lot = info.steps, info.spec.tick, info.spec.lot
    each = span_name(info.step_s)
    traded = (steps["bought"] + steps["sold"] + steps["unsided"]).astype(float)
    depth = steps["bid_depth"] + steps["ask_depth"]
    lines = [
        ("mid", steps["mid"] * tick, np.nanmean),
        ("spread, ticks", mean_spread(steps), np.nanmean),
        (f"traded {each}", traded * lot, np.nanmax),
        (f"messages {each}", steps["packets"].astype(float), np.nanmax),
        (f"depth, {DEPTH_LEVELS} levels", depth * lot, np.nanmean),
    ]
    place = _columns(steps["ts"])
    shown = []
    for label, values, pick in lines:
        if np.isfinite(values).any() and np.nanmax(values) != 0:
            ends = f"{np.nanmin(values):,.8g} to {np.nanmax(values):,.8g}"
            shown.append((label, f"{_spark(values, place, pick)}\n{ends}"))
    return shown


def _columns(ts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Which letter each step falls into, (n,)."""
    span = max(int(ts[-1] - ts[0]), 1)
    column: NDArray[np.int64] = (ts - ts[0]) * (SPARK_WIDTH - 1) // span
    return column


def _spark(values: Float, place: NDArray[np.int64], pick: Any) -> str:
    low, high = np.nanmin(values), np.nanmax(values)
    letters = []
    for column in range(int(place[-1]) + 1):
        mine = values[place == column]
        mine = mine[np.isfinite(mine)]
        if not len(mine):
            letters.append(" ")
            continue
        share = (pick(mine) - low) / (high - low) if high > low else 0.5
        letters.append(SPARKS[min(int(share * len(SPARKS)), len(SPARKS) - 1)])
    return "".join(letters)

"""Small charts as inline SVG: lines, steps, marks, bars, error bars; report.css has the colours.

A chart is a text: `draw(Axes(...), [Line(...), Marks(...)])`. Nothing is loaded from outside and
nothing runs, so the page opens anywhere and for ever. Series are thinned to what a screen can show,
extremes kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hft.analysis.units import NS_PER_S, duration

Float = NDArray[np.floating[Any]]
Shape = Literal["circle", "up", "down", "up-open", "down-open"]

DAY_NS = 86_400 * NS_PER_S
MAX_POINTS = 2_000
WIDTH, LEFT, RIGHT, TOP, BOTTOM = 640, 78, 24, 10, 40

_TIME_STEPS_S = (
    *(1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800),
    *(3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 2592000),
)


@dataclass(frozen=True, slots=True)
class Line:
    """A line through (x, y), each (n,); NaN breaks it. `tone` is a class of the page's palette."""

    label: str
    x: Float
    y: Float
    tone: str
    step: bool = False


@dataclass(frozen=True, slots=True)
class Marks:
    """Points with an optional symmetric error and an optional text each, shown on hovering."""

    label: str
    x: Float
    y: Float
    tone: str
    shape: Shape = "circle"
    error: Float | None = None
    texts: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Level:
    """A horizontal line across the chart."""

    label: str
    y: float
    tone: str


@dataclass(frozen=True, slots=True)
class Bars:
    """Upright boxes from `low` to `high` at x, each (n,); a text each is shown on hovering."""

    label: str
    x: Float
    low: Float
    high: Float
    tone: str
    width: float = 0.6
    """In units of x."""
    texts: Sequence[str] = ()


Series = Line | Marks | Level | Bars


@dataclass(frozen=True, slots=True)
class Axes:
    """How a chart is laid out.

    Attributes:
        x: `linear`; `time` (ns since the epoch, UTC); `log ns` (durations); `named` (0, 1, 2 ... by
            `names`).
        zero: whether y must show zero.
    """

    y_label: str
    x_label: str = ""
    x: Literal["linear", "time", "log ns", "named"] = "linear"
    names: Sequence[str] = field(default=())
    zero: bool = False
    height: int = 280
    y_share: bool = False


def draw(axes: Axes, series: Sequence[Series], title: str) -> str:
    """A chart and its legend as HTML; a sentence in its place when no series has a point.

    Args:
        axes: layout and labels.
        series: drawn in this order.
        title: read out by screen readers.
    """
    body = painted(axes, series)
    if body is None:
        return '<p class="none">Nothing to draw.</p>'
    return (
        f'<svg viewBox="0 0 {WIDTH} {axes.height}" role="img" aria-label="{escape(title)}">'
        f"{body}</svg>{_legend(series)}"
    )


def painted(axes: Axes, series: Sequence[Series]) -> str | None:
    """What stands inside a chart's `<svg>`; None when no series has a point."""
    series = [_thin(each) for each in series]
    xs, ys = _extent(series)
    if not xs.size or not ys.size:
        return None
    plot = _Plot(axes, xs, ys)
    return "".join([plot.grid(), *(plot.paint(each) for each in series)])


def thin(x: Float, y: Float, limit: int = MAX_POINTS) -> NDArray[np.intp]:
    """Indices of at most `limit` points that draw the same line on a screen.

    Of each of limit / 5 equal stretches the first, last, lowest and highest point stay, and one
    hole if it has any.

    Args:
        x: (n,).
        y: (n,); NaN is a hole.
        limit: how many points may stay, at least 10.

    Returns:
        (m,) ascending indices.
    """
    if x.size <= limit:
        return np.arange(x.size)
    length = math.ceil(x.size / (limit // 5))
    count = math.ceil(x.size / length)
    padded = np.full(count * length, np.nan)
    padded[: x.size] = y
    table, hole = padded.reshape(count, length), np.isnan(padded).reshape(count, length)
    start = np.arange(count) * length
    low = start + np.where(hole, np.inf, table).argmin(axis=1)
    high = start + np.where(hole, -np.inf, table).argmax(axis=1)
    last = np.minimum(start + length, x.size) - 1
    return np.unique(
        np.minimum(
            np.concatenate([start, low, high, last, start + hole.argmax(axis=1)]), x.size - 1
        )
    )


def nice_ticks(low: float, high: float, count: int = 5) -> tuple[list[float], float]:
    """Round values about `count` to the span, and the step between them."""
    raw = (high - low) / count
    power = 10.0 ** math.floor(math.log10(raw))
    step = next((m * power for m in (1, 2, 2.5, 5) if m * power >= raw * 0.999), 10 * power)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [i * step for i in range(first, last + 1)], step


class _Plot:
    """Scales of one chart, and what is painted on them."""

    def __init__(self, axes: Axes, xs: Float, ys: Float) -> None:
        self.axes = axes
        self.logarithmic = axes.x == "log ns"
        xs = np.log10(np.maximum(xs, 1.0)) if self.logarithmic else xs
        if axes.x == "named":
            xs = np.array([-0.5, len(axes.names) - 0.5])
        self.x0, self.x1 = _widen(float(xs.min()), float(xs.max()), 0.0)
        if axes.zero:
            ys = np.append(ys, 0.0)
        self.y0, self.y1 = (
            (0.0, 1.0) if axes.y_share else _widen(float(ys.min()), float(ys.max()), 0.06)
        )

    def px(self, x: Float) -> Float:
        x = np.log10(np.maximum(x, 1.0)) if self.logarithmic else np.asarray(x)
        return LEFT + (x - self.x0) / (self.x1 - self.x0) * (WIDTH - LEFT - RIGHT)

    def py(self, y: Float) -> Float:
        height = self.axes.height - TOP - BOTTOM
        return TOP + (self.y1 - y) / (self.y1 - self.y0) * height

    def grid(self) -> str:
        bottom = self.axes.height - BOTTOM
        parts = []
        values, step = nice_ticks(self.y0, self.y1)
        for value in values:
            y = float(self.py(np.array(value)))
            tone = "zero" if abs(value) < step / 1e6 and not self.axes.y_share else "grid"
            parts.append(
                f'<line class="{tone}" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            )
            text = f"{100 * value:.0f} %" if self.axes.y_share else _number(value, step)
            parts.append(f'<text x="{LEFT - 6}" y="{y + 3.5:.1f}" text-anchor="end">{text}</text>')
        for value, text in self._x_ticks():
            x = float(self.px(np.array(value)))
            parts.append(
                f'<line class="tick" x1="{x:.1f}" x2="{x:.1f}" y1="{bottom}" y2="{bottom + 4}"/>'
            )
            parts.append(
                f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{escape(text)}</text>'
            )
        middle = (TOP + bottom) / 2
        parts.append(
            f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{bottom}" y2="{bottom}"/>'
        )
        parts.append(
            f'<text class="label" transform="translate(12 {middle:.0f}) rotate(-90)" '
            f'text-anchor="middle">{escape(self.axes.y_label)}</text>'
        )
        parts.append(
            f'<text class="label" x="{(LEFT + WIDTH - RIGHT) / 2:.0f}" y="{self.axes.height - 5}" '
            f'text-anchor="middle">{escape(self.axes.x_label)}</text>'
        )
        return "".join(parts)

    def paint(self, series: Series) -> str:
        if isinstance(series, Level):
            y = float(self.py(np.array(series.y)))
            return f'<path class="level {series.tone}" d="M{LEFT},{y:.1f}H{WIDTH - RIGHT}"/>'
        if isinstance(series, Line):
            return f'<path class="line {series.tone}" d="{self._path(series)}"/>'
        return self._bars(series) if isinstance(series, Bars) else self._marks(series)

    def _bars(self, bars: Bars) -> str:
        left, right = self.px(bars.x - bars.width / 2), self.px(bars.x + bars.width / 2)
        top, bottom = self.py(bars.high), self.py(bars.low)
        texts, parts = list(bars.texts) or [""] * bars.x.size, []
        for x, x1, y, y1, text in zip(left, right, top, bottom, texts, strict=True):
            title = f"<title>{escape(text)}</title>" if text else ""
            # An empty box is still seen as a line.
            parts.append(
                f'<rect class="bar {bars.tone}" x="{x:.1f}" y="{y:.1f}" width="{x1 - x:.1f}" '
                f'height="{max(y1 - y, 1.0):.1f}">{title}</rect>'
            )
        return "".join(parts)

    def _path(self, line: Line) -> str:
        parts, pen_down = [], False
        for x, y in zip(self.px(line.x).tolist(), self.py(line.y).tolist(), strict=True):
            if math.isnan(y):
                pen_down = False
                continue
            if not pen_down:
                parts.append(f"M{x:.1f},{y:.1f}")
            else:
                parts.append(f"H{x:.1f}V{y:.1f}" if line.step else f"L{x:.1f},{y:.1f}")
            pen_down = True
        return "".join(parts)

    def _marks(self, marks: Marks) -> str:
        xs, ys, parts = self.px(marks.x).tolist(), self.py(marks.y).tolist(), []
        if marks.error is not None:
            low, high = self.py(marks.y - marks.error), self.py(marks.y + marks.error)
            for x, a, b in zip(xs, low.tolist(), high.tolist(), strict=True):
                if not math.isnan(a):
                    parts.append(
                        f"M{x:.1f},{a:.1f}V{b:.1f}M{x - 4:.1f},{a:.1f}h8M{x - 4:.1f},{b:.1f}h8"
                    )
            parts = [f'<path class="error {marks.tone}" d="{"".join(parts)}"/>']
        texts = list(marks.texts) or [""] * len(xs)
        for x, y, text in zip(xs, ys, texts, strict=True):
            if not math.isnan(y):
                parts.append(_mark(marks.shape, x, y, marks.tone, text))
        return "".join(parts)

    def _x_ticks(self) -> list[tuple[float, str]]:
        if self.axes.x == "named":
            return [(float(i), name) for i, name in enumerate(self.axes.names)]
        if self.axes.x == "time":
            return time_ticks(self.x0, self.x1)
        if self.logarithmic:
            powers = range(math.floor(self.x0), math.ceil(self.x1) + 1)
            wide = self.x1 - self.x0 > 3
            values = [m * 10.0**p for p in powers for m in ((1,) if wide else (1, 2, 5))]
            shown = [v for v in values if self.x0 <= math.log10(v) <= self.x1]
            return [(value, duration(value)) for value in shown]
        values, step = nice_ticks(self.x0, self.x1, 6)
        return [(value, _number(value, step)) for value in values]


def _thin(series: Series) -> Series:
    if isinstance(series, Level | Bars):
        return series
    keep = thin(series.x, series.y)
    x, y = np.asarray(series.x, np.float64)[keep], np.asarray(series.y, np.float64)[keep]
    if isinstance(series, Line):
        return Line(series.label, x, y, series.tone, series.step)
    texts = [series.texts[i] for i in keep] if series.texts else ()
    error = None if series.error is None else series.error[keep]
    return Marks(series.label, x, y, series.tone, series.shape, error, texts)


def _extent(series: Sequence[Series]) -> tuple[Float, Float]:
    xs: list[Float] = [np.zeros(0)]
    ys: list[Float] = [np.zeros(0)]
    for each in series:
        if isinstance(each, Level):
            ys.append(np.array([each.y]))
            continue
        if isinstance(each, Bars):
            xs.append(each.x)
            ys += [each.low, each.high]
            continue
        known = np.isfinite(each.y)
        xs.append(each.x[known])
        ys.append(each.y[known])
        if isinstance(each, Marks) and each.error is not None:
            reach = np.nan_to_num(each.error[known])
            ys += [each.y[known] - reach, each.y[known] + reach]
    x, y = np.concatenate(xs), np.concatenate(ys)
    return x, y if x.size else np.zeros(0)


def _widen(low: float, high: float, margin: float) -> tuple[float, float]:
    if high - low <= 1e-12 * max(abs(low), abs(high)):
        room = max(abs(low) * 0.01, 0.5)
        return low - room, high + room
    return low - margin * (high - low), high + margin * (high - low)


def _mark(shape: Shape, x: float, y: float, tone: str, text: str) -> str:
    title = f"<title>{escape(text)}</title>" if text else ""
    if shape == "circle":
        return f'<circle class="mark {tone}" cx="{x:.1f}" cy="{y:.1f}" r="3.2">{title}</circle>'
    up = shape.startswith("up")
    hollow = " open" if shape.endswith("open") else ""
    base = y + 7 if up else y - 7  # the tip points at the price that was paid
    path = f"M{x:.1f},{y:.1f}L{x - 4:.1f},{base:.1f}h8Z"
    return f'<path class="mark{hollow} {tone}" d="{path}">{title}</path>'


def time_ticks(low: float, high: float) -> list[tuple[float, str]]:
    """Round times from `low` to `high` [ns] and what is written at them."""
    seconds = (high - low) / NS_PER_S
    step_s = next((s for s in _TIME_STEPS_S if s >= seconds / 6), _TIME_STEPS_S[-1])
    step = int(step_s * NS_PER_S)
    write = _time_writer(step_s, several_days=low // DAY_NS != high // DAY_NS)
    first = -(-int(low) // step)
    return [(float(i * step), write(i * step)) for i in range(first, int(high) // step + 1)]


def _time_writer(step_s: float, *, several_days: bool) -> Callable[[int], str]:
    form = "%Y-%m-%d" if step_s >= 86400 else "%H:%M" if step_s >= 60 else "%H:%M:%S"
    places = max(0, -math.floor(math.log10(step_s))) if step_s < 1 else 0

    def write(ts: int) -> str:
        seconds, ns = divmod(ts, NS_PER_S)
        if several_days and step_s < 86400 and ts % DAY_NS == 0:
            return f"{datetime.fromtimestamp(seconds, UTC):%m-%d}"
        text = f"{datetime.fromtimestamp(seconds, UTC):{form}}"
        return f"{text}.{ns:09d}"[: len(text) + 1 + places] if places else text

    return write


def _number(value: float, step: float) -> str:
    if step < 1e-5 and value:
        return f"{value:.2g}"
    places = max(0, -math.floor(math.log10(step) + 1e-9))
    places += 1 if f"{step:e}".startswith("2.5") and step < 10 else 0
    text = f"{value:,.{places}f}"
    return "0" if float(text.replace(",", "")) == 0.0 else text


def _legend(series: Sequence[Series]) -> str:
    keys = []
    for each in series:
        if isinstance(each, Marks):
            sign = _mark(each.shape, 7, _key_y(each.shape), each.tone, "")
        elif isinstance(each, Bars):
            sign = f'<rect class="bar {each.tone}" x="2" y="3" width="10" height="8"/>'
        else:
            kind = "level" if isinstance(each, Level) else "line"
            sign = f'<path class="{kind} {each.tone}" d="M0,7H14"/>'
        picture = f'<svg viewBox="0 0 14 14" class="key">{sign}</svg>'
        keys.append(f"<span>{picture}{escape(each.label)}</span>")
    return f'<p class="legend">{"".join(keys)}</p>'


def _key_y(shape: Shape) -> float:
    return 7.0 if shape == "circle" else 3.5 if shape.startswith("up") else 10.5

"""How times, amounts and counts are written for people."""

from __future__ import annotations

import math
from datetime import UTC, datetime

from hft.analysis.records import NO_TIME

NONE = "-"
NS_PER_S = 1_000_000_000
MONEY_PER_UNIT = 1_000_000_000

_STEPS = ((1, "ns"), (1_000, "µs"), (1_000_000, "ms"), (NS_PER_S, "s"))


def utc(ts: int) -> str:
    """An instant to the nanosecond, `2024-03-05 09:30:00.123456789`."""
    if ts == NO_TIME:
        return NONE
    seconds, ns = divmod(int(ts), NS_PER_S)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}.{ns:09d}"


def duration(ns: float | None) -> str:
    """A duration with three or four digits that matter: `820 ns`, `1.234 ms`, `2 h 05 min`."""
    if ns is None or not math.isfinite(ns):
        return NONE
    size = abs(ns)
    if size < 60 * NS_PER_S:
        unit, name = next((u, n) for u, n in reversed(_STEPS) if size >= u or u == 1)
        return f"{_digits(ns / unit)} {name}"
    sign = "-" if ns < 0 else ""
    minutes, seconds = divmod(round(size / NS_PER_S), 60)
    hours, minutes = divmod(minutes, 60)
    if hours >= 48:
        return f"{sign}{hours // 24} d {hours % 24:02d} h"
    if hours:
        return f"{sign}{hours} h {minutes:02d} min"
    return f"{sign}{minutes} min {seconds:02d} s"


def span(ns: int) -> str:
    """A round duration in its largest whole unit: `10 ms`, `1 min`."""
    for unit, name in ((60 * NS_PER_S, "min"), *reversed([(u, n) for u, n in _STEPS])):
        if ns >= unit and ns % unit == 0:
            return f"{ns // unit} {name}"
    return f"{ns} ns"


def amount(value: float | None, *, signed: bool = False) -> str:
    """A price, amount or average with five digits that matter and thousands marked."""
    if value is None or not math.isfinite(value):
        return NONE
    size = abs(value)
    if size == 0:
        return "0.00"
    places = 0 if size >= 100_000 else 2 if size >= 1 else 4 if size >= 0.01 else 9
    text = f"{value:{'+' if signed else ''},.{places}f}"
    return text.rstrip("0").rstrip(".") if places > 4 else text


def count(value: float | None) -> str:
    """A whole number with thousands marked; fractions keep two places."""
    if value is None or not math.isfinite(value):
        return NONE
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}"


def share(value: float | None) -> str:
    """A ratio in per cent."""
    if value is None or not math.isfinite(value):
        return NONE
    return f"{100 * value:.1f} %"


def with_error(value: float | None, error: float | None) -> str:
    """`0.42 ± 0.07`; without the error where it could not be estimated."""
    if value is None or not math.isfinite(value):
        return NONE
    return f"{value:+.2f}" if error is None else f"{value:+.2f} ± {error:.2f}"


def _digits(value: float) -> str:
    size = abs(value)
    text = f"{value:.0f}" if size >= 100 else f"{value:.1f}" if size >= 10 else f"{value:.2f}"
    return text.rstrip("0").rstrip(".") if "." in text else text

"""Durations as people write them ("250ms") and as the core counts them (int ns)."""

from __future__ import annotations

import re
from decimal import Decimal

from hft.errors import ConfigError

UNITS_NS = {
    "ns": 1,
    "us": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "min": 60_000_000_000,
    "h": 3_600_000_000_000,
    "d": 86_400_000_000_000,
}
LONGEST_NS = 36_525 * UNITS_NS["d"]
_PATTERN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ns|us|ms|s|min|h|d)\s*")


def parse_ns(duration: str | int) -> int:
    """Whole nanoseconds of "250ms", "1.5s", "2min"; an int is taken as ns.

    Raises:
        ConfigError: not a duration, negative, finer than 1 ns, or longer than a century.
    """
    if isinstance(duration, int) and not isinstance(duration, bool):
        if duration < 0:
            raise ConfigError(f"duration {duration} ns is negative")
        return _bounded(duration, f"{duration} ns")
    match = _PATTERN.fullmatch(duration) if isinstance(duration, str) else None
    if match is None:
        units = ", ".join(UNITS_NS)
        raise ConfigError(f"{duration!r} is not a duration: write a number and one of {units}")
    ns = Decimal(match[1]) * UNITS_NS[match[2]]
    if ns != int(ns):
        raise ConfigError(f"duration {duration!r} is finer than 1 ns")
    return _bounded(int(ns), repr(duration))


def _bounded(ns: int, told: str) -> int:
    if ns > LONGEST_NS:  # a time plus a duration must still be a time
        raise ConfigError(f"duration {told} is too long: expected at most a century")
    return ns


def format_ns(duration_ns: int) -> str:
    """The shortest text that `parse_ns` reads back: 250_000_000 -> "250ms"."""
    for unit, unit_ns in reversed(UNITS_NS.items()):
        if duration_ns % unit_ns == 0 and duration_ns:
            return f"{duration_ns // unit_ns}{unit}"
    return "0ns"

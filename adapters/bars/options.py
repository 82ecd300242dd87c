"""What a user must say of a file of bars, and what is assumed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from hft.durations import parse_ns
from hft.errors import ConfigError

SHORTEST_BAR_NS = 1_000_000


class BarOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of `hft data import bars`, each as `--set NAME=VALUE`."""

    stamp: Literal["start", "end"] | None = None
    """The end of its interval that a bar is stamped with; it must be said."""
    bar: str | int | None = None
    """Length of a bar, `1min`; it must be said."""
    spread_ticks: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None
    """Must be said where the file has no bid and ask; where it has, only until the first close."""
    size_share: Annotated[float, Meta(gt=0, le=1)] = 0.05
    """Of the last whole bar's volume, that is shown at the touch: a guess, nothing tells it."""
    ts: str = "ts"
    open: str = "open"
    high: str = "high"
    low: str = "low"
    close: str = "close"
    volume: str = "volume"
    bid: str | None = None
    """At the bar's close; by default `bid`, if the file has it."""
    ask: str | None = None
    unit: Literal["iso", "s", "ms", "us", "ns"] = "iso"
    """Of `ts`: ISO text or timestamps, or whole numbers since the epoch."""
    zone: str = "UTC"
    """Of ISO text that names no zone itself."""
    separator: Annotated[str, Meta(min_length=1, max_length=1)] = ","
    names: str = ""
    """Names of all columns, `ts,open,...`, of a text file without a header line."""

    @property
    def bar_ns(self) -> int:
        """Length of a bar [ns]."""
        return parse_ns(self.bar) if self.bar is not None else 0

    def columns(self) -> list[str]:
        """Columns that every file must have."""
        return [self.ts, self.open, self.high, self.low, self.close, self.volume]

    def quotes(self, header: list[str], file: str) -> tuple[str, str] | None:
        """Columns of bid and ask, if the file has them.

        Raises:
            ConfigError: it has one of the two, or nobody says the spread.
        """
        bid, ask = self.bid or "bid", self.ask or "ask"
        if bid in header and ask in header:
            return bid, ask
        for name, said in ((bid, self.bid or self.ask), (ask, self.ask or self.bid)):
            if name not in header and (said or {bid, ask} & set(header)):
                raise ConfigError(f"{file}: no column {name!r} for bid and ask; it has {header}")
        if self.spread_ticks is None:
            raise ConfigError(
                f"{file} has no bid and ask: what spread is to be assumed around its prices? "
                "--set spread_ticks=2; or --set bid=COLUMN --set ask=COLUMN"
            )
        return None


def read_options(given: Mapping[str, Any]) -> BarOptions:
    """The options, or a question for what must be said.

    Raises:
        ConfigError: an unknown option, a value that cannot be, or one that is missing.
    """
    try:
        options = msgspec.convert(dict(given), BarOptions)
    except msgspec.ValidationError as error:
        known = ", ".join(BarOptions.__struct_fields__)
        hint = f"; there are {known}" if "unknown field" in str(error) else ""
        raise ConfigError(f"--set: {error}{hint}") from error
    if options.stamp is None:
        raise ConfigError(
            "is a bar stamped with the start or the end of its interval? Nothing in the file says: "
            "--set stamp=start (exchanges' klines, pandas' resample) or --set stamp=end (many "
            "vendors); the wrong one shows every bar before it happened, or one bar late"
        )
    if options.bar is None:
        raise ConfigError("how long is a bar? --set bar=1min")
    if options.bar_ns < SHORTEST_BAR_NS:
        raise ConfigError(f"--set bar={options.bar}: want at least 1ms")
    return options

"""Synthetic markets: seeded, order by order, with a weak signal that fades within a second.

The flow, its signal and what was measured of it are described in docs/synthetic-market.md; the
generator is framework/core/sim_market.hpp. The same config gives the same bytes in any
process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from hft.data.store import instant
from hft.errors import ConfigError
from hft.types import EVENT, InstrumentSpec

Events = NDArray[Any]
Progress = Callable[[int, float], None]
"""Told (rows so far, share done), as `hft.data.importing.Tick` is."""

SIM_REPORT = np.dtype(
    [
        ("id", "<u8"),
        ("price", "<i8"),
        ("lots", "<i8"),
        ("leaves", "<i8"),
        ("ahead", "<f8"),
        ("ts", "<i8"),
        ("mid2", "<i8"),
        ("instrument", "<u4"),
        ("kind", "u1"),
        ("reason", "u1"),
        ("fill_reason", "u1"),
        ("side", "i1"),
        ("maker", "u1"),
        ("pad", "V7"),
    ]
)
"""An answer of the simulated venue: the same bytes as `hft::SimReport` (core/sim_market.hpp)."""


class SynthConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A synthetic market. All symbols share the parameters; each has its own flow."""

    symbols: Annotated[tuple[str, ...], Meta(min_length=1)] = ("BTCUSDT",)
    venue: str = "SIM"
    seed: Annotated[int, Meta(ge=0)] = 1
    start: int | str = "2024-01-01"
    """ISO date or time in UTC, or ns since the epoch."""
    duration_s: Annotated[float, Meta(gt=0)] = 3600.0
    messages_per_s: Annotated[float, Meta(ge=0.1, le=1e6)] = 3000.0
    """Per symbol, while calm; a storm has three to six times as many."""
    price0_ticks: Annotated[int, Meta(ge=1000, le=100_000_000)] = 600_000
    tick: Annotated[float, Meta(gt=0)] = 0.1
    lot: Annotated[float, Meta(gt=0)] = 0.001
    currency: str = "USDT"
    min_lots: Annotated[int, Meta(ge=1, le=1_000_000)] = 10
    """Smallest order of the crowd; sizes are Pareto above it."""
    alpha_half_life_s: Annotated[float, Meta(ge=0.02, le=1e6)] = 0.5
    alpha_strength: Annotated[float, Meta(ge=0, le=1)] = 0.3
    """Tilt of aggressive signs at one standard deviation of the latent alpha; 0: no signal."""
    common_share: Annotated[float, Meta(ge=0, le=1)] = 0.5
    """Of alpha's variance, from a process that all symbols share."""
    feed_latency_ns: Annotated[int, Meta(ge=0, le=10_000_000_000)] = 200_000
    """Median from `ts_event` to `ts_recv`; 0: the two are equal."""
    calm_s: Annotated[float, Meta(gt=0)] = 300.0
    storm_s: Annotated[float, Meta(gt=0)] = 90.0
    order_by_order: bool = False
    """Rows by order (ADD, MODIFY, CANCEL, EXECUTE) instead of by level."""
    funding: bool = True

    def specs(self) -> list[InstrumentSpec]:
        """Facts of the instruments, in the order of `symbols`."""
        return [
            InstrumentSpec(
                symbol=symbol,
                venue=self.venue,
                tick=self.tick,
                lot=self.lot,
                currency=self.currency,
            )
            for symbol in self.symbols
        ]


def synthesize(
    config: SynthConfig, progress: Progress | None = None
) -> tuple[dict[str, Events], list[InstrumentSpec]]:
    """All rows at once, by `SYMBOL.VENUE`; 64 bytes a row, so mind the duration.

    Raises:
        ConfigError: a parameter is out of its range.
    """
    chunks: dict[str, list[Events]] = {spec.name: [] for spec in config.specs()}
    for name, rows in synthesize_chunks(config, progress=progress):
        chunks[name].append(rows)
    return {name: np.concatenate(parts) for name, parts in chunks.items()}, config.specs()


def synthesize_chunks(
    config: SynthConfig, *, rows: int = 1 << 18, progress: Progress | None = None
) -> Iterator[tuple[str, Events]]:
    """(`SYMBOL.VENUE`, at most `rows` rows), one symbol after the other.

    A symbol's rows do not depend on which others there are, so each is made by itself. Its
    `instrument` is its place in `symbols`.

    Raises:
        ConfigError: a parameter is out of its range.
    """
    if rows < 1:
        raise ConfigError(f"rows must be at least 1, was {rows}")
    config = _checked(config)
    start_ts = instant(config.start)
    assert start_ts is not None
    end_ts = start_ts + round(config.duration_s * 1e9)
    done = 0
    for number, spec in enumerate(config.specs()):
        for chunk in _rows_of(config, number, start_ts, end_ts, rows):
            done += len(chunk)
            if progress is not None:
                share = (int(chunk["ts_event"][-1]) - start_ts) / (end_ts - start_ts)
                progress(done, (number + share) / len(config.symbols))
            yield spec.name, chunk
    if progress is not None:
        progress(done, 1.0)


def symbol_chunks(config: SynthConfig, number: int, *, rows: int = 1 << 18) -> Iterator[Events]:
    """Rows of one symbol, by its place in `symbols`, at most `rows` at a time.

    Raises:
        ConfigError: a parameter is out of its range.
    """
    config = _checked(config)
    start_ts = instant(config.start)
    assert start_ts is not None
    return _rows_of(config, number, start_ts, start_ts + round(config.duration_s * 1e9), rows)


def kinds_of(config: SynthConfig) -> frozenset[str]:
    """Names of the kinds of rows that the market sends."""
    book = ("ADD", "CANCEL", "EXECUTE") if config.order_by_order else ("LEVEL", "TRADE")
    funding = ("DATUM",) if config.funding else ()
    return frozenset(("SNAPSHOT_BEGIN", "SNAPSHOT_END", *book, *funding))


def _rows_of(
    config: SynthConfig, number: int, start_ts: int, end_ts: int, rows: int
) -> Iterator[Events]:
    market = _market(config, number, start_ts)
    while True:
        chunk = np.empty(rows, EVENT)
        count = market.fill(chunk.view(np.uint8), end_ts)
        if count:
            yield chunk[:count]
        if count < rows:
            return


def _market(config: SynthConfig, number: int, start_ts: int) -> Any:
    from hft import _core  # not at the top: `hft --help` need not load it

    return _core.SimMarket(_core_config(config, [number], start_ts))


def core_market(config: SynthConfig, start_ts: int) -> Any:
    """All symbols in the core's terms, for the venue of a live session; it delays the feed itself.

    Raises:
        ConfigError: a parameter is out of its range.
    """
    config = msgspec.structs.replace(_checked(config), feed_latency_ns=0)
    return _core_config(config, list(range(len(config.symbols))), start_ts)


def _core_config(config: SynthConfig, numbers: list[int], start_ts: int) -> Any:
    from hft import _core

    market = _core.SimMarketConfig()
    market.start_ts = start_ts
    instruments = []
    for number in numbers:
        instrument = _core.SimInstrument()
        instrument.id = number
        for name in _OF_INSTRUMENT:
            setattr(instrument, name, getattr(config, name))
        instruments.append(instrument)
    market.instruments = instruments
    for name in _OF_MARKET:
        setattr(market, name, getattr(config, name))
    return market


_OF_INSTRUMENT = (
    "price0_ticks",
    "messages_per_s",
    "min_lots",
    "alpha_half_life_s",
    "alpha_strength",
    "common_share",
    "feed_latency_ns",
)
_OF_MARKET = ("seed", "calm_s", "storm_s", "order_by_order", "funding")


def _checked(config: SynthConfig) -> SynthConfig:
    # msgspec looks at bounds only when it decodes, and a config may be built by hand.
    try:
        checked = msgspec.convert(msgspec.to_builtins(config), SynthConfig)
    except msgspec.ValidationError as error:
        raise ConfigError(f"synthetic market: {error}") from error
    if len(set(checked.symbols)) < len(checked.symbols):
        raise ConfigError(f"synthetic market: symbols must differ, were {checked.symbols}")
    return checked

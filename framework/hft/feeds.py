"""The market rows of a run: one feed an instrument, opened from wherever the recipe says they are."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from hft.config import DataConfig, Recipe
from hft.errors import ConfigError, DataError
from hft.types import EVENT, InstrumentSpec

Events = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Feed:
    """Rows of one instrument, readable more than once."""

    spec: InstrumentSpec
    chunks: Callable[[], Iterator[Events]]
    hash: str
    """Of the content, or of what generates it."""
    rows: int | None = None
    """How many, where that is known beforehand."""


def open_feeds(
    recipe: Recipe, data: Mapping[str, Events] | None = None, specs: list[InstrumentSpec] | None = None
) -> list[Feed]:
    """Feeds in order of instrument, chosen by `recipe.data`.

    Args:
        recipe: its `data` section says where, which symbols, from when to when.
        data: EVENT arrays by `SYMBOL.VENUE`, instead of what the recipe names.
        specs: facts of the instruments in `data`.

    Raises:
        ConfigError: an unknown symbol, or no rows at all.
        DataError: the data cannot be opened.
    """
    if data is not None:
        feeds = [_from_array(name, rows, specs or []) for name, rows in data.items()]
    elif recipe.data.path == "synth":
        feeds = _synthetic(recipe.data)
    else:
        feeds = _stored(recipe.data)
    return _chosen(feeds, recipe.data.symbols)


def _from_array(name: str, rows: Events, specs: list[InstrumentSpec]) -> Feed:
    spec = next((s for s in specs if s.name == name), None)
    if spec is None:
        raise ConfigError(f"no InstrumentSpec for {name}; specs are for {[s.name for s in specs]}")
    if rows.dtype != EVENT or rows.ndim != 1:
        raise DataError(f"rows of {name} must be a one-dimensional EVENT array, were {rows.dtype} {rows.shape}")
    rows = np.ascontiguousarray(rows)
    digest = hashlib.blake2b(rows.view(np.uint8).data, digest_size=16).hexdigest()
    return Feed(spec, lambda: iter([rows]), digest, len(rows))


def _synthetic(config: DataConfig) -> list[Feed]:
    from hft.data.synth import symbol_chunks

    feeds = []
    for number, spec in enumerate(config.synth.specs()):

        def chunks(number: int = number) -> Iterator[Events]:
            return symbol_chunks(config.synth, number, rows=config.chunk_rows)

        identity = msgspec.json.encode([spec.name, config.synth])
        feeds.append(Feed(spec, chunks, "synth:" + hashlib.blake2b(identity, digest_size=16).hexdigest()))
    return feeds


def _stored(config: DataConfig) -> list[Feed]:
    from hft.data.opening import open_data

    spec = None
    if config.tick is not None and config.lot is not None:
        first = config.symbols[0] if config.symbols else "UNKNOWN.FILE"
        symbol, _, venue = first.partition(".")
        spec = InstrumentSpec(symbol=symbol, venue=venue or "FILE", tick=config.tick, lot=config.lot)
    source = open_data(config.path, spec)
    feeds = []
    for name in source.symbols():

        def chunks(name: str = name) -> Iterator[Events]:
            return source.chunks(name, config.start, config.end, rows=config.chunk_rows)

        feeds.append(
            Feed(source.spec(name), chunks, source.hash(name, config.start, config.end))
        )
    if not feeds:
        raise DataError(f"{config.path} holds no market data")
    return feeds


def _chosen(feeds: list[Feed], symbols: tuple[str, ...]) -> list[Feed]:
    if not symbols:
        return feeds
    chosen = []
    for wanted in symbols:
        hits = [f for f in feeds if wanted in (f.spec.name, f.spec.symbol)]
        if not hits:
            raise ConfigError(f"no data for symbol {wanted!r}; there are {[f.spec.name for f in feeds]}")
        chosen.extend(hits)
    return chosen

"""The market rows of a run: one feed an instrument, from wherever the recipe says they are."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from hft.config import DataConfig, Recipe
from hft.errors import ConfigError, DataError
from hft.types import EVENT, SEEN_BY_BOTH, InstrumentSpec, Kind

if TYPE_CHECKING:
    from hft.data.days import FeedDays
    from hft.data.opening import FileData
    from hft.data.store import Store

Events = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Feed:
    """Rows of one instrument, readable more than once."""

    spec: InstrumentSpec
    chunks: Callable[[], Iterator[Events]]
    hash: str
    """Of the content, or of what generates it."""
    ts_range: tuple[int, int]
    """First and last time, or the bounds asked for [ns]; for progress alone."""
    days: FeedDays
    """The same rows, a day at a time."""
    kinds: frozenset[str]
    """Names of the kinds of rows there are, on the days of the range."""
    cannot_tell: tuple[str, ...] = ()
    """What the data leave open, as their import said."""
    is_split: bool = True
    """Rows may be seen by the venue alone, or by us alone, in an order of their own."""
    in_memory: bool = False
    """The rows were given as an array: another process cannot open them again."""

    @property
    def gives(self) -> frozenset[str]:
        """What there is for features: `L2` levels, `L3` orders, `trades`."""
        found = {_GIVES[kind] for kind in self.kinds if kind in _GIVES}
        if "EXECUTE" in self.kinds:
            found.add("trades")
        return frozenset(found | ({"L2"} if "L3" in found else set()))

    @property
    def has_depth(self) -> bool:
        """Levels behind the best are shown; else what stood there when it was last the best."""
        from hft.data.importing import NO_DEPTH

        told = self.kinds - {"BBO"}
        return any(_GIVES.get(kind) in ("L2", "L3") for kind in told) and (
            NO_DEPTH not in self.cannot_tell
        )


MOST_KEPT = 1 << 22
"""Synthetic rows kept in memory, of all instruments together: 256 MiB."""
_GIVES = {"LEVEL": "L2", "BBO": "L2", "TRADE": "trades"}
_ORDERS = ("ADD", "MODIFY", "CANCEL", "EXECUTE", "REPLACE")
_GIVES |= dict.fromkeys(_ORDERS, "L3")


def open_feeds(
    recipe: Recipe,
    data: Mapping[str, Events] | None = None,
    specs: list[InstrumentSpec] | None = None,
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
    if recipe.data.as_levels:
        feeds = [_as_levels(feed) for feed in feeds]
    return _chosen(feeds, recipe.data)


def _as_levels(feed: Feed) -> Feed:
    from hft.data.books import levels_of

    if "L3" not in feed.gives:
        return feed
    kinds = feed.kinds - set(_ORDERS) | {"LEVEL", "TRADE"}
    return replace(
        feed,
        chunks=lambda: levels_of(feed.chunks()),
        days=feed.days.through(levels_of),
        hash=f"levels:{feed.hash}",
        kinds=kinds,
    )


def _from_array(name: str, rows: Events, specs: list[InstrumentSpec]) -> Feed:
    from hft.data.checks import check
    from hft.data.days import scanned_days

    spec = next((s for s in specs if s.name == name), None)
    if spec is None:
        raise ConfigError(f"no InstrumentSpec for {name}; specs are for {[s.name for s in specs]}")
    if not isinstance(rows, np.ndarray) or rows.dtype != EVENT or rows.ndim != 1:
        was = getattr(rows, "dtype", type(rows).__name__)
        raise DataError(
            f"rows of {name} must be a one-dimensional EVENT array, were {was} {np.shape(rows)}"
        )
    check(rows, spec).require()
    rows = np.ascontiguousarray(rows)
    digest = hashlib.blake2b(rows.view(np.uint8).data, digest_size=16).hexdigest()
    ends = (int(rows["ts_event"][0]), int(rows["ts_recv"][-1])) if len(rows) else (0, 0)
    kinds = frozenset(Kind(k).name for k in np.unique(rows["kind"]).tolist())
    days = scanned_days(lambda: iter([rows]))
    is_split = bool((rows["flags"] & SEEN_BY_BOTH != SEEN_BY_BOTH).any())
    return Feed(
        spec,
        lambda: iter([rows]),
        digest,
        ends,
        days,
        kinds,
        is_split=is_split,
        in_memory=True,
    )


def _synthetic(config: DataConfig) -> list[Feed]:
    from hft.data.days import scanned_days
    from hft.data.store import instant
    from hft.data.synth import kinds_of, symbol_chunks

    if config.start is not None or config.end is not None:
        raise ConfigError(
            "data.start and data.end choose from recorded rows; a synthetic market has "
            "data.synth.start and data.synth.duration_s"
        )
    feeds, specs = [], config.synth.specs()
    for number, spec in enumerate(specs):

        def chunks(number: int = number) -> Iterator[Events]:
            return symbol_chunks(config.synth, number, rows=config.chunk_rows)

        identity = msgspec.json.encode([spec.name, config.synth])
        digest = "synth:" + hashlib.blake2b(identity, digest_size=16).hexdigest()
        start = instant(config.synth.start) or 0
        end = start + round(config.synth.duration_s * 1e9)
        rows = kept(chunks, MOST_KEPT // len(specs))
        days, kinds = scanned_days(rows), kinds_of(config.synth)
        feeds.append(Feed(spec, rows, digest, (start, end), days, kinds, is_split=False))
    return feeds


def kept(chunks: Callable[[], Iterator[Events]], most_rows: int) -> Callable[[], Iterator[Events]]:
    """The same chunks, made once: a run, its variants and its shortfall all read them.

    More than `most_rows` are made anew each time, so that memory stays flat however long they go
    on.
    """
    rows: list[Events] | None = None

    def again() -> Iterator[Events]:
        nonlocal rows
        if rows is not None:
            yield from rows
            return
        made: list[Events] = []
        count = 0
        for chunk in chunks():
            count += len(chunk)
            if count <= most_rows:
                chunk.setflags(write=False)
                made.append(chunk)
            else:
                made.clear()
            yield chunk
        if count <= most_rows:
            rows = made

    return again


def _stored(config: DataConfig) -> list[Feed]:
    from hft.data.days import scanned_days, stored_days
    from hft.data.opening import open_data
    from hft.data.store import Store

    bare = Path(config.path).suffix in (".npy", ".npz")
    if bare and (config.tick is None or config.lot is None):
        raise ConfigError(
            f"{config.path} does not know its tick and lot: set data.tick and data.lot, "
            f"and name it with data.symbols"
        )
    spec = None
    if config.tick is not None and config.lot is not None:
        first = config.symbols[0] if config.symbols else "UNKNOWN.FILE"
        symbol, _, venue = first.rpartition(".") if "." in first else (first, "", "FILE")
        spec = InstrumentSpec(symbol=symbol, venue=venue, tick=config.tick, lot=config.lot)
    source = open_data(config.path, spec)
    _require_times(config)
    feeds = []
    for name in source.symbols():

        def chunks(name: str = name) -> Iterator[Events]:
            return source.chunks(name, config.start, config.end, rows=config.chunk_rows)

        span = config.start, config.end
        days = (
            stored_days(source, name, *span, config.chunk_rows)
            if isinstance(source, Store)
            else scanned_days(chunks)
        )
        feeds.append(
            Feed(
                source.spec(name),
                chunks,
                source.hash(name, *span),
                _range(source, name, config),
                days,
                source.kinds(name, *span),
                source.cannot_tell(name, *span),
                source.is_split(name, *span),
            )
        )
    return feeds


def _require_times(config: DataConfig) -> None:
    from hft.data.store import instant

    for key, value in (("start", config.start), ("end", config.end)):
        try:
            instant(value)
        except ConfigError as error:
            raise ConfigError(f"data.{key}: {error}") from error


def _range(source: Store | FileData, name: str, config: DataConfig) -> tuple[int, int]:
    from hft.data.store import Store, instant

    first, last = 0, 0
    if isinstance(source, Store):
        days = source.days(name)
        first, last = instant(days[0]) or 0, (instant(days[-1]) or 0) + 86_400_000_000_000
    elif source.meta is not None:
        first, last = source.meta.ts_first, source.meta.ts_last
    start, end = instant(config.start), instant(config.end)
    return max(first, start or first), min(last, end or last)


def _chosen(feeds: list[Feed], config: DataConfig) -> list[Feed]:
    chosen: list[Feed] = []
    for wanted in config.symbols:
        hits = [f for f in feeds if wanted in (f.spec.name, f.spec.symbol)]
        if not hits:
            raise ConfigError(
                f"no data for symbol {wanted!r}; there are {[f.spec.name for f in feeds]}"
            )
        if any(f in chosen for f in hits):
            raise ConfigError(f"data.symbols names {wanted!r} twice: {list(config.symbols)}")
        chosen.extend(hits)
    return _not_empty(chosen or feeds, config)


def _not_empty(feeds: list[Feed], config: DataConfig) -> list[Feed]:
    if config.start is None and config.end is None:
        return feeds
    for feed in feeds:
        if not any(len(rows) for rows in feed.chunks()):
            raise ConfigError(
                f"no rows of {feed.spec.name} from {config.start or 'the first'} to "
                f"{config.end or 'the last'}; `hft data info {config.path}` shows what there is, "
                "data.symbols (--symbol) leaves instruments out"
            )
    return feeds

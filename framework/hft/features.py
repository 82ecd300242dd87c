"""Features: what a strategy or a model sees of one instrument, row by row.

The factories here only describe; the core computes (framework/core/features.hpp), the same code in
live, replay and training. Formulas, units and ranges: docs/features.md.

    Features(micro_price(), imbalance(levels=5), trade_flow("1s"), trigger=OnTouch())
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hft.durations import format_ns, parse_ns
from hft.errors import ConfigError, DataError, SchemaError
from hft.types import EVENT, Kind

MAX_LEVELS = 32
"""Deepest level a feature may read; `FeatureSet::kMaxLevels`."""

Update = Callable[[Any, Any], tuple[Any, float]]

_L3 = ("order_count", "order_count_imbalance", "add_flow", "cancel_flow")
_TRADES = ("trade_flow", "trade_lots", "trade_count", "since_trade")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Feature:
    """One column of a features row. Made by the factories of this module or by `@feature`."""

    kind: str
    name: str
    levels: int = 1
    window_ns: int = 0
    """0: since the trigger last fired."""
    side: int = 0
    is_log: bool = False
    update: Update | None = None
    state: Any = None

    @property
    def needs(self) -> str:
        """What a feed must tell for it: `L2` levels, `L3` orders or `trades`."""
        return "L3" if self.kind in _L3 else "trades" if self.kind in _TRADES else "L2"

    def named(self, name: str) -> Feature:
        """The same feature under another name."""
        return replace(self, name=_checked_name(name))

    def log(self) -> Feature:
        """The same feature, its size on a log scale: of lots, whose tails are heavy."""
        return replace(self, is_log=True, name=f"{self.name}_log")

    def to_core(self) -> Any:
        """What the core takes."""
        from hft import _core

        return _core.feature_spec(
            kind=self.kind,
            name=self.name,
            levels=self.levels,
            window_ns=self.window_ns,
            side=self.side,
            log=self.is_log,
            update=self.update,
            state=self.state,
        )


@dataclass(frozen=True, slots=True)
class Trigger:
    """When a row is made: once a packet at most, never on a half-applied book."""

    kind: str
    sizes: bool = False
    interval_ns: int = 0

    def to_core(self) -> Any:
        """What the core takes."""
        from hft import _core

        return _core.trigger(kind=self.kind, sizes=self.sizes, interval_ns=self.interval_ns)


def OnPacket() -> Trigger:
    """A row after every packet."""
    return Trigger("packet")


def OnTouch(*, sizes: bool = False) -> Trigger:
    """A row when the best bid or ask price changed; with `sizes`, when their lots did too."""
    return Trigger("touch", sizes=sizes)


def OnTrade() -> Trigger:
    """A row after every packet that holds a print."""
    return Trigger("trade")


def Every(interval: str | int) -> Trigger:
    """A row at every whole multiple of `interval` since the epoch, until the market is closed."""
    interval_ns = parse_ns(interval)
    if interval_ns == 0:
        raise ConfigError("Every: the interval must be longer than 0")
    return Trigger("clock", interval_ns=interval_ns)


def mid() -> Feature:
    """(bid + ask) / 2 in ticks."""
    return Feature("mid", "mid")


def micro_price() -> Feature:
    """Mid weighted by the other side's best lots, in ticks."""
    return Feature("micro_price", "micro_price")


def micro_price_minus_mid() -> Feature:
    """In ticks, within half a spread of 0."""
    return Feature("micro_price_minus_mid", "micro_price_minus_mid")


def spread() -> Feature:
    """Ask - bid in ticks."""
    return Feature("spread", "spread")


def imbalance(levels: int = 1) -> Feature:
    """(bid lots - ask lots) / (bid lots + ask lots) over the first `levels`, in [-1, 1]."""
    return Feature("imbalance", f"imbalance_{levels}", levels=_checked_levels(levels))


def ofi(levels: int = 1, window: str | int = 0) -> Feature:
    """Order-flow imbalance in lots, summed over `levels`.

    Args:
        levels: ranks compared with what they were a packet before.
        window: half-life of the decaying sum; 0: a plain sum since the trigger last fired.

    Source: Cont, Kukanov, Stoikov, "The price impact of order book events" (2014), equation 4; by
    rank as in Xu, Gould, Howison, "Multi-level order-flow imbalance" (2018).
    """
    window_ns = parse_ns(window)
    name = f"ofi_{levels}" + _suffix(window_ns)
    return Feature("ofi", name, levels=_checked_levels(levels), window_ns=window_ns)


def trade_flow(window: str | int = 0) -> Feature:
    """Buyers' lots less sellers'; `window` is the half-life, 0: since the trigger last fired."""
    return _traded("trade_flow", window)


def trade_lots(window: str | int = 0) -> Feature:
    """Traded lots; `window` as in `trade_flow`."""
    return _traded("trade_lots", window)


def trade_count(window: str | int = 0) -> Feature:
    """Prints; `window` as in `trade_flow`."""
    return _traded("trade_count", window)


def volatility(window: str | int) -> Feature:
    """Of the mid, in ticks per sqrt(s); `window` is the half-life of the squared changes."""
    return _windowed("volatility", "volatility", window)


def mid_return(window: str | int) -> Feature:
    """Mid less the mid `window` ago (up to window / 64 earlier), in ticks."""
    return _windowed("mid_return", "return", window)


def depth_lots(side: int, level: int = 1) -> Feature:
    """log(1 + lots) at `level` of `side`; a level that is not there holds 0 lots."""
    return _at_level("depth_lots", "depth", side, level)


def level_distance(side: int, level: int = 1) -> Feature:
    """Ticks from the mid to `level` of `side`; one that is not there is a tick beyond the last."""
    return _at_level("level_distance", "distance", side, level)


def order_count(side: int, level: int = 1) -> Feature:
    """log(1 + orders) at `level` of `side`; needs an order-by-order feed (L3)."""
    return _at_level("order_count", "orders", side, level)


def order_count_imbalance(levels: int = 1) -> Feature:
    """(bid orders - ask orders) / (bid orders + ask orders) over the first `levels`; L3."""
    name = f"order_count_imbalance_{levels}"
    return Feature("order_count_imbalance", name, levels=_checked_levels(levels))


def add_flow(window: str | int = 0) -> Feature:
    """Lots of new bids less those of new asks, at any price; `window` as in `trade_flow`; L3.

    An order that moves counts as cancelled and added.
    """
    return _traded("add_flow", window)


def cancel_flow(window: str | int = 0) -> Feature:
    """Lots of bids that left untraded less those of asks, as in `add_flow`; L3."""
    return _traded("cancel_flow", window)


def since_event() -> Feature:
    """log(1 + us) since the packet before this one."""
    return Feature("since_event", "since_event")


def since_trade() -> Feature:
    """log(1 + us) since the last print; 0 in a packet that holds one."""
    return Feature("since_trade", "since_trade")


def since_row() -> Feature:
    """log(1 + us) since the trigger last fired."""
    return Feature("since_row", "since_row")


def feature(
    *, window: str | int = 0, state: Any = None, name: str | None = None
) -> Callable[[Update], Feature]:
    """Makes an own feature of `update(state, row) -> (state, value)`.

    The core calls it once a row and keeps the state, one an instrument, which goes back to a copy
    of `state` after a gap.

    Args:
        window: half-life of `row.signed_lots` and `row.traded_lots`; 0: since the last row.
        state: where every instrument starts.
        name: the column's name; the function's own by default.
    """
    window_ns = parse_ns(window)

    def decorate(update: Update) -> Feature:
        own_name = _checked_name(name or update.__name__)
        return Feature("own", own_name, window_ns=window_ns, update=update, state=state)

    return decorate


@dataclass(frozen=True, slots=True, init=False)
class Features:
    """The columns of a features row, in order, and when a row is made."""

    features: tuple[Feature, ...]
    trigger: Trigger
    reactive: bool
    """In a replay, made of the book less what we took, as live, instead of the tape."""

    def __init__(self, *features: Feature, trigger: Trigger, reactive: bool = False) -> None:
        for each in features:
            if not isinstance(each, Feature):
                raise ConfigError(
                    f"{each!r} is not a feature; call its factory, e.g. micro_price()"
                )
        if not features:
            raise ConfigError("Features needs at least one feature")
        if not isinstance(trigger, Trigger):
            raise ConfigError(
                f"trigger {trigger!r} must be OnPacket(), OnTouch(), OnTrade(), Every()"
            )
        _refuse_twins([f.name for f in features])
        counts = [f.name for f in features if f.kind.startswith("order_count")]
        if reactive and counts:
            raise ConfigError(
                f"{counts[0]} counts orders, and a book less what we took keeps none: "
                "leave it out of Features(..., reactive=True)"
            )
        object.__setattr__(self, "reactive", reactive)
        object.__setattr__(self, "features", features)
        object.__setattr__(self, "trigger", trigger)

    @property
    def names(self) -> tuple[str, ...]:
        """Column names, in order."""
        return tuple(f.name for f in self.features)

    @property
    def needs(self) -> dict[str, str]:
        """What a feed must tell, each with the first column or trigger that needs it."""
        needs = {f.needs: f.name for f in reversed(self.features)}
        if self.trigger.kind == "trade":
            needs.setdefault("trades", "OnTrade()")
        return needs

    def __len__(self) -> int:
        return len(self.features)

    def __iter__(self) -> Iterator[Feature]:
        return iter(self.features)

    def to_core(self) -> tuple[list[Any], Any]:
        """(specs, trigger) as the core takes them."""
        return [f.to_core() for f in self.features], self.trigger.to_core()


def compute_features(
    events: npt.NDArray[Any] | Iterable[npt.NDArray[Any]], features: Features
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Rows of `features` over one instrument's events, by the engine's own code.

    Args:
        events: EVENT rows in the order we received them, or chunks of them.
        features: columns and trigger.

    Returns:
        ts (k,) int64 [ns, our clock] and the rows (k, len(features)) float64.

    Raises:
        SchemaError: not EVENT rows, or more than one instrument.
        DataError: a feature of orders over a feed of levels.
    """
    from hft import _core

    chunks = [events] if isinstance(events, np.ndarray) else events
    stream = _core.FeatureStream(*features.to_core())
    parts = []
    instrument: int | None = None
    by_orders = False
    for chunk in chunks:
        instrument = _checked_instrument(chunk, instrument)
        parts.append(stream.feed(as_words(chunk)))
        by_orders = by_orders or bool((chunk["kind"] == Kind.ADD).any())
    if parts and "L3" in features.needs and not by_orders:
        raise DataError(f"{features.needs['L3']} needs every order (L3); the events tell levels")
    if not parts:
        return np.empty(0, np.int64), np.empty((0, len(features)))
    return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])


def as_words(events: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """EVENT rows as the core reads them: (n, 8) int64, no copy where they are contiguous."""
    if events.dtype != EVENT:
        raise SchemaError(f"events have dtype {events.dtype}, must be hft.EVENT")
    return np.ascontiguousarray(events).view(np.int64).reshape(-1, 8)


def _checked_instrument(events: npt.NDArray[Any], before: int | None) -> int | None:
    if events.dtype != EVENT:
        raise SchemaError(f"events have dtype {events.dtype}, must be hft.EVENT")
    if len(events) == 0:
        return before
    ids = events["instrument"]
    first = int(ids[0]) if before is None else before
    if (ids != first).any():
        other = int(ids[ids != first][0])
        raise SchemaError(f"events hold instruments {first} and {other}; select one first")
    return first


def _checked_levels(levels: int) -> int:
    if not 1 <= levels <= MAX_LEVELS:
        raise ConfigError(f"levels is {levels}, must be 1 to {MAX_LEVELS}")
    return levels


def _checked_name(name: str) -> str:
    if _NAME.fullmatch(name) is None:
        raise ConfigError(f"feature name {name!r} must be a plain identifier")
    return name


def _refuse_twins(names: Sequence[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f'feature name {name!r} is used twice; rename one with .named("...")')


def _suffix(window_ns: int) -> str:
    return f"_{format_ns(window_ns)}" if window_ns else ""


def _traded(kind: str, window: str | int) -> Feature:
    window_ns = parse_ns(window)
    return Feature(kind, kind + _suffix(window_ns), window_ns=window_ns)


def _windowed(kind: str, stem: str, window: str | int) -> Feature:
    window_ns = parse_ns(window)
    if window_ns < 1_000:
        raise ConfigError(f"{kind}: window {window!r} must be 1us or more")
    return Feature(kind, stem + _suffix(window_ns), window_ns=window_ns)


def _at_level(kind: str, stem: str, side: int, level: int) -> Feature:
    if side not in (1, -1):
        raise ConfigError(f"{kind}: side is {side!r}, must be BUY (+1) or SELL (-1)")
    name = f"{stem}_{'bid' if side > 0 else 'ask'}_{level}"
    return Feature(kind, name, levels=_checked_levels(level), side=int(side))

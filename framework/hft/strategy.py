"""`Strategy`, the class a user subclasses, and `Params`, its settings.

The handlers below do nothing; the core calls only those a subclass overrides. What a strategy
reads and does (`book`, `position`, `submit`, `quotes`, `every` ...) is native: see
`hft._core.StrategyBase`.
"""

from __future__ import annotations

import inspect
import logging
import sys
import types
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
import numpy as np

from hft._core import StrategyBase
from hft.errors import ConfigError

if TYPE_CHECKING:
    from hft.features import Features
    from hft.inference.model import Model


class Params(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A strategy's settings: typed, with defaults, set by `[params]` or `--set key=value`."""


class Account:
    """All instruments together, in currency; meant for instruments that settle in one."""

    def __init__(self, positions: list[Any]) -> None:
        self._positions = positions

    @property
    def equity(self) -> float:
        """Cash and positions at the mid, after fees and funding."""
        return float(sum(p.equity for p in self._positions))

    @property
    def fees(self) -> float:
        return float(sum(p.fees for p in self._positions))

    @property
    def turnover(self) -> float:
        return float(sum(p.turnover for p in self._positions))


class Strategy(StrategyBase):
    """Subclass it, override handlers, give orders.

    Class attributes:
        params: annotate it with your `Params` class; the instance holds the run's values.
        features: `Features(...)` when no model brings them (or override `inputs`).
        model, models: `Model("name")`, or a dict of them.
        bars: interval of the bars `on_bar` gets, such as `"1min"`.
        needs: what a feed must tell besides what features and bars need: `"L2"` levels, `"L3"`
            orders, `"trades"`. A run on data without it is refused.
    """

    params: Params
    features: ClassVar[Features | None] = None
    model: ClassVar[Model | None] = None
    models: ClassVar[Mapping[str, Model]] = types.MappingProxyType({})
    bars: ClassVar[str | None] = None
    needs: ClassVar[tuple[str, ...]] = ()

    seed: int = 1
    """The recipe's seed; set by the run."""

    def __init__(self) -> None:
        super().__init__()
        self.log = logging.getLogger(type(self).__module__)

    @classmethod
    def params_type(cls) -> type[Params]:
        """The class that annotates `params`."""
        owner = next(c for c in cls.__mro__ if "params" in inspect.get_annotations(c))
        hint = inspect.get_annotations(owner)["params"]
        if isinstance(hint, str):  # the file uses `from __future__ import annotations`
            try:
                hint = eval(hint, vars(sys.modules[owner.__module__]))
            except NameError as error:
                raise ConfigError(f"{cls.__name__}.params: {error}") from error
        if not (isinstance(hint, type) and issubclass(hint, Params)):
            raise ConfigError(
                f"{cls.__name__}.params must be annotated with a Params class, was {hint!r}"
            )
        return hint

    def inputs(self, params: Any) -> Features | None:
        """Features of a strategy without a model; override when they depend on `params`."""
        return type(self).features

    # ---- what the core calls

    def on_start(self) -> None:
        """Before the first input: set timers, look up instruments."""

    def on_ready(self, inst: Any) -> None:
        """An instrument's book is live and its features and models are warm; again after a gap."""

    def on_book(self, book: Any) -> None:
        """After each packet, with the whole book."""

    def on_trade(self, trade: Any) -> None:
        """A print of the market, never our own fill."""

    def on_bar(self, bar: Any) -> None:
        """A bar of prints is complete."""

    def on_features(self, row: Any) -> None:
        """The trigger fired: a new row of features."""

    def on_signal(self, signal: Any) -> None:
        """A model has spoken, after its waiting and service time."""

    def on_data(self, datum: Any) -> None:
        """A small datum of the feed: funding, mark price, an external signal."""

    def on_order(self, order: Any) -> None:
        """An order's state changed."""

    def on_fill(self, fill: Any) -> None:
        """One of our orders was filled, in part or whole."""

    def on_timer(self, timer: Any) -> None:
        """A timer set without a function."""

    def on_gap(self, inst: Any, reason: str) -> None:
        """The feed lost messages: the book cannot be read until it is rebuilt."""

    def on_regime(self, inst: Any, regime: Any) -> None:
        """The volatility regime changed (reserved: no detector runs yet)."""

    def on_degrade(self, change: Any) -> None:
        """A cheaper or better model took over (reserved: there is one tier yet)."""

    def on_save(self) -> dict[str, Any]:
        """State worth keeping over a restart; written into the run folder when the run stops."""
        return {}

    def on_load(self, state: dict[str, Any]) -> None:
        """State that an earlier run saved, before `on_start`."""

    def on_stop(self) -> None:
        """After the last input; orders given here still travel and meet the last book."""

    # ---- conveniences over the native base

    @cached_property
    def instruments(self) -> Mapping[str, Any]:
        """By name, `SYMBOL.VENUE`."""
        return types.MappingProxyType({i.name: i for i in self.listed})

    @cached_property
    def account(self) -> Account:
        return Account([self.position(i) for i in self.listed])

    @cached_property
    def rng(self) -> np.random.Generator:
        """Random numbers that depend on the recipe's seed alone."""
        return np.random.Generator(np.random.Philox(self.seed))

    def fees(self, *insts: Any) -> float:
        """What taking one unit at each instrument's mid costs in fees [currency]."""
        cost = 0.0
        for inst in insts:
            book: Any = self.book(inst)
            cost += inst.taker_fee * inst.price(book.mid)
        return cost

    def schedule(
        self, start: str, end: str, n: int, fn: Callable[[int], Any], *, tz: str = "UTC"
    ) -> None:
        """Calls `fn(k)` for k = 0 … n-1, evenly from `start` (included) to `end` (excluded).

        Args:
            start: "HH:MM[:SS]" of the current day in `tz`; instants already past are skipped.
            end: likewise; must be later than `start`.
            n: how many calls.
            fn: called with the number of the slice.
            tz: an IANA zone.
        """
        first, last = self._instant(start, tz), self._instant(end, tz)
        if n < 1 or last <= first:
            raise ConfigError(f"schedule: {n} slices from {start} to {end} is not a schedule")
        for k in range(n):
            ts = first + (last - first) * k // n
            if ts >= self.now:
                self.at(ts, fn, k)

    def _instant(self, clock: str, tz: str) -> int:
        from zoneinfo import ZoneInfo

        try:
            day = datetime.fromtimestamp(self.now // 1_000_000_000, ZoneInfo(tz))
            parts = [int(p) for p in clock.split(":")]
            at = day.replace(
                hour=parts[0], minute=parts[1], second=parts[2] if len(parts) > 2 else 0
            )
        except (ValueError, IndexError, KeyError) as error:
            raise ConfigError(
                f"{clock!r} in zone {tz!r} is not a time of day: write HH:MM or HH:MM:SS"
            ) from error
        return round(at.timestamp()) * 1_000_000_000

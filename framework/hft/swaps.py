"""Bundles that take over from another while a run goes on: a replay's schedule.

A live session hears of them by `hft swap` (hft.live.swaps); both give the core the same.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hft.config import Recipe
from hft.data.store import instant
from hft.errors import ConfigError, ModelError
from hft.inference.bundle import CARD
from hft.inference.reuse import core_rule
from hft.sources import (
    bundle_for,
    hash_word,
    open_model,
    require_budget,
    rows_of,
    trails_of,
)

if TYPE_CHECKING:
    from hft.config import ModelConfig
    from hft.inference.bundle import Bundle
    from hft.plan import Plan, SourcePlan
    from hft.strategy import Strategy

DAY_NS = 86_400_000_000_000


@dataclasses.dataclass(frozen=True, slots=True)
class SwapPlan:
    """One of a replay's swaps."""

    number: int
    """From 1, in the recipe's order; the version of the answers that follow."""
    ts: int
    source: int
    """Number of the model among the plan's sources."""
    bundle: Bundle


def planned(recipe: Recipe, cls: type[Strategy], sources: list[SourcePlan]) -> tuple[SwapPlan, ...]:
    """The recipe's swaps, by time.

    Raises:
        ConfigError: no such model, no instant.
        ModelError: the bundle is damaged, or does not fit in the old one's place.
    """
    found = []
    for number, swap in enumerate(recipe.swaps, 1):
        key = f"swaps[{number - 1}]"
        index = source_named(swap.model, cls, sources, f"{key}.model")
        try:
            ts = instant(swap.at)
        except ConfigError as error:
            raise ConfigError(f"{key}.at: {error}") from error
        assert ts is not None
        old = sources[index]
        bundle = bundle_for(cls, Path(swap.bundle), old.config)
        assert old.bundle is not None
        require_alike(old.bundle, bundle)
        found.append(SwapPlan(number, ts, index, bundle))
    return tuple(sorted(found, key=lambda swap: swap.ts))


def source_named(name: str, cls: type[Strategy], sources: list[SourcePlan], key: str) -> int:
    """Number of a model among the sources.

    Raises:
        ConfigError: there is none; the message begins with `key`.
    """
    names = [source.name for source in sources if source.bundle is not None]
    if name not in names:
        there = f"there are {', '.join(names)}" if names else "it has none"
        raise ConfigError(f"{key} is {name!r}: no such model of {cls.__name__}; {there}")
    return next(i for i, s in enumerate(sources) if s.name == name and s.bundle is not None)


def require_alike(old: Bundle, new: Bundle) -> None:
    """Refuses a bundle that cannot take over from another.

    Raises:
        ModelError: features, their order, trigger or outputs differ; names the first difference.
    """
    where = new.path / CARD
    _same_list(where, "feature", [str(f) for f in old.card.features], new.card.features)
    if new.card.trigger != old.card.trigger:
        raise ModelError(f"{where}: trigger is {new.card.trigger}, the old is {old.card.trigger}")
    _same_list(where, "output", list(old.outputs), new.outputs)


def _same_list(where: Path, what: str, old: list[str], new: Any) -> None:
    given = [str(each) for each in new]
    for n in range(max(len(old), len(given))):
        was, now = ((names[n] if n < len(names) else "absent") for names in (old, given))
        if was != now:
            raise ModelError(
                f"{where}: {what} {n + 1} is {now}, of the bundle it would take over from {was}; "
                "a swap changes neither features, trigger nor outputs"
            )


def core_arguments(
    number: int,
    source: int,
    bundle: Bundle,
    config: ModelConfig,
    opened: ExitStack,
    *,
    is_live: bool = False,
) -> tuple[Any, ...]:
    """What the core is told of a swap, in order.

    Raises:
        ModelError: what `open_model` and, beside a live session, `require_budget` refuse.
    """
    computes = open_model(bundle, config, opened, is_live=is_live)
    if is_live:
        require_budget(bundle, config, computes, is_beside=True)
    warm_up, window = rows_of(bundle, config)
    rule, trails = core_rule(bundle, config), trails_of(bundle)
    return number, source, computes, window, warm_up, hash_word(bundle), rule, trails


def add_swaps(replay: Any, plan: Plan, opened: ExitStack) -> None:
    """Gives a replay its schedule."""
    for swap in plan.swaps:
        config = plan.sources[swap.source].config
        replay.swap_at(
            swap.ts, *core_arguments(swap.number, swap.source, swap.bundle, config, opened)
        )


def of_day(plan: Plan, day: str) -> Plan:
    """The plan of a day that is a run of its own: earlier swaps have been, later ones are not yet.

    A bundle that took over on a day before is there from the first row.
    """
    start = int(np.datetime64(day, "ns").astype(np.int64))
    sources = list(plan.sources)
    for swap in plan.swaps:
        if swap.ts < start:
            sources[swap.source] = dataclasses.replace(
                sources[swap.source], bundle=swap.bundle, version=swap.number
            )
    today = tuple(s for s in plan.swaps if start <= s.ts < start + DAY_NS)
    return dataclasses.replace(plan, sources=sources, swaps=today)


def notes_of(plan: Plan, results: Mapping[str, Any]) -> list[str]:
    """For the report: when each bundle took over."""
    notes, taken_over = [], results["taken_over"]
    for swap in plan.swaps:
        name = plan.sources[swap.source].name
        times = {instrument: ts for number, instrument, ts in taken_over if number == swap.number}
        dropped = results["dropped"].get(swap.number)
        for instrument, feed in enumerate(plan.feeds):
            what = f"{swap.bundle.path.name} for {name} at {feed.spec.name}"
            if instrument in times:
                notes.append(f"Swap {swap.number}: {what} took over at {utc(times[instrument])}.")
            elif dropped is not None:
                ts, why = dropped
                notes.append(f"Swap {swap.number}: {what} was dropped at {utc(ts)}: {why}.")
            else:
                notes.append(
                    f"Swap {swap.number}: {what}, asked for at {utc(swap.ts)}, never took over: "
                    "too few rows followed, or a later swap came first."
                )
    return notes


def utc(ts: int) -> str:
    """An instant for people, to the us."""
    moment = datetime.fromtimestamp(ts // 1_000_000_000, UTC).replace(tzinfo=None)
    return f"{moment.isoformat()}.{ts % 1_000_000_000 // 1000:06d}Z"

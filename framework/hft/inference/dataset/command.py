"""What `hft dataset` does: a plan's features and the labels asked for, a folder an instrument."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from hft.durations import parse_ns
from hft.errors import ConfigError
from hft.inference.dataset.extract import ONE_SIDED_NS, PAUSE_NS, Wanted
from hft.inference.dataset.facts import DatasetFacts
from hft.inference.dataset.label_latency import label_latency
from hft.inference.dataset.rows import Options
from hft.inference.dataset.writing import Source, require_free, write_dataset

if TYPE_CHECKING:
    from hft.feeds import Feed
    from hft.plan import Plan, SourcePlan

Progress = Callable[[str], AbstractContextManager[Callable[[int, float], None]]]
Events = npt.NDArray[Any]


def source_of(plan: Plan, name: str | None) -> SourcePlan:
    """The features of a strategy's model; without a model, its own.

    Raises:
        ConfigError: it has none, several models, or none of that name.
    """
    cls, names = plan.strategy.__name__, [source.name for source in plan.sources]
    if not names:
        raise ConfigError(f"{cls} has neither features nor a model")
    if name is not None:
        if name not in names:
            raise ConfigError(f"no model {name!r} in {cls}; it has {', '.join(names)}")
        return plan.sources[names.index(name)]
    models = [source for source in plan.sources if source.bundle is not None] or plan.sources
    if len(models) > 1:
        raise ConfigError(
            f"{cls} has {', '.join(source.name for source in models)}: choose with --source"
        )
    return models[0]


def heard(plan: Plan) -> list[Feed]:
    """The feeds as the run hears them: with the recipe's feed latency, where it has one."""
    from hft.execution.latency import core_legs, delayed

    latency = plan.recipe.latency
    if latency.feed == "data" and latency.scale == 1.0:
        return plan.feeds
    leg = core_legs(latency, plan.recipe.seed, plan.feeds, ids=False).feed

    def late(chunks: Iterator[Events]) -> Iterator[Events]:
        return delayed(chunks, leg, latency.scale)

    def of(feed: Feed) -> Feed:
        return replace(feed, chunks=lambda: late(feed.chunks()), days=feed.days.through(late))

    return [of(feed) for feed in plan.feeds]


def horizons_of(text: str) -> tuple[int, ...]:
    """`100ms,1s` in ns.

    Raises:
        ConfigError: no durations, or one twice.
    """
    horizons = tuple(parse_ns(part.strip()) for part in text.split(","))
    if min(horizons) == 0:
        raise ConfigError(f"--labels {text}: a horizon must be longer than 0")
    if len(set(horizons)) < len(horizons):
        raise ConfigError(f"--labels {text}: a horizon is named twice")
    return horizons


def make_datasets(
    plan: Plan,
    folder: Path,
    *,
    labels: str,
    latency: str = "recipe",
    median: bool = False,
    model: str | None = None,
    embargo: str | None = None,
    one_sided_ns: int = ONE_SIDED_NS,
    pause_ns: int = PAUSE_NS,
    options: Options | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> dict[Path, DatasetFacts]:
    """Writes a dataset for each instrument of a plan, into folders of their own if several.

    Args:
        plan: strategy, features, data and recipe.
        folder: to write.
        labels: horizons, `100ms,1s`.
        latency: see `label_latency`.
        median: of a profile the median instead of draws.
        model: which of the strategy's sources.
        embargo: a duration; None: the longest label's.
        one_sided_ns: see `Wanted`.
        pause_ns: likewise.
        options: how rows become a dataset; the embargo is set here.
        overwrite: replace datasets that exist.
        progress: told how far it is.

    Raises:
        HftError: what was asked for does not fit the strategy or the data.
    """
    source, horizons = source_of(plan, model), horizons_of(labels)
    drawn = label_latency(plan, latency, median=median)
    wanted = Wanted(source.features, drawn, horizons, one_sided_ns=one_sided_ns, pause_ns=pause_ns)
    embargo_ns = drawn.typical_ns + max(horizons) if embargo is None else parse_ns(embargo)
    options = options or Options()
    options = replace(
        options,
        cuts=replace(options.cuts, embargo_ns=embargo_ns),
        days_apart=plan.recipe.engine.overnight == "flatten",
    )
    facts = Source(plan.recipe.strategy, source.name, plan.recipe.data.path)
    feeds, made = heard(plan), {}
    places = [folder if len(feeds) == 1 else folder / feed.spec.name for feed in feeds]
    for place in places:
        require_free(place, overwrite=overwrite)
    for feed, place in zip(feeds, places, strict=True):
        with progress(feed.spec.name) if progress else nullcontext() as tick:
            made[place] = write_dataset(
                place, feed, wanted, options, facts, overwrite=overwrite, tick=tick
            )
    return made

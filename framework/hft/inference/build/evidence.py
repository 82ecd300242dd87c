"""What a build is judged on: labelled rows of the model's features, and a market to replay."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hft.durations import format_ns
from hft.errors import ConfigError, ModelError
from hft.inference.card import FeatureEntry, Scaler, TrailingEntry, TriggerEntry, entries_of
from hft.inference.dataset.facts import DatasetFacts
from hft.inference.dataset.in_memory import Rows, Split, collect
from hft.inference.dataset.rows import days_of
from hft.inference.training.task import Report, Task, TrainConfig, prepare

if TYPE_CHECKING:
    from hft.feeds import Feed
    from hft.plan import Plan

SYNTH_SEED = 900_000
"""Added to the seed of a synthetic market that was trained on: the replay is of another one."""


@dataclass(frozen=True, slots=True)
class Replay:
    """A run whose model is exchanged: arguments of hft.inference.build.trials.replay."""

    strategy: str
    model: str
    data: str
    recipe: str | None
    settings: dict[str, Any]
    assignments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Evidence:
    """Rows with labels, split in time, and where they come from."""

    task: Task
    features: tuple[FeatureEntry, ...]
    trigger: TriggerEntry
    latency_ns: int
    data: str
    replay: Replay | None = None
    no_replay: str = ""
    """Why P&L cannot be measured."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Where a build is to take its evidence from."""

    strategy: str | None = None
    dataset: Path | None = None
    fold: int = 1
    store: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    """Of the recipe: symbols, start, end."""
    assignments: tuple[str, ...] = ()
    """Recipe keys, KEY=VALUE."""
    recipe: Path | None = None
    model: str | None = None
    """Which of the strategy's, if it has several."""
    pnl_ns: int = 0
    """How much of the market the P&L is measured on; 0: none."""


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of the model before there are rows."""

    horizon_ns: int = 0
    latency_ns: int = 0
    window_rows: int = 0
    warm_up_rows: int = 100
    clip: float = 5.0
    scaler: Scaler | None = None
    """The model's own; None: it is made of the rows."""
    trailing: TrailingEntry | None = None
    features: tuple[FeatureEntry, ...] = ()
    trigger: TriggerEntry | None = None

    def config(self, latency_ns: int, horizons_ns: tuple[int, ...]) -> TrainConfig:
        """How its rows are labelled and split."""
        return TrainConfig(
            latency_ns=latency_ns,
            horizons_ns=(self.horizon_ns,) if self.horizon_ns else horizons_ns,
            window_rows=self.window_rows,
            warm_up_rows=self.warm_up_rows,
            clip=self.clip,
        )


def evidence_of(asked: Asked, known: Known, report: Report) -> Evidence | None:
    """Rows of a data set, or of market data through the strategy's features; None: of neither.

    Raises:
        HftError: what was asked for does not fit the model or the data.
    """
    if asked.dataset is not None and asked.store is not None:
        raise ConfigError("--dataset and --data both say where rows come from: give one")
    if asked.dataset is not None:
        return _of_dataset(asked, known, report)
    return _of_store(asked, known, report) if asked.store is not None else None


def _of_dataset(asked: Asked, known: Known, report: Report) -> Evidence:
    from hft.inference.dataset.reading import open_dataset

    assert asked.dataset is not None
    dataset = open_dataset(asked.dataset, asked.fold)
    facts = dataset.facts
    require_same(known, facts.features, facts.trigger, f"the data set {asked.dataset}")
    if known.trailing is not None:
        dataset.require_trailing(known.trailing)
    rows, parts = dataset.rows(trailing=known.trailing is not None)
    latency_ns = dataset.typical_latency_ns()
    config = known.config(latency_ns, tuple(rows.moves))
    task = prepare(rows, config, report, parts, scaler=known.scaler)
    replay, why = _replay_of_dataset(asked, facts, task)
    return Evidence(task, facts.features, facts.trigger, latency_ns, facts.instrument, replay, why)


def _of_store(asked: Asked, known: Known, report: Report) -> Evidence:
    from hft.inference.bundle import features_of
    from hft.inference.dataset.command import heard
    from hft.inference.dataset.label_latency import label_latency

    plan = _plan(asked, asked.store)
    source = _source(plan, asked.model)
    features, trigger = entries_of(source.features)
    # A bundle's own list counts: the strategy may still name the bundle before this one.
    if known.trigger is not None:
        own = {f.name: f for f in source.features if f.kind == "own"}
        wanted = features_of(known.features, known.trigger, own, Path("the model"))
        features, trigger = known.features, known.trigger
    else:
        wanted = source.features
    feed = _only(heard(plan))
    latency_ns = known.latency_ns or label_latency(plan, "recipe", median=True).typical_ns
    config = known.config(latency_ns, TrainConfig().horizons_ns)
    report(f"rows of {feed.spec.name}, labels from {format_ns(latency_ns)} on")
    rows = collect(
        days_of(feed, apart=plan.recipe.engine.overnight == "flatten"),
        wanted,
        latency_ns=latency_ns,
        horizons_ns=config.horizons_ns,
        trailing=known.trailing,
    )
    task = prepare(rows, config, report, scaler=known.scaler)
    chosen = {"data.symbols": (feed.spec.name,)} | asked.settings
    replay, why = _replay(asked, source.name, str(asked.store), chosen, task, plan)
    return Evidence(task, features, trigger, latency_ns, feed.spec.name, replay, why)


def _plan(asked: Asked, data: str | None) -> Plan:
    from hft.plan import prepare as prepare_run

    if asked.strategy is None:
        raise ConfigError("--data needs --strategy: its features are what rows are made of")
    return prepare_run(
        asked.strategy,
        data,
        recipe=asked.recipe,
        settings=asked.settings,
        assignments=asked.assignments,
    )


def _source(plan: Plan, name: str | None) -> Any:
    from hft.inference.dataset.command import source_of

    return source_of(plan, name)


def _only(feeds: list[Feed]) -> Feed:
    if len(feeds) != 1:
        names = ", ".join(feed.spec.name for feed in feeds)
        raise ConfigError(f"the data hold {names}: choose one with --symbol")
    return feeds[0]


def _replay_of_dataset(asked: Asked, facts: DatasetFacts, task: Task) -> tuple[Replay | None, str]:
    if not asked.strategy:
        return None, "no --strategy"
    if facts.data != "synth" and not Path(facts.data).exists():
        return None, f"{facts.data}, which the data set was made of, is not here"
    settings = {"data.symbols": (facts.instrument,)} | asked.settings
    return _replay(asked, asked.model or facts.model, facts.data, settings, task, None)


def _replay(
    asked: Asked, model: str, data: str, settings: dict[str, Any], task: Task, plan: Plan | None
) -> tuple[Replay | None, str]:
    if not asked.strategy:
        return None, "no --strategy"
    if not asked.pnl_ns:
        return None, "--pnl 0s"
    if model == "features":
        return None, "the strategy has features, but no model"
    settings = settings | {"engine.bracket": False, "engine.shortfall": False}
    if data == "synth":
        seed = 1 if plan is None else plan.recipe.data.synth.seed
        settings |= {
            "data.synth.seed": seed + SYNTH_SEED,
            "data.synth.duration_s": asked.pnl_ns / 1e9,
        }
    else:
        start = int(task.rows.ts[task.parts.test.start])
        settings |= {"data.start": start, "data.end": start + asked.pnl_ns}
    recipe = None if asked.recipe is None else str(asked.recipe)
    return Replay(asked.strategy, model, data, recipe, settings, asked.assignments), ""


def require_same(
    known: Known, features: tuple[FeatureEntry, ...], trigger: TriggerEntry, whose: str
) -> None:
    """Refuses rows of other features than a bundle's.

    Raises:
        ModelError: names the first that differs.
    """
    if known.trigger is None:
        return
    require_width(len(known.features), features, whose)
    for n, (ours, theirs) in enumerate(zip(known.features, features, strict=True), 1):
        if ours != theirs:
            raise ModelError(f"feature {n} of {whose} is {theirs}, the model's is {ours}")
    if trigger != known.trigger:
        raise ModelError(f"{whose} has trigger {trigger}, the model {known.trigger}")


def require_width(inputs: int, features: tuple[FeatureEntry, ...], whose: str) -> None:
    """Refuses features that are more or fewer than a model takes.

    Raises:
        ModelError: lists them.
    """
    if inputs != len(features):
        names = ", ".join(f.name for f in features)
        raise ModelError(
            f"the model takes {inputs} inputs, the features of {whose} are {len(features)}: {names}"
        )


def gate_rows(rows: Rows, parts: Split, warm: int, most: int) -> slice:
    """Consecutive rows of the test slice without a break.

    Args:
        rows: labelled.
        parts: their slices.
        warm: that many at the start are run and not compared.
        most: rows that are compared.
    """
    pieces = rows.pieces(parts.test.start, parts.test.stop)
    longest = max(pieces, key=lambda piece: piece.stop - piece.start)
    stop = min(longest.start + warm + most, longest.stop)
    if stop - longest.start <= warm + 1:
        raise ConfigError(
            f"the longest unbroken piece of the test slice has {stop - longest.start} rows, the "
            f"model needs {warm} before it is compared: want more data"
        )
    return slice(longest.start, stop)


def sizes_of(task: Task) -> str:
    """For people."""
    parts = task.parts
    counts = {
        "train": parts.train.stop - parts.train.start,
        "calibrate": parts.calibrate.stop - parts.calibrate.start,
        "test": parts.test.stop - parts.test.start,
    }
    storms = float(np.mean(task.rows.storm))
    told = ", ".join(f"{name} {count:,}" for name, count in counts.items())
    return f"{told} rows, {storms:.0%} of them in storms"

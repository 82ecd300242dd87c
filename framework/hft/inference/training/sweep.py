"""Several models or latency weights trained on the same rows, each run through a backtest."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from hft.errors import ConfigError
from hft.inference.bundle import Bundle
from hft.inference.training.data import Material, Progress
from hft.inference.training.front import Candidate, draw, write_csv
from hft.inference.training.keras_fit import checked_spec
from hft.inference.training.latency_table import LatencyTable
from hft.inference.training.task import Report, TrainConfig
from hft.inference.training.train import train
from hft.whole_files import replacing_folder

if TYPE_CHECKING:
    from hft.plan import Plan

FRONT_CSV, FRONT_PNG = "front.csv", "front.png"


def sweep(
    material: Material,
    configs: Sequence[TrainConfig],
    table: LatencyTable,
    folder: Path,
    *,
    plan: Plan | None = None,
    source: str | None = None,
    report: Report = print,
    progress: Progress | None = None,
) -> list[Candidate]:
    """Trains each config and draws accuracy and profit over latency, whole or not at all.

    Args:
        material: rows.
        configs: one a candidate.
        table: what a row of each costs; also the service time of its backtest.
        folder: gets a bundle a candidate, `front.csv` and `front.png`.
        plan: the strategy to run, on the test slice; None: accuracy alone.
        source: which of the strategy's models the candidates are.
        report: told what happens.
        progress: told how far each training and each run is.

    Raises:
        ConfigError: the folder exists; options that do not fit each other.
    """
    require_absent(folder)
    for config in configs:
        if not checked_spec(config, table).hidden:
            raise ConfigError(f"--sweep needs native layers, {config.model} has none")
    run = None if plan is None else after_training(plan, material)
    found = []
    with replacing_folder(folder) as draft:
        for config in configs:
            name = candidate_name(config)
            report(f"== {name}")
            bundle = _trained(material, config, table, draft / f"{name}.bundle", report, progress)
            candidate = _candidate(name, config, bundle, table)
            if run is not None:
                candidate = _with_profit(candidate, bundle, run, source, progress)
            report(_line(candidate))
            found.append(candidate)
        write_csv(found, draft / FRONT_CSV)
        title = f"{material.data}; latency: {table.target}"
        draw(found, draft / FRONT_PNG, title)
    return found


def require_absent(folder: Path) -> None:
    """Refuses a folder that is there.

    Raises:
        ConfigError: it is.
    """
    if folder.exists():
        raise ConfigError(f"{folder} exists: give another folder")


def candidate_name(config: TrainConfig) -> str:
    """Of a bundle: `lstm-32-32_0.3`."""
    return f"{re.sub('[^a-z0-9]+', '-', config.model)}_{config.latency_weight:g}"


def after_training(plan: Plan, material: Material) -> Plan:
    """The plan on data that no model of `material` was made from.

    Recorded rows: from where the test slice begins. A synthetic market: another seed.

    Raises:
        ConfigError: the data end before.
    """
    from hft.feeds import open_feeds

    data = plan.recipe.data
    if data.path == "synth":
        data = msgspec.structs.replace(
            data, synth=msgspec.structs.replace(data.synth, seed=data.synth.seed + 1)
        )
    else:
        (first, last), test = plan.feeds[0].ts_range, material.test_ts
        trained = int(material.rows.ts[material.parts.train.start])
        if last > trained and first < test:
            if last <= test:
                raise ConfigError(
                    "the strategy's data end before the test slice begins, so a backtest would "
                    "judge models on what they were trained on: give data that go on"
                )
            data = msgspec.structs.replace(data, start=test)
    recipe = msgspec.structs.replace(plan.recipe, data=data)
    return dataclasses.replace(plan, recipe=recipe, feeds=open_feeds(recipe))


def _trained(
    material: Material,
    config: TrainConfig,
    table: LatencyTable,
    out: Path,
    report: Report,
    progress: Progress | None,
) -> Bundle:
    def run(tell: object = None) -> Bundle:
        return train(
            material.rows,
            material.features,
            config,
            out=out,
            data=material.data,
            report=report,
            parts=material.parts,
            classes=material.classes,
            table=table,
            tell=tell,  # type: ignore[arg-type]
        )

    if progress is None:
        return run()
    with progress("training") as tell:
        return run(tell)


def _candidate(name: str, config: TrainConfig, bundle: Bundle, table: LatencyTable) -> Candidate:
    hidden, metrics = bundle.card.layers[:-1], bundle.card.metrics
    return Candidate(
        name,
        config.model,
        config.latency_weight,
        sum(layer.units for layer in hidden),
        round(table.of_layers(hidden), 1),
        metrics["log_loss"],
        (metrics["auc_up"] + metrics["auc_down"]) / 2,
    )


def _with_profit(
    candidate: Candidate,
    bundle: Bundle,
    plan: Plan,
    source: str | None,
    progress: Progress | None,
) -> Candidate:
    net, placebo = (
        net_of(with_model(plan, bundle, candidate.latency_ns, source, placebo=placebo), progress)
        for placebo in (False, True)
    )
    return dataclasses.replace(candidate, net=net, placebo_net=placebo)


def with_model(
    plan: Plan, bundle: Bundle, service_ns: float, source: str | None = None, *, placebo: bool
) -> Plan:
    """The plan with another bundle as its model, and what a row of it takes."""
    from hft.inference.dataset.command import source_of

    old = source_of(plan, source)
    new = dataclasses.replace(old, features=bundle.features, bundle=bundle)
    latency = msgspec.structs.replace(plan.recipe.latency, inference=max(round(service_ns), 0))
    engine = msgspec.structs.replace(plan.recipe.engine, placebo=placebo, shortfall=False)
    recipe = msgspec.structs.replace(plan.recipe, latency=latency, engine=engine)
    sources = [new if s is old else s for s in plan.sources]
    return dataclasses.replace(plan, recipe=recipe, sources=sources)


def net_of(plan: Plan, progress: Progress | None = None) -> float:
    """What a run earns after fees, in its first account's currency.

    Raises:
        ConfigError: the run failed; says why.
    """
    from hft.analysis.figures import headline_of
    from hft.engine import run_once

    run = run_once(plan, progress).run
    if run.status == "interrupted":
        raise KeyboardInterrupt
    if run.status != "complete":
        raise ConfigError(f"the backtest {run.status}: {run.error}")
    return float(headline_of(run)["net"] or 0.0)


def _line(c: Candidate) -> str:
    profit = "" if c.net is None else f", net {c.net:.2f} (placebo {c.placebo_net:.2f})"
    return f"{c.name}: {c.units} units, {c.latency_ns:g} ns, log loss {c.log_loss:.4f}{profit}"

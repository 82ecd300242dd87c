"""What `hft train` does, from options to a bundle, a latency table or a sweep."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from hft.durations import format_ns, parse_ns
from hft.errors import ConfigError
from hft.inference.bundle import require_free
from hft.inference.training.data import Material, Progress, default_columns, of_dataset, of_plan
from hft.inference.training.keras_fit import checked_spec
from hft.inference.training.keras_models import require_keras
from hft.inference.training.latency_table import LatencyTable, load_table, measured, save_table
from hft.inference.training.model_spec import model_spec
from hft.inference.training.task import Report, TrainConfig
from hft.inference.training.train import INPUTS, train

if TYPE_CHECKING:
    from hft.inference.bundle import Bundle
    from hft.inference.dataset.facts import DatasetFacts
    from hft.plan import Plan


LABELS = "100ms,250ms,500ms,1s"


@dataclass(frozen=True, slots=True)
class DataOptions:
    """Where rows come from."""

    strategy: str | None = None
    dataset: Path | None = None
    fold: int = 1
    store: str | None = None
    recipe: Path | None = None
    settings: dict[str, Any] | None = None
    assignments: tuple[str, ...] = ()
    source: str | None = None
    labels: str | None = None
    """Of a data set: those of its horizons to choose from; None: all. Else `LABELS`."""
    latency: str | None = None
    """Of a data set: as it was made; None: not asked. Else `recipe`."""
    trailing: bool = False

    def plan(self) -> Plan | None:
        """Of the strategy; of the default columns where neither it nor a data set is given."""
        from hft.plan import prepare

        if self.strategy is None and self.dataset is not None:
            return None
        return prepare(
            self.strategy or default_columns(),
            self.store,
            recipe=self.recipe,
            settings=self.settings,
            assignments=self.assignments,
        )

    def material(self, plan: Plan | None, progress: Progress | None = None) -> Material:
        """The rows."""
        if self.dataset is not None:
            horizons_ns = self._of_the_set(self.dataset)
            found = of_dataset(
                self.dataset, self.fold, plan=plan, source=self.source, trailing=self.trailing
            )
            moves = {h: found.rows.moves[h] for h in horizons_ns}
            return replace(found, rows=replace(found.rows, moves=moves))
        assert plan is not None
        return of_plan(
            plan,
            labels=self.labels or LABELS,
            latency=self.latency or "recipe",
            source=self.source,
            trailing=self.trailing,
            progress=progress,
        )

    def _of_the_set(self, folder: Path) -> tuple[int, ...]:
        """Horizons of a data set, those that are asked for; its labels begin where they begin."""
        from hft.inference.dataset.command import horizons_of
        from hft.inference.dataset.facts import read_facts

        facts = read_facts(folder)
        if self.latency is not None and not _begin(facts, self.latency):
            raise ConfigError(
                f"--latency {self.latency}: labels of {folder} begin {facts.latency} after their "
                "row; leave it out, or make the data set again"
            )
        wanted = facts.horizons_ns if self.labels is None else horizons_of(self.labels)
        if not set(wanted) <= set(facts.horizons_ns):
            there = ",".join(format_ns(h) for h in facts.horizons_ns)
            raise ConfigError(f"--labels {self.labels}: {folder} has {there}; choose of these")
        return wanted

    def inputs(self) -> int:
        """How many columns there are, without reading rows."""
        from hft.inference.dataset.command import source_of
        from hft.inference.dataset.facts import read_facts

        if self.dataset is not None:
            return len(read_facts(self.dataset).features)
        plan = self.plan() if self.strategy is not None else None
        return len(INPUTS if plan is None else source_of(plan, self.source).features)


def _begin(facts: DatasetFacts, latency: str) -> bool:
    """Whether labels begin so long after their row: a duration, or the words that they had."""
    with suppress(ConfigError):
        return parse_ns(latency) == facts.latency_ns
    return latency == facts.latency


def run_train(
    data: DataOptions,
    config: TrainConfig,
    out: Path,
    *,
    table: Path | None = None,
    overwrite: bool = False,
    report: Report = print,
    progress: Progress,
) -> Bundle:
    """One bundle.

    Raises:
        HftError: what was asked for does not fit the data or itself.
    """
    require_keras()
    require_free(out, overwrite=overwrite)
    known = None if table is None else load_table(table)
    checked_spec(config, known)
    material = data.material(data.plan(), progress)
    report(f"{material.data}: {len(material.rows):,} rows")
    with progress("training") as tell:
        return train(
            material.rows,
            material.features,
            material.config(config),
            out=out,
            data=material.data,
            report=report,
            parts=material.parts,
            classes=material.classes,
            table=known,
            tell=tell,
            overwrite=overwrite,
        )


def run_sweep(
    data: DataOptions,
    config: TrainConfig,
    models: Sequence[str],
    weights: Sequence[float],
    out: Path,
    *,
    table: Path | None = None,
    report: Report = print,
    progress: Progress,
) -> None:
    """A bundle for each model and latency weight, and the fronts."""
    from hft.inference.training.sweep import require_absent, sweep

    require_keras()
    require_absent(out)
    for model in models:
        model_spec(model)
    plan = data.plan()
    material = data.material(plan, progress)
    known = load_table(table) if table else _measured_here(models, len(material.features), report)
    configs = [
        msgspec.structs.replace(material.config(config), model=model, latency_weight=weight)
        for model in models
        for weight in weights
    ]
    sweep(
        material,
        configs,
        known,
        out,
        plan=plan if data.strategy is not None else None,
        source=data.source,
        report=report,
        progress=progress,
    )


def run_measure(
    data: DataOptions, models: Sequence[str], file: Path, precision: str, report: Report = print
) -> LatencyTable:
    """A latency table of what these models are made of, measured here."""
    table = _measured_here(models, data.inputs(), report, precision)
    save_table(table, file)
    return table


def weights_in(text: str) -> tuple[float, ...]:
    """`0,0.1,0.3` of `--sweep`.

    Raises:
        ConfigError: no numbers, or below 0.
    """
    try:
        found = tuple(float(part) for part in text.split(","))
    except ValueError:
        found = (-1.0,)
    if not all(0 <= weight < float("inf") for weight in found):
        raise ConfigError(f"--sweep {text}: want numbers from 0, such as 0,0.1,0.3")
    if len(set(found)) < len(found):
        raise ConfigError(f"--sweep {text}: a weight is named twice")
    return found


def _measured_here(
    models: Sequence[str], inputs: int, report: Report, precision: str = "fp32"
) -> LatencyTable:
    hidden = [model_spec(model).hidden for model in models]
    if not any(hidden):
        raise ConfigError(f"{', '.join(models)}: no native layers, whose time could be measured")
    return measured(hidden, inputs, precision=precision, report=report)

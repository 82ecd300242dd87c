"""What `hft train` learns from: a data set, or a strategy's columns of a store or `synth`."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from hft.errors import ConfigError
from hft.features import Features
from hft.inference.card import entries_of
from hft.inference.dataset.classes import Classes
from hft.inference.dataset.in_memory import Rows, Split
from hft.inference.training.task import TrainConfig
from hft.inference.training.train import INPUTS

if TYPE_CHECKING:
    from hft.inference.dataset.reading import Dataset
    from hft.plan import Plan
    from hft.strategy import Strategy

Progress = Callable[[str], AbstractContextManager[Callable[[int, float], None]]]


@dataclass(frozen=True, slots=True)
class Material:
    """Rows of one instrument with labels, split."""

    rows: Rows
    features: Features
    parts: Split
    classes: Mapping[int, Classes]
    """By horizon [ns]."""
    latency_ns: int
    data: str
    """What they are, for the card."""

    def config(self, config: TrainConfig) -> TrainConfig:
        """With the horizons and the latency of these labels."""
        return msgspec.structs.replace(
            config, latency_ns=self.latency_ns, horizons_ns=tuple(self.rows.moves)
        )

    @property
    def test_ts(self) -> int:
        """Where the test slice begins [ns]."""
        return int(self.rows.ts[self.parts.test.start])


def default_columns() -> type[Strategy]:
    """A strategy that has the columns of lstm_mm and does nothing: for data without a strategy."""
    from hft.strategy import Strategy

    return type("DefaultColumns", (Strategy,), {"features": INPUTS, "__module__": __name__})


def of_plan(
    plan: Plan,
    *,
    labels: str,
    latency: str = "recipe",
    source: str | None = None,
    trailing: bool = False,
    progress: Progress | None = None,
) -> Material:
    """Makes a data set of a plan's data and reads it; nothing of it is left on disk.

    Raises:
        ConfigError: several instruments; see `make_datasets`.
    """
    from hft.inference.dataset.command import make_datasets

    if len(plan.feeds) != 1:
        names = ", ".join(feed.spec.name for feed in plan.feeds)
        raise ConfigError(f"a model is trained on one instrument of {names}: choose with --symbol")
    with tempfile.TemporaryDirectory(prefix="hft-train-") as home:
        folder = Path(home) / "set"
        make_datasets(plan, folder, labels=labels, latency=latency, model=source, progress=progress)
        return of_dataset(folder, plan=plan, source=source, trailing=trailing)


def of_dataset(
    folder: Path,
    fold: int = 1,
    *,
    plan: Plan | None = None,
    source: str | None = None,
    trailing: bool = False,
) -> Material:
    """Reads a data set.

    Args:
        folder: of `hft dataset`.
        fold: which, of several.
        plan: its strategy's columns must be those of the data set.
        source: which of the strategy's models, of several.
        trailing: scale by the estimates of the data set, as the model will in a run.

    Raises:
        ConfigError: columns or trigger are not the strategy's.
        DataError: the data set is damaged.
    """
    from hft.inference.dataset.command import source_of
    from hft.inference.dataset.reading import open_dataset

    dataset = open_dataset(folder, fold)
    wanted = None if plan is None else source_of(plan, source).features
    if wanted is not None:
        _require_same(dataset, wanted)
    rows, parts = dataset.rows(trailing=trailing)
    return Material(
        rows,
        dataset.features() if wanted is None else wanted,
        parts,
        {h.horizon_ns: Classes(h.threshold_ticks, h.move_ticks) for h in dataset.fold.horizons},
        dataset.typical_latency_ns(),
        f"{dataset.facts.instrument} of {Path(dataset.facts.data).name}",
    )


def _require_same(dataset: Dataset, wanted: Features) -> None:
    entries, trigger = entries_of(wanted)
    have: tuple[Any, ...] = dataset.facts.features
    for n in range(max(len(entries), len(have))):
        theirs = str(have[n]) if n < len(have) else "missing"
        ours = str(entries[n]) if n < len(entries) else "none"
        if theirs != ours:
            raise ConfigError(
                f"{dataset.folder}: column {n + 1} is {theirs}, the strategy's is {ours}; make the "
                "data set again with `hft dataset`, or leave out the strategy"
            )
    if trigger != dataset.facts.trigger:
        raise ConfigError(
            f"{dataset.folder}: rows were made on {dataset.facts.trigger}, the strategy's are on "
            f"{trigger}; make the data set again"
        )

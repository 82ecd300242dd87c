"""The folder a run leaves: recipe, environment, strategy copy, journal, rows and report.

runs/backtest-lstm_mm-20260101T120000Z/
    recipe.toml  environment.json  strategy.py  journal.bin  state.json
    orders.parquet  fills.parquet  samples.parquet  run.json  report.json  report.html
"""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from hft.config import to_toml
from hft.errors import ConfigError

if TYPE_CHECKING:
    from hft.engine import Outcome, Plan

JOURNAL = np.dtype(
    [
        ("ts", "<i8"),
        ("order", "<u8"),
        ("price", "<i8"),
        ("lots", "<i8"),
        ("a", "<i8"),
        ("b", "<i8"),
        ("c", "<i8"),
        ("instrument", "<u4"),
        ("kind", "<u2"),
        ("check", "<u2"),
    ]
)
"""One journal record: the same bytes as `hft::Record` (framework/core/journal.hpp)."""


def new_folder(kind: str, name: str, base: Path | None = None) -> Path:
    """Makes `<base>/<kind>-<name>-<utc>`; base is the project's backtests/runs by default."""
    if base is None:
        base = Path("backtests/runs") if Path("backtests").is_dir() else Path("runs")
    stem = f"{kind}-{name}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    for suffix in ["", *(f"-{n}" for n in range(2, 1000))]:
        folder = base / (stem + suffix)
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise ConfigError(f"cannot make run folder {folder}: {error}") from error
        return folder
    raise ConfigError(f"too many runs named {stem} in {base}")


def write_inputs(folder: Path, plan: Plan, facts: dict[str, Any]) -> None:
    """What the run depends on; written before it starts, so that a crash leaves it too."""
    (folder / "recipe.toml").write_text(to_toml(plan.recipe))
    (folder / "environment.json").write_bytes(msgspec.json.format(msgspec.json.encode(facts)))
    if plan.file is not None:
        shutil.copyfile(plan.file, folder / "strategy.py")


def write_outcome(folder: Path, plan: Plan, outcome: Outcome) -> None:
    """Journal (unless the core wrote it already), the strategy's state and the report."""
    from hft.analysis.report import Report

    write_inputs(folder, plan, outcome.run.environment)
    if len(outcome.journal):
        (folder / "journal.bin").write_bytes(outcome.journal.data)
    state = outcome.strategy.on_save() if outcome.run.status == "complete" else {}
    if state:
        (folder / "state.json").write_bytes(msgspec.json.encode(state))
    Report(outcome.run).save(folder)


def read_journal(folder: Path) -> NDArray[Any]:
    """All records of a run.

    Raises:
        ConfigError: the folder has no journal, or it is cut inside a record.
    """
    path = folder / "journal.bin"
    if not path.is_file():
        raise ConfigError(f"{folder} has no journal.bin: is it a run folder?")
    size = path.stat().st_size
    if size % JOURNAL.itemsize:
        raise ConfigError(
            f"{path} has {size} bytes, not a whole number of {JOURNAL.itemsize}-byte records"
        )
    return np.fromfile(path, JOURNAL)

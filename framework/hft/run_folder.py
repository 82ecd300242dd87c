"""The folder a run leaves: recipe, environment, strategy copy, journal, rows and report.

runs/backtest-lstm_mm-20260101T120000Z/
    recipe.toml  environment.json  strategy.py  journal.bin  market.bin (live)  state.json
    orders.parquet  fills.parquet  samples.parquet  run.json  report.json  report.html
    swaps/ (live)
"""

from __future__ import annotations

import fcntl
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from hft.errors import ConfigError, DataError
from hft.journal import JOURNAL
from hft.recipe_files import to_toml

if TYPE_CHECKING:
    from hft.engine import Outcome
    from hft.plan import Plan

JOURNAL_FILE = "journal.bin"
MARKET_FILE = "market.bin"
"""EVENT rows as a live engine saw them: on our clock, without our own lots."""


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
    facts = facts | {"strategy_class": plan.strategy.__name__}
    try:
        (folder / "recipe.toml").write_text(to_toml(plan.recipe))
        (folder / "environment.json").write_bytes(msgspec.json.format(msgspec.json.encode(facts)))
        if plan.file is not None:
            shutil.copyfile(plan.file, folder / "strategy.py")
    except OSError as error:
        raise ConfigError(f"cannot write into run folder {folder}: {error}") from error


def write_outcome(folder: Path, plan: Plan, outcome: Outcome) -> None:
    """Journal (unless the core wrote it already), the report and the strategy's state.

    Raises:
        StrategyError: `on_save` failed; the rest is written.
    """
    from hft.analysis.report import Report

    if not (folder / JOURNAL_FILE).is_file():
        write_inputs(folder, plan, outcome.run.environment)
        (folder / JOURNAL_FILE).write_bytes(outcome.journal.data)
    Report(outcome.run).save(folder)
    if outcome.run.status == "failed":
        return
    state = outcome.saved()
    if state:
        (folder / "state.json").write_bytes(msgspec.json.encode(state))


def require_ended(folder: Path) -> None:
    """Refuses a run folder that a live session is still writing to.

    Raises:
        ConfigError: it is.
    """
    if is_running(folder):
        raise ConfigError(f"{folder} is a run in progress: wait until it has ended")


def require_running(folder: Path) -> None:
    """Refuses any other.

    Raises:
        ConfigError: the run has ended.
        DataError: not a run folder.
    """
    if is_running(folder):
        return
    if not (folder / "environment.json").is_file():
        raise DataError(f"{folder} has no environment.json: is it a run folder?")
    raise ConfigError(f"{folder} is no live session that goes on: the run has ended")


def is_running(folder: Path) -> bool:
    """Whether a live session is still writing to it: it holds a lock on its journal."""
    path = folder / JOURNAL_FILE
    if not path.is_file():
        return False
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def read_journal(folder: Path) -> NDArray[Any]:
    """All records of a run that has ended.

    Raises:
        ConfigError: the run is still in progress.
        DataError: there is no journal, or it is cut inside a record.
    """
    require_ended(folder)
    return _read_rows(folder / JOURNAL_FILE, JOURNAL)


def read_market(folder: Path) -> NDArray[Any]:
    """The EVENT rows that a live session's engine saw; see `read_journal`."""
    from hft.types import EVENT

    return _read_rows(folder / MARKET_FILE, EVENT)


def _read_rows(path: Path, dtype: np.dtype[Any]) -> NDArray[Any]:
    if not path.is_file():
        raise DataError(f"{path.parent} has no {path.name}: is it a run folder?")
    size = path.stat().st_size
    if size % dtype.itemsize:
        raise DataError(
            f"{path} is cut: {size} bytes are not a whole number of {dtype.itemsize}-byte records"
        )
    return np.memmap(path, dtype, "r") if size else np.zeros(0, dtype)

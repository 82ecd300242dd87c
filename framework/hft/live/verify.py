"""`hft verify`: a run's inputs, fed back into the engine, must give its outputs to the byte."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from hft import engine, run_folder
from hft.core_terms import core_instruments, engine_config
from hft.errors import ConfigError, DataError, StrategyError
from hft.journal import JOURNAL, RecordKind, checksums, kind_name
from hft.live.swaps import add_journaled
from hft.plan import prepare
from hft.recipe_files import load_recipe
from hft.sources import add_sources

if TYPE_CHECKING:
    from hft.plan import Plan

_BLOCK = 1 << 16


@dataclass(frozen=True, slots=True)
class Verification:
    """What came of it."""

    run: Path
    records: int
    differences: int
    first: str
    """The first difference, in words."""
    notes: tuple[str, ...]

    def __str__(self) -> str:
        head = f"{self.run}: {self.records:,} records, {self.differences:,} differences"
        return "\n".join([head, *(f"  {line}" for line in (self.first, *self.notes) if line)])


def verify_run(folder: Path) -> Verification:
    """Replays a run folder and compares journals.

    Raises:
        ConfigError: a run in progress, or code, bundle or data are not what the run used.
        DataError: not a run folder, or a file of it is damaged.
        StrategyError: a handler raises now that did not then.
    """
    run_folder.require_ended(folder)
    facts = facts_of(folder)
    live = (folder / run_folder.MARKET_FILE).is_file()
    plan = plan_of(folder, facts)
    notes = changes(facts, plan, live)
    journal = whole_records(run_folder.read_journal(folder), live)
    if live:
        now = _feed_back(plan, folder, journal)
        if not len(journal) or journal["kind"][-1] != RecordKind.END:
            notes.append("the journal ends without END: the process died, or the file was cut")
            now = now[: len(journal)]  # of the last input's outputs some may not have been written
    else:
        now = engine.run_once(plan).journal.view(JOURNAL)
        if status_of(folder) == "interrupted":
            notes.append("the run was interrupted: compared up to there")
            end = _last_stop(journal)
            journal, now = journal[:end], now[:end]
    return _compare(folder, journal, now, notes)


def facts_of(folder: Path) -> dict[str, Any]:
    """What the run depended on, `environment.json`."""
    return _json(folder / "environment.json")


def plan_of(folder: Path, facts: dict[str, Any]) -> Plan:
    """The run's plan, with the strategy as the folder has it."""
    recipe = folder / "recipe.toml"
    if not recipe.is_file():
        raise DataError(f"{folder} has no recipe.toml: is it a run folder?")
    copy = folder / "strategy.py"
    if not copy.is_file():
        raise ConfigError(
            f"{folder} has no strategy.py: a strategy that was not a file cannot be verified"
        )
    if "strategy_class" not in facts:
        raise DataError(f"{folder}/environment.json is damaged: it names no strategy_class")
    home = Path(load_recipe(recipe).get("strategy", ""))
    with _neighbours_of(home):
        return prepare(f"{copy}:{facts['strategy_class']}", recipe=recipe, model_home=home)


@contextmanager
def _neighbours_of(home: Path) -> Iterator[None]:
    """The copy may import what lies beside the original."""
    sys.path.append(str(home.parent))
    try:
        yield
    finally:
        sys.path.remove(str(home.parent))


def status_of(folder: Path) -> str:
    """How the run ended; `died` where it left no report."""
    path = folder / "run.json"
    return str(_json(path).get("status")) if path.is_file() else "died"


def _json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise DataError(f"{path.parent} has no {path.name}: is it a run folder?")
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise DataError(f"{path} is damaged: {error}") from error


_INPUTS = {
    "strategy": "the folder's strategy.py",
    "state": "the state the run started from",
    "bundle": "the model bundle",
    "data": "the market data",
    "profile": "the latency profile",
}


def changes(facts: dict[str, Any], plan: Plan, live: bool) -> list[str]:  # noqa: FBT001
    """What differs from the run without deciding its outputs, in words.

    Raises:
        ConfigError: code, bundle or data are not what the run used.
    """
    from hft.environment import environment

    now = environment(plan)
    for key, was in facts.items():
        is_input = key in ("strategy_hash", "state_hash") or key.startswith("bundle_")
        is_input |= key.startswith(("data_", "profile_")) and not live
        if is_input and now.get(key) != was:
            raise ConfigError(
                f"{_INPUTS[key.partition('_')[0]]} is not what the run used: "
                f"{key} was {was}, is {now.get(key)}"
            )
    watched = ("hft", "python", "isa", "machine", *(k for k in facts if k.startswith("model_")))
    return [
        f"{k} was {facts.get(k)}, is {now.get(k)}" for k in watched if facts.get(k) != now.get(k)
    ]


def whole_records(journal: NDArray[Any], live: bool) -> NDArray[Any]:  # noqa: FBT001
    """Records up to where a killed process stopped writing: beyond it the file is zeros."""
    end = len(journal)
    while end and not journal[end - 1].tobytes().strip(b"\0"):
        end -= 1
    journal = journal[:end]
    first = _first_damaged(journal)
    if first is None:
        return journal
    if live and first == end - 1:
        return journal[:first]  # torn: the process died while it was written
    raise DataError(
        f"journal record {first} of {len(journal)} ({kind_name(journal[first])}) is damaged: "
        "its checksum differs"
    )


def _first_damaged(journal: NDArray[Any]) -> int | None:
    for start in range(0, len(journal), _BLOCK):  # a long run's journal is larger than memory
        block = journal[start : start + _BLOCK]
        bad = np.flatnonzero(block["check"] != checksums(block))
        if len(bad):
            return start + int(bad[0])
    return None


def _last_stop(journal: NDArray[Any]) -> int:
    """The last STOP; all records, where a handler was cut before it. Days have one each."""
    began = np.flatnonzero(journal["kind"] == RecordKind.START)
    stops = np.flatnonzero(journal["kind"] == RecordKind.STOP)
    after = stops[stops > began[-1]] if len(began) else stops
    return int(after[-1]) if len(after) else len(journal)


def _feed_back(
    plan: Plan, folder: Path, journal: NDArray[Any], kept: engine.Kept | None = None
) -> NDArray[Any]:
    from hft import _core

    rows = run_folder.read_market(folder)
    venues = sorted({f.spec.venue for f in plan.feeds})
    verify = _core.Verify(core_instruments(plan, venues), engine_config(plan.recipe))
    opened = add_sources(verify, plan)
    add_journaled(verify, plan, folder, journal, opened)
    if kept is not None:
        verify.keep_rows()
    strategy = engine.new_strategy(plan)
    try:
        verify.run(strategy, journal.view(np.uint8).reshape(-1), rows.view(np.uint8))
    except DataError:
        raise
    except (Exception, SystemExit) as error:
        again = _made(verify)
        if np.array_equal(again, journal[: len(again)]):
            raise StrategyError(
                f"fed record {verify.at} of {len(journal)} again, it fails: "
                f"{engine.handler_error(error)}"
            ) from error
    finally:
        opened.close()
    if kept is not None:
        kept(*verify.take_rows())
    return _made(verify)


def keep_rows_again(plan: Plan, folder: Path, journal: NDArray[Any], kept: engine.Kept) -> None:
    """Repeats a run and tells its features rows: a live one from its journal, a replay anew."""
    from hft.days import days_of, of_day

    if (folder / run_folder.MARKET_FILE).is_file():
        _feed_back(plan, folder, journal, kept)
    elif plan.recipe.engine.overnight == "flatten":
        for day in days_of(plan):
            part, ends = of_day(plan, day)
            engine.replay_rows(part, ends=ends, kept=kept)
    else:
        engine.replay_rows(plan, kept=kept)


def _made(verify: Any) -> NDArray[Any]:
    again: NDArray[np.uint8] = verify.results()["journal"]
    return again.view(JOURNAL)


def _compare(folder: Path, was: NDArray[Any], now: NDArray[Any], notes: list[str]) -> Verification:
    n = min(len(was), len(now))
    count, i = abs(len(was) - len(now)), n
    for start in range(0, n, _BLOCK):
        block = slice(start, min(start + _BLOCK, n))
        differ = np.flatnonzero(was[block] != now[block])
        if len(differ):
            count += len(differ)
            i = min(i, start + int(differ[0]))
    first = ""
    if i < n:
        first = f"record {i}: was {_say(was[i])}, is {_say(now[i])}"
    elif count:
        longer, whose = (was, "the run") if len(was) > n else (now, "the replay")
        first = f"only {whose} has record {n}: {_say(longer[n])}"
    return Verification(folder, len(was), count, first, tuple(notes))


def _say(record: Any) -> str:
    fields = ", ".join(f"{name} {record[name]}" for name in ("order", "price", "lots", "ts"))
    return f"{kind_name(record)} ({fields})"

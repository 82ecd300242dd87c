"""`hft verify`: a run's inputs, fed back into the engine, must give its outputs to the byte."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from hft import engine, run_folder
from hft.errors import ConfigError, DataError
from hft.live.session import MARKET_FILE
from hft.types import EVENT

if TYPE_CHECKING:
    from hft.engine import Plan

KINDS = {
    1: "START",
    2: "PACKET",
    3: "UPDATE",
    4: "SIGNAL",
    5: "TIMER",
    6: "CLOCK",
    7: "NEW",
    8: "CANCEL",
    9: "REPLACE",
    10: "REFUSED",
    11: "ROW",
    12: "STOP",
}
"""Journal record kinds; see framework/core/journal.hpp."""


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
        ConfigError: not a run folder, or its code, bundle or data are not what the run used.
    """
    facts = _json(folder / "environment.json")
    live = (folder / MARKET_FILE).is_file()
    plan = _plan(folder)
    notes = _changes(facts, plan, live)
    journal, cut = _whole_records(run_folder.read_journal(folder))
    notes += [cut] if cut else []
    again = _feed_back(plan, folder, journal) if live else engine.run_once(plan).journal
    return _compare(folder, journal, again.view(run_folder.JOURNAL), notes)


def _plan(folder: Path) -> Plan:
    recipe = folder / "recipe.toml"
    if not recipe.is_file():
        raise ConfigError(f"{folder} has no recipe.toml: is it a run folder?")
    from hft.config import load_recipe

    home = load_recipe(recipe).get("strategy", "")
    copy = folder / "strategy.py"
    if not copy.is_file():
        raise ConfigError(
            f"{folder} has no strategy.py: a strategy that was not a file cannot be verified"
        )
    return engine.prepare(copy, recipe=recipe, model_home=Path(home))


def _json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise ConfigError(f"{path.parent} has no {path.name}: is it a run folder?")
    decoded: dict[str, Any] = msgspec.json.decode(path.read_bytes())
    return decoded


def _changes(facts: dict[str, Any], plan: Plan, live: bool) -> list[str]:  # noqa: FBT001
    from hft.environment import environment

    now = environment(plan)
    for key, was in facts.items():
        is_input = key.startswith(("bundle_", "state_")) or (key.startswith("data_") and not live)
        if is_input and now.get(key) != was:
            raise ConfigError(f"{key} is not what the run used: {was} then, {now.get(key)} now")
    watched = ("hft", "python", "isa", "machine")
    return [f"{k} was {facts.get(k)}, is {now[k]}" for k in watched if facts.get(k) != now[k]]


def _whole_records(journal: NDArray[Any]) -> tuple[NDArray[Any], str]:
    """Records up to where a killed process stopped writing."""
    written = np.flatnonzero(journal["kind"] == 0)
    if len(written):
        journal = journal[: written[0]]
    good = journal["check"] == checksums(journal)
    if not good.all():
        torn = int(np.flatnonzero(~good)[0])
        if torn < len(journal) - 1:
            raise DataError(
                f"journal record {torn} of {len(journal)} is damaged: its checksum differs"
            )
        journal = journal[:torn]
    return journal, "the journal ends without STOP: the process died" if not _stopped(
        journal
    ) else ""


def _stopped(journal: NDArray[Any]) -> bool:
    return bool((journal["kind"][-4096:] == 12).any())


def checksums(journal: NDArray[Any]) -> NDArray[np.uint16]:
    """Each record's checksum as the core computes it, (n,)."""
    words = np.ascontiguousarray(journal).view(np.uint64).reshape(-1, 8).copy()
    words[:, 7] &= np.uint64(0x0000FFFFFFFFFFFF)
    h = np.full(len(journal), 0x9E3779B97F4A7C15, np.uint64)
    with np.errstate(over="ignore"):
        for column in range(8):
            h = (h ^ words[:, column]) * np.uint64(0xFF51AFD7ED558CCD)
            h ^= h >> np.uint64(32)
    return (h ^ (h >> np.uint64(16))).astype(np.uint16)


def _feed_back(plan: Plan, folder: Path, journal: NDArray[Any]) -> NDArray[np.uint8]:
    from hft import _core

    rows = np.fromfile(folder / MARKET_FILE, EVENT)
    venues = sorted({f.spec.venue for f in plan.feeds})
    verify = _core.Verify(engine.core_instruments(plan, venues), engine.engine_config(plan.recipe))
    engine.add_sources(verify, plan)
    strategy = engine.new_strategy(plan)
    verify.run(strategy, journal.view(np.uint8).reshape(-1), rows.view(np.uint8))
    again: NDArray[np.uint8] = verify.results()["journal"]
    return again


def _compare(folder: Path, was: NDArray[Any], now: NDArray[Any], notes: list[str]) -> Verification:
    n = min(len(was), len(now))
    differ = np.flatnonzero(was[:n] != now[:n])
    count = len(differ) + abs(len(was) - len(now))
    first = ""
    if len(differ):
        i = int(differ[0])
        first = f"record {i}: was {_say(was[i])}, is {_say(now[i])}"
    elif count:
        longer, whose = (was, "the run") if len(was) > n else (now, "the replay")
        first = f"only {whose} has record {n}: {_say(longer[n])}"
    return Verification(folder, len(was), count, first, tuple(notes))


def _say(record: Any) -> str:
    kind = KINDS.get(int(record["kind"]), str(record["kind"]))
    fields = ", ".join(f"{name} {record[name]}" for name in ("order", "price", "lots", "ts"))
    return f"{kind} ({fields})"

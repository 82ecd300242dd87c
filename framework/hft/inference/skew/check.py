"""`hft check skew`: the features of a run, made once more the way training makes them.

A run's journal has a digest of every features row. Here the rows are made again from what the run
heard, by the code that makes datasets, and compared digest by digest. Where digests differ, values
are wanted: the run is repeated (a replay again, a live session from its journal) with its rows
kept, and those whose digest the journal has are the run's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hft import run_folder
from hft.inference.skew.joining import Join
from hft.inference.skew.sides import Floats, Int, Rows, Side, SourceSkew

if TYPE_CHECKING:
    from hft.plan import Plan


@dataclass(frozen=True, slots=True)
class Skew:
    """What came of it."""

    run: Path
    sources: tuple[SourceSkew, ...]
    notes: tuple[str, ...]

    @property
    def differ(self) -> int:
        """Rows that differ, of all sources."""
        return sum(source.differ for source in self.sources)


def check_skew(folder: Path) -> Skew:
    """Compares a run's features with those that training would see.

    Raises:
        ConfigError: a run in progress, or code, bundle or data are not what the run used.
        DataError: not a run folder, or a file of it is damaged.
    """
    from hft.inference.dataset.command import heard
    from hft.live import verify

    run_folder.require_ended(folder)
    facts = verify.facts_of(folder)
    plan = verify.plan_of(folder, facts)
    live = (folder / run_folder.MARKET_FILE).is_file()
    notes = verify.changes(facts, plan, live)
    journal = verify.whole_records(run_folder.read_journal(folder), live)
    feeds, status = heard(plan), verify.status_of(folder)
    if status != "complete":
        notes.append(f"the run ended as {status}: compared up to there")
    sides = [
        Side(plan, number, instrument, feed, folder if live else None, status == "complete")
        for number, source in enumerate(plan.sources)
        for instrument, feed in enumerate(feeds)
        if not source.features.reactive
    ]
    notes += [
        f"{source.name} is reactive: made of the book less what we took, which no data set has; "
        "not compared"
        for source in plan.sources
        if source.features.reactive
    ]
    for side in sides:
        side.compare_digests(journal)
    wrong = [side for side in sides if side.skew.differ]
    if wrong:
        joins = {(side.instrument, side.number): Join(side, journal) for side in wrong}

        def kept(keys: Int, values: Floats) -> None:
            for key, rows in _by_source(plan, keys, values).items():
                if key in joins:
                    joins[key].run_has(*rows)

        verify.keep_rows_again(plan, folder, journal, kept)
        for join in joins.values():
            join.end()
    return Skew(folder, tuple(side.skew for side in sides), tuple(notes))


def _by_source(plan: Plan, keys: Int, values: Floats) -> dict[tuple[int, int], Rows]:
    """Kept rows by instrument and source."""
    width = np.array([len(source.features) for source in plan.sources])[keys[:, 2]]
    start = np.cumsum(width) - width
    found = {}
    for instrument, number in np.unique(keys[:, 1:], axis=0).tolist():
        mine = np.flatnonzero((keys[:, 1] == instrument) & (keys[:, 2] == number))
        columns = np.arange(len(plan.sources[number].features))
        x = values[start[mine][:, None] + columns]
        found[instrument, number] = (keys[mine, 0], x)
    return found

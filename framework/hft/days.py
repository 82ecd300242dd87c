"""Days apart: with `overnight = "flatten"` each day of the data is a run of its own.

A fresh strategy and a fresh book a day, no position overnight: `flatten_before` ahead of the end of
trading the engine cancels everything, sells what it holds at market, and refuses what is new. The
days are put together into one run, so that whoever reads it need not know. Days do not depend on
each other and may run side by side (parallel.py).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from hft import swaps
from hft.analysis.joining import Joining
from hft.durations import parse_ns
from hft.environment import environment
from hft.errors import ConfigError, HftError
from hft.journal import JOURNAL

if TYPE_CHECKING:
    from hft.engine import Outcome
    from hft.feeds import Events, Feed
    from hft.plan import Plan

Tick = Callable[[int, float], None]


def days_of(plan: Plan) -> list[str]:
    """Dates on which any instrument has rows, in order.

    Raises:
        ConfigError: there are none.
    """
    days = sorted(set().union(*(feed.days.names() for feed in plan.feeds)))
    if not days:
        raise ConfigError("there are no rows to replay")
    return days


def run_apart(plan: Plan, tick: Tick | None = None) -> Outcome:
    """Every day in turn, up to one that fails or is interrupted, as one outcome."""
    days, rows = days_of(plan), 0
    done: list[Outcome | HftError | None] = []
    for number, day in enumerate(days):

        def part(here: int, share: float, number: int = number, before: int = rows) -> None:
            assert tick is not None
            tick(before + here, (number + share) / len(days))

        try:
            result = run_day(plan, day, part if tick else None)
        except KeyboardInterrupt:  # before its first row, or after its last
            done.append(None)
            break
        done.append(result)
        if not isinstance(result, HftError):
            rows += result.run.rows
        if not is_whole(result):
            break
    return joined(days, done)


def run_day(
    plan: Plan,
    day: str,
    tick: Tick | None = None,
    stopped: Callable[[], bool] | None = None,
) -> Outcome | HftError:
    """One day of a plan; what the data or the core refuse is returned, for the report to name."""
    from hft import engine

    try:
        part, ends = of_day(plan, day)
        outcome = engine.replay_rows(part, tick, stopped, ends)
    except HftError as error:
        return error
    run = outcome.run
    run = dataclasses.replace(
        run,
        environment=environment(plan),
        recipe=msgspec.to_builtins(plan.recipe),
        notes=[*run.notes, *_left_open(outcome, day), *_begins_blind(plan, day)],
    )
    return dataclasses.replace(outcome, run=run)


def of_day(plan: Plan, day: str) -> tuple[Plan, list[int | None]]:
    """The plan of one day, and when each instrument is wound down."""
    feeds: list[Feed] = []
    ends: list[int | None] = []
    before_ns = parse_ns(plan.recipe.engine.flatten_before)
    for feed in plan.feeds:
        there = day in feed.days.names()
        feeds.append(dataclasses.replace(feed, chunks=partial(_rows_of, feed, day)))
        ends.append(feed.days.end(day) - before_ns if there else None)
    # A seed a day: order 7 of every day must not draw the same numbers.
    number = int(np.datetime64(day, "D").astype(np.int64))
    recipe = msgspec.structs.replace(plan.recipe, seed=plan.recipe.seed + number)
    return dataclasses.replace(swaps.of_day(plan, day), feeds=feeds, recipe=recipe), ends


def _rows_of(feed: Feed, day: str) -> Iterator[Events]:
    return feed.days.chunks(day) if day in feed.days.names() else iter(())


def is_whole(result: Outcome | HftError | None) -> bool:
    """Whether a day ran to its end, so that the next one counts."""
    return not (result is None or isinstance(result, HftError)) and result.run.status == "complete"


def joined(days: list[str], results: Sequence[Outcome | HftError | None]) -> Outcome:
    """Days as one outcome: all up to the first that is not whole, that one included.

    Args:
        days: all there are.
        results: of the first of them, in order; None: it never ran.

    Raises:
        HftError: the first day did not run at all.
    """
    ended = next((n for n, result in enumerate(results) if not is_whole(result)), len(results) - 1)
    last, joining = results[ended], Joining()
    kept = [r for r in results[: ended + 1] if not (r is None or isinstance(r, HftError))]
    if not kept:
        raise last if isinstance(last, HftError) else KeyboardInterrupt
    for outcome in kept:
        joining.add(outcome.run, outcome.journal.view(JOURNAL).copy(), outcome.rows)
    run = joining.run()
    if isinstance(last, HftError):
        why = f"{days[ended]}: {type(last).__name__}: {last}"
        run = dataclasses.replace(run, status="failed", error=why)
    elif last is None:
        run = dataclasses.replace(run, status="interrupted")
    elif run.status == "failed":
        run = dataclasses.replace(run, error=f"{days[ended]}: {run.error}")
    if ended + 1 < len(days):
        left = f"{ended + 1} of {len(days)} days were begun; the last is {days[ended]}."
        run = dataclasses.replace(run, notes=[*run.notes, left])
    return dataclasses.replace(
        kept[-1], run=run, journal=joining.journal(), rows=joining.rows_by_instrument()
    )


def _left_open(outcome: Outcome, day: str) -> list[str]:
    notes = []
    for number, facts in enumerate(outcome.run.instruments):
        samples = outcome.run.samples[outcome.run.samples["instrument"] == number]
        lots = int(samples["position"][-1]) if samples.size else 0
        if lots and outcome.run.status == "complete":
            notes.append(
                f"{day}: {lots:+,} lots of {facts.name} could not be sold by the end of the day; "
                "they stay in the account, marked with the market."
            )
    return notes


def _begins_blind(plan: Plan, day: str) -> list[str]:
    return [
        f"{day}: {feed.spec.name} has changes of levels and no snapshot: its book begins empty."
        for feed in plan.feeds
        if day in feed.days.names()
        and "LEVEL" in (kinds := feed.days.kinds(day))
        and not kinds & {"SNAPSHOT_BEGIN", "CLEAR"}
    ]

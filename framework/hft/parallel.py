"""Plans in several processes: variants side by side, and days side by side where they are apart.

A worker gets no plan (its feeds are open files) but what makes one: the strategy's file, which it
imports anew, and the resolved recipe.
"""

from __future__ import annotations

import dataclasses
import time
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from hft import workers
from hft.config import Recipe
from hft.errors import ConfigError, HftError, StrategyError

if TYPE_CHECKING:
    from hft.engine import Outcome, Progress
    from hft.plan import Plan


@dataclasses.dataclass(frozen=True, slots=True)
class Task:
    """One replay for a worker: of a whole plan, or of a day of it."""

    name: str
    file: Path
    strategy: str
    recipe: Recipe
    day: str | None


def run_plans(
    plans: dict[str, Plan], jobs: int, progress: Progress | None = None
) -> dict[str, Outcome]:
    """Outcomes by name, the first plan's always and the others' only if that one is complete.

    Raises:
        ConfigError: another process cannot load the strategy or the rows.
        HftError: the data or the core refuse a plan.
    """
    tasks = [task for name, plan in plans.items() for task in _tasks(name, plan)]
    main = next(iter(plans))
    began = took_s = time.perf_counter()

    def told(number: int, result: Any) -> bool:
        nonlocal took_s
        if tasks[number].name != main:
            return True
        took_s = time.perf_counter() - began
        return _whole(result)

    with progress(f"{main}, {jobs} jobs") if progress else nullcontext() as tick:
        results = workers.run_tasks(
            "hft.parallel:work",
            tasks,
            jobs,
            tick=tick,
            done=told,
        )
    for result in results.done.values():
        if isinstance(result, workers.Failure) and not isinstance(result.error, HftError):
            raise result.error
    outcomes: dict[str, Outcome] = {}
    for name in plans:
        mine = [results.done.get(n) for n, task in enumerate(tasks) if task.name == name]
        days = [task.day for task in tasks if task.name == name]
        if name != main and any(result is None for result in mine):
            break
        outcomes[name] = _outcome(days, mine)
        if outcomes[main].run.status != "complete":
            break
    run = dataclasses.replace(outcomes[main].run, wall_s=took_s)  # of days side by side, no sum
    outcomes[main] = dataclasses.replace(outcomes[main], run=run)
    return outcomes


def _tasks(name: str, plan: Plan) -> list[Task]:
    from hft.days import days_of

    if plan.file is None:
        raise ConfigError(
            f"jobs: {plan.strategy.__name__} was not loaded from a file, so another process cannot "
            "import it: put it into a file of its own, or use 1 job"
        )
    for feed in plan.feeds:
        if feed.in_memory:
            raise ConfigError(
                f"jobs: the rows of {feed.spec.name} were given as an array, which another process "
                "does not have: write them into a store, or use 1 job"
            )
    apart = plan.recipe.engine.overnight == "flatten"
    days: list[str] | list[None] = days_of(plan) if apart else [None]
    return [Task(name, plan.file, plan.strategy.__name__, plan.recipe, day) for day in days]


def _whole(result: Any) -> bool:
    from hft.days import is_whole

    return is_whole(None if isinstance(result, workers.Failure) else result.outcome)


def _outcome(days: list[Any], results: list[Any]) -> Outcome:
    from hft.days import joined

    parts = [_part(result) for result in results]
    if days != [None]:
        return joined(days, parts)
    if parts[0] is None:
        raise KeyboardInterrupt
    if isinstance(parts[0], HftError):
        raise parts[0]
    return parts[0]


def _part(result: Done | workers.Failure | None) -> Outcome | HftError | None:
    if isinstance(result, workers.Failure):
        assert isinstance(result.error, HftError)
        return result.error
    return None if result is None else result.whole()


@dataclasses.dataclass(frozen=True, slots=True)
class Done:
    """What a worker sends back: an outcome without its strategy, and what that saved."""

    outcome: Outcome | HftError
    state: dict[str, Any] | None
    state_error: str

    def whole(self) -> Outcome | HftError:
        """The outcome with the saved state in it."""
        if isinstance(self.outcome, HftError):
            return self.outcome
        return dataclasses.replace(self.outcome, state=self._saved)

    def _saved(self) -> dict[str, Any] | None:
        if self.state_error:
            raise StrategyError(self.state_error)
        return self.state


def work(task: Task, link: workers.Link) -> Done:
    """Do a task, in a worker."""
    from hft import engine
    from hft.days import run_day

    plan = _plan(task)
    if task.day is not None:
        outcome = run_day(plan, task.day, link.tick, link.stopped)
    else:
        outcome = engine.replay_rows(plan, link.tick, link.stopped)
    if isinstance(outcome, HftError):
        return Done(outcome, None, "")
    state, why = None, ""
    if outcome.run.status != "failed":
        try:
            state = outcome.saved()
        except StrategyError as error:
            why = str(error)
    return Done(dataclasses.replace(outcome, strategy=None), state, why)


_plans: dict[bytes, Plan] = {}


def _plan(task: Task) -> Plan:
    """The task's plan; of days of one plan only the first builds it."""
    from hft.feeds import open_feeds
    from hft.loader import load_strategy
    from hft.plan import assemble

    key = msgspec.json.encode([str(task.file), task.strategy, repr(task.recipe)])
    if key not in _plans:
        _plans.clear()
        cls = load_strategy(task.file, task.strategy)
        home, feeds = Path(task.recipe.strategy), open_feeds(task.recipe)
        _plans[key] = assemble(cls, task.file, task.recipe, home, feeds)
    return _plans[key]

"""`hft.backtest`: builds the core's replay of a plan and runs a strategy through it."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from hft.analysis.mids import with_mids
from hft.analysis.records import FILL_ROW, ORDER_ROW, REUSE_SECOND, SAMPLE_ROW
from hft.analysis.run_data import InstrumentFacts, RunData
from hft.core_terms import (
    core_impact,
    core_instruments,
    engine_config,
    server_config,
    venue_config,
    venue_of,
)
from hft.durations import parse_ns
from hft.environment import environment
from hft.errors import ConfigError, ModelError, StrategyError
from hft.execution.depth import depth_notes
from hft.execution.latency import core_legs, delayed
from hft.feeds import Feed
from hft.plan import Plan, instance_of, needs_of, prepare
from hft.sources import add_sources
from hft.swaps import add_swaps, notes_of
from hft.types import InstrumentSpec

if TYPE_CHECKING:
    from hft.analysis.report import Report
    from hft.strategy import Strategy

Progress = Callable[[str], AbstractContextManager[Callable[[int, float], None]]]
"""Given what runs, a context whose value is told (rows so far, share done): hft.data.progress."""

Kept = Callable[[NDArray[np.int64], NDArray[np.float64]], None]
"""Told features rows as they are made: (n, 3) ts, instrument and model, and their values, flat."""

MAIN, AVERSE = "replay", "risk-averse queue"
LATENCY_SWEEP = (0.0, 0.5, 2.0, 4.0)  # the run itself is x1


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """What a run left: its data for the report, its journal, and the strategy object."""

    run: RunData
    journal: NDArray[np.uint8]
    strategy: Any
    """The Strategy object; of several days the last one's. None: it lived in another process."""
    rows: tuple[int, ...] = ()
    """Market rows by instrument."""
    state: Callable[[], dict[str, Any] | None] | None = None
    """What `on_save` gave, where the strategy is not at hand."""

    def saved(self) -> dict[str, Any] | None:
        """The strategy's state.

        Raises:
            StrategyError: `on_save` failed.
        """
        if self.state is not None:
            return self.state()
        try:
            state: dict[str, Any] | None = self.strategy.on_save()
            msgspec.json.encode(state)
        except Exception as error:
            raise StrategyError(f"on_save: {type(error).__name__}: {error}") from error
        return state


def backtest(
    strategy: str | Path | type[Strategy],
    data: str | Path | Mapping[str, NDArray[Any]] | None = None,
    *,
    recipe: str | Path | Mapping[str, Any] | None = None,
    specs: list[InstrumentSpec] | None = None,
    settings: Mapping[str, Any] | None = None,
    seed: int | None = None,
    placebo: bool = False,
    sweep: bool = False,
    progress: Progress | None = None,
    jobs: int = 1,
) -> Report:
    """Runs a strategy over recorded or synthetic rows.

    Args:
        strategy: a file (`x.py` or `x.py:Class`) or a Strategy class.
        data: a store, a file, `synth`, or EVENT arrays by `SYMBOL.VENUE` (then `specs` too).
        recipe: a TOML file or its tables; by default the one beside the strategy file.
        specs: facts of the instruments when `data` are arrays.
        settings: recipe keys and strategy parameters: `{"latency.entry": "2ms", "lots": 3}`.
        seed: replaces the recipe's.
        placebo: also run with the model's outputs taken from other rows.
        sweep: also run with latency times 0, 1/2, 2 and 4, and the placebo if there is a model.
        progress: told how far it is.
        jobs: processes for variants, and for days where they are apart; the strategy must be a
            file then, and the data a store, a file or `synth`.

    Returns:
        The report, with polars frames of orders, fills and equity.

    Raises:
        ConfigError, StrategyError, ModelError, DataError: what was given cannot run.
    """
    from hft.analysis.report import Report

    plan = prepare(strategy, data, recipe=recipe, specs=specs, settings=settings, seed=seed)
    done = run_with_variants(plan, placebo=placebo, sweep=sweep, progress=progress, jobs=jobs)
    return Report(done.run)


def run_with_variants(
    plan: Plan,
    *,
    placebo: bool = False,
    sweep: bool = False,
    progress: Progress | None = None,
    jobs: int = 1,
) -> Outcome:
    """The run itself, the risk-averse one beside it, and the variants asked for.

    With `jobs` above 1 they run in processes of their own, and so do days that are apart; the
    result is the same.
    """
    from hft.parallel import run_plans

    if not isinstance(jobs, int) or isinstance(jobs, bool) or jobs < 1:
        raise ConfigError(f"jobs is {jobs!r}, want a whole number from 1")
    plans = {MAIN: plan} | _variants(plan, placebo=placebo, sweep=sweep)
    outcomes = run_plans(plans, jobs, progress) if jobs > 1 else _in_turn(plans, progress)
    outcome = outcomes.pop(MAIN)
    if outcome.run.status != "complete":
        return outcome
    runs = {
        name: other.run for name, other in outcomes.items() if other.run.status != "interrupted"
    }
    run = dataclasses.replace(
        outcome.run,
        bracket=runs.pop(AVERSE, None),
        variants=[(n, dataclasses.replace(r, bracket=None, variants=[])) for n, r in runs.items()],
    )
    cut = {name for name, other in outcomes.items() if other.run.status == "interrupted"}
    unmade = [name for name in plans if name != MAIN and (name in cut or name not in outcomes)]
    if unmade:
        why = f"stopped before {unmade[0]!r}, which runs beside it, was done"
        run = dataclasses.replace(run, status="interrupted", error=why)
    return dataclasses.replace(outcome, run=run)


def _variants(plan: Plan, *, placebo: bool, sweep: bool) -> dict[str, Plan]:
    plans = {}
    plan = _with(plan, engine=dict(shortfall=False))  # of the run itself alone
    if plan.recipe.engine.bracket and _uses_queue_estimate(plan):
        plans[AVERSE] = _with(plan, venue=dict(queue="risk_averse"))
    if placebo or (sweep and any(s.bundle for s in plan.sources)):
        plans["placebo"] = _with(plan, engine=dict(placebo=True))
    for factor in LATENCY_SWEEP if sweep else ():
        scale = plan.recipe.latency.scale * factor
        plans[f"latency x{factor:g}"] = _with(plan, latency=dict(scale=scale))
    return plans


def _in_turn(plans: dict[str, Plan], progress: Progress | None) -> dict[str, Outcome]:
    outcomes: dict[str, Outcome] = {}
    for name, plan in plans.items():
        outcomes[name] = run_once(plan, progress, name)
        if outcomes[name].run.status == "interrupted" or outcomes[MAIN].run.status != "complete":
            break
    return outcomes


def _uses_queue_estimate(plan: Plan) -> bool:
    estimated = {f.spec.venue for f in plan.feeds if "L3" not in f.gives}
    return any(venue_of(plan.recipe, name).queue != "risk_averse" for name in estimated)


def _with(plan: Plan, **changes: dict[str, Any]) -> Plan:
    recipe = plan.recipe
    for section, values in changes.items():
        changed = msgspec.structs.replace(getattr(recipe, section), **values)
        recipe = msgspec.structs.replace(recipe, **{section: changed})
        if section == "venue":
            venues = {n: msgspec.structs.replace(v, **values) for n, v in recipe.venues.items()}
            recipe = msgspec.structs.replace(recipe, venues=venues)
    return dataclasses.replace(plan, recipe=recipe)


def run_once(plan: Plan, progress: Progress | None = None, label: str = MAIN) -> Outcome:
    """One pass over the rows, or over each day by itself if that is the recipe's overnight policy.

    A handler that raises ends the run as failed; Ctrl-C as interrupted.

    Raises:
        HftError: the data or the core refuse; a failing handler does not raise.
    """
    from hft.days import run_apart

    with progress(label) if progress else nullcontext() as tick:
        if plan.recipe.engine.overnight == "flatten":
            return run_apart(plan, tick)
        return replay_rows(plan, tick)


def replay_rows(
    plan: Plan,
    tick: Callable[[int, float], None] | None = None,
    stopped: Callable[[], bool] | None = None,
    ends: list[int | None] | None = None,
    kept: Kept | None = None,
) -> Outcome:
    """One pass over the rows of a plan's feeds.

    Args:
        plan: what to run.
        tick: told (rows so far, share done).
        stopped: asked now and then; true ends the run as interrupted.
        ends: by instrument, when its trading is wound down [ns]; None: never.
        kept: told every features row.
    """
    replay = _build(plan)
    opened = add_sources(replay, plan)
    add_swaps(replay, plan, opened)
    if kept is not None:
        replay.keep_rows()
    for number, ts in enumerate(ends or ()):
        if ts is not None:
            replay.wind_down(number, ts)
    strategy = new_strategy(plan)
    started, began = datetime.now(UTC), time.perf_counter()
    status, error = "complete", ""
    try:
        replay.run(strategy, _poll(plan.feeds, tick, stopped, kept and _taking(replay, kept)))
    except KeyboardInterrupt:
        status = "interrupted"
    except (Exception, SystemExit) as e:
        if not (replay.handler_failed or isinstance(e, ModelError)):
            raise
        status, error = "failed", handler_error(e)
    finally:
        opened.close()
    wall_s = time.perf_counter() - began
    if kept is not None:
        kept(*replay.take_rows())
    results = replay.results()
    if results["interrupted"]:
        status = "interrupted"
    run = run_data(plan, results, kind="backtest", status=status, error=error)
    run = dataclasses.replace(run, started_utc=started.isoformat(timespec="seconds"), wall_s=wall_s)
    if plan.recipe.engine.shortfall:
        run = with_mids(run, lambda instrument: plan.feeds[instrument].chunks())
    return Outcome(run, results["journal"], strategy, tuple(results["rows_by_instrument"]))


def new_strategy(plan: Plan) -> Strategy:
    """A fresh strategy object with its parameters and seed."""
    strategy = instance_of(plan.strategy)
    strategy.params = plan.params
    strategy.seed = plan.recipe.seed
    if plan.recipe.state:
        state = _saved_state(Path(plan.recipe.state))
        try:
            strategy.on_load(state)
        except Exception as error:
            raise StrategyError(f"on_load: {type(error).__name__}: {error}") from error
    return strategy


def _saved_state(path: Path) -> dict[str, Any]:
    try:
        state = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except (OSError, msgspec.MsgspecError) as error:
        raise ConfigError(f"state: cannot read {path}: {error}") from error
    return state


def handler_error(error: BaseException) -> str:
    """What a failing handler or model said, and where."""
    import traceback

    if isinstance(error, ModelError):
        return f"ModelError: {error}"
    lines = traceback.extract_tb(error.__traceback__)
    where = f" at {lines[-1].filename}:{lines[-1].lineno} in {lines[-1].name}" if lines else ""
    return f"StrategyError: {type(error).__name__}: {error}{where}"


def _poll(
    feeds: list[Feed],
    tick: Callable[[int, float], None] | None,
    stopped: Callable[[], bool] | None,
    take: Callable[[], None] | None,
) -> Callable[[int, int], bool] | None:
    """What the core calls now and then with (rows, now); share done by market time."""
    if tick is None and stopped is None and take is None:
        return None
    start = min(f.ts_range[0] for f in feeds)
    length = max(1, max(f.ts_range[1] for f in feeds) - start)

    def poll(rows: int, now: int) -> bool:
        if take is not None:
            take()
        if tick is not None:
            tick(rows, min(1.0, max(0.0, (now - start) / length)))
        return stopped is None or not stopped()

    return poll


def _taking(replay: Any, kept: Kept) -> Callable[[], None]:
    return lambda: kept(*replay.take_rows())


def _build(plan: Plan) -> Any:
    from hft import _core

    recipe = plan.recipe
    venues = sorted({f.spec.venue for f in plan.feeds})
    instruments = core_instruments(plan, venues)
    latency = recipe.latency
    ids = recipe.engine.overnight == "carry"  # days apart each count their orders from 1
    legs = core_legs(latency, recipe.seed, plan.feeds, ids=ids)
    engine = engine_config(recipe)
    engine.sees_own = recipe.engine.sees_own  # not live: there the feed shows it
    replay = _core.Replay(
        instruments,
        engine,
        [venue_config(recipe, name, legs) for name in venues],
        legs.compute,
        legs.risk,
        server_config(recipe, legs),
        parse_ns(recipe.engine.sample),
        np.iinfo(np.int64).max,
    )
    by_orders = "L3" in needs_of(plan.strategy, plan.sources)
    for number, feed in enumerate(plan.feeds):
        rows = _words(delayed(feed.chunks(), legs.feed, latency.scale))
        one_book = "L3" in feed.gives and not by_orders and not feed.is_split
        replay.add_stream(number, rows, one_book_of_orders=one_book)
        impact = venue_of(recipe, feed.spec.venue).impact
        if impact.weights or impact.permanent:
            replay.set_impact(number, *core_impact(impact, feed))
    if recipe.engine.profile:
        replay.profile()
    return replay


def _words(chunks: Iterator[NDArray[Any]]) -> Iterator[NDArray[np.int64]]:
    for rows in chunks:
        if len(rows):
            yield np.ascontiguousarray(rows).view(np.int64).reshape(-1, 8)


def run_data(
    plan: Plan, results: Mapping[str, Any], *, kind: str, status: str, error: str
) -> RunData:
    """The core's results as the report wants them."""
    facts = [
        InstrumentFacts(
            f.spec,
            venue_of(plan.recipe, f.spec.venue).maker_fee,
            venue_of(plan.recipe, f.spec.venue).taker_fee,
        )
        for f in plan.feeds
    ]
    return RunData(
        kind=kind,  # type: ignore[arg-type]
        name=plan.recipe.name,
        strategy=plan.recipe.strategy,
        instruments=facts,
        status=status,  # type: ignore[arg-type]
        error=error,
        environment=environment(plan),
        recipe=msgspec.to_builtins(plan.recipe),
        ts_start=results["ts_start"],
        ts_end=results["ts_end"],
        rows=results["rows"],
        stages_s=results.get("stages_s", {}),
        orders=results["orders"].view(ORDER_ROW),
        fills=results["fills"].view(FILL_ROW),
        samples=results["samples"].view(SAMPLE_ROW),
        sample_ns=parse_ns(plan.recipe.engine.sample),
        tags=list(results["tags"]),
        counters=dict(results["counters"]),
        feed_latency_ns=results["feed_latency_ns"].view(np.int64),
        model_wait_ns=np.asarray(results.get("model_wait_ns", ())).view(np.int64),
        model_service_ns=np.asarray(results.get("model_service_ns", ())).view(np.int64),
        models=[source.name for source in plan.sources],
        reuse=results["reuse"].view(REUSE_SECOND),
        traded_lots=list(results.get("traded_lots", ())),
        overlay_ticks=list(results.get("overlay_ticks", ())),
        notes=[*(depth_notes(plan) if kind == "backtest" else ()), *notes_of(plan, results)],
    )

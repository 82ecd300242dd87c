"""A live session: the strategy on the wall clock against a venue, journaled as it goes."""

from __future__ import annotations

import dataclasses
import gc
import logging
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hft import engine, run_folder
from hft.analysis.mids import with_mids
from hft.config import PROFILE, Leg, Series
from hft.core_terms import core_instruments, engine_config
from hft.durations import parse_ns
from hft.engine import Outcome
from hft.environment import environment
from hft.errors import ConfigError, CoreError, DataError
from hft.live.swap_watch import SwapWatch
from hft.plan import Plan
from hft.run_folder import MARKET_FILE
from hft.sources import add_sources

log = logging.getLogger(__name__)

ROWS_AT_ONCE = 1 << 18


def run_sim(plan: Plan, folder: Path, duration_ns: int, *, nap_ns: int = 0) -> Outcome:
    """Runs against the simulated market of `data.synth` until the time is over or Ctrl-C.

    Writes journal and market rows into `folder` as it goes: they survive the death of the process.
    A handler that raises cancels everything and ends the session as failed; Ctrl-C or SIGTERM
    cancels everything, calls `on_stop` and ends it as interrupted.

    Args:
        plan: what to run.
        folder: an empty run folder.
        duration_ns: how long.
        nap_ns: longest nap when there is nothing to do; 0: spin, for a core of one's own.

    Raises:
        ConfigError: the recipe asks for what the wall clock cannot give, or `folder` cannot be
            written to.
    """
    from hft import _core
    from hft.data.synth import core_market

    _refuse_replay_only(plan)
    run_folder.write_inputs(folder, plan, environment(plan))
    synth = plan.recipe.data.synth
    latency = plan.recipe.latency
    live = _core.LiveSim(
        core_instruments(plan, [synth.venue]),
        engine_config(plan.recipe),
        core_market(synth, time.time_ns()),
        _constant(latency.entry, "latency.entry"),
        _constant(latency.response, "latency.response"),
        synth.feed_latency_ns
        if latency.feed == "data"
        else _constant(latency.feed, "latency.feed"),
        parse_ns(plan.recipe.engine.sample),
        str(folder / "journal.bin"),
        str(folder / MARKET_FILE),
        nap_ns,
        max_batch=latency.server.max_batch,
        hold_ns=parse_ns(latency.server.hold),
    )
    opened = add_sources(live, plan, is_live=True)
    strategy = engine.new_strategy(plan)
    watch = SwapWatch(live, plan, folder, opened)
    started, began = datetime.now(UTC), time.perf_counter()
    status, error = "complete", ""
    try:
        with _quiet_memory(), _stopped_by_signals(live):
            live.run(strategy, duration_ns, watch)
    except CoreError:
        raise
    except DataError as e:  # the journal cannot grow
        status, error = "failed", str(e)
    except KeyboardInterrupt:  # the third signal
        status, error = "interrupted", "a handler that did not return was cut short"
    except (Exception, SystemExit) as e:
        status, error = "failed", engine.handler_error(e)
    finally:
        watch.close()
        opened.close()
    results = live.results()
    if results["interrupted"] and status == "complete":
        status = "interrupted"
    if lost := results["counters"]["orders_unanswered"]:
        log.error("%d orders were not answered before the end: they may still be alive", lost)
    run = engine.run_data(plan, results, kind="live", status=status, error=error)
    run = dataclasses.replace(
        run,
        started_utc=started.isoformat(timespec="seconds"),
        wall_s=time.perf_counter() - began,
        notes=[*run.notes, *watch.notes],
    )
    if plan.recipe.engine.shortfall and status != "failed":
        run = with_mids(run, lambda instrument: _rows_of(folder, instrument))
    return Outcome(run, np.zeros(0, np.uint8), strategy)


def _rows_of(folder: Path, instrument: int) -> Iterator[NDArray[Any]]:
    """What the session heard of one instrument."""
    rows = run_folder.read_market(folder)
    for at in range(0, len(rows), ROWS_AT_ONCE):
        part = rows[at : at + ROWS_AT_ONCE]
        yield part[part["instrument"] == instrument]


@contextmanager
def _stopped_by_signals(live: Any) -> Iterator[None]:
    """SIGINT and SIGTERM ask the session to stop instead of raising inside a handler.

    A handler cut in its middle could not be replayed. The third signal raises all the same: a
    handler that never returns leaves no other way.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # Python lets only the main thread set handlers
        return
    asked = 0

    def ask(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        asked += 1
        live.ask_to_stop()
        if asked > 2:
            raise KeyboardInterrupt

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _refuse_replay_only(plan: Plan) -> None:
    if plan.recipe.engine.placebo:
        raise ConfigError("engine.placebo: a placebo is for replay, not for a live session")
    if plan.recipe.swaps:
        raise ConfigError("swaps: a schedule is for replay; a live session is told by `hft swap`")
    if plan.recipe.engine.overnight != "carry":
        raise ConfigError(
            "engine.overnight = 'flatten' cuts recorded days apart; a live session goes on until "
            "it is stopped (--set engine.overnight=carry)"
        )
    if plan.recipe.data.path != "synth":
        raise ConfigError(
            f"data.path is {plan.recipe.data.path!r}: "
            "the sim venue makes its market from data.synth (--set data.path=synth)"
        )
    synth = plan.recipe.data.synth
    if [f.spec.name for f in plan.feeds] != [spec.name for spec in synth.specs()]:
        raise ConfigError(
            f"data.symbols is {list(plan.recipe.data.symbols)}: a session on the sim venue trades "
            "all of data.synth.symbols, in their order; name those you want there"
        )
    if synth.order_by_order:
        raise ConfigError("data.synth.order_by_order: the sim venue's feed is by price level")


def _constant(leg: Leg | None, key: str) -> int:
    if leg is None or leg == PROFILE or isinstance(leg, Series):
        drawn = ", none drawn from a latency profile" if leg == PROFILE else ""
        raise ConfigError(f"{key}: the sim venue's wire takes a constant, such as '200us'{drawn}")
    return parse_ns(leg)


@contextmanager
def _quiet_memory() -> Iterator[None]:
    """No garbage collection during the session: a full pass stops the busy thread for ms."""
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()


def describe(plan: Plan) -> dict[str, Any]:
    """What a live session is about to do, for the log."""
    synth = plan.recipe.data.synth
    return {
        "venue": synth.venue,
        "symbols": ", ".join(s.name for s in synth.specs()),
        "messages_per_s": synth.messages_per_s,
        "entry": plan.recipe.latency.entry,
        "response": plan.recipe.latency.response,
    }

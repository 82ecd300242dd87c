"""A live session: the strategy on the wall clock against a venue, journaled as it goes."""

from __future__ import annotations

import dataclasses
import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from hft import engine, run_folder
from hft.config import Leg, Series
from hft.durations import parse_ns
from hft.engine import Outcome, Plan
from hft.environment import environment
from hft.errors import ConfigError, CoreError

MARKET_FILE = "market.bin"
"""EVENT rows as the engine saw them: on our clock, without our own lots."""


def run_sim(plan: Plan, folder: Path, duration_ns: int) -> Outcome:
    """Runs against the simulated market of `data.synth` until the time is over or Ctrl-C.

    Writes journal and market rows into `folder` as it goes: they survive the death of the process.
    A handler that raises cancels everything and ends the session as failed.

    Raises:
        ConfigError: the recipe asks for what the wall clock cannot give.
    """
    from hft import _core
    from hft.data.synth import core_market

    _refuse_replay_only(plan)
    run_folder.write_inputs(folder, plan, environment(plan))
    synth = plan.recipe.data.synth
    latency = plan.recipe.latency
    live = _core.LiveSim(
        engine.core_instruments(plan, [synth.venue]),
        engine.engine_config(plan.recipe),
        core_market(synth, time.time_ns()),
        _constant(latency.entry, "latency.entry"),
        _constant(latency.response, "latency.response"),
        synth.feed_latency_ns
        if latency.feed == "data"
        else _constant(latency.feed, "latency.feed"),
        parse_ns(plan.recipe.engine.sample),
        str(folder / "journal.bin"),
        str(folder / MARKET_FILE),
    )
    engine.add_sources(live, plan)
    strategy = engine.new_strategy(plan)
    started, began = datetime.now(UTC), time.perf_counter()
    status, error = "complete", ""
    try:
        with _quiet_memory():
            live.run(strategy, duration_ns)
    except CoreError:
        raise
    except Exception as e:
        status, error = "failed", engine.handler_error(e)
    results = live.results()
    if results["interrupted"]:
        status = "interrupted"
    run = engine.run_data(plan, results, kind="live", status=status, error=error)
    run = dataclasses.replace(
        run,
        started_utc=started.isoformat(timespec="seconds"),
        wall_s=time.perf_counter() - began,
    )
    return Outcome(run, np.zeros(0, np.uint8), strategy)


def _refuse_replay_only(plan: Plan) -> None:
    if plan.recipe.engine.placebo:
        raise ConfigError("engine.placebo: a placebo is for replay, not for a live session")
    if plan.recipe.data.path != "synth":
        raise ConfigError(
            f"data.path is {plan.recipe.data.path!r}: "
            "the sim venue makes its market from data.synth"
        )


def _constant(leg: Leg, key: str) -> int:
    if isinstance(leg, Series):
        raise ConfigError(f"{key}: the sim venue's wire takes a constant, such as '200us'")
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

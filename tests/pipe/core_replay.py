"""A plan through the core with legs given as they are, whatever the recipe would make of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from hft import _core
from hft.analysis.records import FILL_ROW, ORDER_ROW
from hft.core_terms import ORDERINGS, SERVER_MODES, core_instruments, engine_config
from hft.data.synth import SynthConfig, symbol_chunks
from hft.engine import new_strategy
from hft.features import Features, OnTouch, imbalance, spread
from hft.inference.bundle import load_bundle, save_bundle
from hft.inference.card import Card, LayerEntry, Scaler, Training, entries_of
from hft.journal import JOURNAL
from hft.plan import Plan, SourcePlan, prepare
from hft.sources import add_sources
from hft.types import InstrumentSpec


def market(*names: str, **more: Any) -> tuple[dict[str, np.ndarray], list[InstrumentSpec]]:
    """Synthetic rows, their feed delay included, under these names."""
    synth: dict[str, Any] = {"duration_s": 20.0, "messages_per_s": 300.0, **more}
    config = SynthConfig(symbols=tuple(f"S{k}" for k in range(len(names))), **synth)
    data, specs = {}, []
    for number, (name, spec) in enumerate(zip(names, config.specs(), strict=True)):
        symbol, venue = name.split(".")
        data[name] = np.concatenate(list(symbol_chunks(config, number, rows=100_000)))
        specs.append(InstrumentSpec(symbol=symbol, venue=venue, tick=spec.tick, lot=spec.lot))
    return data, specs


def plan_of(
    strategy: type[Any], *names: str, folder: Path | None = None, models: int = 1, **more: Any
) -> Plan:
    """A plan on synthetic rows; with a folder, under models that say 0.5 of every row."""
    if folder is not None:
        more = {"messages_per_s": 1500.0, **more}
    data, specs = market(*(names or ("A.SIM",)), **more)
    plan = prepare(strategy, data, specs=specs, recipe={"engine": {"bracket": False}})
    if folder is not None:
        plan.sources[:] = [_source(folder / f"m{k}.bundle", f"m{k}") for k in range(models)]
    return plan


def _source(folder: Path, name: str) -> SourcePlan:
    entries, trigger = entries_of(Features(spread(), imbalance(5), trigger=OnTouch()))
    card = Card(
        format=2,
        name=name,
        outputs=("up",),
        horizon_ns=500_000_000,
        latency_ns=2_000_000,
        warm_up_rows=10,
        trigger=trigger,
        features=entries,
        layers=(LayerEntry(kind="dense", units=1),),
        scaler=Scaler(mean=(0.0, 0.0), scale=(1.0, 1.0), clip=5.0),
        training=Training(data="none", data_sha256="", start_ts=0, end_ts=1, rows=0, seed=3),
    )
    layer = {"kernel": np.zeros((2, 1), np.float32), "bias": np.array([0.5], np.float32)}
    save_bundle(folder, card, [layer])
    bundle = load_bundle(folder)
    return SourcePlan(name, bundle.features, bundle)


def leg(given: Any) -> Any:
    return _core.Latency.constant(given) if isinstance(given, int) else given


def server_of(service: Any = 0, mode: str = "conflate", **keys: int) -> Any:
    server = _core.ServerConfig()
    server.mode = SERVER_MODES.index(mode)
    server.service = leg(service)
    for name, value in keys.items():
        assert hasattr(server, name)
        setattr(server, name, value)
    return server


class Run:
    """What a replay left."""

    def __init__(self, results: dict[str, Any]) -> None:
        self.counters = results["counters"]
        self.orders = results["orders"].view(ORDER_ROW)
        self.fills = results["fills"].view(FILL_ROW)
        self.bytes = results["journal"].tobytes()
        self.journal = results["journal"].view(JOURNAL)
        self.waits = results["model_wait_ns"].view(np.int64)
        self.services = results["model_service_ns"].view(np.int64)


def replay(
    plan: Plan,
    *,
    entry: Any = 0,
    response: Any = 0,
    entry_cancel: Any = None,
    entry_replace: Any = None,
    ordering: str = "fifo",
    compute: Any = 0,
    risk: Any = 0,
    server: Any = None,
    rows: int | None = None,
    sample_ns: int = 10**9,
) -> Run:
    """Runs it, in chunks of `rows`; legs are ns or `_core.Latency`."""
    venues = sorted({f.spec.venue for f in plan.feeds})
    configs = []
    for _ in venues:
        config = _core.VenueConfig()
        classes = [None if each is None else leg(each) for each in (entry_cancel, entry_replace)]
        config.set_latency(leg(entry), leg(response), *classes, ORDERINGS.index(ordering))
        configs.append(config)
    core = _core.Replay(
        core_instruments(plan, venues),
        engine_config(plan.recipe),
        configs,
        leg(compute),
        leg(risk),
        server or server_of(),
        sample_ns,
        np.iinfo(np.int64).max,
    )
    for number, feed in enumerate(plan.feeds):
        core.add_stream(number, _chunks(feed, rows))
    add_sources(core, plan)
    core.run(new_strategy(plan))
    return Run(core.results())


def _chunks(feed: Any, rows: int | None) -> Any:
    for whole in feed.chunks():
        for k in range(0, len(whole), rows or len(whole)):
            yield (
                np.ascontiguousarray(whole[k : k + (rows or len(whole))])
                .view(np.int64)
                .reshape(-1, 8)
            )

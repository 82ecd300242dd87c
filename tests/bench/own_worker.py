"""Our side of `peer.py`: the same feeds and rules through `hft`, in the peer's mode of filling."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import peer_strategies as strategies
from peer_strategies import INSTRUMENTS, SPEC
from turns import serve

from hft.engine import run_once
from hft.plan import Plan, prepare
from hft.types import InstrumentSpec

DATA = Path(sys.argv[1])
CASES: dict[str, tuple[str, type, str]] = {
    "replay": ("memory", strategies.Replay, "on_call"),
    "replay_python": ("memory", strategies.PythonSteps, "on_call"),
    "real": ("real", strategies.RealReplay, "on_call"),
    "mm": ("memory", strategies.Mm, "on_call"),
    "mm_handles": ("memory", strategies.MmHandles, "on_call"),
    "mm_if_changed": ("memory", strategies.MmIfChanged, "on_call"),
    "grid": ("memory", strategies.Grid, "overlap"),
    "grid_int": ("memory", strategies.GridInt, "overlap"),
    "l3": ("orders", strategies.Replay, "on_call"),
    "l3_grid": ("orders", strategies.GridAtTouch, "overlap"),
    "multi": ("many", strategies.Replay, "on_call"),
    "packets_read": ("memory", strategies.ReadTouch, "on_call"),
    "packets_quote": ("memory", strategies.QuotePackets, "on_call"),
    "disk_raw": ("raw", strategies.Replay, "on_call"),
    "disk_parquet": ("parquet", strategies.Replay, "on_call"),
}

IN_MEMORY = {"memory": "l2", "orders": "l3", "real": "real"}


def recipe(moves: str) -> dict[str, Any]:
    """The peer's way: whatever touches our place fills the whole order."""
    return {
        "venue": {
            "queue": "power3",
            "queue_n": 3.0,
            "partial_fills": False,
            "share_prints": False,
            "through": "full",
            "cross": "fill",
            "native_replace": False,
            "maker_fee": -0.00005,
            "taker_fee": 0.0007,
        },
        "latency": {"entry": "10ms", "response": "10ms", "compute": 0, "inference": 0},
        "engine": {"bracket": False, "shortfall": False, "moves": moves},
    }


@cache
def memory(name: str) -> np.ndarray:
    return np.load(DATA / name)


def source(kind: str) -> tuple[str | Mapping[str, np.ndarray], list[InstrumentSpec]]:
    """What to replay, and facts for rows in memory."""
    if kind == "many":
        specs = [
            InstrumentSpec(symbol=f"S{i:03}", venue="X", tick=SPEC.tick, lot=SPEC.lot)
            for i in range(INSTRUMENTS)
        ]
        return {spec.name: memory("part.events.npy") for spec in specs}, specs
    if kind in IN_MEMORY:
        return {SPEC.name: memory(f"{IN_MEMORY[kind]}.events.npy")}, [SPEC]
    return str(DATA / kind), []


@cache
def plan_in_memory(case: str) -> Plan:
    kind, strategy, moves = CASES[case]
    data, specs = source(kind)
    return prepare(strategy, data, recipe=recipe(moves), specs=specs)


def run(case: str) -> dict[str, Any]:
    """One timed run: the replay, and for files also their opening."""
    kind, strategy, moves = CASES[case]
    opening = 0.0
    if kind in ("raw", "parquet"):
        began = time.perf_counter()
        plan = prepare(strategy, source(kind)[0], recipe=recipe(moves))
        opening = time.perf_counter() - began
    else:
        plan = plan_in_memory(case)
    gc.collect()
    result = run_once(plan).run
    if result.status != "complete":
        raise SystemExit(result.error)
    last, fills = result.samples[-len(plan.feeds) :], result.fills
    paid = int((fills["side"].astype(np.int64) * fills["lots"] * fills["price"]).sum())
    return {
        "wall_s": result.wall_s + opening,
        "count": result.counters["packets"],
        "rows": result.rows,
        "work": {
            "orders": len(result.orders),
            "fills": len(fills),
            "cash": -paid * SPEC.tick * SPEC.lot,
            "fee": int(fills["fee"].sum()) * 1e-9,
            "bid": int(last["bid"].sum()),
            "ask": int(last["ask"].sum()),
        },
    }


if __name__ == "__main__":
    serve(run)

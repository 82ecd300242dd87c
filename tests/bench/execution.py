"""What the execution models cost: `make bench-execution`.

The `grid` of `peer.py`, on its feeds of levels and of orders, in our own way of filling (own orders
share a print, fills are partial), with every execution model off and with all of them on, in turn,
in one process. Ten resting orders a side never take, so a market order a second is added to both:
it feeds the footprint, the overlay and the participation windows. Prints a table and writes
build/bench/execution.json.

    off  constant latencies; what we took heals in a second, as without a recipe
    on   block bootstrap of a latency profile in message-rate buckets, a risk time, cancels drawn
         (levels), shadow consumption half of which never heals, fade (levels), an overlay of four
         exponentials with a permanent part, participation flag; on levels a cap (on the feed of
         orders we are most of the volume: it would bind, and another run be timed)
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from peer import ROOT, machine, prepare_common, prepare_orders, what_is_missing
from peer_strategies import LOTS, SPEC, Grid, GridAtTouch

from hft import BUY, SELL
from hft.engine import run_once
from hft.plan import Plan, prepare

AIM = 0.30
COMMON: dict[str, Any] = {
    "venue": {"native_replace": False, "maker_fee": -0.00005, "taker_fee": 0.0007},
    "latency": {"compute": 0, "inference": 0, "entry": "5ms", "response": "5ms"},
    "engine": {"bracket": False, "moves": "overlap", "shortfall": False},
}
OFF: dict[str, Any] = {}
ON: dict[str, Any] = {
    "latency": {
        "profile": "same-region",
        "entry": "profile",
        "response": "profile",
        "risk": "1us",
    },
    "venue": {
        "refill_probability": 0.5,
        "impact": {
            "weights": [0.004, 0.003, 0.002, 0.001],
            "half_lives": ["100ms", "1s", "10s", "100s"],
            "permanent": 0.0005,
        },
    },
}
ON_LEVELS: dict[str, Any] = {"venue": {"queue_draws": True, "fade": 0.1, "participation_cap": 0.5}}


class TakingGrid(Grid):
    """The grid, and a market order a second on alternate sides."""

    def on_start(self) -> None:
        super().on_start()
        self.side = BUY
        self.every("1s", self.take)

    def take(self) -> None:
        self.submit(self.side, LOTS)
        self.side = SELL if self.side == BUY else BUY


class TakingGridAtTouch(TakingGrid):
    step = GridAtTouch.step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer-python", default=sys.executable, help="has numba, for the feeds")
    parser.add_argument("--data", type=Path, default=ROOT / "build/bench/data")
    parser.add_argument("--out", type=Path, default=ROOT / "build/bench/execution.json")
    parser.add_argument("--reps", type=int, default=5)
    args = parser.parse_args()
    missing = what_is_missing(args.peer_python)
    if missing:
        print(f"bench-execution skipped: {args.peer_python} {missing}; pip install -e '.[peer]'")
        return
    args.data.mkdir(parents=True, exist_ok=True)
    prepare_common(args.data, args.peer_python)
    prepare_orders(args.data, args.peer_python)
    print(machine(args.peer_python))
    figures = {
        "levels": measure(TakingGrid, args.data / "l2.events.npy", [ON, ON_LEVELS], args.reps),
        "orders": measure(TakingGridAtTouch, args.data / "l3.events.npy", [ON], args.reps),
    }
    show(figures)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(figures, indent=2) + "\n")


def measure(strategy: type, file: Path, on: list[dict[str, Any]], reps: int) -> dict[str, Any]:
    """Off and on in turn, so that both see the same machine."""
    rows = {SPEC.name: np.load(file)}
    plans = {"off": plan_of(strategy, rows, [OFF]), "on": plan_of(strategy, rows, on)}
    walls: dict[str, list[float]] = {"off": [], "on": []}
    whole: dict[str, list[float]] = {"off": [], "on": []}
    figures: dict[str, Any] = {"rows": len(rows[SPEC.name])}
    for _ in range(reps):
        for name, plan in plans.items():
            gc.collect()
            began = time.perf_counter()
            run = run_once(plan).run
            whole[name].append(time.perf_counter() - began)
            if run.status != "complete":
                raise SystemExit(run.error)
            walls[name].append(run.wall_s)
            figures[name] = {"orders": len(run.orders), "fills": len(run.fills)}
    for name, took in walls.items():
        figures[name] |= {
            "median_s": statistics.median(took),
            "fastest_s": min(took),
            "with_preparation_s": statistics.median(whole[name]),
        }
    on_s, off_s = figures["on"], figures["off"]
    figures["cost"] = on_s["median_s"] / off_s["median_s"] - 1
    figures["cost_fastest"] = on_s["fastest_s"] / off_s["fastest_s"] - 1
    figures["aim"] = AIM
    return figures


def plan_of(strategy: type, rows: Mapping[str, np.ndarray], parts: list[dict[str, Any]]) -> Plan:
    recipe: dict[str, Any] = {}
    for part in (COMMON, *parts):
        for section, values in part.items():
            recipe[section] = recipe.get(section, {}) | values
    return prepare(strategy, rows, recipe=recipe, specs=[SPEC])


def show(figures: dict[str, Any]) -> None:
    print(f"{'feed':8s} {'rows':>10s} {'off s':>8s} {'on s':>8s} {'cost':>7s} {'of fastest':>11s}")
    for name, f in figures.items():
        print(
            f"{name:8s} {f['rows']:10,d} {f['off']['median_s']:8.2f} {f['on']['median_s']:8.2f} "
            f"{f['cost']:7.1%} {f['cost_fastest']:11.1%}   "
            f"(aim {AIM:.0%}; orders {f['off']['orders']:,d} / {f['on']['orders']:,d}, "
            f"fills {f['off']['fills']:,d} / {f['on']['fills']:,d}; with preparation "
            f"{f['off']['with_preparation_s']:.2f} / {f['on']['with_preparation_s']:.2f} s)"
        )


if __name__ == "__main__":
    main()

"""What a way to resample latency does to its clusters: `make bench-latency`.

Two hours of one place, made up: log latency is an AR(1) in time (half of it forgotten in 69 ms),
and in bursts everything takes eight times as long. Bursts come with the market: messages and our
orders come many times as often. They are long (2 s on average, every 40 s) or, in a second table,
shorter than the 100 ms over which a message rate is known (90 ms, every 8 s). The first hour is
what was recorded, by order and by inference; the second is replayed. The truth is what the second
hour's own latency was at each order and each inference. Every way sees the same orders and the same
inferences at the same times.

Queue wait: inferences in order of arrival at one server that drops nothing (Lindley's recursion,
service looked up at the arrival). Writes build/bench/latency.json.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hft._core import Latency
from hft.execution.draws import Stream, draw_normal, draw_uniform
from hft.execution.market_rate import MarketRate
from hft.execution.profiles import RATE_WINDOW_NS
from hft.execution.resampling import Trace, ar1, autocovariance, lay_out, mean_block

ROOT = Path(__file__).parents[2]
GRID_NS = 1_000_000
HOUR = 3_600_000  # steps of the grid
PHI = 0.99
BURST_FACTOR = 8.0
SEEDS = 5


@dataclass(frozen=True)
class Leg:
    """A leg's median and spread in calm, and how often it is asked for there, a second."""

    median_ns: float
    s: float
    calm_rate: float


@dataclass(frozen=True)
class Bursts:
    """How long and how often, and how often a leg is asked for in one, a second."""

    mean_ms: int
    every_ms: int
    rate: dict[str, float]


LEGS = {"entry": Leg(2e6, 0.4, 5), "service": Leg(150e3, 0.3, 300)}
BURSTS = {
    "bursts of 2 s": Bursts(2_000, 40_000, {"entry": 50, "service": 1000}),
    "bursts of 90 ms": Bursts(90, 8_000, {"entry": 150, "service": 3000}),
}


@dataclass(frozen=True)
class Hour:
    """One hour: its own latency on the grid, when it was asked for, and the market's rate."""

    latency: dict[str, Latency]
    asked: dict[str, np.ndarray]
    market: MarketRate


def main() -> None:
    args = argparse.ArgumentParser(description=__doc__)
    args.add_argument("--out", type=Path, default=ROOT / "build/bench/latency.json")
    chosen = args.parse_args()
    tables = {name: table(bursts) for name, bursts in BURSTS.items()}
    for name, rows in tables.items():
        show(name, rows)
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    chosen.out.write_text(json.dumps(tables, indent=2))


def table(bursts: Bursts) -> dict[str, dict[str, float]]:
    recorded, replayed = hour(1, bursts), hour(2, bursts)
    truth = figures(replayed, lambda leg, ts: replayed.latency[leg].at(ts))
    rows = {"truth": truth, "probes once a second, a line between": by_probes(replayed)}
    for name, make in WAYS.items():
        rows[name] = mean_of([over(make, recorded, replayed, seed) for seed in range(SEEDS)])
    return rows


def hour(number: int, bursts: Bursts) -> Hour:
    """The made-up place, by the formulas above; hours differ in their draws alone."""
    steps = np.arange(HOUR, dtype=np.uint64)
    starts = draw_uniform(number, 1, steps) < 1 / bursts.every_ms
    lasts = -np.log1p(-draw_uniform(number, 2, steps)) * bursts.mean_ms
    begins = np.flatnonzero(starts)
    edge = np.zeros(HOUR + 1, np.int64)
    np.add.at(edge, begins, 1)
    np.add.at(edge, np.minimum(begins + np.ceil(lasts[begins]).astype(np.int64), HOUR), -1)
    burst = np.cumsum(edge[:-1]) > 0
    grid = np.arange(HOUR) * GRID_NS + number * 2 * HOUR * GRID_NS
    latency, asked = {}, {}
    for stream, (name, leg) in enumerate(LEGS.items(), start=3):
        z = ar1(draw_normal(number, stream, steps), PHI)
        ns = leg.median_ns * np.exp(leg.s * z) * np.where(burst, BURST_FACTOR, 1.0)
        latency[name] = Latency.recorded(grid, np.rint(ns).astype(np.int64))
        rate = np.where(burst, bursts.rate[name], leg.calm_rate) / 1000
        many = np.floor(rate + draw_uniform(number, 10 + stream, steps)).astype(np.int64)
        ts = np.repeat(grid, many)
        ts = ts + (draw_uniform(number, 20 + stream, np.arange(ts.size)) * GRID_NS).astype(int)
        asked[name] = np.unique(ts)
    windows, counts = np.unique(asked["service"] // RATE_WINDOW_NS, return_counts=True)
    return Hour(latency, asked, MarketRate(windows, counts, int(grid[0]), int(grid[-1])))


def figures(replayed: Hour, at: Callable[[str, np.ndarray], np.ndarray]) -> dict[str, float]:
    """Order-weighted latency [ms], its autocorrelation, and the server's wait [ms]."""
    entry = at("entry", replayed.asked["entry"])
    cov = autocovariance(entry, 10)
    ts = replayed.asked["service"]
    wait = waits(ts, at("service", ts))
    return {
        "entry_mean_ms": entry.mean() / 1e6,
        "entry_p99_ms": float(np.quantile(entry, 0.99)) / 1e6,
        "entry_acf_10": float(cov[10] / cov[0]),
        "wait_mean_ms": wait.mean() / 1e6,
        "wait_p99_ms": float(np.quantile(wait, 0.99)) / 1e6,
    }


def waits(ts: np.ndarray, service: np.ndarray) -> np.ndarray:
    """W[k+1] = max(0, W[k] + S[k] - (ts[k+1] - ts[k])), without a loop."""
    ahead = np.concatenate([[0], np.cumsum(service[:-1] - np.diff(ts))])
    return ahead - np.minimum.accumulate(ahead)


def by_probes(replayed: Hour) -> dict[str, float]:
    probes = np.arange(replayed.market.ts_first, replayed.market.ts_last, 1_000_000_000)

    def at(leg: str, ts: np.ndarray) -> np.ndarray:
        return np.interp(ts, probes, replayed.latency[leg].at(probes))

    return figures(replayed, at)


Way = Callable[[Trace, MarketRate, int, int], Latency]


def over(make: Way, recorded: Hour, replayed: Hour, seed: int) -> dict[str, float]:
    legs = {}
    for name, stream in (("entry", Stream.ENTRY), ("service", Stream.SERVICE)):
        ts = recorded.asked[name]
        ns = recorded.latency[name].at(ts)
        trace = Trace(name, ts, {name: ns}, recorded.market.before(ts))
        legs[name] = make(trace, replayed.market, seed, stream)
    return figures(replayed, lambda leg, ts: legs[leg].at(ts))


def iid(trace: Trace, market: MarketRate, seed: int, stream: int) -> Latency:
    return Latency.empirical(trace.legs[trace.name], seed, stream)


def blocks(
    trace: Trace, market: MarketRate, seed: int, stream: int, *, conditioned: bool = False
) -> Latency:
    length = mean_block(trace)
    layout = lay_out(trace, length, market, seed, stream, conditioned=conditioned)
    ns = trace.legs[trace.name][layout.rows]
    return Latency.walk(layout.ts, ns, layout.block_ts, layout.block_at)


def blocks_by_rate(trace: Trace, market: MarketRate, seed: int, stream: int) -> Latency:
    return blocks(trace, market, seed, stream, conditioned=True)


WAYS: dict[str, Way] = {
    "row by row (empirical)": iid,
    "blocks": blocks,
    "blocks of the same message rate": blocks_by_rate,
}


def mean_of(runs: list[dict[str, float]]) -> dict[str, float]:
    return {name: float(np.mean([run[name] for run in runs])) for name in runs[0]}


def show(title: str, rows: dict[str, dict[str, float]]) -> None:
    names = list(rows["truth"])
    print(f"| {title} | " + " | ".join(name.replace("_", " ") for name in names) + " |")
    print("| --- |" + " --- |" * len(names))
    for way, found in rows.items():
        print(f"| {way} | " + " | ".join(f"{found[name]:.2f}" for name in names) + " |")


if __name__ == "__main__":
    main()

"""Where a run's time goes: `make bench`. Prints a table and writes build/bench/own.json.

`lstm_mm` with its model at every trigger on the bundled market, split by stage: the generator (what
decoding is for recorded data), venue, book, features, inference, strategy, and the driver's rest.
The split costs clock reads, so rows/s come from a run without it.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

from turns import cpu

from hft import engine
from hft.plan import prepare

ROOT = Path(__file__).parents[2]


def main() -> None:
    args = argparse.ArgumentParser(description=__doc__)
    args.add_argument("--strategy", default=str(ROOT / "strategies/lstm_mm.py"))
    args.add_argument("--seconds", type=float, default=600.0, help="of market time")
    args.add_argument("--runs", type=int, default=3)
    args.add_argument("--out", type=Path, default=ROOT / "build/bench/own.json")
    chosen = args.parse_args()
    figures = {
        "machine": machine(),
        "first_report_s": first_report_s(chosen.strategy),
        "run": split(chosen.strategy, chosen.seconds, chosen.runs),
    }
    show(figures)
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    chosen.out.write_text(json.dumps(figures, indent=2))


def machine() -> str:
    return f"{cpu()}, Python {platform.python_version()}"


def first_report_s(strategy: str) -> float:
    """From the shell to the finished report, run folder included."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "hft", "-q", "backtest", strategy, "--out", folder]
        began = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True, cwd=ROOT)
        return time.perf_counter() - began


def split(strategy: str, seconds: float, runs: int) -> dict[str, object]:
    settings = {
        "data.synth.duration_s": seconds,
        "engine.bracket": False,
        "engine.shortfall": False,
    }
    plan = prepare(strategy, settings=settings)
    began = time.perf_counter()
    rows = sum(len(chunk) for feed in plan.feeds for chunk in feed.chunks())
    source_s = time.perf_counter() - began
    # A plan of its own each: a market that was read keeps its rows, and what made them is timed.
    plain = [engine.run_once(prepare(strategy, settings=settings)).run.wall_s for _ in range(runs)]
    profiled = prepare(strategy, settings={**settings, "engine.profile": True})
    run = engine.run_once(profiled).run
    stages = dict(run.stages_s)
    stages["driver"] = max(0.0, stages["driver"] - source_s)
    return {
        "rows": rows,
        "wall_s": statistics.median(plain),
        "rows_a_second": rows / statistics.median(plain),
        "inferences": run.counters["inferences"],
        "orders": len(run.orders),
        "profiled_stages_s": {"source": source_s, **stages},
    }


def show(figures: dict[str, object]) -> None:
    run = figures["run"]
    assert isinstance(run, dict)
    print(figures["machine"])
    print(f"shell to report: {figures['first_report_s']:.2f} s")
    print(
        f"{run['rows']:,} rows in {run['wall_s']:.2f} s: "
        f"{run['rows_a_second'] / 1e6:.2f} M rows/s, "
        f"{run['inferences']:,} inferences, {run['orders']:,} orders"
    )
    stages = run["profiled_stages_s"]
    total = sum(stages.values())
    for name, seconds in stages.items():
        share, ns = seconds / total, seconds / run["rows"] * 1e9
        print(f"  {name:10s} {seconds:7.3f} s {share:6.1%} {ns:7.1f} ns/row")


if __name__ == "__main__":
    main()

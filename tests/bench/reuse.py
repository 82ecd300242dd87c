"""What reuse of answers saves, in calm and in storm: counts, not timings.

    python tests/bench/reuse.py

Ten minutes of the synthetic market: 1500 messages a second in calm, storms of 45 s every 150 s. A
softmax of five features with random weights, whose sensitivity is known. Each row is a run.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

for room in ("pipe", "inference"):
    sys.path.append(str(Path(__file__).parents[1] / room))

from naive_reuse import linear_softmax, recipe_of  # noqa: E402

from hft import Model, Strategy  # noqa: E402
from hft.analysis.reuse import reuse  # noqa: E402
from hft.analysis.run_data import RunData  # noqa: E402
from hft.config import ReuseConfig  # noqa: E402
from hft.engine import run_once  # noqa: E402
from hft.inference.bundle import Bundle  # noqa: E402
from hft.plan import prepare  # noqa: E402

EPSILONS = (0.02, 0.05, 0.1, 0.3)
SERVICES = ("50us", "1ms")


class Listens(Strategy):
    """Hears every signal and does nothing."""

    def on_signal(self, signal: Any) -> None:
        """Nothing."""


def run(bundle: Bundle, config: ReuseConfig, inference: str) -> RunData:
    """Ten minutes."""
    recipe = recipe_of(config)
    recipe["latency"] = {"inference": inference}
    synth = {"duration_s": 600.0, "messages_per_s": 1500.0, "calm_s": 150.0, "storm_s": 45.0}
    recipe["data"] = {"synth": synth}
    strategy = type("Listening", (Listens,), {"model": Model(str(bundle.path))})
    return run_once(prepare(strategy, "synth", recipe=recipe)).run


def line(figures: dict[str, Any]) -> str:
    """Hit rates and rows to compute a second, calm and storm."""
    calm, storm = figures["calm"], figures["storm"]
    parts = []
    for weather in (calm, storm):
        a_second = weather["to_compute_a_second"]
        parts.append(
            f"{100 * weather['hit_rate']:.1f} % | "
            f"{a_second['p50']:,} / {a_second['p99']:,} / {a_second['max']:,}"
        )
    every = figures["all"]
    return f"{' | '.join(parts)} | {every['disagreed']} of {every['compared']}"


def main() -> None:
    """Prints the table of docs/reuse.md."""
    with tempfile.TemporaryDirectory() as folder:
        bundle = linear_softmax(Path(folder) / "linear.bundle")
        print("| service | epsilon | calm: hits | to compute/s p50 / p99 / max | storm | | apart |")
        for inference in SERVICES:
            for epsilon in EPSILONS:
                (figures,) = reuse(run(bundle, ReuseConfig(epsilon=epsilon), inference))
                print(f"| {inference} | {epsilon} | {line(figures)} |", flush=True)


if __name__ == "__main__":
    main()

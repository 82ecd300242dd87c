"""What inputs of a live session wait while a bundle is read beside it.

    python tests/bench/swap.py                  # LSTM 512, natively
    python tests/bench/swap.py --backend onnx   # needs onnx and onnxruntime

A session on the simulated venue in a process of its own, and some swaps one after the other. An
input waits from when the wire brings it to when it is taken; a second before each swap is beside.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from turns import cpu

for room in ("pipe", "inference"):
    sys.path.append(str(Path(__file__).parents[1] / room))

from bench_bundles import tiny  # noqa: E402
from made_models import add_step_part  # noqa: E402

from hft import run_folder  # noqa: E402
from hft.inference.bundle import Bundle  # noqa: E402
from hft.journal import RecordKind  # noqa: E402
from hft.live.swap_request import swap  # noqa: E402
from hft.live.swaps import request_of  # noqa: E402

STRATEGY = """
from hft import Model, Strategy

class Listens(Strategy):
    model = Model("first")

    def on_signal(self, signal):
        pass
"""
FEED_NS = 200_000
BEFORE_NS = 1_000_000_000


def bundle(folder: Path, seed: int, backend: str) -> Bundle:
    """An LSTM of 512 units, 4 MiB."""
    made = tiny(folder, seed=seed, units=512, budget_ns=50_000_000)
    return add_step_part(made) if backend == "onnx" else made


def session(home: Path, backend: str) -> subprocess.Popen[bytes]:
    """Starts it."""
    (home / "listens.py").write_text(STRATEGY)
    bundle(home / "first.bundle", 1, backend)
    code = "from hft.cli.main import main; main()"
    settings = {
        "data.synth.messages_per_s": "2000",
        "latency.feed": f"{FEED_NS}ns",
        "models.model.backend": backend,
    }
    sets = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    words = ["live", "--venue", "sim", str(home / "listens.py"), "--duration", "10min", *sets]
    return subprocess.Popen(
        [sys.executable, "-c", code, *words, "--out", str(home)], stdout=subprocess.DEVNULL
    )


def waits(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """When each packet was taken, and how long it waited [ns]."""
    rows = run_folder.read_market(folder)
    first = np.flatnonzero(np.diff(rows["ts_recv"], prepend=0))
    taken = rows["ts_recv"][first]
    return taken, taken - rows["ts_event"][first] - FEED_NS


def told(waited: np.ndarray) -> str:
    """Quantiles in us."""
    if not len(waited):
        return "none"
    return " / ".join(f"{v / 1000:,.0f}" for v in (*np.quantile(waited, (0.5, 0.99)), waited.max()))


def main() -> None:
    """Prints a line a swap."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--backend", default="native", choices=("native", "onnx"))
    options.add_argument("--swaps", type=int, default=5)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as place:
        home = Path(place)
        process = session(home, given.backend)
        new = bundle(home / "next.bundle", 2, given.backend)
        while not (found := [p.parent for p in home.glob("live-*/journal.bin")]):
            time.sleep(0.1)
        folder = found[0]
        for _ in range(given.swaps):
            time.sleep(1.5)
            swap(folder, new.path)
        process.send_signal(signal.SIGINT)
        process.wait()
        journal = run_folder.read_journal(folder)
        asked = journal["ts"][(journal["kind"] == RecordKind.SWAP) & (journal["b"] == 0)]
        taken, waited = waits(folder)
        print(f"{cpu()}; waits of packets p50 / p99 / longest [us]")
        print("| swap | read in [ms] | meanwhile | the second before |")
        for number, until in enumerate(asked.tolist(), 1):
            since = request_of(folder, number).stat().st_mtime_ns
            inside = waited[(taken >= since) & (taken <= until + 10_000_000)]
            before = waited[(taken >= since - BEFORE_NS) & (taken < since)]
            spent = (until - since) / 1e6
            print(f"| {number} | {spent:.0f} | {told(inside)} | {told(before)} |")


if __name__ == "__main__":
    main()

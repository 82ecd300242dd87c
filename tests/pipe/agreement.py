"""One script of orders on hftbacktest and on ours: how tests/peer plays a case on either."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np

from hft import Strategy
from hft.analysis.records import OrderState
from hft.engine import run_once
from hft.plan import prepare
from hft.types import InstrumentSpec, Tif

MS = 1_000_000
MID = 1_000
N = 3.0
RUN = Path(__file__).parents[1] / "peer" / "peer_run.py"
SPEC = InstrumentSpec(symbol="X", venue="SIM", tick=1.0, lot=1.0)
PEER = {
    "queue": "power3",
    "queue_n": N,
    "partial_fills": False,
    "share_prints": False,
    "through": "full",
    "cross": "fill",
    "native_replace": False,
}
BY_VENUE, BY_US, IS_BUY, IS_SELL = 1 << 31, 1 << 30, 1 << 29, 1 << 28
Case = tuple[np.ndarray, np.ndarray, dict[str, Any]]
"""The feed as EVENT rows, the same in the peer's, and what is done."""


def random_script(rng: np.random.Generator, start: int, end: int) -> list[list[Any]]:
    """Orders and cancels at odd nanoseconds, so that nothing is a tie."""
    script: list[list[Any]] = []
    number = 0
    for at in sorted(int(t) for t in rng.integers(start, end, 60)):
        if number == 0 or rng.random() < 0.7:
            number += 1
            side = int(rng.choice([1, -1]))
            price = MID - side * int(rng.integers(-2, 6))
            tif = str(rng.choice(["GTC", "POST_ONLY"]))
            script.append([at | 1, "submit", number, side, int(rng.integers(1, 12)), price, tif])
        else:
            script.append([at | 1, "cancel", int(rng.integers(1, number + 1))])
    return script


class Plays(Strategy):
    script: list[list[Any]]

    def on_start(self) -> None:
        self.sent: dict[int, Any] = {}
        for at, verb, *what in self.script:
            self.at(at, getattr(self, "do_" + verb), *what)

    def do_submit(self, number: int, side: int, lots: int, price: int, tif: str) -> None:
        self.sent[number] = self.submit(side, lots, price, Tif[tif])

    def do_cancel(self, number: int) -> None:
        if self.sent[number].cancellable:
            self.cancel(self.sent[number])


def ours(rows: np.ndarray, case: dict[str, Any]) -> dict[str, Any]:
    cls = type("Play", (Plays,), {"script": case["script"], "__module__": __name__})
    recipe = {
        "latency": dict(entry=case["entry"], response=case["response"], compute=0),
        "venue": PEER,
        "engine": {"bracket": False, "moves": "overlap"},
    }
    run = run_once(prepare(cls, {"X.SIM": rows}, specs=[SPEC], recipe=recipe)).run
    assert run.status == "complete", run.error
    filled = {int(f["order"]): (int(f["price"]), int(f["ts_venue"])) for f in run.fills}
    orders = {}
    for o in run.orders:
        state = OrderState(int(o["state"])).name
        price, ts = filled.get(int(o["id"]), (0, 0))
        orders[str(int(o["id"]))] = [state, int(o["cum_lots"]), price, ts]
    fills = run.fills
    signed = fills["side"].astype(np.int64) * fills["lots"]
    return {
        "orders": orders,
        "position": float(signed.sum()),
        "balance": float(-(signed * fills["price"]).sum()),
    }


def random_latencies(rng: np.random.Generator) -> dict[str, int]:
    return {
        "entry": int(rng.choice([0, 300_000, 7 * MS])) + 2,
        "response": int(rng.choice([0, 300_000, 7 * MS])) + 4,
    }


def at_peer(python: str, folder: Path, cases: dict[str, Case]) -> dict[str, Any]:
    """What the peer made of every case, all at once: its compiler takes ten seconds a process."""
    for name, (_, rows, case) in cases.items():
        np.save(folder / f"{name}.npy", rows)
        (folder / f"{name}.json").write_text(json.dumps(case))
    command = [python, str(RUN), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found

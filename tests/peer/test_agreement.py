"""Where hftbacktest is right, we agree with it: same feed, orders and latencies, same fills.

Its rules (whole fills, every order sees the whole print, a print through us fills us, no order is
amended) are ours with the recipe of `PEER`. Feeds here keep away from what it gets wrong: books do
not cross, a print and the level it moved are two rows more than a millisecond apart.

It runs in the interpreter that HFT_PEER_PYTHON names, or in ours when it is installed there.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sim import T0

from hft import Strategy
from hft.adapters.hftbacktest import EVENT_DTYPE
from hft.analysis.records import OrderState
from hft.engine import prepare, run_once
from hft.types import EVENT, SEEN_BY_BOTH, Flag, InstrumentSpec, Kind, Tif

HERE = Path(__file__).parent
MS = 1_000_000
MID = 1_000
N = 3.0
SEEDS = range(12)
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


@pytest.fixture(scope="module")
def peer_python() -> str:
    named = os.environ.get("HFT_PEER_PYTHON")
    if named:
        return named
    if importlib.util.find_spec("hftbacktest") is None:
        pytest.skip(
            "no hftbacktest: pip install -e '.[peer]', or name its Python in HFT_PEER_PYTHON"
        )
    return sys.executable


def uncrossed_tape(rng: np.random.Generator, rows: int) -> np.ndarray:
    """Levels and prints a few ms apart; a level that would cross clears what it would meet."""
    out: list[tuple[Any, ...]] = []
    book: dict[int, dict[int, int]] = {1: {}, -1: {}}
    ts = T0

    def add(kind: Kind, side: int, price: int, lots: int) -> None:
        nonlocal ts
        ts += int(rng.integers(2, 6)) * MS
        out.append(
            (ts, ts + MS // 2, price, lots, 0, 0, 0, 0, kind, side, int(SEEN_BY_BOTH | Flag.LAST))
        )
        if kind == Kind.LEVEL:
            book[side].pop(price, None)
            if lots:
                book[side][price] = lots

    mid = MID
    for k in range(1, 6):
        add(Kind.LEVEL, 1, mid - k, 10)
        add(Kind.LEVEL, -1, mid + k, 10)
    while len(out) < rows:
        if rng.random() < 0.05:
            mid += int(rng.choice([-1, 1]))
        side = int(rng.choice([1, -1]))
        if rng.random() < 0.3:
            add(Kind.TRADE, side, mid + side * int(rng.integers(0, 4)), int(rng.integers(1, 25)))
            continue
        price = mid - side * int(rng.integers(0, 6))
        lots = int(rng.choice([0, 2, 5, 10, 20]))
        if lots:
            for met in sorted(
                (p for p in book[-side] if (price - p) * side >= 0), key=lambda p: p * side
            ):
                add(Kind.LEVEL, -side, met, 0)
        add(Kind.LEVEL, side, price, lots)
    ts += 2_000 * MS
    add(Kind.LEVEL, 1, 1, 1)
    return np.array(out, EVENT)


def as_peer(rows: np.ndarray) -> np.ndarray:
    out = np.zeros(len(rows), EVENT_DTYPE)
    kind = np.where(rows["kind"] == Kind.TRADE, 2, 1)
    out["ev"] = kind | BY_VENUE | BY_US | np.where(rows["side"] > 0, IS_BUY, IS_SELL)
    out["exch_ts"], out["local_ts"] = rows["ts_event"], rows["ts_recv"]
    out["px"], out["qty"] = rows["price"], rows["qty"]
    return out


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
    spec = InstrumentSpec(symbol="X", venue="SIM", tick=1.0, lot=1.0)
    run = run_once(prepare(cls, {"X.SIM": rows}, specs=[spec], recipe=recipe)).run
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


def random_case(seed: int) -> tuple[np.ndarray, dict[str, Any]]:
    rng = np.random.default_rng(seed)
    rows = uncrossed_tape(rng, 250)
    last = int(rows["ts_event"][-2])
    return rows, {
        "script": random_script(rng, int(rows["ts_recv"][9]), last),
        "entry": int(rng.choice([0, 300_000, 7 * MS])) + 2,
        "response": int(rng.choice([0, 300_000, 7 * MS])) + 4,
        "n": N,
        "end": last + 1_000 * MS + 1,
    }


@pytest.fixture(scope="module")
def theirs(peer_python: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the peer made of every case, all at once: its compiler takes ten seconds a process."""
    folder = tmp_path_factory.mktemp("cases")
    for seed in SEEDS:
        rows, case = random_case(seed)
        np.save(folder / f"{seed}.npy", as_peer(rows))
        (folder / f"{seed}.json").write_text(json.dumps(case))
    command = [peer_python, str(HERE / "peer_run.py"), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_same_feed_and_orders_same_fills_position_and_cash(
    seed: int, theirs: dict[str, Any]
) -> None:
    mine = ours(*random_case(seed))
    assert sum(o[0] == "FILLED" for o in mine["orders"].values()) > 10
    assert mine == theirs[str(seed)]

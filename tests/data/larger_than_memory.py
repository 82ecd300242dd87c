"""Run by test_scale.py in a process whose memory is limited: writes a store and replays it.

python larger_than_memory.py FOLDER ROWS LIMIT_MIB write|replay|hold
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from hft.types import EVENT, SEEN_BY_BOTH, Flag, InstrumentSpec, Kind

CHUNK = 1 << 17
SPEC = InstrumentSpec(symbol="BIG", venue="SIM", tick=1, lot=1)
STRATEGY = """
from hft import BUY, Strategy


class Now(Strategy):
    def on_start(self):
        self.every("30s", self.buy)

    def buy(self):
        self.submit(BUY, 1)
"""


def chunks(rows: int) -> Iterator[Any]:
    """A made-up feed, a level a row, that goes on for days."""
    rng = np.random.default_rng(1)
    for start in range(0, rows, CHUNK):
        n = np.arange(start, min(start + CHUNK, rows))
        out = np.zeros(len(n), EVENT)
        out["ts_event"] = 1_704_067_200_000_000_000 + n * 7_000_000
        out["ts_recv"] = out["ts_event"] + 1_000_000
        out["kind"], out["side"] = Kind.LEVEL, np.where(n % 2, 1, -1)
        out["price"] = 10_000 - out["side"] * rng.integers(1, 50, len(n))
        out["qty"] = 1 + rng.integers(0, 1_000, len(n))
        out["flags"], out["seq"] = SEEN_BY_BOTH | Flag.LAST, n + 1
        yield out


def main(folder: Path, rows: int, limit_mib: int, what: str) -> None:
    from hft.data import Store
    from hft.engine import run_once
    from hft.plan import prepare

    strategy = folder / "now.py"
    strategy.write_text(STRATEGY)
    # Once in little, so that libraries, their threads and their pools are there.
    little = Store(folder / f"little-{what}")
    little.write(next(chunks(100)), SPEC)
    run_once(prepare(strategy, little.path, settings={"engine.bracket": False}))
    limit = private_bytes() + (limit_mib << 20)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    store = Store(folder / "store")
    if what == "write":
        with store.writer(SPEC) as writer:
            for chunk in chunks(rows):
                writer.add(chunk)
    elif what == "hold":
        try:
            store.read(SPEC.name)
        except MemoryError:
            print("no room")
        return
    else:
        settings = {"engine.bracket": False, "engine.sample": "1min"}
        run = run_once(prepare(strategy, store.path, settings=settings)).run
        assert run.rows == rows, run.rows
        assert len(run.fills) > 10
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024 - before
    print(rows * EVENT.itemsize >> 20, used)


def private_bytes() -> int:
    """What RLIMIT_DATA counts: private memory, mapped files and code left out."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmData:"):
            return int(line.split()[1]) << 10
    raise RuntimeError("this kernel does not tell VmData")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])

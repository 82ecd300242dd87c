"""What scales that trail cost a row: of a run, and of `hft dataset` beside their twin in NumPy.

python tests/bench/trailing.py
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.append(str(ROOT / "tests" / "inference"))

import naive_trailing  # noqa: E402

from hft.inference.card import TrailingEntry  # noqa: E402
from hft.inference.dataset.trailing import Trailing  # noqa: E402

HOUR = 3_600_000_000_000
ROWS, CHUNK, COLUMNS = 400_000, 10_000, (16, 40)


def of_runs() -> None:
    """Builds the program beside this file and prints what it measured."""
    with tempfile.TemporaryDirectory() as folder:
        program, core = Path(folder, "trailing"), ROOT / "framework" / "core"
        flags = ["-O3", "-std=c++20", "-ffp-contract=off", "-I", str(core)]
        sources = [str(HERE / "trailing.cpp"), str(core / "trailing.cpp")]
        subprocess.run(["c++", *flags, *sources, "-o", str(program)], check=True)
        done = subprocess.run([program], check=True, capture_output=True, text=True)
    print("| columns | a row, before its answer | after it | the row of a new estimate |")
    print("|---|---|---|---|")
    for line in done.stdout.splitlines():
        columns, seen, added, change, *_ = line.split()
        print(f"| {columns} | {seen} ns | {added} ns | {float(change) / 1e3:.1f} us |")


def of_data_sets() -> None:
    """A row fed in chunks, as `hft dataset` does."""
    print("| columns | the core | its twin in NumPy |\n|---|---|---|")
    rule = TrailingEntry(period_ns=HOUR, memory_ns=24 * HOUR, drift=3.0)
    for columns in COLUMNS:
        core = fed(lambda k=columns: Trailing(rule, k), columns)
        twin = fed(lambda: naive_trailing.Trailing(HOUR, 24 * HOUR, 3.0), columns)
        print(f"| {columns} | {core:.0f} ns | {twin:.0f} ns |")


def fed(make: Callable[[], Any], columns: int) -> float:
    """Nanoseconds a row, the least of three turns over about two hours."""
    rng = np.random.default_rng(0)
    ts = 1_700_000_000_000_000_000 + np.cumsum(rng.integers(1, 40_000_000, ROWS))
    x = rng.standard_normal((ROWS, columns))
    turns = []
    for _ in range(3):
        trailing, start = make(), time.perf_counter()
        for at in range(0, ROWS, CHUNK):
            trailing.feed(ts[at : at + CHUNK], x[at : at + CHUNK])
        turns.append(time.perf_counter() - start)
    return min(turns) / ROWS * 1e9


if __name__ == "__main__":
    of_runs()
    of_data_sets()

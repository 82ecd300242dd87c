"""The bare book, in ns a row: of levels, and of orders, against the standard containers.

Reads the feeds that `peer.py` has prepared; the sum of the best prices after each row must agree.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
LEVELS = {"synthetic": "l2.events.npy", "BTCUSDT USD-M": "real.events.npy"}
ORDERS = {"synthetic": "l3.events.npy"}


def main(data: Path) -> None:
    """Both tables."""
    table(data, "book.cpp", LEVELS, "level rows | ladder | std::map | std::unordered_map")
    two = "two books, each with its orders | sharing them"
    table(data, "orders.cpp", ORDERS, f"rows | ours | std::map of lists, unordered ids | {two}")


def table(data: Path, source: str, files: dict[str, str], head: str) -> None:
    """Builds the program, runs it on each feed there is, prints a table."""
    feeds = {name: data / file for name, file in files.items() if (data / file).exists()}
    if not feeds:
        print(f"no feed for {source} in {data}: run tests/bench/peer.py first")
        return
    with tempfile.TemporaryDirectory() as folder:
        program, rows = Path(folder, "program"), Path(folder, "rows.bin")
        flags = ["-O3", "-std=c++20", "-I", str(ROOT / "framework/core")]
        subprocess.run(["c++", *flags, str(HERE / source), "-o", str(program)], check=True)
        print(f"| feed | {head} |")
        print("|---" * (head.count(" | ") + 2) + "|")
        for name, file in feeds.items():
            np.load(file, mmap_mode="r").tofile(rows)
            done = subprocess.run([program, rows], check=True, capture_output=True, text=True)
            count, *ns = done.stdout.split()
            print(f"| {name} | {int(count):,} | " + " | ".join(f"{x} ns" for x in ns) + " |")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build/bench/data")

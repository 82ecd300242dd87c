"""The bare book, in ns a level row: our ladder, `std::map` and `std::unordered_map`.

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
FEEDS = {"synthetic": "l2.events.npy", "BTCUSDT USD-M": "real.events.npy"}


def main(data: Path) -> None:
    """Builds the program, runs it on each feed there is, prints a table."""
    feeds = {name: data / file for name, file in FEEDS.items() if (data / file).exists()}
    if not feeds:
        print(f"no feed in {data}: run tests/bench/peer.py first")
        return
    with tempfile.TemporaryDirectory() as folder:
        program, rows = Path(folder, "book"), Path(folder, "rows.bin")
        flags = ["-O3", "-std=c++20", "-I", str(ROOT / "framework/core")]
        subprocess.run(["c++", *flags, str(HERE / "book.cpp"), "-o", str(program)], check=True)
        print("| feed | level rows | ladder | std::map | std::unordered_map |")
        print("|---|---|---|---|---|")
        for name, file in feeds.items():
            np.load(file, mmap_mode="r").tofile(rows)
            done = subprocess.run([program, rows], check=True, capture_output=True, text=True)
            count, *ns = done.stdout.split()
            print(f"| {name} | {int(count):,} | " + " | ".join(f"{x} ns" for x in ns) + " |")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build/bench/data")

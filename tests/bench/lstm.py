"""How long a step of the native LSTM takes, beside what this machine's arithmetic and cache allow.

    python tests/bench/lstm.py            # needs a C++20 compiler

The floor is the larger of two measured times: the step's multiply-adds with everything in
registers, and one reading of its weights (213 KB, more than L1 holds) from L2.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from turns import cpu

ROOT = Path(__file__).resolve().parents[2]
CORE = ROOT / "framework" / "core"


def build(folder: Path) -> Path:
    binary = folder / "lstm"
    sources = [
        Path(__file__).with_suffix(".cpp"),
        CORE / "network.cpp",
        *CORE.glob("kernels_*.cpp"),
    ]
    compiler = os.environ.get("CXX", "c++")
    flags = ["-std=c++20", "-O3", "-ffp-contract=off", f"-I{CORE}"]
    subprocess.run([compiler, *flags, *map(str, sources), "-o", str(binary)], check=True)
    return binary


def measure() -> dict[str, dict[str, tuple[float, float]]]:
    """{set: {what: (p50, p99)}} in ns."""
    with tempfile.TemporaryDirectory() as folder:
        binary = build(Path(folder))
        text = subprocess.run([str(binary)], check=True, capture_output=True, text=True).stdout
    found: dict[str, dict[str, tuple[float, float]]] = {}
    for line in text.splitlines():
        isa, what, p50, p99 = line.split()
        found.setdefault(isa, {})[what] = (float(p50), float(p99))
    return found


def main() -> None:
    found = measure()
    read_ns = found.pop("any", {}).get("floor_read", (0.0, 0.0))[0]
    print(f"LSTM 64x2, 16 inputs, dense 3; ns, p50 / p99; {cpu()}")
    for isa, times in found.items():
        fma_ns = times.pop("floor_fma", (0.0, 0.0))[0]
        print(f"\n{isa}")
        for what, (p50, p99) in times.items():
            print(f"  {what:16} {p50:8.0f} / {p99:.0f}")
        if fma_ns:
            floor = max(fma_ns, read_ns)
            share = floor / times["step"][0]
            print(
                f"  floor            {floor:8.0f}   (products {fma_ns:.0f}, reading {read_ns:.0f})"
            )
            print(f"  step reaches     {share:8.0%} of it")


if __name__ == "__main__":
    main()

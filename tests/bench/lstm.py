"""How long a step of the native networks takes, beside what arithmetic and cache allow.

    python tests/bench/lstm.py            # needs a C++20 compiler; pin it: taskset -c 1

The floor is the larger of two measured times: the step's multiply-adds with everything in
registers, and one reading of its weights from where they lie between steps. Gates are not in it:
they are timed alone, since they are our own code, and printed beside it.
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
        *(CORE / f"{name}.cpp" for name in ("network", "network_build", "window", "locked_block")),
        *CORE.glob("kernels_*.cpp"),
    ]
    compiler = os.environ.get("CXX", "c++")
    flags = ["-std=c++20", "-O3", "-ffp-contract=off", f"-I{CORE}"]
    subprocess.run([compiler, *flags, *map(str, sources), "-o", str(binary)], check=True)
    return binary


def measure() -> dict[tuple[str, ...], dict[str, tuple[float, ...]]]:
    """{(set, shape, precision): {what: (p50, p99, p999)}} in ns."""
    with tempfile.TemporaryDirectory() as folder:
        binary = build(Path(folder))
        text = subprocess.run([str(binary)], check=True, capture_output=True, text=True).stdout
    found: dict[tuple[str, ...], dict[str, tuple[float, ...]]] = {}
    for line in text.splitlines():
        *case, what, p50, p99, p999 = line.split()
        found.setdefault(tuple(case), {})[what] = (float(p50), float(p99), float(p999))
    return found


def main() -> None:
    print(f"ns, p50 / p99 / p99.9, the clock's own time included; {cpu()}")
    for case, times in measure().items():
        products, read, gates = times.pop("floor", (0.0, 0.0, 0.0))
        print(f"\n{' '.join(case)}")
        for what, (p50, p99, p999) in times.items():
            print(f"  {what:16} {p50:8.0f} / {p99:.0f} / {p999:.0f}")
        if products:
            floor = max(products, read)
            print(
                f"  floor            {floor:8.0f}   (products {products:.0f}, reading {read:.0f})"
            )
            step = times["step"][0]
            print(f"  step reaches     {floor / step:8.0%} of it")
            print(f"  gates alone      {gates:8.0f}   (with them {(floor + gates) / step:.0%})")


if __name__ == "__main__":
    main()

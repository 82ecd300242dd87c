"""What a step cannot be faster than here: `floors.cpp`, built with whatever compiler there is."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Rates:
    """Of this machine; none of the framework's code is in them."""

    fma_ns: float
    """A float multiply-add with everything in registers."""
    dot_ns: float
    """An 8-bit one."""
    sigmoid_ns: float
    """One value's gate, by the shortest sequence of instructions; 0: not measured."""
    read_ns: dict[int, float]
    """A byte, by size of the block that is read again and again: at best."""
    usual_ns: dict[int, float]
    """The same, most of the time: caches have faster and slower moments that nothing here rules."""

    def least(self, other: Rates | None) -> Rates:
        """Of two times of measuring: what was slower then was disturbed."""
        if other is None:
            return self
        read = {size: min(ns, other.read_ns[size]) for size, ns in self.read_ns.items()}
        ours, theirs = ((r.fma_ns, r.dot_ns, r.sigmoid_ns) for r in (self, other))
        usual = {size: min(ns, other.usual_ns[size]) for size, ns in self.usual_ns.items()}
        return Rates(*(min(pair) for pair in zip(ours, theirs, strict=True)), read, usual)


@dataclass(frozen=True)
class Floor:
    """Of one network and precision, in ns."""

    products: float
    reading: float
    usual_reading: float
    gates: float
    """Not in `ns`: the aim is held against products and reading alone."""

    @property
    def ns(self) -> float:
        """The larger of the two: they overlap at best."""
        return max(self.products, self.reading)

    @property
    def usual(self) -> float:
        """The same with weights read as fast as they are most of the time."""
        return max(self.products, self.usual_reading)

    @property
    def with_gates(self) -> float:
        """Gates come after the products that they need."""
        return self.ns + self.gates


def rates(sizes: Iterable[int]) -> Rates | None:
    """Measured; None where there is no compiler or the machine is no x86."""
    compiler = os.environ.get("CXX", "c++")
    if shutil.which(compiler) is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        binary = Path(folder) / "floors"
        source = Path(__file__).with_suffix(".cpp")
        flags = ["-std=c++20", "-O3", "-ffp-contract=off"]
        subprocess.run([compiler, *flags, str(source), "-o", str(binary)], check=True)
        command = [str(binary), *(str(size) for size in sorted(set(sizes)))]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    words = [line.split() for line in text.splitlines()]
    one = {w[0]: float(w[1]) for w in words if len(w) == 2}
    if not one:
        return None
    reads = [w for w in words if w[0] == "read"]
    best, usual = ({int(w[1]): float(w[i]) for w in reads} for i in (2, 3))
    return Rates(one["fma_fp32"], one["dot_int8"], one.get("sigmoid", 0.0), best, usual)


def floor_of(rates: Rates, products: int, weight_bytes: int, units: int, precision: str) -> Floor:
    """Of a step.

    Args:
        rates: of the machine; `read_ns` and `usual_ns` have `weight_bytes`.
        products: multiply-adds of a step.
        weight_bytes: read for it.
        units: of all LSTM layers; each has five gates, tanh taken as a sigmoid.
        precision: fp32 or int8.
    """
    each = rates.dot_ns if precision == "int8" else rates.fma_ns
    return Floor(
        products * each,
        weight_bytes * rates.read_ns[weight_bytes],
        weight_bytes * rates.usual_ns[weight_bytes],
        5 * units * rates.sigmoid_ns,
    )

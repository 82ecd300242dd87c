"""By how much one is slower than the other, and how sure: in turns, on the same machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hft.inference.bench.timing import Int

Floats = npt.NDArray[np.float64]
RESAMPLES = 2000
LEVEL = 0.95
SHARES = {"p50": 0.5, "p99": 0.99}
LEAST_ROUNDS = 15


@dataclass(frozen=True, slots=True)
class Ratio:
    """New over old."""

    value: float
    low: float
    """Interval at `LEVEL`."""
    high: float
    new_ns: float
    old_ns: float


def latency_ratios(new: list[Int], old: list[Int], seed: int = 1) -> dict[str, Ratio]:
    """Of `SHARES`, over rounds in which both were timed one after the other.

    A round's own ratio is what both saw of the same minute; the median over rounds, and a bootstrap
    of rounds for its interval, stand even where single rounds were disturbed.
    """
    found = {}
    for name, share in SHARES.items():
        a = np.array([np.quantile(ns, share) for ns in new])
        b = np.array([np.quantile(ns, share) for ns in old])
        each = np.maximum(a, 1.0) / np.maximum(b, 1.0)
        drawn = np.random.default_rng(seed).integers(0, each.size, (RESAMPLES, each.size))
        low, high = np.quantile(np.median(each[drawn], axis=1), [0.5 - LEVEL / 2, 0.5 + LEVEL / 2])
        found[name] = Ratio(
            float(np.median(each)),
            float(low),
            float(high),
            float(np.median(a)),
            float(np.median(b)),
        )
    return found


def in_turns(
    new: Callable[[], Int], old: Callable[[], Int], *, seconds: float
) -> tuple[list[Int], list[Int]]:
    """Rounds of both, the first place in turns too.

    Args:
        new: times some calls of one, ns of each.
        old: of the other.
        seconds: ends after so long, but not before `LEAST_ROUNDS` rounds.
    """
    end = time.perf_counter() + seconds
    of_new: list[Int] = []
    of_old: list[Int] = []
    while len(of_new) < LEAST_ROUNDS or time.perf_counter() < end:
        if len(of_new) % 2:
            of_new.append(new())
            of_old.append(old())
        else:
            of_old.append(old())
            of_new.append(new())
    return of_new, of_old

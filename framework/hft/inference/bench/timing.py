"""What calls took, without what the machine did meanwhile.

A shared machine takes the processor away now and then, for a millisecond in a microsecond's call.
Calls are timed in short blocks; a block in which the kernel counts an involuntary switch is
dropped, and the share of dropped ones is told beside every figure. Switches of a hypervisor are
not counted by any kernel inside it: they stay in, and are what the last thousandth shows.
"""

from __future__ import annotations

import gc
import os
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Int = npt.NDArray[np.int64]

QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p99.9": 0.999}
BLOCK_NS = 400_000
"""About how long a block is, with what lies between its calls: long enough to count switches beside
it, short enough to lose."""
MOST_IN_BLOCK = 256
FIRST_CALLS = 20
"""Before anything is timed: buffers are made and code is loaded."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Calls of one kind."""

    ns: Int
    """Of each that counts, without the clock's own time, (m,)."""
    clock_ns: int
    """What reading the clock twice takes; it is taken off each."""
    calls: int
    """Timed, those of dropped blocks included."""
    disturbed: int
    """In blocks with an involuntary switch."""

    @property
    def share_disturbed(self) -> float:
        """Of the calls; they are left out of `ns` unless less than a tenth would be left."""
        return self.disturbed / max(self.calls, 1)

    def quantiles(self) -> dict[str, float]:
        """`QUANTILES` in ns."""
        return quantiles(self.ns)


def quantiles(ns: npt.NDArray[np.int64] | npt.NDArray[np.float64]) -> dict[str, float]:
    """`QUANTILES`; NaN of those that not one call in so many lies beyond."""
    told = {name: share for name, share in QUANTILES.items() if ns.size * (1 - share) > 0.99}
    found = np.quantile(ns, list(told.values())).tolist() if told else []
    return dict.fromkeys(QUANTILES, float("nan")) | dict(zip(told, found, strict=True))


@contextmanager
def pinned(cpu: int | None = None) -> Iterator[int | None]:
    """Keeps this thread, and threads it starts, on one processor; gives its number.

    Args:
        cpu: which; None: the last one allowed, where the kernel has least to do.

    Yields:
        The processor, or None where pinning is not allowed.
    """
    try:
        before = os.sched_getaffinity(0)
        chosen = max(before) if cpu is None else cpu
        os.sched_setaffinity(0, {chosen})
    except (AttributeError, OSError):  # another system than Linux, or not permitted
        yield None
        return
    try:
        yield chosen
    finally:
        os.sched_setaffinity(0, before)


def involuntary_switches() -> int:
    """How often the kernel took the processor from this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw


def clock_ns(readings: int = 2001) -> int:
    """What two readings of the clock and a call of nothing take: the median."""
    now, nothing = time.perf_counter_ns, _nothing
    took = np.empty(readings, np.int64)
    for i in range(readings):
        start = now()
        nothing(i)
        took[i] = now() - start
    return int(np.median(took))


def _nothing(i: int) -> None:
    pass


def timed(
    call: Callable[[int], object],
    *,
    seconds: float,
    most: int = 20_000,
    least: int = 50,
    before: Callable[[], object] | None = None,
) -> Timing:
    """Times calls one by one.

    Args:
        call: gets the number of the call.
        seconds: ends after so long, what comes before each call included.
        most: ends after so many calls.
        least: so many are made, however long they take.
        before: called before each, and not timed.
    """
    for i in range(FIRST_CALLS if seconds > 0 else 1):
        call(i)
    own = clock_ns()
    blocks = Blocks()
    end = time.perf_counter() + seconds
    with _no_collector():
        while blocks.calls < most and (blocks.calls < least or time.perf_counter() < end):
            room = min(blocks.next_size(), most - blocks.calls)
            switches, began = involuntary_switches(), time.perf_counter_ns()
            took = _block(call, before, blocks.calls, room)
            whole_ns = time.perf_counter_ns() - began
            blocks.add(np.array(took, np.int64), involuntary_switches() != switches, whole_ns)
    return blocks.timing(own)


def _block(
    call: Callable[[int], object], before: Callable[[], object] | None, first: int, n: int
) -> list[int]:
    now, took = time.perf_counter_ns, []
    for i in range(first, first + n):
        if before is not None:
            before()
        start = now()
        call(i)
        took.append(now() - start)
    return took


class Blocks:
    """Blocks of timed calls as they come in."""

    def __init__(self) -> None:
        self._took: list[Int] = []
        self._disturbed: list[bool] = []
        self._each_ns = 0.0
        self.calls = 0

    def add(self, took: Int, disturbed: bool, whole_ns: int = 0) -> None:  # noqa: FBT001
        """A block, and how long it took with all that lies between its calls."""
        self._took.append(took)
        self._disturbed.append(disturbed)
        self._each_ns = whole_ns / took.size
        self.calls += took.size

    def next_size(self) -> int:
        """Calls that fill a block, by the last one."""
        if not self._took:
            return 1
        return int(min(max(BLOCK_NS // max(self._each_ns, 1.0), 1), MOST_IN_BLOCK))

    def timing(self, own_ns: int) -> Timing:
        """What counts of it: all, where less than a tenth of the calls was undisturbed.

        Args:
            own_ns: of the clock, to be taken off each.
        """
        clean = [t for t, was in zip(self._took, self._disturbed, strict=True) if not was]
        kept = np.concatenate(clean) if clean else np.zeros(0, np.int64)
        disturbed = self.calls - kept.size
        if kept.size * 10 < self.calls:
            kept = np.concatenate(self._took)
        return Timing(np.maximum(kept - own_ns, 0), own_ns, self.calls, disturbed)


@contextmanager
def _no_collector() -> Iterator[None]:
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()

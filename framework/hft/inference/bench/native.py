"""Steps of the native network, timed in the core: a call from Python takes as long as some do."""

from __future__ import annotations

import time
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from hft.inference.bench.timing import Blocks, Timing, involuntary_switches

Mode = Literal["step", "armed", "touched", "window"]
SETTLING = 4
"""Steps of each block that are not counted: its stream's memory is new."""
STEPS_A_BLOCK = 400
BLOCK_S = 1e-3
"""With all that comes before steps: short enough to lose, where a machine is disturbed."""


def time_native(
    network: Any,
    rows: npt.NDArray[np.float64],
    mode: Mode,
    *,
    seconds: float,
    evict_bytes: int = 0,
    window_rows: int = 100,
    gap_ns: int = 0,
    most: int = 20_000,
    least: int = 50,
) -> Timing:
    """Times steps of one network.

    Args:
        network: `bundle.network()`.
        rows: features as they come, (n, inputs), used in turn.
        mode: `step`; `armed`: what memory brings was computed before; `touched`: that, and weights
            read again after other work; `window`: over exactly the last `window_rows` rows.
        seconds: ends after so long, what comes before each step included.
        evict_bytes: other work before each step, not timed.
        window_rows: of mode `window`.
        gap_ns: least time between the beginnings of steps.
        most: ends after so many steps.
        least: so many are made, however long they take.
    """
    from hft import _core

    rows = np.ascontiguousarray(rows, np.float64)
    blocks, at, n = Blocks(), 0, SETTLING + 1
    own = 0
    end = time.perf_counter() + seconds
    while blocks.calls < most and (blocks.calls < least or time.perf_counter() < end):
        turn = rows.take(range(at, at + n), axis=0, mode="wrap")
        switches, began = involuntary_switches(), time.perf_counter()
        took, own = _core.time_steps(
            network, turn, mode, evict_bytes=evict_bytes, gap_ns=gap_ns, window_rows=window_rows
        )
        disturbed = involuntary_switches() != switches
        blocks.add(took[SETTLING:], disturbed)
        at += n - SETTLING
        n = SETTLING + _steps(n, time.perf_counter() - began)
    return blocks.timing(own)


def _steps(n: int, took_s: float) -> int:
    return int(min(max(BLOCK_S * n / max(took_s, 1e-9), 6), STEPS_A_BLOCK))

"""The core's counter-based random numbers (framework/core/rng.hpp) over arrays.

A draw is a function of (seed, stream, entity, n) and nothing else: no generator has a state.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]


class Stream(IntEnum):
    """What a draw is for; `hft::Draw`."""

    FEED = 1
    ENTRY = 2
    RESPONSE = 3
    SERVICE = 4
    QUEUE = 5
    REFILL = 6
    GHOST = 7
    STRATEGY = 8
    SHADOW = 9


def draw_bits(seed: int, stream: int, entity: Words, n: int = 0) -> Words:
    """64 bits an entity, (m,)."""
    from hft import _core

    bits: Words = _core.draw_bits(seed, stream, np.ascontiguousarray(entity, np.uint64), n)
    return bits


def draw_uniform(seed: int, stream: int, entity: Words, n: int = 0) -> NDArray[np.float64]:
    """Uniform in [0, 1), one an entity, (m,)."""
    bits = draw_bits(seed, stream, entity, n) >> np.uint64(11)
    uniform: NDArray[np.float64] = bits.astype(np.float64) * 2.0**-53
    return uniform


def draw_normal(seed: int, stream: int, entity: Words, n: int = 0) -> NDArray[np.float64]:
    """Standard normal, one an entity, (m,); uses draws 2n and 2n + 1 (Box-Muller)."""
    radius = np.sqrt(-2.0 * np.log1p(-draw_uniform(seed, stream, entity, 2 * n)))
    normal: NDArray[np.float64] = radius * np.cos(
        2.0 * np.pi * draw_uniform(seed, stream, entity, 2 * n + 1)
    )
    return normal

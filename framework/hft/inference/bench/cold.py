"""Caches as other work leaves them: a buffer is walked before each step.

Between two rows a trading thread reads books, orders and buffers of its own, and what a model has
in the nearest caches is gone. Four times the second-level cache pushes weights out to the third
level, the usual case; twice the third level pushes them out to memory, the worst one.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

LINE_BYTES = 64
_GUESS = {2: 1 << 20, 3: 32 << 20}
_UNITS = {"K": 1 << 10, "M": 1 << 20}
_TIMES = {2: 4, 3: 2}


class Evictor:
    """Writes to a word of every line of its buffer when it is called."""

    def __init__(self, size_bytes: int) -> None:
        self._words = np.zeros(max(size_bytes // 8, 1), np.int64)[:: LINE_BYTES // 8]

    def __call__(self) -> None:
        self._words += 1


def cache_bytes(level: int, cpu: int = 0) -> int:
    """Of a level's data as the kernel tells it; where it does not, a common size."""
    folder = Path(f"/sys/devices/system/cpu/cpu{cpu}/cache")
    for index in sorted(folder.glob("index*")) if folder.is_dir() else ():
        try:
            kind, at, size = ((index / name).read_text().strip() for name in _FILES)
        except OSError:
            continue
        if at == str(level) and kind != "Instruction":
            return int(size[:-1]) * _UNITS[size[-1]] if size[-1] in _UNITS else int(size)
    return _GUESS[level]


_FILES = ("type", "level", "size")


def evict_bytes(level: int) -> int:
    """What must be walked so that nothing else stays in caches up to this level."""
    return _TIMES[level] * cache_bytes(level)

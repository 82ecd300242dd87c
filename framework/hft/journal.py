"""Records of a journal (docs/journal.md) as NumPy rows: the bytes of framework/core/journal.hpp."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

JOURNAL = np.dtype(
    [
        ("ts", "<i8"),
        ("order", "<u8"),
        ("price", "<i8"),
        ("lots", "<i8"),
        ("a", "<i8"),
        ("b", "<i8"),
        ("c", "<i8"),
        ("instrument", "<u4"),
        ("kind", "<u2"),
        ("check", "<u2"),
    ]
)
"""One record, `hft::Record`."""


class RecordKind(IntEnum):
    """What a record tells."""

    START = 1
    PACKET = 2
    UPDATE = 3
    SIGNAL = 4
    TIMER = 5
    CLOCK = 6
    NEW = 7
    CANCEL = 8
    REPLACE = 9
    REFUSED = 10
    ROW = 11
    STOP = 12
    END = 13
    WIND_DOWN = 14
    SWAP = 15
    BATCH = 16


def kind_name(record: Any) -> str:
    """The name of a record's kind, or its number where there is none."""
    kind = int(record["kind"])
    return RecordKind(kind).name if kind in set(RecordKind) else f"kind {kind}"


def checksums(journal: NDArray[Any]) -> NDArray[np.uint16]:
    """Each record's checksum as the core computes it, (n,)."""
    words = np.ascontiguousarray(journal).view(np.uint64).reshape(-1, 8).copy()
    words[:, 7] &= np.uint64(0x0000FFFFFFFFFFFF)
    h = np.full(len(journal), 0x9E3779B97F4A7C15, np.uint64)
    with np.errstate(over="ignore"):
        for column in range(8):
            h = (h ^ words[:, column]) * np.uint64(0xFF51AFD7ED558CCD)
            h ^= h >> np.uint64(32)
    return (h ^ (h >> np.uint64(16))).astype(np.uint16)

"""Random but lawful EVENT streams of one instrument: packets of levels and prints, with faults."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hft.types import EVENT, SEEN_BY_BOTH, Flag, Kind, Trading

START = 1_700_000_000_000_000_000


def row(
    ts: int, kind: Kind, side: int = 0, price: int = 0, qty: int = 0, ref_id: int = 0
) -> tuple[Any, ...]:
    return (ts, ts, price, qty, 0, ref_id, 0, 0, int(kind), side, SEEN_BY_BOTH)


def snapshot(rng: np.random.Generator, ts: int, centre: int) -> list[tuple[Any, ...]]:
    rows = [row(ts, Kind.SNAPSHOT_BEGIN)]
    for side in (1, -1):
        for k in rng.choice(12, size=8, replace=False):
            rows.append(
                row(ts, Kind.LEVEL, side, centre - side * (int(k) + 1), int(rng.integers(1, 50)))
            )
    return [*rows, row(ts, Kind.SNAPSHOT_END)]


def packet(rng: np.random.Generator, ts: int, centre: int) -> list[tuple[Any, ...]]:
    rows = []
    for _ in range(int(rng.integers(1, 4))):
        side = int(rng.choice([1, -1]))
        if rng.random() < 0.25:
            rows.append(row(ts, Kind.TRADE, side, centre, int(rng.integers(1, 30))))
        else:
            qty = 0 if rng.random() < 0.45 else int(rng.integers(1, 50))
            rows.append(row(ts, Kind.LEVEL, side, centre - side * int(rng.integers(1, 13)), qty))
    return rows


def random_stream(seed: int, packets: int = 600, *, faults: bool = True) -> npt.NDArray[Any]:
    """Mean gap 1 ms, in whole microseconds; now and then packets share an instant."""
    rng = np.random.default_rng(seed)
    ts, centre = START, 1_000
    rows: list[tuple[Any, ...]] = []
    for n in range(packets):
        ts += int(rng.exponential(1_000)) * 1_000 if rng.random() < 0.9 else 0
        centre += int(rng.choice([-1, 0, 0, 0, 1]))
        if n == 0 or (faults and rng.random() < 0.004):
            if n and rng.random() < 0.5:
                rows.append(row(ts, Kind.STATUS, ref_id=int(Trading.GAP)))
            made = snapshot(rng, ts, centre)
        elif faults and rng.random() < 0.003:
            made = [row(ts, Kind.CLEAR, int(rng.choice([1, -1])))]
        else:
            made = packet(rng, ts, centre)
        *_, last = made
        made[-1] = (*last[:-1], last[-1] | int(Flag.LAST))
        rows += made
    return np.array(rows, dtype=EVENT)

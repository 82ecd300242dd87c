"""The core's legs against the twin's: the same duration at every time of sending."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from naive_legs import Drawn, Leg, Stream, Walk

from hft._core import Latency


def trace(rng: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    ts = np.cumsum(rng.choice([1, 5, 1_000, 40_000], rows)).astype(np.int64)
    return ts + 1_700_000_000_000_000_000, rng.integers(0, 10_000_000, rows)


def times(rng: np.random.Generator, ts: np.ndarray, more: Any = ()) -> np.ndarray:
    """Times on, between, before and after the rows, and where the halves meet."""
    near = np.concatenate([ts + d for d in (-1, 0, 1)])
    middle = (ts[1:] + ts[:-1]) // 2
    far = rng.integers(int(ts[0]) - 10**6, int(ts[-1]) + 10**7, 200)
    return np.concatenate([near, middle, far, np.asarray(more, np.int64)])


@pytest.mark.parametrize("seed", range(5))
def test_recorded_rows_hold_until_the_next(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ts, ns = trace(rng, 20)
    at = times(rng, ts)
    twin = Leg(list(zip(ts.tolist(), ns.tolist(), strict=True)))
    assert Latency.recorded(ts, ns).at(at).tolist() == [twin.at(t) for t in at.tolist()]


@pytest.mark.parametrize("seed", range(5))
def test_samples_are_drawn_by_time_and_number(seed: int) -> None:
    rng = np.random.default_rng(seed)
    _, ns = trace(rng, 7 + seed)
    at, n = rng.integers(0, 1 << 62, 300), rng.integers(0, 5, 300)
    twin = Drawn(ns.tolist(), seed, Stream.ENTRY)
    core = Latency.empirical(ns, seed, int(Stream.ENTRY))
    drawn = [twin.at(t, k) for t, k in zip(at.tolist(), n.tolist(), strict=True)]
    assert core.at(at, n).tolist() == drawn
    assert len(set(drawn)) == len(ns)


@pytest.mark.parametrize("seed", range(8))
def test_a_walk_reads_the_trace_from_block_to_block(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ts, ns = trace(rng, 12 + seed)
    length = int(ts[-1] - ts[0])
    block_ts = np.sort(ts[0] + rng.integers(0, 3 * length, 9))
    block_at = rng.integers(0, len(ts), 9)
    at = times(rng, ts, block_ts)
    at = at[at >= block_ts[0]]
    twin = Walk(
        *(
            list(zip(a.tolist(), b.tolist(), strict=True))
            for a, b in ((ts, ns), (block_ts, block_at))
        )
    )
    core = Latency.walk(ts, ns, block_ts, block_at)
    assert core.at(at).tolist() == [twin.at(t) for t in at.tolist()]

"""Stamps of two clocks: what they tell of the offset, and what holds whatever it is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hft.errors import DataError
from hft.execution.clock_offset import corrected, offset_bounds
from hft.execution.draws import draw_uniform


def stamps(theta: int, seed: int, quantum: int = 1, n: int = 60) -> dict[str, np.ndarray]:
    """True legs and stamps; our clock is `theta` ahead of the venue's."""
    rows = np.arange(n, dtype=np.uint64)
    feed, entry, response = (
        (50_000 + 3_000_000 * draw_uniform(seed, leg, rows) ** 2).astype(np.int64)
        for leg in (1, 2, 3)
    )
    sent = 10**18 + np.arange(n) * 7_654_321  # our clock
    received = sent - 20_000
    event = received - theta - feed
    at_venue = sent - theta + entry
    return {
        "entry": entry,
        "response": response,
        "request": sent,
        "exchange": at_venue // quantum * quantum,
        "answer": at_venue + theta + response,
        "feed_exchange": event // quantum * quantum,
        "feed_receive": received,
    }


@given(st.integers(-(10**10), 10**10), st.integers(0, 99), st.sampled_from([1, 1000, 10**6]))
def test_the_bounds_hold_the_true_offset(theta: int, seed: int, quantum: int) -> None:
    s = stamps(theta, seed, quantum)
    entry, response = s["exchange"] - s["request"], s["answer"] - s["exchange"]
    bounds = offset_bounds(entry, response, s["feed_receive"] - s["feed_exchange"], quantum)
    assert bounds.low <= theta <= bounds.high
    offset = bounds.offset
    assert abs(offset.estimate_ns - theta) <= offset.half_width_ns
    moved, back = corrected(entry, response, offset.estimate_ns)
    assert (moved + back == s["answer"] - s["request"]).all()
    assert (moved >= 0).all()
    assert (back >= 0).all()


def test_a_feed_narrows_the_bounds() -> None:
    s = stamps(123_456, 5)
    entry, response = s["exchange"] - s["request"], s["answer"] - s["exchange"]
    without = offset_bounds(entry, response).offset
    fast = np.array([123_456 + 40_000])
    assert offset_bounds(entry, response, fast).offset.half_width_ns < without.half_width_ns


def test_clocks_that_drift_are_refused() -> None:
    with pytest.raises(DataError, match=r"no single clock offset fits: entry of row 1 .*drifted"):
        offset_bounds(np.array([500, -900]), np.array([800, 1000]))

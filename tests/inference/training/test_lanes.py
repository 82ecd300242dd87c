from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stacks import rows_of

from hft.errors import ConfigError, DataError
from hft.inference.dataset.in_memory import rows_behind
from hft.inference.training.lanes import NO_ROW, lanes_of, window_ends


def forgetting(n, borders):
    """Rows of one column that a run forgets at these numbers."""
    at = np.zeros(n, np.int64)
    at[list(borders)] = 1
    memory = np.cumsum(at)
    return replace(rows_of(np.zeros((n, 1))), memory=memory, stretch=memory)


@given(
    st.integers(1, 4),
    st.integers(1, 9),
    st.integers(0, 40),
    st.sets(st.integers(1, 150), max_size=12),
)
def test_each_row_of_a_lane_comes_once_in_order_and_a_border_begins_anew(lanes, reach, more, at):
    n = 2 * lanes * reach + more
    rows = forgetting(n, {b for b in at if b < n})
    found = lanes_of(rows, slice(0, n), lanes, reach)
    for lane in range(lanes):
        spans = found.at[:, lane]
        flat = spans[spans != NO_ROW]
        assert np.array_equal(flat, found.begins[lane] + np.arange(n // lanes))
        for number, span in enumerate(spans):
            held = span[span != NO_ROW]
            assert len(set(rows.memory[held])) <= 1
            if found.keeps[number, lane]:
                before = spans[number - 1]
                assert NO_ROW not in before
                assert before[-1] + 1 == held[0]
                assert rows.memory[before[-1]] == rows.memory[held[0]]


def test_a_span_ends_early_where_a_run_forgets():
    found = lanes_of(forgetting(9, {4}), slice(0, 9), 1, 3)
    assert found.at[:, 0].tolist() == [[0, 1, 2], [3, -1, -1], [4, 5, 6], [7, 8, -1]]
    assert found.keeps[:, 0].tolist() == [0, 1, 0, 1]


def test_windows_lie_in_one_stretch_of_the_slice():
    rows = forgetting(12, {5})
    known = np.ones(12, bool)
    known[7] = False
    assert window_ends(rows, slice(1, 12), 3, known).tolist() == [3, 4, 8, 9, 10, 11]


def test_a_window_longer_than_every_stretch_is_said():
    rows = forgetting(12, {5})
    with pytest.raises(DataError, match="window of 9 rows: the longest stretch has 7"):
        window_ends(rows, slice(0, 12), 9, np.ones(12, bool))


def test_too_few_rows_for_the_lanes_is_said():
    with pytest.raises(ConfigError, match="12 training rows are too few for 4 lanes"):
        lanes_of(forgetting(12, {}), slice(0, 12), 4, 2)


def test_rows_behind():
    assert rows_behind(np.array([3, 3, 3, 7, 9, 9])).tolist() == [0, 1, 2, 0, 0, 1]
    assert rows_behind(np.empty(0, np.int64)).tolist() == []

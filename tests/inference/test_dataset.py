import numpy as np
import pytest
from event_streams import START, random_stream, row

from hft.errors import DataError
from hft.features import Features, OnPacket, OnTouch, compute_features, imbalance, mid, spread
from hft.inference.dataset import collect, future_moves, split, time_weights
from hft.types import EVENT, Flag, Kind

FEATURES = Features(spread(), imbalance(3), trigger=OnPacket())


@pytest.fixture(scope="module")
def rows():
    return collect(np.array_split(random_stream(4, packets=3_000, faults=False), 7), FEATURES)


def test_rows_are_those_of_the_core(rows):
    ts, x = compute_features(random_stream(4, packets=3_000, faults=False), FEATURES)
    assert rows.ts.tobytes() == ts.tobytes()
    assert rows.x.tobytes() == x.tobytes()


def test_chunks_do_not_change_the_hash(rows):
    again = collect([random_stream(4, packets=3_000, faults=False)], FEATURES)
    assert again.sha256 == rows.sha256


def test_moves_start_after_the_latency_and_end_a_horizon_later(rows):
    events = random_stream(4, packets=3_000, faults=False)
    ts, mids = compute_features(events, Features(mid(), trigger=OnTouch()))
    latency, horizon = 3_000_000, 20_000_000
    moves, known = future_moves(rows, latency, horizon)
    assert 0 < known < len(rows)
    for i in range(0, known, 97):
        start = rows.ts[i] + latency
        before = mids[ts <= start][-1, 0]
        assert moves[i] == mids[ts <= start + horizon][-1, 0] - before
    assert rows.ts[known - 1] + latency + horizon <= ts[-1] < rows.ts[known] + latency + horizon


def test_no_label_of_one_slice_reaches_into_the_next(rows):
    label_ns = 23_000_000
    _, known = future_moves(rows, 3_000_000, 20_000_000)
    parts = split(rows, known, label_ns)
    assert rows.ts[parts.train.stop - 1] + label_ns < rows.ts[parts.calibrate.start]
    assert rows.ts[parts.calibrate.stop - 1] + label_ns < rows.ts[parts.test.start]
    assert parts.test.stop == known
    with pytest.raises(DataError, match="too few to split"):
        split(rows, 3, label_ns)


def test_a_row_weighs_as_long_as_it_was_the_newest():
    ts = np.array([0, 10, 30, 1_000], np.int64)
    assert time_weights(ts, 100).tolist() == pytest.approx(
        (np.array([10, 20, 100, 100]) / 57.5).tolist()
    )


def test_a_storm_is_a_second_with_many_events():
    def second(n, events):
        return [
            row(START + n * 10**9 + k, Kind.LEVEL, 1 - 2 * (k % 2), 100 + 2 * (k % 2), k + 1)
            for k in range(events)
        ]

    events = np.array(
        [r for n in range(9) for r in second(n, 50 if n in (3, 4) else 10)], dtype=EVENT
    )
    events["flags"] |= int(Flag.LAST)
    rows = collect([events[:77], events[77:]], FEATURES)
    stormy = set(((rows.ts[rows.storm] - START) // 10**9).tolist())
    assert stormy == {3, 4}


def test_data_without_a_row_is_refused():
    with pytest.raises(DataError, match="no features row"):
        collect([random_stream(0, packets=1)[:1]], FEATURES)

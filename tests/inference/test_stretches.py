"""What ends a stretch of trading, and that no end is known before its time."""

from __future__ import annotations

import numpy as np
import pytest
from event_streams import START, random_stream, row

from hft.data.books import BookStream
from hft.inference.stretches import NEVER, MarketState, Stretches
from hft.types import EVENT, Flag, Kind, Trading

MS = 1_000_000


def found(ts, two_sided=None, state=None, *, pause=100, one_sided=10, chunks=1):
    ts = np.array(ts, np.int64)
    two_sided = np.ones(len(ts), bool) if two_sided is None else np.array(two_sided, bool)
    state = np.zeros(len(ts), np.int64) if state is None else np.array(state, np.int64)
    stretches = Stretches(pause, one_sided)
    for part in np.array_split(np.arange(len(ts)), chunks):
        stretches.feed(ts[part], ts[part] - 7, two_sided[part], state[part])
    for end, event_end in zip(stretches.ends, stretches.event_ends, strict=True):
        assert event_end == (NEVER if end == NEVER else end - 7)
    return list(zip(stretches.starts, stretches.ends, stretches.causes, strict=True))


def test_trading_without_a_break_is_one_stretch():
    assert found([5, 6, 50, 140]) == [(5, NEVER, "")]


def test_a_silence_ends_a_stretch_once_it_has_lasted_a_pause():
    assert found([0, 100, 201, 210]) == [(0, 200, "silence"), (201, NEVER, "")]


@pytest.mark.parametrize(
    ("state", "cause"),
    [
        (Trading.HALT, "halt"),
        (Trading.AUCTION, "auction"),
        (Trading.CLOSED, "closed"),
        (Trading.GAP, "gap"),
    ],
)
def test_a_status_ends_a_stretch_at_its_packet(state, cause):
    states = [0, 0, int(state), int(state), 0]
    assert found([0, 10, 20, 30, 40], state=states) == [(0, 20, cause), (40, NEVER, "")]


def test_a_side_may_be_missing_for_a_while():
    sides = [True, False, False, True, False, False, True]
    ts = [0, 10, 15, 20, 30, 45, 60]
    assert found(ts, sides) == [(0, 40, "one_sided"), (60, NEVER, "")]
    # In the silence that follows, whichever limit comes first.
    assert found([0, 10, 500], [True, False, True]) == [(0, 20, "one_sided"), (500, NEVER, "")]
    assert found([0, 10, 500], [True, False, True], one_sided=400, pause=50) == [
        (0, 60, "silence"),
        (500, NEVER, ""),
    ]


def test_chunks_do_not_matter():
    rng = np.random.default_rng(5)
    ts = np.cumsum(rng.choice([1, 5, 30, 150], 400, p=[0.4, 0.4, 0.15, 0.05]))
    sides, state = rng.random(400) > 0.2, rng.choice([0, 0, 0, 0, 0, 0, 0, 1, 4], 400)
    whole = found(ts, sides, state)
    assert len(whole) > 20
    for chunks in (3, 40, 400):
        assert found(ts, sides, state, chunks=chunks) == whole


def test_what_comes_later_changes_no_stretch_before():
    rng = np.random.default_rng(6)
    ts = np.cumsum(rng.choice([1, 5, 30, 150], 300))
    sides, state = rng.random(300) > 0.3, rng.choice([0, 0, 0, 0, 1], 300)
    whole = Stretches(100, 10)
    whole.feed(ts, ts, sides, state)
    for n in range(1, 300, 13):
        part = Stretches(100, 10)
        part.feed(ts[:n], ts[:n], sides[:n], state[:n])
        at = np.arange(ts[0], ts[n - 1])
        assert np.array_equal(part.of(at) >= 0, whole.of(at) >= 0)


def test_a_book_is_in_a_gap_until_its_snapshot_is_whole():
    events = random_stream(3, packets=2_000)
    events["flags"] |= int(Flag.LAST)  # a snapshot comes in pieces
    whole = np.array([state != Trading.GAP for state in _states(events, chunk=len(events))])
    assert 0 < whole.sum() < len(whole)
    for chunk in (1, 7, 64):
        assert np.array_equal(
            whole, [state != Trading.GAP for state in _states(events, chunk=chunk)]
        )
    # The core's own word, packet by packet.
    book = BookStream()
    for n in range(len(events)):
        book.feed(events[n : n + 1])
        assert (book.state == "LIVE") == whole[n]


def _states(events, chunk):
    book, state, before, made = BookStream(), MarketState(), 0, []
    for start in range(0, len(events), chunk):
        part = events[start : start + chunk]
        made += state.feed(part, book.feed(part), before).tolist()
        before += len(part)
    return made


def test_rows_of_a_gap_flag_are_told_from_prices():
    rows = [
        row(START, Kind.LEVEL, 1, 99, 5),
        row(START, Kind.LEVEL, -1, 101, 5),
        row(START + MS, Kind.STATUS, ref_id=int(Trading.GAP)),
        row(START + 2 * MS, Kind.LEVEL, 1, 98, 5),
        row(START + 3 * MS, Kind.SNAPSHOT_BEGIN),
        row(START + 4 * MS, Kind.LEVEL, 1, 99, 5),
        row(START + 5 * MS, Kind.SNAPSHOT_END),
    ]
    events = np.array(rows, EVENT)
    events["flags"] |= int(Flag.LAST)
    assert _states(events, 2) == [0, 0, 4, 4, 4, 4, 0]

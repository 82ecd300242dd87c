"""What ends a stretch of trading, and that no end is known before its time."""

from __future__ import annotations

import numpy as np
import pytest
from event_streams import START, random_stream, row

from hft.data.books import BookStream
from hft.inference.dataset.stretches import NEVER, SNAPSHOT, MarketState, Stretches
from hft.types import EVENT, Flag, Kind, Trading

MS = 1_000_000


def made(ts, two_sided=None, state=None, lost=None, *, pause=100, one_sided=10, chunks=1):
    ts = np.array(ts, np.int64)
    two_sided = np.ones(len(ts), bool) if two_sided is None else np.array(two_sided, bool)
    state = np.zeros(len(ts), np.int64) if state is None else np.array(state, np.int64)
    lost = np.zeros(len(ts), bool) if lost is None else np.array(lost, bool)
    stretches = Stretches(pause, one_sided)
    for part in np.array_split(np.arange(len(ts)), chunks):
        stretches.feed(ts[part], ts[part] - 7, two_sided[part], state[part], lost[part])
    for end, event_end in zip(stretches.ends, stretches.event_ends, strict=True):
        assert event_end == (NEVER if end == NEVER else end - 7)
    return stretches


def found(*args, **options):
    stretches = made(*args, **options)
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
        (SNAPSHOT, "snapshot"),
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


def test_lost_messages_end_a_stretch_even_if_the_same_packet_brings_the_book_back():
    stretches = made([0, 10, 20, 30], lost=[0, 0, 1, 0])
    assert stretches.starts == [0, 20]
    assert stretches.ends == [20, NEVER]
    assert stretches.causes == ["gap", ""]
    assert stretches.of(np.array([19, 20])).tolist() == [0, 1]


def test_a_run_forgets_at_lost_messages_and_not_at_a_halt():
    """Lost while halted: what begins afterwards is fresh all the same."""
    state = [0, 1, 0, 1, 1, 0, 4, 0]
    lost = [0, 0, 0, 0, 1, 0, 1, 0]
    stretches = made(np.arange(8) * 10, state=state, lost=lost)
    assert stretches.causes == ["halt", "halt", "gap", ""]
    assert stretches.fresh == [True, False, True, True]
    stretches.end(90, 83, "day")
    stretches.feed(*(np.array([each]) for each in (95, 88, True, 0, False)))
    assert stretches.fresh[-1]


def test_chunks_do_not_matter():
    rng = np.random.default_rng(5)
    ts = np.cumsum(rng.choice([1, 5, 30, 150], 400, p=[0.4, 0.4, 0.15, 0.05]))
    sides, state = rng.random(400) > 0.2, rng.choice([0, 0, 0, 0, 0, 0, 0, 1, 4], 400)
    lost = rng.random(400) > 0.97
    whole = found(ts, sides, state, lost)
    assert len(whole) > 20
    for chunks in (3, 40, 400):
        assert found(ts, sides, state, lost, chunks=chunks) == whole


def test_what_comes_later_changes_no_stretch_before():
    rng = np.random.default_rng(6)
    ts = np.cumsum(rng.choice([1, 5, 30, 150], 300))
    sides, state = rng.random(300) > 0.3, rng.choice([0, 0, 0, 0, 1], 300)
    lost = rng.random(300) > 0.97
    whole = Stretches(100, 10)
    whole.feed(ts, ts, sides, state, lost)
    for n in range(1, 300, 13):
        part = Stretches(100, 10)
        part.feed(ts[:n], ts[:n], sides[:n], state[:n], lost[:n])
        at = np.arange(ts[0], ts[n - 1])
        assert np.array_equal(part.of(at) >= 0, whole.of(at) >= 0)


def fed(events, chunk):
    """State and losses packet by packet."""
    book, market, before = BookStream(), MarketState(), 0
    states, losses = [], []
    for start in range(0, len(events), chunk):
        part = events[start : start + chunk]
        state, lost = market.feed(part, book.feed(part), before)
        states += state.tolist()
        losses += lost.tolist()
        before += len(part)
    return states, losses


def test_a_book_is_not_whole_until_its_snapshot_is():
    events = random_stream(3, packets=2_000)
    events["flags"] |= int(Flag.LAST)  # a snapshot comes in pieces
    states, losses = fed(events, len(events))
    assert {0, int(Trading.GAP), SNAPSHOT} == set(states)
    assert sum(losses) == (events["kind"] == Kind.STATUS).sum() > 0
    for chunk in (1, 7, 64):
        assert fed(events, chunk) == (states, losses)
    core, words = BookStream(), {"LIVE": 0, "GAP": int(Trading.GAP), "SYNCING": SNAPSHOT}
    for n in range(len(events)):
        core.feed(events[n : n + 1])
        assert words[core.state] == states[n]


def test_a_loss_within_a_packet_is_the_packet_s():
    events = random_stream(3, packets=2_000)
    gaps = int((events["kind"] == Kind.STATUS).sum())
    states, losses = fed(events, len(events))
    assert set(states) == {0}  # whole again when the packet ends
    assert sum(losses) == gaps > 0
    for chunk in (1, 2, 9):
        assert fed(events, chunk) == (states, losses)


def test_levels_between_a_loss_and_its_snapshot_are_no_book():
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
    states, losses = fed(events, 2)
    assert states == [0, 0, 4, 4, SNAPSHOT, SNAPSHOT, 0]
    assert losses == [False, False, True, False, False, False, False]

from itertools import pairwise

import numpy as np
import pytest
from event_streams import START, random_stream, row

from hft.data.books import NO_PRICE, BookStream
from hft.errors import ConfigError, DataError
from hft.features import (
    Every,
    Features,
    OnPacket,
    OnTouch,
    compute_features,
    depth_lots,
    imbalance,
    level_distance,
    mid,
    spread,
)
from hft.inference.dataset.classes import UNKNOWN, MoveWeights
from hft.inference.dataset.extract import LONGEST_ROW_NS, Extractor, Wanted
from hft.inference.dataset.in_memory import collect, split
from hft.inference.dataset.label_latency import LabelLatency, constant
from hft.inference.dataset.splitting import Cuts
from hft.types import EVENT, Flag, Kind, Trading

FEATURES = Features(spread(), imbalance(3), trigger=OnPacket())
MS = 1_000_000
LATENCY, HORIZONS = 3 * MS, (5 * MS, 20 * MS)


def extracted(events, *, chunks=1, **wanted):
    """Blocks joined: everything about every row."""
    given = {"features": FEATURES, "latency": constant(LATENCY), "horizons_ns": HORIZONS}
    extractor = Extractor(Wanted(**(given | wanted)))
    blocks = [extractor.feed(part) for part in np.array_split(events, chunks) if len(part)]
    blocks.append(extractor.rest())
    fields = {
        "ts": [b.ts for b in blocks],
        "x": [b.x for b in blocks],
        "latency": [b.latency_ns for b in blocks],
        "alive": [b.alive_ns for b in blocks],
        "number": [b.number for b in blocks],
        "filled": [b.filled for b in blocks],
        "levels": [b.levels for b in blocks],
        "stretch": [b.labels.stretch for b in blocks],
        "mid": [b.labels.mid for b in blocks],
        "move": [b.labels.move for b in blocks],
        "long": [b.labels.long for b in blocks],
        "short": [b.labels.short for b in blocks],
    }
    return {name: np.concatenate(parts) for name, parts in fields.items()}, extractor


@pytest.fixture(scope="module")
def events():
    return random_stream(4, packets=3_000)


@pytest.fixture(scope="module")
def rows(events):
    calm = random_stream(4, packets=3_000, faults=False)
    return collect([np.array_split(calm, 7)], FEATURES, latency_ns=LATENCY, horizons_ns=HORIZONS)


# ---- features ----


def test_rows_are_those_of_the_core(rows):
    ts, x = compute_features(random_stream(4, packets=3_000, faults=False), FEATURES)
    assert rows.ts.tobytes() == ts.tobytes()
    assert rows.x.tobytes() == x.tobytes()


def test_chunks_change_nothing(events):
    whole, _ = extracted(events)
    assert len(whole["ts"]) > 1_000
    for chunks in (2, 33, 700):
        again, extractor = extracted(events, chunks=chunks)
        for name, values in whole.items():
            assert np.array_equal(values, again[name], equal_nan=values.dtype == float), name
    assert len(extractor._waiting) == 0


def test_a_hash_is_of_the_events(rows):
    calm = random_stream(4, packets=3_000, faults=False)
    again = collect([[calm]], FEATURES, latency_ns=LATENCY, horizons_ns=HORIZONS)
    assert again.sha256 == rows.sha256


@pytest.mark.parametrize("trigger", [OnPacket(), OnTouch(), Every("2ms")])
def test_another_future_changes_no_feature_and_no_label_before_it(events, trigger):
    features = Features(spread(), imbalance(3), trigger=trigger)
    whole, _ = extracted(events, features=features)
    other = events.copy()
    cut = len(events) // 2
    cut = int(np.flatnonzero(events["flags"][:cut] & int(Flag.LAST))[-1]) + 1
    then = int(events["ts_recv"][cut])
    other["qty"][cut:] = other["qty"][cut:] * 3 + 1
    other["price"][cut:] += 5 * (other["kind"][cut:] == Kind.TRADE)
    changed, _ = extracted(other, features=features)
    n = np.searchsorted(whole["ts"], then)
    assert n > 100
    for name in ("ts", "x", "mid", "stretch", "number", "levels"):
        assert np.array_equal(whole[name][:n], changed[name][:n]), name
    for h, horizon in enumerate(HORIZONS):
        before = whole["ts"] + LATENCY + horizon < then
        assert before.sum() > 50
        for name in ("move", "long", "short"):
            a, b = whole[name][: before.sum(), h], changed[name][: before.sum(), h]
            assert np.array_equal(a, b, equal_nan=True)


def test_truncating_the_data_changes_no_earlier_label(events):
    whole, _ = extracted(events)
    for cut in range(500, len(events), 777):
        part, _ = extracted(events[:cut])
        n = len(part["ts"])
        assert np.array_equal(part["x"], whole["x"][:n])
        assert np.array_equal(part["stretch"], whole["stretch"][:n])
        known = ~np.isnan(part["move"])
        assert np.array_equal(part["move"][known], whole["move"][:n][known])
        missing = np.isnan(part["move"]) & ~np.isnan(whole["move"][:n])
        end = part["ts"][:, None] + LATENCY + np.array(HORIZONS)
        ended = events[:cut]["flags"] & int(Flag.LAST) != 0
        assert (end[missing] >= events["ts_recv"][:cut][ended].max()).all()


# ---- labels ----


def test_moves_start_after_the_latency_and_end_a_horizon_later(rows):
    events = random_stream(4, packets=3_000, faults=False)
    ts, mids = compute_features(events, Features(mid(), trigger=OnTouch()))
    for horizon in HORIZONS:
        moves = rows.moves[horizon]
        known = np.flatnonzero(~np.isnan(moves))
        assert len(known) > 2_000
        for i in known[::97]:
            start = rows.ts[i] + LATENCY
            before = mids[ts <= start][-1, 0]
            assert moves[i] == mids[ts <= start + horizon][-1, 0] - before


def test_latency_shifts_labels_exactly():
    """One rise of 4 ticks at 100 ms: seen by the rows whose label holds that instant."""
    rows = [
        row(START + n * MS, Kind.LEVEL, side, price, 5 + n)
        for n in range(300)
        for side, price in (((1, 100), (-1, 102)) if n < 100 else ((1, 104), (-1, 106)))
    ]
    gone = [row(START + 100 * MS, Kind.LEVEL, -1, 102, 0)]
    events = np.array(rows[:200] + gone + rows[200:], EVENT)
    last = np.append(np.diff(events["ts_recv"]) > 0, True)
    events["flags"][last] |= int(Flag.LAST)
    for latency in (0, 1, 7 * MS, 31 * MS + 5):
        found, _ = extracted(events, latency=constant(latency), horizons_ns=(20 * MS,))
        start = found["ts"] - START + latency
        up = (start < 100 * MS) & (start + 20 * MS >= 100 * MS)
        known = start + 20 * MS < 299 * MS
        assert up.sum() == 20
        assert np.array_equal(
            found["move"][:, 0], np.where(known, np.where(up, 4, 0), np.nan), True
        )
        assert set(found["long"][up, 0].tolist()) == {2.0}  # 104 - 102
        assert set(found["short"][up, 0].tolist()) == {-6.0}  # 100 - 106


def test_a_label_is_of_the_venue_s_market():
    """A feed that is late by d makes every row d later; its order is as late at the venue."""
    prompt = random_stream(9, packets=2_000, faults=False)
    late = prompt.copy()
    late["ts_recv"] += 4 * MS
    now, _ = extracted(prompt, latency=constant(LATENCY + 4 * MS))
    then, _ = extracted(late)
    assert np.array_equal(then["ts"], now["ts"] + 4 * MS)
    for name in ("x", "mid", "move", "long", "short"):
        assert np.array_equal(then[name], now[name], equal_nan=True)


def test_a_drawn_latency_is_a_row_s_own(events):
    class Leg:
        def at(self, ts):
            return ts // 1_000 % 5 * MS

    drawn, _ = extracted(events, latency=LabelLatency("drawn", (Leg(),), None))
    for latency in range(5):
        same, _ = extracted(events, latency=constant(latency * MS))
        mine = drawn["latency"] == latency * MS
        assert mine.sum() > 100
        assert np.array_equal(drawn["move"][mine], same["move"][mine], equal_nan=True)


@pytest.mark.parametrize("state", [Trading.HALT, Trading.AUCTION, Trading.CLOSED])
def test_no_label_and_no_number_crosses_a_break(state):
    """A market that halts twice, and once falls silent."""
    events = random_stream(8, packets=3_000, faults=False)
    ends = np.flatnonzero(events["flags"] & int(Flag.LAST))
    a, b, c = (int(ends[n]) + 1 for n in (800, 1_200, 2_000))
    halt = np.array([row(int(events["ts_recv"][a]), Kind.STATUS, ref_id=int(state))], EVENT)
    back = np.array([row(int(events["ts_recv"][b]), Kind.STATUS, ref_id=0)], EVENT)
    halt["flags"] |= int(Flag.LAST)
    back["flags"] |= int(Flag.LAST)
    events = np.concatenate([events[:a], halt, events[a:b], back, events[b:]])
    for name in ("ts_event", "ts_recv"):
        events[name][c + 2 :] += 50_000 * MS
    found, extractor = extracted(events, pause_ns=500 * MS)
    stretches = extractor.stretches
    assert stretches.causes == [state.name.lower(), "silence", ""]
    assert extractor.outside > 0
    end = found["ts"] + LATENCY + HORIZONS[1]
    known = ~np.isnan(found["move"][:, 1])
    assert (end[known] < np.array(stretches.ends)[found["stretch"][known]]).all()
    crosses = end >= np.array(stretches.ends)[found["stretch"]]
    assert crosses.sum() > 10
    assert np.isnan(found["move"][crosses, 1]).all()
    for number in range(3):
        mine = found["number"][found["stretch"] == number]
        assert np.array_equal(mine, np.arange(len(mine)))
        assert len(mine) > 100


@pytest.mark.parametrize("chunks", [1, 4, 5, 6])
def test_a_halt_at_the_instant_of_a_row_leaves_it_out_wherever_a_chunk_ends(chunks):
    ticks = [
        row(START + n * MS, Kind.LEVEL, side, 101 - side, 5 + n)
        for n in range(40)
        for side in (1, -1)
    ]
    halt = row(START + 20 * MS, Kind.STATUS, ref_id=int(Trading.HALT))
    back = row(START + 25 * MS, Kind.STATUS, ref_id=int(Trading.OPEN))
    events = np.array([*ticks[:42], halt, *ticks[42:52], back, *ticks[52:]], EVENT)
    events["flags"] |= int(Flag.LAST)
    wanted = {"horizons_ns": (2 * MS,), "latency": constant(0)}
    found, _ = extracted(events, chunks=chunks, **wanted)
    at = (found["ts"] - START) // MS
    assert set(at.tolist()) == {*range(20), *range(25, 40)}
    whole, _ = extracted(events, **wanted)
    assert np.array_equal(found["ts"], whole["ts"])
    assert np.array_equal(found["number"], whole["number"])
    assert np.array_equal(found["alive"], whole["alive"])


def test_lost_messages_are_never_crossed(events):
    found, extractor = extracted(events)
    gaps = events["ts_recv"][events["kind"] == Kind.STATUS]
    assert extractor.stretches.causes.count("gap") == len(gaps) >= 2
    assert np.array(extractor.stretches.fresh).sum() == len(gaps) + 1
    end = found["ts"][:, None] + LATENCY + np.array(HORIZONS)
    over = (found["ts"][:, None, None] < gaps) & (end[:, :, None] >= gaps)
    assert over.any()
    assert np.isnan(found["move"][over.any(axis=2)]).all()


def troubled(seed):
    """Lost messages, missing sides, two halts, silences."""
    events = random_stream(seed, packets=3_000)
    ends = np.flatnonzero(events["flags"] & int(Flag.LAST)) + 1
    states = (
        (1_900, Trading.OPEN),
        (1_850, Trading.HALT),
        (560, Trading.OPEN),
        (500, Trading.HALT),
    )
    for packet, state in states:  # the last first: places before it stay what they are
        at = int(ends[packet])
        status = np.array([row(int(events["ts_recv"][at]), Kind.STATUS, ref_id=int(state))], EVENT)
        status["flags"] |= int(Flag.LAST)
        events = np.concatenate([events[:at], status, events[at:]])
    ends = np.flatnonzero(events["flags"] & int(Flag.LAST)) + 1
    for name in ("ts_event", "ts_recv"):
        events[name][ends[2_400] :] += 30 * MS
    return events


def packets_of(events):
    """Of each packet: time, two sides, open and whole, loss, mid; by the core, one at a time."""
    book, start, found = BookStream(), 0, []
    for end in np.flatnonzero(events["flags"] & int(Flag.LAST)) + 1:
        part, start = events[start:end], end
        (touch,) = book.feed(part)
        two_sided = NO_PRICE not in (touch["bid"], touch["ask"])
        whole = book.state == "LIVE" and book.trading == Trading.OPEN
        lost = ((part["kind"] == Kind.STATUS) & (part["ref_id"] == Trading.GAP)).any()
        mid = (touch["bid"] / 2 + touch["ask"] / 2) if two_sided else np.nan
        found.append((touch["ts_recv"], two_sided, whole, lost, mid))
    return (np.array(column) for column in zip(*found, strict=True))


@pytest.mark.parametrize("seed", [11, 12, 13])
def test_labels_are_known_exactly_where_nothing_breaks(seed):
    """Said anew, without stretches: what must not lie between a row and the end of its label."""
    limit, pause = MS // 2, 5 * MS
    events = troubled(seed)
    found, extractor = extracted(events, chunks=9, one_sided_ns=limit, pause_ns=pause)
    assert {"gap", "halt", "silence", "one_sided"} <= set(extractor.stretches.causes)
    ts, two_sided, whole, lost, mid = packets_of(events)
    quiet = ts[:-1][np.diff(ts) > pause] + pause
    gone = []
    for n in np.flatnonzero(~two_sided & np.append(True, two_sided[:-1])):
        back = np.flatnonzero(two_sided[n:])
        until = ts[n + back[0]] if len(back) else ts[-1]
        gone += [ts[n] + limit] if until - ts[n] > limit else []

    def broken(start, end):
        inside = (ts > start) & (ts <= end)
        ends = np.array([*quiet, *gone])
        return (
            (~whole | lost)[inside].any() or ((ends > start) & (ends <= end)).any() or end >= ts[-1]
        )

    good = two_sided & whole
    for h, horizon in enumerate(HORIZONS):
        for n in range(0, len(found["ts"]), 3):
            start, move = int(found["ts"][n]), found["move"][n, h]
            first, last = start + LATENCY, start + LATENCY + horizon
            assert np.isnan(move) == broken(start, last)
            if not np.isnan(move):
                assert move == mid[good & (ts <= last)][-1] - mid[good & (ts <= first)][-1]
    assert 0.1 < np.isnan(found["move"][:, 1]).mean() < 0.9


# ---- missing values, depth ----


def one_sided(gone_ms):
    """Quotes every ms; from 100 ms on there are no asks for a while. Clocked rows miss."""
    rows = []
    for n in range(300):
        gone = 100 <= n < 100 + gone_ms
        rows.append(row(START + n * MS, Kind.LEVEL, 1, 100, 5 + n % 3))
        rows.append(row(START + n * MS, Kind.LEVEL, -1, 102, 0 if gone else 5))
    events = np.array(rows, EVENT)
    events["flags"][1::2] |= int(Flag.LAST)
    return events


CLOCKED = Features(spread(), imbalance(1), trigger=Every("5ms"))


def test_a_clock_that_strikes_while_a_side_is_missing_repeats_its_row():
    found, extractor = extracted(one_sided(31), features=CLOCKED, one_sided_ns=50 * MS)
    assert extractor.stretches.causes == [""]
    assert (np.diff(found["ts"]) == 5 * MS).all()
    filled = found["filled"]
    assert 5 <= filled.sum() <= 7
    first = int(np.argmax(filled))
    assert np.array_equal(
        found["x"][filled], np.repeat(found["x"][first - 1][None], filled.sum(), 0)
    )
    assert np.array_equal(found["number"], np.arange(len(found["ts"])))


def test_beyond_the_limit_rows_are_refused_and_the_stretch_ends():
    found, extractor = extracted(one_sided(100), features=CLOCKED, one_sided_ns=50 * MS)
    assert extractor.stretches.causes == ["one_sided", ""]
    gap = np.diff(found["ts"]).max()
    assert 45 * MS <= gap <= 60 * MS
    assert found["number"][-1] < len(found["ts"]) - 1


def test_repeated_rows_do_not_wait_for_the_side_to_come_back():
    """What is written before the side returns is what would be written if it never did."""
    events = one_sided(31)
    whole, _ = extracted(events, features=CLOCKED, one_sided_ns=50 * MS)
    for cut in range(200, 270, 2):
        part, _ = extracted(events[:cut], features=CLOCKED, one_sided_ns=50 * MS)
        n = len(part["ts"])
        assert np.array_equal(part["ts"], whole["ts"][:n])
        assert np.array_equal(part["x"], whole["x"][:n])


def test_levels_tell_what_is_padding():
    features = Features(
        *(depth_lots(1, n) for n in (1, 2, 4)), level_distance(-1, 3), trigger=OnPacket()
    )
    found, _ = extracted(random_stream(2, packets=2_000), features=features)
    plain = compute_features(random_stream(2, packets=2_000), features)
    assert np.array_equal(found["x"], plain[1][np.isin(plain[0], found["ts"])])
    bid, ask = found["levels"].T
    assert set(bid.tolist()) >= {1, 2, 3, 4}
    assert set(ask.tolist()) <= {1, 2, 3}
    for column, level in enumerate((1, 2, 4)):
        assert np.array_equal(found["x"][:, column] > 0, bid >= level)


# ---- weights, storms, classes ----


def test_a_row_weighs_as_long_as_it_was_the_newest(rows):
    alive = np.minimum(np.diff(rows.ts), LONGEST_ROW_NS)
    assert np.array_equal(rows.alive_ns[:-1], alive)
    assert rows.weight.mean() == pytest.approx(1.0)


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
    rows = collect(
        [[events[:77], events[77:]]], FEATURES, latency_ns=0, horizons_ns=(1,), longest_row_ns=1
    )
    stormy = set(((rows.ts[rows.storm] - START) // 10**9).tolist())
    assert stormy == {3, 4}


def test_classes_by_share_and_by_ticks():
    weights = MoveWeights()
    weights.add(np.array([0.0, 0.5, -0.5, 3.0, np.nan]), np.array([1.0, 1.0, 1.0, 1.0, 9.0]))
    weights.add(np.array([-2.0]), np.array([1.0]))
    share = weights.classes(0.34, None)
    assert share.threshold_ticks == 0.5
    assert share.of(np.array([-2.0, -0.5, 0.0, 0.5, 3.0, np.nan])).tolist() == [
        0, 1, 1, 1, 2, UNKNOWN,
    ]  # fmt: skip
    assert share.move_ticks == (-2.0, 0.0, 3.0)
    assert weights.classes(None, 0.0).of(np.array([0.5, -0.5])).tolist() == [2, 0]
    with pytest.raises(ConfigError, match=r"no training row is down or up with a threshold of 5"):
        weights.classes(None, 5.0)


# ---- splits ----


@pytest.mark.parametrize("folds", [1, 3])
def test_purge_and_embargo_leave_no_overlap(folds):
    rng = np.random.default_rng(1)
    ts = np.sort(rng.integers(0, 1_000_000, 20_000))
    label_end = ts + rng.integers(100, 3_000, len(ts))
    tested = np.zeros(len(ts), int)
    for fold in Cuts(folds=folds, embargo_ns=5_000).by_time([(0, 999_999)]):
        held = [part.holds(ts, label_end) for part in fold]
        for before, after in pairwise(held):
            assert label_end[before].max() + 5_000 <= ts[after].min()
            assert not (before & after).any()
        tested += held[2]
        purged = fold[0].purges(ts, label_end)
        assert purged > 0
        assert held[0].sum() + purged == (ts < fold[0].end_ts).sum()
        assert fold[1].embargoes(ts) == ((ts >= fold[1].border_ts) & (ts < fold[1].start_ts)).sum()
    assert tested.max() == 1
    assert 0.23 * len(ts) < tested.sum() < 0.26 * len(ts)


def test_nights_are_no_time():
    """Two stretches of 100 with a night between: 60 % of 200 lie 20 into the second."""
    fold = Cuts().by_time([(1_000, 1_100), (9_000, 9_100)])[0]
    assert [part.border_ts for part in fold] == [1_000, 9_020, 9_050]


def test_borders_between_days_are_midnights():
    day = 86_400_000_000_000
    fold = Cuts().by_day([day * n for n in range(10, 20)], 20 * day - 1)[0]
    assert [part.border_ts // day for part in fold] == [10, 16, 18]
    assert fold[2].end_ts == 20 * day
    with pytest.raises(ConfigError, match="2 days are too few for 1 folds of whole days"):
        Cuts().by_day([0, day], 2 * day)


def test_no_label_of_one_slice_reaches_into_the_next(rows):
    parts = split(rows, Cuts())
    assert rows.label_end[parts.train].max() < rows.ts[parts.calibrate.start]
    assert rows.label_end[parts.calibrate].max() < rows.ts[parts.test.start]
    few = collect(
        [[random_stream(4, packets=40, faults=False)]],
        FEATURES,
        latency_ns=LATENCY,
        horizons_ns=HORIZONS,
    )
    with pytest.raises(DataError, match="too few to split"):
        split(few, Cuts())


@pytest.mark.parametrize(
    ("cuts", "words"),
    [
        ({"shares": (0.9, 0.1)}, "want both above 0 and less than 1 together"),
        ({"folds": 0}, "folds is 0"),
    ],
)
def test_cuts_that_leave_nothing_are_refused(cuts, words):
    with pytest.raises(ConfigError, match=words):
        Cuts(**cuts)


def test_data_without_a_row_is_refused():
    with pytest.raises(DataError, match="no features row"):
        collect([[random_stream(0, packets=1)[:1]]], FEATURES, latency_ns=0, horizons_ns=HORIZONS)

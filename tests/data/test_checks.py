"""Every rule finds its fault and names the first row; repair mends or counts."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from hft.data import Checker, check, repair
from hft.data.exact import duration, on_grid
from hft.data.repairs import set_last, unsplit
from hft.errors import DataError, OutOfOrder, SchemaError, SequenceGap
from hft.types import EVENT, SEEN_BY_BOTH, Flag, Kind


def test_a_sound_feed_passes(feed, spec) -> None:
    report = check(feed, spec, sequence="contiguous")
    assert report.ok
    assert report.require().rows == len(feed)
    assert 2_000_000 <= report.least_latency_ns <= 3_000_000


FAULTS = [
    ("kind", 99, "kind is 99", DataError),
    ("flags", 0, "flags are 0x0", DataError),
    ("flags", 0x8003, "flags are 0x8003", DataError),
    ("side", 0, "side of a LEVEL row is 0", DataError),
    ("side", 3, "side of a LEVEL row is 3", DataError),
    ("qty", -5, "qty of a LEVEL row is -5", DataError),
    ("price", -5, "price of a LEVEL row is -5", DataError),
    ("price", 0, "price of a LEVEL row is 0", DataError),
    ("price", 10**16, "is beyond 9000000000000000", DataError),
    ("qty", 2**62, "is beyond 9000000000000000", DataError),
    ("ts_event", -1, "no time between 1970 and 2200", DataError),
    ("ts_recv", 8_000_000_000_000_000_000, "1970 and 2200", DataError),
]


@pytest.mark.parametrize(("field", "value", "says", "error"), FAULTS)
def test_one_bad_row_is_named(feed, spec, field: str, value: int, says: str, error) -> None:
    feed[field][30] = value
    report = check(feed, spec)
    assert not report.ok
    with pytest.raises(error, match=rf"BTCUSDT\.TEST: row 30: .*({says})"):
        report.require()


def test_a_print_of_nothing_is_refused(feed, spec) -> None:
    feed["qty"][4] = 0
    with pytest.raises(DataError, match="row 4: qty of a TRADE row is 0 lots, want at least 1"):
        check(feed, spec).require()


def test_payloads_of_status_and_datum(feed, spec) -> None:
    feed["kind"][3], feed["ref_id"][3] = Kind.STATUS, 9
    feed["kind"][6], feed["order_id"][6] = Kind.DATUM, 9
    report = check(feed, spec)
    assert report.findings[0].count == 2
    with pytest.raises(DataError, match="STATUS row is 9"):
        report.require()


def test_time_that_goes_back_on_each_clock(feed, spec) -> None:
    bad = feed.copy()
    bad["ts_event"][30:33] -= 21_000_000
    with pytest.raises(OutOfOrder, match=r"row 30: ts_event .* goes back 1 ms on the venue's"):
        check(bad, spec).require()
    feed["ts_recv"][30] += 15_000_000
    with pytest.raises(OutOfOrder, match=r"row 31: ts_recv .* goes back 15 ms on the receiver's"):
        check(feed, spec).require()


def test_negative_latency_is_refused(feed, spec) -> None:
    feed["ts_recv"][:] -= 1_270_000_000
    report = check(feed, spec)
    assert report.findings[0].count == len(feed)
    with pytest.raises(DataError, match=r"row 0: .* before ts_event .* clock is behind"):
        report.require()


@pytest.mark.parametrize("sequence", ["increasing", "contiguous"])
def test_sequence(feed, spec, sequence) -> None:
    feed["seq"][60:] -= 2
    with pytest.raises(SequenceGap, match="seq is 19 after 20"):
        check(feed, spec, sequence=sequence).require()
    feed["seq"][60:] += 12
    assert check(feed, spec, sequence="increasing").ok
    with pytest.raises(SequenceGap, match="seq is 31 after 20"):
        check(feed, spec, sequence="contiguous").require()
    assert check(feed, spec).ok


def test_halves_are_checked_on_their_own_clock(feed, spec) -> None:
    venue, us = feed[20:21].copy(), feed[20:21].copy()
    venue["flags"], us["flags"] = Flag.SEEN_BY_VENUE, Flag.SEEN_BY_US | Flag.LAST
    split = np.concatenate([feed[:5], venue, feed[5:20], us, feed[21:]])
    assert "order of ts_event" in {f.rule for f in check(split, spec).findings}
    split["ts_event"][5] = split["ts_event"][4]
    assert check(split, spec).ok  # our half may carry a venue time that is past
    assert len(unsplit(split)) == len(feed)
    with pytest.raises(DataError, match="no pairs"):
        unsplit(np.delete(split, 5))


@pytest.mark.parametrize("size", [1, 7, 100, 1000])
def test_chunks_find_what_the_whole_finds(feed, spec, size: int) -> None:
    feed["ts_recv"][100] = feed["ts_recv"][99] - 1
    feed["qty"][200] = -1
    feed["seq"][201] = 0
    whole = check(feed, spec, sequence="contiguous")
    parts = Checker(spec, sequence="contiguous")
    for start in range(0, len(feed), size):
        parts.feed(feed[start : start + size])
    assert parts.report() == whole


def test_negative_prices_on_demand(feed, spec) -> None:
    feed["price"] -= 700_000
    assert not check(feed, spec).ok
    assert check(feed, spec, negative_price=True).ok
    spread = msgspec.structs.replace(spec, negative_price=True)
    assert check(feed, spread).ok
    assert len(repair(feed, spread)[0]) == len(feed)


def test_wrong_layout() -> None:
    with pytest.raises(SchemaError, match="EVENT"):
        check(np.zeros((4, 8)))


def test_repair_of_a_sound_feed_changes_nothing(feed, spec) -> None:
    mended, report = repair(feed, spec)
    assert report.ok
    assert report.repaired == {}
    assert (mended == feed).all()


def test_repair_drops_invalid_rows_and_hands_on_last(feed, spec) -> None:
    feed["qty"][5] = -1  # the last row of its packet
    feed["kind"][30] = 77
    before = feed.copy()
    mended, report = repair(feed, spec)
    assert report.ok
    assert report.repaired == {"rows dropped: kind": 1, "rows dropped: qty": 1}
    assert len(mended) == len(feed) - 2
    assert mended["flags"][4] & Flag.LAST
    assert (feed == before).all()


def test_repair_sorts_a_shuffled_feed(feed, spec) -> None:
    order = np.random.default_rng(5).permutation(len(feed))
    mended, report = repair(feed[order], spec)
    assert report.ok
    assert report.repaired["rows sorted by ts_recv"] > 0
    assert sorted(mended["ts_recv"].tolist()) == feed["ts_recv"].tolist()


def test_repair_leaves_a_clock_that_is_behind(feed, spec) -> None:
    feed["ts_recv"] -= 10_000_000
    with pytest.raises(DataError, match="clock is behind"):
        repair(feed, spec)[1].require()


def test_set_last_ends_packets_of_equal_times(feed) -> None:
    wanted = feed["flags"].copy()
    wanted[-1] |= int(Flag.LAST)
    feed["flags"] = SEEN_BY_BOTH
    set_last(feed)
    assert (feed["flags"] == wanted).all()


def test_grid_is_exact_but_forgives_float_noise() -> None:
    prices = np.array([0.1 + 0.2, 61837.64, 1854.980000000000018, 1e9])
    ticks, rounded = on_grid(prices, 0.01, "price")
    assert ticks.tolist() == [30, 6_183_764, 185_498, 100_000_000_000]
    assert rounded == 0


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (0.04, r"row 9: qty 0\.04 is off the lot of 0\.1; the nearest valid value is 0\.0"),
        (np.nan, "row 9: qty is nan, want a finite number"),
        (np.inf, "row 9: qty is inf"),
        (1e300, "too large to count exactly in lots"),
    ],
)
def test_grid_refuses(value: float, says: str) -> None:
    with pytest.raises(DataError, match=says):
        on_grid(np.array([0.1, value]), 0.1, "qty", rows=8)


def test_grid_rounds_where_loose() -> None:
    ticks, rounded = on_grid(np.array([1.0, 1.26]), 0.5, "price", loose=np.array([False, True]))
    assert (ticks.tolist(), rounded) == ([2, 3], 1)


def test_durations_for_people() -> None:
    said = [duration(n) for n in (5, 1_500, 2_000_000, -1_271_000_000)]
    assert said == ["5 ns", "1.5 us", "2 ms", "-1.271 s"]


def test_empty_feed_is_sound() -> None:
    assert check(np.empty(0, EVENT)).ok


def test_a_feed_of_orders_names_them_and_tells_no_levels() -> None:
    orders = np.zeros(3, EVENT)
    orders["ts_event"] = orders["ts_recv"] = [1, 2, 3]
    orders["kind"], orders["side"], orders["flags"] = Kind.ADD, 1, SEEN_BY_BOTH
    orders["price"], orders["qty"], orders["order_id"] = 100, 5, [1, 2, 3]
    assert check(orders).ok
    nameless = orders.copy()
    nameless["order_id"][1] = 0
    with pytest.raises(DataError, match=r"row 1: order_id 0 or ref_id 0 of a ADD row is no order"):
        check(nameless).require()
    mixed = orders.copy()
    mixed["kind"][2] = Kind.LEVEL
    with pytest.raises(DataError, match="row 2: a LEVEL row in a feed that tells orders"):
        check(mixed).require()

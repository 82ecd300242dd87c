"""The book that rows lead to: of levels, of orders, and the one told as the other."""

from __future__ import annotations

import numpy as np
import pytest

from hft.data.books import NO_PRICE, BookStream, levels_of
from hft.data.synth import SynthConfig, symbol_chunks
from hft.types import BUY, EVENT, SEEN_BY_BOTH, SELL, Flag, Kind, Trading


def synthetic(**facts) -> np.ndarray:
    config = SynthConfig(duration_s=20, messages_per_s=500, seed=3, **facts)
    return np.concatenate(list(symbol_chunks(config, 0)))


def rows(*events: tuple) -> np.ndarray:
    """(kind, side, price, qty, order_id, ref_id), each a packet of its own."""
    out = np.zeros(len(events), EVENT)
    for at, (kind, side, price, qty, order_id, ref_id) in enumerate(events):
        out[at] = (at, at, price, qty, order_id, ref_id, 0, 0, kind, side, SEEN_BY_BOTH | Flag.LAST)
    return out


def test_orders_lead_to_the_levels_that_the_same_market_tells() -> None:
    levels, orders = BookStream().feed(synthetic()), BookStream()
    touch = orders.feed(synthetic(order_by_order=True))
    assert len(touch) > 5_000
    for name in ("ts_event", "ts_recv", "bid", "bid_lots", "ask", "ask_lots"):
        assert (touch[name] == levels[name]).all()
    assert orders.faults == {"unknown_id": 0, "reused_id": 0, "overfill": 0}


@pytest.mark.parametrize("parts", [1, 7])
def test_a_feed_of_orders_is_told_as_levels(parts: int) -> None:
    orders = synthetic(order_by_order=True)
    told = np.concatenate(list(levels_of(np.array_split(orders, parts))))
    assert set(told["kind"]) == {
        Kind.LEVEL, Kind.TRADE, Kind.SNAPSHOT_BEGIN, Kind.SNAPSHOT_END
    }  # fmt: skip
    of_levels, of_orders = BookStream().feed(told), BookStream().feed(orders)
    for name in ("ts_event", "ts_recv", "bid", "bid_lots", "ask", "ask_lots"):
        assert (of_levels[name] == of_orders[name]).all()
    prints = told[told["kind"] == Kind.TRADE]
    executed = orders[orders["kind"] == Kind.EXECUTE]
    assert (prints["side"] == -executed["side"]).all()
    assert (prints["qty"] == executed["qty"]).all()


def test_queue_place_follows_the_rules_of_changed_orders() -> None:
    book = BookStream()
    book.feed(rows(*[(Kind.ADD, BUY, 100, 10 * n, n, 0) for n in (1, 2, 3)]))
    book.feed(rows((Kind.MODIFY, BUY, 100, 5, 1, 0)))  # smaller: keeps its place
    assert book.queue(BUY, 100).tolist() == [[1, 5], [2, 20], [3, 30]]
    book.feed(rows((Kind.MODIFY, BUY, 100, 25, 2, 0)))  # larger: to the back
    assert book.queue(BUY, 100).tolist() == [[1, 5], [3, 30], [2, 25]]
    book.feed(rows((Kind.CANCEL, BUY, 100, 10, 3, 0)))  # in part: keeps its place
    book.feed(rows((Kind.REPLACE, BUY, 100, 7, 1, 9)))  # another id: to the back
    assert book.queue(BUY, 100).tolist() == [[3, 20], [2, 25], [9, 7]]
    book.feed(rows((Kind.MODIFY, BUY, 99, 20, 3, 0), (Kind.EXECUTE, BUY, 100, 25, 2, 0)))
    assert book.levels(BUY, 5).tolist() == [[100, 7, 1], [99, 20, 1]]
    book.feed(rows((Kind.CANCEL, BUY, 100, 0, 9, 0), (Kind.CANCEL, BUY, 99, 0, 3, 0)))
    assert book.live_orders == 0
    assert book.feed(rows((Kind.TRADE, BUY, 101, 1, 0, 0)))["bid"][0] == NO_PRICE


def test_an_auction_matches_two_that_rested() -> None:
    book = BookStream()
    book.feed(
        rows(
            (Kind.STATUS, 0, 0, 0, 0, Trading.AUCTION),
            (Kind.ADD, BUY, 102, 10, 1, 0),
            (Kind.ADD, SELL, 100, 4, 2, 0),
            (Kind.EXECUTE, 0, 101, 4, 1, 2),
        )
    )
    assert book.trading is Trading.AUCTION
    assert book.levels(BUY, 1).tolist() == [[102, 6, 1]]
    assert len(book.levels(SELL, 1)) == 0


def test_what_a_feed_gets_wrong_is_counted_and_the_rest_goes_on() -> None:
    book = BookStream()
    book.feed(
        rows(
            (Kind.ADD, BUY, 100, 10, 1, 0),
            (Kind.CANCEL, BUY, 100, 5, 77, 0),
            (Kind.MODIFY, BUY, 100, 5, 78, 0),
            (Kind.EXECUTE, SELL, 100, 5, 79, 0),
            (Kind.ADD, BUY, 99, 3, 1, 0),  # the id of one that rests
            (Kind.EXECUTE, BUY, 99, 4, 1, 0),  # more than is left
            (Kind.REPLACE, SELL, 105, 2, 80, 81),  # the old one unknown, the new one real
        )
    )
    assert book.faults == {"unknown_id": 4, "reused_id": 1, "overfill": 1}
    assert len(book.levels(BUY, 5)) == 0
    assert book.levels(SELL, 5).tolist() == [[105, 2, 1]]


def test_a_snapshot_and_a_clear_drop_the_orders() -> None:
    book = BookStream()
    book.feed(rows((Kind.ADD, BUY, 100, 10, 1, 0), (Kind.ADD, SELL, 105, 10, 2, 0)))
    book.feed(rows((Kind.CLEAR, SELL, 0, 0, 0, 0)))
    assert book.live_orders == 1
    book.feed(rows((Kind.SNAPSHOT_BEGIN, 0, 0, 0, 0, 0), (Kind.ADD, BUY, 99, 5, 1, 0)))
    assert book.state == "SYNCING"
    book.feed(rows((Kind.SNAPSHOT_END, 0, 0, 0, 0, 0)))
    assert (book.state, book.live_orders, book.faults["reused_id"]) == ("LIVE", 1, 0)
    assert book.levels(BUY, 5).tolist() == [[99, 5, 1]]


def test_what_one_side_sees_moves_the_levels_of_that_side_alone() -> None:
    told = rows(
        (Kind.ADD, BUY, 100, 10, 1, 0),
        (Kind.CANCEL, BUY, 100, 4, 1, 0),
        (Kind.CLEAR, 0, 0, 0, 0, 0),
        (Kind.ADD, BUY, 99, 5, 2, 0),
    )
    venue, ours = told[1:].copy(), told[1:].copy()
    venue["flags"] = Flag.SEEN_BY_VENUE | Flag.LAST
    ours["flags"] = Flag.SEEN_BY_US | Flag.LAST
    levels = np.concatenate(list(levels_of([told[:1], venue, ours])))
    for seen in (Flag.SEEN_BY_VENUE, Flag.SEEN_BY_US):
        mine = levels[levels["flags"] & seen > 0]
        assert mine[["kind", "price", "qty"]].tolist() == [
            (Kind.LEVEL, 100, 10),
            (Kind.LEVEL, 100, 6),
            (Kind.CLEAR, 0, 0),
            (Kind.LEVEL, 99, 5),
        ]


def test_a_packet_of_one_side_does_not_end_that_of_the_other() -> None:
    told = rows(
        (Kind.ADD, BUY, 100, 10, 1, 0),  # ours, the first of a packet
        (Kind.CANCEL, BUY, 100, 0, 77, 0),  # the venue's, and changes nothing
        (Kind.ADD, SELL, 105, 10, 2, 0),  # ours, the last of it
        (Kind.ADD, BUY, 100, 10, 1, 0),
    )
    told["flags"] = [
        Flag.SEEN_BY_US,
        Flag.SEEN_BY_VENUE | Flag.LAST,
        Flag.SEEN_BY_US | Flag.LAST,
        Flag.SEEN_BY_VENUE | Flag.LAST,
    ]
    levels = np.concatenate(list(levels_of(np.array_split(told, 4))))
    assert levels["price"].tolist() == [100, 105, 100]
    assert (levels["flags"] & Flag.LAST > 0).tolist() == [False, True, True]


def test_a_level_that_an_inferred_cancel_empties_is_gone_not_out_of_view() -> None:
    orders = rows((Kind.ADD, BUY, 100, 10, 1, 0), (Kind.CANCEL, BUY, 100, 0, 1, 0))
    orders["flags"] |= np.uint16(Flag.UNCERTAIN)
    (level,) = np.concatenate(list(levels_of([orders])))[1:]
    assert (level["kind"], level["qty"]) == (Kind.LEVEL, 0)
    assert not level["flags"] & Flag.UNCERTAIN

"""Legs of the core: as functions, and through whole replays."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest
from core_replay import plan_of, replay, server_of
from hypothesis import given
from hypothesis import strategies as st
from naive_legs import Drawn, Leg, Walk
from sim import Sim

from hft import Strategy
from hft._core import Latency
from hft.analysis.records import OrderState
from hft.core_terms import ORDERINGS
from hft.errors import ConfigError
from hft.execution.draws import Stream
from hft.types import BUY, SELL, Tif

MS = 1_000_000
UPDATE, STOP, ACCEPTED = 3, 12, 1
NO_TIME = np.iinfo(np.int64).min


# ---- as functions --------------------------------------------------------------------------------

times = st.lists(st.integers(0, 10**6), min_size=1, max_size=30).map(sorted)


@given(times, st.data())
def test_each_kind_equals_its_twin(ts: list[int], data: st.DataObject) -> None:
    size = len(ts)
    ns = data.draw(st.lists(st.integers(0, 10**5), min_size=size, max_size=size))
    asked = np.array(data.draw(st.lists(st.integers(0, 3 * 10**6), min_size=1)), np.int64)
    n = np.arange(len(asked)) % 3
    rows = list(zip(ts, ns, strict=True))
    blocks = data.draw(
        st.lists(
            st.tuples(st.integers(0, 10**6), st.integers(0, size - 1)), min_size=1, max_size=8
        ).map(sorted)
    )
    distinct = [r for k, r in enumerate(rows) if k == 0 or r[0] > rows[k - 1][0]]
    at = [min(row, len(distinct) - 1) for _, row in blocks]
    begun = [since for since, _ in blocks]
    pairs: list[tuple[Any, Any]] = [
        (Latency.recorded(ts, ns), Leg(rows)),
        (Latency.empirical(ns, 5, Stream.ENTRY), Drawn(ns, 5, Stream.ENTRY)),
        (
            Latency.walk([r[0] for r in distinct], [r[1] for r in distinct], begun, at),
            Walk(distinct, list(zip(begun, at, strict=True))),
        ),
    ]
    for core, twin in pairs:
        want = [twin.at(int(t), int(k)) for t, k in zip(asked, n, strict=True)]
        assert core.at(asked, n).tolist() == want
        assert core.least == min(ns if core is not pairs[2][0] else [r[1] for r in distinct])
        half = core.scaled(0.3).at(asked, n)
        assert (half == np.rint(np.array(want) * 0.3)).all()
        mine = Latency.by_order([3, 8], [1, 2], core)
        assert mine.at(asked, n).tolist() == want
        assert (mine.at(asked, n, np.full(len(asked), 8)) == 2).all()
        assert mine.at(asked, n, np.full(len(asked), 7)).tolist() == want


REFUSED = {
    "entry: ns of row 1 is not a number": lambda: Latency.recorded([1, 2], [5, np.nan], "entry"),
    "ns of row 0 is 0.5": lambda: Latency.empirical([0.5], 1, 2),
    "the time is an array of <U1": lambda: Latency.recorded(["a"], [1]),
    "ns must be one column": lambda: Latency.empirical([[1, 2]], 1, 2),
    "row 1 is -4 ns": lambda: Latency.empirical([3, -4], 1, 2),
    "the time of row 2 is 3, before": lambda: Latency.recorded([1, 5, 3], [1, 1, 1]),
    "as many times as durations": lambda: Latency.recorded([1, 5], [1, 1, 1]),
    "latency: has no samples": lambda: Latency.empirical([], 1, 2),
    "the beginning of the block of row 1": lambda: Latency.walk([1], [1], [9, 8], [0, 0]),
    "begins with row 4 of the trace, which has 1": lambda: Latency.walk([1], [1], [9], [4]),
    "the order of row 1 is 2": lambda: Latency.by_order([2, 2], [1, 1], Latency.constant(1)),
    "risk: row 0 is -1 ns": lambda: Latency.constant(-1, "risk"),
    "gate: cannot be multiplied by nan": lambda: Latency.constant(1).scaled(np.nan, "gate"),
    "ts, n and order must have the same length": lambda: Latency.constant(1).at([1, 2], [0]),
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_is_no_leg_is_refused(why: str) -> None:
    with pytest.raises(ConfigError, match=why.replace("(", r"\(")):
        REFUSED[why]()


# ---- through replays -----------------------------------------------------------------------------


class Busy(Strategy):
    """Every 40 ms a bid, an ask or a taker; later a replace or a cancel."""

    left_out: int | None = None

    def on_start(self) -> None:
        for k in range(400):
            self.at(self.now + (k + 1) * 40 * MS, self.act, k)

    def act(self, k: int) -> None:
        book = self.book(self.instruments[0] if isinstance(self.instruments, list) else "A.SIM")
        if not book.live or k == self.left_out:
            return
        side = BUY if k % 2 else SELL
        touch = book.bid if side == BUY else book.ask
        if k % 5 == 4:
            self.submit("A.SIM", side, 1, None, Tif.IOC, tag=str(k))
            return
        order = self.submit("A.SIM", side, 2, touch - 3 * side, Tif.POST_ONLY, tag=str(k))
        if k % 3:
            self.at(self.now + 13 * MS, self.cancel, order)
        else:
            self.at(self.now + 7 * MS, self.move, order, touch - 4 * side)

    def move(self, order: Any, price: int) -> None:
        if order.alive:
            self.replace(order, price=price)


def trace(seed: int, size: int = 400) -> tuple[list[int], np.ndarray]:
    """A bursty trace, a row each 10 ms or so."""
    rng = np.random.default_rng(seed)
    ts = np.cumsum(rng.integers(1, 20 * MS, size))
    ns = (2 * MS * np.exp(np.cumsum(rng.normal(0, 0.5, size)) % 2)).astype(np.int64)
    return ts.tolist(), ns


def walks(plan: Any, seed: int = 3) -> tuple[Any, Any]:
    """Entry, and a response that is three times as long, row by row."""
    ts, ns = trace(seed)
    rng = np.random.default_rng(seed)
    start = plan.feeds[0].ts_range[0]
    blocks = start + np.cumsum(rng.integers(1, 900 * MS, 60))
    at = rng.integers(0, len(ts), 60)
    return Latency.walk(ts, ns, blocks, at), Latency.walk(ts, 3 * ns, blocks, at)


def test_legs_that_are_zero_are_the_baseline() -> None:
    plan = plan_of(Busy)
    base = replay(plan)
    assert len(base.orders) > 300
    zero = Latency.empirical([0, 0], 1, Stream.ENTRY)
    others = {
        "entry": Latency.walk([0, 5], [0, 0], [0], [0]),
        "response": zero,
        "compute": Latency.recorded([0], [0]),
        "risk": zero,
        "entry_cancel": Latency.by_order([1], [0], zero),
        "server": server_of(zero, "queue"),
    }
    for ordering in ORDERINGS:
        assert replay(plan, ordering=ordering, **others).bytes == base.bytes


def test_a_constant_leg_shifts_every_arrival_and_every_answer() -> None:
    plan = plan_of(Busy)
    for entry, response in ((0, 7), (3 * MS, 0), (12_345, 67_891)):
        orders = replay(plan, entry=entry, response=response).orders
        assert (orders["ts_arrive"] - orders["ts_send"] == entry).all()
        assert (orders["ts_ack"] - orders["ts_arrive"] == response).all()


def test_entry_and_answer_of_a_message_come_from_one_row() -> None:
    plan = plan_of(Busy)
    entry, response = walks(plan)
    run = replay(plan, entry=entry, response=response, ordering="independent")
    accepted = run.journal[(run.journal["kind"] == UPDATE) & (run.journal["a"] >> 24 == ACCEPTED)]
    orders = run.orders[accepted["order"] - np.uint64(1)]
    there, back = orders["ts_arrive"] - orders["ts_send"], accepted["ts"] - accepted["c"]
    assert len(np.unique(there)) > 30
    assert (there == entry.at(orders["ts_send"])).all()
    assert (back == 3 * there).all()
    # Fills belong to no message of ours: their answers are drawn when they happen.
    fills = run.fills[run.fills["maker"] == 1]
    assert (fills["ts_recv"] - fills["ts_venue"] == response.at(fills["ts_venue"])).all()


def test_fifo_never_reorders_what_the_legs_would() -> None:
    plan = plan_of(Busy)
    entry, response = (each.scaled(9.0) for each in walks(plan))  # far longer than between orders
    fifo = replay(plan, entry=entry, response=response).orders
    alone = replay(plan, entry=entry, response=response, ordering="independent").orders
    assert (alone["ts_arrive"] - alone["ts_send"] == entry.at(alone["ts_send"])).all()
    assert (np.diff(alone["ts_arrive"]) < 0).sum() > 20
    assert (np.diff(fifo["ts_arrive"]) >= 0).all()
    drawn = fifo["ts_send"] + entry.at(fifo["ts_send"])
    assert (fifo["ts_arrive"] >= drawn).all()
    assert 20 < (fifo["ts_arrive"] > drawn).sum() < len(fifo) - 20


@pytest.mark.parametrize("ordering", ORDERINGS)
def test_the_size_of_chunks_is_of_no_consequence(ordering: str) -> None:
    plan = plan_of(Busy, "A.SIM", "B.SIM")
    entry, response = walks(plan)
    more = dict(entry=entry, response=response, compute=Latency.empirical([0, MS, 9 * MS], 4, 4))
    whole = replay(plan, ordering=ordering, **more)
    assert len(whole.fills) > 20
    for rows in (1_000, 77):
        assert replay(plan, ordering=ordering, rows=rows, **more).bytes == whole.bytes


def test_how_often_the_replay_is_stopped_on_the_way_is_of_no_consequence() -> None:
    plan = plan_of(Busy)
    entry, response = walks(plan)
    legs = dict(entry=entry, response=response, ordering="independent", compute=MS // 3)
    seldom, often = (replay(plan, sample_ns=ns, **legs) for ns in (10**9, 10**6))
    # Only the end differs: it is the last sample.
    assert seldom.journal[:-1].tobytes() == often.journal[:-1].tobytes()
    assert len(seldom.fills) > 10
    arrived = seldom.orders["ts_arrive"][seldom.fills["order"] - np.uint64(1)]
    assert (seldom.fills["ts_venue"] >= arrived).all()


def test_leaving_out_one_order_changes_no_others_latency() -> None:
    plan = plan_of(Busy)
    rng = np.random.default_rng(1)
    ns = rng.integers(0, 30 * MS, 500)
    legs = dict(
        entry=Latency.empirical(ns, 9, Stream.ENTRY),
        response=Latency.empirical(2 * ns, 9, Stream.ENTRY),
        ordering="independent",
    )
    everybody = replay(plan, **legs).orders
    missing = 200
    Busy.left_out = missing
    try:
        fewer = replay(plan, **legs).orders
    finally:
        Busy.left_out = None
    assert len(fewer) == len(everybody) - 1
    gone = np.flatnonzero(np.isin(everybody["ts_send"], fewer["ts_send"], invert=True))
    assert len(gone) == 1
    others = np.delete(everybody, gone)
    for name in ("ts_send", "ts_arrive"):
        assert (others[name] == fewer[name]).all()
    taking = others["tif"] == Tif.IOC
    assert (others["ts_ack"] == fewer["ts_ack"])[~taking].all()


class Bids(Strategy):
    """A bid at every change of the book."""

    def on_book(self, book: Any) -> None:
        if book.live and self.orders_sent < 200:
            self.orders_sent += 1
            self.submit("A.SIM", BUY, 1, book.bid - 20, Tif.POST_ONLY)

    def __init__(self) -> None:
        super().__init__()
        self.orders_sent = 0


def test_feed_delay_ages_what_decisions_see_and_order_delay_does_not() -> None:
    def decisions(feed: int, entry: int) -> tuple[np.ndarray, np.ndarray]:
        plan = plan_of(Bids, feed_latency_ns=0)
        for k, whole in enumerate(plan.feeds):
            rows = np.concatenate(list(whole.chunks())).copy()
            rows["ts_recv"] = rows["ts_event"] + feed
            plan.feeds[k] = dataclasses.replace(whole, chunks=lambda rows=rows: iter([rows]))
        orders = replay(plan, entry=entry).orders
        return orders["ts_decide"] - orders["ts_cause_event"], orders["cause_row"]

    age, rows = decisions(0, 0)
    assert (age == 0).all()
    later, same_rows = decisions(0, 5 * MS)
    assert (later == age).all()
    assert (same_rows == rows).all()
    older, _ = decisions(5 * MS, 0)
    assert (older == 5 * MS).all()


def test_messages_travel_by_class() -> None:
    legs = {"latency": {"entry": 100, "entry_cancel": 700, "entry_replace": 30, "response": 5}}
    sim = Sim(recipe={"latency": {**legs["latency"], "compute": 0}})
    sim.book(bids={100: 10}, asks={110: 10})
    order = sim.submit(BUY, price=99, lots=5, at=1_000)
    sim.replace(order, price=98, at=2_000)
    sim.cancel(order, at=3_000)
    assert sim.updates(order) == ["ACCEPTED@1100", "REPLACED@2030", "CANCELED@3700"]


@pytest.mark.parametrize("ordering", ORDERINGS)
def test_a_cancel_overtakes_its_order_only_where_each_travels_alone(ordering: str) -> None:
    latency = {"entry": 1_000, "entry_cancel": 10, "response": 5, "ordering": ordering}
    sim = Sim(recipe={"latency": {**latency, "compute": 0}})
    sim.book(bids={100: 10}, asks={110: 10})
    order = sim.submit(BUY, price=101, lots=5, at=1_000)
    sim.cancel(order, at=1_500)
    sim.trade(SELL, price=101, lots=2, at=5_000)
    sim.tick(9_000)
    if ordering == "fifo":
        assert sim.updates(order) == ["ACCEPTED@2000", "CANCELED@2000"]
        return
    said = sim.said(order)
    assert [str(s) for s in said] == [
        "CANCEL_REJECTED@1510",
        "ACCEPTED@2000",
        "PARTLY_FILLED@5000",
    ]
    assert said[0].reason.name == "UNKNOWN_ORDER"
    assert sim.state(order) == "PARTIALLY_FILLED"


def test_answers_that_overtake_leave_the_newest_price() -> None:
    """Two replaces; the answer to the first is slow, and comes after that to the second."""
    plan = plan_of(TwoReplaces)
    start = plan.feeds[0].ts_range[0]
    slow = Latency.recorded([0, start + 55 * MS], [20 * MS, 1])
    run = replay(plan, response=slow, entry=10, ordering="independent")
    (order,) = run.orders
    assert order["replaces"] == 2
    assert order["price"] == TwoReplaces.asked[1]
    answers = run.journal[run.journal["kind"] == 3]
    assert [int(a) >> 24 for a in answers["a"]][:3] == [1, 6, 6]
    assert answers["price"][1:3].tolist() == [*TwoReplaces.asked[::-1]]


class TwoReplaces(Strategy):
    asked: tuple[int, int] = (0, 0)

    def on_start(self) -> None:
        start = self.now
        self.at(start + 10 * MS, self.open)

    def open(self) -> None:
        price = self.book("A.SIM").bid - 20
        order = self.submit("A.SIM", BUY, 1, price, Tif.POST_ONLY)
        TwoReplaces.asked = (price - 1, price - 2)
        self.at(self.now + 40 * MS, self.replace, order, price - 1)
        self.at(self.now + 46 * MS, self.replace, order, price - 2)


def test_fills_of_a_larger_order_may_be_heard_before_it_is_larger() -> None:
    """One lot becomes many that cross; the answer to the replace comes after the fills."""
    plan = plan_of(Grows)
    start = plan.feeds[0].ts_range[0]
    slow = Latency.recorded([0, start + 50 * MS + 5], [20 * MS, 1])
    run = replay(plan, response=slow, entry=10, ordering="independent")
    (order,) = run.orders
    heard = [int(a) >> 24 for a in run.journal["a"][run.journal["kind"] == 3]]
    assert heard[:2] == [1, 3]
    assert 6 in heard[2:]
    assert heard[-1] == 4
    assert order["lots"] == 100_000
    assert 1 <= order["cum_lots"] < 100_000
    assert order["state"] == OrderState.CANCELED


class Grows(Strategy):
    def on_start(self) -> None:
        self.at(self.now + 10 * MS, self.open)

    def open(self) -> None:
        book = self.book("A.SIM")
        order = self.submit("A.SIM", BUY, 1, book.bid - 20)
        self.at(self.now + 40 * MS, self.replace, order, book.ask + 50, 100_000)
        self.at(self.now + 100 * MS, self.cancel, order)


def test_each_message_of_a_handler_takes_its_time_at_the_gate() -> None:
    sim = Sim(entry=10, response=10, compute=100, recipe=None)
    sim.tables["latency"]["risk"] = 7
    sim.book(bids={100: 10}, asks={110: 10})
    tickets = [sim.submit(BUY, price=90 + k, lots=1, at=1_000) for k in range(3)]
    sim.run()
    rows = [sim.order_row(t) for t in tickets]
    # Three timers of one instant: each handled when the thread is free of the one before.
    decided = [int(r["ts_decide"] - rows[0]["ts_decide"]) for r in rows]
    assert decided == [0, 107, 214]
    for r in rows:
        assert r["ts_handled"] - r["ts_decide"] == 100
        assert r["ts_send"] - r["ts_handled"] == 7

    many = Sim(compute=100)
    many.tables["latency"]["risk"] = 7
    many.book(bids={100: 10}, asks={110: 10})
    sent = []

    def send(s: Strategy) -> None:
        for k in range(4):
            sent.append(s.submit("X.SIM", BUY, 1, 90 + k))

    many.call(send, at=1_000)
    after = many.submit(BUY, price=80, lots=1, at=1_001)
    many.run()
    rows = many.outcome.run.orders[:4]
    assert (rows["ts_send"] - rows["ts_handled"]).tolist() == [7, 14, 21, 28]
    assert many.order_row(after)["ts_decide"] == rows["ts_send"][-1]


class Answers(Strategy):
    """A bid for each signal."""

    def on_signal(self, signal: Any) -> None:
        self.submit(signal.instrument, BUY, 1, self.book(signal.instrument).bid - 30)


def test_every_stage_is_the_leg_that_was_drawn_and_they_add_up(tmp_path: Any) -> None:
    plan = plan_of(Answers, "A.SIM", "B.SIM", folder=tmp_path)
    entry, response = walks(plan)
    rng = np.random.default_rng(5)
    compute, service, risk = (
        Latency.empirical(rng.integers(0, 3 * MS, 99), 1, s) for s in (1, 4, 5)
    )
    run = replay(
        plan,
        entry=entry,
        response=response,
        compute=compute,
        risk=risk,
        server=server_of(service),
        ordering="independent",
    )
    orders = run.orders[run.orders["ts_ack"] != NO_TIME]
    assert len(orders) > 80
    assert orders["by_signal"].all()
    stamps = {name: orders[f"ts_{name}"] for name in STAMPS}
    rows = [np.concatenate(list(feed.chunks())) for feed in plan.feeds]
    feed = [r["ts_recv"] - r["ts_event"] for r in rows]
    legs = {
        "cause_recv": [
            feed[inst][row]
            for inst, row in zip(orders["instrument"], orders["cause_row"], strict=True)
        ],
        "model_end": service.at(stamps["model_start"]),
        "handled": compute.at(stamps["decide"]),
        "send": risk.at(stamps["handled"]),
        "arrive": entry.at(stamps["send"]),
    }
    for before, after in itertools.pairwise(STAMPS):
        stage = stamps[after] - stamps[before]
        assert (stage >= 0).all(), after
        assert stage.max() > 0, after
        if after in legs:
            assert (stage == legs[after]).all(), after
    waits = stamps["model_start"] - stamps["cause_recv"] + stamps["decide"] - stamps["model_end"]
    whole = stamps["arrive"] - stamps["cause_event"]
    assert (whole == waits + np.sum(list(legs.values()), axis=0)).all()
    # When the answer reached us, even where the strategy's thread was not free to hear it.
    assert (orders["ts_ack"] - stamps["arrive"] == 3 * entry.at(stamps["send"])).all()


STAMPS = (
    "cause_event",
    "cause_recv",
    "model_start",
    "model_end",
    "decide",
    "handled",
    "send",
    "arrive",
)


@pytest.mark.parametrize("mode", ["conflate", "queue", "deadline"])
def test_what_a_model_has_not_heard_changes_nothing_that_it_said(mode: str, tmp_path: Any) -> None:
    plan = plan_of(Answers, "A.SIM", "B.SIM", folder=tmp_path)
    service = Latency.empirical(np.arange(1, 90) * MS // 10, 1, Stream.SERVICE)
    legs = dict(entry=3 * MS, response=MS, server=server_of(service, mode, max_batch=2))
    whole = replay(plan, **legs)
    start, end = plan.feeds[0].ts_range
    cut = start + (end - start) // 2
    for k, feed in enumerate(plan.feeds):
        rows = np.concatenate(list(feed.chunks()))
        rows = rows[rows["ts_event"] <= cut]
        plan.feeds[k] = dataclasses.replace(feed, chunks=lambda rows=rows: iter([rows]))
    short = replay(plan, **legs)
    before = [
        r.journal[(r.journal["ts"] <= cut) & (r.journal["kind"] != STOP)] for r in (whole, short)
    ]
    assert len(before[1]) > 200
    assert before[0].tobytes() == before[1].tobytes()
    orders = whole.orders
    assert (orders["ts_cause_recv"] <= orders["ts_model_start"]).all()

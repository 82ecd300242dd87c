"""What a backtest must never do: see ahead, take what is not there, be luckier for being slower."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from random_market import MID, crowded_tape, random_tape
from sim import JOURNAL, T0, Scripted, Sim, rechunked

from hft import Strategy
from hft.analysis.records import FillReason, OrderState
from hft.engine import Outcome, run_once
from hft.plan import prepare
from hft.types import (
    BUY,
    EVENT,
    POST_ONLY,
    SEEN_BY_BOTH,
    SELL,
    Flag,
    InstrumentSpec,
    Kind,
    Tif,
)

MS = 1_000_000
MODELS: dict[str, Any] = {
    "queue_draws": True,
    "refill_probability": 0.4,
    "refill_half_life": 20 * MS,
    "fade": 0.1,
    "impact": {"weights": [0.2, 0.05], "half_lives": [5 * MS, 200 * MS], "permanent": 0.01},
    "participation_window": 50 * MS,
}
"""Everything that acts on what we do."""
TAKEN = int(FillReason.TAKEN)


class Reactive(Strategy):
    """Quotes by what it sees and takes now and then: all it sees shows in its orders."""

    def on_book(self, book: Any) -> None:
        if not book.two_sided:
            return
        lots = 1 + (book.bid_lots + book.ask_lots) % 5
        self.quotes(book.instrument, book.micro_price - 1.3, book.micro_price + 1.3, lots)
        if (book.bid + book.ask_lots) % 7 == 0:
            self.submit(book.instrument, BUY if book.bid % 2 else SELL, lots, tif=1)

    def on_fill(self, fill: Any) -> None:
        if fill.lots % 2:
            self.cancel_all(fill.instrument)


def replay(
    tapes: list[np.ndarray],
    *,
    cls: type[Strategy] = Reactive,
    chunk: int = 1000,
    entry: int = MS,
    response: int = MS,
    feed: Any = "data",
    compute: int = 20_000,
    latency: dict[str, Any] | None = None,
    names: tuple[str, ...] = (),
    **venue: Any,
) -> Outcome:
    names = names or tuple(f"I{i}.V{i % 2}" for i in range(len(tapes)))
    specs = [InstrumentSpec(symbol=n[:2], venue=n[3:], tick=1.0, lot=1.0) for n in names]
    recipe = {
        "latency": dict(entry=entry, response=response, compute=compute, feed=feed)
        | (latency or {}),
        "venue": dict(maker_fee=-0.0001, taker_fee=0.0005, **venue),
        "engine": {"bracket": False, "sample": "10ms"},
    }
    plan = prepare(cls, dict(zip(names, tapes, strict=True)), specs=specs, recipe=recipe)
    outcome = run_once(rechunked(plan, chunk))
    assert outcome.run.status == "complete", outcome.run.error
    return outcome


def tapes(seed: int, instruments: int = 2, rows: int = 400) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [random_tape(rng, rows, T0) for _ in range(instruments)]


# ---- nothing is seen before its time -------------------------------------------------------------


@pytest.mark.parametrize("models", [{}, MODELS], ids=["off", "on"])
@pytest.mark.parametrize("seed", range(6))
def test_what_comes_after_a_moment_changes_nothing_before_it(
    seed: int, models: dict[str, Any]
) -> None:
    whole = tapes(seed)
    full = replay(whole, **models).journal.view(JOURNAL)
    for share in (0.2, 0.5, 0.8):
        cut = int(T0 + share * (max(int(t["ts_event"][-1]) for t in whole) - T0))
        short = replay([t[t["ts_event"] <= cut] for t in whole], **models).journal.view(JOURNAL)
        assert len(full[full["ts"] <= cut]) > 20
        before = [j[(j["ts"] <= cut) & (j["kind"] != 12)] for j in (full, short)]  # 12: STOP
        assert np.array_equal(before[0], before[1])


@pytest.mark.parametrize("seed", range(6))
def test_no_order_answers_a_packet_that_had_not_come(seed: int) -> None:
    orders = replay(tapes(seed), compute=300_000).run.orders
    sent = orders[orders["ts_send"] > 0]
    assert len(sent) > 10
    assert (sent["ts_cause_event"] <= sent["ts_cause_recv"]).all()
    assert (sent["ts_cause_recv"] <= sent["ts_decide"]).all()
    assert (sent["ts_send"] == sent["ts_decide"] + 300_000).all()


@pytest.mark.parametrize("seed", range(6))
def test_no_fill_before_the_order_arrived_and_none_heard_before_it_travelled(seed: int) -> None:
    run = replay(tapes(seed), entry=2 * MS, response=3 * MS).run
    assert len(run.fills) > 10
    order = run.orders[run.fills["order"].astype(int) - 1]
    assert (run.fills["ts_venue"] >= order["ts_arrive"]).all()
    assert (order["ts_arrive"] >= order["ts_send"] + 2 * MS).all()
    assert (run.fills["ts_recv"] >= run.fills["ts_venue"] + 3 * MS).all()


# ---- slower is never luckier ---------------------------------------------------------------------


def filled_by(
    tape: np.ndarray, price: int, side: int, latency: dict[str, Any], **venue: Any
) -> tuple[str, list[tuple[int, int]]]:
    class One(Strategy):
        def on_start(self) -> None:
            self.at(T0 + 20 * MS, self.submit, side, 7, price, POST_ONLY)

    run = replay([tape], cls=One, compute=0, latency=latency, **venue).run
    state = OrderState(int(run.orders[0]["state"])).name
    total = np.cumsum(run.fills["lots"])
    return state, [(int(t), int(n)) for t, n in zip(run.fills["ts_venue"], total, strict=True)]


def lots_at(fills: list[tuple[int, int]], ts: int) -> int:
    return max((n for t, n in fills if t <= ts), default=0)


CONSTANT = [{"entry": entry} for entry in (0, MS, 10 * MS, 60 * MS)]
WALK = [{"profile": "cross-region", "entry": "profile", "scale": k} for k in (0.0, 0.5, 1.0, 4.0)]


@pytest.mark.parametrize(
    ("venue", "latencies"),
    [
        ({}, CONSTANT),
        ({"queue": "risk_averse"}, CONSTANT),
        ({"queue_n": 0.5}, CONSTANT),
        ({"queue": "log1", "cross": "wait_trade"}, CONSTANT),
        ({"queue_draws": True}, CONSTANT),
        ({}, WALK),
    ],
    ids=["power3", "risk_averse", "power3 n<1", "log1", "draws", "power3, walk"],
)
def test_more_entry_latency_never_fills_a_passive_order_earlier(
    venue: dict[str, Any], latencies: list[dict[str, Any]]
) -> None:
    compared = 0
    for seed in range(25 if latencies is CONSTANT else 8):  # a walk is laid out anew each time
        rng = np.random.default_rng(seed)
        tape = random_tape(rng, 300, T0, calm=True)
        side = int(rng.choice([1, -1]))
        price = MID - side * int(rng.integers(0, 4))
        found = [filled_by(tape, price, side, latency, **venue) for latency in latencies]
        rested = [fills for state, fills in found if state != "REJECTED"]
        for fast, slow in pairwise(rested):
            for ts, lots in slow:
                assert lots_at(fast, ts) >= lots, (seed, fast, slow)
                compared += 1
    assert compared > 20


def test_an_order_that_arrives_earlier_is_never_further_back() -> None:
    filled = apart = 0
    for seed in range(10):
        tape = crowded_tape(np.random.default_rng(seed), 300, T0)
        sim = Sim()
        sim.markets["X.SIM"].array = lambda tape=tape: tape  # type: ignore[method-assign]
        for at in (5, 30, 60):
            sim.submit(BUY, lots=3, price=MID - 1, tif=POST_ONLY, at=at * MS)
        run = sim.run().run
        never = 1 << 62
        first, last = (
            [
                int(done[end]) if len(done) else never
                for order in run.orders[run.orders["state"] != OrderState.REJECTED]
                for done in [run.fills[run.fills["order"] == order["id"]]["ts_venue"]]
            ]
            for end in (0, -1)
        )
        assert first == sorted(first)
        assert last == sorted(last)
        filled += sum(ts < never for ts in first)
        apart += len({*first})
    assert filled > 20
    assert apart > 20


# ---- nothing is taken that is not there ----------------------------------------------------------


def displayed(tape: np.ndarray, upto: int) -> dict[tuple[int, int], int]:
    """The tape's book after all rows up to a time, by (side, price)."""
    book: dict[tuple[int, int], int] = {}
    for e in tape[tape["ts_event"] <= upto]:
        if e["kind"] == Kind.LEVEL:
            book[int(e["side"]), int(e["price"])] = int(e["qty"])
        elif e["kind"] == Kind.SNAPSHOT_BEGIN:
            book.clear()
        elif e["kind"] == Kind.CLEAR:
            for side, price in list(book):
                inside = e["ref_id"] != 1 or (price - int(e["price"])) * side >= 0
                if int(e["side"]) in (0, side) and inside:
                    del book[side, price]
    return book


@pytest.mark.parametrize("models", [{}, MODELS], ids=["off", "on"])
@pytest.mark.parametrize("seed", range(5))
def test_takers_take_what_is_displayed_at_most(seed: int, models: dict[str, Any]) -> None:
    market = tapes(seed, 1)
    run = replay(market, **{**models, "refill_half_life": 0}).run
    taken = run.fills[run.fills["reason"] == TAKEN]
    assert len(taken) > 0
    for ts in np.unique(taken["ts_venue"]):
        book = displayed(market[0], int(ts))
        for fill in taken[taken["ts_venue"] == ts]:
            same = taken[
                (taken["ts_venue"] == ts)
                & (taken["price"] == fill["price"])
                & (taken["side"] == fill["side"])
            ]
            assert same["lots"].sum() <= book[-int(fill["side"]), int(fill["price"])]


@pytest.mark.parametrize("models", [{}, MODELS], ids=["off", "on"])
@pytest.mark.parametrize("seed", range(5))
def test_a_print_fills_no_more_than_it_printed(seed: int, models: dict[str, Any]) -> None:
    market = tapes(seed, 1)
    run = replay(market, **models).run
    printed = run.fills[
        np.isin(run.fills["reason"], [int(FillReason.QUEUE), int(FillReason.THROUGH)])
    ]
    assert len(printed) > 0
    for row in np.unique(printed["cause_row"]):
        assert market[0][row]["kind"] == Kind.TRADE
        assert printed[printed["cause_row"] == row]["lots"].sum() <= market[0][row]["qty"]


@pytest.mark.parametrize("seed", range(5))
def test_nobody_joins_behind_more_than_is_displayed(seed: int) -> None:
    market = tapes(seed, 1)
    run = replay(market).run
    rested = run.orders[~np.isnan(run.orders["ahead_at_accept"]) & (run.orders["replaces"] == 0)]
    assert len(rested) >= 5
    for order in rested:
        book = displayed(market[0], int(order["ts_arrive"]))
        assert (
            0 <= order["ahead_at_accept"] <= book.get((int(order["side"]), int(order["price"])), 0)
        )


# ---- what we leave behind ------------------------------------------------------------------------


class Takes(Strategy):
    """Crosses the spread by a script of (time, instrument, side, lots, price)."""

    script: list[tuple[int, int, int, int, int]]

    def on_start(self) -> None:
        self.all = list(self.instruments.values())
        for at, *what in self.script:
            self.at(at, self.go, *what)

    def go(self, inst: int, side: int, lots: int, price: int) -> None:
        self.submit(self.all[inst], side, lots, price, Tif.IOC if lots % 3 else Tif.GTC)


def takes(
    tape: list[np.ndarray], script: list[tuple[int, int, int, int, int]], **more: Any
) -> Outcome:
    cls = type("Script", (Takes,), {"script": script, "__module__": __name__})
    return replay(tape, cls=cls, compute=0, **more)


def columns(fills: np.ndarray, *but: str) -> dict[str, bytes]:
    """All that fills say, without some columns; NaN is equal to NaN."""
    return {name: fills[name].tobytes() for name in fills.dtype.names if name not in but}


def random_takes(seed: int, lots: int, instruments: int = 1) -> list[tuple[int, ...]]:
    rng = np.random.default_rng(seed + 1_000)
    sides = rng.choice([1, -1], 60).tolist()
    return [
        (
            int(t),
            int(rng.integers(0, instruments)),
            s,
            int(rng.integers(1, lots + 1)),
            MID + s * int(rng.integers(0, 4)),
        )
        for t, s in zip(rng.integers(T0, T0 + 400 * MS, 60), sides, strict=True)
    ]


@pytest.mark.parametrize("seed", range(4))
def test_a_size_that_is_nothing_to_the_market_gets_the_fills_of_the_plain_tape(seed: int) -> None:
    market = tapes(seed, 1)
    market[0]["qty"] *= 10_000
    plain, modelled = (
        takes(market, random_takes(seed, 1), **models).run.fills for models in ({}, MODELS)
    )
    assert len(plain) > 20
    assert columns(plain, "impact", "extrapolated") == columns(modelled, "impact", "extrapolated")
    assert not modelled["extrapolated"].any()


@pytest.mark.parametrize("seed", range(4))
def test_the_overlay_is_cash_and_moves_no_fill(seed: int) -> None:
    free, charged = (
        replay(tapes(seed), **({"impact": impact} if impact else {})).run.fills
        for impact in ({}, MODELS["impact"])
    )
    assert free["impact"].tolist() == [0] * len(free)
    assert (charged["impact"] != 0).sum() > 5
    assert not charged["impact"][charged["reason"] != TAKEN].any()
    assert columns(free, "impact") == columns(charged, "impact")


@pytest.mark.parametrize("seed", range(6))
def test_nobody_is_paid_for_pushing_the_price(seed: int) -> None:
    run = replay(tapes(seed), **MODELS).run
    for inst in (0, 1):
        assert run.fills["impact"][run.fills["instrument"] == inst].sum() > 0


@pytest.mark.parametrize("seed", range(4))
def test_buying_and_selling_are_mirror_images(seed: int) -> None:
    market, script = tapes(seed, 1), random_takes(seed, 12)
    other = [t.copy() for t in market]
    for t in other:
        t["side"] = -t["side"]
        priced = np.isin(t["kind"], [Kind.LEVEL, Kind.TRADE, Kind.CLEAR])
        t["price"][priced] = 2 * MID - t["price"][priced]
        t["ref_id"][t["kind"] == Kind.DATUM] = 0  # funding is no mirror image
    mirrored = [(at, inst, -side, lots, 2 * MID - p) for at, inst, side, lots, p in script]
    models = {**MODELS, "refill_probability": 1.0}
    one = takes(market, script, **models).run.fills
    two = takes(other, mirrored, **models).run.fills
    assert len(one) > 20
    names = ["order", "lots", "impact", "ts_venue", "reason", "extrapolated", "cause_row"]
    assert one[names].tolist() == two[names].tolist()
    assert (one["price"] + two["price"] == 2 * MID).all()
    assert (one["side"] == -two["side"]).all()


@pytest.mark.parametrize("rule", ["flat", "compound"])
def test_an_order_split_at_one_instant_costs_what_the_whole_costs(rule: str) -> None:
    def bought(*parts: int) -> tuple[dict[int, int], int]:
        sim = Sim(venue={**MODELS, "fade": 0.0, "fade_rule": rule})
        sim.book(bids={100: 30}, asks={101: 9, 102: 7, 104: 30})
        for lots in parts:
            sim.submit(BUY, lots=lots, price=None, tif=Tif.IOC, at=50)
        fills = sim.run().run.fills
        by_price = {
            int(p): int(fills["lots"][fills["price"] == p].sum()) for p in set(fills["price"])
        }
        return by_price, int(fills["impact"].sum())

    whole, cost = bought(24)
    assert whole == {101: 9, 102: 7, 104: 8}
    for parts in ((12, 12), (1, 5, 18), (8, 8, 8)):
        got, paid = bought(*parts)
        assert got == whole
        assert abs(paid - cost) <= 8  # each fill is rounded to the money unit


def test_a_level_that_flickers_gives_back_what_was_added_and_no_more() -> None:
    for seed in range(10):
        rng = np.random.default_rng(seed)
        sim = Sim(venue={"refill_half_life": 0})
        sim.book(bids={100: 30}, asks={101: 100})
        first = sim.submit(BUY, lots=100, price=101, tif=Tif.IOC, at=5)
        shown, added = 100, 0
        for k in range(20):
            after = int(rng.integers(max(shown - 9, 1), shown + 3))
            added, shown = added + max(after - shown, 0), after
            sim.level(SELL, 101, shown, at=10 + k)
        second = sim.submit(BUY, lots=1_000, price=101, tif=Tif.IOC, at=100)
        assert sim.filled(first) == 100
        assert sim.filled(second) <= min(added, shown)


# ---- one order less changes nobody else's luck ---------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_orders_elsewhere_change_no_draw(seed: int) -> None:
    """Two instruments of one venue: the second's orders are left out."""
    market = [random_tape(np.random.default_rng(seed * 2 + k), 300, T0) for k in range(2)]
    script = random_takes(seed, 9, instruments=2)
    alone = {**MODELS, "latency": {"ordering": "independent"}}
    both, one = (
        takes(market, what, names=("I0.V0", "I1.V0"), **alone).run.fills
        for what in (script, [s for s in script if s[1] == 0])
    )
    mine = both[both["instrument"] == 0]
    assert 5 < len(mine) < len(both)
    assert columns(mine, "order") == columns(one, "order")


@pytest.mark.parametrize("seed", range(6))
def test_an_order_behind_ours_changes_no_draw_of_ours(seed: int) -> None:
    """One tape, two bids: the lower one only gets what the higher one leaves."""
    tape = crowded_tape(np.random.default_rng(seed), 400, T0)

    def fills(*prices: int) -> list[Any]:
        class Bids(Strategy):
            def on_start(self) -> None:
                for price in prices:
                    self.at(T0 + 5 * MS, self.submit, BUY, 6, price, POST_ONLY)

        run = replay([tape], cls=Bids, compute=0, **MODELS).run
        names = ["lots", "price", "ts_venue", "ahead_at_accept"]
        return run.fills[run.fills["order"] == 1][names].tolist()

    assert fills(MID - 1, MID - 2) == fills(MID - 1)


class Both(Strategy):
    """Two bids from the start, one taken back late, and takers that only buy, by a script."""

    script: list[tuple[int, int, int]]

    def on_start(self) -> None:
        self.at(T0 + MS, self.open)
        for at, lots, price in self.script:
            self.at(at, self.take, lots, price)

    def open(self) -> None:
        for price in (MID - 1, MID - 2, MID - 3):
            order = self.submit(BUY, 30, price, POST_ONLY)
            self.at(T0 + 120 * MS, self.cancel, order)

    def take(self, lots: int, price: int) -> None:
        self.submit(BUY, lots, price, Tif.IOC)


def deep_tape(rng: np.random.Generator) -> np.ndarray:
    """A row a ms or so; nothing ever empties, so that fills of the best bid are places in it."""
    shown = {(side, MID - side * k): 60 for side in (1, -1) for k in range(1, 4)}
    rows = [(T0, Kind.LEVEL, side, price, 60) for side, price in shown]
    for ts in np.cumsum(rng.integers(MS // 10, MS, 700)) + T0:
        side = int(rng.choice([1, -1]))
        level = (side, MID - side * int(rng.integers(1, 4)))
        by, prints = int(rng.integers(-9, 12)), False
        if rng.random() < 0.3:
            level, by, prints = (side, MID - side), -int(rng.integers(1, 7)), True
            rows.append((int(ts), Kind.TRADE, -side, level[1], -by))
        shown[level] = max(shown[level] + by, 1 if prints else 30)
        rows.append((int(ts), Kind.LEVEL, *level, shown[level]))
    flags = int(SEEN_BY_BOTH | Flag.LAST)
    rest = [(ts, ts + 500, p, q, 0, 0, 0, 0, kind, s, flags) for ts, kind, s, p, q in rows]
    return np.array(rest, EVENT)


FOR_TAKERS: dict[str, dict[str, Any]] = {
    "refill_probability": {"refill_probability": 1.0},
    "refill_half_life": {"refill_half_life": 0},
    "fade": {"fade": 0.3, "fade_rule": "compound"},
    "impact": {"impact": {}},
    "participation_cap": {"participation_cap": 0.05},
}
FOR_MAKERS: dict[str, dict[str, Any]] = {
    "queue_draws": {"queue_draws": False},
    "queue": {"queue": "uniform"},
    "queue_n": {"queue_n": 0.7},
}
FOR_CANCELS: dict[str, dict[str, Any]] = {"entry_cancel": {"entry_cancel": 40 * MS}}


def test_switching_one_model_changes_no_draw_of_the_others() -> None:
    drawn = {"profile": "cross-region", "model": "empirical", "ordering": "independent"}
    drawn |= {"entry": "profile", "response": "profile", "entry_cancel": MS, "scale": 0.02}
    switches = {**FOR_TAKERS, **FOR_MAKERS, **FOR_CANCELS}
    changed = dict.fromkeys(switches, 0)
    for seed in range(3):
        tape = deep_tape(np.random.default_rng(seed))
        rng = np.random.default_rng(seed + 99)
        script = [
            (int(at), int(rng.integers(1, 15)), MID + int(rng.integers(1, 4)))
            for at in rng.integers(T0 + 5 * MS, T0 + 300 * MS, 60)
        ]
        cls = type("Scripted", (Both,), {"script": script, "__module__": __name__})

        def play(cls: Any = cls, tape: Any = tape, **what: Any) -> list[Any]:
            legs = {k: what.pop(k) for k in FOR_CANCELS if k in what}
            settings = {**MODELS, **what}
            run = replay([tape], cls=cls, compute=0, latency=drawn | legs, **settings).run
            ways = run.orders[["ts_send", "ts_arrive"]].tolist()
            fills = run.fills[["order", "lots", "price", "ts_venue", "ts_recv", "impact"]]
            taken = run.fills["reason"] == TAKEN
            early = run.fills["ts_venue"] < T0 + 120 * MS  # before any cancel
            parts = [fills[m].tolist() for m in (taken, ~taken & early, ~taken)]
            return [ways, *parts, run.orders["ts_done"].tolist()]

        base = play()
        assert min(map(len, base)) > 3
        for name, what in switches.items():
            other = play(**what)
            assert other[0] == base[0], name  # every order travels as long
            if name not in FOR_TAKERS:
                assert other[1] == base[1], name
            if name not in FOR_MAKERS:
                assert other[2] == base[2], name
            if name in FOR_TAKERS:
                assert other[3] == base[3], name
            changed[name] += other != base
    assert all(changed.values()), changed  # each of them does something


class Looks(Takes):
    """Also looks at all it can see, ten times a ms."""

    def on_start(self) -> None:
        super().on_start()
        self.every(MS // 10, self.look)

    def look(self) -> None:
        for inst in self.all:
            book = self.book(inst)
            for price in range(MID - 5, MID + 6):
                book.lots_at(BUY, price), book.lots_at(SELL, price)
            assert book.age_ns >= 0 or not book.live


@pytest.mark.parametrize("sample", [0, MS, 10**9])
def test_a_mid_beyond_the_last_row_is_unknown(sample: int) -> None:
    sim = Sim(engine={"sample": sample})
    sim.end = 100 * MS - 1
    sim.book(bids={100: 5}, asks={102: 5})
    sim.submit(BUY, price=None, lots=1, at=0)
    sim.tick(sim.end)
    none = np.iinfo(np.int64).min
    assert sim.run().run.fills["markout_mid2"].tolist() == [[202] + [none] * 5]


@pytest.mark.parametrize("seed", range(3))
def test_looking_more_often_changes_nothing(seed: int) -> None:
    script = random_takes(seed, 9, instruments=2)
    found = []
    for base in (Takes, Looks):
        cls = type("Script", (base,), {"script": script, "__module__": __name__})
        found.append(replay(tapes(seed), cls=cls, compute=0, chunk=77, **MODELS).run)
    assert len(found[0].fills) > 20
    assert found[0].fills.tobytes() == found[1].fills.tobytes()
    assert found[0].orders.tobytes() == found[1].orders.tobytes()


class ByName(Strategy):
    script: list[tuple[int, int, int, int, int]]

    def on_start(self) -> None:
        for at, inst, *what in self.script:
            self.at(at, self.take, ("A0.V0", "B1.V0")[inst], *what)

    def take(self, name: str, side: int, lots: int, price: int) -> None:
        self.submit(name, side, lots, price, Tif.IOC if lots % 3 else Tif.GTC)


@pytest.mark.parametrize("seed", range(4))
def test_the_order_of_instruments_is_of_no_consequence(seed: int) -> None:
    market = dict(zip(("A0.V0", "B1.V0"), tapes(seed), strict=True))
    script = random_takes(seed, 9, instruments=2)
    cls = type("Script", (ByName,), {"script": script, "__module__": __name__})
    # Draws of queues and of refills are keyed by the instrument's number.
    models = {**MODELS, "queue_draws": False, "refill_probability": 1.0}
    found = []
    for names in (tuple(market), tuple(reversed(market))):
        run = replay([market[n] for n in names], cls=cls, compute=0, names=names, **models).run
        each = {n: run.fills[run.fills["instrument"] == k] for k, n in enumerate(names)}
        assert all(len(fills) > 10 for fills in each.values())
        found.append({n: columns(fills, "instrument") for n, fills in each.items()})
    assert found[0] == found[1]


# ---- money ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("models", [{}, MODELS], ids=["off", "on"])
@pytest.mark.parametrize("seed", range(5))
def test_the_account_is_the_sum_of_its_fills(seed: int, models: dict[str, Any]) -> None:
    run = replay(tapes(seed), **models).run
    assert len(run.fills) > 10
    for inst in (0, 1):
        fills = run.fills[run.fills["instrument"] == inst]
        last = run.samples[run.samples["instrument"] == inst][-1]
        assert last["position"] == (fills["side"] * fills["lots"]).sum()
        assert last["fees"] == fills["fee"].sum()
        assert last["impact"] == fills["impact"].sum()
        if last["bid"] > 0 and last["ask"] > 0:
            cash = -(fills["side"].astype(np.int64) * fills["lots"] * fills["price"]).sum() * 10**9
            mark = int(last["position"]) * (int(last["bid"]) + int(last["ask"])) * 500_000_000
            paid = sum(int(last[k]) for k in ("fees", "funding", "impact"))
            assert last["equity"] == cash + mark - paid


# ---- the same every time -------------------------------------------------------------------------

PROCESS = """
import hashlib, sys
sys.path.insert(0, {here!r})
from test_honesty import replay, tapes
print(hashlib.sha256(replay(tapes(3, 3), chunk=int(sys.argv[1])).journal).hexdigest())
"""


def test_journals_are_equal_in_any_process_with_any_hash_seed_and_chunk_size() -> None:
    code = PROCESS.format(here=str(Path(__file__).parent))
    said = {
        subprocess.run(
            [sys.executable, "-c", code, chunk],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout.strip()
        for seed, chunk in (("0", "1"), ("1", "7"), ("random", "1000"))
    }
    assert len(said) == 1


@pytest.mark.parametrize("models", [{}, MODELS], ids=["off", "on"])
@pytest.mark.parametrize("chunk", [1, 7, 100])
def test_chunks_leave_no_trace(chunk: int, models: dict[str, Any]) -> None:
    one, other = (
        hashlib.sha256(replay(tapes(5, 3), chunk=c, **models).journal).digest()
        for c in (chunk, 1000)
    )
    assert one == other


# ---- one server, two clocks ----------------------------------------------------------------------


class Slow(Scripted):
    def on_book(self, book: Any) -> None:
        self.heard.append((self.now - T0, book.bid, "book"))
        if book.bid == 101:
            self.order = self.submit(BUY, 1, 90)


def test_a_handlers_time_delays_later_handlers_and_its_orders() -> None:
    sim = Sim(entry=10, response=10, compute=100)
    sim.strategy = Slow
    sim.book(bids={100: 1}, asks={110: 1}, at=0)
    sim.level(BUY, 101, 1, at=1_000)
    sim.level(BUY, 102, 1, at=1_030)  # waits until 1,100
    sim.level(BUY, 103, 1, at=1_150)  # waits until 1,300, for the answer came before it
    sim.level(BUY, 104, 1, at=1_500)
    sim.run()
    books = [(at, bid) for at, bid, what in sim.outcome.strategy.heard if what == "book"]
    assert books[:5] == [(0, 100), (1_000, 101), (1_100, 102), (1_300, 103), (1_500, 104)]
    row = sim.outcome.run.orders[0]
    assert (row["ts_decide"] - T0, row["ts_send"] - T0, row["ts_arrive"] - T0) == (
        1_000,
        1_100,
        1_110,
    )
    answer = next((at, state) for at, order, state in sim.outcome.strategy.heard if order == 1)
    assert answer == (1_200, "NEW")  # it came at 1,120, while 102 was served


def test_inputs_wait_in_order_of_arrival() -> None:
    sim = Sim(entry=0, response=5, compute=1_000)
    sim.strategy = Slow
    sim.book(bids={100: 1}, asks={110: 1}, at=0)
    sim.submit(BUY, price=90, lots=1, at=10)  # handled at 1,000, sent at 2,000, answered at 2,005
    sim.level(BUY, 104, 1, at=2_004)
    sim.level(BUY, 105, 1, at=2_006)
    sim.tick(20_000)
    sim.run()
    heard = [(bid, what) for _, bid, what in sim.outcome.strategy.heard]
    assert heard[:4] == [(100, "book"), (104, "book"), (1, "NEW"), (105, "book")]


def decisions(feed: int, entry: int) -> tuple[list[Any], list[int]]:
    class Cancels(Strategy):
        """Cancels its bid when the bid below it thins out."""

        def on_start(self) -> None:
            seen.clear()
            self.order: Any = None
            self.at(T0 + 50, self.go)
            self.every(100, self.look)

        def go(self) -> None:
            self.order = self.submit(BUY, 5, 100)

        def look(self) -> None:
            book = self.book()
            seen.append((self.now - T0, book.touch, book.lots_at(BUY, 100), book.age_ns))
            if self.order and self.order.alive and book.live and book.lots_at(BUY, 100) < 5:
                self.cancel(self.order)

    seen: list[Any] = []
    sim = Sim(entry=entry, response=10, feed=feed)
    sim.strategy = Cancels
    sim.book(bids={100: 10}, asks={101: 10}, at=0)
    for k in range(1, 10):
        sim.level(BUY, 100, 10 - k, at=170 * k)
    sim.trade(SELL, 99, 10, at=1_260)
    outcome = sim.run()
    return list(seen), [int(f["ts_venue"] - T0) for f in outcome.run.fills]


def test_feed_delay_changes_what_is_seen_and_entry_delay_does_not() -> None:
    fresh, saved = decisions(feed=0, entry=10)
    stale, filled = decisions(feed=400, entry=10)
    late, caught = decisions(feed=0, entry=300)
    assert late == fresh
    assert stale != fresh
    assert (saved, filled) == ([], [1_260])  # on stale data the cancel came too late
    assert caught == [1_260]  # and so it did on fresh data with a slow wire


def test_no_delay_at_all_is_the_limit_of_small_ones() -> None:
    market = tapes(9, 1, 300)
    zero = replay(market, entry=0, response=0, compute=0, feed=0).run
    assert (zero.orders["ts_arrive"] == zero.orders["ts_decide"]).all()
    assert (zero.fills["ts_recv"] == zero.fills["ts_venue"]).all()


def test_constants_shift_every_arrival_exactly() -> None:
    for entry in (0, 1, 777, 5 * MS):
        sim = Sim(entry=entry, response=3)
        sim.book(bids={100: 10}, asks={101: 10})
        for at in (10, 11, 500):
            sim.submit(BUY, price=100, lots=1, at=at)
        sim.run()
        assert (sim.outcome.run.orders["ts_arrive"] - T0).tolist() == [
            at + entry for at in (10, 11, 500)
        ]

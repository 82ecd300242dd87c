"""What our own trading does to what we find: closed forms, limits and mirrors of whole runs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from random_market import MID, random_tape
from sim import MONEY, T0, Sim
from twins import MS, Randomly, random_script

from hft.analysis.records import FILL_ROW
from hft.engine import run_once
from hft.errors import ConfigError
from hft.execution.impact import Kernel
from hft.plan import prepare
from hft.types import EVENT, SEEN_BY_BOTH, Flag, InstrumentSpec, Kind, Tif

BUY, SELL = 1, -1
S = 1_000_000_000
ALL_ON: dict[str, Any] = {
    "refill_half_life": "30ms",
    "fade": 0.2,
    "fade_rule": "compound",
    "queue_draws": True,
    "impact": {"weights": [2e-3, 1e-3], "half_lives": ["5ms", "80ms"], "permanent": 1e-3},
    "participation_flag": 0.3,
}
OFF: dict[str, Any] = {"refill_half_life": 0, "participation_flag": 0.3}


def ladder_of(levels: int, lots: int) -> dict[int, int]:
    return {10_000 + i: lots for i in range(levels)}


def cost_of_walking(sim: Sim, tick: float) -> float:
    """Paid beyond the touch [currency]."""
    return sum((f.price - 10_000) * f.lots for f in sim.fills()) * tick


# ---- walking and fading


def test_a_walk_costs_what_the_closed_form_says() -> None:
    sim = Sim(tick=0.01)
    sim.book(bids={9_999: 100}, asks=ladder_of(8, 100))
    sim.submit(BUY, price=None, lots=550, at=10)
    assert cost_of_walking(sim, 0.01) == pytest.approx(12.5)


def test_flat_fade_is_a_walk_over_thinner_levels() -> None:
    sim = Sim(tick=0.01, venue={"fade": 0.1})
    sim.book(bids={9_999: 100}, asks=ladder_of(8, 100))
    sim.submit(BUY, price=None, lots=500, at=10)
    assert cost_of_walking(sim, 0.01) == pytest.approx(11.5)
    assert sim.run().run.counters["taker_unfilled_lots"] == 0


def test_compound_fade_has_a_capacity_and_reports_what_it_cannot_fill() -> None:
    lots, d = 100_000, 0.3
    sim = Sim(venue={"fade": d, "fade_rule": "compound"})
    sim.book(bids={9_999: 1}, asks=ladder_of(60, lots))
    sim.submit(BUY, price=None, lots=10 * lots, at=10)
    filled = sum(f.lots for f in sim.fills())
    assert filled == sum(math.floor(lots * (1 - d) ** (i + 1) + 1e-9) for i in range(60))
    assert filled == pytest.approx(lots * (1 - d) / d, abs=60)
    counters = sim.run().run.counters
    assert counters["taker_unfilled_lots"] == 10 * lots - filled
    assert counters["faded_lots"] == 10 * lots - filled


def test_fade_is_for_takers_only() -> None:
    sim = Sim(venue={"fade": 0.9})
    sim.book(bids={99: 10}, asks={101: 1})
    late = sim.submit(BUY, price=101, lots=1, at=10, tif=Tif.POST_ONLY)
    taker = sim.submit(BUY, price=101, lots=1, at=20, tif=Tif.IOC)
    assert sim.reason(late) == "WOULD_CROSS"  # it shows one lot
    assert sim.filled(taker) == 0  # and a tenth of a lot is none


@pytest.mark.parametrize(("tif", "state"), [(Tif.FOK, "EXPIRED"), (Tif.GTC, "PARTIALLY_FILLED")])
def test_a_faded_book_may_be_too_little(tif: Tif, state: str) -> None:
    sim = Sim(venue={"fade": 0.5, "cross": "wait_trade"})
    sim.book(bids={99: 10}, asks={101: 10})
    order = sim.submit(BUY, price=101, lots=8, at=10, tif=tif)
    assert sim.state(order) == state
    assert sim.run().run.counters["taker_unfilled_lots"] == (8 if tif == Tif.FOK else 0)


# ---- the overlay


def overlay_of(kernel: Kernel) -> dict[str, Any]:
    config = kernel.to_config()
    return {
        "impact": {
            "weights": list(config.weights),
            "half_lives": list(config.half_lives),
            "permanent": config.permanent,
        }
    }


def schedule(kernel: Kernel, trades: Mapping[int, int], *, end: int | None = None) -> Sim:
    """Market orders of so many signed lots at those times, in a book that hardly notices."""
    sim = Sim(venue=overlay_of(kernel), engine={"sample": 0})
    sim.book(bids={99: 10**9}, asks={101: 10**9})
    for at, lots in trades.items():
        sim.submit(BUY if lots > 0 else SELL, price=None, lots=abs(lots), at=at)
    if end is not None:
        sim.end = end
        sim.tick(end)
    return sim


def test_the_engine_charges_obizhaeva_and_wangs_least_cost() -> None:
    depth, half_life = 1_000.0, S
    kernel = Kernel((1 / depth,), (half_life,))
    # six trades a half-life apart: a = 1/2, the ends are a quarter, the others an eighth
    trades = {S * (1 + k): 2_000 if k in (0, 5) else 1_000 for k in range(6)}
    closed = 8_000**2 * 1.5 / (2 * depth * (6 * 0.5 + 1))
    impact = schedule(kernel, trades).run().run.fills["impact"]
    assert impact.sum() / MONEY == pytest.approx(closed, rel=1e-12)
    assert impact.sum() / MONEY == pytest.approx(kernel.cost(list(trades), list(trades.values())))
    rng = np.random.default_rng(2)
    for _ in range(20):  # any other schedule costs more
        moved = np.array(list(trades.values())) + (d := rng.integers(-300, 300, 6)) - d.sum() // 6
        moved[0] += 8_000 - moved.sum()
        assert kernel.cost(list(trades), moved) >= closed


def test_the_push_read_back_after_a_take_is_the_kernel() -> None:
    kernel = Kernel((0.02, 0.05), (S, 7 * S), 0.01)
    for end in (1 * S, 2 * S, 5 * S, 20 * S):
        run = schedule(kernel, {0: -30}, end=end).run().run
        after = run.ts_end - int(run.fills["ts_venue"][0])
        assert run.overlay_ticks == pytest.approx([-30 * float(kernel.at(after))], rel=1e-12)


def test_the_account_pays_the_impact_and_fills_stay_at_the_tapes_prices() -> None:
    sim = schedule(Kernel((0.5,), (S,)), {10: 4, 20: -4})
    fills = sim.run().run.fills
    assert fills["price"].tolist() == [101, 99]
    assert fills["impact"][0] == 4 * MONEY  # 4 lots at 0.5 * 4 / 2 ticks
    assert sim.equity() == -8 * MONEY - int(fills["impact"].sum())


def test_waiting_makes_the_second_slice_cheaper() -> None:
    kernel = Kernel((0.1,), (S,))
    costs = [
        schedule(kernel, {0: 50, gap: 50}).run().run.fills["impact"][1]
        for gap in (1, S // 2, S, 3 * S)
    ]
    assert all(a > b for a, b in itertools.pairwise(costs))


# ---- participation


def test_a_cap_holds_takers_back_and_the_rest_is_reported() -> None:
    sim = Sim(venue={"participation_cap": 0.2, "participation_window": 1_000})
    sim.book(bids={99: 100}, asks={101: 100})
    sim.trade(BUY, 101, 40, at=10)
    first = sim.submit(BUY, price=None, lots=10, at=20)
    second = sim.submit(BUY, price=None, lots=10, at=30)
    assert (sim.filled(first), sim.filled(second)) == (8, 0)
    counters = sim.run().run.counters
    assert counters["capped_lots"] == 12
    assert counters["taker_unfilled_lots"] == 12
    assert sim.run().run.traded_lots == [40]


def windows(rows: Mapping[int, int], ts: int, width: int) -> int:
    now = ts // width
    return sum(lots for at, lots in rows if at <= ts and now - at // width in (0, 1))


def run_of_takers(venue: dict[str, Any], seed: int) -> tuple[Any, np.ndarray]:
    """Only orders that take, on a random tape."""
    rng = np.random.default_rng(seed)
    tape = random_tape(rng, 400, T0, calm=True)
    end = int(tape["ts_recv"].max())
    script = [s for s in random_script(rng, 1, end) if s[1] == "submit"]
    script = [(*s[:6], 1) for s in script]
    return play(tape, script, venue), tape


@pytest.mark.parametrize("seed", range(5))
def test_own_volume_never_exceeds_the_cap_and_fills_tell_when_it_is_much(seed: int) -> None:
    width, cap, flag = 40 * MS, 0.5, 0.2
    shares = dict(participation_window=width, participation_flag=flag)
    for venue in ({**shares, "participation_cap": cap}, shares):
        run, tape = run_of_takers(venue, seed)
        prints = tape[tape["kind"] == Kind.TRADE]
        market = list(zip(prints["ts_event"].tolist(), prints["qty"].tolist(), strict=True))
        own: list[tuple[int, int]] = []
        assert len(run.fills) > 10
        for f in run.fills:
            ts = int(f["ts_venue"])
            own.append((ts, int(f["lots"])))
            ours, theirs = windows(own, ts, width), windows(market, ts, width)
            assert ours <= cap * theirs or "participation_cap" not in venue
            assert bool(f["extrapolated"]) == (ours > flag * theirs)
        assert run.counters["fills_extrapolated"] == run.fills["extrapolated"].sum()
        assert run.traded_lots == [int(prints["qty"].sum())]


def test_the_whole_market_is_counted_where_we_never_traded_too() -> None:
    sim = Sim(also=("Y.SIM",))
    for at in range(1, 50):
        sim.trade(BUY, 101, 2, at=at)
        sim.trade(SELL, 99, 3, at=at, inst="Y.SIM")
    sim.submit(BUY, price=90, lots=1, at=20)
    assert sim.run().run.traded_lots == [98, 147]


def test_a_fill_of_our_own_size_in_a_quiet_market_is_extrapolated() -> None:
    sim = Sim()
    sim.book(bids={99: 100}, asks={101: 100})
    sim.submit(BUY, price=None, lots=1, at=10)
    assert sim.run().run.fills["extrapolated"].tolist() == [1]


# ---- data without depth


def touch(model: str, **more: Any) -> Sim:
    slippage = {"model": model, "coefficient": 0.5, **more}
    sim = Sim(venue={"depth": "touch", "slippage": slippage, "participation_window": 1_000})
    for k in range(5):  # mids 100, 101, 100, 101, 100: four moves of one tick
        sim.book(bids={99 + k % 2: 1, 100 - k % 2: 0}, asks={101 + k % 2: 1, 102 - k % 2: 0}, at=k)
    sim.trade(BUY, 101, 100, at=5)
    return sim


@pytest.mark.parametrize(
    ("model", "more", "ticks"),
    [
        ("spread", {}, 0.5 * 2),
        # four squared ticks in the windows' time so far, over a horizon of 2 us
        ("volatility", {"horizon": 2_000}, None),
        ("square_root", {}, 0.5 * math.sqrt(4 * 25 / 100)),
    ],
)
def test_a_taker_fills_whole_at_the_touch_and_pays_the_model(
    model: str, more: dict[str, Any], ticks: float | None
) -> None:
    sim = touch(model, **more)
    order = sim.submit(BUY, price=None, lots=25, at=10)
    if ticks is None:
        elapsed = (T0 + 10) - ((T0 + 10) // 1_000 - 1) * 1_000
        ticks = 0.5 * math.sqrt(4 * 2_000 / elapsed)
    (fill,) = sim.fills(order)
    assert (fill.price, fill.lots) == (101, 25)
    assert sim.run().run.fills["impact"][0] == pytest.approx(25 * ticks * MONEY, abs=1)


def test_nothing_is_consumed_at_the_touch_and_an_empty_side_gives_nothing() -> None:
    sim = Sim(venue={"depth": "touch"})
    sim.book(bids={99: 1}, asks={101: 1})
    for at in (10, 11):
        assert sim.submit(BUY, price=101, lots=50, at=at, tif=Tif.FOK)
    none = sim.submit(BUY, price=100, lots=50, at=12, tif=Tif.IOC)
    sim.level(SELL, 101, 0, at=20)
    empty = sim.submit(BUY, price=None, lots=5, at=30)
    assert [f.lots for f in sim.fills()] == [50, 50]
    assert [sim.reason(o) for o in (none, empty)] == ["NO_LIQUIDITY", "NO_LIQUIDITY"]


# ---- limits and mirrors of whole runs


def play(tape: np.ndarray, script: list[tuple[Any, ...]], venue: dict[str, Any]) -> Any:
    recipe = {
        "latency": dict(entry=50_000, response=50_000, compute=0),
        "venue": venue,
        "engine": {"bracket": False},
    }
    cls = type("Play", (Randomly,), {"script": script, "__module__": __name__})
    spec = InstrumentSpec(symbol="X", venue="SIM", tick=1.0, lot=1.0)
    outcome = run_once(prepare(cls, {"X.SIM": tape}, specs=[spec], recipe=recipe))
    assert outcome.run.status == "complete", outcome.run.error
    return outcome.run


@pytest.mark.parametrize("seed", range(4))
def test_as_our_size_goes_to_nothing_fills_are_those_of_the_plain_tape(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tape = random_tape(rng, 500, T0, explains=True)
    # Prints stay small: where we took, those not shown yet are missing too, whatever our size.
    tape["qty"][tape["kind"] == Kind.LEVEL] *= 10**9
    script = random_script(rng, 1, int(tape["ts_recv"].max()))
    script = [(*s[:4], 1, *s[5:]) for s in script]
    plain = play(tape, script, OFF)
    # A lot weighs as little as it is: 1e-9 of a level, and so little of its push.
    impact = {**ALL_ON["impact"], "weights": [2e-12, 1e-12], "permanent": 1e-12}
    modelled = play(tape, script, {**ALL_ON, "queue_draws": False, "impact": impact})
    assert len(plain.fills) > 30
    assert plain.fills.tobytes() == modelled.fills.tobytes()
    assert plain.orders.tobytes() == modelled.orders.tobytes()


def mirrored(tape: np.ndarray, about: int) -> np.ndarray:
    other = tape.copy()
    other["side"] *= -1
    other["price"] = 2 * about - tape["price"]
    return other


@pytest.mark.parametrize("seed", range(6))
def test_buying_and_selling_are_mirrors(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tape = random_tape(rng, 500, T0, calm=True, explains=True)
    script = random_script(rng, 1, int(tape["ts_recv"].max()))
    other = [(*s[:3], -s[3], s[4], None if s[5] is None else 2 * MID - s[5], s[6]) for s in script]
    ours = play(tape, script, ALL_ON).fills
    theirs = play(mirrored(tape, MID), other, ALL_ON).fills
    assert len(ours) > 30
    assert ours["impact"].any()
    for name in FILL_ROW.names or ():
        mine, mirror = ours[name], theirs[name]
        if name in ("side", "position"):
            mirror = -mirror
        elif name == "price":
            mirror = 2 * MID - mirror
        elif name in ("mid2", "markout_mid2"):
            none = np.iinfo(np.int64).min
            mirror = np.where(mirror == none, none, 4 * MID - mirror)
        np.testing.assert_array_equal(mine, mirror, err_msg=name)


# ---- what is refused


def orders_of_levels() -> np.ndarray:
    flags = int(SEEN_BY_BOTH | Flag.LAST)
    rows = [
        (T0 + k, T0 + k, 100 + 2 * k, 5, k + 1, 0, 0, 0, Kind.ADD, 1 - 2 * k, flags) for k in (0, 1)
    ]
    return np.array(rows, EVENT)


def refused(venue: dict[str, Any], why: str, tape: np.ndarray | None = None) -> None:
    tape = orders_of_levels() if tape is None else tape
    with pytest.raises(ConfigError, match=why):
        play(tape, [], venue)


def test_models_that_a_feed_cannot_bear_are_refused_with_the_reason() -> None:
    refused({"fade": 0.1}, "venue.fade is 0.1, but X.SIM tells every order")
    refused({"slippage": {"model": "spread"}}, 'expected venue.depth = "touch"')
    refused({"participation_window": 0}, "participation_window is 0")
    refused(
        {"impact": {"weights": [1.0], "half_lives": []}},
        "venue.impact: a kernel has 1 weights and 0 half-lives",
    )
    refused({"impact": {"weights": [1.0], "half_lives": [0]}}, "half-life 0 of a kernel is 0 ns")
    refused({"impact": {"weights": [-1.0], "half_lives": ["1s"]}}, r"weights.*expected.*0")

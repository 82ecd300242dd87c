"""Cases that a well-known engine (hftbacktest 2.4.4) gets wrong or right, with the right answer.

Numbers are those of the list this project keeps of them; a name with `l3` plays the case on a feed
told order by order. Each test says what happens at a venue, not what the other engine does.
"""

from __future__ import annotations

import gc
import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sim import MONEY, Sim

import hft
from hft import Strategy
from hft.errors import ConfigError, DataError, OrderError
from hft.types import BUY, FOK, IOC, POST_ONLY, SELL, Flag, InstrumentSpec, Kind

SPEC = InstrumentSpec(symbol="X", venue="SIM", tick=1.0, lot=1.0)


def two_levels(**more: Any) -> Sim:
    sim = Sim(**more)
    sim.book(bids={100: 10}, asks={101: 10, 102: 10}, at=0)
    return sim


def orders(**more: Any) -> Sim:
    """Order 1 bids for 10 @ 99, order 2 offers 10 @ 101."""
    sim = Sim(**more)
    sim.theirs(Kind.ADD, 1, BUY, 99, 10, at=0)
    sim.theirs(Kind.ADD, 2, SELL, 101, 10, at=0)
    return sim


def test_01_a_second_print_fills_the_rest() -> None:
    sim = Sim()
    sim.book(bids={99: 10}, asks={101: 10})
    order = sim.submit(BUY, price=99, lots=10, at=1)
    sim.trade(SELL, 99, 14, at=50)
    sim.trade(SELL, 99, 100, at=60)
    assert [f.lots for f in sim.fills(order)] == [4, 6]
    assert sim.position() == 10


def test_02_a_print_that_reaches_exactly_our_size_fills_once() -> None:
    sim = Sim()
    sim.book(bids={99: 10}, asks={101: 10})
    order = sim.submit(BUY, price=99, lots=10, at=1)
    sim.trade(SELL, 99, 20, at=50)
    sim.trade(SELL, 99, 5, at=60)
    assert sim.updates(order) == ["ACCEPTED@1", "FILLED@50"]


def test_03_immediate_or_cancel_takes_both_levels() -> None:
    sim = two_levels()
    order = sim.submit(BUY, price=102, lots=25, tif=IOC, at=1)
    assert sim.filled(order) == 20
    assert sim.state(order) == "EXPIRED"


@pytest.mark.parametrize(("price", "tif"), [(102, hft.GTC), (102, FOK), (102, IOC), (None, IOC)])
def test_04_fifteen_over_two_levels_cost_1520(price: int | None, tif: Any) -> None:
    sim = two_levels()
    order = sim.submit(BUY, price=price, lots=15, tif=tif, at=1)
    assert sum(f.lots * f.price for f in sim.fills(order)) == 1520
    assert sim.state(order) == "FILLED"
    assert sim.equity() == (15 * 201 // 2 * MONEY + MONEY // 2 * (15 * 201 % 2)) - 1520 * MONEY


def test_05_the_same_ten_lots_are_taken_once() -> None:
    sim = two_levels()
    orders = [sim.submit(BUY, price=101, lots=10, tif=IOC, at=1) for _ in range(3)]
    huge = sim.submit(BUY, price=101, lots=1_000_000, tif=FOK, at=1)
    assert [sim.filled(o) for o in orders] == [10, 0, 0]
    assert sim.updates(huge) == ["EXPIRED@1"]


def test_06_market_buy_into_an_empty_book_expires() -> None:
    sim = Sim()
    sim.book(bids={100: 10})
    order = sim.submit(BUY, price=None, lots=5, tif=IOC, at=1)
    assert sim.updates(order) == ["EXPIRED@1"]
    assert sim.reason(order) == "NO_LIQUIDITY"
    assert sim.position() == 0


def test_07_two_own_orders_share_what_is_left_in_time_order() -> None:
    sim = Sim()
    sim.book(bids={99: 10}, asks={101: 10})
    first = sim.submit(BUY, price=99, lots=10, at=1)
    second = sim.submit(BUY, price=99, lots=10, at=2)
    sim.trade(SELL, 99, 15, at=50)
    assert (sim.filled(first), sim.filled(second)) == (5, 0)


def test_09_one_lot_at_our_price_fills_one_lot() -> None:
    sim = two_levels()
    order = sim.submit(BUY, price=100, lots=1000, at=1)
    sim.level(SELL, 100, 1, at=50)
    assert sim.filled(order) == 1


def test_10_replace_to_a_total_of_six_after_four_leaves_two() -> None:
    sim = Sim()
    sim.book(bids={99: 10}, asks={101: 10})
    order = sim.submit(BUY, price=99, lots=10, at=1)
    sim.trade(SELL, 99, 14, at=50)
    sim.replace(order, lots=6, at=60)
    sim.trade(SELL, 98, 100, at=70)
    assert [f.lots for f in sim.fills(order)] == [4, 2]


def test_11_replace_to_more_rests_with_more() -> None:
    sim = two_levels()
    order = sim.submit(BUY, price=100, lots=10, at=1)
    sim.replace(order, lots=20, at=10)
    leaves: list[int] = []
    sim.call(lambda s: leaves.append(order.handle.leaves_lots), at=20)
    sim.trade(SELL, 99, 100, at=50)
    assert sim.filled(order) == 20
    assert leaves == [20]


def test_12_refused_replace_leaves_price_and_size_as_they_were() -> None:
    sim = two_levels(entry=10, response=10)
    order = sim.submit(BUY, price=100, lots=10, tif=POST_ONLY, at=1)
    sim.replace(order, price=101, lots=7, at=50)  # would cross
    sim.run()
    row = sim.order_row(order)
    assert (int(row["price"]), int(row["lots"])) == (100, 10)
    assert (sim.state(order), sim.reason(order)) == ("NEW", "WOULD_CROSS")


@pytest.mark.parametrize("gap_ns", [0, 500_000])
def test_15_a_print_shown_by_two_rows_is_counted_once(gap_ns: int) -> None:
    sim = Sim()
    sim.book(bids={99: 20}, asks={101: 10})
    order = sim.submit(BUY, price=99, lots=5, at=1)
    sim.trade(SELL, 99, 10, at=50)  # 10 of 20 ahead are gone
    sim.level(BUY, 99, 15, at=50)
    sim.level(BUY, 99, 10, at=50 + gap_ns)
    sim.trade(SELL, 99, 10, at=gap_ns + 100)  # reaches us exactly, fills nothing
    sim.trade(SELL, 99, 1, at=gap_ns + 200)
    assert [(f.ts, f.lots) for f in sim.fills(order)] == [(gap_ns + 200, 1)]


def rows(*times: tuple[int, int]) -> np.ndarray:
    sim = Sim()
    sim.book(bids={99: 20}, asks={101: 10})
    out = sim.markets["X.SIM"].array()
    return np.concatenate([out] + [stamped(out[-1:], event, recv) for event, recv in times])


def stamped(row: np.ndarray, event: int, recv: int) -> np.ndarray:
    row = row.copy()
    row["ts_event"] += event
    row["ts_recv"] += recv
    return row


def test_17_event_times_that_go_back_are_refused() -> None:
    with pytest.raises(DataError, match="ts_event"):
        hft.backtest(Strategy, {"X.SIM": rows((5000, 5000), (3000, 6000))}, specs=[SPEC])


def test_18_rows_received_before_they_happened_are_refused() -> None:
    with pytest.raises(DataError, match="ts_recv"):
        hft.backtest(Strategy, {"X.SIM": rows((5000, 4000))}, specs=[SPEC])


def test_21_arrays_are_not_changed_by_runs() -> None:
    data = rows((5000, 6000), (7000, 9000))
    before = hashlib.sha256(data.tobytes()).digest()
    for _ in range(2):
        hft.backtest(
            Strategy,
            {"X.SIM": data},
            specs=[SPEC],
            recipe={"latency": {"feed": "1ms", "scale": 2.0}, "engine": {"bracket": False}},
        )
    assert hashlib.sha256(data.tobytes()).digest() == before


def test_22_an_array_that_nobody_else_holds_stays_alive() -> None:
    class Look(Strategy):
        def on_book(self, book: Any) -> None:
            seen.append(book.touch)
            gc.collect()
            np.full(4096, -1, np.int64)  # would land in freed memory

    seen: list[Any] = []
    hft.backtest(
        Look,
        {"X.SIM": rows((5000, 6000), (7000, 9000)).copy()},
        specs=[SPEC],
        recipe={"engine": {"bracket": False}},
    )
    assert seen == [(99, 101)] * 3


def test_23_wrong_arrays_missing_facts_and_missing_files_are_refused() -> None:
    with pytest.raises(DataError, match="EVENT"):
        hft.backtest(Strategy, {"X.SIM": np.zeros((5, 8))}, specs=[SPEC])
    with pytest.raises(ConfigError, match="InstrumentSpec"):
        hft.backtest(Strategy, {"X.SIM": rows()})
    with pytest.raises(ConfigError, match="tick"):
        hft.backtest(
            Strategy,
            {"X.SIM": rows()},
            specs=[InstrumentSpec(symbol="X", venue="SIM", tick=0.0, lot=1.0)],
        )
    with pytest.raises((ConfigError, DataError), match="nowhere"):
        hft.backtest(Strategy, "nowhere/at/all.npz")


@pytest.mark.parametrize(
    ("lots", "price"), [(0, 100), (-5, 100), (5, float("nan")), (5, -5), (5, 0)]
)
def test_24_no_size_no_price_and_prices_below_a_tick_are_refused(lots: int, price: Any) -> None:
    caught: list[str] = []

    def act(s: Strategy) -> None:
        with pytest.raises(OrderError) as error:
            s.submit(BUY, lots, price)
        caught.append(str(error.value))

    sim = two_levels()
    sim.call(act, at=10)
    sim.run()
    assert len(caught) == 1
    assert sim.position() == 0


def test_24_a_size_off_the_lot_cannot_be_written() -> None:
    sim = two_levels()

    def act(s: Strategy) -> None:
        with pytest.raises(TypeError):
            s.submit(BUY, 0.4, 100)

    sim.call(act, at=10)
    sim.run()


def test_24_below_zero_only_where_the_market_is() -> None:
    sim = Sim()
    sim.book(bids={-5: 10}, asks={-2: 10})
    order: list[Any] = []
    sim.call(lambda s: order.append(s.submit(BUY, 3, -5)), at=10)
    sim.trade(SELL, -6, 20, at=50)
    import hft.data.checks as checks

    with pytest.MonkeyPatch.context() as patch:  # spreads: the data layer's switch for them
        patch.setattr(checks, "_LEAST_PRICE", np.full(256, -(1 << 60)))
        assert [f.price for f in sim.fills()] == [-5]


SWEEP = """
import hashlib, sys
sys.path.insert(0, {kit!r})
from sim import Sim
from hft.types import BUY, SELL, Kind
sim = Sim(entry=1, response=7)
sim.book(bids={{100: 7, 99: 9, 98: 3}}, asks={{101: 10}})
for k in range(60):
    sim.submit(BUY, price=98 + k % 3, lots=1 + k % 5, at=1 + k)
sim.trade(SELL, 98, 75, at=500)
sim.run()
print(sim.position(), sim.equity(), hashlib.sha256(sim.outcome.journal).hexdigest())
"""


SWEEP_L3 = SWEEP.replace(
    "sim.book(bids={{100: 7, 99: 9, 98: 3}}, asks={{101: 10}})",
    """
for n, (side, price, lots) in enumerate([(1, 100, 7), (1, 99, 9), (1, 98, 3), (-1, 101, 10)]):
    sim.theirs(Kind.ADD, n + 1, side, price, lots, at=0)
sim.theirs(Kind.ADD, 9, 1, 97, 75, at=400)
""",
).replace("sim.trade(SELL, 98, 75, at=500)", "sim.theirs(Kind.EXECUTE, 9, 1, 97, 75, at=500)")


def test_25_sixty_orders_swept_by_one_row_are_the_same_in_every_process() -> None:
    assert outputs(SWEEP) == 1


def outputs(script: str) -> int:
    """How many different outputs five processes print; none of them without a position."""
    code = script.format(kit=str(Path(__file__).parent / "pipe"))
    said = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
        ).stdout
        for seed in range(5)
    }
    assert all(int(line.split()[0]) > 0 for line in said)
    return len(said)


def test_26_three_tenths_less_three_tenths_is_nothing() -> None:
    sim = Sim(lot=0.1)
    sim.book(bids={100: 10}, asks={101: 10})
    for k in range(3):
        sim.submit(BUY, price=101, lots=1, tif=IOC, at=10 + k)
    sim.submit(SELL, price=100, lots=3, tif=IOC, at=20)
    flat: list[Any] = []
    sim.call(lambda s: flat.append((s.position().lots, s.position().flat)), at=30)
    assert sim.position() == 0
    assert flat == [(0, True)]
    assert sim.equity() == -3 * MONEY // 10


def test_32_an_order_in_flight_at_the_end_is_answered_and_the_clock_goes_with_it() -> None:
    sim = two_levels(entry=1000, response=1000)
    order = sim.submit(BUY, price=101, lots=5, tif=IOC, at=30)
    sim.end = 40
    sim.tick(40)
    run = sim.run().run
    fill = sim.fills(order)[0]
    assert (fill.ts, fill.heard) == (1030, 2030)
    assert run.ts_end - run.ts_start == 2030
    assert sim.last_sample()["position"] == 5


def test_35_samples_have_no_size_to_run_out_of() -> None:
    sim = two_levels(engine={"sample": "1ms"})
    sim.tick(5_000_000_000)
    assert len(sim.run().run.samples) >= 5_000


def test_36_fill_against_cancel_with_a_millisecond_each_way() -> None:
    ms = 1_000_000
    sim = two_levels(entry=ms, response=ms)
    order = sim.submit(BUY, price=100, lots=5, at=ms)
    sim.cancel(order, at=5 * ms)
    sim.trade(SELL, 99, 20, at=6 * ms)
    assert sim.updates(order) == [
        f"ACCEPTED@{2 * ms}",
        f"FILLED@{6 * ms}",
        f"CANCEL_REJECTED@{6 * ms}",
    ]


def test_37_post_only_is_judged_by_the_book_it_meets() -> None:
    sim = two_levels(entry=10, response=10)
    sim.level(SELL, 101, 0, at=5)  # the ask steps back while the order travels
    order = sim.submit(BUY, price=101, lots=5, tif=POST_ONLY, at=1)
    assert sim.updates(order) == ["ACCEPTED@11"]


# ---- told order by order


def test_01_l3_the_next_execution_fills_the_rest() -> None:
    sim = orders()
    order = sim.submit(BUY, price=99, lots=10, at=1)
    sim.theirs(Kind.ADD, 3, BUY, 99, 104, at=2)
    sim.theirs(Kind.EXECUTE, 1, BUY, 99, 10, at=50)  # those ahead of us
    sim.theirs(Kind.EXECUTE, 3, BUY, 99, 4, at=50)
    sim.theirs(Kind.EXECUTE, 3, BUY, 99, 100, at=60)
    assert [(f.ts, f.lots) for f in sim.fills(order)] == [(50, 4), (60, 6)]


def test_02_l3_an_execution_of_exactly_our_size_fills_once() -> None:
    sim = orders()
    order = sim.submit(BUY, price=99, lots=10, at=1)
    sim.theirs(Kind.ADD, 3, BUY, 99, 15, at=2)
    sim.theirs(Kind.EXECUTE, 3, BUY, 99, 10, at=50)
    sim.theirs(Kind.EXECUTE, 3, BUY, 99, 5, at=60)
    assert sim.updates(order) == ["ACCEPTED@1", "FILLED@50"]


def test_07_l3_two_own_orders_share_an_execution_in_time_order() -> None:
    sim = orders()
    first = sim.submit(BUY, price=99, lots=10, at=1)
    second = sim.submit(BUY, price=99, lots=10, at=2)
    sim.theirs(Kind.ADD, 3, BUY, 99, 15, at=3)
    sim.theirs(Kind.EXECUTE, 3, BUY, 99, 15, at=50)
    assert (sim.filled(first), sim.filled(second)) == (10, 5)


def test_09_l3_an_offer_of_one_lot_at_our_price_fills_one_lot() -> None:
    sim = orders()
    order = sim.submit(BUY, price=100, lots=1000, at=1)
    sim.theirs(Kind.ADD, 3, SELL, 100, 1, at=50)
    assert sim.filled(order) == 1


def test_15_l3_an_execution_told_by_three_rows_is_counted_once() -> None:
    sim = orders()
    sim.theirs(Kind.ADD, 3, BUY, 99, 10, at=0)
    order = sim.submit(BUY, price=99, lots=5, at=1)
    sim.theirs(Kind.ADD, 4, BUY, 99, 10, at=2)
    for number in (1, 3):  # 20 ahead of us are gone
        sim.trade(SELL, 99, 10, at=50, flags=int(Flag.SEEN_BY_VENUE | Flag.SEEN_BY_US | 128))
        told = int(Flag.NO_PRINT | Flag.NO_CHANGE)
        sim.theirs(Kind.EXECUTE, number, BUY, 99, 10, at=50, flags=told)
        sim.theirs(Kind.CANCEL, number, BUY, 99, 10, at=50)
    sim.theirs(Kind.EXECUTE, 4, BUY, 99, 1, at=60)
    assert [(f.ts, f.lots) for f in sim.fills(order)] == [(60, 1)]
    assert sim.ahead(order) == 20


def test_25_l3_sixty_orders_swept_are_the_same_in_every_process() -> None:
    assert outputs(SWEEP_L3) == 1


def test_27_l3_a_cancel_of_an_unknown_order_is_counted_and_the_run_goes_on() -> None:
    sim = orders()
    order = sim.submit(BUY, price=99, lots=5, at=1)
    for kind in (Kind.CANCEL, Kind.MODIFY, Kind.EXECUTE):
        sim.theirs(kind, 77, BUY, 99, 3, at=40)
    sim.theirs(Kind.REPLACE, 78, BUY, 98, 3, at=40, ref=79)  # the new one stands all the same
    sim.theirs(Kind.EXECUTE, 79, BUY, 98, 3, at=50)
    assert [(f.ts, f.lots, f.reason) for f in sim.fills(order)] == [(50, 3, "THROUGH")]
    assert sim.run().run.counters["l3_unknown_ids"] == 4


@pytest.mark.parametrize(("tif", "said"), [(POST_ONLY, "REPLACE_REJECTED"), (hft.GTC, "REPLACED")])
def test_28_l3_our_bid_moved_through_the_ask_is_refused_or_trades(tif: Any, said: str) -> None:
    sim = orders()
    order = sim.submit(BUY, price=99, lots=10, tif=tif, at=1)
    sim.replace(order, price=105, lots=10, at=50)
    assert [u for u in sim.updates(order) if u.startswith("REPLACE")] == [f"{said}@50"]
    if tif == POST_ONLY:
        assert (sim.state(order), sim.reason(order)) == ("NEW", "WOULD_CROSS")
        assert int(sim.order_row(order)["price"]) == 99
    else:
        assert [(f.price, f.lots, f.reason) for f in sim.fills(order)] == [(101, 10, "TAKEN")]


def test_29_l3_one_lot_that_trades_behind_us_fills_one_lot() -> None:
    sim = orders()
    order = sim.submit(BUY, price=99, lots=100, at=1)
    sim.theirs(Kind.ADD, 3, BUY, 99, 1, at=40)
    sim.theirs(Kind.EXECUTE, 3, BUY, 99, 1, at=50)
    assert [(f.lots, f.reason) for f in sim.fills(order)] == [(1, "QUEUE")]


def test_36_l3_fill_against_cancel_with_a_millisecond_each_way() -> None:
    ms = 1_000_000
    sim = orders(entry=ms, response=ms)
    order = sim.submit(BUY, price=100, lots=5, at=ms)
    sim.cancel(order, at=5 * ms)
    sim.theirs(Kind.EXECUTE, 1, BUY, 99, 10, at=6 * ms)
    assert sim.updates(order) == [
        f"ACCEPTED@{2 * ms}",
        f"FILLED@{6 * ms}",
        f"CANCEL_REJECTED@{6 * ms}",
    ]


def test_37_l3_post_only_is_judged_by_the_orders_it_meets() -> None:
    sim = orders(entry=10, response=10)
    sim.theirs(Kind.CANCEL, 2, SELL, 101, at=5)  # the offer leaves while ours travels
    order = sim.submit(BUY, price=101, lots=5, tif=POST_ONLY, at=1)
    assert sim.updates(order) == ["ACCEPTED@11"]

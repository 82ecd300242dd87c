"""The peer's side of `peer.py`: hftbacktest 2.4 on the common feeds, handlers compiled by numba."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import hftbacktest as h
import numpy as np
from numba import float64, njit, uint64
from numba.typed import Dict
from turns import serve

STEP_NS = 100_000_000
LATENCY_NS = 10_000_000
DATA = Path(sys.argv[1])


@njit
def replay(hbt, step, price):
    """Rows and steps; one bid far from the market keeps the venue's side at work."""
    hbt.elapse(step)
    for i in range(hbt.num_assets):
        hbt.submit_buy_order(i, 1, price, 0.01, h.GTX, h.LIMIT, False)
    while hbt.elapse(step) == 0:
        pass
    return hbt.num_assets


@njit
def packets(hbt):
    count = 0
    while True:
        what = hbt.wait_next_feed(True, 10_000_000_000)
        if what == 1 or what > 3:
            return count
        count += 1


@njit
def mm(hbt, step, half, qty):
    """One bid and one ask around a skewed mid; moved by a cancel, then a new order."""
    tick, sent = hbt.depth(0).tick_size, 0
    number, bid_id, ask_id = uint64(1), uint64(0), uint64(0)
    while hbt.elapse(step) == 0:
        hbt.clear_inactive_orders(0)
        depth, orders = hbt.depth(0), hbt.orders(0)
        fair = (depth.best_bid_tick + depth.best_ask_tick) / 2.0 - hbt.position(0) / qty * 0.5
        want_bid = min(np.floor(fair - half), depth.best_bid_tick)
        want_ask = max(np.ceil(fair + half), depth.best_ask_tick)
        bid, ask = orders.get(bid_id), orders.get(ask_id)
        if bid is not None:
            if bid.cancellable and bid.price_tick != want_bid:
                hbt.cancel(0, bid_id, False)
        else:
            bid_id = number
            number += uint64(1)
            hbt.submit_buy_order(0, bid_id, want_bid * tick, qty, h.GTX, h.LIMIT, False)
            sent += 1
        if ask is not None:
            if ask.cancellable and ask.price_tick != want_ask:
                hbt.cancel(0, ask_id, False)
        else:
            ask_id = number
            number += uint64(1)
            hbt.submit_sell_order(0, ask_id, want_ask * tick, qty, h.GTX, h.LIMIT, False)
            sent += 1
    return sent


@njit
def grid(hbt, step, half, gap, levels, qty, limit):
    """Ten levels a side around a skewed mid; what left it is cancelled, what is new sent."""
    tick, sent = hbt.depth(0).tick_size, 0
    while hbt.elapse(step) == 0:
        hbt.clear_inactive_orders(0)
        depth, position = hbt.depth(0), hbt.position(0)
        fair = (depth.best_bid_tick + depth.best_ask_tick) / 2.0 - position / qty * 0.5
        bid = min(np.floor((fair - half) / gap) * gap, depth.best_bid_tick)
        ask = max(np.ceil((fair + half) / gap) * gap, depth.best_ask_tick)
        bids, asks = Dict.empty(uint64, float64), Dict.empty(uint64, float64)
        if position < limit:
            for k in range(levels):
                bids[uint64(bid - k * gap)] = (bid - k * gap) * tick
        if position > -limit:
            for k in range(levels):
                asks[uint64(ask + k * gap)] = (ask + k * gap) * tick
        orders = hbt.orders(0)
        values = orders.values()
        while values.has_next():
            order = values.get()
            wanted = bids if order.side == h.BUY else asks
            if order.cancellable and order.order_id not in wanted:
                hbt.cancel(0, order.order_id, False)
        for number, price in bids.items():
            if number not in orders:
                hbt.submit_buy_order(0, number, price, qty, h.GTX, h.LIMIT, False)
                sent += 1
        for number, price in asks.items():
            if number not in orders:
                hbt.submit_sell_order(0, number, price, qty, h.GTX, h.LIMIT, False)
                sent += 1
    return sent


def asset(rows: Any, low: float, high: float, *, by_order: bool = False) -> Any:
    """The venue of every case; `low` and `high` bound the dense-array book."""
    made = (
        h.BacktestAsset()
        .data(rows)
        .linear_asset(1.0)
        .constant_order_latency(LATENCY_NS, LATENCY_NS)
        .tick_size(0.1)
        .lot_size(0.001)
        .trading_value_fee_model(-0.00005, 0.0007)
        .no_partial_fill_exchange()
        .last_trades_capacity(0)
        .roi_lb(low)
        .roi_ub(high)
    )
    return made.l3_fifo_queue_model() if by_order else made.power_prob_queue_model3(3.0)


@cache
def load(name: str) -> np.ndarray:
    return np.load(DATA / name)


Case = tuple[Callable[[], list[Any]], Callable[[Any], int], bool]


def cases() -> dict[str, Case]:
    """Name to (what the assets read, what runs, whether on the dense-array book)."""

    def common() -> list[Any]:
        return [asset(load("l2.npy"), 58_000.0, 62_000.0)]

    def real() -> list[Any]:
        prices = load("real.npy")["px"]
        return [asset(load("real.npy"), float(prices.min()) - 1, float(prices.max()) + 1)]

    def many() -> list[Any]:
        return [asset(load("part.npy"), 58_000.0, 62_000.0) for _ in range(256)]

    def orders() -> list[Any]:
        return [asset(load("l3.npy"), 58_000.0, 62_000.0, by_order=True)]

    def file() -> list[Any]:
        return [asset([str(DATA / "l2.npy")], 58_000.0, 62_000.0)]

    def real_replay(b: Any) -> int:
        return replay(b, STEP_NS, 50_000.0)

    def far_replay(b: Any) -> int:
        return replay(b, STEP_NS, 59_500.0)

    def any_grid(b: Any, half: float = 2.0) -> int:
        return grid(b, STEP_NS, half, 1.0, 10, 0.01, 0.5)

    return {
        "replay": (common, far_replay, False),
        "replay_roi": (common, far_replay, True),
        "real": (real, real_replay, False),
        "real_roi": (real, real_replay, True),
        "mm": (common, lambda b: mm(b, STEP_NS, 1.0, 0.01), False),
        "grid": (common, any_grid, False),
        "l3": (orders, far_replay, False),
        "l3_grid": (orders, lambda b: any_grid(b, 0.5), False),
        "multi": (many, far_replay, False),
        "packets": (common, packets, False),
        "disk": (file, far_replay, False),
    }


CASES = cases()


def run(name: str) -> dict[str, Any]:
    """One timed run: made, run and closed, as the peer's users do."""
    make, drive, dense = CASES[name]
    make()  # what is read into memory once is read now
    backtest = h.ROIVectorMarketDepthBacktest if dense else h.HashMapMarketDepthBacktest
    gc.collect()
    began = time.perf_counter()
    hbt = backtest(make())
    count = drive(hbt)
    ran = time.perf_counter() - began
    work = outcome(hbt, count)
    began = time.perf_counter()
    hbt.close()
    return {"wall_s": ran + time.perf_counter() - began, "count": count, "work": work}


def outcome(hbt: Any, sent: int) -> dict[str, Any]:
    """What both sides must agree on."""
    states = [hbt.state_values(i) for i in range(hbt.num_assets)]
    depths = [hbt.depth(i) for i in range(hbt.num_assets)]
    return {
        "orders": sent,
        "fills": sum(s.num_trades for s in states),
        "cash": sum(s.balance for s in states),
        "fee": sum(s.fee for s in states),
        "bid": sum(int(d.best_bid_tick) for d in depths),
        "ask": sum(int(d.best_ask_tick) for d in depths),
    }


if __name__ == "__main__":
    serve(run)

"""Plays scripts of orders on hftbacktest; run by `test_agreement.py` in an interpreter that has it.

python peer_run.py FOLDER        of NAME.json, each with rows in the peer's layout in NAME.npy
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import hftbacktest as h
import numpy as np

TIFS = {"GTC": h.GTC, "POST_ONLY": h.GTX}


def run(case: dict[str, Any], rows: np.ndarray) -> dict[str, Any]:
    asset = (
        h.BacktestAsset()
        .data(rows)
        .linear_asset(1.0)
        .constant_order_latency(case["entry"], case["response"])
        .no_partial_fill_exchange()
        .trading_value_fee_model(0.0, 0.0)
        .tick_size(1.0)
        .lot_size(1.0)
    )
    asset = asset.power_prob_queue_model3(case["n"]) if "n" in case else asset.l3_fifo_queue_model()
    hbt = h.HashMapMarketDepthBacktest([asset])
    hbt.elapse(1)
    for at, verb, number, *order in case["script"]:
        must(hbt.elapse(at - hbt.current_timestamp), f"elapse to {at}")
        if verb == "submit":
            side, lots, price, tif = order
            send = hbt.submit_buy_order if side > 0 else hbt.submit_sell_order
            must(
                send(0, number, float(price), float(lots), TIFS[tif], h.LIMIT, False),
                f"submit {number}",
            )
        elif is_cancellable(hbt, number):
            must(hbt.cancel(0, number, False), f"cancel {number}")
    must(hbt.elapse(case["end"] - hbt.current_timestamp), "elapse to the end")
    state = hbt.state_values(0)
    out = {
        "orders": {n: facts(hbt, n) for _, verb, n, *_ in case["script"] if verb == "submit"},
        "position": float(hbt.position(0)),
        "balance": float(state.balance),
    }
    hbt.close()
    return out


def must(code: int, what: str) -> None:
    if code != 0:
        raise SystemExit(f"{what}: code {code}")


def is_cancellable(hbt: Any, number: int) -> bool:
    order = hbt.orders(0).get(number)
    return order is not None and bool(order.cancellable)


def facts(hbt: Any, number: int) -> list[Any]:
    """[state, filled, price, time at the venue] of an order; the last two only if it was filled."""
    order = hbt.orders(0).get(number)
    if order.status == h.FILLED:
        return ["FILLED", int(order.qty), int(order.exec_price_tick), int(order.exch_timestamp)]
    names = {h.NEW: "NEW", h.CANCELED: "CANCELED", h.EXPIRED: "REJECTED"}
    return [names.get(order.status, str(order.status)), 0, 0, 0]


if __name__ == "__main__":
    paths = sorted(Path(sys.argv[1]).glob("*.json"))
    found = {p.stem: run(json.loads(p.read_text()), np.load(p.with_suffix(".npy"))) for p in paths}
    print(json.dumps(found))

"""One order's life reads like a trader's account of it."""

from __future__ import annotations

import pytest

from hft.analysis.order_life import order_life
from hft.analysis.run_data import RunData
from hft.errors import OrderError


def test_a_filled_maker_order(three_fills: RunData) -> None:
    assert order_life(three_fills, 1) == [
        "Order 1: buy 2 lots BTCUSDT.SIM at 100, GTC.",
        "2024-03-05 08:50:00.000000000  At the venue: the signal's market data (row 77).",
        "2024-03-05 08:50:00.002000000  It reached us, feed 2 ms.",
        "2024-03-05 08:50:00.002100000  The model began with it, wait for the model 100 µs.",
        "2024-03-05 08:50:00.002900000  Its answer was there, service 800 µs.",
        "2024-03-05 08:50:00.003000000  The handler started, wait for the strategy 100 µs.",
        "2024-03-05 08:50:00.003600000  The handler was done, strategy 600 µs.",
        "2024-03-05 08:50:00.004000000  The order left us, risk 400 µs.",
        "2024-03-05 08:50:00.009000000  It reached the venue's matching, entry 5 ms.",
        "2024-03-05 08:50:00.012000000  The first answer reached us, response 3 ms.",
        "The signal's market data were 9 ms old when the order reached the venue.",
        "It joined the queue behind 7.50 lots.",
        "2024-03-05 08:50:00.999000000  Filled 2 lots at 100 as maker: a print at our price "
        "reached our place in the queue (row 123); mid 100.05, rebate 0.00001 USDT, position then "
        "2 lots; reported to us at 2024-03-05 08:50:01.000000000.",
        "    Against later mids, in ticks: +0.5 after 10 ms, +1.5 after 100 ms, +3.5 after 1 s.",
        "2024-03-05 08:50:01.000000000  Filled; 2 of 2 lots filled at 100 on average.",
        "Shortfall against the mid 99.95 of its decision: +0.00009 USDT (feed +0.0001; "
        "model service +0.0002; strategy, risk -0.0001; network +0.0002; "
        "timing -0.0002; spread -0.0001; fees -0.00001).",
    ]


def test_a_partly_filled_and_canceled_one(three_fills: RunData) -> None:
    lines = order_life(three_fills, 2)
    assert lines[0] == "Order 2: sell 3 lots BTCUSDT.SIM at 100.4, GTC, tag exit, after 2 replaces."
    assert lines[1].startswith("No market packet led to it")
    assert "It was first in the queue." in lines
    assert lines[-2].endswith("Canceled: we canceled it; 1 of 3 lots filled at 100.4 on average.")
    assert "opportunity +0.0026" in lines[-1]


def test_a_market_order_that_took(three_fills: RunData) -> None:
    lines = order_life(three_fills, 3)
    assert "at market" in lines[0]
    assert "It never rested in the book." in lines
    assert any(
        "as taker: our order took displayed size; mid 99.95, fee 0.00003996" in x for x in lines
    )


def test_what_our_own_push_cost_and_whether_to_believe_it(three_fills: RunData) -> None:
    three_fills.fills["impact"][2], three_fills.fills["extrapolated"][2] = 20_000, 1
    lines = order_life(three_fills, 3)
    assert any("fee 0.00003996, impact +0.00002 USDT" in line for line in lines)
    assert any(line.startswith("    Extrapolated: ") for line in lines)
    assert "impact, charged +0.00002" in lines[-1]


def test_a_refused_one(three_fills: RunData) -> None:
    lines = order_life(three_fills, 4)
    assert "It never reached the venue." in lines
    assert lines[-1].endswith(
        "Rejected by our risk gate: it could have carried us past the position limit; "
        "0 of 4 lots filled."
    )


def test_an_unknown_one_is_named(three_fills: RunData, empty_run: RunData) -> None:
    with pytest.raises(OrderError, match="no order 99: ids go from 1 to 4"):
        order_life(three_fills, 99)
    with pytest.raises(OrderError, match="it sent none"):
        order_life(empty_run, 1)

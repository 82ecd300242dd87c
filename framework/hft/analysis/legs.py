"""The latency of orders, leg by leg, on the stamps that replay models and live measures.

    feed            ts_cause_recv - ts_cause_event   market to us
    compute         ts_send - ts_cause_recv          all on our side:
      model wait    ts_model_start - ts_cause_recv       for the inference server
      model service ts_model_end - ts_model_start        it worked
      strategy wait ts_decide - ts_model_end             for the strategy's thread
      strategy      ts_handled - ts_decide               the handler
      risk          ts_send - ts_handled                 the gate, messages before it included
    entry           ts_arrive - ts_send              us to the venue's matching
    response        ts_ack - ts_arrive               its first answer back to us

Stages follow each other without a gap: their sum is end to end, from the market's event to the
first answer. An order that no signal led to has no model stages; it waits for the strategy from
`ts_cause_recv` on.

Figures weigh by order, not by time: orders cluster in bursts, and so does their latency. Signal age
at the venue is `ts_arrive - ts_cause_event` for orders caused by a signal: both on the venue's
clock, so no clock offset enters.
"""

from __future__ import annotations

import numpy as np

from hft.analysis.pnl import Int
from hft.analysis.records import NO_TIME
from hft.analysis.run_data import Rows

QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999, "max": 1.0}

LEGS = {
    "feed": ("ts_cause_event", "ts_cause_recv"),
    "compute": ("ts_cause_recv", "ts_send"),
    "entry": ("ts_send", "ts_arrive"),
    "response": ("ts_arrive", "ts_ack"),
}
PARTS_OF_COMPUTE = {
    "model wait": ("ts_cause_recv", "ts_model_start"),
    "model service": ("ts_model_start", "ts_model_end"),
    "strategy wait": ("ts_model_end", "ts_decide"),
    "strategy": ("ts_decide", "ts_handled"),
    "risk": ("ts_handled", "ts_send"),
}


def leg_ns(orders: Rows, start: str, end: str) -> Int:
    """Durations between two stamps over the orders that have both, (m,) int64 [ns]."""
    both = (orders[start] != NO_TIME) & (orders[end] != NO_TIME)
    took: Int = orders[end][both] - orders[start][both]
    return took


def parts_of_compute(orders: Rows) -> dict[str, Int]:
    """Durations of what `compute` consists of, by name."""
    whole = orders.copy()
    no_model = orders["ts_model_end"] == NO_TIME
    whole["ts_model_end"][no_model] = orders["ts_cause_recv"][no_model]
    return {name: leg_ns(whole, *stamps) for name, stamps in PARTS_OF_COMPUTE.items()}


def signal_age_ns(orders: Rows) -> Int:
    """Age of the market data behind a signal when its order reached the venue, (m,) int64 [ns]."""
    return leg_ns(orders[orders["by_signal"] == 1], "ts_cause_event", "ts_arrive")


def durations(orders: Rows) -> dict[str, Int]:
    """Every leg's durations and the signal age, by name."""
    legs = {name: leg_ns(orders, *stamps) for name, stamps in LEGS.items()}
    return {**legs, "signal age at venue": signal_age_ns(orders)}


def quantiles(values: Int) -> dict[str, int | None]:
    """How many, and the order statistics at p50 ... max [ns]; None where there are none.

    A quantile is a value that occurred, never a mean of two.
    """
    if not values.size:
        return {"n": 0, **dict.fromkeys(QUANTILES)}
    drawn = np.quantile(values, list(QUANTILES.values()), method="inverted_cdf")
    return {"n": values.size, **dict(zip(QUANTILES, map(int, drawn), strict=True))}

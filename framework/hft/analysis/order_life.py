"""One order's life in sentences: `hft report RUN --order ID`."""

from __future__ import annotations

import math

import numpy as np

from hft.analysis.execution_tables import STAGE_NAMES
from hft.analysis.records import MARKOUT_NS, NO_PRICE, NO_TIME, FillReason, OrderState, Reason, Tif
from hft.analysis.run_data import InstrumentFacts, Rows, RunData
from hft.analysis.shortfall import shortfall
from hft.analysis.trading import RISK_REASONS
from hft.analysis.units import MONEY_PER_UNIT, amount, count, duration, span, utc
from hft.errors import OrderError

WHY_FILLED = {
    FillReason.NONE: "for no recorded reason",
    FillReason.QUEUE: "a print at our price reached our place in the queue",
    FillReason.THROUGH: "a print went through our price",
    FillReason.CROSSED: "the other side's book arrived at our price",
    FillReason.TAKEN: "our order took displayed size",
}
WHY_ENDED = {
    Reason.NONE: "no reason was recorded",
    Reason.ORDER_SIZE: "larger than the order size limit",
    Reason.POSITION_LIMIT: "it could have carried us past the position limit",
    Reason.OPEN_ORDERS: "too many orders were open",
    Reason.PRICE_COLLAR: "its price was too far from the market",
    Reason.MESSAGE_RATE: "the message rate limit was reached",
    Reason.NO_REFERENCE: "there was no live book to judge its price against",
    Reason.HALTED_BY_RISK: "risk had halted trading",
    Reason.WOULD_CROSS: "it was post-only and met the other side",
    Reason.NO_LIQUIDITY: "there was too little to take",
    Reason.MARKET_CLOSED: "the market was halted, in auction or closed",
    Reason.UNKNOWN_ORDER: "the order was already gone",
    Reason.TOO_SMALL: "it was replaced to no more than what was filled",
    Reason.CANCELED_BY_US: "we canceled it",
    Reason.END_OF_RUN: "the run ended",
}


STEPS = (
    ("ts_cause_recv", "It reached us", "feed"),
    ("ts_model_start", "The model began with it", "wait for the model"),
    ("ts_model_end", "Its answer was there", "service"),
    ("ts_decide", "The handler started", "wait for the strategy"),
    ("ts_handled", "The handler was done", "strategy"),
    ("ts_send", "The order left us", "risk"),
    ("ts_arrive", "It reached the venue's matching", "entry"),
    ("ts_ack", "The first answer reached us", "response"),
)
"""Stamps in the order of an order's way, and what the time before each is called."""


def order_life(run: RunData, order_id: int) -> list[str]:
    """Tell what happened to an order, a sentence a line.

    Args:
        run: the run it was sent in.
        order_id: its id, from 1.

    Raises:
        OrderError: the run has no such order.
    """
    found = np.flatnonzero(run.orders["id"] == order_id)
    if not found.size:
        ids = run.orders["id"]
        known = f"ids go from {ids.min()} to {ids.max()}" if ids.size else "it sent none"
        raise OrderError(f"run {run.name} has no order {order_id}: {known}")
    order = run.orders[found[0]]
    facts = run.instruments[order["instrument"]]
    fills = run.fills[run.fills["order"] == order_id]
    return [
        _asked(run, facts, order),
        _cause(order),
        *_journey(order),
        *_queue(order),
        *(line for fill in fills for line in _fill(facts, order, fill)),
        _end(facts, order),
        *_shortfall(run, int(order["instrument"]), order_id),
    ]


def _asked(run: RunData, facts: InstrumentFacts, order: np.void) -> str:
    price = "at market" if order["price"] == NO_PRICE else f"at {_price(facts, order['price'])}"
    tag = run.tags[order["tag"]] if order["tag"] < len(run.tags) else ""
    extra = f", tag {tag}" if tag else ""
    extra += f", of parent {order['parent']}" if order["parent"] else ""
    replaced = f", after {order['replaces']} replaces" if order["replaces"] else ""
    return (
        f"Order {order['id']}: {_side(order)} {count(order['lots'])} lots {facts.name} {price}, "
        f"{Tif(int(order['tif'])).name}{extra}{replaced}."
    )


def _cause(order: np.void) -> str:
    if order["ts_cause_event"] == NO_TIME:
        return "No market packet led to it: a timer or the start of the run did."
    what = "the signal's market data" if order["by_signal"] else "the packet that led to it"
    row = f" (row {order['cause_row']})" if order["cause_row"] >= 0 else ""
    return f"{utc(order['ts_cause_event'])}  At the venue: {what}{row}."


def _journey(order: np.void) -> list[str]:
    lines, before = [], "ts_cause_event"
    for stamp, what, leg in STEPS:
        if order[stamp] == NO_TIME:
            continue
        known = order[before] != NO_TIME
        words = f", {leg} {duration(order[stamp] - order[before])}" if known else ""
        lines.append(f"{utc(order[stamp])}  {what}{words}.")
        before = stamp
    if order["by_signal"] and order["ts_arrive"] != NO_TIME and order["ts_cause_event"] != NO_TIME:
        age = duration(order["ts_arrive"] - order["ts_cause_event"])
        lines.append(f"The signal's market data were {age} old when the order reached the venue.")
    return lines


def _queue(order: np.void) -> list[str]:
    ahead = float(order["ahead_at_accept"])
    if order["ts_arrive"] == NO_TIME:
        return ["It never reached the venue."]
    if math.isnan(ahead):
        return ["It never rested in the book."]
    return (
        ["It was first in the queue."]
        if ahead == 0
        else [f"It joined the queue behind {count(ahead)} lots."]
    )


def _fill(facts: InstrumentFacts, order: np.void, fill: np.void) -> list[str]:
    role = "maker" if fill["maker"] else "taker"
    fee = fill["fee"] / MONEY_PER_UNIT
    row = f" (row {fill['cause_row']})" if fill["cause_row"] >= 0 else ""
    mid = (
        "no mid was known" if fill["mid2"] == NO_PRICE else f"mid {_price(facts, fill['mid2'] / 2)}"
    )
    paid = f"fee {amount(fee)}" if fee >= 0 else f"rebate {amount(-fee)}"
    if fill["impact"]:
        paid += f", impact {amount(fill['impact'] / MONEY_PER_UNIT, signed=True)}"
    told = (
        "never reported to us"
        if fill["ts_recv"] == NO_TIME
        else f"reported to us at {utc(fill['ts_recv'])}"
    )
    lines = [
        f"{utc(fill['ts_venue'])}  Filled {count(fill['lots'])} lots "
        f"at {_price(facts, fill['price'])} as {role}: "
        f"{WHY_FILLED[FillReason(int(fill['reason']))]}{row}; {mid}, {paid} {facts.spec.currency}, "
        f"position then {count(fill['position'])} lots; {told}."
    ]
    if fill["extrapolated"]:
        lines.append(
            "    Extrapolated: our share of the volume was too large to believe this fill."
        )
    return lines + _markouts(order, fill)


def _markouts(order: np.void, fill: np.void) -> list[str]:
    later = [
        f"{order['side'] * (mid2 - 2 * fill['price']) / 2:+g} after {span(ns)}"
        for ns, mid2 in zip(MARKOUT_NS, fill["markout_mid2"].tolist(), strict=True)
        if mid2 != NO_PRICE
    ]
    return [f"    Against later mids, in ticks: {', '.join(later)}."] if later else []


def _end(facts: InstrumentFacts, order: np.void) -> str:
    state, reason = OrderState(int(order["state"])), Reason(int(order["reason"]))
    when = f"{utc(order['ts_done'])}  " if order["ts_done"] != NO_TIME else ""
    done = f"{count(order['cum_lots'])} of {count(order['lots'])} lots filled"
    if order["cum_lots"]:
        done += f" at {_price(facts, order['cum_ticks'] / order['cum_lots'])} on average"
    by = (
        (" by our risk gate" if reason in RISK_REASONS else " by the venue")
        if state == OrderState.REJECTED
        else ""
    )
    why = f": {WHY_ENDED[reason]}" if reason != Reason.NONE else ""
    return f"{when}{state.name.replace('_', ' ').capitalize()}{by}{why}; {done}."


def _shortfall(run: RunData, instrument: int, order_id: int) -> list[str]:
    """What it cost against the mid of its decision, where that was looked up."""
    short = shortfall(run, instrument)
    if short is None or order_id not in short.orders["id"]:
        return []
    facts, k = short.facts, int(np.flatnonzero(short.orders["id"] == order_id)[0])
    parts = {name: int(part[k]) / (2 * MONEY_PER_UNIT) for name, part in short.parts.items()}
    told = "; ".join(
        f"{STAGE_NAMES[name]} {amount(cost, signed=True)}" for name, cost in parts.items() if cost
    )
    if not told:
        return []
    total = amount(int(short.total[k]) / (2 * MONEY_PER_UNIT), signed=True)
    decided = _price(facts, short.mid2[k] / 2)
    whole = f"Shortfall against the mid {decided} of its decision: {total} {facts.spec.currency}"
    return [f"{whole} ({told})."]


def _side(row: np.void | Rows) -> str:
    return "buy" if row["side"] > 0 else "sell"


def _price(facts: InstrumentFacts, ticks: float) -> str:
    return f"{round(float(ticks) * facts.spec.tick, 10):.12g}"

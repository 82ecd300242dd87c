"""Runs made up for tests: one by hand with three fills, and random ones with an account kept apart.

The account here is a second bookkeeping: cash and position, marked at the mid, with none of the
code under test.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np

from hft.analysis.mids import Mids
from hft.analysis.records import (
    FILL_ROW,
    MARKOUT_NS,
    NO_PRICE,
    NO_TIME,
    ORDER_ROW,
    SAMPLE_ROW,
    FillReason,
    OrderState,
    Reason,
    Tif,
)
from hft.analysis.run_data import InstrumentFacts, RunData
from hft.types import InstrumentSpec

S = 1_000_000_000
MS = 1_000_000
T0 = 1_709_628_600 * S  # 2024-03-05 08:50:00 UTC

BTC = InstrumentFacts(
    InstrumentSpec(symbol="BTCUSDT", venue="SIM", tick=0.1, lot=0.001, currency="USDT"),
    maker_fee=-0.00005,
    taker_fee=0.0004,
)
ODD = (
    InstrumentFacts(  # a tick of one lot is worth 5 units of 1e-9: the core must round half a unit
        InstrumentSpec(symbol="ODD", venue="SIM", tick=5e-6, lot=0.001, currency="USDT"),
        0.0,
        0.0001,
    )
)
INVERSE = InstrumentFacts(
    InstrumentSpec(
        symbol="BTCUSD", venue="SIM", tick=0.5, lot=1, multiplier=100, inverse=True, currency="BTC"
    ),
    maker_fee=-0.0001,
    taker_fee=0.0005,
)


def worth_e9(facts: InstrumentFacts, lots: int, mid2: int) -> Fraction:
    """Value of a position at a mid [1e-9 currency], exactly."""
    spec = facts.spec
    tick, lot = Fraction(str(spec.tick)), Fraction(str(spec.lot)) * Fraction(str(spec.multiplier))
    if spec.inverse:
        return -lots * lot / (Fraction(mid2, 2) * tick) * 10**9
    return lots * lot * tick * Fraction(mid2, 2) * 10**9


def order_row(**values: object) -> np.ndarray:
    row = np.zeros(1, ORDER_ROW)
    for name in ORDER_ROW.names or ():
        if name.startswith("ts_"):
            row[name] = NO_TIME
    row["ahead_at_accept"], row["cause_row"] = np.nan, -1
    for name, value in values.items():
        row[name] = value
    return row


def fill_row(**values: object) -> np.ndarray:
    row = np.zeros(1, FILL_ROW)
    row["ahead_at_accept"], row["cause_row"], row["markout_mid2"] = np.nan, -1, NO_PRICE
    for name, value in values.items():
        row[name] = value
    return row


def sample_row(**values: object) -> np.ndarray:
    row = np.zeros(1, SAMPLE_ROW)
    for name, value in values.items():
        row[name] = value
    return row


def three_fills() -> RunData:
    """Buy 2 @ 1000 and sell 1 @ 1004 as maker, sell 1 @ 999 as taker; a tick of one lot is 1e-4.

    Mids at the fills 1000.5, 1003.5, 999.5; last mid 990. One order more was refused.
    """
    at = {"instrument": 0, "tif": Tif.GTC}
    first = {
        "ts_cause_event": T0,
        "ts_cause_recv": T0 + 2 * MS,
        "ts_model_start": T0 + 2 * MS + 100_000,
        "ts_model_end": T0 + 2 * MS + 900_000,
        "ts_decide": T0 + 3 * MS,
        "ts_handled": T0 + 3 * MS + 600_000,
        "ts_send": T0 + 4 * MS,
        "ts_arrive": T0 + 9 * MS,
        "ts_ack": T0 + 12 * MS,
        "by_signal": 1,
        "cause_row": 77,
    }
    orders = np.concatenate(
        [
            order_row(
                **at, id=1, side=1, price=1000, lots=2, cum_lots=2, cum_ticks=2000,
                ahead_at_accept=7.5,
                state=OrderState.FILLED, ts_done=T0 + S, **first,
            ),
            order_row(
                **at, id=2, side=-1, price=1004, lots=3, cum_lots=1, cum_ticks=1004,
                ahead_at_accept=0.0,
                state=OrderState.CANCELED, reason=Reason.CANCELED_BY_US, ts_done=T0 + 4 * S, tag=1,
                ts_send=T0 + S, ts_arrive=T0 + S + MS, ts_ack=T0 + S + 2 * MS, replaces=2,
            ),
            order_row(
                **at, id=3, side=-1, price=NO_PRICE, lots=1, cum_lots=1, cum_ticks=999,
                state=OrderState.FILLED, ts_done=T0 + 3 * S, ts_send=T0 + 3 * S - 9 * MS,
                ts_arrive=T0 + 3 * S - 5 * MS, ts_ack=T0 + 3 * S,
            ),
            order_row(
                **at, id=4, side=1, price=1000, lots=4, state=OrderState.REJECTED,
                reason=Reason.POSITION_LIMIT, ts_done=T0 + 3 * S,
            ),
        ]
    )  # fmt: skip
    fills = np.concatenate(
        [
            fill_row(
                order=1, side=1, price=1000, lots=2, fee=-10_000, maker=1, reason=FillReason.QUEUE,
                ts_venue=T0 + S - MS, ts_recv=T0 + S, mid2=2001, position=2, ahead_at_accept=7.5,
                cause_row=123, markout_mid2=[2001, 2003, 2007, NO_PRICE, NO_PRICE, NO_PRICE],
            ),
            fill_row(
                order=2, side=-1, price=1004, lots=1, fee=-5_020, maker=1,
                reason=FillReason.THROUGH,
                ts_venue=T0 + 2 * S - MS, ts_recv=T0 + 2 * S, mid2=2007, position=1,
                ahead_at_accept=0.0,
                cause_row=200, markout_mid2=[2009, 2005, 1999, NO_PRICE, NO_PRICE, NO_PRICE],
            ),
            fill_row(
                order=3, side=-1, price=999, lots=1, fee=39_960, maker=0, reason=FillReason.TAKEN,
                ts_venue=T0 + 3 * S - MS, ts_recv=T0 + 3 * S, mid2=1999, position=0,
                markout_mid2=[1999, 1990, 1980, NO_PRICE, NO_PRICE, NO_PRICE],
            ),
        ]
    )  # fmt: skip
    # Cash: -2 * 1000 + 1004 + 999 = 3 lot ticks of 100,000 units, less fees of 24,940.
    tail = {"bid": 989, "ask": 991}
    samples = np.concatenate(
        [
            sample_row(ts=T0, bid=1000, ask=1001),
            sample_row(ts=T0 + S, bid=1000, ask=1001, position=2, equity=110_000, fees=-10_000),
            sample_row(ts=T0 + 2 * S, bid=1003, ask=1004, position=1, equity=765_020, fees=-15_020),
            sample_row(ts=T0 + 3 * S, bid=999, ask=1000, equity=275_060, fees=24_940),
            sample_row(ts=T0 + 4 * S, **tail, equity=275_060, fees=24_940),
        ]
    )
    return RunData(
        kind="backtest",
        name="three_fills",
        strategy="strategies/three_fills.py",
        instruments=[BTC],
        ts_start=T0,
        ts_end=T0 + 4 * S,
        rows=1000,
        wall_s=0.5,
        orders=orders,
        fills=fills,
        samples=samples,
        sample_ns=S,
        tags=["", "exit"],
        mids=three_fills_mids(),
        recipe={"latency": {"entry": "5ms"}, "seed": 7},
        environment={"version": "0.1.0", "data_sha256": "ab12"},
        started_utc="2024-03-06T10:00:00Z",
    )


def three_fills_mids() -> Mids:
    """Bid + ask when: caused, received, model began, ended, decided, sent, arrived, done."""
    none = NO_PRICE
    return Mids(
        orders=np.array(
            [
                [1999, 2000, 2000, 2002, 2002, 2001, 2003, 2007],
                [none, none, none, none, none, 2006, 2006, 1980],
                [none, none, none, none, none, 2000, 1999, 1999],
                [none, none, none, none, none, none, none, none],
            ]
        ),
        touch=np.array([none, none, 1000]),
    )


def empty_run() -> RunData:
    """A run in which nothing happened: no order, fill or sample."""
    return RunData(kind="backtest", name="empty", strategy="strategies/idle.py", instruments=[BTC])


RunMaker = Callable[..., RunData]


def make_run(
    seed: int = 1,
    *,
    orders: int = 200,
    seconds: int = 1800,
    facts: list[InstrumentFacts] | None = None,
    sample_ns: int = S,
    edge: float = 1.5,
) -> RunData:
    """A market maker on a random walk; later mids lie `edge` half ticks our way."""
    rng = np.random.default_rng(seed)
    facts = facts or [BTC]
    parts = [
        _one_instrument(rng, i, f, orders, seconds, sample_ns, edge) for i, f in enumerate(facts)
    ]
    all_orders = np.concatenate([part[0] for part in parts])
    all_fills = np.concatenate([part[1] for part in parts])
    samples = np.concatenate([part[2] for part in parts])
    all_orders = all_orders[np.argsort(all_orders["ts_send"], kind="stable")]
    # Order ids count up in order of submission; fills follow their orders.
    new_id = dict(zip(all_orders["id"].tolist(), range(1, len(all_orders) + 1), strict=True))
    all_fills["order"] = [new_id[i] for i in all_fills["order"].tolist()]
    all_orders["id"] = np.arange(1, len(all_orders) + 1)
    return RunData(
        kind="backtest",
        name=f"random-{seed}",
        strategy="strategies/lstm_mm.py",
        instruments=facts,
        environment={"version": "0.1.0", "cpu": "x86-64-v3", "strategy_sha256": "1f" * 8},
        recipe={"seed": seed, "latency": {"entry": {"model": "empirical", "median": "2ms"}}},
        started_utc="2024-03-06T10:00:00Z",
        wall_s=3.25,
        ts_start=T0,
        ts_end=T0 + seconds * S,
        rows=seconds * 420,
        stages_s={"decode": 0.2, "book": 0.9, "features": 0.6, "inference": 1.1, "strategy": 0.4},
        orders=all_orders,
        fills=all_fills[np.argsort(all_fills["ts_venue"], kind="stable")],
        samples=samples[np.argsort(samples["ts"], kind="stable")],
        sample_ns=sample_ns,
        tags=["", "bid", "ask"],
        counters={"signals": 41_233, "conflated": 310, "messages": 2 * orders, "gaps": 0},
        feed_latency_ns=np.exp(rng.normal(14.5, 0.5, 2_000)).astype(np.int64),
        model_wait_ns=np.exp(rng.normal(9.0, 1.0, 300)).astype(np.int64),
        model_service_ns=np.exp(rng.normal(10.8, 0.2, 200)).astype(np.int64),
    )


def _one_instrument(
    rng: np.random.Generator,
    instrument: int,
    facts: InstrumentFacts,
    n: int,
    seconds: int,
    sample_ns: int,
    edge: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    step = 10 * MS
    walk = 840_001 + 2 * np.cumsum(
        rng.integers(-1, 2, seconds * S // step + 7_000)
    )  # odd: spread 1
    ids = 1 + instrument * 1_000_000 + np.arange(n)
    orders = np.concatenate([order_row(id=i, instrument=instrument) for i in ids])
    sent = np.sort(rng.integers(S, (seconds - 2) * S, n)) + T0
    medians = {"feed": 14.5, "wait": 13.0, "think": 10.5, "entry": 14.6, "response": 14.4}  # ln ns
    leg = {name: np.exp(rng.normal(at, 0.4, n)).astype(np.int64) for name, at in medians.items()}
    orders["ts_send"], orders["ts_decide"] = sent, sent - leg["think"]
    orders["ts_cause_recv"] = orders["ts_decide"] - leg["wait"]
    orders["ts_cause_event"] = orders["ts_cause_recv"] - leg["feed"]
    orders["ts_arrive"] = sent + leg["entry"]
    orders["ts_ack"] = orders["ts_arrive"] + leg["response"]
    orders["side"] = rng.choice([-1, 1], n)
    orders["lots"] = rng.integers(1, 6, n)
    orders["by_signal"] = rng.random(n) < 0.8
    orders["cause_row"] = np.arange(n) * 40
    orders["tag"] = np.where(orders["side"] > 0, 1, 2)
    fate = rng.choice(["maker", "taker", "canceled", "refused"], n, p=[0.45, 0.1, 0.35, 0.1])
    fills = []
    for k in range(n):
        o = orders[k : k + 1]
        at = int((o["ts_arrive"][0] - T0) // step)
        bid = int(walk[at] - 1) // 2
        passive = bid if o["side"] > 0 else bid + 1
        o["price"] = passive
        o["ts_done"] = o["ts_ack"] + 500 * MS
        if fate[k] == "refused":
            for name in ("ts_arrive", "ts_ack"):
                o[name] = NO_TIME
            o["state"], o["reason"] = OrderState.REJECTED, rng.choice([2, 4, 8])
            continue
        o["state"], o["reason"] = OrderState.CANCELED, Reason.CANCELED_BY_US
        if fate[k] != "taker":
            o["ahead_at_accept"] = float(rng.integers(0, 40))
        if fate[k] == "canceled":
            continue
        maker = fate[k] == "maker"
        if not maker:
            o["price"] = bid + 1 if o["side"] > 0 else bid
            o["tif"] = Tif.IOC
        o["state"], o["reason"], o["cum_lots"] = OrderState.FILLED, Reason.NONE, o["lots"]
        o["cum_ticks"] = o["lots"] * o["price"]
        ts = int(o["ts_arrive"][0] + (rng.integers(1, 400) * MS if maker else 0))
        now = (ts - T0) // step
        later = [
            walk[(ts - T0 + h) // step] + edge * o["side"][0] * min(1.0, h / S) for h in MARKOUT_NS
        ]
        price, lots = int(o["price"][0]), int(o["lots"][0])
        rate = facts.maker_fee if maker else facts.taker_fee
        fee = round(abs(worth_e9(facts, lots, 2 * price)) * Fraction(str(rate)))
        fills.append(
            fill_row(
                order=o["id"][0], price=price, lots=lots, fee=fee, ts_venue=ts, maker=maker,
                ts_recv=ts + int(leg["response"][k]), mid2=int(walk[now]), side=o["side"][0],
                ahead_at_accept=o["ahead_at_accept"][0], cause_row=k * 41 if maker else -1,
                markout_mid2=np.array(later).astype(np.int64), instrument=instrument,
                reason=rng.choice([1, 2]) if maker else FillReason.TAKEN,
                impact=0 if maker else 1_000 * k + 7,
            )
        )  # fmt: skip
    rows = np.concatenate(fills) if fills else np.zeros(0, FILL_ROW)
    rows = rows[np.argsort(rows["ts_venue"], kind="stable")]
    rows["position"] = np.cumsum(rows["side"].astype(np.int64) * rows["lots"])
    return orders, rows, _samples(instrument, facts, rows, walk, seconds, sample_ns, step)


def _samples(
    instrument: int,
    facts: InstrumentFacts,
    fills: np.ndarray,
    walk: np.ndarray,
    seconds: int,
    sample_ns: int,
    step: int,
) -> np.ndarray:
    """Keep the account by cash and position, as the core would, and look at it on a grid."""
    ts = T0 + np.arange(seconds * S // sample_ns + 1) * sample_ns
    samples = np.zeros(ts.size, SAMPLE_ROW)
    samples["ts"], samples["instrument"] = ts, instrument
    known = sorted(fills, key=lambda fill: int(fill["ts_recv"]))
    cash, position, fees, impact, i = Fraction(0), 0, 0, 0, 0
    for sample in samples:
        while i < len(known) and known[i]["ts_recv"] <= sample["ts"]:
            signed = int(known[i]["side"]) * int(known[i]["lots"])
            cash -= worth_e9(facts, signed, 2 * int(known[i]["price"]))
            position += signed
            fees += int(known[i]["fee"])
            impact += int(known[i]["impact"])
            i += 1
        mid2 = int(walk[(int(sample["ts"]) - T0) // step])
        sample["bid"], sample["ask"] = (mid2 - 1) // 2, (mid2 + 1) // 2
        sample["position"], sample["fees"], sample["impact"] = position, fees, impact
        sample["equity"] = round(cash + worth_e9(facts, position, mid2)) - fees - impact
    return samples


def rich_run() -> RunData:
    """A run with everything a report can show: bracket, placebo, latencies, two currencies."""
    run = make_run(3, orders=600, facts=[BTC, INVERSE])
    run.bracket = make_run(4, orders=450, facts=[BTC, INVERSE])
    sizes = {
        "placebo": 60,
        "latency x0": 80,
        "latency x0.5": 70,
        "latency x2": 60,
        "latency x4": 50,
    }
    run.variants = [
        (name, replace(make_run(i, orders=n, facts=[BTC, INVERSE]), name=name))
        for i, (name, n) in enumerate(sizes.items(), start=5)
    ]
    return run

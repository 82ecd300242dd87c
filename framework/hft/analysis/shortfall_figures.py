"""Implementation shortfall over a run: money, and how it is spread over orders in basis points.

Two views. `all` holds every order, the ones never filled too, in basis points of what it asked for
at m0. `filled` holds orders that traded, without `opportunity`, in basis points of what they
traded: what a strategy that waits for the right moment looks like when only its successes are
counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hft.analysis.pnl import Float, Int
from hft.analysis.run_data import RunData
from hft.analysis.shortfall import STAGES, Shortfall, notional, parents_of, shortfalls
from hft.analysis.units import MONEY_PER_UNIT

if TYPE_CHECKING:
    import polars as pl

Figures = dict[str, Any]


def shortfall_figures(
    by_instrument: Sequence[Shortfall | None], groups: dict[str, list[int]]
) -> list[Figures]:
    """One account a settlement currency; empty where the run's mids were not looked up.

    Args:
        by_instrument: of a run.
        groups: instrument ids by currency.
    """
    accounts = []
    for currency, group in groups.items():
        shorts = [short for i in group if (short := by_instrument[i]) is not None]
        if any(short.orders.size for short in shorts):
            accounts.append({"currency": currency, **_account(shorts)})
    return accounts


def shortfall_frame(run: RunData) -> pl.DataFrame:
    """One row an order that has a mid, in order of submission; none where mids were not looked up.

    Costs are in each instrument's settlement currency, `mid` is m0 [price].
    """
    import polars as pl

    frames = []
    for facts, short in zip(run.instruments, shortfalls(run), strict=True):
        if short is None:
            continue
        costs = {name: part / (2 * MONEY_PER_UNIT) for name, part in short.parts.items()}
        columns = {
            "id": short.orders["id"],
            "instrument": np.full(short.orders.size, facts.name),
            "side": short.orders["side"],
            "lots": short.orders["lots"],
            "filled_lots": short.filled,
            "mid": short.mid2 * (facts.spec.tick / 2),
            **costs,
            "total": short.total / (2 * MONEY_PER_UNIT),
        }
        frames.append(pl.DataFrame(columns))
    return pl.concat(frames).sort("id") if frames else pl.DataFrame()


def _account(shorts: list[Shortfall]) -> Figures:
    parts = {name: _joined([s.parts[name] for s in shorts]) for name in STAGES}
    asked = _joined([notional(s.facts, s.orders["lots"], s.mid2) for s in shorts])
    traded = _joined([notional(s.facts, s.filled, s.mid2) for s in shorts])
    filled = _joined([s.filled for s in shorts]) > 0
    residual = sum(int(np.abs(s.residual).sum()) for s in shorts)
    done = {name: part[filled] for name, part in parts.items() if name != "opportunity"}
    return {
        "orders": int(asked.size),
        "filled_orders": int(filled.sum()),
        "left_out": sum(s.left_out for s in shorts),
        "residual_e9": residual / 2,
        "holds": all(s.holds for s in shorts),
        "all": _stages(parts, asked),
        "filled": _stages(done, traded[filled]),
        "parents": _parents(shorts),
    }


def _parents(shorts: list[Shortfall]) -> Figures | None:
    each = [parents_of(s) for s in shorts]
    if not any(p.lots.size for p in each):
        return None
    parts = {name: _joined([p.parts[name] for p in each]) for name in each[0].parts}
    worth = _joined([p.notional for p in each])
    traded = worth > 0
    return _stages({name: part[traded] for name, part in parts.items()}, worth[traded])


def _stages(parts: dict[str, Int], worth: Float) -> Figures:
    """Each stage and the total: money, and basis points over orders.

    Returns:
        By stage, the last being `total`: `money`, `bps` (the notional-weighted mean), `median`,
        `q25`, `q75`, and `n` orders.
    """
    total: Int = sum(parts.values(), start=np.zeros(worth.size, np.int64))
    return {name: _spread(part, worth) for name, part in {**parts, "total": total}.items()}


def _spread(part: Int, worth: Float) -> Figures:
    money, priced = part / (2 * MONEY_PER_UNIT), worth > 0
    bps = 1e4 * money[priced] / worth[priced]
    low, middle, high = np.quantile(bps, (0.25, 0.5, 0.75)) if bps.size else (None,) * 3
    return {
        "n": int(bps.size),
        "money": int(part.sum()) / (2 * MONEY_PER_UNIT),
        "bps": 1e4 * float(money[priced].sum()) / float(worth[priced].sum()) if bps.size else None,
        "median": None if middle is None else float(middle),
        "q25": None if low is None else float(low),
        "q75": None if high is None else float(high),
    }


def _joined(arrays: list[Any]) -> Any:
    return np.concatenate(arrays)

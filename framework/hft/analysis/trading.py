"""How a run traded: what was sent, filled, refused, held, and what prices did after its fills."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from hft.analysis.pnl import Float, Int
from hft.analysis.records import MARKOUT_NS, NO_PRICE, OrderState, Reason
from hft.analysis.run_data import Rows

RISK_REASONS = frozenset(range(Reason.ORDER_SIZE, Reason.HALTED_BY_RISK + 1))
"""Refusals by our own risk gate; the others are the venue's."""


@dataclass(frozen=True, slots=True)
class Activity:
    """Orders and fills counted; a ratio is None where its denominator is zero.

    Attributes:
        orders: orders asked for, refused ones included.
        fill_ratio: lots filled / lots asked for.
        passive_fill_ratio: the same over orders that came to rest in the book.
        maker_share: of the filled lots.
        cancel_ratio: orders that we canceled / orders that were not refused.
        order_to_trade: messages (orders not refused by risk, replaces, cancels) / fills.
    """

    orders: int
    fills: int
    filled_lots: int
    refused: int
    replaces: int
    fill_ratio: float | None
    passive_fill_ratio: float | None
    maker_share: float | None
    cancel_ratio: float | None
    order_to_trade: float | None


@dataclass(frozen=True, slots=True)
class Inventory:
    """Position of one instrument over the sample grid [lots]; None without samples."""

    mean_abs: float | None
    p99_abs: float | None
    max_abs: int | None
    last: int | None
    time_flat: float | None


@dataclass(frozen=True, slots=True)
class Markout:
    """Gain of a fill against a later mid, lot-weighted.

    Attributes:
        horizon_ns: 0 is the mid just before the fill.
        fills: fills whose later mid is known.
        ticks_se: standard error with fills in one horizon-long window taken as one observation, for
            they share their
            price move; None with fewer than two windows.
    """

    horizon_ns: int
    fills: int
    ticks: float | None
    ticks_se: float | None
    bps: float | None
    bps_se: float | None


def activity(orders: Rows, fills: Rows) -> Activity:
    """Count orders and fills."""
    refused = orders["state"] == OrderState.REJECTED
    by_risk = refused & np.isin(orders["reason"], list(RISK_REASONS))
    canceled = orders["reason"] == Reason.CANCELED_BY_US
    rested = np.isfinite(orders["ahead_at_accept"])
    replaces, lots = int(orders["replaces"].sum()), int(fills["lots"].sum())
    messages = int((~by_risk).sum()) + replaces + int(canceled.sum())
    return Activity(
        orders=len(orders),
        fills=len(fills),
        filled_lots=lots,
        refused=int(refused.sum()),
        replaces=replaces,
        fill_ratio=ratio(orders["cum_lots"].sum(), orders["lots"].sum()),
        passive_fill_ratio=ratio(orders["cum_lots"][rested].sum(), orders["lots"][rested].sum()),
        maker_share=ratio(fills["lots"][fills["maker"] == 1].sum(), lots),
        cancel_ratio=ratio(canceled.sum(), (~refused).sum()),
        order_to_trade=ratio(messages, len(fills)),
    )


def refusals(orders: Rows) -> dict[str, int]:
    """Refused orders by reason, most frequent first."""
    return _by_name(orders["reason"][orders["state"] == OrderState.REJECTED], Reason)


def endings(orders: Rows) -> dict[str, int]:
    """Orders by their state at the end of the run, most frequent first."""
    return _by_name(orders["state"], OrderState)


def inventory(position: Int) -> Inventory:
    """Describe a position sampled on a regular grid, (n,) [lots]."""
    if not position.size:
        return Inventory(None, None, None, None, None)
    size = np.abs(position)
    return Inventory(
        mean_abs=float(size.mean()),
        p99_abs=float(np.quantile(size, 0.99, method="inverted_cdf")),
        max_abs=int(size.max()),
        last=int(position[-1]),
        time_flat=float((size == 0).mean()),
    )


def queue_ahead(fills: Rows) -> dict[str, float | int | None]:
    """Lots ahead of us when the order joined the queue, over maker fills: n, p10, p50, p90, max."""
    ahead = fills["ahead_at_accept"][fills["maker"] == 1]
    ahead = ahead[np.isfinite(ahead)]
    names = {"p10": 0.1, "p50": 0.5, "p90": 0.9, "max": 1.0}
    values = {
        name: float(np.quantile(ahead, q)) if ahead.size else None for name, q in names.items()
    }
    return {"n": ahead.size, **values}


def markouts(fills: Rows) -> list[Markout]:
    """Mark-outs of one instrument's fills, side * (mid then - price), at 0 and each horizon."""
    horizons = [(0, fills["mid2"]), *zip(MARKOUT_NS, fills["markout_mid2"].T, strict=True)]
    return [_markout(fills, horizon_ns, mid2) for horizon_ns, mid2 in horizons]


def weighted_mean(values: Float, weights: Float, clusters: Int) -> tuple[float, float | None]:
    """Weighted mean and its standard error, observations of one cluster taken as fully dependent.

    Args:
        values: (n,) with n > 0.
        weights: (n,), positive.
        clusters: (n,) any labels.

    Returns:
        Mean; standard error, None with a single cluster.

    Source:
        Cluster-robust variance of a weighted mean (Cameron and Miller 2015, eq. 11) with G / (G -
        1).
    """
    total = float(weights.sum())
    mean = float(weights @ values) / total
    _, label = np.unique(clusters, return_inverse=True)
    sums = np.bincount(label, weights * (values - mean))
    if sums.size < 2:
        return mean, None
    return mean, math.sqrt(float(sums @ sums) * sums.size / (sums.size - 1)) / total


def ratio(part: float, whole: float) -> float | None:
    """Part / whole; None where there is no whole."""
    return float(part) / float(whole) if whole else None


def _markout(fills: Rows, horizon_ns: int, mid2: Int) -> Markout:
    known = mid2 != NO_PRICE
    if not known.any():
        return Markout(horizon_ns, 0, None, None, None, None)
    fills, mid2 = fills[known], mid2[known]
    ticks = fills["side"] * (mid2 - 2 * fills["price"]) / 2
    lots = fills["lots"].astype(np.float64)
    windows = fills["ts_venue"] // max(horizon_ns, MARKOUT_NS[0])
    mean, error = weighted_mean(ticks, lots, windows)
    mean_bps, error_bps = weighted_mean(ticks / fills["price"] * 1e4, lots, windows)
    return Markout(horizon_ns, len(fills), mean, error, mean_bps, error_bps)


def _by_name(values: NDArray[np.uint8], names: type[IntEnum]) -> dict[str, int]:
    numbers, counts = np.unique(values, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return {names(int(numbers[i])).name: int(counts[i]) for i in order}

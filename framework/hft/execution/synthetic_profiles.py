"""Latency profiles that are shipped: made by the formulas below, measured nowhere.

An hour of market in windows of 100 ms. Its rate is R exp(0.3 z), z an AR(1) of 0.95 a window, times
3.5 in a burst; bursts begin in 1 window of 200 and last 10 on average. Messages of ours come in
proportion to the rate: so they cluster. With y an AR(1) of 0.97 from row to row, half of whose
variance all legs of a row share,

    leg = floor + (median - floor) * exp(s y) * (burst in a burst, else 1)

Orders of magnitude (floor, median) are those people publish: 20-200 us to a venue's matching from
its own hall, a few ms within a cloud region, 30-150 ms across regions, 50-500 us for an LSTM on a
CPU. A cancel's entry leg is nine tenths of a new order's beyond the floor. Use them to see what a
kind of place costs; for your own place, measure (`hft latency fit`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hft.errors import ConfigError
from hft.execution.draws import draw_normal, draw_uniform
from hft.execution.profiles import (
    MESSAGES,
    RATE_WINDOW_NS,
    LatencyProfile,
    ProfileFacts,
    make_profile,
)
from hft.execution.resampling import ar1

Int = NDArray[np.int64]
Float = NDArray[np.float64]

WINDOWS = 36_000
MEDIAN_RATE = 230
BURST_RATE, BURST_STARTS, BURST_WINDOWS = 3.5, 1 / 200, 10
ROWS_A_MESSAGE = {"order": 0.008, "model": 0.008}
PHI_RATE, PHI_LEG = 0.95, 0.97
SHARE_OF_NEW, SHARE_OF_CANCELS = 0.6, 0.3
CANCEL_SHARE = 0.9


@dataclass(frozen=True, slots=True)
class LegShape:
    """Of the formula above [us]."""

    floor_us: float
    median_us: float
    s: float
    burst: float


SHIPPED: dict[str, dict[str, LegShape]] = {
    "colocated": {
        "feed": LegShape(3, 6, 0.5, 4),
        "entry": LegShape(18, 40, 0.5, 6),
        "response": LegShape(10, 25, 0.5, 6),
        "compute": LegShape(4, 12, 0.4, 1.5),
        "risk": LegShape(0.3, 0.6, 0.4, 1.5),
        "inference": LegShape(45, 90, 0.35, 1.5),
    },
    "same-region": {
        "feed": LegShape(700, 1_500, 0.5, 4),
        "entry": LegShape(1_500, 3_500, 0.5, 5),
        "response": LegShape(900, 2_200, 0.5, 5),
        "compute": LegShape(6, 18, 0.4, 2),
        "risk": LegShape(0.5, 1, 0.4, 2),
        "inference": LegShape(70, 180, 0.4, 2),
    },
    "cross-region": {
        "feed": LegShape(32_000, 36_000, 0.6, 3),
        "entry": LegShape(33_000, 38_000, 0.6, 4),
        "response": LegShape(32_000, 36_500, 0.6, 4),
        "compute": LegShape(6, 18, 0.4, 2),
        "risk": LegShape(0.5, 1, 0.4, 2),
        "inference": LegShape(70, 180, 0.4, 2),
    },
}
"""Legs of a recipe by profile."""


@cache
def synthetic_profile(name: str) -> LatencyProfile:
    """One of SHIPPED; the same rows in every process.

    Raises:
        ConfigError: there is none of that name.
    """
    if name not in SHIPPED:
        raise ConfigError(f"no shipped latency profile {name!r}; there are {', '.join(SHIPPED)}")
    draws = _Draws(1 + list(SHIPPED).index(name))
    rate, burst = _market(draws)
    orders = _rows("order", draws, rate, burst)
    models = _rows("model", draws, rate, burst)
    legs = {stage: _leg(shape, stage, orders, draws) for stage, shape in SHIPPED[name].items()}
    message = _messages(orders, draws)
    beyond = legs["entry"] - round(SHIPPED[name]["entry"].floor_us * 1e3)
    is_cancel = message == "cancel"
    legs["entry"][is_cancel] -= np.rint(beyond[is_cancel] * (1 - CANCEL_SHARE)).astype(np.int64)
    columns = {f"{stage}_ns": legs[stage] for stage in legs if stage != "inference"}
    service = _leg(SHIPPED[name]["inference"], "inference", models, draws)
    facts = ProfileFacts(
        origin="synthetic",
        source="hft.execution.synthetic_profiles",
        venue=f"a {name} place as one imagines it",
        notes=("Made by a formula, measured nowhere: docs/latency.md.",),
    )
    return make_profile(name, facts, _joined(orders, columns, message, models, service))


@dataclass(frozen=True, slots=True)
class _Rows:
    ts: Int
    rate: Int
    burst: NDArray[np.bool_]


class _Draws:
    """Keyed draws of one profile; each use has a stream of its own, by name."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.streams: dict[str, int] = {}

    def normal(self, use: str, size: int) -> Float:
        return draw_normal(self.seed, self._stream(use), np.arange(size, dtype=np.uint64))

    def uniform(self, use: str, size: int) -> Float:
        return draw_uniform(self.seed, self._stream(use), np.arange(size, dtype=np.uint64))

    def _stream(self, use: str) -> int:
        return self.streams.setdefault(use, 1000 + len(self.streams))


def _market(draws: _Draws) -> tuple[Int, NDArray[np.bool_]]:
    """Messages in each window, and whether it lies in a burst."""
    begins = np.flatnonzero(draws.uniform("burst begins", WINDOWS) < BURST_STARTS)
    lasts = np.ceil(-np.log1p(-draws.uniform("burst lasts", begins.size)) * BURST_WINDOWS)
    edge = np.zeros(WINDOWS + 1, np.int64)
    np.add.at(edge, begins, 1)
    np.add.at(edge, np.minimum(begins + lasts.astype(np.int64), WINDOWS), -1)
    burst = np.cumsum(edge[:-1]) > 0
    level = np.exp(0.3 * ar1(draws.normal("rate", WINDOWS), PHI_RATE))
    rate = np.rint(MEDIAN_RATE * level * np.where(burst, BURST_RATE, 1.0)).astype(np.int64)
    return rate, burst


def _rows(kind: str, draws: _Draws, rate: Int, burst: NDArray[np.bool_]) -> _Rows:
    """Rows in proportion to the rate, at uniform times within their window."""
    many = np.floor(rate * ROWS_A_MESSAGE[kind] + draws.uniform(f"{kind} count", WINDOWS))
    window = np.repeat(np.arange(WINDOWS), many.astype(np.int64))
    within = (draws.uniform(f"{kind} time", window.size) * RATE_WINDOW_NS).astype(np.int64)
    ts = np.sort(window * RATE_WINDOW_NS + within)
    return _Rows(ts, rate[np.maximum(window - 1, 0)], burst[window])


def _leg(shape: LegShape, stage: str, rows: _Rows, draws: _Draws) -> Int:
    size = rows.ts.size
    shared = draws.normal("all legs", size)
    own = draws.normal(stage, size)
    y = ar1(np.sqrt(0.5) * shared + np.sqrt(0.5) * own, PHI_LEG)
    beyond = (shape.median_us - shape.floor_us) * np.exp(shape.s * y)
    us = shape.floor_us + beyond * np.where(rows.burst, shape.burst, 1.0)
    ns: Int = np.rint(us * 1e3).astype(np.int64)
    return ns


def _messages(orders: _Rows, draws: _Draws) -> NDArray[Any]:
    drawn = draws.uniform("message", orders.ts.size)
    kind = np.searchsorted([SHARE_OF_NEW, SHARE_OF_NEW + SHARE_OF_CANCELS], drawn, side="right")
    words: NDArray[Any] = np.array(MESSAGES)[kind]
    return words


def _joined(
    orders: _Rows,
    legs: dict[str, Int],
    message: NDArray[Any],
    models: _Rows,
    service: Int,
) -> dict[str, NDArray[Any] | list[Any]]:
    """Columns of orders, then of inferences; `make_profile` puts them in order of time."""
    blank = np.full(service.size, np.iinfo(np.int64).min)
    both = [*orders.burst.tolist(), *models.burst.tolist()]
    columns: dict[str, NDArray[Any] | list[Any]] = {
        "kind": ["order"] * orders.ts.size + ["model"] * models.ts.size,
        "ts": np.concatenate([orders.ts, models.ts]),
        "rate": np.concatenate([orders.rate, models.rate]),
        "batch": np.concatenate([np.full_like(orders.ts, blank[0]), np.ones_like(models.ts)]),
        "service_ns": np.concatenate([np.full_like(orders.ts, blank[0]), service]),
        "message": [*message.tolist(), *[None] * models.ts.size],
        "regime": ["burst" if each else "calm" for each in both],
    }
    return columns | {name: np.concatenate([ns, blank]) for name, ns in legs.items()}

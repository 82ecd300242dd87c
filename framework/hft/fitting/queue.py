"""The queue model's exponent, from where cancelled orders really stood (L3).

Under `power3` a cancel falls on u, the share of its level's lots before it, with the density
n u^(n-1) of Beta(n, 1). An order covers an interval of the queue, so what is known of each cancel
is that u lay in [low, high]: the likelihood is high^n - low^n. Midpoints of the intervals would
give the closed form -N / sum(ln u), which is off where queues hold few orders; it is shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hft.errors import DataError
from hft.fitting.blocks import Estimate, block_of, fit_on_grid, of_draws, sums
from hft.fitting.tape import Source, Tell, read_cancels

Float = NDArray[np.float64]
Cancels = NDArray[Any]

LOG_N = np.linspace(np.log(1 / 64), np.log(64), 201)
FEWEST = 50
NEAR_TICKS = 4
SIZE_CLASSES = ("small", "middle", "large")
MODELS = ("power1", "power2", "power3", "log1", "log2", "uniform")
WITH_N = ("power1", "power2", "power3")


@dataclass(frozen=True, slots=True)
class Group:
    """Some of the cancels, and the exponent among them."""

    label: str
    cancels: int
    informative: int
    n: Estimate | None
    """None: fewer than 50 that say something, or all within a few moments."""


@dataclass(frozen=True, slots=True)
class ModelFit:
    """How well a model says whether a cancel fell before a drawn order or behind it."""

    model: str
    n: Estimate | None
    """None: the model has no parameter."""
    loss: float
    """Mean -log2 of the probability of what happened [bits]; a coin has 1."""

    def text(self) -> str:
        """`0.540 (n = 0.198)`."""
        return f"{self.loss:.3f}" + (f" (n = {self.n.value:.3g})" if self.n else "")


@dataclass(frozen=True, slots=True)
class QueueFit:
    """The exponent of `power3`, and what else the cancels say."""

    source: Source
    near_ticks: int
    cancels: int
    informative: int
    """Not the only order of their level: the others say nothing."""
    n: Estimate
    se: float
    """From the curvature of the likelihood: as if cancels were independent."""
    midpoint_n: float
    """-N / sum(ln u) over the middles of the intervals."""
    groups: list[Group]
    models: list[ModelFit]
    curve: Float
    """Cumulative share of cancels at u = 0, 0.01 ... 1 if they fell within their orders as the
    fitted model says, (101,): u^n if and only if the model is right."""
    largest_gap: float
    """Between that curve and u^n."""

    def loss(self, model: str) -> float:
        """Of a model; infinite where none could be compared."""
        return next((m.loss for m in self.models if m.model == model), float("inf"))


def fit_queue(source: Source, near_ticks: int = NEAR_TICKS, tell: Tell | None = None) -> QueueFit:
    """Fit every one-parameter model to the cancels within `near_ticks` of the touch.

    Raises:
        DataError: the data tell levels, or hold too few cancels.
    """
    return fit_cancels(read_cancels(source, near_ticks, tell), source, near_ticks)


def fit_cancels(cancels: Cancels, source: Source, near_ticks: int) -> QueueFit:
    """Fit to CANCEL rows."""
    known = cancels[cancels["gone"] < cancels["level"]]
    if len(known) < FEWEST:
        raise DataError(
            f"{source.path}: {source.name}: {len(cancels):,} cancels within {near_ticks} ticks of "
            f"the touch, {len(known):,} of them in a queue with another order; want at least "
            f"{FEWEST} of these to fit n: take more data or a larger --near"
        )
    n, se = exponent(known)
    low, high = interval_of(known)
    curve = _curve(low, high, n.value)
    grid = np.linspace(0, 1, len(curve))
    return QueueFit(
        source,
        near_ticks,
        len(cancels),
        len(known),
        n,
        se,
        float(-len(known) / np.log((low + high) / 2).sum()),
        list(_groups(cancels)),
        _models(known),
        curve,
        float(np.abs(curve - grid**n.value).max()),
    )


def interval_of(cancels: Cancels) -> tuple[Float, Float]:
    """The shares of its level between which each cancel fell, (n,) and (n,)."""
    level = cancels["level"].astype(np.float64)
    return cancels["ahead"] / level, (cancels["ahead"] + cancels["gone"]) / level


def exponent(cancels: Cancels) -> tuple[Estimate, float]:
    """The n of Beta(n, 1) by maximum likelihood over intervals, and its standard error."""
    low, high = interval_of(cancels)
    block = block_of(cancels["ts"], "cancels")
    by_block = np.column_stack(
        [sums(block, _log_mass(low, high, n)) for n in np.exp(LOG_N)],
    )
    log_n, draws = fit_on_grid(LOG_N, by_block)
    return of_draws(float(np.exp(log_n)), np.exp(draws)), _error(by_block.sum(axis=0), log_n)


def _log_mass(low: Float, high: Float, n: float) -> Float:
    # high^n by itself would be zero for a small order at the front of a long queue.
    mass: Float = n * np.log(high) + np.log1p(-((low / high) ** n))
    return mass


def _error(likelihood: Float, log_n: float) -> float:
    at = int(np.clip(np.searchsorted(LOG_N, log_n), 1, len(LOG_N) - 2))
    step = LOG_N[1] - LOG_N[0]
    bend = (likelihood[at - 1] - 2 * likelihood[at] + likelihood[at + 1]) / step**2
    return float(np.exp(log_n) / np.sqrt(-bend)) if bend < 0 else float("inf")


def _curve(low: Float, high: Float, n: float) -> Float:
    """Spread within its interval as the model would, a cancel falls where it really may have."""
    mass = high**n - low**n
    return np.array(
        [np.mean((np.clip(u, low, high) ** n - low**n) / mass) for u in np.linspace(0, 1, 101)]
    )


def _groups(cancels: Cancels) -> Any:
    wide = cancels["spread"] > 1
    yield _group("spread 1 tick", cancels[~wide])
    yield _group("spread wider", cancels[wide])
    small, large = np.quantile(cancels["level"], [1 / 3, 2 / 3])
    size = np.searchsorted([small, large], cancels["level"], side="left")
    for k, name in enumerate(SIZE_CLASSES):
        mine = cancels[size == k]
        ends = f", {mine['level'].min():,} to {mine['level'].max():,} lots" if len(mine) else ""
        yield _group(f"{name} level{ends}", mine)
    distance = cancels["distance"]
    for k in range(int(distance.max()) + 1):
        where = "at the touch" if k == 0 else f"{k} tick{'s' * (k > 1)} behind"
        yield _group(where, cancels[distance == k])


def _group(label: str, cancels: Cancels) -> Group:
    known = cancels[cancels["gone"] < cancels["level"]]
    n = None
    if len(known) >= FEWEST:
        try:
            n = exponent(known)[0]
        except DataError:  # all within a few moments
            n = None
    return Group(label, len(cancels), len(known), n)


def _models(cancels: Cancels) -> list[ModelFit]:
    """All models by one likelihood: was the cancel before an order drawn from its level, or behind?

    What the model is asked in a replay too. Where nothing stands on one side of that order, no
    model is asked; where the cancel is larger than one side it is, though a replay knows better:
    leaving these out would favour small orders.
    """
    asked = cancels[np.minimum(cancels["ref_front"], cancels["ref_back"]) > 0]
    if len(asked) < FEWEST:
        return []
    try:
        block = block_of(asked["ts"], "cancels")
    except DataError:
        return []
    front, back = asked["ref_front"].astype(float), asked["ref_back"].astype(float)
    before = asked["ref_ahead"] == 1

    def likelihood(model: str, n: float) -> Float:
        ahead = np.clip(share_ahead(model, n, front, back), 1e-12, 1 - 1e-12)
        return np.log(np.where(before, ahead, 1 - ahead))

    fits = []
    for model in MODELS:
        n = None
        if model in WITH_N:
            grid = [sums(block, likelihood(model, k)) for k in np.exp(LOG_N)]
            log_n, draws = fit_on_grid(LOG_N, np.column_stack(grid))
            n = of_draws(float(np.exp(log_n)), np.exp(draws))
        loss = -float(likelihood(model, n.value if n else 1.0).mean() / np.log(2))
        fits.append(ModelFit(model, n, loss))
    return fits


def share_ahead(model: str, n: float, front: Float, back: Float) -> Float:
    """Probability that a cancel lies before an order: as `hft::Queue` (core/queue.hpp)."""
    ahead: Float
    if model == "power1":
        ahead = 1 / (1 + np.exp(np.clip(n * np.log(back / front), -700, 700)))
    elif model == "power2":
        ahead = 1 - (back / (back + front)) ** n
    elif model == "power3":
        ahead = (front / (front + back)) ** n
    elif model == "log1":
        ahead = 1 - np.log1p(back) / (np.log1p(back) + np.log1p(front))
    elif model == "log2":
        ahead = 1 - np.log1p(back) / np.log1p(back + front)
    else:
        ahead = front / (front + back)
    return ahead

"""The n of a queue model that predicts the first part of the data best.

Golden section on ln n of the Brier score. All values of n meet the same draws, so that the score is
a function of n and not of luck; several searches share each pass over the data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from hft.scoring.ghosts import WITH_N, Hidden, Int, Model, Options, hide
from hft.scoring.statistics import fair_brier

if TYPE_CHECKING:
    from hft.fitting.tape import Source

GRID = tuple(2.0**k for k in range(-4, 7))
"""Where the search begins: the best of these, and its two neighbours."""
STEPS = 9
"""ln 4 shrinks to 0.02: n to 2 %."""
GOLDEN = (5**0.5 - 1) / 2
WINDOWS = ("order", "place")

Part = tuple["Source", Int]
"""An instrument, and the rows of its orders to hide."""


class Search:
    """A golden section search that is told values instead of asking for them."""

    def __init__(self, low: float, high: float) -> None:
        self._low, self._high = low, high
        self._points = [high - GOLDEN * (high - low), low + GOLDEN * (high - low)]
        self._values: list[float | None] = [None, None]

    def wanted(self) -> float:
        """Where the next value is wanted."""
        return self._points[0 if self._values[0] is None else 1]

    def tell(self, value: float) -> None:
        """The value there."""
        self._values[0 if self._values[0] is None else 1] = value
        left, right = self._values
        if left is None or right is None:
            return
        if left <= right:
            self._high = self._points[1]
            self._points = [self._high - GOLDEN * (self._high - self._low), self._points[0]]
            self._values = [None, left]
        else:
            self._low = self._points[0]
            self._points = [self._points[1], self._low + GOLDEN * (self._high - self._low)]
            self._values = [right, None]

    def best(self) -> float:
        """The middle of what is left."""
        return (self._low + self._high) / 2


def fit_n(
    parts: Sequence[Part], options: Options, tell: Callable[[float], None]
) -> dict[str, dict[str, float]]:
    """Of each window ("order", "place") and model with an n, the n with the least Brier score.

    Args:
        parts: one n for all of them.
        options: how orders are hidden.
        tell: told the share that is done.
    """
    grid = [Model(name, n) for name in WITH_N for n in GRID]
    scores = {w: s.reshape(len(WITH_N), -1) for w, s in _scores(parts, grid, options).items()}
    keys = [(w, name) for w in WINDOWS for name in WITH_N]
    searches = {}
    for window, name in keys:
        at = int(np.argmin(scores[window][WITH_N.index(name)]))
        low, high = GRID[max(at - 1, 0)], GRID[min(at + 1, len(GRID) - 1)]
        searches[window, name] = Search(float(np.log(low)), float(np.log(high)))
    for step in range(STEPS + 1):
        tell((step + 1) / (STEPS + 2))
        models = [Model(name, float(np.exp(searches[w, name].wanted()))) for w, name in keys]
        found = _scores(parts, models, options)
        for i, (window, name) in enumerate(keys):
            searches[window, name].tell(float(found[window][i]))
    return {w: {name: float(np.exp(searches[w, name].best())) for name in WITH_N} for w in WINDOWS}


def _scores(
    parts: Sequence[Part], models: Sequence[Model], options: Options
) -> dict[str, np.ndarray]:
    """Mean Brier scores, (models,), by window."""
    hidden = [hide(source, rows, models, options) for source, rows in parts]
    return {w: _mean(hidden, w, options.particles) for w in WINDOWS}


def _mean(hidden: Sequence[Hidden], window: str, particles: int) -> np.ndarray:
    each = [getattr(h, window) for h in hidden]
    total = sum(fair_brier(w.probability, w.filled, particles).sum(axis=0) for w in each)
    mean: np.ndarray = total / sum(len(w.filled) for w in each)
    return mean

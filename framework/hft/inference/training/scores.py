"""How good probabilities and a forecast of moves are, and how to make them honest."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def auc(score: Floats, positive: npt.NDArray[np.bool_]) -> float:
    """Chance that a positive row scores above a negative one, ties half; NaN: none of either."""
    n_pos = int(positive.sum())
    n_neg = len(positive) - n_pos
    if not n_pos or not n_neg:
        return float("nan")
    _, place, counts = np.unique(score, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    rank = last - (counts - 1) / 2  # mean rank of each tied group, from 1
    above = rank[place][positive].sum() - n_pos * (n_pos + 1) / 2
    return float(above / (n_pos * n_neg))


def log_loss(p: Floats, label: npt.NDArray[np.int64], weight: Floats) -> float:
    """Mean -log p[label] in nats, by weight."""
    chosen = np.maximum(p[np.arange(len(p)), label], 1e-12)
    return float(np.average(-np.log(chosen), weights=weight))


def calibration_error(p: Floats, positive: npt.NDArray[np.bool_], bins: int = 20) -> float:
    """Mean |forecast - frequency| over bins of equally many rows."""
    order = np.argsort(p, kind="stable")
    parts = [part for part in np.array_split(order, bins) if len(part)]
    errors = [abs(p[part].mean() - positive[part].mean()) * len(part) for part in parts]
    return float(sum(errors) / len(p))


TEMPERATURES = (0.25, 4.0)
"""Where the search for one stops."""


def temperature(p: Floats, label: npt.NDArray[np.int64], weight: Floats) -> float:
    """T of softmax(log p / T) with the least log loss; above 1: p was too sure.

    Within TEMPERATURES: what wants one beyond them has learnt nothing that calibration could save.
    """
    logits = np.log(np.maximum(p, 1e-12))
    low, high = np.log(TEMPERATURES)
    golden = (5**0.5 - 1) / 2

    def loss(log_t: float) -> float:
        return log_loss(tempered(logits, np.exp(log_t)), label, weight)

    for _ in range(30):
        a, b = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, b) if loss(a) < loss(b) else (a, high)
    return float(np.exp((low + high) / 2))


def tempered(logits: Floats, t: float) -> Floats:
    """softmax(logits / t) by row."""
    z = logits / t
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return np.asarray(e / e.sum(axis=1, keepdims=True))


def slope(forecast: Floats, outcome: Floats, weight: Floats) -> float:
    """Outcome per unit of forecast, through the origin; 0 where nothing is forecast."""
    power = float((weight * forecast**2).sum())
    return float((weight * forecast * outcome).sum()) / power if power else 0.0


def correlation(a: Floats, b: Floats) -> float:
    """Pearson's; 0 where one does not vary."""
    if a.std() == 0 or b.std() == 0:
        return 0.0
    return float(np.corrcoef(a, b)[0, 1])

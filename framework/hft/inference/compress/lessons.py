"""What cheaper models learn from: training rows, and what a teacher says of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hft.errors import ModelError
from hft.inference.dataset.in_memory import Floats
from hft.inference.training.task import Task

Teacher = Callable[[slice], Floats]
"""Probabilities of FULL on the rows of a cut, (n, outputs)."""
BLOCKS = 40
"""That training rows are taken in where there are more than are used."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """Training rows and what FULL says of them."""

    x: npt.NDArray[np.float32]
    """(n, k): scaled rows, or what hidden layers make of them."""
    target: Floats
    """(n, outputs)."""
    weight: Floats
    """(n,), mean 1."""


def lesson_of(task: Task, inputs: Callable[[slice], Any], teacher: Teacher, at_most: int) -> Lesson:
    """Rows of the training slice and the teacher's word on them.

    Args:
        task: has the rows.
        inputs: of the rows of a cut, (n, k).
        teacher: asked about no other rows.
        at_most: rows used.
    """
    blocks = blocks_of(task.parts.train, at_most)
    weight = np.concatenate([task.rows.weight[cut] for cut in blocks])
    return Lesson(
        np.concatenate([np.asarray(inputs(cut), np.float32) for cut in blocks]),
        np.concatenate([answers_of(teacher, cut) for cut in blocks]),
        weight / weight.mean(),
    )


def blocks_of(train: slice, at_most: int) -> list[slice]:
    """At most so many rows, in evenly spaced blocks.

    Blocks, because a teacher with memory has to read what comes before a row.
    """
    if train.stop - train.start <= at_most:
        return [train]
    size = max(at_most // BLOCKS, 1)
    starts = np.linspace(train.start, train.stop - size, at_most // size).astype(np.int64)
    return [slice(start, start + size) for start in starts.tolist()]


def softmax_fit(lesson: Lesson, ridge: float) -> tuple[Floats, Floats]:
    """The linear map whose softmax has the least mean cross entropy to the target, and penalty.

    Returns:
        (k, outputs) and (outputs,).
    """
    from scipy.optimize import minimize

    x, target = lesson.x.astype(np.float64), lesson.target
    share = (lesson.weight / lesson.weight.sum())[:, None]
    inputs, outputs = x.shape[1], target.shape[1]

    def loss(flat: Floats) -> tuple[float, Floats]:
        w, b = flat[:-outputs].reshape(inputs, outputs), flat[-outputs:]
        z = x @ w + b
        z -= z.max(axis=1, keepdims=True)
        log_p = z - np.log(np.exp(z).sum(axis=1, keepdims=True))
        away = share * (np.exp(log_p) - target)
        value = float(-(share * target * log_p).sum()) + ridge / 2 * float((w**2).sum())
        return value, np.concatenate([(x.T @ away + ridge * w).ravel(), away.sum(axis=0)])

    start = np.zeros((inputs + 1) * outputs)
    options = {"maxiter": 500, "ftol": 1e-12, "gtol": 1e-7}
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options=options).x
    w, b = found[:-outputs].reshape(inputs, outputs), found[-outputs:]
    return w, b - b.mean()  # a constant in all outputs says nothing


def answers_of(teacher: Teacher, cut: slice) -> Floats:
    """What it says of a cut.

    Raises:
        ModelError: not one row of probabilities for each.
    """
    p = np.asarray(teacher(cut), np.float64)
    if p.ndim != 2 or len(p) != cut.stop - cut.start:
        raise ModelError(
            f"the teacher gave {p.shape} for {cut.stop - cut.start} rows: want outputs of each"
        )
    if not np.isfinite(p).all() or p.min() < -1e-5 or np.abs(p.sum(axis=1) - 1).max() > 1e-3:
        raise ModelError(
            "the teacher's outputs are no probabilities: only a model that ends with a softmax can "
            "be learned from"
        )
    return p

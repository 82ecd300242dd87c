"""How far an answer can move when its inputs do: what bounds the reuse of answers.

The figure is of classes' probabilities against the largest change of any scaled input (L-infinity),
for models whose answer is a function of what they are shown: the newest row, or a window. On real
rows four ways of moving are tried:

- towards a random corner of the box around the row,
- along the gradient of each class: towards the corner where a linear function rises most,
- the same with steps from small to large, as a bend may lie further away,
- to the next real row (or window).

The largest change per unit of input, times a factor of safety, is the figure: measured, not proven.
Where all layers are dense there is a proven bound too, the product of the matrices' norms; it is
loose, and the figure is never above it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from hft.errors import DataError, ModelError
from hft.inference.card import Scaler
from hft.inference.compress.stack import Stack
from hft.inference.dataset.in_memory import Floats
from hft.inference.training.task import Task

Answer = Callable[[npt.NDArray[np.float32]], Floats]
"""(m, T, k) scaled -> (m, outputs); T is 1 where only the newest row is seen."""

STEPS = (0.02, 0.1, 0.5)
"""Of scaled inputs. Smaller ones would measure the rounding of 32 bits: 1e-7 of an output."""
LEAST_PAIR = 0.02
"""Change of an input from row to row below which a pair is not looked at, for the same reason."""
SLOPES = {"linear": 1.0, "relu": 1.0, "tanh": 1.0, "sigmoid": 0.25, "softmax": 0.5}
"""Largest change of an output per unit of all of a layer's sums (L-infinity)."""


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """Change of a class probability a change of a scaled input."""

    value: float
    """For the card."""
    measured: float
    """The largest that was seen."""
    bound: float
    """Proven; infinite where there is none."""
    how: str
    """How it was made, for people."""

    def __str__(self) -> str:
        return f"a probability moves by at most {self.value:.3g} a unit of input ({self.how})"


def sensitivity_of(
    stack: Stack,
    task: Task,
    cut: slice | None = None,
    *,
    rows: int = 300,
    directions: int = 16,
    safety: float = 1.5,
    seed: int = 1,
) -> Sensitivity:
    """Of a native network, on rows it was not trained on.

    Args:
        stack: without memory, or with a window.
        task: has the rows.
        cut: which of them; the calibration slice by default.
        rows: moved about, evenly chosen; pairs of consecutive rows are of these and the next.
        directions: random corners a row.
        safety: factor on what was seen.
        seed: of the corners.

    Raises:
        ModelError: the model carries state: an answer depends on more than it is shown.
    """
    if stack.has_memory and not stack.window_rows:
        raise ModelError(
            "sensitivity is of models that see a row or a window; this one carries state, so that "
            "a row left out changes every answer after it"
        )
    windows = _windows(stack, task, cut or task.parts.calibrate, rows)
    return sensitivity(
        _answer(stack),
        windows,
        stack.scaler.clip,
        bound=bound_of(stack),
        directions=directions,
        safety=safety,
        seed=seed,
    )


def sensitivity(
    answer: Answer,
    windows: npt.NDArray[np.float32],
    clip: float,
    *,
    bound: float = np.inf,
    directions: int = 16,
    safety: float = 1.5,
    seed: int = 1,
) -> Sensitivity:
    """Of anything that answers.

    Args:
        answer: of any backend.
        windows: (n, 2, T, k) scaled: what was shown, and what was shown next.
        clip: no scaled input goes beyond.
        bound: proven, if there is one.
        directions: random corners a window.
        safety: factor on what was seen.
        seed: of the corners.

    Raises:
        DataError: no window.
    """
    if not len(windows):
        raise DataError("no rows to measure sensitivity on")
    first, second = windows[:, 0], windows[:, 1]
    start = answer(first)
    rng = np.random.default_rng(seed)
    ways = [_corner(rng, first.shape) for _ in range(directions)]
    ways += _steepest(answer, first, start)
    seen = [
        _rate(answer, first, start, first + np.float32(step) * way, clip)
        for way in ways
        for step in STEPS
    ]
    paired = _rate(answer, first, start, second, clip, least=LEAST_PAIR)
    measured = max(*seen, paired)
    value = min(measured * safety, bound)
    how = (
        f"largest of {len(first)} rows: random corners {max(seen[: directions * len(STEPS)]):.4g}, "
        f"along gradients {max(seen[directions * len(STEPS) :]):.4g}, to the next row "
        f"{paired:.4g}; times {safety:g}"
    )
    if value == bound:
        how += f", or the {bound:.4g} that is proven"
    return Sensitivity(value, measured, bound, how)


def bound_of(stack: Stack) -> float:
    """Proven for dense layers of one row: the product of their norms; infinite for others."""
    if stack.has_memory:
        return float("inf")
    found = 1.0
    for entry, arrays in zip(stack.layers, stack.weights, strict=True):
        kernel = arrays["kernel"].astype(np.float64).reshape(-1, entry.units)
        found *= float(np.abs(kernel).sum(axis=0).max()) * SLOPES[entry.activation]
    return found


def _corner(rng: np.random.Generator, shape: tuple[int, ...]) -> npt.NDArray[np.float32]:
    return np.asarray(rng.choice([-1, 1], shape), np.float32)


def _rate(
    answer: Answer,
    first: npt.NDArray[np.float32],
    start: Floats,
    second: npt.NDArray[np.float32],
    clip: float,
    least: float = STEPS[0] / 2,
) -> float:
    second = np.clip(second, -clip, clip)
    moved = np.abs(second - first).reshape(len(first), -1).max(axis=1)
    far = moved >= least
    if not far.any():
        return 0.0
    change = np.abs(answer(second[far]) - start[far]).max(axis=1)
    return float((change / moved[far]).max())


def _steepest(
    answer: Answer, first: npt.NDArray[np.float32], start: Floats
) -> list[npt.NDArray[np.float32]]:
    # Of a window only the newest row's inputs are nudged: one answer an input.
    inward = np.where(first[:, -1] > 0, np.float32(-1), np.float32(1))  # (n, k): within the clip
    slopes = []
    for column in range(first.shape[2]):
        nudged = first.copy()
        nudged[:, -1, column] += np.float32(STEPS[0]) * inward[:, column]
        slopes.append((answer(nudged) - start) * inward[:, column, None])
    signs = np.where(np.stack(slopes, axis=2) < 0, np.float32(-1), np.float32(1))  # (n, outputs, k)
    found = []
    for output in range(start.shape[1]):
        whole = np.repeat(signs[:, output, None], first.shape[1], axis=1)  # every row the same way
        newest = whole.copy()
        newest[:, :-1] = 0
        found += [newest, -newest] if first.shape[1] == 1 else [newest, -newest, whole, -whole]
    return found


def _windows(stack: Stack, task: Task, cut: slice, rows: int) -> npt.NDArray[np.float32]:
    length = stack.window_rows or 1
    behind = task.rows.since_fresh()[cut]
    ends = np.flatnonzero(behind >= length) + cut.start  # the next needs a row more behind it
    if not len(ends):
        raise DataError(
            f"no {length + 1} of {cut.stop - cut.start} rows are without a break: sensitivity "
            "needs a window and the next"
        )
    chosen = ends[np.linspace(0, len(ends) - 1, min(rows, len(ends))).astype(np.int64)]
    at = chosen[:, None, None] + np.arange(-1, 1)[:, None] + np.arange(1 - length, 1)
    return stack.scaled(task.rows.x[at])


def _answer(stack: Stack) -> Answer:
    """The native network on inputs that are scaled already."""
    from hft import _core

    inputs = len(stack.scaler.mean)
    as_is = Scaler(mean=(0.0,) * inputs, scale=(1.0,) * inputs, clip=stack.scaler.clip)
    stream = _core.NetworkStream(replace(stack, scaler=as_is).network())

    def answer(windows: npt.NDArray[np.float32]) -> Floats:
        wide = windows.astype(np.float64)
        if not stack.has_memory:
            return np.asarray(stream.batch(np.ascontiguousarray(wide[:, -1])), np.float64)
        found = []
        for window in wide:
            stream.reset()
            found.append(stream.batch(window)[-1])
        return np.asarray(found, np.float64)

    return answer

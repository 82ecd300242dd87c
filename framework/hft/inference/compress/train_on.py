"""Trains a network on after something was taken from it, with weights held at zero if wanted.

It learns from the labels, or from what the network said before (a teacher). Two tools can hold
weights at zero: `masks`, with Keras 3, and `tfmot`, TensorFlow's optimization toolkit, which
refuses Keras 3 and brings the old Keras (extra `prune`). Both run in a process of their own.
"""

from __future__ import annotations

import importlib.util
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from hft.errors import ConfigError, DataError, ModelError
from hft.inference.build.apart import ApartError, call_apart
from hft.inference.bundle import ARRAYS
from hft.inference.compress.lessons import Teacher, answers_of, blocks_of
from hft.inference.compress.prune_weights import require_share
from hft.inference.compress.stack import Stack
from hft.inference.dataset.in_memory import Floats
from hft.inference.training.task import Task

Tool = Literal["masks", "tfmot"]
_NEEDS: dict[Tool, tuple[str, ...]] = {
    "masks": ("keras", "tensorflow"),
    "tfmot": ("tensorflow_model_optimization", "tf_keras"),
}


class TrainOn(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to train on."""

    tool: Tool = "masks"
    epochs: int = 2
    learning_rate: float = 1e-3
    """At first; it falls to a twentieth along a cosine."""
    piece_rows: int = 50
    """Of a streaming model: rows of a piece. The first fifth brings a state, and is not counted."""
    at_most: int = 4_000
    """Pieces, or windows, used."""
    seed: int = 1
    """Of their order."""
    limit_s: float = 600.0
    """For all of it; TensorFlow alone takes some 10 s to start."""


@dataclass(frozen=True, slots=True)
class _Pieces:
    x: npt.NDArray[np.float32]
    """(n, rows, k), scaled."""
    target: Floats
    """(n, rows, outputs)."""
    weight: npt.NDArray[np.float32]
    """(n, rows)."""


def train_on(
    stack: Stack,
    task: Task,
    share: float = 0.0,
    teacher: Teacher | None = None,
    config: TrainOn | None = None,
) -> Stack:
    """The same network, trained on.

    Args:
        stack: ends with a dense softmax.
        task: rows to train on: the training slice.
        share: of each matrix's weights that are zero at the end.
        teacher: whose probabilities to learn; none: the labels.
        config: see `TrainOn`.

    Raises:
        ConfigError: an extra is not installed, or the share is out of range.
        DataError: too few rows without a break.
        ModelError: another last layer; or the process failed or took too long, says how it ended.
    """
    config = config or TrainOn()
    require_share(share)
    require_tool(config.tool)
    if (stack.layers[-1].kind, stack.layers[-1].activation) != ("dense", "softmax"):
        raise ModelError("only a network that ends with a dense softmax can be trained on")
    pieces = _pieces(stack, task, teacher, config)
    order: dict[str, Any] = {
        "layers": [msgspec.to_builtins(entry) for entry in stack.layers],
        "share": share,
        "config": msgspec.to_builtins(config),
    }
    with tempfile.TemporaryDirectory() as folder:
        given, made = Path(folder) / "given.npz", Path(folder) / "made.npz"
        np.savez(
            given,
            allow_pickle=False,
            x=pieces.x,
            target=pieces.target,
            weight=pieces.weight,
            **_flat(stack),
        )
        try:
            order |= {"given": str(given), "made": str(made)}
            call_apart("hft.inference.compress.train_on_worker:train", order, config.limit_s)
        except ApartError as error:
            raise ModelError(f"training on with {config.tool}: {error}") from error
        with np.load(made, allow_pickle=False) as found:
            weights = [
                {part: found[f"layer{n}_{part}"] for part in ARRAYS[entry.kind]}
                for n, entry in enumerate(stack.layers, 1)
            ]
    return replace(stack, weights=weights)


def require_tool(tool: Tool) -> None:
    """Says at once that a tool is not there.

    Raises:
        ConfigError: names the extra to install.
    """
    missing = [name for name in _NEEDS[tool] if importlib.util.find_spec(name) is None]
    if missing:
        extra = "train" if tool == "masks" else "prune"
        raise ConfigError(
            f"training on with {tool} needs {', '.join(missing)}: pip install "
            f"'hft-framework[{extra}]'"
        )


def _pieces(stack: Stack, task: Task, teacher: Teacher | None, config: TrainOn) -> _Pieces:
    length = stack.window_rows or config.piece_rows
    # Only a window's last row is learned, so that windows may overlap.
    stride = max(length // 10, 1) if stack.window_rows else length
    uncounted = length - 1 if stack.window_rows else length // 5 if stack.has_memory else 0
    offsets = np.arange(1 - length, 1)
    behind = task.rows.since_fresh()
    x, target, weight = [], [], []
    for cut in blocks_of(task.parts.train, config.at_most * stride):
        ends = np.arange(cut.start + length - 1, cut.stop, stride)
        at = ends[behind[ends] >= length - 1][:, None] + offsets
        x.append(stack.scaled(task.rows.x[at]))
        target.append(_targets(stack, task, teacher, cut)[at - cut.start])
        weight.append((task.weight if teacher is None else task.rows.weight)[at])
    found = _Pieces(
        np.concatenate(x), np.concatenate(target), np.concatenate(weight).astype(np.float32)
    )
    found.weight[:, :uncounted] = 0.0
    if not found.weight.any():
        raise DataError(
            f"no {length} of {task.parts.train.stop - task.parts.train.start} training rows have a "
            "label and are without a break: want more data or shorter pieces"
        )
    return found


def _targets(stack: Stack, task: Task, teacher: Teacher | None, cut: slice) -> Floats:
    if teacher is not None:
        return answers_of(teacher, cut)
    return np.eye(stack.layers[-1].units)[task.label[cut]]


def _flat(stack: Stack) -> dict[str, npt.NDArray[np.float32]]:
    return {
        f"layer{n}_{part}": array
        for n, arrays in enumerate(stack.weights, 1)
        for part, array in arrays.items()
    }

"""Structured pruning: takes whole units out, so that every matrix they touch becomes smaller.

This is the pruning that gains latency on dense kernels: a layer's products shrink with its own
units, its memory's and the next layer's inputs with them. Native kernels work on panels of 16
units and four inputs at a time, which is why what remains is rounded up (`multiple`).

A unit whose outgoing weights are all zero is heard by nobody: taking it out changes no output.
Units that hardly vary are heard as a constant, so with rows at hand their mean goes into the
biases of those that heard them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec
import numpy as np
import numpy.typing as npt

from hft.errors import ConfigError
from hft.inference.card import LayerEntry
from hft.inference.compress.stack import Stack
from hft.inference.dataset.in_memory import Floats, Rows

GATES = {"lstm": 4, "gru": 3, "conv": 1, "dense": 1}
"""Columns of a kernel that a unit has; LSTM i, f, c, o, GRU z, r, h, in blocks of all units."""

Arrays = Mapping[str, npt.NDArray[np.float32]]
Indices = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class UnitsRow:
    """What became of a layer."""

    layer: int
    """From 1."""
    kind: str
    before: int
    after: int
    lost: float
    """Share of the layer's importance, in squares, that went with the units."""

    def __str__(self) -> str:
        return (
            f"layer {self.layer} {self.kind:5} {self.before:4} -> {self.after:4} units, "
            f"{self.lost:.2%} of their importance lost"
        )


@dataclass(frozen=True, slots=True)
class Pruned:
    """A smaller network and what is left of each layer."""

    stack: Stack
    kept: tuple[Indices, ...]
    """By layer, indices of the units that stay, ascending."""
    table: tuple[UnitsRow, ...]
    """Of all layers but the last, whose units are the outputs."""


def prune_units(
    stack: Stack,
    share: float | Sequence[float],
    *,
    rows: Rows | None = None,
    cut: slice | None = None,
    multiple: int = 8,
) -> Pruned:
    """Takes the least important units out of every hidden layer.

    Args:
        stack: what to prune.
        share: of each hidden layer's units to take out, in [0, 1); one for all, or one a layer.
        rows: with `cut`, calibration rows: importance is then the deviation of a unit's output
            times its outgoing weights, and the mean of what goes stays in the biases. Without,
            it is incoming times outgoing weights.
        cut: which of `rows`.
        multiple: units that stay are rounded up to it, so never more go than was asked.

    Raises:
        ConfigError: a share is out of range, or there is no hidden layer.
    """
    hidden = len(stack.layers) - 1
    shares = _shares(share, hidden)
    measured = None if rows is None or cut is None else _moments(stack, rows, cut)
    kept: list[Indices] = []
    table = []
    for n, entry in enumerate(stack.layers[:-1]):
        scores = importance(stack, n, None if measured is None else measured[n][1])
        stay = _most(scores, _remaining(entry.units, shares[n], multiple))
        lost = _power(np.delete(scores, stay)) / (_power(scores) or 1.0)
        kept.append(stay)
        table.append(UnitsRow(n + 1, entry.kind, entry.units, len(stay), lost))
    kept.append(np.arange(stack.layers[-1].units))
    if measured is not None:
        stack = _with_means(stack, kept, [mean for mean, _ in measured])
    return Pruned(sliced(stack, kept), tuple(kept), tuple(table))


def importance(stack: Stack, layer: int, deviation: Floats | None = None) -> Floats:
    """How much each unit of a hidden layer (from 0) matters, (units,); 0: nobody hears it."""
    entry, arrays = stack.layers[layer], stack.weights[layer]
    heard = (_outgoing(stack.layers[layer + 1], stack.weights[layer + 1]) ** 2).sum(axis=1)
    if "recurrent" in arrays:
        heard = heard + (_to_others(arrays["recurrent"], entry.units) ** 2).sum(axis=1)
    if deviation is not None:
        return np.asarray(deviation * np.sqrt(heard))
    parts = [_incoming(array, entry.units) for array in arrays.values()]
    return np.asarray(np.sqrt(heard * sum((part**2).sum(axis=0) for part in parts)))


def sliced(stack: Stack, kept: Sequence[Indices]) -> Stack:
    """The network of these units alone; a layer's inputs are the kept units of the one before."""
    inputs = np.arange(len(stack.scaler.mean))
    layers, weights = [], []
    for entry, arrays, stay in zip(stack.layers, stack.weights, kept, strict=True):
        layers.append(msgspec.structs.replace(entry, units=len(stay)))
        weights.append(_cut(entry, arrays, inputs, stay))
        inputs = stay
    return replace(stack, layers=tuple(layers), weights=weights)


def _cut(entry: LayerEntry, arrays: Arrays, inputs: Indices, stay: Indices) -> Arrays:
    columns = _columns(entry, stay)
    found = {
        "kernel": np.take(arrays["kernel"], inputs, axis=-2)[..., columns],
        "bias": arrays["bias"][..., columns],
    }
    if "recurrent" in arrays:
        found["recurrent"] = arrays["recurrent"][stay][:, columns]
    return {name: np.ascontiguousarray(found[name]) for name in arrays}


def _columns(entry: LayerEntry, units: Indices) -> Indices:
    gates = np.arange(GATES[entry.kind])
    return np.asarray((gates[:, None] * entry.units + units).ravel())


def _moments(stack: Stack, rows: Rows, cut: slice) -> list[tuple[Floats, Floats]]:
    found = []
    for upto in range(1, len(stack.layers)):
        out = stack.outputs(rows, cut, upto=upto)
        found.append((out.mean(axis=0), out.std(axis=0)))
    return found


def _with_means(stack: Stack, kept: Sequence[Indices], means: Sequence[Floats]) -> Stack:
    weights = [dict(arrays) for arrays in stack.weights]
    for n, mean in enumerate(means):
        gone = np.setdiff1d(np.arange(len(mean)), kept[n])
        after = weights[n + 1]
        kernel = after["kernel"].reshape(-1, *after["kernel"].shape[-2:])  # (width, inputs, units)
        _add(after, sum(mean[gone] @ tap[gone] for tap in kernel), row=0)
        if "recurrent" in weights[n]:
            _add(weights[n], mean[gone] @ weights[n]["recurrent"][gone], row=1)
    return replace(stack, weights=weights)


def _add(arrays: dict[str, npt.NDArray[np.float32]], constant: Floats, row: int) -> None:
    # A GRU has two biases: 0 beside the inputs' products, 1 beside the memory's.
    bias = arrays["bias"].astype(np.float64)
    bias[row if bias.ndim == 2 else ...] += constant
    arrays["bias"] = bias.astype(np.float32)


def _outgoing(entry: LayerEntry, arrays: Arrays) -> Floats:
    kernel = np.moveaxis(arrays["kernel"], -2, 0).astype(np.float64)  # of a convolution: all taps
    return kernel.reshape(len(kernel), -1)


def _incoming(array: npt.NDArray[np.float32], units: int) -> Floats:
    return array.astype(np.float64).reshape(-1, units)  # gates are blocks: columns are units


def _to_others(recurrent: npt.NDArray[np.float32], units: int) -> Floats:
    found = recurrent.astype(np.float64).reshape(units, -1, units)
    found[np.arange(units), :, np.arange(units)] = 0.0  # what a unit tells itself goes with it
    return found.reshape(units, -1)


def _most(scores: Floats, count: int) -> Indices:
    return np.sort(np.argsort(-scores, kind="stable")[:count])


def _power(scores: Floats) -> float:
    return float((scores**2).sum())


def _remaining(units: int, share: float, multiple: int) -> int:
    stay = max(round(units * (1.0 - share)), 1)
    return min(-(-stay // multiple) * multiple, units)


def _shares(share: float | Sequence[float], hidden: int) -> list[float]:
    shares = [share] * hidden if isinstance(share, int | float) else list(share)
    if not hidden:
        raise ConfigError("the model has no hidden layer: there are no units to prune")
    if len(shares) != hidden:
        raise ConfigError(f"{len(shares)} shares of units for {hidden} hidden layers: want as many")
    for value in shares:
        if not 0.0 <= value < 1.0:
            raise ConfigError(f"share of units is {value:g}: want at least 0 and less than 1")
    return shares

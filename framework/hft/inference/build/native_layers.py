"""Native layers out of someone else's: by a Keras model's objects, or by shapes of arrays alone."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hft.errors import ConfigError
from hft.inference.bundle import ARRAYS, Weights, core_layer
from hft.inference.card import LayerEntry

Array = npt.NDArray[np.float32]
ACTIVATIONS = ("linear", "relu", "tanh", "sigmoid", "softmax")
SAME = 1e-4
"""Outputs that differ by no more come from the same network."""


class NotNative(Exception):
    """There are no native layers; says which layer is why."""


@dataclass(frozen=True, slots=True)
class Layers:
    """What was recognised."""

    entries: tuple[LayerEntry, ...]
    weights: Weights


def of_keras(model: Any) -> Layers:
    """Layers of a Keras 3 model, a chain from one input to one output.

    Raises:
        NotNative: a layer has no native form.
    """
    found: list[tuple[LayerEntry, dict[str, Array]]] = []
    rows = 1 if len(model.input_shape) == 2 else model.input_shape[1]
    for layer in model.layers:
        name = f"{layer.name} ({type(layer).__name__})"
        kind = type(layer).__name__
        if kind in ("InputLayer", "Dropout", "SpatialDropout1D", "GaussianNoise"):
            continue
        if _is_last_row(layer, kind, rows):
            rows = 1
            continue
        if kind == "Activation":
            _activate(found, _activation_of(layer, name), name)
            continue
        if kind not in _READERS:
            raise NotNative(f"layer {name} has no native form")
        if rows == 1 and kind != "Dense" and model.input_shape[1] != 1:
            raise NotNative(f"layer {name} comes after the rows were reduced to one")
        found.append(_READERS[kind](layer, name))
        rows = rows if getattr(layer, "return_sequences", True) else 1
    if not found:
        raise NotNative("there is no layer with weights")
    _refuse_branches(model)
    return Layers(tuple(entry for entry, _ in found), [arrays for _, arrays in found])


def _is_last_row(layer: Any, kind: str, rows: int | None) -> bool:
    """Whether a layer only takes the newest row out of `rows`, which a native network does."""
    if kind == "Cropping1D":
        return rows is not None and tuple(layer.cropping) == (rows - 1, 0)
    return kind == "Flatten" and rows == 1


def _refuse_branches(model: Any) -> None:
    """A Sequential model is a chain; of a functional one the parents of its nodes tell."""
    heard = [p.operation.name for node in getattr(model, "_nodes", ()) for p in node.parent_nodes]
    twice = sorted({name for name in heard if heard.count(name) > 1})
    if twice and type(model).__name__ != "Sequential":
        raise NotNative(f"more than one layer hears {twice[0]}: the layers are no chain")
    if len(model.inputs) != 1 or len(model.outputs) != 1:
        raise NotNative(f"it has {len(model.inputs)} inputs and {len(model.outputs)} outputs")


def _activation_of(layer: Any, name: str) -> str:
    activation = str(getattr(layer.activation, "__name__", layer.activation))
    if activation not in ACTIVATIONS:
        raise NotNative(f"layer {name} has activation {activation}; native are {ACTIVATIONS}")
    return activation


def _activate(found: list[tuple[LayerEntry, dict[str, Array]]], kind: str, name: str) -> None:
    if not found or found[-1][0].kind not in ("dense", "conv"):
        raise NotNative(f"layer {name} does not follow a Dense or Conv1D layer")
    entry, arrays = found[-1]
    if entry.activation != "linear":
        raise NotNative(f"layer {name} comes after another activation")
    changed = LayerEntry(
        kind=entry.kind,
        units=entry.units,
        width=entry.width,
        activation=kind,  # type: ignore[arg-type]
    )
    found[-1] = (changed, arrays)


def _recurrent(layer: Any, name: str) -> tuple[LayerEntry, dict[str, Array]]:
    gru = type(layer).__name__ == "GRU"
    for what, value, wanted in (
        ("activation", _activation_of(layer, name), "tanh"),
        ("recurrent_activation", layer.recurrent_activation.__name__, "sigmoid"),
        ("go_backwards", bool(layer.go_backwards), False),
        *((("reset_after", bool(layer.reset_after), True),) if gru else ()),
    ):
        if value != wanted:
            raise NotNative(f"layer {name} has {what} {value}; native is {wanted}")
    arrays = [np.asarray(a, np.float32) for a in layer.get_weights()]
    if len(arrays) == 2:
        columns = arrays[0].shape[1]
        arrays.append(np.zeros((2, columns) if gru else columns, np.float32))
    kind = "gru" if gru else "lstm"
    entry = LayerEntry(kind=kind, units=layer.units)  # type: ignore[arg-type]
    return entry, dict(zip(ARRAYS[kind], arrays, strict=True))


def _conv(layer: Any, name: str) -> tuple[LayerEntry, dict[str, Array]]:
    for what, wanted in (
        ("padding", "causal"),
        ("strides", (1,)),
        ("dilation_rate", (1,)),
        ("groups", 1),
        ("data_format", "channels_last"),
    ):
        value = getattr(layer, what)
        # Of one row there is nothing to pad.
        if value != wanted and not (what == "padding" and layer.kernel_size == (1,)):
            raise NotNative(f"layer {name} has {what} {value}; native is {wanted}")
    entry = LayerEntry(
        kind="conv",
        units=layer.filters,
        width=layer.kernel_size[0],
        activation=_activation_of(layer, name),  # type: ignore[arg-type]
    )
    return entry, _with_bias(layer, entry.units)


def _dense(layer: Any, name: str) -> tuple[LayerEntry, dict[str, Array]]:
    activation = _activation_of(layer, name)
    entry = LayerEntry(kind="dense", units=layer.units, activation=activation)  # type: ignore[arg-type]
    return entry, _with_bias(layer, entry.units)


def _with_bias(layer: Any, units: int) -> dict[str, Array]:
    arrays = [np.asarray(a, np.float32) for a in layer.get_weights()]
    bias = arrays[1] if len(arrays) == 2 else np.zeros(units, np.float32)
    return {"kernel": arrays[0], "bias": bias}


_READERS = {"LSTM": _recurrent, "GRU": _recurrent, "Conv1D": _conv, "Dense": _dense}


def of_arrays(arrays: Sequence[Array], inputs: int) -> Iterator[Layers]:
    """Networks that arrays in this order could be, most usual first; answers tell which it is.

    Activations cannot be seen in a weight, so each is tried; nothing is yielded where the shapes
    are no network's.
    """
    found = _shaped(list(arrays), inputs)
    if found is None:
        return
    free = [n for n, e in enumerate(found.entries) if e.kind in ("dense", "conv")]
    if len(free) > 4:  # 5 kinds a layer: beyond this the search takes longer than it is worth
        return
    last = len(found.entries) - 1
    hidden = ("relu", "tanh", "linear", "sigmoid")
    ends = ("softmax", "linear", "sigmoid", "tanh")
    for kinds in itertools.product(*(ends if n == last else hidden for n in free)):
        entries = list(found.entries)
        for n, kind in zip(free, kinds, strict=True):
            e = entries[n]
            entries[n] = LayerEntry(kind=e.kind, units=e.units, width=e.width, activation=kind)  # type: ignore[arg-type]
        yield replace(found, entries=tuple(entries))


def _shaped(arrays: list[Array], inputs: int) -> Layers | None:
    entries: list[LayerEntry] = []
    weights: list[dict[str, Array]] = []
    while arrays:
        kind, count = _kind_of([a.shape for a in arrays[:3]], inputs)
        if not count:
            return None
        taken = dict(zip(ARRAYS[kind], arrays[:count], strict=True))
        arrays = arrays[count:]
        last = taken["kernel"].shape[-1]
        inputs = last // {"lstm": 4, "gru": 3}.get(kind, 1)
        width = taken["kernel"].shape[0] if kind == "conv" else 1
        entries.append(LayerEntry(kind=kind, units=inputs, width=width))  # type: ignore[arg-type]
        weights.append(taken)
    return Layers(tuple(entries), weights) if entries else None


def _kind_of(shapes: Sequence[tuple[int, ...]], inputs: int) -> tuple[str, int]:
    """The layer that begins here and how many arrays it has; 0: none."""
    first = shapes[0]
    if len(shapes) == 3 and len(first) == 2 and len(shapes[1]) == 2 and first[0] == inputs:
        units = shapes[1][0]
        for kind, gates, bias in (("lstm", 4, (4 * units,)), ("gru", 3, (2, 3 * units))):
            columns = gates * units
            if (first[1], shapes[1][1], shapes[2]) == (columns, columns, bias):
                return kind, 3
    fits = len(first) in (2, 3) and first[-2] == inputs
    if fits and len(shapes) >= 2 and shapes[1] == (first[-1],):
        return ("conv" if len(first) == 3 else "dense"), 2
    return "", 0


def answers(layers: Layers, windows: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Outputs of the last row of each scaled window, from nothing, (n, outputs).

    Raises:
        NotNative: the core refuses the layers.
    """
    from hft import _core

    inputs = windows.shape[2]
    try:
        network = _core.build_network(
            [0.0] * inputs,
            [1.0] * inputs,
            float(np.abs(windows).max()) + 1.0,
            [core_layer(e, w) for e, w in zip(layers.entries, layers.weights, strict=True)],
        )
    except (ConfigError, TypeError) as error:
        raise NotNative(str(error)) from error
    runs = [_core.NetworkStream(network).batch(w.astype(np.float64))[-1] for w in windows]
    return np.asarray(runs, np.float32)


def difference(ours: npt.NDArray[Any], theirs: npt.NDArray[Any]) -> float:
    """Largest of all outputs; infinite where they cannot be compared."""
    if ours.shape != theirs.shape or not np.isfinite(theirs).all():
        return float("inf")
    return float(np.abs(ours - theirs).max(initial=0.0))

"""Weights files of a bundle: arrays by name, checked before anything is built of them.

`layer<n>_<part>` is an array of the n-th layer, from 1; `inputs` describes each input column, so
that a card whose list was edited by hand is refused instead of feeding a column to the wrong
weights. NumPy's own format without pickle: nothing in it is code.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hft.errors import ModelError
from hft.inference.card import Card, LayerEntry
from hft.whole_files import replacing

AGAIN = "build the bundle again"
ARRAYS = {
    "lstm": ("kernel", "recurrent", "bias"),
    "gru": ("kernel", "recurrent", "bias"),
    "conv": ("kernel", "bias"),
    "dense": ("kernel", "bias"),
}
"""Of each kind of layer, as Keras orders them."""
_GATES = {"lstm": 4, "gru": 3}
_AXES = {"kernel": 2, "recurrent": 2, "bias": 1}
_AXES_OF = {("conv", "kernel"): 3, ("gru", "bias"): 2}
_PRECISIONS = {"fp32": "float32", "int8": "int8"}
Weights = Sequence[Mapping[str, npt.NDArray[np.float32]]]
"""By layer, its arrays by name (`ARRAYS`)."""
Arrays = Mapping[str, npt.NDArray[Any]]


def write_weights(path: Path, card: Card, weights: Weights) -> str:
    """Writes a weights file whole, and gives its hash."""
    arrays: dict[str, npt.NDArray[Any]] = {
        f"layer{n}_{part}": np.ascontiguousarray(array, np.float32)
        for n, layer in enumerate(weights, 1)
        for part, array in layer.items()
    }
    arrays["inputs"] = np.array([str(f) for f in card.features])
    with replacing(path) as draft, draft.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)
    return part_sha256(path)


def read_weights(path: Path, sha256: str, card: str) -> Arrays:
    """Arrays of a weights file that is what its card says.

    Args:
        path: the file.
        sha256: as the card has it.
        card: name of the card, for messages.

    Raises:
        ModelError: absent, of another training, or no file of arrays.
    """
    if not path.is_file():
        raise ModelError(f"{path}: no such file; {card} needs it beside it, {AGAIN}")
    content = path.read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise ModelError(
            f"{path}: sha256 is {found[:12]}..., {card} says {sha256[:12]}...; the two files are "
            f"not from the same training, or one is damaged: take both from one folder, or {AGAIN}"
        )
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            return dict(arrays)
    except Exception as error:  # whatever NumPy and zipfile make of bytes that are no archive
        raise ModelError(f"{path}: {error}; {AGAIN}") from error


def weights_of(layers: Iterable[LayerEntry], arrays: Arrays, path: Path, card: str) -> Weights:
    """Arrays by layer, of the kind, number of axes and units that the card says.

    Raises:
        ModelError: an array is absent or another than its layer's; NaN among its values.
    """
    weights = []
    for n, layer in enumerate(layers, 1):
        of = {part: _array(arrays, n, layer, part, path) for part in ARRAYS[layer.kind]}
        units = of["bias"].shape[-1] // _GATES.get(layer.kind, 1)
        if units != layer.units:
            raise ModelError(
                f"{path}: layer {n} has {units} units, {card} says {layer.units}; {AGAIN}"
            )
        weights.append(of)
    return weights


def _array(
    arrays: Arrays, n: int, layer: LayerEntry, part: str, path: Path
) -> npt.NDArray[np.float32]:
    name = f"layer{n}_{part}"
    if name not in arrays:
        raise ModelError(
            f"{path}: no array {name!r}, which layer {n} ({layer.kind}) needs; {AGAIN}"
        )
    array, axes = arrays[name], _AXES_OF.get((layer.kind, part), _AXES[part])
    if array.dtype != np.float32 or array.ndim != axes:
        raise ModelError(
            f"{path}: {name} is {array.shape} {array.dtype}, want {axes} axes of float32; {AGAIN}"
        )
    bad = array.size - int(np.isfinite(array).sum())
    if bad:
        at = int(np.flatnonzero(~np.isfinite(array))[0])
        others = f", nor are {bad - 1} others" if bad > 1 else ""
        raise ModelError(
            f"{path}: layer {n} {part}: value {at} is not finite{others}; "
            "train again: a rate of learning too high leaves such"
        )
    return array


def require_inputs(card: Card, arrays: Arrays, file: Path, card_file: Path) -> None:
    """Holds the card's features against those the weights were trained on.

    Raises:
        ModelError: others, or in another order.
    """
    if "inputs" not in arrays or arrays["inputs"].ndim != 1:
        raise ModelError(f"{file}: no array 'inputs' of one axis; train again")
    trained = [str(text) for text in arrays["inputs"]]
    given = [str(f) for f in card.features]
    for n, (was, now) in enumerate(zip(trained, given, strict=False), 1):
        if was != now:
            raise ModelError(
                f"{card_file}: feature {n} is {now}, but the weights' input {n} is {was}; "
                "features must be those of the training, in its order"
            )
    if len(given) != len(trained):
        raise ModelError(
            f"{card_file}: features has {len(given)} entries, the weights take {len(trained)}; "
            f"{AGAIN}"
        )


def core_layer(entry: LayerEntry, weights: Mapping[str, npt.NDArray[Any]]) -> Any:
    """A layer as the core takes it."""
    from hft import _core

    precision, kernel, bias = _PRECISIONS[entry.precision], weights["kernel"], weights["bias"]
    if entry.kind == "lstm":
        return _core.lstm_layer(kernel, weights["recurrent"], bias, precision)
    if entry.kind == "gru":
        return _core.gru_layer(kernel, weights["recurrent"], bias, precision)
    make = _core.conv_layer if entry.kind == "conv" else _core.dense_layer
    return make(kernel, bias, entry.activation, precision)


def part_sha256(path: Path) -> str:
    """Of a file; of a folder, over its files' names and contents in order of their names."""
    if path.is_file():
        return hashlib.sha256(path.read_bytes()).hexdigest()
    digest = hashlib.sha256()
    for file in sorted(p for p in path.rglob("*") if p.is_file()):
        digest.update(f"{file.relative_to(path).as_posix()}\0{file.stat().st_size}\0".encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()

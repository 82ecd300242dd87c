"""A model bundle: `NAME.bundle/` with `model.toml` and `weights.npz`, and nothing that runs code.

`model.toml` says everything a run must know of a model: its inputs in order, the trigger, scaling,
layers, what the outputs mean and how it was trained (hft.inference.card). The weights file carries
a description of the inputs as well, so that a list edited by hand is refused instead of feeding a
column to the wrong weights.
"""

from __future__ import annotations

import hashlib
import tomllib
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from hft.durations import parse_ns
from hft.errors import ConfigError, ModelError
from hft.features import Feature, Features, Trigger
from hft.inference.card import (
    FORMAT,
    Card,
    FeatureEntry,
    LayerEntry,
    Readout,
    TriggerEntry,
    to_toml,
)

CARD, WEIGHTS = "model.toml", "weights.npz"
READOUT = ("alpha_ticks", "confidence")
"""Outputs the core adds after the network's own, where the bundle has a readout."""

_PARTS = {"lstm": ("kernel", "recurrent", "bias"), "dense": ("kernel", "bias")}
Weights = Sequence[Mapping[str, npt.NDArray[np.float32]]]


@dataclass(frozen=True, slots=True)
class Bundle:
    """A loaded bundle. `network()` builds what runs, `features` is what it eats."""

    path: Path
    card: Card
    features: Features
    weights: Weights

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of all outputs, those the core adds included."""
        return self.card.outputs + (READOUT if self.card.readout else ())

    def network(self, isa: str = "") -> Any:
        """The native network; `isa` pins an instruction set ("avx512", "avx2", "portable").

        Raises:
            ModelError: shapes do not fit each other, or a value is not finite.
        """
        from hft import _core

        readout = self.card.readout or Readout(move_ticks=(), shrink=1.0)
        scaler = self.card.scaler
        try:
            layers = [core_layer(e, w) for e, w in zip(self.card.layers, self.weights, strict=True)]
            return _core.build_network(
                list(scaler.mean),
                list(scaler.scale),
                scaler.clip,
                layers,
                move_ticks=list(readout.move_ticks),
                shrink=readout.shrink,
                isa=isa,
            )
        except (ConfigError, TypeError) as error:
            raise ModelError(f"{self.path}: {error}") from error


def load_bundle(path: str | Path, own: Iterable[Feature] = ()) -> Bundle:
    """Reads and checks a bundle.

    Args:
        path: the `NAME.bundle` folder.
        own: own features (`@feature`) that the bundle names; code is not part of a bundle.

    Raises:
        ModelError: a file is missing, damaged or does not fit the other; says which and what to do.
    """
    folder = Path(path)
    card = _read_card(folder / CARD)
    arrays = _read_weights(folder / WEIGHTS, card)
    own_features = {f.name: f for f in own}
    features = features_of(card.features, card.trigger, own_features, folder / CARD)
    _check_inputs(card, arrays, folder)
    bundle = Bundle(folder, card, features, _weights_of(card, arrays, folder / WEIGHTS))
    _check_outputs(bundle)
    return bundle


def save_bundle(folder: str | Path, card: Card, weights: Weights) -> Bundle:
    """Writes a bundle and reads it back; the same content gives the same bytes."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, npt.NDArray[Any]] = {
        f"layer{n}_{part}": np.ascontiguousarray(array, np.float32)
        for n, layer in enumerate(weights, 1)
        for part, array in layer.items()
    }
    arrays["inputs"] = np.array([str(f) for f in card.features])
    np.savez(folder / WEIGHTS, allow_pickle=False, **arrays)
    card = msgspec.structs.replace(card, weights_sha256=_sha256(folder / WEIGHTS))
    (folder / CARD).write_text(to_toml(card), encoding="utf-8")
    return load_bundle(folder, [_placeholder(f) for f in card.features if f.kind == "own"])


def _read_card(path: Path) -> Card:
    if not path.exists():
        raise ModelError(f"{path}: no such file; `python -m hft.inference.train` writes a bundle")
    try:
        card = msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), Card)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise ModelError(f"{path}: {error}") from error
    if card.format != FORMAT:
        raise ModelError(
            f"{path}: format is {card.format}, this version reads {FORMAT}; train again"
        )
    return card


def _read_weights(path: Path, card: Card) -> dict[str, npt.NDArray[Any]]:
    if not path.exists():
        raise ModelError(f"{path}: no such file; {CARD} needs it beside it")
    found = _sha256(path)
    if found != card.weights_sha256:
        raise ModelError(
            f"{path}: sha256 is {found[:12]}..., {CARD} says {card.weights_sha256[:12]}...; "
            "the two files are not from the same training"
        )
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return dict(arrays)
    except (ValueError, OSError, zipfile.BadZipFile) as error:
        raise ModelError(f"{path}: {error}") from error


def _weights_of(card: Card, arrays: Mapping[str, npt.NDArray[Any]], path: Path) -> Weights:
    weights = []
    for n, layer in enumerate(card.layers, 1):
        names = {part: f"layer{n}_{part}" for part in _PARTS[layer.kind]}
        for name in names.values():
            if name not in arrays:
                raise ModelError(f"{path}: no array {name!r}, which layer {n} ({layer.kind}) needs")
        weights.append({part: arrays[name] for part, name in names.items()})
        units = weights[-1]["bias"].shape[0] // (4 if layer.kind == "lstm" else 1)
        if units != layer.units:
            raise ModelError(f"{path}: layer {n} has {units} units, {CARD} says {layer.units}")
    return weights


def features_of(
    entries: Iterable[FeatureEntry],
    trigger: TriggerEntry,
    own: Mapping[str, Feature],
    path: Path,
) -> Features:
    """What a card's entries describe; `path` is where they stand.

    Raises:
        ModelError: an entry is none that the core knows, or an own feature is not given.
    """
    from hft import _core

    columns = []
    for e in entries:
        if e.kind == "own":
            if e.name not in own:
                raise ModelError(f"{path}: own feature {e.name!r} is not given to load_bundle")
            columns.append(own[e.name])
            continue
        try:
            columns.append(
                Feature(e.kind, e.name, e.levels, parse_ns(e.window or 0), e.side, e.log)
            )
            _core.FeatureStream([columns[-1].to_core()], _core.trigger("packet"))
        except ConfigError as error:
            raise ModelError(f"{path}: feature {e.name!r}: {error}") from error
    t = trigger
    try:
        return Features(*columns, trigger=Trigger(t.kind, t.sizes, parse_ns(t.interval or 0)))
    except ConfigError as error:
        raise ModelError(f"{path}: {error}") from error


def _check_inputs(card: Card, arrays: Mapping[str, npt.NDArray[Any]], folder: Path) -> None:
    if "inputs" not in arrays:
        raise ModelError(f"{folder / WEIGHTS}: no array 'inputs'; train again")
    trained = [str(text) for text in arrays["inputs"]]
    given = [str(f) for f in card.features]
    for n, (was, now) in enumerate(zip(trained, given, strict=False), 1):
        if was != now:
            raise ModelError(
                f"{folder / CARD}: feature {n} is {now}, but the weights' input {n} is {was}; "
                "features must be those of the training, in its order"
            )
    for what, count in (("features", len(given)), ("scaler.mean", len(card.scaler.mean))):
        if count != len(trained):
            raise ModelError(
                f"{folder / CARD}: {what} has {count} entries, the weights take {len(trained)}"
            )


def _check_outputs(bundle: Bundle) -> None:
    network = bundle.network()
    if network.outputs != len(bundle.outputs):
        names = ", ".join(bundle.outputs)
        raise ModelError(
            f"{bundle.path / CARD}: the network gives {network.outputs} outputs, "
            f"named are {len(bundle.outputs)}: {names}"
        )


def core_layer(entry: LayerEntry, weights: Mapping[str, npt.NDArray[Any]]) -> Any:
    from hft import _core

    if entry.kind == "lstm":
        return _core.lstm_layer(weights["kernel"], weights["recurrent"], weights["bias"])
    return _core.dense_layer(weights["kernel"], weights["bias"], entry.activation)


def _placeholder(entry: FeatureEntry) -> Feature:
    return Feature("own", entry.name, update=lambda state, row: (state, 0.0))


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()

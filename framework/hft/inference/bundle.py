"""A model bundle: `NAME.bundle/` with `model.toml`, weights and parts, nothing that runs code.

`model.toml` says everything a run must know of a model: its inputs in order, the trigger, scaling,
layers, what the outputs mean and how it was trained (hft.inference.card). Weights files
(`weights.npz` of FULL, `light.npz`, `micro.npz`) carry a description of the inputs as well, so that
a list edited by hand is refused instead of feeding a column to the wrong weights. Parts are the
same network for other backends; each is checked against its hash where it is opened, not before.
"""

from __future__ import annotations

import hashlib
import tomllib
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
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
    LesserTier,
    PartEntry,
    Readout,
    TierName,
    TriggerEntry,
    to_toml,
)
from hft.whole_files import replacing, write_whole

CARD, WEIGHTS = "model.toml", "weights.npz"
READOUT = ("alpha_ticks", "confidence")
"""Outputs the core adds after the network's own, where the bundle has a readout."""

ARRAYS = {
    "lstm": ("kernel", "recurrent", "bias"),
    "gru": ("kernel", "recurrent", "bias"),
    "conv": ("kernel", "bias"),
    "dense": ("kernel", "bias"),
}
"""Of each kind of layer, as Keras orders them."""
_GATES = {"lstm": 4, "gru": 3}
_PRECISIONS = {"fp32": "float32", "int8": "int8"}
Weights = Sequence[Mapping[str, npt.NDArray[np.float32]]]
"""By layer, its arrays by name (`ARRAYS`)."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """A loaded bundle. `network()` builds what runs, `features` is what it eats."""

    path: Path
    card: Card
    features: Features
    weights: Weights
    """Of FULL; empty where only parts can run it."""
    lesser: Mapping[LesserTier, Weights] = field(default_factory=dict)
    """Of LIGHT and MICRO, those there are."""

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of all outputs, those the core adds included."""
        return self.card.outputs + (READOUT if self.card.readout else ())

    @property
    def tiers(self) -> tuple[TierName, ...]:
        """Those that the bundle has."""
        return ("FULL", *self.lesser)

    def layers(self, tier: TierName = "FULL") -> tuple[LayerEntry, ...]:
        """Of a tier; none: only parts can run it."""
        self._require(tier)
        return self.card.layers if tier == "FULL" else self.card.tiers[tier].layers

    def readout(self, tier: TierName = "FULL") -> Readout | None:
        """What makes a forecast of a tier's probabilities."""
        own = None if tier == "FULL" else self.card.tiers[tier].readout
        return own or self.card.readout

    def warm_up_rows(self, tier: TierName = "FULL") -> int:
        """Rows after a start or gap that a tier needs."""
        card = self.card
        return card.warm_up_rows if tier == "FULL" else card.tiers[tier].warm_up_rows

    def network(self, isa: str = "", tier: TierName = "FULL", precision: str = "") -> Any:
        """The native network.

        Args:
            isa: pins an instruction set ("avx512", "avx2", "portable").
            tier: which of the bundle's.
            precision: "fp32" or "int8" for all layers instead of each layer's own.

        Raises:
            ModelError: no native weights, shapes do not fit each other, a value is not finite.
        """
        from hft import _core

        entries = self.layers(tier)
        if not entries:
            raise ModelError(
                f"{self.path / CARD}: {tier} has no native layers; run it by a part: "
                f"{_listed(self.card.parts)}"
            )
        if precision not in ("", *_PRECISIONS):
            raise ModelError(
                f"{self.path}: the native backend has no {precision}: want fp32 or int8"
            )
        if precision:
            entries = tuple(msgspec.structs.replace(e, precision=precision) for e in entries)
        readout = self.readout(tier) or Readout(move_ticks=(), shrink=1.0)
        scaler = self.card.scaler
        weights = self.weights if tier == "FULL" else self.lesser[tier]
        try:
            layers = [core_layer(e, w) for e, w in zip(entries, weights, strict=True)]
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

    def part(
        self, backend: str, *, form: str = "", precision: str = "", tier: TierName = "FULL"
    ) -> tuple[PartEntry, Path]:
        """The first part that fits, checked against its hash, and where it lies.

        Raises:
            ModelError: there is none, it is gone, or it is not what the card says.
        """
        for entry in self.card.parts:
            if (entry.backend, entry.tier) != (backend, tier):
                continue
            if form in ("", entry.form) and precision in ("", entry.precision):
                return entry, self._checked(entry)
        wanted = " ".join(word for word in (tier, precision, form) if word)
        raise ModelError(
            f"{self.path / CARD}: no part of {wanted} for {backend}; there are "
            f"{_listed(self.card.parts)}. `hft build` makes them"
        )

    def _checked(self, entry: PartEntry) -> Path:
        path = self.path / entry.file
        if not path.exists():
            raise ModelError(f"{path}: no such part, {CARD} names it; build the bundle again")
        found = part_sha256(path)
        if found != entry.sha256:
            raise ModelError(
                f"{path}: sha256 is {found[:12]}..., {CARD} says {entry.sha256[:12]}...; it is "
                "damaged or of another build: build the bundle again"
            )
        return path

    def _require(self, tier: TierName) -> None:
        if tier not in self.tiers:
            raise ModelError(
                f"{self.path / CARD}: no tier {tier}, there are {', '.join(self.tiers)}; "
                "`hft build --distil` makes LIGHT and MICRO"
            )


def _listed(parts: Iterable[PartEntry]) -> str:
    return (
        ", ".join(f"{p.file} ({p.backend} {p.tier} {p.precision} {p.form})" for p in parts)
        or "none"
    )


def load_bundle(path: str | Path, own: Iterable[Feature] = ()) -> Bundle:
    """Reads and checks a bundle.

    Args:
        path: the `NAME.bundle` folder.
        own: own features (`@feature`) that the bundle names; code is not part of a bundle.

    Raises:
        ModelError: a file is missing, damaged or does not fit the other; says which and what to do.
    """
    folder = Path(path)
    card = read_card(folder / CARD)
    own_features = {f.name: f for f in own}
    features = features_of(card.features, card.trigger, own_features, folder / CARD)
    entries = {"FULL": (WEIGHTS, card.weights_sha256, card.layers)} | {
        name: (t.weights, t.weights_sha256, t.layers) for name, t in card.tiers.items()
    }
    found: dict[str, Weights] = {}
    for name, (file, sha256, layers) in entries.items():
        arrays = _read_weights(folder / file, sha256)
        _check_inputs(card, arrays, folder, file)
        found[name] = _weights_of(layers, arrays, folder / file)
    full = found.pop("FULL")
    bundle = Bundle(folder, card, features, full, found)  # type: ignore[arg-type]
    for tier in bundle.tiers:
        if bundle.layers(tier):
            _check_outputs(bundle, tier)
    return bundle


def save_bundle(
    folder: str | Path,
    card: Card,
    weights: Weights,
    lesser: Mapping[LesserTier, Weights] | None = None,
) -> Bundle:
    """Writes card and weights and reads them back; the same content gives the same bytes.

    Args:
        folder: made if it is not there; parts of `card` must lie in it already.
        card: its hashes of weights are filled in; `card.tiers` names those of `lesser`.
        weights: of FULL.
        lesser: of LIGHT and MICRO.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    tiers = dict(card.tiers)
    for name, of_tier in (lesser or {}).items():
        sha256 = _write_weights(folder / tiers[name].weights, card, of_tier)
        tiers[name] = msgspec.structs.replace(tiers[name], weights_sha256=sha256)
    sha256 = _write_weights(folder / WEIGHTS, card, weights)
    card = msgspec.structs.replace(card, weights_sha256=sha256, tiers=tiers)
    write_whole(folder / CARD, to_toml(card).encode())
    return load_bundle(folder, placeholders(card))


def _write_weights(path: Path, card: Card, weights: Weights) -> str:
    arrays: dict[str, npt.NDArray[Any]] = {
        f"layer{n}_{part}": np.ascontiguousarray(array, np.float32)
        for n, layer in enumerate(weights, 1)
        for part, array in layer.items()
    }
    arrays["inputs"] = np.array([str(f) for f in card.features])
    with replacing(path) as draft, draft.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)
    return part_sha256(path)


def read_card(path: Path) -> Card:
    """`model.toml`, checked against its types.

    Raises:
        ModelError: absent, not TOML, not of this version.
    """
    if not path.exists():
        raise ModelError(f"{path}: no such file; `hft train` and `hft build` write a bundle")
    try:
        card = msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), Card)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise ModelError(f"{path}: {error}") from error
    if card.format != FORMAT:
        raise ModelError(
            f"{path}: format is {card.format}, this version reads {FORMAT}; train again"
        )
    return card


def _read_weights(path: Path, sha256: str) -> dict[str, npt.NDArray[Any]]:
    if not path.exists():
        raise ModelError(f"{path}: no such file; {CARD} needs it beside it")
    found = part_sha256(path)
    if found != sha256:
        raise ModelError(
            f"{path}: sha256 is {found[:12]}..., {CARD} says {sha256[:12]}...; "
            "the two files are not from the same training"
        )
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return dict(arrays)
    except (ValueError, OSError, zipfile.BadZipFile) as error:
        raise ModelError(f"{path}: {error}") from error


def _weights_of(
    layers: Iterable[LayerEntry], arrays: Mapping[str, npt.NDArray[Any]], path: Path
) -> Weights:
    weights = []
    for n, layer in enumerate(layers, 1):
        names = {part: f"layer{n}_{part}" for part in ARRAYS[layer.kind]}
        for name in names.values():
            if name not in arrays:
                raise ModelError(f"{path}: no array {name!r}, which layer {n} ({layer.kind}) needs")
        weights.append({part: arrays[name] for part, name in names.items()})
        units = weights[-1]["bias"].shape[-1] // _GATES.get(layer.kind, 1)
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


def _check_inputs(
    card: Card, arrays: Mapping[str, npt.NDArray[Any]], folder: Path, file: str
) -> None:
    if "inputs" not in arrays:
        raise ModelError(f"{folder / file}: no array 'inputs'; train again")
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


def _check_outputs(bundle: Bundle, tier: TierName) -> None:
    network = bundle.network(tier=tier)
    if network.outputs != len(bundle.outputs):
        names = ", ".join(bundle.outputs)
        raise ModelError(
            f"{bundle.path / CARD}: {tier} gives {network.outputs} outputs, "
            f"named are {len(bundle.outputs)}: {names}"
        )


def core_layer(entry: LayerEntry, weights: Mapping[str, npt.NDArray[Any]]) -> Any:
    from hft import _core

    precision, kernel, bias = _PRECISIONS[entry.precision], weights["kernel"], weights["bias"]
    if entry.kind == "lstm":
        return _core.lstm_layer(kernel, weights["recurrent"], bias, precision)
    if entry.kind == "gru":
        return _core.gru_layer(kernel, weights["recurrent"], bias, precision)
    make = _core.conv_layer if entry.kind == "conv" else _core.dense_layer
    return make(kernel, bias, entry.activation, precision)


def placeholders(card: Card) -> list[Feature]:
    """Own features of a card without their code, for who reads a bundle but makes no rows."""
    return [
        Feature("own", e.name, update=lambda state, row: (state, 0.0))
        for e in card.features
        if e.kind == "own"
    ]


def part_sha256(path: Path) -> str:
    """Of a file; of a folder, over its files' names and contents in order of their names."""
    if path.is_file():
        return hashlib.sha256(path.read_bytes()).hexdigest()
    digest = hashlib.sha256()
    for file in sorted(p for p in path.rglob("*") if p.is_file()):
        digest.update(f"{file.relative_to(path).as_posix()}\0{file.stat().st_size}\0".encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()

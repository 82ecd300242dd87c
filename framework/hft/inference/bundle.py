"""A model bundle: `NAME.bundle/` with `model.toml`, weights and parts, nothing that runs code.

`model.toml` says everything a run must know of a model: its inputs in order, the trigger, scaling,
layers, what the outputs mean and how it was trained (hft.inference.card). Weights files
(`weights.npz` of FULL, `light.npz`, `micro.npz`) carry a description of the inputs as well, so that
a list edited by hand is refused instead of feeding a column to the wrong weights. Parts are the
same network for other backends; each is checked against its hash where it is opened, not before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from hft.errors import ConfigError, ModelError
from hft.features import Feature, Features
from hft.inference.card import (
    Card,
    LayerEntry,
    LesserTier,
    PartEntry,
    Readout,
    TierName,
    to_toml,
)
from hft.inference.card_reading import features_of, placeholders, read_card, require_frame
from hft.inference.weights import (
    AGAIN,
    ARRAYS,
    Weights,
    core_layer,
    part_sha256,
    read_weights,
    require_inputs,
    weights_of,
    write_weights,
)
from hft.whole_files import require_folder, write_whole

__all__ = [
    "ARRAYS",
    "CARD",
    "READOUT",
    "WEIGHTS",
    "Bundle",
    "Weights",
    "core_layer",
    "features_of",
    "load_bundle",
    "part_sha256",
    "placeholders",
    "read_card",
    "require_free",
    "save_bundle",
]

CARD, WEIGHTS = "model.toml", "weights.npz"
READOUT = ("alpha_ticks", "confidence")
"""Outputs the core adds after the network's own, where the bundle has a readout."""


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
        if precision not in ("", "fp32", "int8"):
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
            file = WEIGHTS if tier == "FULL" else self.card.tiers[tier].weights
            raise ModelError(f"{self.path / file}: {error}; {AGAIN}") from error

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
        path = _inside(self.path, entry.file)
        if not path.exists():
            raise ModelError(f"{path}: no such part, {CARD} names it; {AGAIN}")
        found = part_sha256(path)
        if found != entry.sha256:
            raise ModelError(
                f"{path}: sha256 is {found[:12]}..., {CARD} says {entry.sha256[:12]}...; it is "
                f"damaged or of another build: {AGAIN}"
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
    require_frame(card, folder / CARD)
    own_features = {f.name: f for f in own}
    features = features_of(card.features, card.trigger, own_features, folder / CARD)
    entries = {"FULL": (WEIGHTS, card.weights_sha256, card.layers)} | {
        name: (t.weights, t.weights_sha256, t.layers) for name, t in card.tiers.items()
    }
    found: dict[str, Weights] = {}
    for name, (file, sha256, layers) in entries.items():
        path = _inside(folder, file)
        arrays = read_weights(path, sha256, CARD)
        require_inputs(card, arrays, path, folder / CARD)
        found[name] = weights_of(layers, arrays, path, CARD)
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
        sha256 = write_weights(folder / tiers[name].weights, card, of_tier)
        tiers[name] = msgspec.structs.replace(tiers[name], weights_sha256=sha256)
    sha256 = write_weights(folder / WEIGHTS, card, weights)
    card = msgspec.structs.replace(card, weights_sha256=sha256, tiers=tiers)
    write_whole(folder / CARD, to_toml(card).encode())
    return load_bundle(folder, placeholders(card))


def require_free(folder: Path, *, overwrite: bool) -> None:
    """Refuses a folder that a bundle cannot be written to.

    Raises:
        ConfigError: it exists; with `overwrite`, it is no bundle; or there is nowhere to write it.
    """
    if folder.suffix != ".bundle":
        raise ConfigError(f"{folder}: a bundle's name ends in .bundle")
    if folder.exists() and not overwrite:
        raise ConfigError(f"{folder} exists: give another name, or --overwrite")
    if folder.exists() and not (folder / CARD).is_file():
        raise ConfigError(f"{folder} is no bundle: it is not overwritten")
    require_folder(folder.parent)


def _inside(folder: Path, file: str) -> Path:
    """A file of the bundle, and of nothing outside it."""
    path = Path(file)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise ModelError(f"{folder / CARD}: {file!r} is not a file of the bundle; {AGAIN}")
    return folder / path


def _check_outputs(bundle: Bundle, tier: TierName) -> None:
    network = bundle.network(tier=tier)
    if network.outputs != len(bundle.outputs):
        names = ", ".join(bundle.outputs)
        raise ModelError(
            f"{bundle.path / CARD}: {tier} gives {network.outputs} outputs, "
            f"named are {len(bundle.outputs)}: {names}"
        )

"""The model that is built: read from a bundle or another maker's file, with a card of its facts."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from hft.errors import ConfigError, ModelError
from hft.inference.build.apart import ApartError, call_apart
from hft.inference.build.evidence import Evidence, Known, require_width
from hft.inference.build.exports import missing_of
from hft.inference.build.native_layers import SAME
from hft.inference.build.work import read_network
from hft.inference.bundle import (
    CARD,
    Weights,
    load_bundle,
    part_sha256,
    placeholders,
    read_card,
)
from hft.inference.card import (
    FORMAT,
    Card,
    Gate,
    LayerEntry,
    LesserTier,
    Readout,
    Training,
)
from hft.inference.dataset.classes import OUTPUTS
from hft.inference.training.keras_files import SOURCE

KINDS = "want a bundle of `hft train`, a .keras file, the folder of a SavedModel, or an .onnx file"


@dataclass(frozen=True, slots=True)
class Read:
    """A model of another maker, as it was found."""

    file: Path
    inputs: int
    outputs: int
    window_rows: int
    sums_to_one: bool
    layers: tuple[LayerEntry, ...] = ()
    weights: Weights = ()
    why_not: str = ""
    """Why it has no native layers."""
    difference: float = 0.0
    """Largest, of the native layers' outputs from the file's own."""


@dataclass(frozen=True, slots=True)
class Subject:
    """Card and weights, and the file that runs it where native layers do not."""

    card: Card
    """Without parts; tiers as they were found."""
    weights: Weights
    lesser: Mapping[LesserTier, Weights] = field(default_factory=dict)
    original: Path | None = None
    """What only parts can run: a file that `original_answers` opens."""
    why_not: str = ""
    source: Path | None = None
    """`model.keras`, if there is one."""
    wants_slope: bool = False
    """Whether the readout's `shrink` is still to be fitted."""


def is_bundle(path: Path) -> bool:
    return (path / CARD).is_file()


def of_bundle(path: Path) -> Subject:
    """A bundle; parts and gates are of a build before, and made anew."""
    bundle = load_bundle(path, placeholders(read_card(path / CARD)))
    tiers = {
        name: msgspec.structs.replace(entry, gates=()) for name, entry in bundle.card.tiers.items()
    }
    card = msgspec.structs.replace(bundle.card, parts=(), gates=(), tiers=tiers)
    source = _source(path, card)
    if bundle.card.layers:
        return Subject(card, bundle.weights, bundle.lesser, source=source)
    if source is None:
        raise ModelError(
            f"{path}: no native layers and no {SOURCE}: build it from the model that was trained"
        )
    why = "the bundle was trained without native layers"
    return Subject(card, (), bundle.lesser, source, why, source)


def _source(folder: Path, card: Card) -> Path | None:
    """`model.keras` of a bundle, checked."""
    path = folder / SOURCE
    if not card.source_sha256:
        return None
    if not path.is_file() or part_sha256(path) != card.source_sha256:
        raise ModelError(f"{path} is missing, damaged or of another training: train again")
    return path


def read_model(path: Path, window_rows: int, limit_s: float) -> Read:
    """Reads another maker's model in a process of its own.

    Raises:
        ModelError: it is none, or its library does not read it in time.
        ConfigError: its library is not installed.
    """
    saved = (path / "saved_model.pb").is_file()
    if not path.exists():
        raise ModelError(f"{path}: no such file or folder; {KINDS}")
    if not (saved or (path.is_file() and path.suffix in (".keras", ".onnx"))):
        raise ModelError(f"{path}: {KINDS}")
    of_onnx = path.suffix == ".onnx"
    packages = ("onnx", "onnxruntime") if of_onnx else ("keras", "tensorflow")
    missing = missing_of(packages, "onnx" if of_onnx else "train")
    if missing:
        raise ConfigError(f"{path}: reading it {missing}")
    with tempfile.TemporaryDirectory(prefix="hft-build-") as folder:
        network = Path(folder) / "network.npz"
        arguments = {"file": str(path), "network": str(network), "window_rows": window_rows}
        try:
            told: dict[str, Any] = call_apart(
                "hft.inference.build.originals:read_original", arguments, limit_s
            )
        except ApartError as error:
            raise ModelError(f"{path} cannot be read: {error}") from error
        found = Read(file=path, **told)
        if found.why_not:
            return found
        layers, weights = read_network(network)
        return replace(found, layers=layers, weights=weights)


def of_model(
    read: Read,
    name: str,
    evidence: Evidence | None,
    template: Card | None,
    warm_up_rows: int,
) -> Subject:
    """A subject of another maker's model, its facts from a card or from evidence.

    Raises:
        ConfigError: neither is given, or rows it sees are not known.
        ModelError: the model does not fit the features.
    """
    if not read.layers and not read.window_rows:
        raise ConfigError(
            f"{read.file} takes any number of rows and has no native layers ({read.why_not}): say "
            "how many it sees with --window"
        )
    if template is not None:
        card = _from_card(read, name, template)
    elif evidence is not None:
        card = _from_evidence(read, name, evidence, warm_up_rows)
    else:
        raise ConfigError(
            f"{read.file} does not say what its inputs are: give --strategy with --dataset or "
            "--data, or --card"
        )
    original = None if read.layers else read.file
    if read.layers:
        gate = Gate(
            name="parity",
            value=read.difference,
            limit=SAME,
            passed=read.difference <= SAME,
            note=f"largest difference from {read.file.name} on random windows",
        )
        card = msgspec.structs.replace(card, gates=(gate,))
    return Subject(
        card,
        read.weights,
        original=original,
        why_not=read.why_not,
        source=read.file if read.file.suffix == ".keras" else None,
        wants_slope=template is None and card.readout is not None,
    )


def known_of(card: Card) -> Known:
    """What a card says of the rows that are wanted."""
    return Known(
        horizon_ns=card.horizon_ns,
        latency_ns=card.latency_ns,
        window_rows=card.window_rows,
        warm_up_rows=card.warm_up_rows,
        clip=card.scaler.clip,
        scaler=card.scaler if card.trailing is not None else None,
        trailing=card.trailing,
        features=card.features,
        trigger=card.trigger,
    )


def _from_card(read: Read, name: str, template: Card) -> Card:
    require_width(read.inputs, template.features, "the card")
    if read.outputs != len(template.outputs):
        raise ModelError(
            f"the model gives {read.outputs} outputs, the card names {len(template.outputs)}: "
            f"{', '.join(template.outputs)}"
        )
    return msgspec.structs.replace(
        template,
        name=name,
        layers=read.layers,
        window_rows=read.window_rows,
        weights_sha256="",
        tiers={},
        parts=(),
        gates=(),
        sensitivity=0.0,
        metrics={},
    )


def _from_evidence(read: Read, name: str, evidence: Evidence, warm_up_rows: int) -> Card:
    task = evidence.task
    require_width(read.inputs, evidence.features, evidence.data)
    is_three_way = read.sums_to_one and read.outputs == len(OUTPUTS)
    outputs = OUTPUTS if is_three_way else tuple(f"y{n + 1}" for n in range(read.outputs))
    train = task.parts.train
    return Card(
        format=FORMAT,
        name=name,
        outputs=outputs,
        horizon_ns=task.horizon_ns,
        latency_ns=evidence.latency_ns,
        warm_up_rows=read.window_rows - 1 if read.window_rows else _memory(read, warm_up_rows),
        window_rows=read.window_rows,
        trigger=evidence.trigger,
        features=evidence.features,
        layers=read.layers,
        scaler=task.scaler,
        readout=Readout(move_ticks=task.move_ticks, shrink=1.0) if is_three_way else None,
        training=Training(
            data=f"{read.file.name}, scaled and read out by {evidence.data}",
            data_sha256=task.rows.sha256,
            start_ts=int(task.rows.ts[train.start]),
            end_ts=int(task.rows.ts[train.stop - 1]),
            rows=train.stop - train.start,
            seed=0,
        ),
    )


def _memory(read: Read, warm_up_rows: int) -> int:
    """Rows until a streaming model is warm: what it remembers, if that ends."""
    if any(layer.kind in ("lstm", "gru") for layer in read.layers):
        return warm_up_rows
    return sum(layer.width - 1 for layer in read.layers)


def with_slope(card: Card, outputs: Any, task: Any, cut: slice) -> Card:
    """The readout's `shrink`, fitted on rows that the scaler and the classes were not."""
    if card.readout is None:
        return card
    alpha = np.asarray(outputs) @ np.array(card.readout.move_ticks)
    readout = msgspec.structs.replace(card.readout, shrink=task.shrink(alpha, cut))
    return msgspec.structs.replace(card, readout=readout)

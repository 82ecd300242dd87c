"""Which parts there are to make of a network, and how each is made apart from us."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hft.inference.build.apart import ApartError, call_apart
from hft.inference.bundle import Weights, part_sha256
from hft.inference.card import LayerEntry, PartEntry, TierName

FORMATS = {"onnx": "onnx", "litert": "litert", "saved_model": "tensorflow"}
"""By the word of `--formats`, the backend that runs it."""
NEEDS: dict[str, tuple[tuple[str, ...], str]] = {
    "onnx": (("onnx", "onnxruntime"), "onnx"),
    "litert": (("tensorflow", "ai_edge_litert"), "train,litert"),
    "tensorflow": (("keras", "tensorflow"), "train"),
}
_BYTES = {"fp32": 4, "fp16": 2, "int8": 1, "dynamic": 1}
_SAFE = 0.9
"""A file smaller than this share of its weights has lost some: converters do that silently."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part to make."""

    backend: str
    form: str
    precision: str = "fp32"
    tier: TierName = "FULL"

    @property
    def file(self) -> str:
        """Its name in the bundle."""
        prefix = "" if self.tier == "FULL" else self.tier.lower() + "_"
        if self.backend == "tensorflow":
            return prefix + "saved_model"
        suffix = "" if self.precision == "fp32" else "_" + self.precision
        return f"{prefix}{self.form}{suffix}.{'onnx' if self.backend == 'onnx' else 'tflite'}"

    @property
    def parent(self) -> Part | None:
        """What its latency must not exceed: the same in float."""
        if self.precision == "fp32":
            return None
        return Part(self.backend, self.form, "fp32", self.tier)

    def entry(self, sha256: str) -> PartEntry:
        """As the card has it."""
        return PartEntry(
            file=self.file,
            backend=self.backend,  # type: ignore[arg-type]
            form=self.form,  # type: ignore[arg-type]
            precision=self.precision,  # type: ignore[arg-type]
            tier=self.tier,
            sha256=sha256,
        )


@dataclass(frozen=True, slots=True)
class Made:
    """What came of a part."""

    part: Part
    sha256: str = ""
    bytes: int = 0
    why_not: str = ""
    """Empty: it is there."""


@dataclass(frozen=True, slots=True)
class Calibrated:
    """What 8-bit parts need to know of the data."""

    reaches: Sequence[float] = ()
    """By layer, largest |input|."""
    wide: Sequence[int] = ()
    """Layers, from 0, that stay in float."""
    rows: Path | None = None
    """.npy of scaled rows."""


@dataclass(frozen=True, slots=True)
class Network:
    """Native layers to export, as a file that another process reads."""

    file: Path
    layers: tuple[LayerEntry, ...]
    weights: Weights
    window_rows: int = 0
    calibrated: Calibrated = field(default_factory=Calibrated)


def parts_of(
    formats: Sequence[str], window_rows: int, tier: TierName = "FULL", *, is_calibrated: bool
) -> list[Part]:
    """Parts of native layers.

    Lesser tiers are made in float alone, and 8-bit activations want calibration rows.
    """
    found = []
    if "onnx" in formats:
        if window_rows:
            found.append(Part("onnx", "window", tier=tier))
        found.append(Part("onnx", "step", tier=tier))
        if tier == "FULL":
            found.append(Part("onnx", "step", "fp16"))
            found += [Part("onnx", "step", "int8")] if is_calibrated else []
    if "litert" in formats:
        found.append(Part("litert", "step", tier=tier))
        if tier == "FULL":
            found.append(Part("litert", "step", "dynamic"))
            found += [Part("litert", "step", "int8")] if is_calibrated else []
    if "saved_model" in formats:
        found.append(Part("tensorflow", "window" if window_rows else "step", tier=tier))
    return found


def export(part: Part, network: Network, folder: Path, limit_s: float) -> Made:
    """Makes one part in a process of its own; a failure is a result."""
    calibrated = network.calibrated
    arguments = {
        "network": str(network.file),
        "file": str(folder / part.file),
        "backend": part.backend,
        "form": part.form,
        "precision": part.precision,
        "window_rows": network.window_rows,
        "reaches": list(calibrated.reaches),
        "wide": list(calibrated.wide),
        "rows": str(calibrated.rows or ""),
    }
    least = sum(a.size for of in network.weights for a in of.values()) * _BYTES[part.precision]
    return made_apart(
        part, "hft.inference.build.work:export_native", arguments, folder, limit_s, least * _SAFE
    )


def made_apart(
    part: Part,
    work: str,
    arguments: dict[str, Any],
    folder: Path,
    limit_s: float,
    least_bytes: float = 0.0,
) -> Made:
    """Has `work` write a part, and looks at what is there."""
    path = folder / part.file
    why_not = ""
    try:
        call_apart(work, arguments, limit_s)
    except ApartError as error:
        why_not = str(error)
    size = size_of(path)
    if not why_not and size == 0:
        why_not = "nothing was written"
    if not why_not and size < least_bytes:
        why_not = f"{size:,} bytes cannot hold the weights: some were lost"
    if why_not:
        _remove(path)  # what is half written does not stay in the bundle
        return Made(part, bytes=size, why_not=why_not)
    return Made(part, part_sha256(path), size)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def missing_for(backend: str, original: Path | None = None) -> str:
    """What is not installed that a backend's parts need; empty: nothing.

    Args:
        backend: whose parts.
        original: what they are made of, if it is no native network.
    """
    packages, extra = NEEDS[backend]
    if backend == "onnx" and original is not None and original.suffix == ".keras":
        packages, extra = (*packages, "keras", "tensorflow", "tf2onnx"), "train,onnx"
    return missing_of(packages, extra)


def missing_of(packages: Iterable[str], extra: str) -> str:
    """What is not installed of these, and the extra that brings them."""
    absent = [name for name in packages if importlib.util.find_spec(name) is None]
    return f"needs {', '.join(absent)}: {install(extra)}" if absent else ""


def install(extra: str) -> str:
    return f"pip install 'hft-framework[{extra}]'"


def size_of(path: Path) -> int:
    """Bytes of a file, or of a folder's files."""
    if not path.is_dir():
        return path.stat().st_size if path.exists() else 0
    return sum(p.stat().st_size for p in path.rglob("*") if p.is_file())

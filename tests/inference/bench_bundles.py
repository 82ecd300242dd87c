"""Small bundles of random weights, to be timed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cards import card, weights

from hft.inference.bundle import Bundle, part_sha256, save_bundle
from hft.inference.card import LayerEntry, PartEntry


def tiny(folder: Path, *, seed: int = 0, units: int = 8, **changes: Any) -> Bundle:
    """Written to `folder`."""
    layers = (
        LayerEntry(kind="lstm", units=units),
        LayerEntry(kind="dense", units=3, activation="softmax"),
    )
    return save_bundle(folder, card(layers=layers, **changes), weights(seed, units))


def with_onnx(folder: Path) -> Bundle:
    """The same with a step of ONNX Runtime, in float and with 16-bit weights."""
    from hft.inference.build.onnx_builder import step_model
    from hft.inference.build.onnx_graph import write_onnx

    bundle = tiny(folder)
    parts = []
    for precision in ("fp32", "fp16"):
        path = folder / f"step_{precision}.onnx"
        write_onnx(step_model(bundle.card.layers, weights(), precision), path)
        parts.append(
            PartEntry(
                file=path.name,
                backend="onnx",
                form="step",
                precision=precision,  # type: ignore[arg-type]
                sha256=part_sha256(path),
            )
        )
    return tiny(folder, parts=tuple(parts))

"""Small bundles of random weights, to be timed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy_lstm import random_dense, random_lstm

from hft.features import Features, OnTouch, imbalance, ofi, spread
from hft.inference.bundle import Bundle, part_sha256, save_bundle
from hft.inference.card import (
    Card,
    LayerEntry,
    PartEntry,
    Readout,
    Scaler,
    Training,
    entries_of,
)

INPUTS = 3


def card(**changes: Any) -> Card:
    """Of an LSTM and a softmax over three columns."""
    features = Features(spread(), imbalance(5), ofi(3, "100ms"), trigger=OnTouch(sizes=True))
    entries, trigger = entries_of(features)
    made = Card(
        format=2,
        name="tiny",
        outputs=("down", "flat", "up"),
        horizon_ns=500_000_000,
        latency_ns=2_000_000,
        warm_up_rows=100,
        trigger=trigger,
        features=entries,
        layers=(
            LayerEntry(kind="lstm", units=8),
            LayerEntry(kind="dense", units=3, activation="softmax"),
        ),
        scaler=Scaler(mean=(1.0, 0.0, 0.5), scale=(1.0, 0.5, 2.0), clip=5.0),
        readout=Readout(move_ticks=(-9.5, 0.0, 9.25), shrink=0.8),
        training=Training(data="none", data_sha256="", start_ts=0, end_ts=1, rows=0, seed=3),
    )
    return msgspec.structs.replace(made, **changes)


def weights(seed: int = 0, units: int = 8) -> list[dict[str, np.ndarray]]:
    """Of its two layers."""
    rng = np.random.default_rng(seed)
    layers = [random_lstm(rng, INPUTS, units), random_dense(rng, units, 3, "softmax")]
    return [{k: v for k, v in one.items() if k not in ("kind", "activation")} for one in layers]


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

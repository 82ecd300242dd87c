"""Small bundles for runs, and a strategy that keeps what they say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from hft import Model, Strategy
from hft.features import Features, OnTouch, imbalance, spread
from hft.inference.bundle import Bundle, part_sha256, save_bundle
from hft.inference.card import (
    Card,
    LayerEntry,
    PartEntry,
    Readout,
    Scaler,
    TierEntry,
    Training,
    entries_of,
)

FEATURES = Features(spread(), imbalance(5), trigger=OnTouch())
OUTPUTS = ("down", "up")
SECONDS: dict[str, Any] = {
    "data.synth.duration_s": 20.0,
    "data.synth.messages_per_s": 500.0,
    "engine.bracket": False,
}


def lstm(rng: np.random.Generator, inputs: int = 2, units: int = 8) -> list[dict[str, Any]]:
    """Weights of an LSTM below a softmax."""
    shapes = [(inputs, 4 * units), (units, 4 * units), (units, 2)]
    kernels = [rng.normal(0, 0.5, shape).astype(np.float32) for shape in shapes]
    return [
        {"kernel": kernels[0], "recurrent": kernels[1], "bias": np.zeros(4 * units, np.float32)},
        {"kernel": kernels[2], "bias": np.zeros(2, np.float32)},
    ]


def linear(rng: np.random.Generator, inputs: int = 2) -> list[dict[str, Any]]:
    return [
        {
            "kernel": rng.normal(0, 0.5, (inputs, 2)).astype(np.float32),
            "bias": np.zeros(2, np.float32),
        }
    ]


def make_bundle(folder: Path, seed: int = 1, **more: Any) -> Bundle:
    """An LSTM of 8 as FULL and one linear layer as MICRO; `more` goes to its card."""
    rng = np.random.default_rng(seed)
    softmax = LayerEntry(kind="dense", units=2, activation="softmax")
    entries, trigger = entries_of(more.pop("features", FEATURES))
    micro = TierEntry(weights="micro.npz", weights_sha256="", layers=(softmax,), warm_up_rows=3)
    values: dict[str, Any] = dict(
        format=2,
        name=folder.stem,
        outputs=OUTPUTS,
        horizon_ns=500_000_000,
        latency_ns=2_000_000,
        warm_up_rows=20,
        trigger=trigger,
        features=entries,
        layers=(LayerEntry(kind="lstm", units=8), softmax),
        scaler=Scaler(mean=(1.0,) * len(entries), scale=(0.5,) * len(entries), clip=5.0),
        readout=Readout(move_ticks=(-1.0, 1.0), shrink=0.5),
        training=Training(data="none", data_sha256="", start_ts=0, end_ts=1, rows=0, seed=seed),
        tiers={"MICRO": micro},
    )
    inputs = len(entries)
    return save_bundle(
        folder, Card(**values | more), lstm(rng, inputs), {"MICRO": linear(rng, inputs)}
    )


def add_step_part(bundle: Bundle) -> Bundle:
    """The bundle with its FULL network as an ONNX step beside it."""
    from hft.inference.build.onnx_builder import step_model

    path = bundle.path / "step.onnx"
    path.write_bytes(step_model(bundle.layers(), bundle.weights).SerializeToString())
    part = PartEntry(file=path.name, backend="onnx", form="step", sha256=part_sha256(path))
    card = msgspec.structs.replace(bundle.card, parts=(part,))
    return save_bundle(bundle.path, card, bundle.weights, bundle.lesser)


class Listener(Strategy):
    """Keeps every signal: (instrument, ts of its row, tier, version, up, alpha_ticks)."""

    def on_start(self) -> None:
        self.heard: list[tuple[Any, ...]] = []

    def on_signal(self, s: Any) -> None:
        self.heard.append((s.instrument.name, s.ts, s.tier, s.version, s["up"], s["alpha_ticks"]))


def listening(folder: Path) -> type[Listener]:
    """A Listener to the bundle in `folder`."""
    return type("Listening", (Listener,), {"model": Model(str(folder)), "__module__": __name__})

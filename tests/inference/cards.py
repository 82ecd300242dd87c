"""The card of a small model, for tests that need one and care for a few of its facts."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from numpy_lstm import random_dense, random_lstm

from hft.features import Features, OnTouch, imbalance, ofi, spread
from hft.inference.card import Card, LayerEntry, Readout, Scaler, Training, entries_of

FEATURES = Features(spread(), imbalance(5), ofi(3, "100ms").log(), trigger=OnTouch(sizes=True))


def card(columns: Features = FEATURES, /, **changes: Any) -> Card:
    """Of an LSTM and a softmax over three columns; other columns want another scaler."""
    entries, trigger = entries_of(columns)
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
        metrics={"auc_up": 0.61},
    )
    return msgspec.structs.replace(made, **changes)


def layers(seed: int = 0, units: int = 8) -> list[dict[str, Any]]:
    """Its two, as tests/inference/numpy_lstm.py has them."""
    rng = np.random.default_rng(seed)
    inputs = len(FEATURES)
    return [random_lstm(rng, inputs, units), random_dense(rng, units, 3, "softmax")]


def weights(seed: int = 0, units: int = 8) -> list[dict[str, np.ndarray]]:
    """Of them, as a bundle has them."""
    return [
        {name: array for name, array in layer.items() if name not in ("kind", "activation")}
        for layer in layers(seed, units)
    ]

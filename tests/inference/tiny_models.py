"""Small networks with random weights, and bundles of them."""

import numpy as np

from hft.features import Features, OnTouch, imbalance, mid_return, ofi, spread
from hft.inference.bundle import save_bundle
from hft.inference.card import FORMAT, Card, LayerEntry, Readout, Scaler, Training, entries_of

FEATURES = Features(imbalance(1), spread(), ofi(1), mid_return("100ms"), trigger=OnTouch())
K = len(list(FEATURES))
HEAD = LayerEntry(kind="dense", units=3, activation="softmax")
HIDDEN = {
    "lstm": (LayerEntry(kind="lstm", units=8), LayerEntry(kind="lstm", units=5)),
    "gru": (LayerEntry(kind="gru", units=7),),
    "conv": (
        LayerEntry(kind="conv", units=6, width=3, activation="relu"),
        LayerEntry(kind="conv", units=5, width=1, activation="tanh"),
    ),
    "dense": (LayerEntry(kind="dense", units=9, activation="sigmoid"),),
    "mixed": (
        LayerEntry(kind="conv", units=6, width=4, activation="tanh"),
        LayerEntry(kind="dense", units=6, activation="relu"),
        LayerEntry(kind="gru", units=6),
        LayerEntry(kind="lstm", units=8),
    ),
}


def layers_of(kind):
    return (*HIDDEN[kind], HEAD)


def random_weights(layers, inputs=K, seed=1, size=0.6):
    rng = np.random.default_rng(seed)
    found = []
    for layer in layers:
        u = layer.units
        shapes = {
            "lstm": {"kernel": (inputs, 4 * u), "recurrent": (u, 4 * u), "bias": (4 * u,)},
            "gru": {"kernel": (inputs, 3 * u), "recurrent": (u, 3 * u), "bias": (2, 3 * u)},
            "conv": {"kernel": (layer.width, inputs, u), "bias": (u,)},
            "dense": {"kernel": (inputs, u), "bias": (u,)},
        }[layer.kind]
        found.append({n: (rng.normal(size=s) * size).astype(np.float32) for n, s in shapes.items()})
        inputs = u
    return found


def card_of(layers, window_rows=0, **changes):
    entries, trigger = entries_of(FEATURES)
    facts = {
        "format": FORMAT,
        "name": "tiny",
        "outputs": ("down", "flat", "up"),
        "horizon_ns": 500_000_000,
        "latency_ns": 1_000_000,
        "warm_up_rows": window_rows - 1 if window_rows else 20,
        "window_rows": window_rows,
        "trigger": trigger,
        "features": entries,
        "layers": tuple(layers),
        "scaler": Scaler(mean=(0.1,) * K, scale=(0.7,) * K, clip=4.0),
        "readout": Readout(move_ticks=(-4.0, 0.0, 4.0), shrink=0.8),
        "training": Training(data="-", data_sha256="", start_ts=0, end_ts=1, rows=1, seed=1),
    }
    return Card(**(facts | changes))


def tiny_bundle(folder, kind="mixed", window_rows=0, **changes):
    layers = layers_of(kind)
    return save_bundle(folder, card_of(layers, window_rows, **changes), random_weights(layers))

"""Bundles of random weights that `make bench-inference` times, with every part that can be made."""

from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from hft.features import Features, OnTouch, depth_lots
from hft.inference.build.apart import call_apart
from hft.inference.build.exports import Calibrated, Made, Network, Part, export, made_apart
from hft.inference.build.work import write_network
from hft.inference.bundle import Bundle, Weights, save_bundle
from hft.inference.card import Card, FeatureEntry, LayerEntry, Scaler, Training, entries_of

CLASSES = 3
LIMIT_S = 180.0
HEAD = LayerEntry(kind="dense", units=CLASSES, activation="softmax")


@dataclass(frozen=True)
class Shape:
    """A network: LSTM layers and a softmax, or a Transformer over a window."""

    name: str
    inputs: int
    units: int
    layers: int
    window_rows: int = 0
    """Also timed as a window of so many rows; a Transformer only so."""
    transformer: bool = False

    @property
    def products(self) -> int:
        """Multiply-adds of a step, head included."""
        widths = [self.inputs] + [self.units] * (self.layers - 1)
        return sum(4 * self.units * (k + self.units) for k in widths) + CLASSES * self.units

    def weight_bytes(self, precision: str) -> int:
        """Of the kernels; the head stays in float."""
        return self.products * (1 if precision == "int8" else 4)


SHAPES = (
    Shape("LSTM 64x2 on [100x40]", 40, 64, 2, window_rows=100),
    Shape("LSTM 64x2 on [50x20]", 20, 64, 2, window_rows=50),
    Shape("LSTM 128x2, 128 inputs", 128, 128, 2),
    Shape("LSTM 256x3, 256 inputs", 256, 256, 3),
    Shape("Transformer d 32 on [50x20]", 20, 32, 1, window_rows=50, transformer=True),
)


def weights_of(shape: Shape, seed: int = 1) -> tuple[tuple[LayerEntry, ...], Weights]:
    """Random layers, as Keras holds them."""
    rng = np.random.default_rng(seed)

    def drawn(*size: int) -> np.ndarray:
        return rng.uniform(-1, 1, size).astype(np.float32) / np.float32(np.sqrt(size[0]))

    layers, weights, k, u = [], [], shape.inputs, shape.units
    for _ in range(shape.layers):
        layers.append(LayerEntry(kind="lstm", units=u))
        weights.append(
            {"kernel": drawn(k, 4 * u), "recurrent": drawn(u, 4 * u), "bias": drawn(4 * u)}
        )
        k = u
    weights.append({"kernel": drawn(k, CLASSES), "bias": np.zeros(CLASSES, np.float32)})
    return (*layers, HEAD), weights


def card_of(shape: Shape, layers: tuple[LayerEntry, ...], window_rows: int) -> Card:
    """With as many columns as the shape has inputs; what they mean does not matter here."""
    _, trigger = entries_of(Features(depth_lots(1), trigger=OnTouch()))
    columns = tuple(
        FeatureEntry(kind="depth_lots", name=f"column_{n}", levels=1 + n % 32, side=1)
        for n in range(shape.inputs)
    )
    return Card(
        format=2,
        name="bench",
        outputs=("down", "flat", "up"),
        horizon_ns=1_000_000_000,
        latency_ns=0,
        warm_up_rows=100,
        window_rows=window_rows,
        trigger=trigger,
        features=columns,
        layers=layers,
        scaler=Scaler(mean=(0.0,) * shape.inputs, scale=(1.0,) * shape.inputs, clip=5.0),
        training=Training(data="none", data_sha256="", start_ts=0, end_ts=1, rows=0, seed=1),
    )


@dataclass(frozen=True)
class Models:
    """Of a shape: the streaming bundle and the windowed one, where there is each."""

    shape: Shape
    streaming: Bundle | None
    windowed: Bundle | None
    failed: tuple[Made, ...]


def build(shape: Shape, folder: Path, *, quick: bool) -> Models:
    """Writes its bundles with their parts; what could not be made is told, not fatal.

    Args:
        shape: what to build.
        folder: new.
        quick: ONNX alone, which needs no TensorFlow.
    """
    if shape.transformer:
        made = [] if quick else _transformer_parts(shape, folder)
        windowed, failed = _bundle(shape, (), [], folder, shape.window_rows, made)
        return Models(shape, None, windowed if windowed.card.parts else None, failed)
    layers, weights = weights_of(shape)
    steps = _native_parts(shape, layers, weights, folder, _steps(shape, quick=quick))
    streaming, failed = _bundle(shape, layers, weights, folder, 0, steps)
    windowed = None
    if shape.window_rows:
        inside, rows = folder / "windowed", shape.window_rows
        made = _native_parts(shape, layers, weights, inside, _windows(quick=quick), rows)
        windowed, more = _bundle(shape, layers, weights, inside, rows, made)
        failed += more
    return Models(shape, streaming, windowed, failed)


def _bundle(
    shape: Shape,
    layers: tuple[LayerEntry, ...],
    weights: Weights,
    folder: Path,
    window_rows: int,
    made: list[Made],
) -> tuple[Bundle, tuple[Made, ...]]:
    parts = tuple(m.part.entry(m.sha256) for m in made if not m.why_not)
    card = msgspec.structs.replace(card_of(shape, layers, window_rows), parts=parts)
    return save_bundle(folder, card, weights), tuple(m for m in made if m.why_not)


def _native_parts(
    shape: Shape,
    layers: tuple[LayerEntry, ...],
    weights: Weights,
    folder: Path,
    wanted: list[Part],
    window_rows: int = 0,
) -> list[Made]:
    folder.mkdir(parents=True, exist_ok=True)
    rows = np.clip(np.random.default_rng(5).standard_normal((200, shape.inputs)), -5, 5)
    with tempfile.TemporaryDirectory() as scratch:
        file, sample = Path(scratch) / "network.npz", Path(scratch) / "rows.npy"
        write_network(file, layers, weights)
        np.save(sample, rows.astype(np.float32))
        # Inputs are clipped to 5, and what a gate lets through is at most 1.
        calibrated = Calibrated([5.0] + [1.0] * (len(layers) - 1), (), sample)
        network = Network(file, layers, weights, window_rows, calibrated)
        with ThreadPoolExecutor(2) as pool:  # each waits for a process of its own
            return list(pool.map(lambda part: export(part, network, folder, LIMIT_S), wanted))


def _steps(shape: Shape, *, quick: bool) -> list[Part]:
    parts = [Part("onnx", "step", p) for p in ("fp32", "fp16", "int8")]
    if not quick:
        parts += [Part("litert", "step", p) for p in ("fp32", "dynamic", "int8")]
        # Of TensorFlow one size is enough: its step takes a hundred times the others'.
        parts += [Part("tensorflow", "step")] if shape.window_rows else []
    return parts


def _windows(*, quick: bool) -> list[Part]:
    return [Part("onnx", "window")] + ([] if quick else [Part("tensorflow", "window")])


def _transformer_parts(shape: Shape, folder: Path) -> list[Made]:
    folder.mkdir(parents=True, exist_ok=True)
    original = folder / "transformer.keras"
    call_apart(
        "bench_models:save_transformer",
        {"file": str(original), "rows": shape.window_rows, "inputs": shape.inputs},
        LIMIT_S,
    )
    made = []
    for backend in ("onnx", "tensorflow"):
        arguments = {
            "original": str(original),
            "file": str(folder / Part(backend, "window").file),
            "backend": backend,
            "window_rows": shape.window_rows,
            "inputs": shape.inputs,
        }
        made.append(
            made_apart(
                Part(backend, "window"),
                "hft.inference.build.window_exports:export_original",
                arguments,
                folder,
                LIMIT_S,
            )
        )
    return made


def save_transformer(file: str, rows: int, inputs: int) -> None:
    """What `hft train --model transformer:d=32,heads=2,layers=1` begins with."""
    from hft.inference.build.tf_step import tensorflow

    tensorflow()
    import keras

    from hft.inference.training.keras_models import whole_model
    from hft.inference.training.model_spec import model_spec

    keras.utils.set_random_seed(1)
    spec = model_spec("transformer:d=32,heads=2,layers=1")
    whole_model(keras, spec, inputs, CLASSES, rows).save(file)

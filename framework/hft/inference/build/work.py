"""What `hft build` has done in processes of its own (hft.inference.build.apart)."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np

from hft.inference.build.onnx_graph import write_onnx
from hft.inference.bundle import Weights
from hft.inference.card import LayerEntry


def write_network(path: Path, layers: tuple[LayerEntry, ...], weights: Weights) -> None:
    """Layers and weights in a file, for another process."""
    arrays = {f"{n}/{part}": a for n, of in enumerate(weights) for part, a in of.items()}
    described = np.frombuffer(msgspec.json.encode(layers), np.uint8)
    np.savez(path, allow_pickle=False, layers=described, **arrays)


def read_network(path: Path) -> tuple[tuple[LayerEntry, ...], Weights]:
    """What `write_network` wrote."""
    with np.load(path, allow_pickle=False) as arrays:
        layers = msgspec.json.decode(arrays["layers"].tobytes(), type=tuple[LayerEntry, ...])
        weights: list[dict[str, np.ndarray]] = [{} for _ in layers]
        for name in arrays.files:
            n, _, part = name.partition("/")
            if part:
                weights[int(n)][part] = arrays[name]
    return layers, weights


def export_native(
    network: str,
    file: str,
    backend: str,
    form: str,
    precision: str,
    window_rows: int,
    reaches: list[float],
    wide: list[int],
    rows: str,
) -> None:
    """Writes one part of native layers.

    Args:
        network: file of `write_network`.
        file: what to write.
        backend: `onnx`, `litert`, `tensorflow`.
        form: `step`, `window`.
        precision: see PartEntry.
        window_rows: of a window.
        reaches: int8 of onnx: by layer, largest |input|.
        wide: int8 of onnx: layers, from 0, that stay in float.
        rows: int8 of litert: .npy of scaled rows.
    """
    layers, weights = read_network(Path(network))
    path = Path(file)
    if backend == "onnx":
        from hft.inference.build.onnx_builder import step_model, window_model

        if form == "window":
            write_onnx(window_model(layers, weights, window_rows, precision), path)
        else:
            write_onnx(step_model(layers, weights, precision, reaches, wide), path)
    elif backend == "litert":
        from hft.inference.build.litert_step import litert_step

        path.write_bytes(litert_step(layers, weights, precision, np.load(rows) if rows else None))
    elif form == "step":
        from hft.inference.build.saved_model import save_step

        save_step(layers, weights, path)
    else:
        from hft.inference.build.memories import inputs_of
        from hft.inference.build.saved_model import keras_window, save_window

        model = keras_window(layers, weights, window_rows)
        save_window(model, window_rows, inputs_of(weights), path)

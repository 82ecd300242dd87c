"""A LiteRT step, signature `step`, float or with 8-bit weights or all in 8 bits."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hft.inference.build.saved_model import save_step
from hft.inference.build.tf_step import step_module, tensorflow, zero_states
from hft.inference.bundle import Weights
from hft.inference.card import LayerEntry

SAMPLES = 1000


def litert_step(
    layers: Sequence[LayerEntry],
    weights: Weights,
    precision: str = "fp32",
    rows: npt.NDArray[np.float32] | None = None,
) -> bytes:
    """The flatbuffer. Inputs and outputs are float in every precision.

    Args:
        layers: of the network.
        weights: by layer.
        precision: `fp32`; `dynamic`: weights in 8 bits; `int8`: everything in between as well, the
            states too, which drifts: the gates tell.
        rows: int8: (n, k) scaled consecutive rows to find ranges by.
    """
    tf = tensorflow()
    with tempfile.TemporaryDirectory() as folder:  # only a saved model's signature keeps its name
        save_step(layers, weights, Path(folder))
        converter = tf.lite.TFLiteConverter.from_saved_model(folder, signature_keys=["step"])
        return _converted(converter, layers, weights, precision, rows)


def _converted(
    converter: Any,
    layers: Sequence[LayerEntry],
    weights: Weights,
    precision: str,
    rows: npt.NDArray[np.float32] | None,
) -> bytes:
    tf = tensorflow()
    if precision != "fp32":
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if precision == "int8":
        if rows is None:
            raise ValueError("int8 needs rows to find ranges by")
        converter.representative_dataset = lambda: _samples(layers, weights, rows)
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    return bytes(converter.convert())


def _samples(
    layers: Sequence[LayerEntry], weights: Weights, rows: npt.NDArray[np.float32]
) -> Iterator[dict[str, npt.NDArray[Any]]]:
    """Rows with the states that they meet."""
    tf = tensorflow()
    _, step = step_module(layers, weights)
    states = zero_states(layers, weights)
    for row in rows[:SAMPLES]:
        given = {"x": row[None], **states}
        yield given
        made = step(**{name: tf.constant(value) for name, value in given.items()})
        states = {name: made[f"{name}_out"].numpy() for name in states}

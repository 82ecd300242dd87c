"""SavedModel folders: of a streaming model a `step` signature, of a windowed one its Keras form."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hft.inference.build.memories import inputs_of
from hft.inference.build.tf_step import step_module, tensorflow
from hft.inference.bundle import Weights
from hft.inference.card import LayerEntry


def save_step(layers: Sequence[LayerEntry], weights: Weights, folder: Path) -> None:
    """Signature `step`: `x` and states in, `y` and states out."""
    tf = tensorflow()
    module, step = step_module(layers, weights)
    tf.saved_model.save(module, str(folder), signatures={"step": step})


def save_window(model: Any, rows: int, inputs: int, folder: Path) -> None:
    """Signature `serving_default`: `x` (n, rows, inputs) -> `y` (n, outputs).

    Through Keras' own archive: a Keras model wrapped in a tf.Module loads in Python, but not in C.
    """
    tf = tensorflow()
    import keras

    archive = keras.export.ExportArchive()
    archive.track(model)
    archive.add_endpoint(
        "serving_default",
        lambda x: {"y": model(x, training=False)},
        input_signature=[tf.TensorSpec((None, rows, inputs), tf.float32, name="x")],
    )
    archive.write_out(str(folder), verbose=False)


def keras_window(layers: Sequence[LayerEntry], weights: Weights, rows: int) -> Any:
    """A Keras model of native layers: (n, rows, k) -> outputs of the last row."""
    tensorflow()
    import keras

    recurrent = {"lstm": keras.layers.LSTM, "gru": keras.layers.GRU}
    made = [keras.Input(shape=(rows, inputs_of(weights)), name="x")]
    for layer in layers:
        if layer.kind in recurrent:
            made.append(recurrent[layer.kind](layer.units, return_sequences=True))
        elif layer.kind == "conv":
            made.append(
                keras.layers.Conv1D(
                    layer.units, layer.width, padding="causal", activation=layer.activation
                )
            )
        else:
            made.append(keras.layers.Dense(layer.units, activation=layer.activation))
    made.append(keras.layers.Lambda(lambda y: y[:, -1]))
    model = keras.Sequential(made)
    model.set_weights([array for arrays in weights for array in arrays.values()])
    return model

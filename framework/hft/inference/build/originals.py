"""Reads models of other makers: what they take and give, and native layers if there are any.

Runs in a process of its own (hft.inference.build.apart): it imports TensorFlow, and files of
others crash readers.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hft.errors import ModelError
from hft.inference.build.native_layers import (
    SAME,
    Layers,
    NotNative,
    answers,
    difference,
    of_arrays,
    of_keras,
)
from hft.inference.build.onnx_layers import of_onnx
from hft.inference.build.tf_step import tensorflow
from hft.inference.build.work import write_network

Array = npt.NDArray[Any]
Answer = Callable[[Array], Array]
"""(n, rows, k) scaled -> (n, outputs) of the last row."""
TRIED_ROWS = 24
_TRIED = 8
_AT_ONCE = 1024


def read_original(file: str, network: str, window_rows: int) -> dict[str, Any]:
    """What a model is; its native layers go to `network`.

    Args:
        file: `.keras`, `.onnx`, or the folder of a SavedModel.
        network: file to write, if there are native layers.
        window_rows: rows it sees, if the file does not say; 0: not given.

    Returns:
        inputs, outputs, window_rows (0: carries state, or needs none), why_not (empty: native),
        difference (of native layers), sums_to_one.
    """
    path = Path(file)
    original = open_original(path)
    inputs, rows = original.inputs, original.window_rows
    if rows is None:
        rows = window_rows
    tried = _windows(inputs, rows or (1 if original.is_one_row else TRIED_ROWS))
    theirs = original.answer(tried)
    if theirs.ndim != 2 or not np.isfinite(theirs).all():
        raise ModelError(f"{path}: gives {theirs.shape} on {tried.shape}, want finite (n, outputs)")
    told = {
        "inputs": inputs,
        "outputs": int(theirs.shape[1]),
        "window_rows": rows,
        "sums_to_one": bool(
            (theirs >= 0).all() and np.allclose(theirs.sum(axis=1), 1.0, atol=1e-4)
        ),
    }
    try:
        layers, apart = _native(original, tried, theirs)
    except NotNative as why:
        return told | {"why_not": str(why), "difference": 0.0}
    write_network(Path(network), layers.entries, layers.weights)
    return told | {"why_not": "", "difference": apart}


class Original:
    """A model as its own library runs it."""

    def __init__(
        self, inputs: int, window_rows: int | None, answer: Answer, *, is_one_row: bool = False
    ) -> None:
        self.inputs = inputs
        self.window_rows = window_rows
        """None: the file takes any number of rows."""
        self.answer = answer
        self.is_one_row = is_one_row
        self.layers: Callable[[], Layers] = lambda: _refuse("its file does not tell layers")
        self.arrays: list[Array] = []
        """Weights in order, where the file tells no layers."""


def _refuse(why: str) -> Layers:
    raise NotNative(why)


def _native(original: Original, tried: Array, theirs: Array) -> tuple[Layers, float]:
    if original.arrays:
        best = float("inf")
        for layers in of_arrays(original.arrays, original.inputs):
            try:
                apart = difference(answers(layers, tried), theirs)
            except NotNative:
                continue
            if apart <= SAME:
                return layers, apart
            best = min(best, apart)
        raise NotNative(
            "its variables are no chain of LSTM, GRU, Conv1D and Dense layers"
            + (f" that gives its outputs (nearest {best:.2g} off)" if best < 1e9 else "")
        )
    layers = original.layers()
    apart = difference(answers(layers, tried), theirs)
    if apart > SAME:
        raise NotNative(f"the layers read from it give outputs {apart:.2g} off its own")
    return layers, apart


def open_original(path: Path) -> Original:
    """Opens a model with its own library.

    Raises:
        ModelError: it is none that can be read, or its shapes are no (rows, inputs).
    """
    if path.suffix == ".onnx":
        return _onnx(path)
    return _keras(path) if path.suffix == ".keras" else _saved_model(path)


def original_on_rows(file: str, rows: str, window_rows: int, out: str) -> None:
    """Answers of a model on (n, k) scaled consecutive rows, .npy to .npy, (n, outputs).

    Rows with fewer than a window behind them get the first whole window's answer.
    """
    original, x = open_original(Path(file)), np.load(rows)
    windows = np.lib.stride_tricks.sliding_window_view(x, window_rows, axis=0).swapaxes(1, 2)
    starts = range(0, len(windows), _AT_ONCE)
    made = [original.answer(np.ascontiguousarray(windows[i : i + _AT_ONCE])) for i in starts]
    found = np.concatenate(made)
    np.save(out, np.concatenate([np.repeat(found[:1], window_rows - 1, axis=0), found]))


def _keras(path: Path) -> Original:
    tensorflow()
    import keras

    model = keras.models.load_model(path, compile=False)
    shape = _shape(path, getattr(model, "input_shape", None))
    one_row = len(shape) == 2

    carries = any(getattr(layer, "stateful", False) for layer in model.layers)

    def answer(windows: Array) -> Array:
        if not carries:
            x = windows[:, -1] if one_row else windows
            return _last(np.asarray(model.predict(x, batch_size=_AT_ONCE, verbose=0)))
        # A stateful model's batch is fixed, and it must forget between windows.
        found = []
        for window in windows:
            for layer in model.layers:
                if getattr(layer, "stateful", False):
                    layer.reset_state()
            given = window[-1:] if one_row else window[None]
            found.append(_last(np.asarray(model(given, training=False)))[0])
        return np.stack(found)

    rows = 0 if one_row or carries else shape[1]
    if rows is None and len(model.output_shape) == 3:
        rows = 0  # gives a row for each: a streaming model in its training form
    original = Original(int(shape[-1]), rows, answer, is_one_row=one_row)
    original.layers = lambda: of_keras(model)
    return original


def _saved_model(path: Path) -> Original:
    tf = tensorflow()
    loaded = tf.saved_model.load(str(path))
    signature = loaded.signatures.get("serving_default")
    if signature is None:
        raise ModelError(
            f"{path}: no signature serving_default, there are {sorted(loaded.signatures)}; a step "
            "is built from the model it came from"
        )
    given = signature.structured_input_signature[1]
    if len(given) != 1 or len(signature.structured_outputs) != 1:
        raise ModelError(
            f"{path}: serving_default takes {sorted(given)}; want one input and output"
        )
    (name, spec), (out,) = next(iter(given.items())), signature.structured_outputs
    shape = _shape(path, tuple(spec.shape))

    def answer(windows: Array) -> Array:
        x = windows[:, -1] if len(shape) == 2 else windows
        batches = x[:, None] if shape[0] == 1 else [x]
        made = [signature(**{name: tf.constant(b, tf.float32)})[out].numpy() for b in batches]
        return _last(np.concatenate(made))

    one_row = len(shape) == 2
    rows = 0 if one_row else shape[1]
    original = Original(int(shape[-1]), rows, answer, is_one_row=one_row)
    # As the model's code made them: of a list of variables by name `dense/kernel` follows `conv`.
    original.arrays = [v.numpy() for v in loaded.variables if v.dtype == tf.float32]
    return original


def _onnx(path: Path) -> Original:
    import onnx
    import onnxruntime as ort

    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = ort.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    inputs, outputs = session.get_inputs(), session.get_outputs()
    if len(inputs) != 1 or len(outputs) != 1:
        raise ModelError(
            f"{path}: takes {[i.name for i in inputs]} and gives {[o.name for o in outputs]}; want "
            "one input (batch, rows, inputs) and one output: a step is built from its own model"
        )
    dims = tuple(d if isinstance(d, int) else None for d in inputs[0].shape)
    shape = _shape(path, dims)
    one_row = len(shape) == 2

    def answer(windows: Array) -> Array:
        x = (windows[:, -1] if one_row else windows).astype(np.float32)
        made = [session.run(None, {inputs[0].name: one[None]})[0] for one in x]
        return _last(np.concatenate(made))

    original = Original(int(shape[-1]), 0 if one_row else shape[1], answer, is_one_row=one_row)
    original.layers = lambda: of_onnx(model)
    return original


def _shape(path: Path, shape: Any) -> tuple[Any, ...]:
    if not isinstance(shape, tuple) or len(shape) not in (2, 3) or not shape[-1]:
        raise ModelError(f"{path}: takes {shape}; want (batch, rows, inputs) or (batch, inputs)")
    return shape


def _last(y: Array) -> Array:
    return y[:, -1] if y.ndim == 3 else y


def _windows(inputs: int, rows: int) -> Array:
    draws = np.random.default_rng(1).normal(size=(_TRIED, rows, inputs))
    return np.asarray(draws, np.float32)

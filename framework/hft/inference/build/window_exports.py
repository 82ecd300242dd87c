"""The window form of a model that has no native layers, by its own library, in a process apart."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from hft.errors import ModelError
from hft.inference.build.onnx_graph import write_onnx
from hft.inference.build.saved_model import save_window
from hft.inference.build.tf_step import tensorflow


def export_original(original: str, file: str, backend: str, window_rows: int, inputs: int) -> None:
    """Writes the window form of a model that has no native layers, inputs `x`, outputs `y`.

    Raises:
        ModelError: what its maker's exporter gives is invalid, or has no single input and output.
    """
    source, path = Path(original), Path(file)
    if source.suffix == ".onnx":
        _rename_onnx(source, path)
    elif backend == "tensorflow":
        _save_model(source, path, window_rows, inputs)
    else:
        tensorflow()
        import keras

        model = keras.models.load_model(source, compile=False)
        model(np.zeros((1, window_rows, inputs), np.float32))  # it refuses one that never ran
        with tempfile.TemporaryDirectory(prefix="hft-build-") as folder:
            draft = Path(folder) / path.name
            model.export(str(draft), format="onnx", verbose=False)
            _rename_onnx(draft, path)


def _save_model(source: Path, path: Path, window_rows: int, inputs: int) -> None:
    tf = tensorflow()
    if source.suffix == ".keras":
        import keras

        save_window(keras.models.load_model(source, compile=False), window_rows, inputs, path)
        return
    module = tf.Module()
    module.loaded = tf.saved_model.load(str(source))
    given = module.loaded.signatures["serving_default"]
    (name,), (out,) = given.structured_input_signature[1], given.structured_outputs
    spec = tf.TensorSpec((1, window_rows, inputs), tf.float32, name="x")
    module.answer = tf.function(lambda x: {"y": given(**{name: x})[out]}, input_signature=[spec])
    tf.saved_model.save(module, str(path), signatures={"serving_default": module.answer})


def _rename_onnx(source: Path, path: Path) -> None:
    """The same graph with inputs `x` and outputs `y`, checked."""
    import onnx

    model = onnx.load(source)
    graph = model.graph
    constants = {t.name for t in graph.initializer}
    inputs = [i for i in graph.input if i.name not in constants]
    if len(inputs) != 1 or len(graph.output) != 1:
        raise ModelError(f"{source}: want one input and one output")
    names = {inputs[0].name: "x", graph.output[0].name: "y"}
    taken = {name for node in graph.node for name in (*node.input, *node.output)} - set(names)
    if taken & {"x", "y"}:
        raise ModelError(f"{source}: a value inside is called x or y, which inputs and outputs are")
    for node in graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names.get(name, name) for name in node.output]
    inputs[0].name, graph.output[0].name = "x", "y"
    onnx.checker.check_model(model, full_check=True)
    write_onnx(model, path)

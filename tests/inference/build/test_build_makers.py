"""Models of other makers, taken apart into native layers or run by what their library exports."""

import importlib.util
import subprocess
import sys

import numpy as np
import pytest
from building import LIBRARIES, built, require
from tiny_models import K, card_of, layers_of, random_weights

from hft.inference.build.apart import call_apart
from hft.inference.build.command import notes_of
from hft.inference.build.subject import of_bundle, read_model
from hft.inference.build.work import read_network
from hft.inference.card import to_toml

MODELS = f"""
import os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import sys
import keras
import numpy as np
L = keras.layers
stack = keras.Sequential([
    keras.Input((6, {K})), L.Conv1D(5, 3, padding="causal"), L.Activation("relu"), L.Dropout(0.1),
    L.GRU(6, return_sequences=True), L.LSTM(7), L.Dense(5, "tanh"), L.Dense(3, "softmax"),
])
stream = keras.Sequential([
    keras.Input((None, {K})), L.LSTM(8, return_sequences=True), L.Dense(3, "softmax")
])
early = keras.Sequential([keras.Input((6, {K})), L.GRU(5, reset_after=False), L.Dense(3)])
x = keras.Input((6, {K}))
attention = keras.Model(x, L.Dense(3, "softmax")(L.Flatten()(L.MultiHeadAttention(2, 4)(x, x))))
rng = np.random.default_rng(5)
models = dict(stack=stack, stream=stream, early=early, attention=attention)
for name, model in models.items():
    model.set_weights([rng.normal(size=w.shape) * 0.5 for w in model.get_weights()])
    model.save(f"{{sys.argv[1]}}/{{name}}.keras")
stack.export(f"{{sys.argv[1]}}/stack", verbose=False)
"""


@pytest.fixture(scope="module")
def makers(tmp_path_factory):
    """Models that Keras wrote, in a process of its own: its warnings are errors here."""
    require(*LIBRARIES)
    folder = tmp_path_factory.mktemp("keras")
    command = [sys.executable, "-c", MODELS, str(folder)]
    subprocess.run(command, check=True, capture_output=True)
    (folder / "model.toml").write_text(to_toml(card_of(layers_of("lstm"))))
    return folder


STACK = [
    ("conv", 5, "relu", 3),
    ("gru", 6, "linear", 1),
    ("lstm", 7, "linear", 1),
    ("dense", 5, "tanh", 1),
    ("dense", 3, "softmax", 1),
]


def seen(layers):
    return [(e.kind, e.units, e.activation, e.width) for e in layers]


def test_a_windowed_keras_model_becomes_native(makers, tmp_path):
    model = makers / "stack.keras"
    _, bundle = built(model, tmp_path / "m.bundle", card=makers / "model.toml")
    assert seen(bundle.card.layers) == STACK
    assert bundle.card.window_rows == 6
    (gate,) = bundle.card.gates
    assert gate.name == "parity"
    assert gate.passed
    assert gate.value < 1e-5
    assert (bundle.path / "model.keras").read_bytes() == model.read_bytes()


@pytest.fixture(scope="module")
def read(makers):
    """What is told of a file, and its native layers."""
    files = [str(makers / name) for name in ("stack", "stream.keras", "early.keras")]
    work = {"files": files, "folder": str(makers)}
    told = call_apart("workers:read_all", work, 120.0)
    native = {name: read_network(makers / f"{name}.npz")[0] for name in ("stack", "stream.keras")}
    return told, native


def test_a_saved_model_is_taken_apart_by_its_answers(read):
    told, native = read
    assert seen(native["stack"]) == STACK
    found = told["stack"]
    assert (found["window_rows"], found["sums_to_one"], found["why_not"]) == (6, True, "")
    assert found["difference"] < 1e-5


def test_a_streaming_keras_model_stays_one(read):
    told, native = read
    assert [e.kind for e in native["stream.keras"]] == ["lstm", "dense"]
    assert told["stream.keras"]["window_rows"] == 0


def test_a_layer_of_another_rule_is_named(makers, read):
    why = read[0]["early.keras"]["why_not"]
    assert "(GRU) has reset_after False; native is True" in why
    assert not (makers / "early.keras.npz").exists()


def test_a_model_without_native_layers_runs_by_parts(makers, tmp_path):
    told = []
    rows, bundle = built(
        makers / "attention.keras",
        tmp_path / "m.bundle",
        ("saved_model", "onnx", "litert"),
        told.append,
        card=makers / "model.toml",
    )
    assert bundle.card.layers == ()
    assert any("(MultiHeadAttention) has no native form" in line for line in told)
    assert any("litert cannot be made of attention.keras" in line for line in told)
    parts = {p.file: p for p in bundle.card.parts}
    assert {p.form for p in parts.values()} == {"window"}
    assert parts["saved_model"].passed, notes_of(rows)
    if importlib.util.find_spec("tf2onnx") is None:  # Keras' own exporter wants it
        (missing,) = [row.missing for row in rows if row.name == "window.onnx"]
        assert "needs tf2onnx" in missing
        assert list(parts) == ["saved_model"]
    else:
        assert parts["window.onnx"].passed, notes_of(rows)
    again = of_bundle(bundle.path)  # what it is built from next time
    assert again.original == again.source == bundle.path / "model.keras"


def test_an_onnx_graph_of_known_nodes_becomes_native(tmp_path):
    require("onnx", "onnxruntime")
    from hft.inference.build.onnx_builder import window_model
    from hft.inference.build.onnx_graph import write_onnx

    layers = layers_of("mixed")
    weights = random_weights(layers)
    write_onnx(window_model(layers, weights, 9), tmp_path / "given.onnx")
    (tmp_path / "model.toml").write_text(to_toml(card_of(layers)))
    _, bundle = built(tmp_path / "given.onnx", tmp_path / "m.bundle", card=tmp_path / "model.toml")
    assert bundle.card.layers == layers
    assert bundle.card.window_rows == 9
    for ours, theirs in zip(bundle.weights, weights, strict=True):
        for name in theirs:
            np.testing.assert_allclose(ours[name], theirs[name], atol=1e-7)


def test_an_onnx_graph_of_other_nodes_runs_as_it_is(tmp_path):
    require("onnx", "onnxruntime")
    from hft.inference.build.onnx_builder import window_model
    from hft.inference.build.onnx_graph import write_onnx

    layers = layers_of("gru")
    model = window_model(layers, random_weights(layers), 5)
    (softmax,) = (n for n in model.graph.node if n.op_type == "Softmax")
    softmax.op_type = "LogSoftmax"
    write_onnx(model, tmp_path / "given.onnx")
    (tmp_path / "model.toml").write_text(to_toml(card_of(layers)))
    read = read_model(tmp_path / "given.onnx", 0, 60.0)
    assert "(LogSoftmax) has no native form" in read.why_not
    rows, bundle = built(
        tmp_path / "given.onnx", tmp_path / "m.bundle", ("onnx",), card=tmp_path / "model.toml"
    )
    assert [p.file for p in bundle.card.parts] == ["window.onnx"]
    assert rows[0].passed, notes_of(rows)

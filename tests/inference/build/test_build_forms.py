"""What exports compute, against the core, and what becomes of exports that go wrong."""

import numpy as np
import pytest
from tiny_models import HIDDEN, K, card_of, layers_of, random_weights

from hft import _core
from hft.inference.build.apart import ApartError, call_apart
from hft.inference.build.exports import Network, Part, export, made_apart, parts_of
from hft.inference.build.memories import memories
from hft.inference.build.work import read_network, write_network
from hft.inference.bundle import core_layer


def core_answers(layers, weights, x):
    network = _core.build_network(
        [0.0] * K,
        [1.0] * K,
        100.0,
        [core_layer(e, w) for e, w in zip(layers, weights, strict=True)],
    )
    return _core.NetworkStream(network).batch(x.astype(np.float64))


def rows(n=30):
    return np.random.default_rng(2).normal(size=(n, K)).astype(np.float32)


def stepped(model, layers, weights, x):
    ort = pytest.importorskip("onnxruntime")
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    states = {m.name: np.zeros(m.shape, np.float32) for of in memories(layers, weights) for m in of}
    names, found = [o.name for o in session.get_outputs()], []
    for row in x:
        made = dict(zip(names, session.run(None, {"x": row[None], **states}), strict=True))
        found.append(made["y"][0])
        states = {name: made[f"{name}_out"] for name in states}
    return np.array(found)


@pytest.mark.parametrize("kind", HIDDEN)
@pytest.mark.parametrize(("precision", "off"), [("fp32", 1e-6), ("fp16", 2e-3), ("int8", 0.05)])
def test_an_onnx_step_carries_its_states_as_the_core_does(kind, precision, off):
    pytest.importorskip("onnx")
    from hft.inference.build.onnx_builder import step_model

    layers = layers_of(kind)
    weights, x = random_weights(layers), rows()
    reaches = [4.0, *[4.0 if e.activation in ("relu", "linear") else 1.0 for e in layers[:-1]]]
    model = step_model(layers, weights, precision, reaches)
    assert not {n.op_type for n in model.graph.node} & {"Loop", "Scan", "LSTM", "GRU"}
    away = np.abs(stepped(model, layers, weights, x) - core_answers(layers, weights, x))
    assert away.max() < off
    assert precision == "fp32" or away.max() > 0


@pytest.mark.parametrize("kind", HIDDEN)
@pytest.mark.parametrize(("precision", "off"), [("fp32", 1e-6), ("fp16", 2e-3)])
def test_an_onnx_window_answers_as_the_core_after_as_many_rows(kind, precision, off):
    pytest.importorskip("onnx")
    ort = pytest.importorskip("onnxruntime")
    from hft.inference.build.onnx_builder import window_model

    layers = layers_of(kind)
    weights, x = random_weights(layers), rows()
    model = window_model(layers, weights, len(x), precision)
    assert not {n.op_type for n in model.graph.node} & {"Loop", "Scan"}
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    made = session.run(["y"], {"x": x[None]})[0][0]
    assert np.abs(made - core_answers(layers, weights, x)[-1]).max() < off


def test_layers_kept_in_float_are_as_exact_as_float():
    pytest.importorskip("onnx")
    from hft.inference.build.onnx_builder import step_model

    layers = layers_of("lstm")
    weights, x = random_weights(layers), rows()
    model = step_model(layers, weights, "int8", [4.0, 1.0, 1.0], wide=(0, 1, 2))
    away = np.abs(stepped(model, layers, weights, x) - core_answers(layers, weights, x))
    assert away.max() < 1e-6


def test_states_are_named_by_layers_with_memory():
    layers = layers_of("mixed")
    found = [[m.name for m in of] for of in memories(layers, random_weights(layers))]
    assert found == [["m1"], [], ["h2"], ["h3", "c3"], []]
    conv = layers_of("conv")
    shapes = [m.shape for of in memories(conv, random_weights(conv)) for m in of]
    assert shapes == [(1, 2, K)]


def test_a_network_comes_back_from_its_file(tmp_path):
    layers = layers_of("mixed")
    weights = random_weights(layers)
    write_network(tmp_path / "n.npz", layers, weights)
    found, arrays = read_network(tmp_path / "n.npz")
    assert found == layers
    for ours, theirs in zip(arrays, weights, strict=True):
        assert list(ours) == list(theirs)
        assert all(np.array_equal(ours[name], theirs[name]) for name in ours)


def test_parts_that_there_are():
    streaming = [p.file for p in parts_of(("onnx", "litert"), 0, is_calibrated=True)]
    assert streaming == [
        "step.onnx",
        "step_fp16.onnx",
        "step_int8.onnx",
        "step.tflite",
        "step_dynamic.tflite",
        "step_int8.tflite",
    ]
    windowed = [(p.file, p.form) for p in parts_of(("onnx", "saved_model"), 9, is_calibrated=False)]
    assert windowed == [
        ("window.onnx", "window"),
        ("step.onnx", "step"),
        ("step_fp16.onnx", "step"),
        ("saved_model", "window"),
    ]
    micro = [p.file for p in parts_of(("onnx", "litert"), 0, "MICRO", is_calibrated=True)]
    assert micro == ["micro_step.onnx", "micro_step.tflite"]


@pytest.mark.parametrize(
    ("work", "words"),
    [
        ("hang", "took longer than 1 s"),
        ("crash", "was killed by SIGSEGV"),
        ("killed", "was killed by SIGKILL, perhaps out of memory"),
        ("refuse", "ValueError: no such op"),
        ("starve", "ran out of memory"),
        ("leave", "ended with 3: said before it left"),
        ("unheard_of", "AttributeError"),
    ],
)
def test_work_that_goes_wrong_says_how_in_a_line(work, words):
    with pytest.raises(ApartError) as failed:
        call_apart(f"workers:{work}", {}, limit_s=1.0 if work == "hang" else 30.0)
    assert words in str(failed.value)
    assert "\n" not in str(failed.value)


def test_work_done_apart_comes_back():
    assert call_apart("workers:double", {"value": 21}, 30.0) == 42


@pytest.mark.parametrize(
    ("work", "words"),
    [
        ("hang", "took longer than"),
        ("crash", "SIGSEGV"),
        ("write_nothing", "nothing was written"),
        ("write_little", "4 bytes cannot hold the weights: some were lost"),
    ],
)
def test_an_export_that_goes_wrong_is_a_result(tmp_path, work, words):
    part = Part("litert", "step")
    made = made_apart(
        part,
        f"workers:{work}",
        {"file": str(tmp_path / part.file)},
        tmp_path,
        limit_s=1.0 if work == "hang" else 30.0,
        least_bytes=1000.0,
    )
    assert words in made.why_not
    assert not made.sha256
    assert not (tmp_path / part.file).exists()


def test_an_export_is_there_with_its_hash(tmp_path):
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    layers = card_of(layers_of("gru")).layers
    weights = random_weights(layers)
    write_network(tmp_path / "n.npz", layers, weights)
    made = export(Part("onnx", "step"), Network(tmp_path / "n.npz", layers, weights), tmp_path, 60)
    assert not made.why_not
    assert made.bytes == (tmp_path / "step.onnx").stat().st_size
    again = export(Part("onnx", "step"), Network(tmp_path / "n.npz", layers, weights), tmp_path, 60)
    assert again.sha256 == made.sha256

"""Opening backends: libraries that are not there, threads that cannot be had, gates that failed."""

from __future__ import annotations

import logging
import subprocess
import sys

import msgspec
import numpy as np
import pytest
from backend_cases import card_of, missing, order_of, random_rows, stack_of

from hft.errors import ConfigError, ModelError
from hft.inference.backends import open_backend
from hft.inference.backends.frame import Frame
from hft.inference.build.exports import Part
from hft.inference.build.work import export_native, write_network
from hft.inference.bundle import part_sha256, save_bundle
from hft.inference.card import Gate, Readout, Scaler

ABSENT = {
    "onnx": ("onnxruntime", r"pip install 'hft-framework\[onnx\]'"),
    "litert": ("ai_edge_litert.interpreter", r"pip install 'hft-framework\[litert\]'"),
    "tensorflow": ("tensorflow", r"pip install 'hft-framework\[train\]'"),
}


@pytest.fixture
def with_parts(tmp_path):
    """A function that saves the network `gru` with parts of which only the hash is right."""

    def saved(*parts: Part, **changes):
        stack, home = stack_of("gru"), tmp_path / "gru.bundle"
        home.mkdir(exist_ok=True)
        entries = []
        for part in parts:
            (home / part.file).write_bytes(b"not a model")
            entries.append(part.entry(part_sha256(home / part.file)))
        return save_bundle(home, card_of("gru", stack, entries, **changes), stack.weights)

    return saved


@pytest.mark.parametrize("backend", ABSENT)
def test_a_library_that_is_not_there_is_named_with_its_extra(with_parts, monkeypatch, backend):
    module, words = ABSENT[backend]
    monkeypatch.setitem(sys.modules, module, None)
    bundle = with_parts(Part(backend, "step"))
    with pytest.raises(ConfigError, match=words):
        open_backend(bundle, backend)


@pytest.mark.parametrize("backend", ABSENT)
def test_a_part_that_is_not_there_is_told_with_those_there_are(with_parts, backend):
    bundle = with_parts()
    with pytest.raises(
        ModelError, match=rf"model\.toml: no part of FULL step for {backend}; there are none\."
    ):
        open_backend(bundle, backend)
    bundle = with_parts(Part("onnx", "step"))
    with pytest.raises(ModelError, match=r"FULL fp16 step for onnx; there are step\.onnx"):
        open_backend(bundle, "onnx", precision="fp16")
    with pytest.raises(ModelError, match="no tier LIGHT"):
        open_backend(bundle, "native", tier="LIGHT")
    with pytest.raises(ModelError, match="native backend has no fp16: want fp32 or int8"):
        open_backend(bundle, "native", precision="fp16")


@pytest.mark.parametrize("backend", ABSENT)
def test_threads_are_a_number(with_parts, backend):
    with pytest.raises(ConfigError, match="threads is 0, want 1 or more"):
        open_backend(with_parts(Part(backend, "step")), backend, threads=0)


FAILED = Gate(name="kl", value=0.5, limit=0.01, passed=False, note="on 300 rows")


def with_gates(bundle, *gates, **changes):
    """The bundle with its part once for each gate; `changes` are of the first."""
    (part,) = bundle.card.parts
    parts = [msgspec.structs.replace(part, gates=(gate,) if gate else ()) for gate in gates]
    parts[0] = msgspec.structs.replace(parts[0], **changes)
    card = msgspec.structs.replace(bundle.card, parts=tuple(parts))
    return save_bundle(bundle.path, card, bundle.weights)


@pytest.fixture
def onnx_step(tmp_path):
    if missing("onnx"):
        pytest.skip(f"{missing('onnx')} not installed")
    return onnx_bundle(tmp_path)


def test_a_part_that_failed_its_gates_runs_only_by_name(onnx_step, caplog):
    bundle = with_gates(onnx_step, FAILED)
    words = r"step\.onnx failed its gates .*kl 0\.5, limit 0\.01: on 300 rows.*precision, \"fp32\""
    with pytest.raises(ModelError, match=words):
        open_backend(bundle, "onnx")
    with caplog.at_level(logging.WARNING):
        open_backend(bundle, "onnx", precision="fp32").close()
    assert "step.onnx failed its gates when it was built: kl 0.5" in caplog.text


def test_the_part_that_passed_runs_by_default(onnx_step):
    path = onnx_step.path
    (path / "worse.onnx").write_bytes((path / "step.onnx").read_bytes())
    bundle = with_gates(onnx_step, FAILED, None, file="worse.onnx", precision="fp16")
    with open_backend(bundle, "onnx") as backend:
        assert backend.precision == "fp32"


def test_a_part_that_could_not_be_made_is_told_as_that(onnx_step):
    gate = Gate(name="export", value=1.0, limit=0.0, passed=False, note="took longer than 5 s")
    bundle = with_gates(onnx_step, gate, sha256="")
    with pytest.raises(ModelError, match=r"could not be made .*took longer than 5 s"):
        open_backend(bundle, "onnx", precision="fp32")


def test_a_server_has_no_precision_to_choose(onnx_step):
    with pytest.raises(ConfigError, match="precision is 'int8': a server runs the saved_model"):
        open_backend(onnx_step, "serving", precision="int8", url="http://localhost:1/v1/models/m")


def onnx_bundle(tmp_path, network="gru", part=Part("onnx", "step")):  # noqa: B008 - frozen
    stack, home = stack_of(network), tmp_path / f"{network}.bundle"
    home.mkdir()
    write_network(tmp_path / f"{network}.npz", stack.layers, stack.weights)
    np.save(tmp_path / "rows.npy", np.zeros((2, 6), np.float32))
    export_native(**order_of(tmp_path, home, network, stack, part))
    entry = part.entry(part_sha256(home / part.file))
    return save_bundle(home, card_of(network, stack, [entry]), stack.weights)


def test_a_part_of_another_network_is_refused(tmp_path):
    if missing("onnx"):
        pytest.skip(f"{missing('onnx')} not installed")
    import onnx

    bundle = onnx_bundle(tmp_path)
    file = bundle.path / "step.onnx"
    right = onnx.load(file)

    def with_change(change):
        model = onnx.ModelProto()
        model.CopyFrom(right)
        change(model.graph)
        onnx.save(model, file)
        entry = Part("onnx", "step").entry(part_sha256(file))
        card = msgspec.structs.replace(bundle.card, parts=(entry,))
        return save_bundle(bundle.path, card, bundle.weights)

    def without_output(graph):
        graph.output.pop()

    def renamed(graph):
        graph.output[0].name = "z"
        graph.node[-3].output[0] = "z"

    for change, words in (
        (without_output, r"step\.onnx: no output h2_out; the part is not of this bundle"),
        (renamed, r"step\.onnx: no output y; the part is not of this bundle"),
    ):
        with pytest.raises(ModelError, match=words):
            open_backend(with_change(change), "onnx")


def test_a_part_for_rows_of_another_width_is_refused(tmp_path):
    if missing("onnx"):
        pytest.skip(f"{missing('onnx')} not installed")
    bundle = onnx_bundle(tmp_path, "dense")
    entries = bundle.card.features
    narrow = msgspec.structs.replace(
        bundle.card,
        features=entries[:5],
        layers=(),
        scaler=Scaler(mean=(0.0,) * 5, scale=(1.0,) * 5, clip=3.0),
    )
    bundle = save_bundle(bundle.path, narrow, [])
    with pytest.raises(
        ModelError, match=r"input x is \(1, 6\), the bundle's is \(1, 5\); the part"
    ):
        open_backend(bundle, "onnx")


def test_threads_of_tensorflow_are_set_before_it_begins_or_refused(tmp_path):
    """In a process of its own: they belong to the process."""
    if missing("tensorflow"):
        pytest.skip(f"{missing('tensorflow')} not installed")
    script = tmp_path / "threads.py"
    script.write_text(
        "import warnings\n"
        "warnings.simplefilter('ignore')\n"
        "from hft.errors import ConfigError\n"
        "from hft.inference.backends.tensorflow import running_threads, tensorflow_with\n"
        "tf = tensorflow_with(2)\n"
        "assert running_threads(tf) == (2, 1)\n"
        "tf.constant(1.0) + 1.0\n"
        "tensorflow_with(2)\n"
        "try:\n"
        "    tensorflow_with(1)\n"
        "except ConfigError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=120, check=True
    )
    assert "wants 1 threads for 1 operation at a time" in done.stdout
    assert "runs in this process already with 2 for 1; open the backend before" in done.stdout


def test_what_stands_around_a_network_is_the_cores_to_the_bit():
    """A dense layer of ones and zeros shows what scaling makes; its sums are exact."""
    from hft import _core

    rng = np.random.default_rng(2)
    k, moves, shrink = 7, (-9.5, 0.3, 4.1, 1.7, -0.2, 0.9, 3.3), 0.83
    scaler = Scaler(
        mean=tuple(rng.standard_normal(k)), scale=tuple(rng.uniform(0.1, 9.0, k)), clip=2.5
    )
    layer = _core.dense_layer(np.eye(k, dtype=np.float32), np.zeros(k, np.float32))
    network = _core.build_network(
        list(scaler.mean),
        list(scaler.scale),
        scaler.clip,
        [layer],
        move_ticks=list(moves),
        shrink=shrink,
    )
    rows = rng.standard_normal((500, k)) * 10.0
    theirs = _core.NetworkStream(network).batch(rows)
    frame = Frame(scaler, Readout(move_ticks=moves, shrink=shrink), k)
    x, out = np.zeros(k, np.float32), np.zeros(k + 2, np.float32)
    for row, answer in zip(rows, theirs, strict=True):
        frame.scale(row, np.zeros(k), x)
        frame.read_out(x, out)
        assert out.tobytes() == answer.tobytes()


def test_a_step_can_run_a_window(tmp_path):
    """Where there is no window part the rows are stepped through from nothing: the same answer."""
    if missing("onnx"):
        pytest.skip(f"{missing('onnx')} not installed")
    bundle = onnx_bundle(tmp_path, "window")
    rows, out, want = random_rows(40), np.zeros((2, 5), np.float32), np.zeros((40, 5), np.float32)
    with open_backend(bundle) as native, open_backend(bundle, "onnx") as backend:
        state, other = native.state(), backend.state()
        for row, answer in zip(rows, want, strict=True):
            native.step(state, row, answer)
            backend.step(other, row, out[0])
            np.testing.assert_allclose(out[0], answer, atol=2e-5)  # fewer rows at first, too
        backend.window(rows[-12:], out[1])
    assert out[0].tobytes() == out[1].tobytes()


def test_a_model_of_parts_alone_runs_by_them(tmp_path):
    if missing("onnx"):
        pytest.skip(f"{missing('onnx')} not installed")
    made = onnx_bundle(tmp_path)
    bundle = save_bundle(made.path, msgspec.structs.replace(made.card, layers=()), [])
    with pytest.raises(ModelError, match=r"no native layers; run it by a part: step\.onnx"):
        open_backend(bundle)
    rows, out = random_rows(10), np.zeros((2, 5), np.float32)
    with open_backend(bundle, "onnx") as ours, open_backend(made, "onnx") as theirs:
        ours.window(rows, out[0])
        theirs.window(rows, out[1])
    assert out[0].tobytes() == out[1].tobytes()

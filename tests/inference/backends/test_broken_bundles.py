"""Bundles that were cut short, damaged, put together from others, or built wrong.

Each is refused with a ModelError that names the file and says what to do, before a row is answered.
"""

from __future__ import annotations

import io
import re
import shutil
import zipfile

import msgspec
import numpy as np
import pytest
from backend_cases import BROKEN, BROKEN_PARTS, card_of, missing, stack_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy_lstm import random_dense
from stacks import stack_from

from hft.errors import ModelError
from hft.inference.backends import open_backend
from hft.inference.build.exports import Part
from hft.inference.bundle import Bundle, load_bundle, part_sha256, save_bundle
from hft.inference.card import TierEntry, to_toml

PARTS = BROKEN_PARTS
BACKENDS = tuple(part.backend for part in PARTS)
FILES = {part.backend: part.file for part in PARTS}
FIX = r"build the bundle again|train again|`hft (train|build)"


def light() -> tuple[TierEntry, list[dict]]:
    stack = stack_from([random_dense(np.random.default_rng(5), 6, 3, "softmax")])
    entry = TierEntry(weights="light.npz", weights_sha256="", layers=stack.layers)
    return entry, list(stack.weights)


@pytest.fixture(scope="module")
def whole(parts_folder, tmp_path_factory):
    """A bundle of two tiers and every part that can be made here."""
    home, stack = tmp_path_factory.mktemp("made") / "gru", stack_of("gru")
    home.mkdir()
    parts = [part for part in PARTS if not missing(part.backend)]
    for part in parts:
        copied(parts_folder / "gru.bundle" / part.file, home / part.file)
    entries = [part.entry(part_sha256(home / part.file)) for part in parts]
    entry, weights = light()
    card = card_of("gru", stack, entries, tiers={"LIGHT": entry})
    return save_bundle(home, card, stack.weights, {"LIGHT": weights})


def copied(source, place):
    (shutil.copytree if source.is_dir() else shutil.copyfile)(source, place)


@pytest.fixture
def broken(whole, tmp_path) -> Bundle:
    """A copy to break."""
    shutil.copytree(whole.path, tmp_path / "gru.bundle")
    return load_bundle(tmp_path / "gru.bundle")


def require_refused(call, file, words=""):
    """It says which file, in whatever folder, and what to do."""
    with pytest.raises(ModelError, match=words or None) as caught:
        call()
    assert re.search(re.escape(file), str(caught.value)), caught.value
    assert re.search(FIX, str(caught.value)), caught.value


def rewritten(bundle, **changes):
    """The card as somebody would have written it who believed what is in the folder."""
    card = msgspec.structs.replace(bundle.card, **changes)
    parts = tuple(
        msgspec.structs.replace(entry, sha256=part_sha256(bundle.path / entry.file))
        for entry in card.parts
    )
    tiers = {
        name: msgspec.structs.replace(tier, weights_sha256=part_sha256(bundle.path / tier.weights))
        for name, tier in card.tiers.items()
    }
    sha256 = part_sha256(bundle.path / "weights.npz")
    card = msgspec.structs.replace(card, parts=parts, tiers=tiers, weights_sha256=sha256)
    (bundle.path / "model.toml").write_text(to_toml(card))
    return bundle.path


DAMAGES = {
    "empty": lambda b: b"",
    "cut short": lambda b: b[: len(b) // 2],
    "one byte short": lambda b: b[:-1],
    "one byte long": lambda b: b + b"\0",
    "one bit": lambda b: b[: len(b) // 2] + bytes([b[len(b) // 2] ^ 1]) + b[len(b) // 2 + 1 :],
    "something else": lambda b: b"<html>404 Not Found</html>",
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("file", ["weights.npz", "light.npz"])
def test_damaged_weights_are_refused_when_the_bundle_is_loaded(broken, file, damage):
    path = broken.path / file
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    require_refused(lambda: load_bundle(broken.path), file, "sha256 is .* model.toml says")
    path.unlink()
    require_refused(lambda: load_bundle(broken.path), file, "no such file")


@pytest.mark.parametrize("damage", [d for d in DAMAGES if d not in ("one bit", "one byte long")])
@pytest.mark.parametrize("file", ["weights.npz", "light.npz"])
def test_damaged_weights_are_refused_even_where_the_card_was_written_after(broken, file, damage):
    path = broken.path / file
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    rewritten(broken)
    require_refused(lambda: load_bundle(broken.path), file)


def file_of(bundle, backend):
    if missing(backend):
        pytest.skip(f"{missing(backend)} not installed")
    path = bundle.path / FILES[backend]
    return path / "saved_model.pb" if path.is_dir() else path


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("backend", BACKENDS)
def test_damaged_parts_are_refused_when_they_are_opened(broken, backend, damage):
    path = file_of(broken, backend)
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    bundle = load_bundle(broken.path)  # other forms of it still run
    require_refused(
        lambda: open_backend(bundle, backend), FILES[backend], "sha256 is .* model.toml says"
    )
    open_backend(bundle).close()


@pytest.mark.parametrize("damage", ["empty", "cut short", "something else"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_parts_that_no_library_can_read_are_refused(broken, backend, damage):
    path = file_of(broken, backend)
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    bundle = load_bundle(rewritten(broken))
    require_refused(lambda: open_backend(bundle, backend), FILES[backend])


def test_a_part_that_is_gone_or_has_grown_is_refused(broken):
    file_of(broken, "tensorflow")
    (broken.path / "saved_model" / "variables" / "more").write_bytes(b"")
    require_refused(lambda: open_backend(broken, "tensorflow"), "saved_model", "sha256 is")
    shutil.rmtree(broken.path / "saved_model")
    require_refused(lambda: open_backend(broken, "tensorflow"), "saved_model", "no such part")


def test_swapped_files_are_refused(broken):
    a, b = broken.path / "weights.npz", broken.path / "light.npz"
    kept = a.read_bytes()
    a.write_bytes(b.read_bytes())
    b.write_bytes(kept)
    require_refused(lambda: load_bundle(broken.path), "weights.npz", "not from the same training")
    require_refused(lambda: load_bundle(rewritten(broken)), "weights.npz", "layer1_recurrent")


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_part_of_another_backend_is_refused(broken, backend):
    for other in BACKENDS:
        if other == backend:
            continue
        file_of(broken, other)
        parts = [Part(backend, "step").entry("")]
        parts[0] = msgspec.structs.replace(parts[0], file=FILES[other])
        bundle = load_bundle(rewritten(broken, parts=tuple(parts)))
        require_refused(lambda b=bundle: open_backend(b, backend), FILES[other])


def test_a_part_of_another_bundle_is_refused(broken, parts_folder):
    """Of a network of other layers, even with the right hash: its states are not these."""
    file_of(broken, "onnx")
    home = parts_folder / "window.bundle"
    shutil.copy(home / "window.onnx", broken.path / "step.onnx")
    require_refused(lambda: open_backend(broken, "onnx"), "step.onnx", "sha256 is")
    bundle = load_bundle(rewritten(broken))
    require_refused(lambda: open_backend(bundle, "onnx"), "step.onnx", r"input x is \(1, 12, 6\)")


def saved_with(broken, change, file="weights.npz"):
    """The weights file as `change` leaves its arrays, the card made to fit."""
    with np.load(broken.path / file) as arrays:
        kept = dict(arrays)
    change(kept)
    np.savez(broken.path / file, **kept)
    return rewritten(broken)


def put(name, change):
    def do(arrays):
        arrays[name] = change(arrays[name])

    return do


def with_nan(array):
    array = array.copy()
    array.flat[3] = np.nan
    return array


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda a: a.pop("layer2_bias"), "no array 'layer2_bias', which layer 2 .gru. needs"),
        (put("layer1_kernel", with_nan), "layer 1 kernel: value 3 is not finite"),
        (
            put("layer3_bias", lambda a: a * np.inf),
            "layer 3 bias: value 0 is not finite, nor are 2",
        ),
        (put("layer1_kernel", lambda a: a[:5]), "layer 1.*inputs"),
        (put("layer1_recurrent", lambda a: a[:, :-3]), "recurrent"),
        (put("layer1_kernel", lambda a: a.T), r"layer1_kernel|layer 1"),
        (put("layer1_kernel", lambda a: a.ravel()), r"is \(576,\) float32, want 2 axes"),
        (put("layer1_bias", lambda a: a[0]), r"layer1_bias is \(96,\) float32, want 2 axes"),
        (put("layer2_bias", lambda a: np.float32(0)), r"layer2_bias is \(\) float32, want 2 axes"),
        (put("layer1_kernel", lambda a: a.astype(np.float64)), "float64, want 2 axes of float32"),
        (put("layer1_kernel", lambda a: a.astype(str)), "want 2 axes of float32"),
        (put("layer3_kernel", lambda a: a[:, :2]), "layer 3"),
        (put("layer3_bias", lambda a: a[:2]), "layer 3 has 2 units, model.toml says 3"),
        (put("inputs", lambda a: a[::-1]), "feature 1 is .* but the weights' input 1 is"),
        (put("inputs", lambda a: a[:-1]), "features has 6 entries, the weights take 5"),
        (put("inputs", lambda a: np.array("spread")), "no array 'inputs' of one axis"),
        (lambda a: a.pop("inputs"), "no array 'inputs'"),
    ],
)
def test_weights_of_wrong_shape_type_or_value_are_refused(broken, change, words):
    path = saved_with(broken, change)
    with pytest.raises(ModelError, match=words) as caught:
        load_bundle(path)
    file = "model.toml" if "feature" in words else "weights.npz"
    assert str(path / file) in str(caught.value)


def test_weights_of_a_lesser_tier_are_held_to_the_same(broken):
    path = saved_with(broken, put("layer1_kernel", with_nan), "light.npz")
    require_refused(lambda: load_bundle(path), "light.npz", "layer 1 kernel: value 3 is not finite")


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_part_with_nan_in_its_weights_is_refused(broken, parts_folder, backend):
    path = file_of(broken, backend)
    name = FILES[backend]
    if path.name != name:  # of a folder
        shutil.rmtree(broken.path / name)
        shutil.copytree(parts_folder / BROKEN / name, broken.path / name)
    else:
        shutil.copy(parts_folder / BROKEN / name, path)
    bundle = load_bundle(rewritten(broken))
    require_refused(lambda: open_backend(bundle, backend), name, "weights are not finite")


def test_an_archive_with_more_than_arrays_in_it_is_not_read(broken):
    """A pickle among the arrays would be code."""
    bad = io.BytesIO()
    np.save(bad, np.array([{}], dtype=object), allow_pickle=True)
    with zipfile.ZipFile(broken.path / "weights.npz", "a") as archive:
        archive.writestr("evil.npy", bad.getvalue())
    require_refused(lambda: load_bundle(rewritten(broken)), "weights.npz", "allow_pickle")


@pytest.mark.parametrize("file", ["../gru.npz", "/etc/passwd", "", "a/../../b"])
def test_a_file_outside_the_bundle_is_not_read(broken, file):
    tier = msgspec.structs.replace(broken.card.tiers["LIGHT"], weights=file)
    card = msgspec.structs.replace(broken.card, tiers={"LIGHT": tier})
    (broken.path / "model.toml").write_text(to_toml(card))
    require_refused(lambda: load_bundle(broken.path), "model.toml", "not a file of the bundle")


def test_a_card_that_is_a_folder_or_no_text_is_refused(broken):
    card = broken.path / "model.toml"
    card.write_bytes(b"\xff\xfe\x00")
    require_refused(lambda: load_bundle(broken.path), "model.toml")
    card.unlink()
    require_refused(lambda: load_bundle(broken.path), "model.toml", "no such file")
    card.mkdir()
    with pytest.raises(ModelError, match=r"model\.toml: cannot be read"):
        load_bundle(broken.path)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (r"clip = 4.0", "clip = 0.0", "scaler clip: must be positive, is 0"),
        (r"clip = 4.0", "clip = nan", "scaler clip: must be positive, is nan"),
        (r"shrink = 0.8", "shrink = inf", "readout shrink: value 0 is not finite"),
        (r"outputs = \[.*\]", "outputs = []", "outputs: must name one or more"),
        (r"move_ticks = \[-9.5, ", "move_ticks = [nan, ", "move_ticks: value 0 is not finite"),
        (r"scale = \[", "scale = [-1.0, ", "scaler scale: has 7 values, must have 6"),
    ],
)
def test_scaling_and_readout_are_checked_without_native_layers_too(broken, old, new, words):
    for layers in (broken.card.layers, ()):
        bundle = save_bundle(
            broken.path,
            msgspec.structs.replace(broken.card, layers=layers, tiers={}),
            broken.weights if layers else [],
        )
        text = (bundle.path / "model.toml").read_text()
        assert re.search(old, text)
        (bundle.path / "model.toml").write_text(re.sub(old, new, text, count=1))
        with pytest.raises(ModelError, match=words) as caught:
            load_bundle(broken.path)
        assert str(broken.path / "model.toml") in str(caught.value)


def read_or_refused(folder):
    """The bundle, or None with a word on a file of it."""
    try:
        return load_bundle(folder)
    except ModelError as error:
        said = str(error)
    assert str(folder) in said
    return None


FUZZ = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@FUZZ
@given(data=st.data())
def test_whatever_happens_to_a_card_it_is_read_or_refused(broken, whole, data):
    text = (whole.path / "model.toml").read_bytes()
    at = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(at, min(at + 20, len(text))))
    put_in = data.draw(st.binary(max_size=4) | st.sampled_from([b"nan", b"-1", b'"', b"[[", b"0"]))
    (broken.path / "model.toml").write_bytes(text[:at] + put_in + text[end:])
    bundle = read_or_refused(broken.path)
    for tier in bundle.tiers if bundle else ():
        if bundle.layers(tier):
            bundle.network(tier=tier)


@FUZZ
@given(data=st.data())
def test_whatever_happens_to_weights_the_hash_is_not_the_only_guard(broken, whole, data):
    blob = bytearray((whole.path / "weights.npz").read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(blob) - 1))
        blob[at] = data.draw(st.integers(0, 255))
    (broken.path / "weights.npz").write_bytes(bytes(blob[: data.draw(st.integers(1, len(blob)))]))
    read_or_refused(rewritten(broken))

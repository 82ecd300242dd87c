import re

import msgspec
import numpy as np
import pytest
from cards import FEATURES, card, layers, weights
from numpy_lstm import run

from hft.errors import ModelError
from hft.features import Features, OnTouch, feature, spread, trade_flow
from hft.inference.bundle import load_bundle, save_bundle


@pytest.fixture
def folder(tmp_path):
    save_bundle(tmp_path / "tiny.bundle", card(), weights())
    return tmp_path / "tiny.bundle"


def test_what_was_saved_is_loaded(folder):
    bundle = load_bundle(folder)
    assert bundle.features == FEATURES
    assert bundle.outputs == ("down", "flat", "up", "alpha_ticks", "confidence")
    assert msgspec.structs.replace(bundle.card, weights_sha256="") == card()
    assert bundle.network().parameters == sum(a.size for layer in weights() for a in layer.values())


def test_the_network_is_the_one_that_was_saved(folder):
    from hft import _core

    rows = np.random.default_rng(5).standard_normal((40, 3)) * 3.0
    out = _core.NetworkStream(load_bundle(folder).network()).batch(rows)
    expected = run(layers(), np.clip((rows - [1.0, 0.0, 0.5]) / [1.0, 0.5, 2.0], -5, 5))
    np.testing.assert_allclose(out[:, :3], expected, atol=1e-5)
    np.testing.assert_allclose(out[:, 3], 0.8 * expected @ [-9.5, 0.0, 9.25], atol=1e-4)


def test_the_same_content_gives_the_same_bytes(folder, tmp_path):
    save_bundle(tmp_path / "again", card(), weights())
    for name in ("model.toml", "weights.npz"):
        assert (folder / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


@pytest.mark.parametrize("name", ["model.toml", "weights.npz"])
def test_a_missing_file_is_named(folder, name):
    (folder / name).unlink()
    with pytest.raises(ModelError, match=rf"{name}: no such file"):
        load_bundle(folder)


def test_weights_of_another_training_are_refused(folder):
    blob = bytearray((folder / "weights.npz").read_bytes())
    blob[200] ^= 1
    (folder / "weights.npz").write_bytes(blob)
    with pytest.raises(ModelError, match="not from the same training"):
        load_bundle(folder)


def edit(folder, old, new):
    text = (folder / "model.toml").read_text()
    assert re.search(old, text)
    (folder / "model.toml").write_text(re.sub(old, new, text, count=1))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("levels = 5", "levels = 4", r"feature 2 is imbalance_5 \(imbalance levels=4"),
        ('kind = "imbalance"', 'kind = "imbalanse"', "no feature kind 'imbalanse'"),
        ("levels = 5", "levels = 99", "levels is 99, must be 1 to 32"),
        ('window = "100ms"', 'window = "soon"', "'soon' is not a duration"),
        ("format = 2", "format = 1", "format is 1, this version reads 2"),
        ("units = 8", "units = 9", "layer 1 has 8 units, model.toml says 9"),
        ('outputs = \\["down", ', "outputs = [", "move_ticks: has 3 values, must have 2"),
        (r"mean = \[1.0, ", "mean = [", "scaler mean: has 2 values, must have 3"),
        (r"scale = \[1.0, ", "scale = [", "scaler scale: has 2 values, must have 3"),
        (r"scale = \[1.0, ", "scale = [0.0, ", "scaler scale: must be positive"),
        (r"scale = \[1.0, ", "scale = [nan, ", "value 0 is not finite"),
        ("horizon_ns = 500000000", "horizon_ns = -1", "horizon_ns"),
        ("horizon_ns", "horizon", "unknown field `horizon`"),
        ("horizon_ns = ", "horizon_ns == ", "line 4"),
        (r"move_ticks = \[-9.5, ", "move_ticks = [", "move_ticks: has 2 values, must have 3"),
    ],
)
def test_a_card_that_does_not_fit_is_refused(folder, old, new, words):
    edit(folder, old, new)
    with pytest.raises(ModelError, match=words) as caught:
        load_bundle(folder)
    assert str(folder) in str(caught.value)


def test_features_in_another_order_are_refused(folder):
    text = (folder / "model.toml").read_text().splitlines()
    first = next(i for i, line in enumerate(text) if "imbalance" in line)
    text[first], text[first + 1] = text[first + 1], text[first]
    (folder / "model.toml").write_text("\n".join(text))
    with pytest.raises(ModelError, match=r"feature 2 is ofi_3_100ms_log .* input 2 is imbalance_5"):
        load_bundle(folder)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda w: w[0].pop("bias"), "no array 'layer1_bias', which layer 1 .lstm. needs"),
        (lambda w: w[0].update(kernel=w[0]["kernel"][:2]), "layer 1: takes 2 inputs"),
        (
            lambda w: w[0].update(recurrent=w[0]["recurrent"][:, :8]),
            "recurrent kernel: has 64 values",
        ),
        (lambda w: w[1]["kernel"].fill(np.inf), "layer 2 kernel: value 0 is not finite"),
    ],
)
def test_weights_that_do_not_fit_are_refused(tmp_path, change, words):
    broken = weights()
    change(broken)
    with pytest.raises(ModelError, match=words):
        save_bundle(tmp_path / "broken", card(), broken)


def test_a_pickle_is_not_read(folder):
    np.savez(folder / "weights.npz", layer1_kernel=np.array([{}], dtype=object))
    sha = __import__("hashlib").sha256((folder / "weights.npz").read_bytes()).hexdigest()
    edit(folder, 'weights_sha256 = "[0-9a-f]+"', f'weights_sha256 = "{sha}"')
    with pytest.raises(ModelError, match=r"weights\.npz.*allow_pickle"):
        load_bundle(folder)


def test_an_own_feature_comes_from_code(tmp_path):
    @feature(window="250ms", state=0.0)
    def pressure(state, row):
        return state, row.signed_lots

    own = Features(spread(), pressure, trade_flow("1s"), trigger=OnTouch())
    save_bundle(tmp_path / "own", card(own), weights())
    assert load_bundle(tmp_path / "own", [pressure]).features == own
    with pytest.raises(ModelError, match="own feature 'pressure' is not given"):
        load_bundle(tmp_path / "own")

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from numpy_lstm import random_dense, random_lstm, run

from hft import _core
from hft.data.synth import SynthConfig, synthesize_chunks
from hft.errors import ConfigError
from hft.inference.bundle import core_layer, load_bundle
from hft.inference.card import LayerEntry
from hft.inference.dataset import collect
from hft.inference.task import TrainConfig, prepare
from hft.inference.train import INPUTS


def quiet(line):
    pass


@pytest.fixture(scope="module")
def rows():
    synth = SynthConfig(
        seed=5, duration_s=150, messages_per_s=2_000, calm_s=1e6, alpha_strength=1.0
    )
    return labelled(synth, INPUTS, TrainConfig())


def labelled(synth, features, config):
    chunks = (chunk for _, chunk in synthesize_chunks(synth))
    return collect(chunks, features, latency_ns=config.latency_ns, horizons_ns=config.horizons_ns)


def test_scaling_and_classes_come_from_the_training_slice_alone(rows):
    config = TrainConfig()
    task = prepare(rows, config, quiet)
    cut = task.parts.calibrate.start
    later = np.arange(len(rows)) >= cut
    changed = replace(
        rows,
        x=np.where(later[:, None], rows.x * 3 + 7, rows.x),
        moves={h: np.where(later, moves * 2 + 50, moves) for h, moves in rows.moves.items()},
    )
    other = prepare(changed, config, quiet)
    assert other.scaler == task.scaler
    assert other.move_ticks == task.move_ticks
    assert other.horizon_ns == task.horizon_ns
    x = task.inputs[task.parts.train]
    assert np.abs(np.average(x, axis=0, weights=task.weight[task.parts.train])).max() < 0.1


def test_training_learns_and_is_reproducible(rows, tmp_path):
    pytest.importorskip("keras", reason="training needs the extra [train]")
    from hft.inference.train import train

    config = TrainConfig(units=(8,), lanes=16, window=50, epochs=2, learning_rate=5e-3)
    found = [
        train(
            rows, INPUTS, config, out=tmp_path / n / "tiny.bundle", data="synthetic", report=quiet
        )
        for n in ("a", "b")
    ]
    assert found[0].card == found[1].card
    for name in ("model.toml", "weights.npz"):
        a, b = ((bundle.path / name).read_bytes() for bundle in found)
        assert a == b
    metrics = load_bundle(tmp_path / "a" / "tiny.bundle").card.metrics
    assert metrics["parity_keras"] < 1e-5
    assert metrics["auc_up"] > 0.55


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--latency", "soon"], 2, "'soon' is not a duration"),
        (["--units", "32,wide"], 2, "'32,wide': want whole numbers"),
    ],
)
def test_a_wrong_argument_is_one_line(arguments, code, words, capsys):
    from hft.inference.train import main

    with pytest.raises(SystemExit) as end:
        main(["--out", "x.bundle", *arguments])
    assert end.value.code == code
    assert words in capsys.readouterr().err.splitlines()[-1]


def test_too_little_data_for_the_lanes_is_said(rows):
    pytest.importorskip("keras", reason="training needs the extra [train]")
    from hft.inference.keras_fit import fit

    config = TrainConfig(lanes=2_000)
    with pytest.raises(ConfigError, match="too few for 2000 lanes"):
        fit(prepare(rows, config, quiet), config, quiet)


@pytest.mark.parametrize("units", [(64, 64), (5,), (17, 9)])
def test_the_native_network_is_keras(units):
    keras = pytest.importorskip("keras", reason="Keras is not installed")
    rng = np.random.default_rng(2)
    sizes = (6, *units)
    layers = [random_lstm(rng, a, b) for a, b in pairwise(sizes)]
    layers.append(random_dense(rng, units[-1], 3, "softmax"))
    x = rng.standard_normal((120, 6))
    model = keras.Sequential(
        [keras.Input((None, 6))]
        + [keras.layers.LSTM(u, return_sequences=True) for u in units]
        + [keras.layers.Dense(3, activation="softmax")]
    )
    for ours, theirs in zip(layers, model.layers, strict=True):
        theirs.set_weights([ours[k] for k in ("kernel", "recurrent", "bias") if k in ours])
    entries = [LayerEntry(kind="lstm", units=u) for u in units]
    entries.append(LayerEntry(kind="dense", units=3, activation="softmax"))
    network = _core.build_network(
        [0.0] * 6, [1.0] * 6, 10.0, [core_layer(e, w) for e, w in zip(entries, layers, strict=True)]
    )
    native = _core.NetworkStream(network).batch(x)
    np.testing.assert_allclose(native, model.predict(x[None], verbose=0)[0], atol=1e-5)
    np.testing.assert_allclose(native, run(layers, x), atol=1e-5)


def test_the_shipped_bundle_forecasts_the_synthetic_market(request):
    """Other data than it was trained on: what a backtest of strategies/lstm_mm.py meets."""
    folder = request.config.rootpath / "strategies" / "lstm_mm.bundle"
    bundle = load_bundle(folder)
    assert sum(f.stat().st_size for f in folder.iterdir()) < 400_000
    config = TrainConfig(horizons_ns=(bundle.card.horizon_ns,))
    synth = SynthConfig(seed=77, duration_s=240, calm_s=1e6)
    rows = labelled(synth, bundle.features, config)
    task = prepare(rows, config, quiet)
    out = _core.NetworkStream(bundle.network()).batch(rows.x)
    known = slice(bundle.card.warm_up_rows, task.parts.test.stop)
    alpha = out[known, bundle.outputs.index("alpha_ticks")]
    assert np.corrcoef(alpha, task.moves[known])[0, 1] > 0.12

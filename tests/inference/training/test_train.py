import math
from dataclasses import replace
from itertools import pairwise

import msgspec
import numpy as np
import pytest
from numpy_lstm import random_dense, random_lstm, run

from hft import _core
from hft.data.synth import SynthConfig, synthesize_chunks
from hft.errors import ConfigError, DataError
from hft.inference.bundle import core_layer, load_bundle
from hft.inference.card import LayerEntry
from hft.inference.dataset.in_memory import collect
from hft.inference.training.scores import calibration_error, log_loss
from hft.inference.training.task import TrainConfig, prepare
from hft.inference.training.train import INPUTS, train

TINY = TrainConfig(model="lstm:8", lanes=16, reach_rows=50, epochs=2, learning_rate=5e-3)
KERAS = {"reason": "training needs the extra [train]"}


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
    return collect([chunks], features, latency_ns=config.latency_ns, horizons_ns=config.horizons_ns)


def trained(rows, out, **changes):
    pytest.importorskip("keras", **KERAS)
    config = msgspec.structs.replace(TINY, **changes)
    return train(rows, INPUTS, config, out=out / "tiny.bundle", data="synthetic", report=quiet)


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


def test_rows_of_a_model_that_begins_anew_do_not_count(rows):
    border = len(rows) // 3
    memory = (np.arange(len(rows)) >= border).astype(np.int64)
    task = prepare(replace(rows, memory=memory), TrainConfig(warm_up_rows=40), quiet)
    assert not task.weight[border : border + 40].any()
    assert task.weight[border + 40 : border + 80].any()
    with pytest.raises(DataError, match="comes 5000 rows after a model begins anew"):
        prepare(replace(rows, memory=memory), TrainConfig(warm_up_rows=5_000), quiet)


def test_training_learns_and_is_reproducible(rows, tmp_path):
    found = [trained(rows, tmp_path / name) for name in ("a", "b")]
    assert found[0].card == found[1].card
    for name in ("model.toml", "weights.npz", "model.keras", "training.md"):
        a, b = ((bundle.path / name).read_bytes() for bundle in found)
        assert a == b, name
    metrics = load_bundle(tmp_path / "a" / "tiny.bundle").card.metrics
    assert metrics["parity_keras"] < 1e-5
    assert metrics["auc_up"] > 0.55
    assert metrics["auc_up"] > metrics["placebo_auc_up"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "b"]


@pytest.mark.parametrize(
    ("model", "window_rows"),
    [
        ("gru:8", 0),
        ("conv:8x3,8x4+lstm:8", 0),
        ("dense:16", 0),
        ("lstm:8", 30),
        ("conv:8x3+gru:4", 20),
        ("dense:8", 5),
    ],
)
def test_every_kind_of_layer_runs_natively_as_keras_trained_it(rows, tmp_path, model, window_rows):
    bundle = trained(rows, tmp_path, model=model, window_rows=window_rows, epochs=1)
    assert bundle.card.metrics["parity_keras"] < 1e-5
    assert bundle.card.window_rows == window_rows
    assert math.isfinite(bundle.card.metrics["log_loss"])
    if window_rows:
        assert bundle.card.metrics["auc_up"] > 0.7


def test_a_transformer_is_a_part_and_its_temperature_is_in_it(rows, tmp_path, caplog):
    caplog.set_level("INFO")
    pytest.importorskip("tensorflow", **KERAS)
    import keras
    import tensorflow as tf

    lines = []
    config = msgspec.structs.replace(
        TINY, model="transformer:d=8,heads=2,layers=1", window_rows=20, epochs=1
    )
    task = prepare(rows, config, quiet)
    out = tmp_path / "t.bundle"
    bundle = train(rows, INPUTS, config, out=out, data="synthetic", report=lines.append)
    assert bundle.card.layers == ()
    assert bundle.card.metrics["auc_up"] > 0.7
    _, folder = bundle.part("tensorflow", form="window")
    saved = tf.saved_model.load(str(folder)).signatures["serving_default"]
    cut = task.parts.test
    ends = np.arange(cut.start, cut.start + 200)
    windows = task.inputs[ends[:, None] + np.arange(-19, 1)]
    theirs = saved(x=tf.constant(windows))["y"].numpy()
    kept = keras.saving.load_model(bundle.path / "model.keras")
    np.testing.assert_allclose(theirs, kept.predict_on_batch(windows), atol=1e-5)
    assert next(line for line in lines if line.startswith("temperature")) != "temperature 1.000"
    assert "Assets written" not in caplog.text


@pytest.mark.parametrize("model", ["lstm:6,5", "gru:6", "conv:5x4+lstm:4", "dense:7"])
def test_lanes_forget_where_the_native_network_does(rows, model):
    """The loss that Keras sees of an untrained model is the native network's, border or not."""
    pytest.importorskip("keras", **KERAS)
    from hft.inference.answers import answers
    from hft.inference.training.keras_models import keras_seeded
    from hft.inference.training.lanes import lanes_of
    from hft.inference.training.learner import learner_of
    from hft.inference.training.model_spec import model_spec

    config = TrainConfig(
        model=model, lanes=4, reach_rows=30, warm_up_rows=10, learning_rate=1e-12, epochs=1
    )
    borders = np.zeros(len(rows), np.int64)
    borders[[217, 700, 701, 1500, 2222]] = 1
    broken = replace(rows, memory=np.cumsum(borders))
    task = prepare(broken, config, quiet)
    learner = learner_of(keras_seeded(3), task, model_spec(model), config)
    spans = lanes_of(broken, task.parts.train, 4, 30)
    seen = learner.epoch(0, None)

    lane = np.searchsorted(spans.begins, np.arange(len(rows)), side="right")
    cut = slice(int(spans.begins[0]), task.parts.train.stop)
    per_lane = replace(broken, memory=broken.memory + 10 * lane)
    fitted = learner.fitted()
    native = answers(fitted.stack.network(), per_lane, cut)
    weight = task.weight[cut].copy()
    warm = 10 if model_spec(model).reach is None else model_spec(model).reach
    weight[per_lane.since_fresh()[cut] < warm] = 0.0
    ours = -weight * np.log(native[np.arange(len(native)), task.label[cut]])
    assert seen == pytest.approx(ours.sum() / weight.sum(), rel=1e-5)
    unbroken = answers(fitted.stack.network(), replace(broken, memory=lane), cut)
    if warm:
        assert np.abs(unbroken - native).max() > 1e-4


def test_class_weights_are_taken_out_of_the_probabilities_again(rows, tmp_path):
    """Rare classes count more while learning; what is forecast are frequencies all the same."""
    plain = trained(rows, tmp_path / "plain", window_rows=10, epochs=3)
    skewed = trained(rows, tmp_path / "skewed", window_rows=10, epochs=3, class_weights="4,1,4")
    task = prepare(rows, msgspec.structs.replace(TINY, window_rows=10), quiet)
    cut = task.parts.test
    known, up = task.weight[cut] > 0, task.label[cut] == 2
    losses, errors = [], []
    for bundle in (plain, skewed):
        out = _core.NetworkWindow(bundle.network(), 10).steps(
            np.ascontiguousarray(rows.x[cut.start - 9 : cut.stop])
        )
        p = out[9:, :3].astype(np.float64)
        losses.append(log_loss(p, task.label[cut], task.weight[cut]))
        errors.append(calibration_error(p[known, 2], up[known]))
    assert losses[1] == pytest.approx(losses[0], abs=0.1)
    assert errors[1] < errors[0] + 0.05


def test_training_ends_when_it_gets_no_better_and_keeps_the_best(rows):
    pytest.importorskip("keras", **KERAS)
    from hft.inference.training.keras_fit import fit

    config = msgspec.structs.replace(TINY, model="dense:8", learning_rate=0.5, epochs=30)
    task, lines = prepare(rows, config, quiet), []
    found = fit(task, config, lines.append)
    assert lines[-1].startswith("no better for 2 epochs")
    assert len(lines) < 31
    cut = task.parts.calibrate
    loss = log_loss(found.probabilities(task, cut), task.label[cut], task.weight[cut])
    told = [float(line.split("later ")[1]) for line in lines[:-1]]
    assert loss == pytest.approx(min(told), abs=1e-4)


def test_an_interrupt_leaves_nothing_behind(rows, tmp_path):
    pytest.importorskip("keras", **KERAS)

    def interrupt(seen, done):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(rows, INPUTS, TINY, out=tmp_path / "x.bundle", data="", report=quiet, tell=interrupt)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"lanes": 2_000}, ConfigError, "too few for 2000 lanes"),
        (
            {"lanes": 100, "reach_rows": 5, "warm_up_rows": 900},
            ConfigError,
            "no training row counts",
        ),
        ({"window_rows": 60_000}, DataError, "comes 59999 rows after a model begins anew"),
        ({"model": "transformer:d=8"}, ConfigError, "say how long with --window"),
        ({"model": "dense:8", "learning_rate": float("nan")}, ConfigError, "diverged in epoch 1"),
        ({"class_weights": "heavy"}, ConfigError, "want none, balanced, or three numbers"),
        ({"latency_weight": 0.1}, ConfigError, "--lambda needs --latency-table"),
    ],
)
def test_what_cannot_be_trained_is_said(rows, tmp_path, changes, error, words):
    with pytest.raises(error, match=words):
        trained(rows, tmp_path, **changes)
    assert list(tmp_path.iterdir()) == []


def test_a_bundle_that_is_there_stays(rows, tmp_path):
    (tmp_path / "tiny.bundle").mkdir()
    with pytest.raises(ConfigError, match="exists: give another name"):
        trained(rows, tmp_path)
    with pytest.raises(ConfigError, match=r"a bundle's name ends in \.bundle"):
        train(rows, INPUTS, TINY, out=tmp_path / "x", data="", report=quiet)


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

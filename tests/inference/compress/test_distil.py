from functools import partial

import numpy as np
import pytest
from numpy_lstm import random_dense, random_lstm, softmax
from stacks import stack_from, task_of
from test_bundle import card

from hft.errors import ConfigError, ModelError
from hft.inference.bundle import load_bundle, save_bundle
from hft.inference.card import Readout
from hft.inference.compress.distil import (
    DistilConfig,
    compare,
    distil,
    micro,
    refit_head,
)
from hft.inference.compress.lessons import Lesson, lesson_of
from hft.inference.compress.prune_units import prune_units
from hft.inference.compress.quantise import divergence
from hft.inference.compress.stack import stack_of

RNG = np.random.default_rng(6)
LINEAR = stack_from([random_dense(RNG, 3, 3, "softmax")])
READOUT = Readout(move_ticks=(-2.0, 0.0, 2.0), shrink=1.0)


def quiet(line):
    pass


def task(n=6_000, noise=1.0):
    """Moves that the first column tells half of; the last third of each thousand rows stormy."""
    x = RNG.standard_normal((n, 3))
    moves = x[:, 0] + noise * RNG.standard_normal(n)
    return task_of(x, moves, storm=np.arange(n) % 1_000 >= 667)


def teacher_of(stack, task):
    return partial(stack.outputs, task.rows)


def inputs_of(task):
    return lambda cut: LINEAR.scaled(task.rows.x[cut])


def test_micro_finds_the_weights_of_a_linear_teacher():
    made = task()
    lesson = lesson_of(made, inputs_of(made), teacher_of(LINEAR, made), 10_000)
    found = micro(lesson, LINEAR.scaler, ridge=0.0).weights[0]
    truth = LINEAR.weights[0]
    for name in ("kernel", "bias"):  # a softmax is blind to what all its inputs share
        ours, theirs = (w[name] - w[name].mean(axis=-1, keepdims=True) for w in (found, truth))
        np.testing.assert_allclose(ours, theirs, atol=1e-3)


def test_at_the_optimum_of_micro_no_residual_is_left_along_any_column():
    """The equations of maximum likelihood, by weight."""
    x = RNG.standard_normal((2_000, 3)).astype(np.float32)
    target = RNG.dirichlet([1.0, 2.0, 3.0], 2_000)
    weight = RNG.uniform(0.1, 1.9, 2_000)
    ridge = 0.01
    stack = micro(Lesson(x, target, weight), LINEAR.scaler, ridge)
    kernel, bias = stack.weights[0]["kernel"], stack.weights[0]["bias"]
    p = np.array([softmax(row @ kernel + bias) for row in x.astype(np.float64)])
    share = (weight / weight.sum())[:, None]
    np.testing.assert_allclose((share * (p - target)).sum(axis=0), 0.0, atol=1e-5)
    np.testing.assert_allclose(x.T @ (share * (p - target)), -ridge * kernel, atol=1e-5)


def test_a_row_counts_as_long_as_it_was_the_newest():
    """Rows that lived n times as long weigh as much as n copies."""
    x = RNG.standard_normal((400, 3)).astype(np.float32)
    target = RNG.dirichlet([1.0, 1.0, 1.0], 400)
    copies = RNG.integers(1, 5, 400)
    weighted = micro(Lesson(x, target, copies.astype(float)), LINEAR.scaler, 1e-3)
    repeated = [np.repeat(a, copies, axis=0) for a in (x, target)]
    copied = micro(Lesson(*repeated, np.ones(copies.sum())), LINEAR.scaler, 1e-3)
    for name in ("kernel", "bias"):
        np.testing.assert_allclose(weighted.weights[0][name], copied.weights[0][name], atol=1e-4)


def test_the_lesson_weighs_by_time_and_is_evenly_chosen():
    made = task_of(RNG.standard_normal((1_000, 3)), np.zeros(1_000), alive_ns=np.arange(1_000))
    lesson = lesson_of(made, inputs_of(made), teacher_of(LINEAR, made), 61)
    assert len(lesson.x) == 61
    assert lesson.weight.mean() == pytest.approx(1.0)
    assert np.corrcoef(lesson.weight, np.arange(61))[0, 1] > 0.999
    np.testing.assert_allclose(lesson.x[-1], made.rows.x[599].astype(np.float32))


def test_a_tier_that_is_full_agrees_with_it_in_every_weather():
    made = task()
    full = LINEAR.outputs(made.rows, made.parts.test)
    found = compare(LINEAR, READOUT, made, full, READOUT)
    for weather in ("", "calm_", "storm_"):
        assert found[weather + "kl"] == 0.0
        assert found[weather + "argmax"] == 1.0
        assert found[weather + "alpha"] == pytest.approx(1.0)


def test_micro_of_an_lstm_sees_one_row_and_knows_what_it_lost():
    made = task()
    lstm = stack_from([random_lstm(RNG, 3, 8), random_dense(RNG, 8, 3, "softmax")])
    found = distil("MICRO", made, lstm.scaler, READOUT, teacher_of(lstm, made), report=quiet)
    assert [e.kind for e in found.stack.layers] == ["dense"]
    assert not found.stack.has_memory
    assert found.entry.warm_up_rows == 0
    assert 0.0 < found.metrics["micro_kl"] < 0.05
    assert 0.5 < found.metrics["micro_alpha"] < 0.999
    assert {"micro_calm_argmax", "micro_storm_argmax"} <= set(found.metrics)


def test_the_readout_is_the_slope_of_moves_on_the_tier_s_own_forecast():
    made = task(n=20_000, noise=0.2)
    found = distil("MICRO", made, LINEAR.scaler, READOUT, teacher_of(LINEAR, made), report=quiet)
    cut = made.parts.calibrate
    alpha = found.stack.outputs(made.rows, cut) @ np.array(READOUT.move_ticks)
    assert found.entry.readout.move_ticks == READOUT.move_ticks
    through_origin = (alpha * made.moves[cut]).sum() / (alpha**2).sum()
    assert found.entry.readout.shrink == pytest.approx(np.clip(through_origin, 0.0, 1.5))


def test_a_head_that_was_lost_is_learned_anew():
    """Behind layers that are whole the optimum is the head that was there."""
    made = task()
    layers = [random_lstm(RNG, 3, 8), random_dense(RNG, 8, 3, "softmax")]
    full = stack_from(layers)
    lost = stack_from([layers[0], {**layers[1], "kernel": np.zeros((8, 3), np.float32)}])
    found = refit_head(lost, made, teacher_of(full, made), DistilConfig(head_ridge=0.0))
    cut = made.parts.test
    assert divergence(full.outputs(made.rows, cut), found.outputs(made.rows, cut)) < 1e-7


def test_a_pruned_model_comes_nearer_to_what_it_was():
    made = task()
    full = stack_from(
        [
            random_lstm(RNG, 3, 24),
            random_lstm(RNG, 24, 16),
            random_dense(RNG, 16, 3, "softmax"),
        ]
    )
    pruned = prune_units(full, 0.3, rows=made.rows, cut=made.parts.calibrate, multiple=1).stack
    again = refit_head(pruned, made, teacher_of(full, made), DistilConfig())
    cut = made.parts.test
    exact = full.outputs(made.rows, cut)
    before, after = (divergence(exact, s.outputs(made.rows, cut)) for s in (pruned, again))
    assert after < 0.7 * before


def test_only_a_dense_softmax_behind_layers_is_learned_anew():
    with pytest.raises(ConfigError, match="only a dense softmax behind other layers"):
        refit_head(LINEAR, task(), teacher_of(LINEAR, task()), DistilConfig())


def test_light_learns_what_a_linear_model_cannot():
    pytest.importorskip("keras", reason="LIGHT needs the extra [train]")
    made = task()

    def product_of_two_columns(cut):
        z = 2.0 * made.rows.x[cut, 0] * made.rows.x[cut, 1]
        return np.array([softmax(row) for row in np.column_stack([-z, 0 * z, z])])

    config = DistilConfig(units=(16, 8), epochs=8, learning_rate=1e-2)
    found = {
        tier: distil(tier, made, LINEAR.scaler, READOUT, product_of_two_columns, config, quiet)
        for tier in ("LIGHT", "MICRO")
    }
    assert [e.units for e in found["LIGHT"].stack.layers] == [16, 8, 3]
    assert found["LIGHT"].metrics["light_kl"] < 0.2 * found["MICRO"].metrics["micro_kl"]
    assert found["LIGHT"].metrics["light_argmax"] > found["MICRO"].metrics["micro_argmax"]


def test_tiers_go_into_a_bundle_and_come_back(tmp_path):
    made = task()
    layers = [random_lstm(RNG, 3, 8), random_dense(RNG, 8, 3, "softmax")]
    weights = stack_from(layers).weights
    bundle = save_bundle(tmp_path / "tiny.bundle", card(), weights)
    full = stack_of(bundle)
    found = distil(
        "MICRO", made, bundle.card.scaler, bundle.card.readout, teacher_of(full, made), report=quiet
    )
    again = card(tiers={"MICRO": found.entry}, metrics=found.metrics)
    save_bundle(tmp_path / "tiny.bundle", again, weights, {"MICRO": found.weights})
    loaded = load_bundle(tmp_path / "tiny.bundle")
    assert loaded.tiers == ("FULL", "MICRO")
    cut = made.parts.test
    np.testing.assert_array_equal(
        stack_of(loaded, "MICRO").outputs(made.rows, cut), found.stack.outputs(made.rows, cut)
    )
    assert loaded.network(tier="MICRO").outputs == 5


@pytest.mark.parametrize(
    ("teacher", "words"),
    [
        (lambda cut: np.ones((cut.stop - cut.start, 3)), "no probabilities"),
        (lambda cut: np.full((cut.stop - cut.start, 3), np.nan), "no probabilities"),
        (lambda cut: np.ones((7, 3)) / 3, r"gave \(7, 3\) for 3600 rows"),
    ],
)
def test_a_teacher_without_probabilities_is_refused(teacher, words):
    with pytest.raises(ModelError, match=words):
        distil("MICRO", task(), LINEAR.scaler, READOUT, teacher, report=quiet)

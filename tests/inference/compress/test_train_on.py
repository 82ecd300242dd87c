"""Each case starts a process with TensorFlow: there are few of them."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from numpy_lstm import random_conv, random_dense, random_gru, random_lstm
from stacks import stack_from, task_of

from hft.errors import ConfigError, DataError, ModelError
from hft.inference.compress import train_on as module
from hft.inference.compress.prune_units import prune_units
from hft.inference.compress.prune_weights import prune_weights
from hft.inference.compress.quantise import divergence
from hft.inference.compress.train_on import TrainOn, train_on

RNG = np.random.default_rng(9)
LSTM = [random_lstm(RNG, 4, 8), random_dense(RNG, 8, 3, "softmax")]
CONV_GRU = [
    random_conv(RNG, 4, 8, 3, "relu"),
    random_gru(RNG, 8, 8),
    random_dense(RNG, 8, 3, "softmax"),
]
TFMOT = TrainOn(tool="tfmot", epochs=3, piece_rows=20)


def easy_task(n=2_500):
    x = RNG.standard_normal((n, 4))
    return task_of(x, x[:, 0] + 0.1 * RNG.standard_normal(n))


def loss(stack, task):
    p = stack.outputs(task.rows, task.parts.test)
    return -np.log(p[np.arange(len(p)), task.label[task.parts.test]]).mean()


def zeros(stack):
    return [
        float((arrays[name] == 0).mean())
        for arrays in stack.weights
        for name in ("kernel", "recurrent")
        if name in arrays
    ]


def needs_keras():
    pytest.importorskip("keras", reason="training needs the extra [train]")


def needs_tfmot():
    pytest.importorskip("tensorflow_model_optimization", reason="needs the extra [prune]")
    pytest.importorskip("tf_keras", reason="needs the extra [prune]")


def test_masks_grow_while_it_learns_the_labels():
    needs_keras()
    stack, task = stack_from(LSTM), easy_task()
    found = train_on(stack, task, 0.5, config=TrainOn(epochs=3, piece_rows=20))
    assert zeros(found) == pytest.approx([0.5] * 3, abs=0.03)
    assert loss(found, task) < loss(prune_weights(stack, 0.5), task)


def test_a_pruned_window_model_learns_to_say_what_it_said():
    needs_keras()
    full = replace(stack_from(CONV_GRU), window_rows=10)
    task = easy_task()
    pruned = prune_units(full, 0.4, multiple=1).stack
    config = TrainOn(epochs=4, learning_rate=5e-3)
    found = train_on(pruned, task, teacher=partial(full.outputs, task.rows), config=config)
    assert found.window_rows == 10
    assert [entry.units for entry in found.layers] == [entry.units for entry in pruned.layers]
    cut = task.parts.test
    exact = full.outputs(task.rows, cut)
    before, after = (divergence(exact, s.outputs(task.rows, cut)) for s in (pruned, found))
    assert after < 0.5 * before


def test_tfmot_does_the_same():
    needs_tfmot()
    stack, task = stack_from([*CONV_GRU[:2], random_lstm(RNG, 8, 8), CONV_GRU[2]]), easy_task()
    found = train_on(stack, task, 0.5, config=TFMOT)
    assert zeros(found) == pytest.approx([0.5] * len(zeros(found)), abs=0.03)
    assert loss(found, task) < loss(prune_weights(stack, 0.5), task)


def test_a_process_that_takes_too_long_is_a_model_error():
    needs_keras()
    with pytest.raises(ModelError, match=r"training on with masks: took longer than 0\.01 s"):
        train_on(stack_from(LSTM), easy_task(), config=TrainOn(limit_s=0.01))


def test_without_the_extra_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install 'hft-framework\[prune\]'"):
        train_on(stack_from(LSTM), None, 0.5, config=TFMOT)


def test_rows_that_are_all_broken_are_refused():
    needs_keras()
    task = easy_task(500)
    rows = replace(task.rows, memory=np.arange(500) // 10)
    with pytest.raises(DataError, match="no 50 of 300 training rows"):
        train_on(stack_from(LSTM), replace(task, rows=rows))


def test_only_a_softmax_is_trained_on():
    needs_keras()
    with pytest.raises(ModelError, match="ends with a dense softmax"):
        train_on(stack_from(LSTM[:1]), easy_task())

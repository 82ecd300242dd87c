import numpy as np
import pytest
from numpy_lstm import random_dense, random_lstm
from stacks import stack_from, task_of

from hft.errors import ConfigError
from hft.inference.compress import train_on as module
from hft.inference.compress.prune_units import prune_units
from hft.inference.compress.prune_weights import prune_weights
from hft.inference.compress.pruning import Pruning, pruned
from hft.inference.compress.quantise import divergence
from hft.inference.compress.train_on import TrainOn

RNG = np.random.default_rng(10)
STACK = stack_from(
    [
        random_lstm(RNG, 4, 24),
        random_lstm(RNG, 24, 16),
        random_dense(RNG, 16, 3, "softmax"),
    ]
)


def task(n=3_000):
    x = RNG.standard_normal((n, 4))
    return task_of(x, x[:, 0])


def away(stack, made):
    cut = made.parts.test
    return divergence(STACK.outputs(made.rows, cut), stack.outputs(made.rows, cut))


def without_keras(monkeypatch):
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: None)


def same(a, b):
    return all(
        (x[name] == y[name]).all() for x, y in zip(a.weights, b.weights, strict=True) for name in x
    )


def test_without_rows_only_sizes_decide():
    found = pruned(STACK, None, Pruning(units=0.4, weights=0.5), lambda line: None)
    assert same(found, prune_weights(prune_units(STACK, 0.4).stack, 0.5))


def test_without_keras_the_last_layer_learns_and_zeros_stay(monkeypatch):
    without_keras(monkeypatch)
    made, said = task(), []
    found = pruned(STACK, made, Pruning(units=0.4, weights=0.5), said.append)
    bare = prune_weights(
        prune_units(STACK, 0.4, rows=made.rows, cut=made.parts.calibrate).stack, 0.5
    )
    assert away(found, made) < away(bare, made)
    assert (found.weights[-1]["kernel"] == 0).mean() == 0.5
    assert said[2].startswith("magnitude pruning gains no latency")
    assert said[-1].endswith("kept: new last layer")


def test_a_tool_that_is_not_there_is_said_at_once(monkeypatch):
    without_keras(monkeypatch)
    with pytest.raises(ConfigError, match="needs tensorflow_model_optimization, tf_keras"):
        pruned(STACK, None, Pruning(units=0.4, tool="tfmot"))


def test_nothing_to_take_out_changes_nothing():
    assert same(pruned(STACK, task(), Pruning()), STACK)


def test_where_there_is_keras_what_is_nearest_is_kept():
    pytest.importorskip("keras", reason="training needs the extra [train]")
    made, said = task(), []
    how = Pruning(units=0.4, training=TrainOn(epochs=4, learning_rate=5e-3))
    found = pruned(STACK, made, how, said.append)
    assert "trained on, masks" in said[-1]
    bare = prune_units(STACK, 0.4, rows=made.rows, cut=made.parts.calibrate).stack
    assert away(found, made) < 0.7 * away(bare, made)

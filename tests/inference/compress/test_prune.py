from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from numpy_lstm import random_conv, random_dense, random_gru, random_lstm, run
from stacks import rows_of, stack_from

from hft.errors import ConfigError
from hft.inference.compress.prune_units import importance, prune_units, sliced

RNG = np.random.default_rng(3)
SHAPES = {
    "lstm, lstm": [
        random_lstm(RNG, 5, 24),
        random_lstm(RNG, 24, 16),
        random_dense(RNG, 16, 3, "softmax"),
    ],
    "gru, dense": [
        random_gru(RNG, 5, 24),
        random_dense(RNG, 24, 16, "sigmoid"),
        random_dense(RNG, 16, 3, "softmax"),
    ],
    "convolutions, gru": [
        random_conv(RNG, 5, 16, 3, "relu"),
        random_conv(RNG, 16, 24, 2, "tanh"),
        random_gru(RNG, 24, 16),
        random_dense(RNG, 16, 3, "softmax"),
    ],
}
ROWS = rows_of(RNG.standard_normal((300, 5)))
ALL = slice(0, 300)


def silenced(layers, by_layer):
    """The layers with nothing going out of these units of each hidden one."""
    found = [dict(layer) for layer in layers]
    for (layer, after), units in zip(pairwise(found), by_layer, strict=True):
        after["kernel"] = after["kernel"].copy()
        after["kernel"][..., units, :] = 0.0
        if "recurrent" in layer:
            layer["recurrent"] = layer["recurrent"].copy()
            layer["recurrent"][units] = 0.0
    return found


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("with_rows", [False, True])
def test_units_that_nobody_hears_are_taken_out_and_no_output_changes(shape, with_rows):
    silent = [1, 2, 7, 8, 9, 12, 14, 15]
    stack = stack_from(silenced(SHAPES[shape], [silent] * (len(SHAPES[shape]) - 1)))
    shares = [len(silent) / entry.units for entry in stack.layers[:-1]]
    given = {"rows": ROWS, "cut": ALL} if with_rows else {}
    pruned = prune_units(stack, shares, **given)
    for kept, entry, row in zip(pruned.kept, stack.layers[:-1], pruned.table, strict=False):
        assert kept.tolist() == [u for u in range(entry.units) if u not in silent]
        assert (row.before, row.after, row.lost) == (entry.units, entry.units - 8, 0.0)
    before, after = stack.outputs(ROWS, ALL), pruned.stack.outputs(ROWS, ALL)
    np.testing.assert_allclose(after, before, atol=1e-6)  # sums in another order


@pytest.mark.parametrize("shape", SHAPES)
def test_a_unit_that_talks_to_itself_alone_is_heard_by_nobody(shape):
    layers = silenced(SHAPES[shape], [[3]] * (len(SHAPES[shape]) - 1))
    first = layers[0]
    if "recurrent" in first:
        units = len(first["recurrent"])
        first["recurrent"][3, 3::units] = 1.0
    stack = stack_from(layers)
    assert importance(stack, 0)[3] == 0.0
    kept = [np.arange(entry.units) for entry in stack.layers]
    kept[0] = np.delete(kept[0], 3)
    np.testing.assert_allclose(
        sliced(stack, kept).outputs(ROWS, ALL), stack.outputs(ROWS, ALL), atol=1e-6
    )


@pytest.mark.parametrize("shape", SHAPES)
def test_slices_are_those_of_the_oracle(shape):
    """Units taken out are units whose outgoing weights are set to zero, whoever computes it."""
    stack = stack_from(SHAPES[shape])
    pruned = prune_units(stack, 0.4, multiple=1)
    gone = [
        np.setdiff1d(np.arange(entry.units), kept)
        for entry, kept in zip(stack.layers[:-1], pruned.kept[:-1], strict=True)
    ]
    layers = silenced(SHAPES[shape], gone)
    np.testing.assert_allclose(pruned.stack.outputs(ROWS, ALL), run(layers, ROWS.x), atol=1e-5)


def test_a_unit_that_is_constant_leaves_its_value_in_the_biases():
    dense = [
        random_dense(RNG, 5, 16, "sigmoid"),
        random_dense(RNG, 16, 3, "softmax"),
    ]
    dense[0]["kernel"] = dense[0]["kernel"].copy()
    dense[0]["kernel"][:, [4, 11]] = 0.0  # gives sigmoid(bias) whatever comes in
    stack = stack_from(dense)
    pruned = prune_units(stack, 2 / 16, rows=ROWS, cut=ALL, multiple=1)
    assert set(range(16)) - set(pruned.kept[0].tolist()) == {4, 11}
    np.testing.assert_allclose(pruned.stack.outputs(ROWS, ALL), stack.outputs(ROWS, ALL), atol=1e-6)


def test_importance_is_what_a_hand_computes():
    layer = {
        "kind": "dense",
        "kernel": np.array([[3.0, 0.0]], np.float32),
        "bias": np.array([4.0, 2.0], np.float32),
        "activation": "linear",
    }
    head = {
        "kind": "dense",
        "kernel": np.array([[0.6], [2.0]], np.float32),
        "bias": np.zeros(1, np.float32),
        "activation": "linear",
    }
    stack = stack_from([layer, head])
    np.testing.assert_allclose(importance(stack, 0), [5.0 * 0.6, 2.0 * 2.0])
    np.testing.assert_allclose(importance(stack, 0, np.array([3.0, 0.0])), [3.0 * 0.6, 0.0])


def test_never_more_units_go_than_was_asked():
    stack = stack_from(SHAPES["lstm, lstm"])
    assert [e.units for e in prune_units(stack, 0.3, multiple=8).stack.layers] == [24, 16, 3]
    assert [e.units for e in prune_units(stack, 0.35, multiple=8).stack.layers] == [16, 16, 3]
    assert [e.units for e in prune_units(stack, 0.3, multiple=1).stack.layers] == [17, 11, 3]


def test_a_window_model_is_pruned_as_it_runs():
    stack = replace(stack_from(SHAPES["lstm, lstm"]), window_rows=6)
    pruned = prune_units(stack, 0.5, rows=ROWS, cut=slice(50, 200))
    assert pruned.stack.window_rows == 6
    assert pruned.stack.outputs(ROWS, slice(50, 200)).shape == (150, 3)


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (1.0, "share of units is 1: want at least 0 and less than 1"),
        (-0.5, "share of units is -0.5"),
        ([0.1], "1 shares of units for 2 hidden layers"),
    ],
)
def test_a_wrong_share_is_refused(share, words):
    with pytest.raises(ConfigError, match=words):
        prune_units(stack_from(SHAPES["lstm, lstm"]), share)


def test_a_linear_model_has_no_units_to_prune():
    with pytest.raises(ConfigError, match="no hidden layer"):
        prune_units(stack_from([random_dense(RNG, 5, 3, "softmax")]), 0.5)

from dataclasses import replace

import numpy as np
import pytest
from numpy_lstm import random_conv, random_dense, random_gru, random_lstm, softmax
from stacks import stack_from, task_of

from hft.errors import DataError, ModelError
from hft.inference.compress.sensitivity import sensitivity, sensitivity_of

RNG = np.random.default_rng(8)


def task(inputs=4, n=2_000, x=None):
    x = RNG.standard_normal((n, inputs)) if x is None else x
    return task_of(x, np.zeros(len(x)))


def slopes(layer, rows):
    """Of a linear softmax at each row: the change of each class per unit of L-infinity, (n, c).

    d p_c / d x_i = p_c (w_ic - sum_j p_j w_ij); within a box their sizes add up at a corner.
    """
    kernel = layer["kernel"].astype(np.float64)
    p = np.array([softmax(row @ kernel + layer["bias"]) for row in rows])
    gradient = p[:, None] * (kernel - (p @ kernel.T)[:, :, None])  # (n, k, c)
    return np.abs(gradient).sum(axis=1)


def test_of_a_linear_softmax_it_is_the_constant_of_lipschitz():
    layer = random_dense(RNG, 4, 3, "softmax")
    made = task()
    cut = made.parts.calibrate
    found = sensitivity_of(stack_from([layer]), made, rows=300, safety=1.0)
    at_rows = slopes(layer, made.rows.x[cut]).max()
    anywhere = slopes(layer, RNG.uniform(-4, 4, (200_000, 4))).max()
    assert 0.98 * at_rows <= found.measured <= anywhere * 1.001
    assert found.measured <= found.bound
    assert found.bound == pytest.approx(0.5 * np.abs(layer["kernel"]).sum(axis=0).max())


def test_two_classes_reach_the_bound_where_both_are_likely():
    """One is sigmoid(2 x w): at even chances the slope is half the sum of |w|, which is proven."""
    w = np.array([0.3, -0.7, 1.1, 0.2], np.float32)
    layer = {
        "kind": "dense",
        "kernel": np.column_stack([w, -w]),
        "bias": np.zeros(2, np.float32),
        "activation": "softmax",
    }
    found = sensitivity_of(stack_from([layer]), task(x=np.zeros((2_000, 4))))
    assert found.bound == pytest.approx(0.5 * np.abs(w).sum())
    assert found.measured == pytest.approx(found.bound, rel=0.01)
    assert found.value == found.bound  # the safety factor does not go beyond what is proven


@pytest.mark.parametrize("activation", ["relu", "tanh", "sigmoid"])
def test_dense_layers_stay_within_what_is_proven(activation):
    layers = [random_dense(RNG, 4, 16, activation), random_dense(RNG, 16, 3, "softmax")]
    found = sensitivity_of(stack_from(layers), task())
    assert 0.0 < found.measured < found.bound
    assert found.value == pytest.approx(min(1.5 * found.measured, found.bound))
    assert "along gradients" in found.how


def test_no_pair_of_real_rows_moved_further_than_the_figure():
    layers = [random_dense(RNG, 4, 16, "tanh"), random_dense(RNG, 16, 3, "softmax")]
    stack, made = stack_from(layers), task()
    value = sensitivity_of(stack, made).value
    cut = made.parts.test
    p, x = stack.outputs(made.rows, cut), made.rows.x[cut]
    first, second = RNG.integers(0, len(p), (2, 2_000))
    moved = np.abs(x[first] - x[second]).max(axis=1)
    assert (np.abs(p[first] - p[second]).max(axis=1) <= value * moved + 1e-6).all()


@pytest.mark.parametrize(
    "layers",
    [
        [random_lstm(RNG, 4, 8), random_dense(RNG, 8, 3, "softmax")],
        [random_gru(RNG, 4, 8), random_dense(RNG, 8, 3, "softmax")],
        [random_conv(RNG, 4, 8, 3, "relu"), random_dense(RNG, 8, 3, "softmax")],
    ],
    ids=["lstm", "gru", "conv"],
)
def test_of_a_window_every_row_may_move(layers):
    stack, made = replace(stack_from(layers), window_rows=6), task()
    found = sensitivity_of(stack, made, rows=40, directions=4)
    assert found.bound == np.inf
    assert found.value == 1.5 * found.measured
    cut = made.parts.calibrate
    p = stack.outputs(made.rows, cut)
    x = made.rows.x[cut]
    windows = np.stack([x[n - 5 : n + 1] for n in range(5, len(x))])
    moved = np.abs(np.diff(windows, axis=0)).reshape(len(windows) - 1, -1).max(axis=1)
    change = np.abs(np.diff(p[5:], axis=0)).max(axis=1)
    assert (change <= found.value * moved + 1e-6).all()


def test_a_model_that_carries_state_is_refused():
    layers = [random_lstm(RNG, 4, 8), random_dense(RNG, 8, 3, "softmax")]
    with pytest.raises(ModelError, match="this one carries state"):
        sensitivity_of(stack_from(layers), task())


def test_any_backend_may_answer():
    """Of a function with a slope of 3 everywhere."""
    windows = RNG.standard_normal((50, 2, 2, 4)).astype(np.float32)
    found = sensitivity(lambda w: 3.0 * w[:, -1, :1].astype(float), windows, 10.0, safety=1.0)
    assert found.measured == pytest.approx(3.0, rel=1e-4)
    with pytest.raises(DataError, match="no rows"):
        sensitivity(lambda w: w[:, -1], windows[:0], 10.0)


def test_inputs_at_the_clip_do_not_move_beyond_it():
    windows = np.full((10, 2, 1, 1), 2.0, np.float32)
    windows[5:] = 0.0
    seen = []

    def answer(w):
        seen.append(w.max())
        return w[:, -1].astype(float)

    sensitivity(answer, windows, clip=2.0)
    assert max(seen) == 2.0

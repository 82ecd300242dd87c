import numpy as np
import pytest
from numpy_lstm import random_dense, random_lstm
from stacks import stack_from

from hft.errors import ConfigError
from hft.inference.compress.prune_weights import (
    mask_callback,
    mask_of,
    masks_of,
    polynomial_share,
    prune_weights,
)

RNG = np.random.default_rng(4)
LAYERS = [random_lstm(RNG, 4, 8), random_dense(RNG, 8, 3, "softmax")]


def zeros(array):
    return float((array == 0).mean())


def test_the_smallest_weights_go_and_the_others_stay_as_they_were():
    mask = mask_of(np.array([[3.0, -1.0], [0.5, -4.0]]), 0.5)
    assert mask.tolist() == [[True, False], [False, True]]
    stack = stack_from(LAYERS)
    pruned = prune_weights(stack, 0.75)
    for before, after in zip(stack.weights, pruned.weights, strict=True):
        for name in ("kernel", "recurrent"):
            if name not in before:
                continue
            assert zeros(after[name]) == pytest.approx(0.75, abs=1 / before[name].size)
            kept = after[name] != 0
            assert (after[name][kept] == before[name][kept]).all()
            assert np.abs(before[name][kept]).min() >= np.abs(before[name][~kept]).max()
        assert (after["bias"] == before["bias"]).all()


def test_a_share_of_nothing_changes_nothing_and_shares_are_by_layer():
    stack = stack_from(LAYERS)
    assert all(mask.all() for layer in masks_of(stack, 0.0) for mask in layer.values())
    pruned = prune_weights(stack, [0.0, 0.5])
    assert (pruned.weights[0]["kernel"] == stack.weights[0]["kernel"]).all()
    assert zeros(pruned.weights[1]["kernel"]) == 0.5


@pytest.mark.parametrize("share", [1.0, -0.1, [0.5, 2.0]])
def test_what_is_no_share_is_refused(share):
    with pytest.raises(ConfigError, match="share of weights is"):
        prune_weights(stack_from(LAYERS), share)


def test_the_schedule_grows_from_nothing_to_the_whole_share_and_fast_first():
    shares = [polynomial_share(step, 100, 300, 0.8) for step in range(0, 400, 50)]
    assert shares[:3] == [0.0, 0.0, 0.0]
    assert shares[6:] == [0.8, 0.8]
    assert shares[4] == pytest.approx(0.8 * (1 - 0.5**3))
    assert np.all(np.diff(np.diff(shares[2:7])) < 0)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_masks_hold_while_keras_trains():
    keras = pytest.importorskip("keras", reason="training needs the extra [train]")
    keras.utils.set_random_seed(1)
    model = keras.Sequential(
        [keras.Input((6, 4)), keras.layers.LSTM(8), keras.layers.Dense(3, activation="softmax")]
    )
    model.compile("adam", "sparse_categorical_crossentropy")
    x, y = RNG.standard_normal((64, 6, 4)), RNG.integers(0, 3, 64)
    before = model.evaluate(x, y, verbose=0)
    callback = mask_callback(0.5, begin=2, end=12, every=5)
    model.fit(x, y, batch_size=8, epochs=4, verbose=0, callbacks=[callback])
    kernel, recurrent, bias = model.layers[0].get_weights()
    assert zeros(kernel) == zeros(recurrent) == 0.5
    assert zeros(bias) < 0.5
    assert model.evaluate(x, y, verbose=0) < before

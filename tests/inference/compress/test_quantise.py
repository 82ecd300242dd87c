import numpy as np
import pytest
from numpy_lstm import random_conv, random_dense, random_gru, random_lstm, run
from stacks import rows_of, stack_from, task_of

from hft.errors import ConfigError, DataError
from hft.inference.compress.calibration import Cover, calibration
from hft.inference.compress.quantise import (
    Error,
    Limits,
    activation_ranges,
    divergence,
    dynamic,
    error_of,
    quantise,
)

RNG = np.random.default_rng(5)
LAYERS = [
    random_lstm(RNG, 4, 16),
    random_lstm(RNG, 16, 16),
    random_dense(RNG, 16, 3, "softmax"),
]


def weathers(n, moves=(1.0, 0.0, -1.0), storm_share=0.3):
    """Rows that rise, stay and fall in turn; the last of each slice are stormy."""
    label = np.array([moves[i % len(moves)] for i in range(n)])
    storm = (np.arange(n) % 1_000) >= 1_000 * (1 - storm_share)
    return task_of(RNG.standard_normal((n, 4)), label, storm)


@pytest.mark.parametrize(
    ("changes", "missing"),
    [
        ({"moves": (0.0, -1.0)}, r"do not cover rise \(0 rows\): want 100 of each among"),
        ({"moves": (1.0, 0.0)}, r"do not cover fall \(0 rows\)"),
        ({"moves": (1.0, -1.0)}, r"do not cover flat \(0 rows\)"),
        ({"storm_share": 0.0}, r"do not cover storm \(0 rows\)"),
        ({"storm_share": 1.0}, r"do not cover calm \(0 rows\)"),
        ({"moves": (0.0,), "storm_share": 0.0}, r"rise \(0 rows\), fall \(0 rows\), storm"),
    ],
)
def test_rows_that_lack_a_weather_are_refused(changes, missing):
    with pytest.raises(DataError, match=missing):
        calibration(weathers(8_000, **changes))


def test_rows_of_every_weather_are_counted():
    found = calibration(weathers(20_000))
    assert found.rows == 3_000
    assert found.counts == {"rise": 1000, "fall": 1000, "flat": 1000, "calm": 2100, "storm": 900}
    assert str(found).startswith("3,000 calibration rows: rise 1,000, fall 1,000")


def test_too_few_of_a_kind_are_refused_with_their_number():
    task = weathers(8_000, storm_share=0.04)
    assert calibration(task, cover=Cover(least=10)).counts["storm"] == 80
    with pytest.raises(DataError, match=r"storm \(80 rows\): want 100 of each among 1,200"):
        calibration(task)
    with pytest.raises(DataError, match=r"storm \(80 rows\): want 120"):
        calibration(task, cover=Cover(least=10, least_share=0.1))


def test_rows_without_a_label_cover_nothing():
    task = weathers(8_000)
    task.weight[task.label == 2] = 0.0
    with pytest.raises(DataError, match=r"rise \(0 rows\)"):
        calibration(task)


def test_the_stretch_with_most_of_the_scarcest_is_taken():
    n = 40_000
    storm = np.zeros(n, bool)
    storm[26_000:26_400] = True
    moves = np.array([1.0, 0.0, -1.0])[np.arange(n) % 3]
    found = calibration(task_of(RNG.standard_normal((n, 4)), moves, storm), at_most=2_000)
    assert found.cut.stop - found.cut.start == 2_000
    assert found.counts["storm"] == 400


def test_where_no_stretch_has_seen_everything_all_rows_are_taken():
    n = 40_000
    moves = np.where(np.arange(n) < 27_000, 1.0, np.array([0.0, -1.0])[np.arange(n) % 2])
    made = task_of(RNG.standard_normal((n, 4)), moves, np.arange(n) >= 29_500)
    found = calibration(made, slice(24_000, 30_000), at_most=1_000)
    assert found.cut == slice(24_000, 30_000)


def test_divergence_and_noise_are_what_a_hand_computes():
    p = np.array([[0.5, 0.5], [1.0, 0.0]])
    q = np.array([[0.25, 0.75], [0.5, 0.5]])
    by_hand = (0.5 * np.log(2) + 0.5 * np.log(2 / 3) + np.log(2)) / 2
    assert divergence(p, q) == pytest.approx(by_hand)
    assert divergence(p, p) == 0.0
    stack = stack_from([random_dense(RNG, 4, 2, "linear")])
    exact = np.array([[1.0, 0.0], [-1.0, 0.0]])  # variance 1 of the first, 0 of the second
    found = error_of(stack, exact + np.array([0.1, 0.0]), exact)
    assert (found.kl, found.noise, found.change) == pytest.approx((0.0, 0.01, 0.1))


def test_layers_in_8_bits_are_measured_by_the_kernels_that_run():
    """Against the oracle, which rounds as they do."""
    stack, task = stack_from(LAYERS), weathers(4_000)
    rows = calibration(task, slice(0, 1_500))
    found = quantise(stack, task, rows)
    assert [layer.precision for layer in found.layers] == ["int8"] * 3
    assert found.wide == ()
    for n, layer in enumerate(found.layers):
        one = [{**x, "precision": "int8"} if at == n else x for at, x in enumerate(LAYERS)]
        away = np.abs(run(one, task.rows.x[:1_500]) - run(LAYERS, task.rows.x[:1_500]))
        assert layer.error.change == pytest.approx(away.max(), abs=2e-3)
        assert layer.error.noise < 0.01
    assert found.error.change < 0.05


def test_a_layer_that_does_not_bear_8_bits_stays_wide_and_says_why():
    """One huge weight a column leaves no steps for the others of its column."""
    layers = [dict(layer) for layer in LAYERS]
    kernel = layers[1]["kernel"].copy()
    kernel[0] = 200.0
    layers[1]["kernel"] = kernel
    # What comes of the first layer's first unit is nothing, so float does not notice.
    layers[0] = {**layers[0], "bias": layers[0]["bias"].copy()}
    layers[0]["bias"][3 * 16] = -60.0
    layers[0]["kernel"] = layers[0]["kernel"].copy()
    layers[0]["kernel"][:, 3 * 16] = 0.0
    layers[0]["recurrent"] = layers[0]["recurrent"].copy()
    layers[0]["recurrent"][:, 3 * 16] = 0.0
    task = weathers(4_000)
    found = quantise(stack_from(layers), task, calibration(task, slice(0, 1_500)))
    assert [layer.precision for layer in found.layers] == ["int8", "fp32", "int8"]
    assert found.wide == (1,)
    assert [entry.precision for entry in found.stack.layers] == ["int8", "fp32", "int8"]
    assert "noise" in found.layers[1].why
    assert found.error.noise < 0.02
    assert any("2 lstm 16" in line and "fp32  " in line for line in found.table())


def test_layers_give_way_one_by_one_until_all_together_pass():
    stack, task = stack_from(LAYERS), weathers(4_000)
    rows = calibration(task, slice(0, 1_500))
    free = quantise(stack, task, rows)
    alone = [layer.error.noise for layer in free.layers]
    limit = (max(alone) + free.error.noise) / 2  # each alone passes, all together do not
    found = quantise(stack, task, rows, Limits(noise=limit))
    assert found.error.noise <= limit
    worst = int(np.argmax(alone))
    assert worst in found.wide
    assert found.layers[worst].why.startswith("all together: noise")
    nothing = quantise(stack, task, rows, Limits(noise=0.0))
    assert nothing.wide == (0, 1, 2)
    assert nothing.error == Error(0.0, 0.0, 0.0)


def test_dynamic_puts_every_layer_into_8_bits():
    assert {entry.precision for entry in dynamic(stack_from(LAYERS)).layers} == {"int8"}


@pytest.mark.parametrize(
    "layers",
    [
        LAYERS,
        [
            random_conv(RNG, 4, 16, 3, "relu"),
            random_gru(RNG, 16, 8),
            random_dense(RNG, 8, 3, "softmax"),
        ],
    ],
    ids=["lstm", "conv, gru"],
)
def test_ranges_are_those_of_the_oracle(layers):
    x = RNG.standard_normal((400, 4)) * 3
    found = activation_ranges(dynamic(stack_from(layers, clip=4.0)), rows_of(x), slice(0, 400))
    given = [np.clip(x, -4, 4)]
    given += [run(layers[: n + 1], given[0]) for n in range(len(layers))]
    assert len(found) == len(layers) + 1
    for ours, theirs in zip(found, given, strict=True):
        assert (ours.low, ours.high) == pytest.approx((theirs.min(), theirs.max()), abs=1e-5)
        assert ours.reach == max(-ours.low, ours.high)


def test_a_percentile_leaves_out_both_ends():
    x = np.tile(np.linspace(-1, 1, 1001)[:, None], 4)
    layers = [random_dense(RNG, 4, 3, "softmax")]
    found = activation_ranges(stack_from(layers), rows_of(x), slice(0, 1001), 90.0)
    assert (found[0].low, found[0].high) == pytest.approx((-0.9, 0.9))
    with pytest.raises(ConfigError, match="percentile is 40: want more than 50"):
        activation_ranges(stack_from(layers), rows_of(x), slice(0, 1001), 40.0)

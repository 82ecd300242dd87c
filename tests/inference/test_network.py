import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from numpy_lstm import random_conv, random_dense, random_gru, random_lstm, run

from hft import _core
from hft.errors import ConfigError

ISAS = ["portable", "avx2", "avx512"]


def has(isa):
    return ISAS.index(isa) <= ISAS.index(_core.best_isa())


def core_layer(layer):
    parts = {k: v for k, v in layer.items() if k != "kind"}
    return getattr(_core, f"{layer['kind']}_layer")(**parts)


def in_8_bits(layers):
    return [{**layer, "precision": "int8"} for layer in layers]


def network_of(layers, isa="", **options):
    inputs = layers[0]["kernel"].shape[-2]
    return _core.build_network(
        [0.0] * inputs, [1.0] * inputs, 10.0, [core_layer(x) for x in layers], isa=isa, **options
    )


def stream(layers, inputs, isa="", **options):
    network = _core.build_network(
        [0.0] * inputs, [1.0] * inputs, 10.0, [core_layer(x) for x in layers], isa=isa, **options
    )
    return _core.NetworkStream(network)


def shapes():
    rng = np.random.default_rng(7)
    return {
        "lstm 64x2": [
            random_lstm(rng, 16, 64),
            random_lstm(rng, 64, 64),
            random_dense(rng, 64, 3, "softmax"),
        ],
        "odd sizes": [
            random_lstm(rng, 5, 7),
            random_lstm(rng, 7, 33),
            random_dense(rng, 33, 2, "softmax"),
        ],
        "one unit": [random_lstm(rng, 1, 1), random_dense(rng, 1, 1, "linear")],
        "dense only": [
            random_dense(rng, 20, 40, "relu"),
            random_dense(rng, 40, 19, "tanh"),
            random_dense(rng, 19, 21, "softmax"),
        ],
        "sigmoid": [random_dense(rng, 3, 100, "sigmoid")],
        "gru 64x2": [
            random_gru(rng, 16, 64),
            random_gru(rng, 64, 64),
            random_dense(rng, 64, 3, "softmax"),
        ],
        "convolutions, then a gru": [
            random_conv(rng, 7, 19, 5, "relu"),
            random_conv(rng, 19, 33, 2, "tanh"),
            random_gru(rng, 33, 21),
            random_dense(rng, 21, 3, "softmax"),
        ],
        "pointwise convolution": [random_conv(rng, 5, 3, 1, "sigmoid")],
    }  # fmt: skip


SHAPES = shapes()


def rows_for(layers, n=70):
    inputs = layers[0]["kernel"].shape[-2]
    return np.random.default_rng(1).standard_normal((n, inputs)) * 2.0


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("shape", SHAPES)
def test_equals_the_numpy_oracle(shape, isa):
    if not has(isa):
        pytest.skip(f"this CPU has no {isa}")
    layers = SHAPES[shape]
    rows = rows_for(layers)
    ours = stream(layers, rows.shape[1], isa).batch(rows)
    np.testing.assert_allclose(ours, run(layers, rows), atol=1e-5)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("shape", SHAPES)
def test_8_bits_equal_the_numpy_oracle_in_8_bits(shape, isa):
    if not has(isa):
        pytest.skip(f"this CPU has no {isa}")
    layers = in_8_bits(SHAPES[shape])
    rows = rows_for(layers)
    ours, oracle = stream(layers, rows.shape[1], isa).batch(rows), run(layers, rows)
    # A value halfway between two steps may round either way: in few, and by one step.
    assert np.abs(ours - oracle).max() < 5e-3
    assert np.median(np.abs(ours - oracle)) < 1e-6


@pytest.mark.parametrize("shape", SHAPES)
def test_8_bits_stay_close_to_float(shape):
    layers = SHAPES[shape]
    rows = rows_for(layers, 300)
    exact = stream(layers, rows.shape[1]).batch(rows)
    ours = stream(in_8_bits(layers), rows.shape[1]).batch(rows)
    assert np.abs(ours - exact).max() < 0.02 * max(1.0, np.abs(exact).max())


def precise(layers, precision):
    return in_8_bits(layers) if precision == "int8" else layers


@pytest.mark.parametrize("precision", ["float32", "int8"])
@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("shape", SHAPES)
def test_step_batch_and_armed_step_give_the_same_bits(shape, isa, precision):
    if not has(isa):
        pytest.skip(f"this CPU has no {isa}")
    layers = precise(SHAPES[shape], precision)
    rows = rows_for(layers, 101)
    batch = stream(layers, rows.shape[1], isa).batch(rows)
    assert batch.tobytes() == stream(layers, rows.shape[1], isa).steps(rows).tobytes()
    assert batch.tobytes() == stream(layers, rows.shape[1], isa).steps(rows, armed=True).tobytes()
    mixed = stream(layers, rows.shape[1], isa)
    parts = [mixed.batch(rows[:5]), mixed.steps(rows[5:6]), mixed.batch(rows[6:40])]
    mixed.arm()
    parts.append(mixed.batch(rows[40:]))
    assert batch.tobytes() == np.concatenate(parts).tobytes()


@pytest.mark.skipif(not has("avx512"), reason="this CPU has no avx512")
@pytest.mark.parametrize("precision", ["float32", "int8"])
@pytest.mark.parametrize("shape", SHAPES)
def test_avx512_and_avx2_give_the_same_bits(shape, precision):
    layers = precise(SHAPES[shape], precision)
    rows = rows_for(layers, 2_000)
    wide = stream(layers, rows.shape[1], "avx512").batch(rows)
    assert wide.tobytes() == stream(layers, rows.shape[1], "avx2").batch(rows).tobytes()


@pytest.mark.parametrize("precision", ["float32", "int8"])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_window_is_a_fresh_pass_over_its_rows_to_the_bit(shape, precision):
    layers = precise(SHAPES[shape], precision)
    network = network_of(layers)
    rows = rows_for(layers, 60)
    for length in (1, 2, 20, 21):
        window = _core.NetworkWindow(network, length)
        ours = np.concatenate([window.steps(rows[:7]), window.steps(rows[7:])])
        fresh = [
            _core.NetworkStream(network).batch(rows[max(0, i + 1 - length) : i + 1])[-1]
            for i in range(len(rows))
        ]
        assert ours.tobytes() == np.array(fresh).tobytes()


def keras_layer(keras, layer):
    kind, kernel = layer["kind"], layer["kernel"]
    if kind == "dense":
        return keras.layers.Dense(kernel.shape[1], layer["activation"])
    if kind == "conv":
        width, _, filters = kernel.shape
        return keras.layers.Conv1D(filters, width, padding="causal", activation=layer["activation"])
    recurrent = {"gru": keras.layers.GRU, "lstm": keras.layers.LSTM}[kind]
    return recurrent(len(layer["recurrent"]), return_sequences=True)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_native_network_is_keras(shape):
    keras = pytest.importorskip("keras", reason="Keras is not installed")
    layers = SHAPES[shape]
    rows = rows_for(layers, 60)
    model = keras.Sequential([keras.Input((None, rows.shape[1]))])
    for layer in layers:
        model.add(keras_layer(keras, layer))
        parts = ("kernel", "recurrent", "bias")
        model.layers[-1].set_weights([layer[k] for k in parts if k in layer])
    theirs = model(rows[None].astype(np.float32)).numpy()[0]
    np.testing.assert_allclose(stream(layers, rows.shape[1]).batch(rows), theirs, atol=1e-5)


def test_weights_are_locked_in_memory_or_say_why_not():
    network = network_of(SHAPES["lstm 64x2"])
    assert network.weight_bytes >= 4 * network.parameters
    network.touch()
    small = network_of(in_8_bits(SHAPES["lstm 64x2"]))
    assert small.weight_bytes < 0.3 * network.weight_bytes
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_MEMLOCK, (0, 0));"
        "from hft import _core; import numpy as np;"
        "layer = _core.dense_layer(np.ones((2, 2), np.float32), np.ones(2, np.float32));"
        "print(_core.build_network([0.0] * 2, [1.0] * 2, 1.0, [layer]).why_unlocked)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "may be paged out" in said.stdout or has_right_to_lock()


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_networks_put_together_share_a_block_and_give_the_same_bits(precision):
    alone = [network_of(precise(layers, precision)) for layers in SHAPES.values()]
    rows = [rows_for(layers) for layers in SHAPES.values()]
    wanted = [_core.NetworkStream(n).batch(x) for n, x in zip(alone, rows, strict=True)]
    sizes = [n.weight_bytes for n in alone]
    moved = _core.together(alone)
    del alone
    moved[2].touch()
    assert [n.weight_bytes for n in moved] == sizes
    if moved[0].why_unlocked:
        assert str(sum(sizes)) in moved[0].why_unlocked
    found = [_core.NetworkStream(n).batch(x) for n, x in zip(moved, rows, strict=True)]
    assert [x.tobytes() for x in found] == [x.tobytes() for x in wanted]
    with pytest.raises(ConfigError, match="networks: needs one or more"):
        _core.together([])


def has_right_to_lock():
    status = Path("/proc/self/status").read_text()
    effective = next(x for x in status.splitlines() if x.startswith("CapEff")).split()[1]
    return bool(int(effective, 16) >> 14 & 1)  # CAP_IPC_LOCK


def test_extreme_inputs_stay_finite_and_saturate():
    layers = SHAPES["lstm 64x2"]
    rows = np.array([[1e300] * 16, [-1e300] * 16, [0.0] * 16])
    out = stream(layers, 16).batch(rows)
    assert np.isfinite(out).all()
    np.testing.assert_allclose(out, run(layers, np.clip(rows, -10, 10)), atol=1e-5)


def test_scaler_and_readout():
    rng = np.random.default_rng(3)
    head = random_dense(rng, 4, 3, "softmax")
    mean, scale = [1.0, -2.0, 600_000.0, 0.0], [2.0, 0.5, 3.0, 1e-3]
    network = _core.build_network(
        mean, scale, 2.5, [core_layer(head)], move_ticks=[-1.5, 0.0, 2.0], shrink=0.5
    )
    assert (network.inputs, network.outputs) == (4, 5)
    rows = np.array(mean) + rng.standard_normal((50, 4)) * np.array(scale) * 2
    out = _core.NetworkStream(network).batch(rows)
    p = run([head], np.clip((rows - mean) / np.array(scale), -2.5, 2.5))
    np.testing.assert_allclose(out[:, :3], p, atol=1e-5)
    np.testing.assert_allclose(out[:, 3], 0.5 * p @ [-1.5, 0.0, 2.0], atol=1e-5)
    assert (out[:, 4] == out[:, :3].max(axis=1)).all()


def test_reset_forgets_the_stream():
    layers = SHAPES["lstm 64x2"]
    rows = rows_for(layers)
    once = stream(layers, 16)
    first = once.batch(rows)
    assert once.batch(rows).tobytes() != first.tobytes()
    once.arm()
    once.reset()
    assert once.batch(rows).tobytes() == first.tobytes()


def test_shapes_that_do_not_fit_are_named():
    rng = np.random.default_rng(0)
    lstm, head = random_lstm(rng, 4, 8), random_dense(rng, 9, 3, "softmax")
    with pytest.raises(ConfigError, match="layer 2: takes 9 inputs, but what comes before gives 8"):
        stream([lstm, head], 4)
    with pytest.raises(ConfigError, match="layer 1: takes 4 inputs"):
        stream([lstm], 5)
    with pytest.raises(ConfigError, match="move_ticks: has 2 values, must have 8"):
        stream([lstm], 4, move_ticks=[1.0, 2.0])
    with pytest.raises(ConfigError, match="no activation 'swish'"):
        stream([{**head, "activation": "swish"}], 9)
    with pytest.raises(ConfigError, match="no precision 'int4'"):
        stream([{**head, "precision": "int4"}], 9)
    gru, conv = random_gru(rng, 4, 8), random_conv(rng, 4, 8, 3, "relu")
    with pytest.raises(ConfigError, match="layer 1 bias: has 24 values, must have 48"):
        stream([{**gru, "bias": gru["bias"][:1]}], 4)
    with pytest.raises(ConfigError, match="layer 1 bias: has 7 values, must have 8"):
        stream([{**conv, "bias": conv["bias"][:7]}], 4)
    with pytest.raises(ConfigError, match="has a width of 0 rows"):
        stream([{**conv, "kernel": conv["kernel"][:0]}], 4)
    gru["recurrent"][2, 9] = 1e31
    with pytest.raises(
        ConfigError, match="layer 1 recurrent kernel: column 9 has a weight of 1e\\+31"
    ):
        stream(in_8_bits([gru]), 4)
    with pytest.raises(ConfigError, match="window: has 0 rows"):
        _core.NetworkWindow(network_of([lstm]), 0)
    lstm["recurrent"][3, 2] = np.nan
    with pytest.raises(ConfigError, match="layer 1 recurrent kernel: value 98 is not finite"):
        stream([lstm], 4)
    with pytest.raises(ConfigError, match="no instruction set 'sse'"):
        stream([head], 9, "sse")


def test_isa_can_be_pinned_and_is_reported(monkeypatch):
    layers = [random_dense(np.random.default_rng(0), 2, 2, "linear")]
    build = lambda: _core.build_network([0.0] * 2, [1.0] * 2, 1.0, [core_layer(layers[0])])  # noqa: E731
    assert build().isa == _core.best_isa()
    monkeypatch.setenv("HFT_ISA", "portable")
    assert build().isa == "portable"
    monkeypatch.setenv("HFT_ISA", "mmx")
    with pytest.raises(ConfigError, match="'mmx'"):
        build()


@pytest.mark.parametrize("precision", ["float32", "int8"])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_step_into_an_array_gives_the_same_bits(shape, precision):
    network = network_of(precise(SHAPES[shape], precision))
    rows = rows_for(SHAPES[shape], 30)
    out = np.empty((30, network.outputs), np.float32)
    one = _core.NetworkStream(network)
    for row, answer in zip(rows, out, strict=True):
        one.step(row, answer)
    assert out.tobytes() == _core.NetworkStream(network).batch(rows).tobytes()
    window = _core.NetworkWindow(network, 7)
    for row, answer in zip(rows, out, strict=True):
        window.step(row, answer)
    assert out.tobytes() == _core.NetworkWindow(network, 7).steps(rows).tobytes()


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("precision", ["float32", "int8"])
@pytest.mark.parametrize("shape", SHAPES)
def test_many_streams_at_once_give_the_bits_of_each_alone(shape, precision, isa):
    if not has(isa):
        pytest.skip(f"this CPU has no {isa}")
    network = network_of(precise(SHAPES[shape], precision), isa)
    for n in (1, 3, 16, 37):
        rows = np.random.default_rng(n).standard_normal((4, n, network.inputs)) * 2.0
        rows[2, n // 2, 0] = np.nan
        together = [_core.NetworkStream(network) for _ in range(n)]
        ours = np.empty((4, n, network.outputs), np.float32)
        for turn in range(4):
            if turn == 1:
                together[0].arm()
            if turn == 3:
                for one in together:
                    one.arm()
            _core.step_streams(together, rows[turn], ours[turn])
        for i in range(n):
            alone = _core.NetworkStream(network).steps(np.ascontiguousarray(rows[:, i]))
            assert ours[:, i].tobytes() == alone.tobytes()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("precision", ["float32", "int8"])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_row_that_is_not_finite_is_answered_by_nan_and_leaves_no_trace(
    shape, precision, isa, bad
):
    if not has(isa):
        pytest.skip(f"this CPU has no {isa}")
    network = network_of(precise(SHAPES[shape], precision), isa)
    rows = rows_for(SHAPES[shape], 40)
    good = np.ones(40, bool)
    good[[0, 7, 8, 39]] = False
    rows[~good, -1] = bad
    for way in ("batch", "steps"):
        ours = getattr(_core.NetworkStream(network), way)(rows)
        assert np.isnan(ours[~good]).all()
        clean = _core.NetworkStream(network).batch(rows[good])
        assert ours[good].tobytes() == clean.tobytes()
    ours = _core.NetworkWindow(network, 5).steps(rows)
    assert np.isnan(ours[~good]).all()
    assert ours[good].tobytes() == _core.NetworkWindow(network, 5).steps(rows[good]).tobytes()


def test_arrays_that_do_not_fit_a_step_are_refused():
    network = network_of(SHAPES["odd sizes"])
    one, row, out = _core.NetworkStream(network), np.zeros(5), np.zeros(2, np.float32)
    with pytest.raises(ConfigError, match="row has 4 values, must have 5"):
        one.step(row[:4], out)
    with pytest.raises(ConfigError, match="out has 1 values, must have 2"):
        one.step(row, out[:1])
    for wrong in (row.astype(np.float32), np.zeros(10)[::2]):
        with pytest.raises(TypeError):
            one.step(wrong, out)
    with pytest.raises(TypeError):
        one.step(row, np.zeros(2))
    streams, rows = [one, _core.NetworkStream(network)], np.zeros((2, 5))
    answers = np.zeros((2, 2), np.float32)
    with pytest.raises(ConfigError, match="first axis of out has 1 values, must have 2"):
        _core.step_streams(streams, rows, answers[:1])
    with pytest.raises(ConfigError, match="stream 1 is there twice"):
        _core.step_streams([one, one], rows, answers)
    other = stream(SHAPES["odd sizes"], 5)
    with pytest.raises(ConfigError, match="stream 1 runs another network"):
        _core.step_streams([one, other], rows, answers)


def test_steps_are_timed_in_every_mode():
    network, rows = network_of(SHAPES["lstm 64x2"]), np.zeros((200, 16))
    for mode in ("step", "armed", "touched", "window"):
        ns, clock_ns = _core.time_steps(network, rows, mode, evict_bytes=1 << 16, window_rows=5)
        assert ns.shape == (200,)
        assert 0 <= clock_ns < ns.min()
    started = time.perf_counter_ns()
    _core.time_steps(network, rows, gap_ns=50_000)
    assert time.perf_counter_ns() - started >= 199 * 50_000
    with pytest.raises(ConfigError, match="no mode 'cold'"):
        _core.time_steps(network, rows, "cold")

"""What rows cost, interpolated; gates that close what is not worth it."""

from dataclasses import replace

import numpy as np
import pytest
from numpy_lstm import random_conv, random_dense, random_gru, random_lstm
from stacks import rows_of, stack_from, task_of

from hft.errors import ConfigError, DataError
from hft.inference.dataset.in_memory import Rows
from hft.inference.training.latency_table import (
    Grid,
    LatencyTable,
    along,
    load_table,
    measured,
    save_table,
)
from hft.inference.training.model_spec import model_spec
from hft.inference.training.task import TrainConfig
from hft.inference.training.unit_gates import gated, settled, without_closed

TABLE = LatencyTable(
    target="made up",
    inputs=4,
    precision="fp32",
    base_ns=100.0,
    kinds={
        "lstm": Grid(widths=(8, 16), depths=(1, 3), ns=((180.0, 300.0), (400.0, 900.0))),
        "conv3": Grid(widths=(16,), depths=(1,), ns=((260.0,),)),
    },
)


@pytest.mark.parametrize(
    ("width", "depth", "ns"),
    [
        (8, 1, 180.0),
        (12, 1, 240.0),
        (8, 2, 290.0),
        (12, 2, (240 + 650) / 2),
        (4, 1, 140.0),
        (0, 3, 100.0),
        (16, 0, 100.0),
        (16, 0.5, 200.0),
    ],
)
def test_linear_between_what_was_measured_of_width_and_depth(width, depth, ns):
    assert TABLE.ns("lstm", width, depth) == pytest.approx(ns)


def test_a_network_costs_what_each_layer_adds():
    hidden = model_spec("lstm:12,12").hidden
    assert TABLE.of_layers(hidden) == pytest.approx(TABLE.ns("lstm", 12, 2))
    mixed = model_spec("conv:8x3+lstm:16").hidden
    assert TABLE.of_layers(mixed) == pytest.approx(100 + 80 + 200)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("gru:8", "has no gru, only lstm, conv3"),
        ("conv:8x5", "has no conv5"),
        ("lstm:17", "up to 16 units, the model has 17"),
        ("lstm:8,8,8,8", "up to 3 layers, the model has 4"),
    ],
)
def test_what_was_not_measured_is_said(model, words):
    with pytest.raises(ConfigError, match=words):
        TABLE.of_layers(model_spec(model).hidden)


def test_the_expected_latency_has_the_slope_of_the_table():
    tf = pytest.importorskip("tensorflow", reason="training needs the extra [train]")
    ((widths, ns),) = TABLE.steps(model_spec("lstm:16").hidden)
    for width, slope in ((4.0, 10.0), (12.0, 15.0)):
        at = tf.Variable(width)
        with tf.GradientTape() as tape:
            found = along(widths, ns, at, tf.clip_by_value)
        assert float(found) == pytest.approx(TABLE.ns("lstm", width, 1) - 100)
        assert float(tape.gradient(found, at)) == pytest.approx(slope)


def test_a_table_is_read_as_it_was_written(tmp_path):
    save_table(TABLE, tmp_path / "t.json")
    assert load_table(tmp_path / "t.json") == TABLE


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"version": 1', '"version": 2', "has version 2; this release reads 1"),
        ("180.0", "-1", "a time above 0"),
        ("180.0,", "", "lstm wants ascending widths"),
        ('"base_ns"', '"base"', "is no latency table"),
    ],
)
def test_a_damaged_table_is_said(tmp_path, old, new, words):
    path = tmp_path / "t.json"
    save_table(TABLE, path)
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(DataError, match=words):
        load_table(path)
    with pytest.raises(ConfigError, match="no such latency table"):
        load_table(tmp_path / "other.json")


def test_more_units_and_layers_never_cost_less():
    models = [model_spec(text).hidden for text in ("lstm:32,32", "conv:16x3+gru:8")]
    table = measured(models, 4, report=lambda line: None)
    assert set(table.kinds) == {"lstm", "conv3", "gru"}
    for grid in table.kinds.values():
        ns = np.array(grid.ns)
        assert ns.shape == (len(grid.depths), len(grid.widths))
        assert (np.diff(ns, axis=0) >= 0).all()
        assert (np.diff(ns, axis=1) >= 0).all()
        assert (ns >= table.base_ns).all()
    assert table.kinds["lstm"].widths == (8, 16, 32)
    assert table.of_layers(models[0]) > table.of_layers(model_spec("lstm:8").hidden)


def networks():
    rng = np.random.default_rng(4)
    yield [random_lstm(rng, 3, 10), random_lstm(rng, 10, 7), random_dense(rng, 7, 3, "softmax")]
    yield [
        random_gru(rng, 3, 9),
        random_dense(rng, 9, 6, "relu"),
        random_dense(rng, 6, 3, "softmax"),
    ]
    yield [
        random_conv(rng, 3, 8, 4, "relu"),
        random_gru(rng, 8, 5),
        random_dense(rng, 5, 3, "softmax"),
    ]


@pytest.mark.parametrize("layers", list(networks()), ids=["lstm", "gru-dense", "conv-gru"])
def test_taking_out_closed_units_changes_no_output(layers):
    rng = np.random.default_rng(5)
    stack = stack_from(layers)
    gates = []
    for layer in stack.layers[:-1]:
        gate = rng.uniform(0.2, 1.0, layer.units).astype(np.float32)
        gate[rng.permutation(layer.units)[: layer.units // 2]] = 0.0
        gates.append(gate)
    rows: Rows = rows_of(rng.standard_normal((400, 3)))
    cut = slice(50, 400)
    kept = replace(stack, weights=gated([dict(w) for w in stack.weights], gates))
    smaller = without_closed(stack, gates)
    counts = [int((gate > 0).sum()) for gate in gates]
    assert [layer.units for layer in smaller.layers[:-1]] == counts
    np.testing.assert_allclose(smaller.outputs(rows, cut), kept.outputs(rows, cut), atol=1e-6)
    assert np.abs(smaller.outputs(rows, cut) - stack.outputs(rows, cut)).max() > 1e-3


def test_a_unit_of_each_layer_stays():
    assert settled(np.array([-9.0, -7.0, -8.0])).tolist() == [0.0, 1.0, 0.0]
    assert settled(np.array([9.0, -7.0, 0.0])).tolist() == [1.0, 0.0, 0.5]


def test_a_dearer_row_leaves_fewer_units():
    pytest.importorskip("keras", reason="training needs the extra [train]")
    from hft.inference.training.keras_fit import fit

    rng = np.random.default_rng(6)
    x = rng.standard_normal((6_000, 4))
    moves = np.rint(4 * (x[:, 0] + 0.3 * rng.standard_normal(6_000))) / 2
    task = task_of(x, moves)
    table = LatencyTable(
        target="made up",
        inputs=4,
        precision="fp32",
        base_ns=100.0,
        kinds={"dense": Grid(widths=(16,), depths=(1,), ns=((1_000.0,),))},
    )
    left, losses = [], []
    for weight in (0.0, 0.02, 1.0):
        config = TrainConfig(
            model="dense:16",
            lanes=8,
            reach_rows=20,
            epochs=6,
            patience=6,
            learning_rate=0.02,
            latency_weight=weight,
            horizons_ns=(task.horizon_ns,),
        )
        found = fit(task, config, losses.append, table=table)
        left.append(found.layers[0].units)
    assert left[0] == 16
    assert left[0] > left[1] > left[2] >= 1
    assert "units open" in losses[-1]

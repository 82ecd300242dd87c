"""LIGHT and MICRO against FULL: a cheaper model must be better than nothing."""

import logging
import tomllib
from contextlib import ExitStack
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from building import MARKET, STRATEGY, built, quiet, require, synthetic_dataset
from tiny_models import card_of, layers_of, random_weights, tiny_bundle

from hft.config import ModelConfig
from hft.inference.build.building import Options
from hft.inference.build.command import Wanted, run_build
from hft.inference.build.evidence import Asked
from hft.inference.build.smaller import Cuts
from hft.inference.build.tiers import TierLimits, correlation_gate, limits_of
from hft.inference.bundle import CARD, load_bundle, save_bundle
from hft.inference.card import Gate, LayerEntry, TierEntry
from hft.sources import open_model

GIVEN = STRATEGY.with_name("lstm_mm.bundle")
GATES = ["correlation", "kl", "argmax", "decisions", "log_loss", "auc", "latency", "pnl"]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    return synthetic_dataset(tmp_path_factory.mktemp("sets") / "set")


def wanted_of(dataset, model, out, pnl_ns=0, **options):
    asked = Asked(str(STRATEGY), dataset, settings=MARKET, pnl_ns=pnl_ns)
    usual = Options(formats=(), limit_s=120.0, gate_rows=1_500)
    return Wanted(model, out, asked, replace(usual, **options))


def gates_of(rows, name):
    (row,) = [row for row in rows if row.name == name]
    return row, {gate.name: gate for gate in row.gates}


def with_micro(folder, arrays):
    """The shipped model with one dense layer as MICRO."""
    bundle = load_bundle(GIVEN)
    layer = LayerEntry(kind="dense", units=3, activation="softmax")
    entry = TierEntry(weights="micro.npz", weights_sha256="", layers=(layer,))
    card = msgspec.structs.replace(bundle.card, tiers={"MICRO": entry}, parts=())
    save_bundle(folder, card, bundle.weights, {"MICRO": [arrays]})
    return folder


def test_distilled_tiers_are_worth_having_and_it_is_recorded(dataset, tmp_path):
    require("keras", "tensorflow")
    out = tmp_path / "m.bundle"
    wanted = wanted_of(dataset, GIVEN, out, pnl_ns=45_000_000_000, distil=True)
    rows = run_build(wanted, quiet)
    card = load_bundle(out).card
    for tier in ("LIGHT", "MICRO"):
        row, gates = gates_of(rows, tier.lower())
        assert list(gates) == GATES
        assert card.tiers[tier].gates == row.gates
        assert gates["argmax"].passed
        assert gates["argmax"].note.endswith(" by chance")
        assert gates["kl"].value < gates["kl"].limit
        assert gates["log_loss"].value < 1.0
        assert gates["auc"].value > 0.55
        assert "its parent" in gates["latency"].note
        assert "difference" in gates["pnl"].note
    assert load_bundle(GIVEN).weights[0]["kernel"].tobytes() == (
        load_bundle(out).weights[0]["kernel"].tobytes()
    )


def test_a_tier_that_says_nothing_of_a_row_fails_and_runs_only_with_a_warning(
    dataset, tmp_path, caplog
):
    weights = {"kernel": np.zeros((16, 3), np.float32), "bias": np.zeros(3, np.float32)}
    given = with_micro(tmp_path / "given.bundle", weights)
    told = []
    rows = run_build(wanted_of(dataset, given, tmp_path / "m.bundle"), told.append)
    row, gates = gates_of(rows, "micro")
    assert row.verdict == "FAILED"
    failed = [name for name, gate in gates.items() if gate.failed]
    assert {"correlation", "kl", "argmax"} <= set(failed)
    assert gates["auc"].value == 0.5
    assert any(line.startswith("MICRO FAILED: correlation") for line in told)
    bundle = load_bundle(tmp_path / "m.bundle")
    with caplog.at_level(logging.WARNING), ExitStack() as opened:
        open_model(bundle, ModelConfig(), opened)
        assert caplog.text == ""  # nobody asked for it
        open_model(bundle, ModelConfig(tier="MICRO"), opened)
    assert "its tier MICRO failed its gates when it was built: correlation 0" in caplog.text


def test_limits_of_tiers_are_options(dataset, tmp_path):
    """A tier passes a gate that the usual limit denies it, and fails one that it would grant."""
    kernel = np.zeros((16, 3), np.float32)
    kernel[2] = [-0.5, 0.0, 0.5]  # imbalance at the touch
    given = with_micro(tmp_path / "given.bundle", {"kernel": kernel, "bias": np.zeros(3)})
    limits = limits_of(["auc=0.99", "correlation=-1"])
    assert limits == TierLimits(auc=0.99, correlation=-1.0)
    wanted = wanted_of(dataset, given, tmp_path / "m.bundle", tier_limits=limits)
    _, gates = gates_of(run_build(wanted, quiet), "micro")
    assert gates["correlation"].passed
    assert TierLimits().correlation > gates["correlation"].value > gates["correlation"].limit == -1
    assert gates["auc"].failed
    assert gates["auc"].limit == 0.99


@pytest.mark.parametrize(
    ("storms", "told", "value"),
    [(99, "of the forecast, calm 1.000; ", 1.0), (100, "calm 1.000, storm -1.000; ", -1.0)],
)
def test_a_tier_is_not_judged_by_a_handful_of_rows_in_a_storm(storms, told, value):
    p = np.random.default_rng(1).dirichlet([1, 1, 1], 400)
    storm = np.arange(400) < storms
    full = np.where(storm[:, None], p[:, ::-1], p)  # in storms it says the opposite
    whole = Gate(name="correlation", value=0.5, limit=0.5, passed=True)
    gate = correlation_gate(whole, full, p, storm, None)
    assert told in gate.note
    assert gate.value == pytest.approx(value)


def test_without_rows_a_tier_is_not_judged(tmp_path):
    layers = layers_of("dense")
    entry = TierEntry(weights="light.npz", weights_sha256="", layers=layers)
    weights = random_weights(layers)
    card = msgspec.structs.replace(card_of(layers_of("lstm")), tiers={"LIGHT": entry})
    save_bundle(tmp_path / "a.bundle", card, random_weights(card.layers), {"LIGHT": weights})
    rows, bundle = built(tmp_path / "a.bundle", tmp_path / "b.bundle")
    row, gates = gates_of(rows, "light")
    assert row.verdict == "outputs not judged"
    assert not gates["outputs"].passed
    assert not bundle.card.tiers["LIGHT"].gates[0].judged
    told = tomllib.loads((tmp_path / "b.bundle" / CARD).read_text())
    (gate,) = told["tiers"]["LIGHT"]["gates"]
    assert gate["judged"] is False
    assert gate["note"] == "no rows: give --dataset or --data"


def test_cards_without_the_new_words_are_read(tmp_path):
    bundle = tiny_bundle(tmp_path / "a.bundle", "lstm")
    text = (bundle.path / CARD).read_text()
    assert "judged" not in text
    old = 'gates = [{ name = "kl", value = 0.5, limit = 0.01, passed = false }]\n'
    head, _, rest = text.partition("\n[trigger]")
    head = "\n".join(line for line in head.splitlines() if not line.startswith("gates"))
    (bundle.path / CARD).write_text(f"{head}\n{old}\n[trigger]{rest}")
    (gate,) = load_bundle(bundle.path).card.gates
    assert gate.failed


def test_tfmot_prunes_through_the_build(dataset, tmp_path):
    """The toolkit wants the old Keras; exercised versions stand in docs/compression.md."""
    for name in ("tensorflow_model_optimization", "tf_keras"):
        pytest.importorskip(name, reason="tfmot needs the extra [prune]")
    cuts = Cuts(weights=0.5, train_on="tfmot")
    rows = run_build(wanted_of(dataset, GIVEN, tmp_path / "m.bundle", cuts=cuts), quiet)
    bundle = load_bundle(tmp_path / "m.bundle")
    zeros = [
        float((arrays[name] == 0).mean())
        for arrays in bundle.weights
        for name in ("kernel", "recurrent")
        if name in arrays
    ]
    assert zeros == pytest.approx([0.5] * 5, abs=0.03)
    row, gates = gates_of(rows, "native")
    assert gates["kl"].value < 0.05
    assert bundle.card.gates == row.gates

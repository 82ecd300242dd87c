"""The bundle of lstm_mm from a synthetic market, by the commands alone, and a run of it.

backtests/lstm_mm_bundle.py has the commands; here with less of a market, learned faster.
"""

import importlib.util
import json
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from hft.cli.main import cli
from hft.inference.bundle import load_bundle

pytest.importorskip("keras", reason="training needs the extra [train]")
ROOT = Path(__file__).parents[2]
STRATEGY = ROOT / "strategies" / "lstm_mm.py"
SCRIPT = ROOT / "backtests" / "lstm_mm_bundle.py"
SHIPPED = STRATEGY.with_suffix(".bundle")
AUC, ALIKE = 0.06, 0.08
"""How far metrics may be from the shipped card's: of the forecasts, and of tiers with FULL. The
shipped one learned from 15 times as much."""


def hft(*arguments):
    done = CliRunner().invoke(cli, [str(a) for a in arguments])
    assert done.exit_code == 0, (done.output, done.exception)
    return done.output


def run(command):
    hft(*command[1:])


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("lstm_mm_bundle", SCRIPT)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def recipe(script):
    libraries = ("onnx", "onnxruntime")
    there = all(importlib.util.find_spec(name) for name in libraries)
    return script.Recipe(
        hours=1 / 3,
        lanes=16,
        reach=50,
        epochs=3,
        learning_rate=0.01,
        formats="onnx" if there else "",
        pnl="1min",
        rows=1_000,
    )


@pytest.fixture(scope="module")
def home(script, recipe, tmp_path_factory):
    """A store, its data set, a model of it, and that model built."""
    home = tmp_path_factory.mktemp("home")
    script.build(recipe, home, home / "built.bundle", trained=True, run=run)
    return home


def card_of(bundle):
    return tomllib.loads((bundle / "model.toml").read_text())


def test_the_model_forecasts_what_it_has_not_seen(home):
    found, shipped = card_of(home / "lstm_mm.bundle"), card_of(SHIPPED)
    for fact in ("features", "trigger", "layers", "horizon_ns", "latency_ns", "outputs"):
        assert found[fact] == shipped[fact]
    found, shipped = found["metrics"], shipped["metrics"]
    for side in ("up", "down"):
        assert found[f"auc_{side}"] > found[f"linear_auc_{side}"] - 0.05
        for weather in ("calm", "storm"):
            assert found[f"{weather}_auc_{side}"] > shipped[f"{weather}_auc_{side}"] - AUC
    assert found["auc_up"] > found["placebo_auc_up"] + 0.05
    assert abs(found["placebo_auc_up"] - 0.5) < 0.1
    assert found["alpha_correlation"] > found["linear_correlation"] - 0.05
    assert found["calibration_up"] < 0.1
    assert found["log_loss"] < found["log_loss_of_shares"]
    assert found["parity_keras"] < 1e-5


def test_it_is_built_with_tiers_and_parts_that_hold_their_gates(home):
    card, trained = card_of(home / "built.bundle"), card_of(home / "lstm_mm.bundle")
    assert card["training"] == trained["training"]
    assert card["source_sha256"] == trained["source_sha256"]
    require_gates(card)


def require_gates(card):
    """Tiers and float parts hold theirs, but for time, which other tests share."""
    parts = {part["file"]: part["gates"] for part in card["parts"]}
    held = [parts[name] for name in ("step.onnx", "light_step.onnx") if name in parts]
    for gates in [*held, *(tier["gates"] for tier in card["tiers"].values())]:
        bad = [gate for gate in gates if not gate["passed"] and gate["name"] != "latency"]
        assert [gate for gate in bad if gate.get("judged", True)] == []


def test_tiers_and_parts_of_the_shipped_weights_come_out_again(script, recipe, home, tmp_path):
    """By the commands of `make lstm-mm`; FULL stays byte for byte."""
    out = tmp_path / "lstm_mm.bundle"
    run(script.to_bundle(recipe, home, SHIPPED, out))
    weights, shipped_weights = (np.load(folder / "weights.npz") for folder in (out, SHIPPED))
    assert weights.keys() == shipped_weights.keys()  # files differ: zip headers are of a Python
    for name, array in weights.items():
        assert array.tobytes() == shipped_weights[name].tobytes(), name
    found, shipped = card_of(out), card_of(SHIPPED)
    require_gates(found)
    assert found["tiers"].keys() == shipped["tiers"].keys() == {"LIGHT", "MICRO"}
    for tier, entry in found["tiers"].items():
        assert entry["layers"] == shipped["tiers"][tier]["layers"]
        for name in ("argmax", "alpha", "calm_alpha"):
            key = f"{tier.lower()}_{name}"
            assert found["metrics"][key] == pytest.approx(shipped["metrics"][key], abs=ALIKE)
    of_shipped = {part.file: part for part in load_bundle(SHIPPED).card.parts}
    for part in load_bundle(out).card.parts:
        gates = {gate.name: gate for gate in of_shipped[part.file].gates}
        for gate in part.gates:
            if gate.name in ("correlation", "argmax", "decisions"):
                assert gate.value == pytest.approx(gates[gate.name].value, abs=0.02), part.file
                assert gate.passed == gates[gate.name].passed


def test_the_shipped_bundle_is_whole_and_small():
    """What a clone runs: every part by its hash, every tier loads, within 400 kB."""
    bundle = load_bundle(SHIPPED)
    assert bundle.tiers == ("FULL", "LIGHT", "MICRO")
    for part in bundle.card.parts:
        if part.sha256:
            assert bundle._checked(part).is_file()
    assert all(entry.gates for entry in bundle.card.tiers.values())
    files = [path for path in SHIPPED.rglob("*") if path.is_file()]
    named = {"model.toml", "weights.npz", "light.npz", "micro.npz"}
    assert {path.name for path in files} == named | {
        part.file for part in bundle.card.parts if part.sha256
    }
    assert sum(path.stat().st_size for path in files) < 400_000


def test_it_trades_and_beats_its_placebo(home, tmp_path):
    """On another seed of the market, with its own bundle for the strategy's."""
    hft(
        *("backtest", STRATEGY, "--placebo", "--out", tmp_path),
        *("--set", f"models.model.bundle={home / 'built.bundle'}"),
        *("--set", "data.synth.duration_s=240"),
    )
    (folder,) = tmp_path.iterdir()
    report = json.loads((folder / "report.json").read_text())
    assert report["headline"]["status"] == "complete"
    assert report["headline"]["fills"] > 50
    assert report["headline"]["identity_holds"]
    (placebo,) = [v for v in report["variants"] if "placebo" in v["name"]]
    assert report["headline"]["net"] > placebo["net"]

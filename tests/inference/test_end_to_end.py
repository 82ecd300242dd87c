"""From a synthetic market to a run of a model of one's own, by the commands alone."""

import json
import tomllib

import pytest
from click.testing import CliRunner

from hft.cli.main import cli

pytest.importorskip("keras", reason="training needs the extra [train]")
HORIZONS = "250ms,500ms"


def hft(*arguments):
    done = CliRunner().invoke(cli, [str(a) for a in arguments])
    assert done.exit_code == 0, (done.output, done.exception)
    return done.output


@pytest.fixture(scope="module")
def strategy(request):
    return request.config.rootpath / "strategies" / "lstm_mm.py"


@pytest.fixture(scope="module")
def home(strategy, tmp_path_factory):
    """A store of ten minutes, its data set, and a model of it."""
    home = tmp_path_factory.mktemp("home")
    store, dataset, bundle = home / "store", home / "set", home / "mine.bundle"
    hft("data", "synth", "--store", store, "--set", "duration_s=600", "--set", "seed=1001")
    hft(
        *("dataset", strategy, "--store", store, "--labels", HORIZONS),
        *("--latency", "1ms", "-o", dataset),
    )
    hft(
        *("train", strategy, "--store", store, "--dataset", dataset, "--model", "lstm:16"),
        *("--lanes", 16, "--reach", 50, "--epochs", 3, "--learning-rate", 0.01, "-o", bundle),
    )
    return home


def test_the_model_forecasts_what_it_has_not_seen(home):
    card = tomllib.loads((home / "mine.bundle" / "model.toml").read_text())
    found = card["metrics"]
    assert card["latency_ns"] == 1_000_000
    for side in ("up", "down"):
        assert found[f"auc_{side}"] > 0.58
        assert found[f"auc_{side}"] > found[f"linear_auc_{side}"] - 0.05
    assert found["auc_up"] > found["placebo_auc_up"] + 0.05
    assert abs(found["placebo_auc_up"] - 0.5) < 0.1
    assert found["alpha_correlation"] > found["linear_correlation"] - 0.05
    assert found["calibration_up"] < 0.1
    assert found["log_loss"] < found["log_loss_of_shares"]
    assert found["parity_keras"] < 1e-5


def test_it_is_built_for_another_backend_and_passes_its_gates(home, strategy, tmp_path):
    pytest.importorskip("onnx", reason="building ONNX needs the extra [onnx]")
    pytest.importorskip("onnxruntime", reason="judging ONNX needs the extra [onnx]")
    built = tmp_path / "built.bundle"
    hft(
        *("build", home / "mine.bundle", "--dataset", home / "set", "--strategy", strategy),
        *("--formats", "onnx", "--pnl", "0s", "--rows", 500, "-o", built),
    )
    card = tomllib.loads((built / "model.toml").read_text())
    (step,) = [part for part in card["parts"] if part["file"] == "step.onnx"]
    gates = {gate["name"]: gate for gate in step["gates"]}
    assert all(gates[name]["passed"] for name in ("correlation", "kl", "argmax"))
    trained = tomllib.loads((home / "mine.bundle" / "model.toml").read_text())
    assert card["training"] == trained["training"]
    assert card["source_sha256"] == trained["source_sha256"]


def test_it_trades_and_beats_its_placebo(home, strategy, tmp_path):
    """On another seed of the market, with its own bundle for the strategy's."""
    hft(
        *("backtest", strategy, "--placebo", "--out", tmp_path),
        *("--set", f"models.model.bundle={home / 'mine.bundle'}"),
        *("--set", "data.synth.duration_s=240"),
    )
    (folder,) = tmp_path.iterdir()
    report = json.loads((folder / "report.json").read_text())
    assert report["headline"]["status"] == "complete"
    assert report["headline"]["fills"] > 50
    assert report["headline"]["identity_holds"]
    (placebo,) = [v for v in report["variants"] if "placebo" in v["name"]]
    assert report["headline"]["net"] > placebo["net"]

"""`hft train` from the command line: where rows come from, and what is refused."""

import json

import pytest
from click.testing import CliRunner

from hft.cli.main import cli
from hft.errors import ConfigError, DataError
from hft.inference.bundle import load_bundle

MARKET = ("--set", "data.synth.duration_s=90", "--set", "data.synth.seed=5")
TINY = ("--lanes", "8", "--reach", "40", "--epochs", "1", "--labels", "250ms,500ms")


@pytest.fixture(autouse=True)
def strategy(request):
    return request.config.rootpath / "strategies" / "lstm_mm.py"


def hft(*arguments, raises=None):
    done = CliRunner().invoke(cli, [str(a) for a in arguments])
    if raises is not None:
        assert isinstance(done.exception, raises), done.output
        return str(done.exception)
    assert done.exit_code == 0, (done.output, done.exception)
    return done.output


@pytest.fixture(scope="module")
def dataset(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("sets") / "set"
    file = request.config.rootpath / "strategies" / "lstm_mm.py"
    hft("dataset", file, *MARKET, "--labels", "250ms,500ms", "--threshold", 2.5, "-o", folder)
    return folder


def test_a_data_set_keeps_its_classes_and_latency(dataset, tmp_path):
    pytest.importorskip("keras", reason="training needs the extra [train]")
    out = hft(
        "train", "--dataset", dataset, *TINY, "--model", "dense:4", "-o", tmp_path / "m.bundle"
    )
    assert "flat is a move of at most 2.5 ticks" in out
    card = load_bundle(tmp_path / "m.bundle").card
    assert card.latency_ns == 1_070_000
    assert card.warm_up_rows == 0
    facts = json.loads((dataset / "dataset.json").read_text())
    assert card.training.data_sha256 == facts["data_hash"]
    assert card.training.versions["keras"]
    notes = (tmp_path / "m.bundle" / "training.md").read_text()
    assert facts["data_hash"] in notes
    assert "| AUC up, placebo |" in notes


def test_a_strategy_without_a_data_set_gives_the_same_model(dataset, strategy, tmp_path):
    pytest.importorskip("keras", reason="training needs the extra [train]")
    made = tmp_path / "made.bundle"
    hft("train", strategy, *MARKET, *TINY, "--model", "dense:4", "-o", made)
    plain = tmp_path / "plain"
    hft("dataset", strategy, *MARKET, "--labels", "250ms,500ms", "-o", plain)
    read = tmp_path / "read.bundle"
    hft("train", strategy, "--dataset", plain, *TINY, "--model", "dense:4", "-o", read)
    assert (made / "weights.npz").read_bytes() == (read / "weights.npz").read_bytes()
    hft("train", "--dataset", plain, *TINY, "--model", "dense:3", "-o", read, "--overwrite")
    assert load_bundle(read).card.layers[0].units == 3


def test_columns_of_another_strategy_are_refused(dataset, tmp_path):
    other = tmp_path / "other.py"
    other.write_text(
        "from hft import Features, Strategy\n"
        "from hft.features import OnTouch, mid, spread\n"
        "class Other(Strategy):\n"
        "    features = Features(mid(), spread(), trigger=OnTouch())\n"
    )
    said = hft(
        "train", other, "--dataset", dataset, "-o", tmp_path / "x.bundle", raises=ConfigError
    )
    assert "column 1 is micro_price_minus_mid" in said
    assert "the strategy's is mid" in said


def test_what_a_row_costs_is_measured(dataset, tmp_path):
    file = tmp_path / "t.json"
    out = hft("train", "--dataset", dataset, "--model", "gru:16", "--measure-latency", file)
    assert "gru: " in out
    table = json.loads(file.read_text())
    assert table["inputs"] == 16
    assert table["kinds"]["gru"]["widths"] == [8, 16]


def test_a_sweep_gives_bundles_and_both_fronts(dataset, strategy, tmp_path):
    pytest.importorskip("keras", reason="training needs the extra [train]")
    out = tmp_path / "front"
    said = hft(
        *("train", strategy, "--dataset", dataset, *TINY, *MARKET, "--sweep", "0,0.5"),
        *("--model", "dense:8", "-o", out),
    )
    assert "placebo" in said
    found = sorted(path.name for path in out.iterdir())
    assert found == ["dense-8_0.5.bundle", "dense-8_0.bundle", "front.csv", "front.png"]
    header, *lines = (out / "front.csv").read_text().splitlines()
    assert header.startswith("name,model,latency_weight,units,latency_ns,log_loss,auc,net")
    assert len(lines) == 2
    assert "exists" in hft(
        "train", "--dataset", dataset, "--sweep", "0", "-o", out, raises=ConfigError
    )


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (("--latency", "soon", "-o", "x.bundle"), ConfigError, "soon"),
        (("--model", "lstm:32,wide", "-o", "x.bundle"), ConfigError, "'wide': want units"),
        (("-o", "x"), ConfigError, "ends in .bundle"),
        ((), ConfigError, "say where to write"),
        (("--precision", "int8", "-o", "x.bundle"), ConfigError, "`hft build --precision`"),
        (("--measure-latency", "t.json", "-o", "x.bundle"), ConfigError, "leave out -o"),
        (("--sweep", "0", "--overwrite", "-o", "x"), ConfigError, "leave out --lambda"),
        (("--sweep", "0,much", "-o", "x"), ConfigError, "want numbers from 0"),
        (("--model", "lstm:8", "--model", "lstm:4", "-o", "x.bundle"), ConfigError, "want --sweep"),
        (("--dataset", "nowhere", "-o", "x.bundle"), DataError, "nowhere has no dataset.json"),
        (("--latency-table", "no.json", "-o", "x.bundle"), ConfigError, "no such latency table"),
        (("--fold", "2", "-o", "x.bundle"), ConfigError, "--fold: of a data set"),
        (
            ("--measure-latency", "t.json", "--model", "transformer:d=8"),
            ConfigError,
            "no native layers",
        ),
        (
            ("--set", "data.synth.duration_s=2", "-o", "x.bundle"),
            (ConfigError, DataError),
            "",
        ),
    ],
)
def test_what_is_wrong_is_one_line(arguments, error, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = hft("train", *arguments, raises=error)
    assert words in said
    assert "\n" not in said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--labels", "250ms,2s"), "--labels 250ms,2s: "),
        (("--latency", "3ms"), "--latency 3ms: labels of "),
        (("--symbol", "A.SYNTH"), "--symbol: of the data that a strategy runs on"),
        (("--set", "data.synth.seed=2"), "--set: of the data"),
        (("--source", "model", "--from", "2024-01-01"), "--from, --source: of the data"),
        (("--data", "synth"), "--data: of the data that a strategy runs on"),
        (("--store", "synth"), "or name the strategy"),
        (("--fold", "2"), "has one fold, there is no fold 2"),
    ],
)
def test_what_a_data_set_has_of_its_own_is_not_overruled(dataset, arguments, words, tmp_path):
    pytest.importorskip("keras", reason="training needs the extra [train]")
    out = tmp_path / "x.bundle"
    said = hft("train", "--dataset", dataset, *arguments, "-o", out, raises=ConfigError)
    assert words in said
    assert not out.exists()


def test_of_a_data_sets_horizons_some_may_be_chosen(dataset, tmp_path):
    pytest.importorskip("keras", reason="training needs the extra [train]")
    out = tmp_path / "m.bundle"
    tiny = ("--epochs", "1", "--lanes", "8", "--reach", "40", "--model", "dense:4")
    for latency in ("recipe", "1070us", "1.07ms"):  # of the default recipe
        given = ("--labels", "500ms", "--latency", latency, "--overwrite", "-o", out)
        hft("train", "--dataset", dataset, *tiny, *given)
        assert load_bundle(out).card.horizon_ns == 500_000_000


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--window", "5", "--lanes", "8", "--reach", "9"), "--lanes, --reach: not used with"),
        (("--batch", "64"), "--batch: used with --window alone"),
        (("--window", "5", "--batch", "64"), ""),
    ],
)
def test_options_of_the_other_kind_of_training_are_told(options, told, tmp_path):
    done = CliRunner().invoke(cli, ["train", *options, "--precision", "int8", "-o", "x.bundle"])
    assert isinstance(done.exception, ConfigError)  # of --precision: nothing is trained here
    assert done.output.startswith(told)
    assert bool(done.output) == bool(told)


def test_flat_is_said_once(strategy, tmp_path):
    options = ("--labels", "250ms", "--flat", "0.3", "--threshold", "2", "-o", tmp_path / "set")
    assert "give one of them" in hft("dataset", strategy, *options, raises=ConfigError)


def test_without_the_extra_it_says_what_to_install(monkeypatch, tmp_path):
    import importlib.util

    found = importlib.util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name: None if name == "keras" else found(name)
    )
    said = hft("train", "-o", tmp_path / "x.bundle", raises=ConfigError)
    assert "pip install 'hft-framework[train]'" in said


def test_rows_remember_which_stretches_begin_afresh(dataset):
    from hft.inference.dataset.reading import open_dataset

    found = open_dataset(dataset)
    rows, _ = found.rows()
    assert rows.memory.max() == found.fresh().sum()

"""`hft build`: models of every maker to bundles, and what it refuses."""

import importlib.util
import re
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from building import LIBRARIES, MARKET, STRATEGY, built, quiet, require, synthetic_dataset
from click.testing import CliRunner
from tiny_models import K, card_of, layers_of, random_weights, tiny_bundle

from hft.errors import ConfigError, ModelError
from hft.inference.build.building import Options
from hft.inference.build.command import (
    Wanted,
    exit_code,
    formats_of,
    notes_of,
    run_build,
    table_of,
)
from hft.inference.build.evidence import Asked
from hft.inference.build.exports import Made, Part
from hft.inference.build.forms import Forms, Row
from hft.inference.build.judge import Judge, Parent
from hft.inference.build.parents import native_outputs
from hft.inference.build.smaller import Cuts, stack_of_subject
from hft.inference.build.subject import of_bundle
from hft.inference.bundle import load_bundle, part_sha256
from hft.inference.card import Gate, to_toml

ALL = ("onnx", "litert", "saved_model")


STEPS = {
    ("step.onnx", "onnx", "step", "fp32"),
    ("step_fp16.onnx", "onnx", "step", "fp16"),
    ("step.tflite", "litert", "step", "fp32"),
    ("step_dynamic.tflite", "litert", "step", "dynamic"),
    ("saved_model", "tensorflow", "step", "fp32"),
}
WINDOWS = {
    ("window.onnx", "onnx", "window", "fp32"),
    ("saved_model", "tensorflow", "window", "fp32"),
    *(step for step in STEPS if step[1] == "onnx"),
}


@pytest.mark.parametrize(
    ("window_rows", "formats", "wanted"),
    [(0, ALL, STEPS), (6, ("onnx", "saved_model"), WINDOWS)],  # LiteRT has no windows
    ids=["steps", "windows"],
)
def test_every_part_of_a_bundle_holds_its_gates(tmp_path, window_rows, formats, wanted):
    require(*LIBRARIES)
    tiny_bundle(tmp_path / "given.bundle", window_rows=window_rows)
    rows, bundle = built(tmp_path / "given.bundle", tmp_path / "made.bundle", formats)
    told = notes_of(rows)
    timed = [line for line in told if ": latency" not in line]  # of a busy machine
    assert timed == []
    forms = {(p.file, p.backend, p.form, p.precision) for p in bundle.card.parts}
    assert forms == wanted
    for part in bundle.card.parts:
        assert part_sha256(bundle.path / part.file) == part.sha256
        names = {gate.name for gate in part.gates}
        assert {"correlation", "kl", "argmax", "decisions"} <= names
        assert ("latency" in names) == (part.precision != "fp32")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["given.bundle", "made.bundle"]
    shown = [str(column.header) for column in table_of(rows).columns]
    assert shown[:4] == ["part", "bytes", "step us", "correlation"]


def test_a_part_of_other_weights_fails(tmp_path):
    require("onnx", "onnxruntime")
    from hft.inference.build.onnx_builder import step_model
    from hft.inference.build.onnx_graph import write_onnx

    subject = of_bundle(tiny_bundle(tmp_path / "a.bundle", "lstm").path)
    wrong = [dict(arrays) for arrays in subject.weights]
    wrong[0]["kernel"] = -wrong[0]["kernel"]
    write_onnx(step_model(subject.card.layers, wrong), tmp_path / "step.onnx")
    entry = Part("onnx", "step").entry(part_sha256(tmp_path / "step.onnx"))
    x = np.random.default_rng(1).normal(size=(300, K))
    judge = Judge(tmp_path, x, 20, 60.0)
    folder = judge.part(tmp_path / "step.onnx", entry, subject.card, subject.weights)
    expected = native_outputs(stack_of_subject(subject)).of(x)
    trial = judge.try_form(folder, Parent(expected), subject.card.readout)
    assert not any(gate.passed for gate in trial.gates)


def test_a_part_that_does_not_run_is_told_and_recorded(tmp_path):
    require("onnx", "onnxruntime")
    subject = of_bundle(tiny_bundle(tmp_path / "a.bundle", "lstm").path)
    (tmp_path / "step.onnx").write_bytes(b"no graph")
    x = np.random.default_rng(1).normal(size=(60, K))
    judge = Judge(tmp_path, x, 20, 60.0)
    told = []
    forms = Forms(tmp_path, judge, subject, subject, ("onnx",), None, told.append)
    made = Made(Part("onnx", "step"), part_sha256(tmp_path / "step.onnx"), 8)
    expected = native_outputs(stack_of_subject(subject)).of(x)
    entry = forms._judged(made, expected, None)
    assert [gate.name for gate in entry.gates] == ["run"]
    assert not entry.passed
    assert "step.onnx" in told[-1]
    assert "FAILED" in told[-1]


def test_failed_parts_are_recorded_behind_those_that_run(tmp_path):
    require("onnx", "onnxruntime")
    tiny_bundle(tmp_path / "a.bundle", "gru")
    rows, bundle = built(tmp_path / "a.bundle", tmp_path / "b.bundle", ("onnx",), budget_ns=1)
    assert bundle.card.budget_ns == 1
    assert not any(row.passed for row in rows)
    assert all(gate.name != "budget" or not gate.passed for gate in bundle.card.parts[0].gates)
    assert any(line.startswith("native: budget") for line in notes_of(rows))


def test_a_build_without_a_form_that_passed_ends_with_one(tmp_path):
    from hft.cli.build import build

    tiny_bundle(tmp_path / "a.bundle", "dense")
    line = [str(tmp_path / "a.bundle"), "--formats", "", "-o", str(tmp_path / "b.bundle")]
    done = CliRunner().invoke(build, [*line, "--budget", "1ns"])
    assert done.exit_code == 1
    assert "native: budget" in done.output
    assert (tmp_path / "b.bundle" / "model.toml").is_file()
    done = CliRunner().invoke(build, [*line, "--overwrite"])
    assert done.exit_code == 0, done.output
    assert "as given" in done.output


def row(name="native", tier="FULL", missing="", **gates):
    found = tuple(
        Gate(name=gate, value=1.0, limit=1.0, passed=bool(passed), judged=passed is not None)
        for gate, passed in gates.items()
    )
    return Row(name, 1, "", found, tier=tier, missing=missing)


@pytest.mark.parametrize(
    ("rows", "code", "strict"),
    [
        ([row(), row("step.onnx", kl=False)], 0, 1),
        ([row(kl=False), row("step.onnx", kl=True)], 1, 1),  # native is what runs by default
        ([row("saved_model", kl=False), row("window.onnx", kl=True)], 0, 1),
        ([row("saved_model", missing="needs x"), row("light", "LIGHT", kl=True)], 1, 1),
        ([row(), row("light", "LIGHT", kl=False)], 0, 1),
        ([row(pnl=None)], 0, 1),
        ([row(), row("step.onnx", missing="needs onnx")], 0, 0),  # nobody asked for it by name
    ],
)
def test_how_a_build_ends(rows, code, strict):
    assert exit_code(rows, strict=False) == code
    assert exit_code(rows, strict=True) == strict


def test_a_row_says_what_became_of_it():
    told = [row(), row(kl=True), row(kl=True, pnl=None), row(kl=False), row(missing="needs x")]
    assert [each.verdict for each in told] == [
        *("as given", "passed", "pnl not judged", "FAILED", "not built")
    ]
    assert notes_of([row("step.onnx", missing="needs onnx")]) == [
        "step.onnx: not built: needs onnx"
    ]
    assert notes_of([row(pnl=None)]) == ["native: pnl not judged"]


@pytest.fixture
def bare(monkeypatch):
    """As where none of the extras is installed."""
    found = importlib.util.find_spec
    away = {"tensorflow", "keras", "onnx", "onnxruntime", "ai_edge_litert", "tf2onnx"}
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *of: None if name in away else found(name, *of)
    )


def test_parts_whose_library_is_missing_are_not_built(bare, tmp_path):
    tiny_bundle(tmp_path / "a.bundle", "lstm")
    rows, bundle = built(tmp_path / "a.bundle", tmp_path / "b.bundle", formats_of(None))
    assert bundle.card.parts == ()
    assert [each.verdict for each in rows] == ["as given", *["not built"] * 5]
    assert rows[1].missing == "needs onnx, onnxruntime: pip install 'hft-framework[onnx]'"
    assert exit_code(rows, strict=True) == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            ["--formats", "litert"],
            r"--formats litert needs tensorflow, .*hft-framework\[train,litert",
        ),
        (["--distil"], r"--distil: LIGHT needs keras, tensorflow: .*hft-framework\[train"),
        (["--prune-units", "0.2", "--train-on", "masks"], "training on with masks needs keras"),
        (["--tier-limit", "speed=1"], "there are correlation, kl"),
        (["--tier-limit", "kl=low"], "want a number, kl=0.5"),
        (["--tier-limit", "kl=nan"], "--tier-limit kl=nan: want a number, kl=0.5"),
        (["--tier-limit", "kl=0.5"], "a.bundle has neither: give --distil too"),
        (["--symbol", "A", "--set", "seed=2"], "--symbol, --set: .* give --strategy too"),
        (
            ["--strategy", "x.py", "--dataset", "sets", "--from", "2024-01-01"],
            "--from: of --data; sets has its own rows",
        ),
        (["--fold", "2"], "--fold: of a data set"),
    ],
)
def test_what_is_asked_for_by_name_and_cannot_be_is_refused_before_any_work(
    bare, tmp_path, options, words
):
    from hft.cli.build import build

    tiny_bundle(tmp_path / "a.bundle", "lstm")
    line = [str(tmp_path / "a.bundle"), *options, "-o", str(tmp_path / "b.bundle")]
    done = CliRunner().invoke(build, line)
    assert isinstance(done.exception, ConfigError)
    assert done.exception.exit_code == 2
    assert re.search(words, str(done.exception))
    assert done.output == ""
    assert not (tmp_path / "b.bundle").exists()


def test_a_foreign_model_wants_its_library(bare, tmp_path):
    (tmp_path / "m.keras").write_bytes(b"")
    with pytest.raises(ConfigError, match=r"m\.keras: reading it needs keras, tensorflow"):
        built(tmp_path / "m.keras", tmp_path / "b.bundle")


def test_fewer_units_are_judged_against_the_network_as_it_was(tmp_path):
    bundle = tiny_bundle(tmp_path / "a.bundle", "lstm")
    cuts = Cuts(units=0.5, weights=0.2)
    rows, made = built(bundle.path, tmp_path / "b.bundle", cuts=cuts)
    names = [gate.name for gate in made.card.gates]
    assert names[:4] == ["correlation", "kl", "argmax", "decisions"]
    assert not rows[0].passed  # of random weights half cannot be missed
    assert sum(a.size for of in made.weights for a in of.values()) <= sum(
        a.size for of in bundle.weights for a in of.values()
    )


def test_what_cannot_be_built_is_refused_with_what_would_do(tmp_path):
    require("onnx", "onnxruntime")
    from hft.inference.build.onnx_builder import step_model, window_model
    from hft.inference.build.onnx_graph import write_onnx

    layers = layers_of("dense")
    wide = random_weights(layers, inputs=K + 2)
    write_onnx(window_model(layers, wide, 3), tmp_path / "wide.onnx")
    write_onnx(
        step_model(layers_of("lstm"), random_weights(layers_of("lstm"))), tmp_path / "s.onnx"
    )
    (tmp_path / "x.onnx").write_bytes(b"no graph")
    (tmp_path / "model.toml").write_text(to_toml(card_of(layers)))
    out, card = tmp_path / "m.bundle", tmp_path / "model.toml"
    cases = [
        (tmp_path / "none.keras", None, ModelError, "no such file or folder; want a bundle"),
        (tmp_path / "model.toml", None, ModelError, "want a bundle of `hft train`"),
        (tmp_path / "x.onnx", None, ModelError, "x.onnx cannot be read"),
        (tmp_path / "s.onnx", card, ModelError, "a step is built from its own model"),
        (tmp_path / "wide.onnx", None, ConfigError, "give --strategy with --dataset or --data"),
        (
            tmp_path / "wide.onnx",
            card,
            ModelError,
            f"takes {K + 2} inputs, the features of the card are {K}: imbalance_1",
        ),
    ]
    for model, facts, error, words in cases:
        with pytest.raises(error, match=words):
            built(model, out, card=facts)
    assert not out.exists()


def test_the_place_is_checked_first(tmp_path):
    bundle = tiny_bundle(tmp_path / "a.bundle", "dense")
    (tmp_path / "other.bundle").mkdir()
    with pytest.raises(ConfigError, match=r"a bundle's name ends in \.bundle"):
        built(bundle.path, tmp_path / "made")
    with pytest.raises(ConfigError, match=r"a\.bundle exists: give another name, or --overwrite"):
        built(bundle.path, bundle.path)
    with pytest.raises(ConfigError, match="is no bundle: it is not overwritten"):
        built(bundle.path, tmp_path / "other.bundle", overwrite=True)
    before = (bundle.path / "weights.npz").read_bytes()
    built(bundle.path, bundle.path, overwrite=True)
    assert (bundle.path / "weights.npz").read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.bundle", "other.bundle"]


def test_an_interrupted_build_leaves_nothing(tmp_path):
    require("onnx", "onnxruntime")
    bundle = tiny_bundle(tmp_path / "a.bundle", "dense")

    def interrupt(line):
        if line.startswith("judging step.onnx"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        built(bundle.path, tmp_path / "b.bundle", ("onnx",), interrupt)
    assert [p.name for p in tmp_path.iterdir()] == ["a.bundle"]


def test_bits_and_teaching_need_rows(tmp_path):
    bundle = tiny_bundle(tmp_path / "a.bundle", "lstm")
    with pytest.raises(ConfigError, match="8 bits need rows to calibrate on"):
        built(bundle.path, tmp_path / "b.bundle", cuts=Cuts(precision="int8"))
    wanted = Wanted(bundle.path, tmp_path / "b.bundle", Asked(), Options(formats=(), distil=True))
    with pytest.raises(ConfigError, match="--distil needs rows to learn on"):
        run_build(wanted, quiet)
    with pytest.raises(ConfigError, match="--data needs --strategy"):
        run_build(replace(wanted, asked=Asked(store="synth")), quiet)


def test_a_damaged_model_file_of_a_bundle_is_told(tmp_path):
    bundle = tiny_bundle(tmp_path / "a.bundle", "lstm", source_sha256="0" * 64)
    with pytest.raises(ModelError, match=r"model\.keras is missing, damaged or of another"):
        built(bundle.path, tmp_path / "b.bundle")
    assert msgspec.structs.replace(bundle.card, source_sha256="").source_sha256 == ""


STRATEGIES = STRATEGY.parent


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    return synthetic_dataset(tmp_path_factory.mktemp("sets") / "set")


def test_a_bundle_is_built_on_a_data_set_and_judged_by_pnl(dataset, tmp_path):
    require("onnx", "onnxruntime")
    asked = Asked(
        strategy=str(STRATEGIES / "lstm_mm.py"),
        dataset=dataset,
        settings=MARKET,
        pnl_ns=45_000_000_000,
    )
    options = Options(formats=("onnx",), cuts=Cuts(precision="auto"), limit_s=120.0, gate_rows=800)
    wanted = Wanted(
        STRATEGIES / "lstm_mm.bundle", tmp_path / "m.bundle", asked, options, calibration=dataset
    )
    told = []
    rows = run_build(wanted, told.append)
    bundle = load_bundle(tmp_path / "m.bundle")
    assert {e.precision for e in bundle.card.layers} == {"int8"}
    parts = {p.file: {g.name: g for g in p.gates} for p in bundle.card.parts}
    of_full = {p.file for p in bundle.card.parts if p.tier == "FULL"}
    assert of_full == {"step.onnx", "step_fp16.onnx", "step_int8.onnx"}
    assert set(parts) - of_full == {"light_step.onnx", "micro_step.onnx"}  # it came with tiers
    exact = parts["step.onnx"]["pnl"]  # the same decisions: the same trades
    assert exact.passed
    assert exact.value == 0.0
    assert exact.note.startswith("difference 0 (0 to 0)")
    native = {g.name: g for g in rows[0].gates}
    assert native["pnl"].value != 0.0
    assert native["kl"].passed
    assert any("calibration rows: rise" in line for line in told)


def test_a_replay_that_cannot_run_is_told_before_anything_is_made(dataset, tmp_path):
    asked = Asked(strategy=str(STRATEGIES / "lstm_mm.py"), dataset=dataset, pnl_ns=45_000_000_000)
    wanted = Wanted(
        STRATEGIES / "lstm_mm.bundle",
        tmp_path / "m.bundle",
        replace(asked, settings={"data.symbols": ("NOSUCH",)}),
        Options(limit_s=120.0),
    )
    told = []
    with pytest.raises(ConfigError, match=r"no data for symbol 'NOSUCH'.*--pnl 0"):
        run_build(wanted, told.append)
    assert not any("exporting" in line for line in told)


def test_rows_of_other_features_are_refused(dataset, tmp_path):
    bundle = tiny_bundle(tmp_path / "a.bundle", "lstm")
    wanted = Wanted(bundle.path, tmp_path / "b.bundle", Asked(dataset=dataset), Options())
    with pytest.raises(ModelError, match=f"takes {K} inputs, the features of the data set .* 16: "):
        run_build(wanted, quiet)
    given = STRATEGIES / "lstm_mm.bundle"
    both = replace(wanted, model=given, asked=Asked(dataset=dataset, store="synth"))
    with pytest.raises(ConfigError, match="--dataset and --data both"):
        run_build(both, quiet)


def test_facts_of_another_makers_model_come_from_a_data_set(dataset, tmp_path):
    require("onnx", "onnxruntime")
    from hft.inference.build.onnx_builder import window_model
    from hft.inference.build.onnx_graph import write_onnx

    layers = layers_of("gru")
    write_onnx(window_model(layers, random_weights(layers, inputs=16), 5), tmp_path / "g.onnx")
    options = Options(formats=(), limit_s=120.0)
    wanted = Wanted(tmp_path / "g.onnx", tmp_path / "m.bundle", Asked(dataset=dataset), options)
    run_build(wanted, quiet)
    card = load_bundle(tmp_path / "m.bundle").card
    assert (card.window_rows, card.warm_up_rows, card.horizon_ns) == (5, 4, 500_000_000)
    assert len(card.features) == len(card.scaler.mean) == 16
    assert card.outputs == ("down", "flat", "up")
    assert card.readout is not None
    assert card.readout.move_ticks[0] < 0 < card.readout.move_ticks[2]
    assert 0.0 <= card.readout.shrink <= 1.5
    assert card.latency_ns == 1_000_000
    assert card.sensitivity > 0

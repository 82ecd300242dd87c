"""`hft bench`: what is timed, what is left out, profiles that runs take, checks of a release."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
from bench_bundles import tiny, with_onnx
from click.testing import CliRunner

from hft.cli.main import cli
from hft.errors import ConfigError, ModelError
from hft.execution.profiles import load_profile, save_profile
from hft.inference.bench.cold import Evictor, cache_bytes, evict_bytes
from hft.inference.bench.measure import at_rate, steps_of
from hft.inference.bench.native import time_native
from hft.inference.bench.neighbour import neighbour
from hft.inference.bench.profile import profile_of_bench
from hft.inference.bench.rate import Served, poisson, queued
from hft.inference.bench.ratio import in_turns, latency_ratios
from hft.inference.bench.release import Limits, check_release
from hft.inference.bench.subject import (
    Subject,
    backends_of,
    made_up_rows,
    not_installed,
    opened_bundle,
    subjects,
)
from hft.inference.bench.timing import Blocks, clock_ns, pinned, quantiles, timed
from hft.inference.card import PartEntry, Scaler, TrailingEntry

ROOT = Path(__file__).parents[3]
LAX = Limits(slower=10.0)
"""Where the answers are what is tested: two cores shared by many make times jump."""


# ---- timing


def test_a_call_takes_what_it_sleeps_and_the_clock_is_taken_off() -> None:
    took = timed(lambda i: time.sleep(0.0005), seconds=0.05, least=20)
    assert took.ns.min() >= 500_000
    assert took.quantiles()["p50"] < 2_000_000
    nothing = timed(lambda i: None, seconds=0.05)
    assert nothing.quantiles()["p50"] < clock_ns()


def test_least_and_most_calls_are_kept() -> None:
    calls: list[int] = []
    took = timed(calls.append, seconds=0.0, least=70)
    assert 70 <= took.calls < 400
    took = timed(lambda i: None, seconds=10.0, most=1000)
    assert took.calls == 1000


def test_what_comes_before_is_not_timed() -> None:
    took = timed(lambda i: None, seconds=0.0, least=20, before=lambda: time.sleep(0.001))
    assert took.quantiles()["p50"] < 100_000


def test_disturbed_blocks_are_left_out() -> None:
    blocks = Blocks()
    for disturbed in (False, True, False):
        blocks.add(np.full(10, 1_000_000 if disturbed else 100), disturbed)
    took = blocks.timing(30)
    assert took.ns.tolist() == [70] * 20
    assert (took.calls, took.disturbed) == (30, 10)


def test_where_nearly_all_is_disturbed_nothing_is_left_out() -> None:
    blocks = Blocks()
    for _ in range(20):
        blocks.add(np.full(10, 200), True)
    assert blocks.timing(0).ns.size == 200
    assert blocks.timing(0).share_disturbed == 1.0


def test_a_quantile_that_no_call_lies_beyond_is_not_told() -> None:
    told = quantiles(np.arange(100))
    assert told["p99"] == pytest.approx(98.01)
    assert np.isnan(told["p99.9"])
    assert np.isnan(list(quantiles(np.zeros(0, np.int64)).values())).all()


def test_pinning_ends_with_its_block() -> None:
    before = os.sched_getaffinity(0)
    with pinned() as cpu:
        if cpu is not None:
            assert os.sched_getaffinity(0) == {cpu}
    assert os.sched_getaffinity(0) == before
    with pinned(100_000) as cpu:  # there is no such processor
        assert cpu is None


def test_a_walked_buffer_is_as_large_as_told() -> None:
    evict = Evictor(1 << 20)
    evict()
    assert evict._words.size == (1 << 20) // 64
    assert (evict._words == 1).all()
    assert cache_bytes(3) >= cache_bytes(2) >= 1 << 15
    assert evict_bytes(2) == 4 * cache_bytes(2)


def test_a_neighbour_works_and_ends() -> None:
    with neighbour(size_bytes=1 << 20) as process:
        before = _cpu_ticks(process)
        time.sleep(0.15)
        assert _cpu_ticks(process) > before
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


def _cpu_ticks(process: int) -> int:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


# ---- a bundle


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tiny(tmp_path / "tiny.bundle")
    return tmp_path / "tiny.bundle"


@pytest.mark.parametrize("mode", ["step", "armed", "touched", "window"])
def test_native_steps_are_timed_in_every_form(folder: Path, mode) -> None:
    subject = Subject(opened_bundle(folder), "native")
    took = time_native(
        subject.network(), subject.rows(), mode, seconds=0.02, window_rows=5, evict_bytes=4096
    )
    assert took.calls >= 50
    assert 0 < took.quantiles()["p50"] < 1_000_000


def test_forms_and_places_of_a_subject(folder: Path) -> None:
    (subject,) = subjects(opened_bundle(folder), (), "FULL", (), 1)
    lines = list(steps_of(subject, seconds=0.01, cold=True, beside=True))
    assert [(line.form, line.where) for line in lines] == [
        ("step", "warm"),
        ("armed", "warm"),
        ("step", "L2 cold"),
        ("armed", "L2 cold"),
        ("touched", "L2 cold"),
        ("step", "L3 cold"),
        ("armed", "L3 cold"),
        ("touched", "L3 cold"),
        ("step", "neighbour"),
        ("armed", "neighbour"),
    ]


def test_made_up_rows_are_as_the_training_had_them(folder: Path) -> None:
    scaler = opened_bundle(folder).card.scaler
    x = made_up_rows(scaler, 20_000)
    assert x.mean(axis=0) == pytest.approx(scaler.mean, abs=0.05)
    assert x.std(axis=0) == pytest.approx(scaler.scale, rel=0.05)


def test_what_a_bundle_has_not_is_refused(folder: Path) -> None:
    bundle = opened_bundle(folder)
    assert backends_of(bundle, "FULL") == ["native"]
    with pytest.raises(ConfigError, match="no backend 'tensorrt'; there are native, onnx"):
        subjects(bundle, ("tensorrt",), "FULL", (), 1)
    (subject,) = subjects(bundle, ("onnx",), "FULL", (), 1)
    with pytest.raises(ModelError, match="no part of FULL"):
        subject.opened()


def test_libraries_that_are_not_here_are_left_out_and_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = opened_bundle(folder)
    onnx = PartEntry(file="step.onnx", backend="onnx", form="step", sha256="0" * 64)
    bundle = replace(bundle, card=msgspec.structs.replace(bundle.card, parts=(onnx,)))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert not_installed(bundle, "FULL") == ["onnx"]
    assert [s.backend for s in subjects(bundle, (), "FULL", (), 1)] == ["native"]
    assert [s.backend for s in subjects(bundle, ("onnx",), "FULL", (), 1)] == ["onnx"]


def test_at_a_rate_waits_follow_from_services(folder: Path) -> None:
    ts = poisson(200_000.0, 3000)
    served = at_rate(Subject(opened_bundle(folder), "native"), ts, seconds=0.05)
    again = queued(served.arrival_ns, served.service_ns)
    assert served.wait_ns.tolist() == again.wait_ns.tolist()
    assert 0 < served.load < 1


# ---- profiles


def made(n: int = 1500) -> Served:
    ts = poisson(1000.0, n)
    return queued(ts, 40_000 + np.arange(n) % 1000)


def test_a_profile_is_read_as_it_was_measured(tmp_path: Path) -> None:
    served = made()
    profile = profile_of_bench(served, source="tiny", tier="LIGHT", start_ts=7)
    path = tmp_path / "p.parquet"
    save_profile(profile, path)
    again = load_profile(path)
    assert again.stages() == ["inference"]
    assert again.numbers("service_ns").tolist() == served.service_ns.tolist()
    assert again.numbers("wait_ns").tolist() == served.wait_ns.tolist()
    assert again.numbers("ts").tolist() == (7 + served.arrival_ns).tolist()
    assert set(again.frame["tier"]) == {"LIGHT"}
    assert set(again.frame["device"]) == {"cpu"}


def test_too_few_rows_make_no_profile() -> None:
    with pytest.raises(ConfigError, match="500 rows were served"):
        profile_of_bench(made(500), source="tiny", tier="FULL")


def test_a_run_takes_the_profile_that_bench_wrote(tmp_path: Path) -> None:
    """From the command to the services of a replay, which are the profile's."""
    path = tmp_path / "model.parquet"
    bundle = str(ROOT / "strategies/lstm_mm.bundle")
    run = CliRunner().invoke(
        cli,
        [
            *("bench", "inference", bundle, "--backend", "native"),
            *("--seconds", "0.2", "--rate", "20000", "-o", str(path)),
        ],
        catch_exceptions=False,
    )
    assert run.exit_code == 0, run.output
    assert "profile:" in run.output
    profile = load_profile(path)
    run = CliRunner().invoke(
        cli,
        [
            *("-q", "backtest", str(ROOT / "strategies/lstm_mm.py"), "--latency", str(path)),
            *("--set", "data.synth.duration_s=60", "--set", "engine.bracket=false"),
            *("--out", str(tmp_path / "runs")),
        ],
        catch_exceptions=False,
    )
    assert run.exit_code == 0, run.output
    from hft.analysis.run_data import load

    (folder,) = (tmp_path / "runs").iterdir()
    services = load(folder).model_service_ns
    assert services.size
    assert set(services.tolist()) <= set(profile.numbers("service_ns").tolist())


# ---- releases


def test_ratios_are_those_of_the_rounds() -> None:
    rng = np.random.default_rng(1)
    old = [np.round(1000 * rng.lognormal(0, 0.1, 200)).astype(np.int64) for _ in range(30)]
    new = [np.round(1300 * rng.lognormal(0, 0.1, 200)).astype(np.int64) for _ in range(30)]
    found = latency_ratios(new, old)
    for ratio in found.values():
        assert ratio.low <= ratio.value <= ratio.high
        assert ratio.value == pytest.approx(1.3, rel=0.05)
    same = latency_ratios(old, old)["p50"]
    assert (same.low, same.value, same.high) == (1.0, 1.0, 1.0)


def test_a_slow_round_of_both_is_no_difference() -> None:
    slow = [np.full(50, 100 * (10 if i % 3 else 1)) for i in range(30)]
    assert latency_ratios(slow, slow)["p99"].high == 1.0


def test_turns_change_who_is_first() -> None:
    order: list[str] = []

    def of(name: str):
        return lambda: (order.append(name), np.ones(3, np.int64))[1]

    new, old = in_turns(of("new"), of("old"), seconds=0.0)
    assert len(new) == len(old) == 15
    assert order[:4] == ["old", "new", "new", "old"]


def subject(folder: Path) -> Subject:
    return Subject(opened_bundle(folder), "native")


def test_the_same_model_passes(folder: Path) -> None:
    x = made_up_rows(opened_bundle(folder).card.scaler, 600)
    found = check_release(subject(folder), subject(folder), x, limits=LAX, seconds=0.05)
    assert found.passed
    values = {g.name: g.value for g in found.gates}
    assert values["correlation"] == pytest.approx(1.0)
    assert (values["kl"], values["decisions"]) == (0.0, 1.0)
    assert found.rows == 500


def test_other_answers_fail(folder: Path, tmp_path: Path) -> None:
    other = tiny(tmp_path / "other.bundle", seed=9)
    x = made_up_rows(other.card.scaler, 600)
    found = check_release(
        subject(tmp_path / "other.bundle"), subject(folder), x, limits=LAX, seconds=0.05
    )
    assert not found.passed
    failed = {g.name for g in found.gates if not g.passed}
    assert {"correlation", "kl", "decisions"} <= failed


def test_a_much_larger_model_is_slower(folder: Path, tmp_path: Path) -> None:
    large = tmp_path / "large.bundle"
    tiny(large, units=256)
    x = made_up_rows(opened_bundle(large).card.scaler, 600)
    found = check_release(subject(large), subject(folder), x, limits=Limits(), seconds=0.05)
    failed = {g.name for g in found.gates if not g.passed}
    assert {"p50 ratio", "p99 ratio"} <= failed


def test_a_declared_budget_is_held(folder: Path, tmp_path: Path) -> None:
    new = tmp_path / "new.bundle"
    tiny(new, budget_ns=1)
    x = made_up_rows(opened_bundle(new).card.scaler, 600)
    found = check_release(subject(new), subject(folder), x, limits=LAX, seconds=0.05)
    assert [g.name for g in found.gates if not g.passed] == ["budget"]


def test_other_inputs_or_outputs_cannot_be_compared(folder: Path, tmp_path: Path) -> None:
    from hft.features import Features, OnTouch, imbalance, micro_price, spread
    from hft.inference.card import entries_of

    entries, _ = entries_of(Features(spread(), imbalance(4), micro_price(), trigger=OnTouch()))
    x = made_up_rows(opened_bundle(folder).card.scaler, 300)
    tiny(tmp_path / "a.bundle", features=entries)
    tiny(tmp_path / "b.bundle", outputs=("up", "flat", "down"))
    for name, words in (
        ("a", r"feature 2 is imbalance_4 .* tiny.bundle imbalance_5"),
        ("b", "outputs"),
    ):
        with pytest.raises(ModelError, match=words):
            check_release(
                subject(tmp_path / f"{name}.bundle"), subject(folder), x, limits=LAX, seconds=0.05
            )


def test_too_few_rows_are_no_comparison(folder: Path) -> None:
    x = made_up_rows(opened_bundle(folder).card.scaler, 150)
    with pytest.raises(ModelError, match="warm after 100, want 100 more"):
        check_release(subject(folder), subject(folder), x, limits=LAX, seconds=0.01)


# ---- the command


def invoke(*arguments: object) -> tuple[int, str]:
    run = CliRunner().invoke(cli, ["bench", *map(str, arguments)])
    if run.exception is not None and not isinstance(run.exception, SystemExit):
        return getattr(run.exception, "exit_code", 99), str(run.exception)
    return run.exit_code, run.output


def test_a_release_check_ends_with_1_where_the_new_is_worse(folder: Path, tmp_path: Path) -> None:
    tiny(tmp_path / "other.bundle", seed=9)
    quick = ("--seconds", "0.05", "--slower", "10")
    assert invoke("release", folder, folder, *quick)[0] == 0
    code, told = invoke("release", tmp_path / "other.bundle", folder, *quick)
    assert code == 1
    assert "FAILED" in told


def test_batches_are_measured_run_and_told_as_a_recipe(folder: Path) -> None:
    code, told = invoke("inference", folder, "--batch", "--seconds", "0.05")
    assert code == 0, told
    for words in ("alpha", "at once", "deadline", "per_item", "max_batch = 64", "On the clock"):
        assert words in told


def test_other_backends_are_timed_in_every_precision_they_have(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    folder, out = tmp_path / "tiny.bundle", tmp_path / "p.parquet"
    bundle = with_onnx(folder)
    names = [s.name for s in subjects(bundle, (), "FULL", (), 1)]
    assert names == ["native", "onnx fp32", "onnx fp16"]
    one = ("--backend", "onnx", "--precision", "fp32", "--seconds", "0.3")
    code, told = invoke("inference", folder, *one, "--rate", "5000", "-o", out)
    assert code == 0, told
    profile = load_profile(out)
    assert profile.facts.created_from["backend"] == "onnx"
    assert profile.numbers("service_ns").min() > 1000
    assert len(profile) >= 1000
    quick = ("--seconds", "0.05", "--slower", "10", "--backend", "onnx")
    code, told = invoke("release", folder, folder, *quick)
    assert code == 0, told


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the tiny bundle's features."""
    home = tmp_path_factory.mktemp("home")
    (home / "look.py").write_text(
        "from hft import Strategy\n"
        "from hft.features import Features, OnTouch, imbalance, ofi, spread\n"
        "class Look(Strategy):\n"
        "    features = Features(spread(), imbalance(5), ofi(3, '100ms').log(),\n"
        "                        trigger=OnTouch(sizes=True))\n"
    )
    command = ["dataset", str(home / "look.py"), "--set", "data.synth.duration_s=60"]
    command += ["--labels", "500ms", "--latency", "1ms", "-o", str(home / "set")]
    command += ["--period", "8s", "--memory", "16s"]
    run = CliRunner().invoke(cli, ["-q", *command], catch_exceptions=False)
    assert run.exit_code == 0, run.output
    return home / "set"


def test_rows_arrive_as_they_were_recorded(folder: Path, dataset: Path, tmp_path: Path) -> None:
    from hft.inference.dataset.reading import open_dataset

    out = tmp_path / "p.parquet"
    code, told = invoke(
        "inference",
        folder,
        "--arrivals",
        dataset,
        "--seconds",
        "30",
        "-o",
        out,
        "--backend",
        "native",
    )
    assert code == 0, told
    assert "arrivals as in set" in told
    ts = np.concatenate([f["ts"].to_numpy() for f in open_dataset(dataset).frames("test")])
    served = load_profile(out).numbers("ts")
    assert np.array_equal(np.diff(served), np.diff(ts[: served.size]))


def test_answers_are_compared_on_rows_of_a_data_set(
    folder: Path, dataset: Path, tmp_path: Path
) -> None:
    quick = ("--seconds", "0.05", "--slower", "10", "--dataset", dataset)
    assert invoke("release", folder, folder, *quick)[0] == 0
    from hft.features import Features, OnTouch, imbalance, micro_price, spread
    from hft.inference.card import entries_of

    entries, _ = entries_of(Features(spread(), imbalance(5), micro_price(), trigger=OnTouch()))
    tiny(tmp_path / "a.bundle", features=entries)
    code, told = invoke("release", tmp_path / "a.bundle", tmp_path / "a.bundle", *quick)
    assert code == 2
    assert "reads spread, imbalance_5, micro_price" in told


def test_each_bundle_is_given_rows_in_the_terms_of_its_own_scaler(
    dataset: Path, tmp_path: Path
) -> None:
    rule = TrailingEntry(period_ns=8_000_000_000, memory_ns=16_000_000_000, drift=3.0)
    other = Scaler(mean=(3.0, 1.0, -2.0), scale=(0.1, 5.0, 0.25), clip=5.0)
    one, two = (tmp_path / f"{name}.bundle" for name in ("one", "two"))
    tiny(one, trailing=rule)
    tiny(two, trailing=rule, scaler=other)
    quick = ("--seconds", "0.05", "--slower", "10")
    for rows in ((), ("--dataset", dataset)):
        code, told = invoke("release", one, two, *quick, *rows)
        assert code == 0, told
    tiny(two, trailing=msgspec.structs.replace(rule, drift=0.0))
    code, told = invoke("release", one, two, *quick, "--dataset", dataset)
    assert code == 2
    assert "the model's are of every 8s of 16s, on no drift" in told


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("-o", "p.parquet"), "give --rate or --arrivals with -o"),
        (("-o", "p.parquet", "--rate", "10"), "10 rows/s bring 0 in 0.05 s"),
        (("-o", "p.csv", "--rate", "1e6"), "a profile is a .parquet file"),
        (("--rate", "1e8", "--seconds", "100"), "want at most 2,000,000"),
        (("--rate", "5", "--arrivals", "x"), "give one of them"),
        (("--precision", "fp32,int8", "-o", "p.parquet", "--rate", "1e6"), "a profile is of one"),
        (("--precision", "int4"), "native backend has no int4"),
        (("--backend", "nativ"), "no backend 'nativ'"),
    ],
)
def test_options_that_do_not_fit_are_refused(folder: Path, options, words: str) -> None:
    code, told = invoke("inference", folder, "--seconds", "0.05", *options)
    assert code in (2, 4)
    assert words in told


def test_help_does_not_load_what_it_does_not_need() -> None:
    script = (
        "import sys; from click.testing import CliRunner; from hft.cli.main import cli;"
        "CliRunner().invoke(cli, ['bench', 'inference', '--help']);"
        "print([m for m in ('numpy', 'polars', 'rich', 'scipy') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (("--deadline", "50us"), "--deadline is of batches: give --batch too"),
        (("--connections", "8"), "--connections is of a server: give --backend serving"),
    ],
)
def test_an_option_that_would_do_nothing_is_told(option, words) -> None:
    done = CliRunner().invoke(cli, ["bench", "inference", "any.bundle", *option])
    assert words in str(done.exception)

"""`hft swap` on a session that runs, what it refuses, and that such a run verifies."""

import re
import shutil
import sys
import time

import msgspec
import numpy as np
import pytest
from made_models import add_step_part
from made_swaps import ask_for, asked_after
from naive_reuse import linear_softmax

from hft import _core, run_folder
from hft.errors import ConfigError, DataError, ModelError
from hft.inference.bundle import load_bundle, save_bundle
from hft.journal import RecordKind
from hft.live import session as session_module
from hft.live.swap_request import swap
from hft.live.swaps import Result, result_of
from hft.live.verify import verify_run
from hft.plan import prepare


@pytest.fixture(scope="module")
def better(everything, tmp_path_factory):
    """Another bundle for the strategy `everything`."""
    return changed(everything, tmp_path_factory.mktemp("better") / "better.bundle")


def changed(everything, folder, **more):
    bundle = load_bundle(everything.parent / "tiny.bundle")
    weights = [{part: array * 1.5 for part, array in layer.items()} for layer in bundle.weights]
    card = msgspec.structs.replace(bundle.card, weights_sha256="", **more)
    save_bundle(folder, card, weights)
    return folder


@pytest.fixture
def session(hft, everything, tmp_path, running):
    """Starts a session in a process of its own; gives it and its folder."""

    def start(seconds=30, *more):
        process = hft(
            *("live", "--venue", "sim", everything, "--duration", f"{seconds}s"),
            *("--set", "data.synth.messages_per_s=3000", "--out", tmp_path, *more),
        )
        return process, running(tmp_path)

    return start


def end(process):
    process.process.send_signal(2)
    code, out, err = process.wait()
    assert code == 130, err
    return out


def records_of(folder):
    journal = run_folder.read_journal(folder)
    return journal[journal["kind"] == RecordKind.SWAP]


def test_a_session_takes_over_a_bundle_and_verifies(session, better, hft, same):
    process, folder = session()
    code, out, err = hft("swap", folder, better).wait()
    assert code == 0, err
    assert "AAA.SIM: took over at 20" in out or ".SIM: took over at 20" in out
    assert f"swap 1: {better} for alpha of {folder}" in err
    second = swap(folder, better, "alpha")
    assert second.state == "done"
    end(process)
    records = records_of(folder)
    assert records["b"].tolist() == [0, 1, 0, 1]
    assert records["order"].tolist() == [1, 1, 2, 2]
    journal = run_folder.read_journal(folder)
    signals = journal[journal["kind"] == RecordKind.SIGNAL]
    # Whether the first bundle was warm before another took over is a matter of when it was asked.
    versions = (signals["lots"] >> 32).tolist()
    assert versions == sorted(versions)
    assert versions[-1] == 2
    shutil.rmtree(better)  # what verifies is the copy in the run folder
    same(folder)
    report = msgspec.json.decode((folder / "run.json").read_bytes())
    assert any("Swap 1: done: took over at" in note for note in report["notes"])


def test_what_does_not_fit_is_refused_before_the_session_hears_of_it(session, everything, tmp_path):
    process, folder = session()
    other = changed(everything, tmp_path / "other.bundle", outputs=("fall", "up"))
    with pytest.raises(ModelError, match="output 1 is fall, of the bundle it would take over"):
        swap(folder, other)
    with pytest.raises(ModelError, match=r"nowhere/model\.toml: no such file"):
        swap(folder, tmp_path / "nowhere")
    with pytest.raises(ConfigError, match=r"--model is 'beta': no such model .* there are alpha"):
        swap(folder, other, "beta")
    assert not (folder / "swaps").exists()
    end(process)
    assert len(records_of(folder)) == 0


def test_the_session_refuses_what_was_changed_behind_the_commands_back(
    session, everything, better_again, monkeypatch
):
    from hft.live import swap_request

    process, folder = session()
    monkeypatch.setattr(swap_request, "hash_word", lambda bundle: 1)
    with pytest.raises(ModelError, match=r"the session refused: .* its hash differs"):
        swap(folder, better_again)
    end(process)
    assert len(records_of(folder)) == 0


@pytest.fixture
def better_again(everything, tmp_path):
    return changed(everything, tmp_path / "again.bundle")


def test_a_swap_that_never_warms_up_is_told_at_the_end(session, everything, tmp_path):
    slow = changed(everything, tmp_path / "slow.bundle", warm_up_rows=10_000_000)
    process, folder = session()
    with pytest.raises(ConfigError, match="has not taken over everywhere; the session goes on"):
        swap(folder, slow, timeout_s=0.5)
    end(process)
    result = msgspec.json.decode(result_of(folder, 1).read_bytes(), type=Result)
    assert result.state == "ended"
    assert records_of(folder)["b"].tolist() == [0]
    assert verify_run(folder).differences == 0


def test_a_run_that_has_ended_takes_no_bundle(session, better_again, tmp_path):
    process, folder = session()
    end(process)
    with pytest.raises(ConfigError, match="is no live session that goes on: the run has ended"):
        swap(folder, better_again)
    with pytest.raises(DataError, match="is it a run folder"):
        swap(tmp_path / "nothing", better_again)


def test_a_bundle_that_is_gone_from_the_run_folder_is_named(session, better_again):
    process, folder = session()
    swap(folder, better_again)
    end(process)
    shutil.rmtree(folder / "swaps" / "1.bundle")
    with pytest.raises(ModelError, match=r"1\.bundle/model\.toml: no such file"):
        verify_run(folder)


def test_a_session_goes_on_while_a_bundle_is_read(session, better_again):
    """Inputs never wait as long as a bundle takes to be read: handlers run on."""
    process, folder = session()
    time.sleep(0.3)
    swap(folder, better_again)
    end(process)
    journal = run_folder.read_journal(folder)
    asked = int(journal["ts"][np.flatnonzero(journal["kind"] == RecordKind.SWAP)[0]])
    packets = journal["ts"][journal["kind"] == RecordKind.PACKET]
    near = packets[(packets > asked - 500_000_000) & (packets < asked + 100_000_000)]
    print(f"longest time between packets around the swap: {np.diff(near).max() / 1e6:.1f} ms")
    assert len(near) > 100


def test_a_file_that_asks_for_no_swap_leaves_the_session_alone(session, better_again):
    process, folder = session()
    (folder / "swaps").mkdir()
    for name in ("0", "007", "99999999999", "\u0663"):  # the last is a digit to \\d
        (folder / "swaps" / f"{name}.request.json").write_text("{}")
    time.sleep(0.3)
    assert swap(folder, better_again).state == "done"
    end(process)
    assert verify_run(folder).differences == 0


def unfounded(*_, **__):
    rule = dict(mean=[0.0], scale=[1.0], clip=1.0, window_rows=1, classes=2, has_forecast=False)
    rule |= dict(sensitivity=-1.0, epsilon=0.1, max_reuse=1, max_age_ns=1, shadow=0.1, budget=0.1)
    return 1, 0, object(), 0, 0, 0, _core.ReuseRule(**rule, pause_ns=1)


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (unfounded, "reuse.sensitivity is -1.0+, want more than 0"),
        (lambda *_, **__: sys.exit("a library gives up"), "SystemExit: a library gives up"),
        (
            lambda *_, **__: (1, 0, object(), 0, 0, 0, None),
            "AttributeError: .*has no attribute 'step'",
        ),
    ],
    ids=["rule", "read", "given"],
)
def test_what_fails_as_it_is_taken_in_is_refused_and_trading_goes_on(
    everything, better_again, tmp_path, monkeypatch, broken, said
):
    monkeypatch.setattr("hft.live.swap_watch.core_arguments", broken)
    plan = prepare(everything, "synth", recipe={})
    folder = run_folder.new_folder("live", "broken", tmp_path)
    ask_for(folder, better_again, "alpha")
    outcome = session_module.run_sim(plan, folder, 2_000_000_000)
    assert outcome.run.status == "complete", outcome.run.error
    result = msgspec.json.decode(result_of(folder, 1).read_bytes(), type=Result)
    assert result.state == "refused"
    assert re.fullmatch(said, result.error)


@pytest.mark.parity
@pytest.mark.parametrize("backend", ["native", "onnx"])
def test_reuse_goes_on_over_a_swap_and_all_of_it_verifies(
    backend, tmp_path, strategies, same, busy
):
    if backend == "onnx":
        pytest.importorskip("onnx")
        pytest.importorskip("onnxruntime")
    add = add_step_part if backend == "onnx" else (lambda bundle: bundle)
    add(linear_softmax(tmp_path / "linear.bundle", understated=50.0))
    new = add(linear_softmax(tmp_path / "new.bundle", seed=2, understated=20.0))
    shutil.copy(strategies / "reuser.py", tmp_path / "reuser.py")
    settings = {
        "models.model.backend": backend,
        "models.model.reuse.epsilon": 0.3,
        "models.model.reuse.shadow": 0.1,
        **busy,
    }
    plan = prepare(tmp_path / "reuser.py", "synth", recipe={}, settings=settings)
    folder = run_folder.new_folder("live", "reuser", tmp_path)
    with asked_after(2.0, folder, new.path):
        outcome = session_module.run_sim(plan, folder, 8_000_000_000)
    assert outcome.run.status == "complete", outcome.run.error
    run_folder.write_outcome(folder, plan, outcome)
    assert records_of(folder)["b"].tolist() == [0, 1, 1]
    journal = run_folder.read_journal(folder)
    signals = journal[journal["kind"] == RecordKind.SIGNAL]
    for version in (0, 1):
        again = signals["price"][(signals["lots"] >> 32) == version]
        assert set(again.tolist()) == {0, 1}
    same(folder)


def test_a_schedule_is_for_replay(everything, better_again, trade):
    swaps = [{"at": 0, "bundle": str(better_again), "model": "alpha"}]
    with pytest.raises(ConfigError, match="a schedule is for replay; a live session is told by"):
        trade(everything, 1, swaps=swaps)

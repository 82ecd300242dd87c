"""A model that another library computes: the same contract as the native network's."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from made_models import SECONDS, add_step_part, listening, make_bundle

from hft import engine, run_folder
from hft.errors import ModelError
from hft.inference import backends
from hft.inference.bundle import save_bundle
from hft.inference.card import Gate
from hft.journal import JOURNAL, RecordKind
from hft.live import session
from hft.live.verify import verify_run
from hft.plan import prepare

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
ONNX = {"models.model.backend": "onnx"}


@pytest.fixture
def bundle(tmp_path):
    return add_step_part(make_bundle(tmp_path / "first.bundle"))


def plan_of(bundle, **settings):
    return prepare(listening(bundle.path), "synth", settings={**SECONDS, **settings})


def run(bundle, **settings):
    outcome = engine.run_once(plan_of(bundle, **settings))
    assert outcome.run.status == "complete", outcome.run.error
    return outcome


def said(outcome):
    return np.array([(ts, up, alpha) for _, ts, _, _, up, alpha in outcome.strategy.heard])


def test_it_says_what_the_native_network_says(bundle):
    native, onnx = said(run(bundle)), said(run(bundle, **ONNX))
    assert len(native) > 100
    assert np.array_equal(native[:, 0], onnx[:, 0])
    assert np.abs(native - onnx).max() < 1e-5


@pytest.mark.parametrize("backend", ["native", "onnx"])
def test_gates_that_failed_are_told_natively_and_refused_elsewhere(bundle, caplog, backend):
    gates = (Gate(name="kl", value=0.5, limit=0.01, passed=False),)
    parts = tuple(msgspec.structs.replace(part, gates=gates) for part in bundle.card.parts)
    card = msgspec.structs.replace(bundle.card, gates=gates, parts=parts)
    failed = save_bundle(bundle.path, card, bundle.weights)
    if backend == "native":
        run(failed)
        assert "native weights failed their gates when it was built: kl 0.5" in caplog.text
        return
    with pytest.raises(ModelError, match=r"kl 0\.5, limit 0\.01.*naming its precision"):
        run(failed, **ONNX)
    run(failed, **ONNX, **{"models.model.precision": "fp32"})


def test_the_same_run_gives_the_same_bytes(bundle):
    assert run(bundle, **ONNX).journal.tobytes() == run(bundle, **ONNX).journal.tobytes()


def test_each_instrument_has_a_memory_of_its_own(bundle):
    both = run(bundle, **ONNX, **{"data.synth.symbols": ["AAA", "BBB"]})
    names = {name for name, *_ in both.strategy.heard}
    assert names == {"AAA.SIM", "BBB.SIM"}
    native = run(bundle, **{"data.synth.symbols": ["AAA", "BBB"]})
    assert np.abs(said(native) - said(both)).max() < 1e-5


def test_the_environment_tells_the_library(bundle):
    import onnxruntime

    facts = run(bundle, **ONNX).run.environment
    assert facts["model_model"] == f"onnx FULL onnxruntime {onnxruntime.__version__}"


def test_a_swap_brings_a_part_of_the_same_backend(bundle, tmp_path):
    new = add_step_part(make_bundle(tmp_path / "new.bundle", seed=2))
    swaps = {"swaps": [{"at": "2024-01-01T00:00:08", "bundle": str(new.path)}]}
    native, onnx = run(bundle, **swaps), run(bundle, **swaps, **ONNX)
    versions = [[version for *_, version, _, _ in o.strategy.heard] for o in (native, onnx)]
    assert versions[0] == versions[1]
    assert set(versions[1]) == {0, 1}
    assert np.abs(said(native) - said(onnx)).max() < 1e-5


def test_a_live_run_stamps_its_service_and_verifies(tmp_path):
    strategy = tmp_path / "listening.py"
    strategy.write_text(
        "from hft import BUY, SELL, Model, Strategy\n\n\n"
        "class Listening(Strategy):\n"
        "    model = Model('first')\n\n"
        "    def on_signal(self, s):\n"
        "        self.submit(s.instrument, BUY if s['up'] > 0.5 else SELL, 1, cause=s)\n"
    )
    add_step_part(make_bundle(tmp_path / "first.bundle"))
    plan = prepare(strategy, "synth", recipe={}, settings=ONNX)
    folder = run_folder.new_folder("live", "foreign", tmp_path)
    outcome = session.run_sim(plan, folder, 2_000_000_000, nap_ns=50_000)
    run_folder.write_outcome(folder, plan, outcome)
    assert outcome.run.status == "complete", outcome.run.error
    assert len(outcome.run.orders) > 10
    assert outcome.run.model_service_ns.min() > 0
    assert verify_run(folder).differences == 0


def failing_after(rows, words="the library gave up"):
    """An onnx backend whose library gives up."""
    from hft.inference.backends.onnx import OnnxBackend

    class Failing(OnnxBackend):
        left = rows

        def _step(self, state, row, out):
            Failing.left -= 1
            if Failing.left < 0:
                raise RuntimeError(words)
            super()._step(state, row, out)

    return Failing


def test_what_it_raises_ends_the_run_and_names_model_and_instrument(bundle, monkeypatch):
    from hft.inference.backends import onnx

    monkeypatch.setattr(onnx, "OnnxBackend", failing_after(50))
    outcome = engine.run_once(plan_of(bundle, **ONNX))
    assert outcome.run.status == "failed"
    assert outcome.run.error == (
        "ModelError: model 'model' of BTCUSDT.SIM: RuntimeError: the library gave up"
    )
    rows = outcome.journal.view(JOURNAL)["kind"] == RecordKind.ROW
    assert rows.sum() == 51


def test_what_it_raises_need_not_be_text(bundle, monkeypatch):
    from hft.inference.backends import onnx

    monkeypatch.setattr(onnx, "OnnxBackend", failing_after(5, "no file a\udc80b"))
    error = engine.run_once(plan_of(bundle, **ONNX)).run.error
    assert error.endswith("RuntimeError: no file a\\udc80b")


def test_live_it_cancels_everything_and_fails(bundle, tmp_path, monkeypatch):
    from hft.inference.backends import onnx

    monkeypatch.setattr(onnx, "OnnxBackend", failing_after(1200))
    plan = prepare(listening(bundle.path), "synth", recipe={}, settings=ONNX)
    folder = run_folder.new_folder("live", "failing", tmp_path)
    outcome = session.run_sim(plan, folder, 60_000_000_000, nap_ns=50_000)
    assert outcome.run.status == "failed"
    assert "model 'model' of BTCUSDT.SIM: RuntimeError: the library gave up" in outcome.run.error


def test_backends_are_closed_when_the_run_is_over(bundle, monkeypatch):
    opened = []
    real = backends.open_backend

    def keep(*args, **kwargs):
        opened.append(real(*args, **kwargs))
        return opened[-1]

    monkeypatch.setattr(backends, "open_backend", keep)
    run(bundle, **ONNX)
    (backend,) = opened
    assert backend._is_closed

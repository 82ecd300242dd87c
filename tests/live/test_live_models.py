"""Models in a live session: what it computes between inputs changes no answer."""

import ctypes
import resource
from contextlib import ExitStack

import numpy as np
import pytest
from made_models import SECONDS, make_bundle

from hft import _core, engine, run_folder
from hft.config import ModelConfig
from hft.errors import ConfigError, ModelError
from hft.journal import RecordKind
from hft.live.verify import verify_run
from hft.plan import prepare
from hft.run_folder import read_journal
from hft.sources import open_model

STRATEGY = """
from hft import BUY, SELL, Model, Strategy

class Asking(Strategy):
    model = Model("asked")

    def on_signal(self, s):
        self.submit(s.instrument, BUY if s["up"] > 0.5 else SELL, 1, cause=s)
"""


@pytest.fixture
def asking(tmp_path):
    """A strategy file, and beside it the bundle of its model."""

    def make(**card):
        make_bundle(tmp_path / "asked.bundle", **card)
        (tmp_path / "asking.py").write_text(STRATEGY)
        return tmp_path / "asking.py"

    return make


@pytest.mark.parametrize("window_rows", [0, 40])
def test_work_done_while_idle_changes_nothing(asking, trade, same, window_rows):
    folder, outcome = trade(asking(window_rows=window_rows), 2)
    assert outcome.run.status == "complete", outcome.run.error
    assert same(folder).records > 1000
    signals = (read_journal(folder)["kind"] == RecordKind.SIGNAL).sum()
    assert signals == outcome.run.counters["inferences"] - max(20, window_rows - 1)


def test_a_model_over_its_declared_budget_is_refused(asking, trade):
    with pytest.raises(ModelError, match=r"budget_ns is 1 .* a lesser tier"):
        trade(asking(budget_ns=1), 2)


def test_weights_that_may_be_paged_out_are_told(asking, hft, tmp_path):
    """Root has the right to lock what it likes: the session gives it up, with all its others."""

    def without_the_right():
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (0, 0))
        libc = ctypes.CDLL(None)
        for capability in range(41):
            libc.prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP: exec then grants none

    session = hft(
        *("live", "--venue", "sim", asking(), "--duration", "1s", "--out", tmp_path),
        preexec_fn=without_the_right,
    )
    code, _, err = session.wait()
    assert code == 0, err
    assert "asked.bundle: its weights may be paged out: " in err
    assert "ulimit -l" in err


def test_a_backtest_with_a_swap_verifies(asking, tmp_path, same):
    new = make_bundle(tmp_path / "new.bundle", seed=2)
    swaps = [{"at": "2024-01-01T00:00:08", "bundle": str(new.path)}]
    settings = {**SECONDS, "swaps": swaps, "models.model.precision": "int8"}
    plan = prepare(asking(), "synth", recipe={}, settings=settings)
    folder = run_folder.new_folder("backtest", "asking", tmp_path)
    run_folder.write_outcome(folder, plan, engine.run_once(plan))
    same(folder)
    make_bundle(new.path, seed=3)
    with pytest.raises(ConfigError, match="the model bundle is not what the run used: bundle_swap"):
        verify_run(folder)


@pytest.mark.parametrize("tier", ["FULL", "MICRO"])
def test_a_tier_beside_the_others_of_its_bundle_says_the_same(tmp_path, tier):
    bundle, rows = make_bundle(tmp_path / "asked.bundle"), np.ones((30, 2))
    with ExitStack() as opened:
        live, replayed = (
            open_model(bundle, ModelConfig(tier=tier), opened, is_live=is_live)
            for is_live in (True, False)
        )
        said = [_core.NetworkStream(network).batch(rows) for network in (live, replayed)]
    np.testing.assert_array_equal(*said)

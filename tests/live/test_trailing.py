"""A live session of a model whose scales trail: its journal, fed back, gives the same answers."""

import shutil

import msgspec
import numpy as np
import pytest
from made_swaps import asked_after
from naive_reuse import linear_softmax

from hft import run_folder
from hft.inference.bundle import save_bundle
from hft.inference.card import TrailingEntry
from hft.journal import RecordKind
from hft.live import session
from hft.plan import prepare

QUICK = TrailingEntry(period_ns=800_000_000, memory_ns=2_000_000_000, drift=0.5)
SLOW = msgspec.structs.replace(QUICK, period_ns=1_600_000_000)
REUSE = {"models.model.reuse.epsilon": 0.3, "models.model.reuse.shadow": 0.1}

BATCHES = {"latency.server.max_batch": 4, "latency.server.hold": "300us"}


def trailing(folder, rule, seed=1):
    made = linear_softmax(folder, seed)
    card = msgspec.structs.replace(made.card, trailing=rule, weights_sha256="")
    return save_bundle(folder, card, made.weights)


@pytest.mark.parity
@pytest.mark.parametrize(("rule", "more"), [(QUICK, {}), (SLOW, BATCHES)], ids=["same", "another"])
def test_it_verifies_with_reuse_and_over_a_swap(tmp_path, strategies, same, busy, rule, more):
    trailing(tmp_path / "linear.bundle", QUICK)
    new = trailing(tmp_path / "new.bundle", rule, seed=2)
    shutil.copy(strategies / "reuser.py", tmp_path / "reuser.py")
    plan = prepare(tmp_path / "reuser.py", "synth", recipe={}, settings=REUSE | busy | more)
    folder = run_folder.new_folder("live", "reuser", tmp_path)
    with asked_after(1.5, folder, new.path):
        outcome = session.run_sim(plan, folder, 4_000_000_000)
    assert outcome.run.status == "complete", outcome.run.error
    run_folder.write_outcome(folder, plan, outcome)
    journal = run_folder.read_journal(folder)
    signals = journal[journal["kind"] == RecordKind.SIGNAL]
    assert set(np.unique(signals["lots"] >> 32)) == {0, 1}
    assert set(np.unique(signals["price"])) == {0, 1}
    same(folder)

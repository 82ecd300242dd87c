"""Answers given again in a live session: its journal, fed back, gives the same ones."""

from pathlib import Path

import numpy as np
import pytest
from naive_reuse import linear_softmax

from hft import run_folder
from hft.analysis.run_data import load
from hft.engine import run_once
from hft.journal import RecordKind
from hft.plan import prepare

REUSE = {
    "models.model.reuse.epsilon": 0.3,
    "models.model.reuse.shadow": 0.1,
    "models.model.reuse.budget": 0.01,
    "models.model.reuse.pause": "200ms",
}


@pytest.fixture
def reuser(tmp_path, strategies):
    linear_softmax(tmp_path / "linear.bundle", understated=50.0)
    file = tmp_path / "reuser.py"
    file.write_bytes((strategies / "reuser.py").read_bytes())
    return file


@pytest.mark.parity
def test_a_live_session_fed_back_gives_the_same_hits(trade, same, reuser, busy):
    folder, outcome = trade(reuser, 4, **busy, **REUSE)
    run = outcome.run
    assert run.status == "complete", run.error
    same(folder)
    heard = outcome.strategy.heard
    assert heard[True] > 1000
    assert heard[False] > 1000
    journal = run_folder.read_journal(folder)
    signals = journal[journal["kind"] == RecordKind.SIGNAL]
    assert (signals["price"] == 1).sum() == run.reuse["reused"].sum() == heard[True]
    assert run.reuse["trips"].sum() > 0  # what turns it off is fed back too
    assert run.reuse["under_way"].sum() == 0  # a model that runs inline answers before the next row
    assert len(run.model_service_ns) == heard[False]


def test_replay_and_live_tell_it_in_one_table(trade, reuser, tmp_path: Path):
    folder, outcome = trade(reuser, 2, **REUSE)
    plan = prepare(reuser, "synth", recipe={}, settings={**REUSE, "data.synth.duration_s": 5.0})
    replayed = run_once(plan).run
    lived = load(folder)
    np.testing.assert_array_equal(lived.reuse, outcome.run.reuse)
    for run in (replayed, lived):
        assert run.models == ["model"]
        assert (run.reuse["rows"] > 0).all()

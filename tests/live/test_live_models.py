"""Models in a live session: what it computes between inputs changes no answer."""

import pytest
from made_models import make_bundle

from hft.errors import ModelError
from hft.journal import RecordKind
from hft.run_folder import read_journal

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

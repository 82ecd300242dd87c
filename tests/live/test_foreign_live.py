"""Models of other libraries as they come, fail and go.

A bundle on its way in that fails is dropped, the one that trades ends the run, and verification
agrees with both, though the library does not fail again. What nothing uses any more is closed.
"""

import threading
import time

import msgspec
import numpy as np
import pytest
from made_libraries import take_over_open_backend
from made_models import SECONDS, listening, make_bundle
from made_swaps import ask_for

from hft import engine, run_folder
from hft.errors import ModelError, StrategyError
from hft.journal import JOURNAL, RecordKind
from hft.live import session
from hft.live.swap_request import wait
from hft.live.swaps import Result, result_of
from hft.live.verify import verify_run
from hft.plan import prepare

STRATEGY = """
import time
from hft import BUY, SELL, Model, Params, Strategy

class AskingParams(Params, frozen=True):
    sleep_s: float = 0.0

class Asking(Strategy):
    params: AskingParams
    model = Model("asked")

    def on_start(self):
        self.at(self.now + 1_500_000_000, time.sleep, self.params.sleep_s)

    def on_signal(self, s):
        self.submit(s.instrument, BUY if s["up"] > 0.5 else SELL, 1, cause=s)

    def on_book(self, book):
        if book.live and book.two_sided:
            self.quotes(book.instrument, book.bid - 2, book.ask + 2, 1)
"""
OVERFLOWS = {"data.synth.messages_per_s": 300_000.0, "params.sleep_s": 0.4}
TWO = {"data.synth.symbols": ["AAA", "BBB"], "data.synth.messages_per_s": 2000.0}


@pytest.fixture
def library(monkeypatch):
    return take_over_open_backend(monkeypatch)


@pytest.fixture
def live(tmp_path):
    """Trades, with bundles handed over after so many seconds (and their cards' own facts)."""
    make_bundle(tmp_path / "asked.bundle")
    (tmp_path / "asking.py").write_text(STRATEGY)

    def trade(seconds, *given, **settings):
        swaps = [each if isinstance(each, tuple) else (each, {}) for each in given]
        settings = {"models.model.backend": "onnx", **settings}
        plan = prepare(tmp_path / "asking.py", "synth", recipe={}, settings=settings)
        folder = run_folder.new_folder("live", "asking", tmp_path)
        (folder / "swaps").mkdir()
        timers = [
            threading.Timer(after, ask, (folder, number, card))
            for number, (after, card) in enumerate(swaps, 1)
        ]
        for timer in timers:
            timer.start()
        outcome = session.run_sim(plan, folder, round(seconds * 1e9), nap_ns=50_000)
        for timer in timers:
            timer.join()
        run_folder.write_outcome(folder, plan, outcome)
        return folder, outcome

    def ask(folder, number, card):
        new = make_bundle(tmp_path / f"new{number}.bundle", seed=number + 1, **card)
        ask_for(folder, new.path, number=number)

    return trade


def records_of(folder, kind=RecordKind.SWAP):
    journal = run_folder.read_journal(folder)
    return journal[journal["kind"] == kind]


def result(folder, number):
    return msgspec.json.decode(result_of(folder, number).read_bytes(), type=Result)


def versions(folder):
    signals = records_of(folder, RecordKind.SIGNAL)
    return {
        instrument: set((signals["lots"][signals["instrument"] == instrument] >> 32).tolist())
        for instrument in (0, 1)
    }


# ---- a bundle on its way in ------------------------------------------------------------


def test_a_bundle_that_fails_beside_the_old_one_is_dropped(live, library, same):
    library.fails["1.bundle", 0] = 5
    folder, outcome = live(3, 1.0)
    assert outcome.run.status == "complete", outcome.run.error
    asked, dropped = records_of(folder)
    assert (asked["b"], dropped["b"], dropped["c"]) == (0, 2, 0)
    assert dropped["order"] == 1
    assert dropped["a"] == asked["a"] != 0
    words = "model 'model' of BTCUSDT.SIM: RuntimeError: the library gave up"
    said = result(folder, 1)
    assert said.state == "refused"
    with pytest.raises(ModelError, match=r"the session refused: dropped at 20.* gave up"):
        wait(folder, 1, timeout_s=5.0, tell=print)  # what `hft swap` is told
    assert said.error.endswith(words)
    (note,) = (note for note in outcome.run.notes if "Swap 1" in note)
    assert words in note
    assert versions(folder)[0] == {0}
    same(folder)  # fails again
    library.fails.clear()
    same(folder)  # does not


def test_who_had_taken_over_before_keeps_the_bundle(live, library, same):
    library.fails["1.bundle", 1] = 15  # of 20 to warm up
    folder, outcome = live(3, 1.0, **TWO)
    assert outcome.run.status == "complete", outcome.run.error
    kinds = records_of(folder)["b"].tolist()
    assert kinds in ([0, 1, 2], [0, 2])  # which instrument is faster is the market's choice
    assert versions(folder)[1] == {0}
    assert (1 in versions(folder)[0]) == (1 in kinds)
    assert len(result(folder, 1).took_over) == kinds.count(1)
    library.fails.clear()
    same(folder)


def test_after_one_that_failed_another_takes_over(live, library, same):
    library.fails["1.bundle", 0] = 1
    folder, outcome = live(4, 0.5, 2.0)
    assert outcome.run.status == "complete", outcome.run.error
    assert records_of(folder)["b"].tolist() == [0, 2, 0, 1]
    assert [result(folder, n).state for n in (1, 2)] == ["refused", "done"]
    library.fails.clear()
    same(folder)


def test_a_failure_that_was_not_in_the_run_is_a_difference(live, library):
    folder, _ = live(3, 1.0)
    assert records_of(folder)["b"].tolist() == [0, 1]
    library.fails["1.bundle", 0] = 5
    verification = verify_run(folder)
    assert verification.differences > 0
    assert "is SWAP" in verification.first


@pytest.mark.parametrize(("name", "ends"), [("1.bundle", "complete"), ("asked.bundle", "failed")])
def test_what_fails_as_it_is_reset_after_a_gap_verifies(live, library, same, name, ends):
    """The feed overflows while a handler sleeps."""
    library.fails[name, 0] = -1
    never_warm = {"warm_up_rows": 10_000_000}
    folder, outcome = live(5, (0.3, never_warm), **OVERFLOWS)
    assert outcome.run.status == ends, outcome.run.error
    swaps, (stop,) = records_of(folder), records_of(folder, RecordKind.STOP)
    if ends == "complete":
        assert swaps["b"].tolist() == [0, 2]
        assert swaps["c"].tolist() == [0, 1]
        assert result(folder, 1).error.endswith("RuntimeError: it cannot forget")
    else:
        assert (stop["a"], stop["b"]) == (2, 2)
    library.fails.clear()
    same(folder)


# ---- the one that trades ------------------------------------------------------------


@pytest.mark.parametrize("settings", [{}, TWO], ids=["one", "two"])
def test_a_run_that_a_model_ended_verifies(live, library, same, settings):
    library.fails["asked.bundle", 0] = 300
    folder, outcome = live(30, **settings)
    assert outcome.run.status == "failed"
    assert "RuntimeError: the library gave up" in outcome.run.error
    (stop,) = records_of(folder, RecordKind.STOP)
    assert (stop["a"], stop["b"], stop["order"], stop["instrument"]) == (2, 1, 0, 0)
    same(folder)
    library.fails.clear()
    same(folder)


def test_a_run_that_a_bundle_ended_after_it_had_taken_over_verifies(live, library, same):
    library.fails["1.bundle", 0] = 100
    folder, outcome = live(30, 1.0)
    assert outcome.run.status == "failed"
    assert records_of(folder)["b"].tolist() == [0, 1]
    (stop,) = records_of(folder, RecordKind.STOP)
    assert (stop["a"], stop["b"], stop["order"]) == (2, 1, 1)
    library.fails.clear()
    same(folder)


def test_a_model_that_fails_in_the_verification_alone_is_named(live, library):
    folder, _ = live(1)
    library.fails["asked.bundle", 0] = 5
    with pytest.raises(StrategyError, match=r"it fails: ModelError: model 'model' of BTCUSDT\.SIM"):
        verify_run(folder)


# ---- what is opened, is closed ------------------------------------------------------------


def closed_beside(library):
    """Folders of the bundles that were closed while the session went on."""
    assert all(each.closed_by for each in library.opened)
    return [e.bundle.path.name for e in library.opened if e.closed_by != threading.main_thread()]


@pytest.mark.parametrize("settings", [{}, TWO], ids=["one", "two"])
def test_what_was_replaced_is_closed_while_the_session_goes_on(live, library, settings):
    folder, outcome = live(6, 0.5, 3.0, **settings)
    assert outcome.run.status == "complete", outcome.run.error
    assert [result(folder, n).state for n in (1, 2)] == ["done", "done"]
    assert closed_beside(library) == ["asked.bundle", "1.bundle"]


def test_what_was_dropped_or_superseded_is_closed_too(live, library):
    library.fails["1.bundle", 0] = 3
    never = {"warm_up_rows": 10_000_000}
    folder, outcome = live(6, 0.5, (1.5, never), 2.5)
    assert outcome.run.status == "complete", outcome.run.error
    states = [result(folder, n).state for n in (1, 2, 3)]
    assert states == ["refused", "superseded", "done"]
    assert sorted(closed_beside(library)) == ["1.bundle", "2.bundle", "asked.bundle"]


def test_a_session_does_not_wait_for_a_bundle_that_is_being_read(live, library, monkeypatch):
    monkeypatch.setattr("hft.live.swap_watch.END_S", 0.2)
    library.opens_after["1.bundle"] = threading.Event()
    folder, outcome = live(1.5, 0.3)
    assert outcome.run.status == "complete", outcome.run.error
    said = result(folder, 1)
    assert said.state == "ended"
    assert "ended while it was read, which took longer than 0.2 s more" in said.error
    assert any(said.error in note for note in outcome.run.notes)
    library.opens_after["1.bundle"].set()
    until = time.monotonic() + 20.0
    while len(library.opened) < 2 or library.opened[1].closed_by is None:
        assert time.monotonic() < until, "nobody closed it"
        time.sleep(0.01)


def test_the_session_too_holds_a_bundle_against_its_budget(live, library):
    folder, outcome = live(2, (0.3, {"budget_ns": 1}))
    assert outcome.run.status == "complete", outcome.run.error
    said = result(folder, 1)
    assert said.state == "refused"
    assert "1.bundle/model.toml: budget_ns is 1 (1ns a row)" in said.error
    assert len(records_of(folder)) == 0
    assert closed_beside(library) == ["1.bundle"]


def test_tiers_of_a_bundle_that_is_swapped_in_lie_together(live, monkeypatch):
    from hft import _core

    blocks, together = [], _core.together
    monkeypatch.setattr(_core, "together", lambda them: blocks.append(them) or together(them))
    folder, _ = live(3, 0.5, **{"models.model.backend": "native"})
    assert result(folder, 1).state == "done"
    assert [len(each) for each in blocks] == [2, 2]


# ---- replay ------------------------------------------------------------


def test_in_a_replay_it_is_dropped_too(tmp_path, library):
    old, new = make_bundle(tmp_path / "old.bundle"), make_bundle(tmp_path / "new.bundle", seed=2)
    library.fails["new.bundle", 0] = 5
    at = 1_704_067_208_000_000_000
    recipe = {"swaps": [{"at": at, "bundle": str(new.path)}]}
    settings = {**SECONDS, "models.model.backend": "onnx"}
    plan = prepare(listening(old.path), "synth", recipe=recipe, settings=settings)
    outcome = engine.run_once(plan)
    assert outcome.run.status == "complete", outcome.run.error
    journal = outcome.journal.view(JOURNAL)
    assert journal["b"][journal["kind"] == RecordKind.SWAP].tolist() == [0, 2]
    assert {version for *_, version, _, _ in outcome.strategy.heard} == {0}
    (note,) = (note for note in outcome.run.notes if "Swap 1" in note)
    assert "new.bundle for model at BTCUSDT.SIM was dropped at 2024-01-01T00:00:08" in note
    assert note.endswith("RuntimeError: the library gave up.")
    plain = engine.run_once(prepare(listening(old.path), "synth", recipe={}, settings=settings))
    kinds = plain.journal.view(JOURNAL)
    rest = journal[journal["kind"] != RecordKind.SWAP]
    assert np.array_equal(rest, kinds)

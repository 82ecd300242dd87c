"""A live session's journal, fed back, gives the same outputs to the byte."""

import numpy as np
import pytest

from hft import run_folder

KIND = {
    "PACKET": 2,
    "UPDATE": 3,
    "SIGNAL": 4,
    "TIMER": 5,
    "CLOCK": 6,
    "NEW": 7,
    "REPLACE": 9,
    "ROW": 11,
}


def kinds(folder):
    journal = run_folder.read_journal(folder)
    return {name: int((journal["kind"] == kind).sum()) for name, kind in KIND.items()}


@pytest.mark.parity
def test_15_seconds_at_10000_messages_a_second_and_instrument(trade, same, everything, busy):
    folder, outcome = trade(everything, 15, **busy)
    assert outcome.run.status == "complete", outcome.run.error
    result = same(folder)
    found = kinds(folder)
    assert found["PACKET"] > 100_000
    assert all(found.values()), found
    assert result.records == len(run_folder.read_journal(folder))
    counts = outcome.strategy.counts
    for what in (
        "rows",
        "signals",
        "bars",
        "trades",
        "fills",
        "ready",
        "at",
        "REJECTED",
        "CANCELED",
    ):
        assert counts[what] > 0, (what, counts)
    assert {o["tag"] for o in outcome.run.orders} == set(range(len(outcome.run.tags)))


@pytest.mark.parity
def test_a_handler_that_raises_is_the_same_failure_again(trade, same, everything, busy):
    folder, outcome = trade(everything, 10, raise_after=5, **busy)
    assert outcome.run.status == "failed"
    assert "RuntimeError: a handler that fails" in outcome.run.error
    assert not (np.isin(outcome.run.orders["state"], [0, 1, 2, 4, 5])).any()
    same(folder)


@pytest.mark.parity
@pytest.mark.parametrize("handler", ["on_signal", "on_features", "on_bar", "on_order", "poke"])
def test_whichever_handler_raises(trade, same, everything, busy, handler):
    file = everything.parent / f"failing_{handler}.py"
    file.write_text(
        "from everything import Everything\n"
        "class Failing(Everything):\n"
        f"    def {handler}(self, *args):\n"
        f"        super().{handler}(*args)\n"
        "        self.count('calls')\n"
        "        if self.counts['calls'] == 7:\n"
        "            raise RuntimeError('at the seventh')\n"
    )
    folder, outcome = trade(file, 10, **busy)
    assert "RuntimeError: at the seventh" in outcome.run.error
    assert outcome.run.counters["orders_unanswered"] == 0
    same(folder)


@pytest.mark.parametrize(
    ("handler", "status"),
    [("on_start", "failed"), ("on_stop", "failed"), ("on_ready", "failed")],
)
def test_start_and_stop_may_fail_too(trade, same, tmp_path, handler, status):
    file = tmp_path / "failing.py"
    file.write_text(
        "from hft import Strategy\n"
        "class Failing(Strategy):\n"
        f"    def {handler}(self, *args):\n"
        "        raise ValueError('no')\n"
    )
    folder, outcome = trade(file, 0.5)
    assert outcome.run.status == status
    assert "ValueError: no" in outcome.run.error
    same(folder)


def test_sys_exit_in_a_handler_is_a_failure_not_the_end_of_the_process(trade, same, tmp_path):
    file = tmp_path / "leaving.py"
    file.write_text(
        "import sys\nfrom hft import Strategy\n"
        "class Leaving(Strategy):\n"
        "    def on_book(self, book):\n"
        "        sys.exit(0)\n"
    )
    folder, outcome = trade(file, 0.5)
    assert outcome.run.status == "failed"
    same(folder)


def test_a_strategy_that_asks_the_wall_clock_is_found_out(trade, tmp_path):
    from hft.live.verify import verify_run

    file = tmp_path / "impure.py"
    file.write_text(
        "import time\nfrom hft import Strategy\n"
        "class Impure(Strategy):\n"
        "    def on_start(self):\n"
        "        self.every('50ms', self.go)\n"
        "    def go(self):\n"
        "        book = self.book()\n"
        "        if book.two_sided:\n"
        "            self.submit(1, 1 + time.time_ns() % 1000, book.bid - 20)\n"
    )
    folder, outcome = trade(file, 1.0)
    assert outcome.run.status == "complete", outcome.run.error
    result = verify_run(folder)
    assert result.differences > 0
    assert "NEW (" in result.first


def test_a_class_among_several_and_a_neighbour_are_found_again(trade, same, tmp_path):
    (tmp_path / "beside_it.py").write_text("INTERVAL = '100ms'\n")
    file = tmp_path / "several.py"
    file.write_text(
        "from beside_it import INTERVAL\nfrom hft import Strategy\n"
        "class One(Strategy):\n"
        "    def on_start(self):\n"
        "        self.every(INTERVAL, print)\n"
        "class Two(Strategy):\n"
        "    pass\n"
    )
    folder, _ = trade(f"{file}:One", 0.5)
    same(folder)


def test_overload_is_a_gap_then_a_new_book_and_no_lost_answer(trade, same, strategies):
    folder, outcome = trade(
        strategies / "sleeper.py", 4, **{"data.synth.messages_per_s": 300_000.0}
    )
    assert outcome.run.status == "complete", outcome.run.error
    strategy = outcome.strategy
    assert strategy.gaps > 0
    assert strategy.ready >= strategy.gaps
    assert outcome.run.counters["gaps"] == strategy.gaps
    assert outcome.run.counters["orders_unanswered"] == 0
    same(folder)

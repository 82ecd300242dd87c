"""`hft check skew`: a run's features against those that training makes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from hft import engine, run_folder
from hft.cli.main import cli
from hft.data.store import Store
from hft.data.synth import SynthConfig, synthesize
from hft.errors import ConfigError, DataError
from hft.inference.skew.check import Skew, check_skew
from hft.inference.skew.sides import digests
from hft.journal import JOURNAL, RecordKind, checksums
from hft.live import session
from hft.plan import prepare

STRATEGY = """
from hft import BUY, Strategy
from hft.features import Every, Features, OnPacket, OnTouch
from hft.features import feature, imbalance, ofi, since_row, trade_flow

SEEN = {"fills": 0}

@feature()
def leak(state, row):
    return state, float(SEEN["fills"])

class Maker(Strategy):
    features = Features(imbalance(3), ofi(5, "100ms"), trade_flow("1s"), since_row(), COLUMN
                        trigger=TRIGGER)

    def on_start(self):
        SEEN["fills"] = 0
        self.every("20ms", self.quote_bid)

    def on_features(self, row):
        row["imbalance_3"]

    def on_fill(self, fill):
        SEEN["fills"] += 1

    def quote_bid(self):
        book = self.book(self.main)
        if book.live and book.two_sided:
            self.quote(self.main, BUY, book.bid, 50)

    @property
    def main(self):
        return next(iter(self.instruments.values()))
"""


def run(
    home: Path,
    *,
    trigger: str = "OnTouch()",
    leaks: bool = False,
    symbols: tuple[str, ...] = ("A",),
    **recipe: object,
) -> Path:
    """A run folder of a busy strategy on a synthetic market."""
    file = home / "maker.py"
    text = STRATEGY.replace("TRIGGER", trigger).replace("COLUMN", "leak," if leaks else "")
    file.write_text(text)
    tables = {
        "data": {"path": "synth", "synth": {"duration_s": 12, "symbols": list(symbols)}},
        "latency": {"compute": "300us"},
        "engine": {"bracket": False},
    }
    plan = prepare(file, recipe=tables | recipe)
    folder = run_folder.new_folder("backtest", "maker", home)
    run_folder.write_outcome(folder, plan, engine.run_once(plan))
    return folder


def doctor(folder: Path, row: int) -> int:
    """Rewrites a row's digest, checksum and all; returns the time of the record."""
    journal = np.fromfile(folder / "journal.bin", JOURNAL)
    at = np.flatnonzero(journal["kind"] == RecordKind.ROW)[row]
    journal["a"][at] ^= 1
    journal["check"] = checksums(journal)
    journal.tofile(folder / "journal.bin")
    return int(journal["ts"][at])


def facts(skew: Skew) -> list[tuple[int, int]]:
    return [(source.rows > 100, source.differ) for source in skew.sources]


@pytest.mark.parametrize("trigger", ["OnTouch()", "OnPacket()", "Every('10ms')"])
def test_an_honest_run_has_no_skew_however_busy_its_thread_was(tmp_path, trigger):
    """Compute takes 300 us, so many packets wait: their features are those of their arrival."""
    skew = check_skew(run(tmp_path, trigger=trigger))
    assert facts(skew) == [(True, 0)]
    assert skew.notes == ()


def test_a_live_session_has_no_skew(tmp_path):
    (tmp_path / "maker.py").write_text(
        STRATEGY.replace("TRIGGER", "OnTouch()").replace("COLUMN", "").replace("1s", "100ms")
    )
    recipe = {"data": {"path": "synth", "synth": {"symbols": ["A"]}}}
    plan = prepare(tmp_path / "maker.py", recipe=recipe)
    folder = run_folder.new_folder("live", "maker", tmp_path)
    run_folder.write_outcome(folder, plan, session.run_sim(plan, folder, 3_000_000_000))
    skew = check_skew(folder)
    assert [source.differ for source in skew.sources] == [0]
    assert skew.sources[0].rows > 20
    doctor(folder, 7)
    (source,) = check_skew(folder).sources
    assert (source.differ, source.unknown) == (1, 1)


def test_days_apart_are_made_a_day_at_a_time(tmp_path):
    for day in ("2024-01-01", "2024-01-02"):
        rows, (spec,) = synthesize(SynthConfig(start=f"{day}T10:00", duration_s=8.0))
        Store(tmp_path / "store").write(rows[spec.name], spec)
    data, engine = {"path": str(tmp_path / "store")}, {"overnight": "flatten", "bracket": False}
    skew = check_skew(run(tmp_path, data=data, engine=engine))
    assert facts(skew) == [(True, 0)]


@pytest.mark.parametrize("trigger", ["OnTouch()", "Every('10ms')"])
def test_several_instruments_are_told_apart(tmp_path, trigger):
    skew = check_skew(run(tmp_path, trigger=trigger, symbols=("A", "B")))
    assert facts(skew) == [(True, 0), (True, 0)]
    assert [source.instrument for source in skew.sources] == ["A.SIM", "B.SIM"]


def test_a_drawn_feed_is_heard_as_the_run_heard_it(tmp_path):
    latency = {"feed": "2ms", "scale": 0.5}
    assert check_skew(run(tmp_path, latency=latency)).differ == 0


def test_a_digest_that_was_rewritten_is_named(tmp_path):
    folder = run(tmp_path)
    doctor(folder, 70)
    skew = check_skew(folder)
    assert facts(skew) == [(True, 1)]
    (source,) = skew.sources
    assert source.first.startswith("row 70 of the run")
    assert source.unknown == 1
    assert not source.largest.any()


def test_a_feature_that_looks_at_the_strategy_is_found_by_column(tmp_path):
    """Training runs no strategy, so it sees no fills."""
    skew = check_skew(run(tmp_path, leaks=True))
    (source,) = skew.sources
    assert source.differ > 0
    assert source.unknown == 0
    worst = dict(zip(source.names, source.largest.tolist(), strict=True))
    assert worst.pop("leak") >= 1
    assert set(worst.values()) == {0.0}


def test_digests_are_those_of_the_core(tmp_path):
    folder = run(tmp_path)
    assert check_skew(folder).differ == 0
    values = np.random.default_rng(3).standard_normal((4, 3))
    assert len(set(digests(values).tolist())) == 4


def test_what_cannot_be_checked_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"no environment\.json: is it a run folder"):
        check_skew(tmp_path)
    folder = run(tmp_path)
    (folder / "strategy.py").write_text((folder / "strategy.py").read_text() + "\n# other\n")
    with pytest.raises(ConfigError, match=r"strategy\.py is not what the run used"):
        check_skew(folder)


def test_a_row_cut_out_of_the_journal_is_found(tmp_path):
    """All later digests stand one place too early; the values are not held against it."""
    folder = run(tmp_path)
    journal = np.fromfile(folder / "journal.bin", JOURNAL)
    at = np.flatnonzero(journal["kind"] == RecordKind.ROW)[50]
    np.delete(journal, at).tofile(folder / "journal.bin")
    (source,) = check_skew(folder).sources
    assert source.first.startswith("row 50 of the run")
    assert source.unknown > 50  # the repeated run has the row, so its digests do not match
    assert not source.largest.any()


def test_the_command_exits_with_1_where_a_row_differs(tmp_path):
    folder = run(tmp_path)
    done = CliRunner().invoke(cli, ["check", "skew", str(folder)])
    assert done.exit_code == 0, done.output
    assert "A.SIM features: " in done.output
    assert " 0 differ" in done.output
    doctor(folder, 30)
    done = CliRunner().invoke(cli, ["check", "skew", str(folder)])
    assert done.exit_code == 1
    assert " 1 differ" in done.output
    assert "first: row 30 of the run" in done.output


def test_the_command_shows_the_columns(tmp_path):
    done = CliRunner().invoke(cli, ["check", "skew", str(run(tmp_path, leaks=True))])
    assert done.exit_code == 1
    first_row = next(line for line in done.output.splitlines() if "leak" in line)
    assert float(first_row.split("│")[2]) >= 1


def test_a_clock_of_a_live_session_has_no_skew_though_a_timer_is_due_with_it(tmp_path):
    text = STRATEGY.replace("TRIGGER", 'Every("20ms")').replace("COLUMN", "")
    (tmp_path / "maker.py").write_text(text.replace("1s", "10ms"))
    recipe = {"data": {"path": "synth", "synth": {"symbols": ["A"]}}}
    plan = prepare(tmp_path / "maker.py", recipe=recipe)
    folder = run_folder.new_folder("live", "maker", tmp_path)
    run_folder.write_outcome(folder, plan, session.run_sim(plan, folder, 3_000_000_000))
    (source,) = check_skew(folder).sources
    assert source.rows > 30
    assert source.differ == 0

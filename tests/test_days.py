"""Days apart: each ends flat, and together they are one run, in however many processes."""

from __future__ import annotations

import dataclasses
import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from rich.console import Console

from hft import Strategy
from hft.analysis import pnl, terminal
from hft.analysis.figures import figures_of
from hft.analysis.html import page
from hft.analysis.records import OrderState, Reason
from hft.analysis.run_data import load, save
from hft.data import Store
from hft.data.days import end_of_trading
from hft.data.synth import SynthConfig, synthesize
from hft.engine import Outcome, backtest, replay_rows, run_once, run_with_variants
from hft.errors import ConfigError, HftError
from hft.journal import JOURNAL, RecordKind, checksums
from hft.plan import prepare
from hft.types import EVENT, SEEN_BY_BOTH, Flag, InstrumentSpec, Kind, Trading

DAYS = ("2024-03-04", "2024-03-05", "2024-03-07")
NAME = "BTCUSDT.SIM"
SECOND = 1_000_000_000
CLOSE_S = 24
TAKER = '''
from hft import BUY, SELL, Strategy


class Taker(Strategy):
    """Buys now and then, and quotes; counts what it heard."""

    def on_start(self):
        self.heard = 0
        self.every("1s", self.buy)
        self.every("200ms", self.rest)

    def buy(self):
        self.submit(BUY, 3)

    def rest(self):
        book = self.book()
        if book.bid is not None:
            self.quote(SELL, price=book.ask, lots=5)

    def on_order(self, order):
        self.heard += 1

    def on_save(self):
        return {"heard": self.heard}
'''


def day_rows(day: str, seed: int) -> tuple[Any, Any]:
    """Half a minute of a market that closes after CLOSE_S seconds."""
    config = SynthConfig(
        start=day, duration_s=30.0, seed=seed, messages_per_s=400, funding=False, tick=1.0
    )
    rows, (spec,) = synthesize(config)
    close = np.zeros(1, EVENT)
    close["ts_event"] = int(rows[NAME]["ts_event"][0]) + CLOSE_S * SECOND
    at = np.searchsorted(rows[NAME]["ts_event"], close["ts_event"][0])
    close["ts_recv"] = rows[NAME]["ts_recv"][at]
    close["kind"], close["ref_id"] = Kind.STATUS, Trading.CLOSED
    close["flags"] = SEEN_BY_BOTH | Flag.LAST
    return np.insert(rows[NAME], at, close), spec


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("days") / "store"
    for seed, day in enumerate(DAYS):
        rows, spec = day_rows(day, seed)
        Store(path).write(rows, spec)
    return path


@pytest.fixture(scope="module")
def taker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("strategy") / "taker.py"
    path.write_text(TAKER)
    return path


def flat(strategy: Any, data: Any, **more: Any) -> Any:
    settings = {"engine.overnight": "flatten", "engine.bracket": False} | more
    return prepare(strategy, data, settings=settings)


@pytest.fixture(scope="module")
def apart(store: Path, taker: Path) -> Outcome:
    return run_once(flat(taker, store))


def test_every_day_ends_flat_and_nothing_new_passes_after_its_end(apart: Outcome) -> None:
    run = apart.run
    assert run.status == "complete"
    for day in DAYS:
        fills = run.fills[on(day, run.fills["ts_venue"])]
        assert len(fills) > 10
        assert fills["position"][-1] == 0
        orders = run.orders[on(day, run.orders["ts_decide"])]
        first = int(run.samples["ts"][on(day, run.samples["ts"])][0])
        end = (first // SECOND) * SECOND + (CLOSE_S - 1 - 5) * SECOND
        late = orders[orders["ts_decide"] > end + SECOND]
        mine = np.array([run.tags[tag] != "flatten" for tag in late["tag"]])
        assert (late["reason"][mine] == Reason.HALTED_BY_RISK).all()
        assert mine.sum() > 5
    assert (run.samples["open_orders"][-1:] == 0).all()
    assert not run.notes


def on(day: str, ts: Any) -> Any:
    return ts.astype("datetime64[ns]").astype("datetime64[D]") == np.datetime64(day)


def test_days_make_one_run_whose_account_adds_up(apart: Outcome) -> None:
    run = apart.run
    assert (run.orders["id"] == np.arange(1, len(run.orders) + 1)).all()
    assert (np.diff(run.samples["ts"]) >= 0).all()
    assert np.isin(run.fills["order"], run.orders["id"]).all()
    bought = run.orders["side"][run.fills["order"] - 1]
    assert (bought == run.fills["side"]).all()
    assert pnl.split(run, 0).holds
    assert len(run.fills) > 50
    lots = run.fills["side"].astype(int) * run.fills["lots"]
    assert (run.fills["position"] == np.cumsum(lots)).all()
    journal = apart.journal.view(JOURNAL)
    assert (journal["check"] == checksums(journal)).all()
    assert (np.diff(journal["ts"]) >= 0).all()
    sent = journal[journal["kind"] == RecordKind.NEW]
    assert (run.orders["ts_decide"][sent["order"] - 1] == sent["ts"]).all()
    assert np.count_nonzero(journal["kind"] == RecordKind.WIND_DOWN) >= len(DAYS)


def test_a_day_alone_is_that_day_of_the_whole(apart: Outcome, store: Path, taker: Path) -> None:
    day = flat(taker, store, **{"data.start": DAYS[1], "data.end": "2024-03-06"})
    alone = run_once(day).run
    same = apart.run.fills[
        (apart.run.fills["ts_venue"] >= alone.ts_start)
        & (apart.run.fills["ts_venue"] <= alone.ts_end)
    ]
    assert len(alone.fills) == len(same)
    for name in ("price", "lots", "fee", "ts_venue", "mid2", "position", "markout_mid2"):
        assert (alone.fills[name] == same[name]).all(), name
    first = len(Store(store).read(NAME, end=DAYS[1]))
    rows = same["cause_row"] - alone.fills["cause_row"]
    assert set(rows[alone.fills["cause_row"] >= 0].tolist()) == {first}


def assert_same(a: Outcome, b: Outcome) -> None:
    for name in ("orders", "fills", "samples", "feed_latency_ns"):
        assert getattr(a.run, name).tobytes() == getattr(b.run, name).tobytes(), name
    for name in ("status", "error", "counters", "notes", "tags", "rows", "ts_start", "ts_end"):
        assert getattr(a.run, name) == getattr(b.run, name), name
    assert a.journal.tobytes() == b.journal.tobytes()
    assert a.run.environment == b.run.environment


def test_days_in_several_processes_give_the_same_bytes(
    apart: Outcome, store: Path, taker: Path
) -> None:
    plan = flat(taker, store)
    several = run_with_variants(plan, jobs=3)
    assert_same(apart, several)
    assert several.strategy is None
    assert several.saved() == apart.saved() == {"heard": apart.strategy.heard}
    told: list[tuple[int, float]] = []

    class Told:
        def __init__(self, label: str) -> None:
            self.label = label

        def __enter__(self) -> Any:
            return lambda rows, share: told.append((rows, share))

        def __exit__(self, *error: object) -> None:
            told.append((0, 0))

    assert_same(apart, run_with_variants(plan, jobs=2, progress=Told))
    assert told[-2][1] == 1.0


def test_variants_beside_the_run_are_those_after_it(store: Path, taker: Path) -> None:
    for overnight, end in (("carry", DAYS[1]), ("flatten", DAYS[2])):
        chosen = {"engine.overnight": overnight, "data.end": end}
        plan = prepare(taker, store, settings=chosen)
        one, two = (run_with_variants(plan, sweep=True, jobs=jobs) for jobs in (1, 2))
        assert_same(one, two)
        assert one.run.bracket is not None
        assert two.run.bracket is not None
        assert one.run.bracket.fills.tobytes() == two.run.bracket.fills.tobytes()
        names = [name for name, _ in one.run.variants]
        assert names == [name for name, _ in two.run.variants] != []
        for (_, a), (_, b) in zip(one.run.variants, two.run.variants, strict=True):
            assert a.samples.tobytes() == b.samples.tobytes()


def test_what_another_process_cannot_have_is_refused_in_words(store: Path, taker: Path) -> None:
    class Mine(Strategy):
        """Defined here."""

    with pytest.raises(ConfigError, match=r"Mine was not loaded from a file.*file of its own"):
        run_with_variants(prepare(Mine, store), jobs=2)
    rows, spec = day_rows(DAYS[0], 1)
    plan = prepare(taker, {NAME: rows}, specs=[spec])
    with pytest.raises(ConfigError, match=r"given as an array.*write them into a store"):
        run_with_variants(plan, jobs=2)


def test_time_that_days_took_side_by_side_is_not_added_up(store: Path, tmp_path: Path) -> None:
    (tmp_path / "idle.py").write_text(
        TAKER.replace("self.heard = 0", "import time; self.heard = 0; time.sleep(1)")
    )
    began = time.monotonic()
    run = run_with_variants(flat(tmp_path / "idle.py", store), jobs=3).run
    assert 1.0 < run.wall_s < time.monotonic() - began


@pytest.mark.parametrize("jobs", [0, -1, 1.5, "2", True])
def test_jobs_are_a_number_from_1(store: Path, taker: Path, jobs: Any) -> None:
    with pytest.raises(ConfigError, match=rf"jobs is {jobs!r}, want a whole number from 1"):
        backtest(taker, store, jobs=jobs)


def test_arrays_and_synthetic_markets_have_days_too(taker: Path) -> None:
    rows = [day_rows(day, seed) for seed, day in enumerate(DAYS)]
    whole = np.concatenate([part for part, _ in rows])
    plan = prepare(
        taker,
        {NAME: whole},
        specs=[rows[0][1]],
        settings={"engine.overnight": "flatten", "engine.bracket": False},
    )
    run = run_once(plan).run
    assert run.rows == len(whole)
    assert run.fills["position"][-1] == 0
    synthetic = {
        "data.synth.start": "2024-03-04T23:59:40",
        "data.synth.duration_s": 40.0,
        "data.synth.messages_per_s": 300.0,
    }
    run = run_once(flat(taker, "synth", **synthetic)).run
    assert run.ts_end // (86_400 * SECOND) == run.ts_start // (86_400 * SECOND) + 1
    assert run.status == "complete"


def test_the_report_says_what_the_data_cannot_tell(taker: Path, tmp_path: Path) -> None:
    rows, spec = day_rows(DAYS[0], 1)
    other = InstrumentSpec(symbol="OTHER", venue="SIM", tick=spec.tick, lot=spec.lot)
    for each, sentences in ((spec, ["when it reached us", "who traded"]), (other, ["orders"])):
        with Store(tmp_path / "s").writer(each) as writer:
            writer.add(rows)
            writer.note(cannot_tell=sentences)
    for symbols, told in (
        ((spec.name,), "The data cannot tell: when it reached us; who traded."),
        ((spec.name, other.name), "The data of OTHER.SIM cannot tell: orders."),
    ):
        settings = {"data.symbols": symbols, "engine.bracket": False}
        cls = type("Idle", (Strategy,), {})
        run = run_once(prepare(cls, tmp_path / "s", settings=settings)).run
        console = Console(file=io.StringIO(), width=200)
        terminal.show(figures_of(run), console)
        assert told in console.file.getvalue()
        assert told in page(run, figures_of(run))
        save(run, tmp_path / "run")
        assert figures_of(load(tmp_path / "run"))["notes"] == figures_of(run)["notes"]


# ---- days that go wrong


FAILING = TAKER.replace(
    "        self.submit(BUY, 3)",
    "        if 1709596810e9 < self.now < 1709600000e9:\n            raise ValueError('too much')\n"
    "        self.submit(BUY, 3)",
)


@pytest.mark.parametrize("jobs", [1, 3])
def test_a_failing_day_is_named_and_the_days_before_it_are_kept(
    store: Path, tmp_path: Path, jobs: int
) -> None:
    (tmp_path / "failing.py").write_text(FAILING)
    outcome = run_with_variants(flat(tmp_path / "failing.py", store), jobs=jobs)
    run = outcome.run
    assert run.status == "failed"
    assert run.error.startswith("2024-03-05: StrategyError: ValueError: too much at ")
    assert run.notes[-1] == "2 of 3 days were begun; the last is 2024-03-05."
    days = np.unique(run.samples["ts"].astype("datetime64[ns]").astype("datetime64[D]"))
    assert [str(day) for day in days] == list(DAYS[:2])


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_day_whose_data_are_damaged_is_named(
    store: Path, taker: Path, tmp_path: Path, jobs: int
) -> None:
    import shutil

    shutil.copytree(store, tmp_path / "damaged")
    path = Store(tmp_path / "damaged").file(NAME, DAYS[1])
    body = bytearray(path.read_bytes())
    body[len(body) // 3] ^= 0xFF
    path.write_bytes(bytes(body))
    run = run_with_variants(flat(taker, tmp_path / "damaged"), jobs=jobs).run
    assert run.status == "failed"
    assert run.error.startswith("2024-03-05: DataError: ")
    assert "damaged Parquet data" in run.error
    assert len(run.fills) > 0


def test_what_cannot_be_sold_stays_and_is_said(store: Path, taker: Path) -> None:
    rows, spec = day_rows(DAYS[0], 1)
    gone = rows["ts_event"] > rows["ts_event"][0] + (CLOSE_S - 8) * SECOND
    rows = rows[~(gone & (rows["kind"] != Kind.STATUS))]
    clear = rows[-1:].copy()
    clear["kind"], clear["side"], clear["ref_id"] = Kind.CLEAR, 1, 0
    clear["ts_event"] = clear["ts_recv"] = rows["ts_recv"][-2]
    first = np.concatenate([rows[:-1], clear, rows[-1:]])
    more, _ = day_rows(DAYS[1], 2)
    plan = prepare(
        taker,
        {NAME: np.concatenate([first, more])},
        specs=[spec],
        settings={"engine.overnight": "flatten", "engine.bracket": False},
    )
    outcome = run_once(plan)
    run = outcome.run
    kept = int(run.fills["position"][run.fills["ts_venue"] < more["ts_event"][0]][-1])
    assert kept != 0
    assert run.notes == [
        f"2024-03-04: {kept:+,} lots of {NAME} could not be sold by the end of the day; "
        "they stay in the account, marked with the market."
    ]
    assert run.fills["position"][-1] == kept == run.samples["position"][-1]
    split = pnl.split(run, 0)
    assert split.holds
    assert split.residual2 == 0
    assert run.notes[0] in figures_of(run)["notes"]
    journal = outcome.journal.view(JOURNAL)
    asked = journal["ts"][journal["kind"] == RecordKind.WIND_DOWN]
    asked = asked[asked < more["ts_event"][0]]
    assert len(asked) > 4  # until the last row; once it is seen that nothing goes, less and less
    waits = 100_000_000 * 2 ** np.maximum(np.arange(len(asked) - 1) - 1, 0)
    assert (np.abs(np.diff(asked) - waits) < 1_000_000).all()


def test_a_day_that_ends_flat_but_with_orders_out_ends(store: Path, tmp_path: Path) -> None:
    (tmp_path / "rester.py").write_text(
        "from hft import BUY, Strategy\n\n\n"
        "class Rester(Strategy):\n"
        "    def on_start(self):\n"
        "        self.every('200ms', self.rest)\n\n"
        "    def rest(self):\n"
        "        if self.book().bid is not None:\n"
        "            self.quote(BUY, price=self.book().bid - 1_000, lots=5)\n"
    )
    run = run_once(flat(tmp_path / "rester.py", store)).run
    assert len(run.fills) == 0
    assert (run.orders["state"] != OrderState.NEW).all()
    assert (run.orders["state"] == OrderState.CANCELED).sum() >= len(DAYS)


def test_what_the_cap_keeps_from_the_last_order_stays_and_is_said(store: Path, taker: Path) -> None:
    outcome = run_once(flat(taker, store, **{"venue.participation_cap": 1e-3}))
    assert any("could not be sold by the end of the day" in note for note in outcome.run.notes)
    journal = outcome.journal.view(JOURNAL)
    assert (journal["kind"] == RecordKind.WIND_DOWN).sum() < 20 * len(DAYS)


def test_a_day_of_changes_without_a_snapshot_is_said(taker: Path) -> None:
    rows, spec = day_rows(DAYS[0], 1)
    second, _ = day_rows(DAYS[1], 2)
    second = second[~np.isin(second["kind"], (Kind.SNAPSHOT_BEGIN, Kind.SNAPSHOT_END))]
    plan = prepare(
        taker,
        {NAME: np.concatenate([rows, second])},
        specs=[spec],
        settings={"engine.overnight": "flatten", "engine.bracket": False},
    )
    (note,) = run_once(plan).run.notes
    assert note.startswith("2024-03-05: BTCUSDT.SIM has changes of levels and no snapshot")


def test_a_worker_that_is_killed_ends_the_run_in_words(store: Path, tmp_path: Path) -> None:
    killed = TAKER.replace("self.heard = 0", "import os; os.kill(os.getpid(), 9)")
    (tmp_path / "killed.py").write_text(killed)
    with pytest.raises(HftError, match="ended by signal 9; is there memory enough"):
        run_with_variants(flat(tmp_path / "killed.py", store), jobs=2)


def test_ctrl_c_between_two_days_keeps_those_before(store: Path, taker: Path) -> None:
    plan = flat(taker, store)
    (feed,) = plan.feeds

    def end(day: str) -> int:
        if day == DAYS[1]:
            raise KeyboardInterrupt
        return feed.days.end(day)

    days = dataclasses.replace(feed.days, end=end)
    run = run_once(dataclasses.replace(plan, feeds=[dataclasses.replace(feed, days=days)])).run
    assert run.status == "interrupted"
    assert run.ts_end < int(np.datetime64(DAYS[1], "ns").astype(int))
    assert run.notes == [f"2 of 3 days were begun; the last is {DAYS[1]}."]


def test_workers_whose_parent_is_killed_end_without_a_word(store: Path, tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    arguments = ("backtest", str(tmp_path / "slow.py"), "--data", str(store), "--jobs", "2")
    arguments += ("--set", "engine.overnight=flatten", "--out", str(tmp_path / "runs"))
    with (tmp_path / "err").open("w") as err:
        process = subprocess.Popen(
            [sys.executable, "-c", "from hft.cli.main import main; main()", *arguments],
            stderr=err,
            env=os.environ | {"SLEEP_S": "0.05"},
        )
        while not (workers := children(process.pid)):
            time.sleep(0.1)
        time.sleep(2.0)
        process.kill()
        process.wait()
    for _ in range(300):
        if not any(runs(pid) for pid in workers):
            break
        time.sleep(0.1)
    assert not any(runs(pid) for pid in workers)
    assert "Traceback" not in (tmp_path / "err").read_text()


# ---- the end of trading


def test_the_end_of_trading_is_the_last_status_that_leaves_open() -> None:
    def end(*states: Trading) -> int:
        rows = np.zeros(len(states), EVENT)
        rows["kind"], rows["ref_id"] = Kind.STATUS, [int(s) for s in states]
        rows["ts_event"] = 10 * np.arange(1, len(states) + 1)
        return end_of_trading(rows, 1000)

    t = Trading
    assert end() == end(t.OPEN) == 1000
    assert end(t.AUCTION, t.OPEN, t.AUCTION, t.CLOSED) == 30
    assert end(t.AUCTION, t.OPEN, t.CLOSED, t.OPEN, t.CLOSED) == 50
    assert end(t.OPEN, t.HALT, t.OPEN) == 1000
    assert end(t.OPEN, t.CLOSED, t.GAP) == 20
    assert end(t.CLOSED) == 10


def test_a_time_range_cuts_the_day_and_its_end(store: Path, taker: Path) -> None:
    plan = flat(taker, store, **{"data.end": f"{DAYS[0]}T00:00:15"})
    end = np.datetime64(f"{DAYS[0]}T00:00:15", "ns").astype(int)
    assert plan.feeds[0].days.names() == [DAYS[0]]
    rows = Store(store).read(NAME, DAYS[0], end)
    assert plan.feeds[0].days.end(DAYS[0]) == int(rows["ts_recv"].max())
    run = run_once(plan).run
    assert run.ts_end < end + SECOND
    assert run.fills["position"][-1] == 0


def test_a_time_of_the_recipe_that_is_none_is_named(store: Path, taker: Path) -> None:
    with pytest.raises(ConfigError, match=r"data\.end: 'noon' is no ISO date or time"):
        flat(taker, store, **{"data.end": "noon"})
    with pytest.raises(ConfigError, match=r"no rows of BTCUSDT.SIM .*--symbol\) leaves"):
        flat(taker, store, **{"data.start": "2024-03-08"})


def test_a_range_that_ends_in_a_break_ends_with_the_last_row(tmp_path: Path, taker: Path) -> None:
    rows, spec = day_rows(DAYS[0], 1)
    rows = rows[rows["kind"] != Kind.STATUS]
    late = rows.copy()
    for clock in ("ts_event", "ts_recv"):
        late[clock] += 3600 * SECOND
    Store(tmp_path / "s").write(np.concatenate([rows, late]), spec)
    plan = flat(taker, tmp_path / "s", **{"data.end": f"{DAYS[0]}T00:20"})
    assert plan.feeds[0].days.end(DAYS[0]) == int(rows["ts_recv"][-1])
    run = run_once(plan).run
    assert run.fills["position"][-1] == 0
    assert run.notes == []


def test_an_end_before_the_first_row_lets_nothing_through(store: Path, taker: Path) -> None:
    plan = prepare(taker, store, settings={"engine.bracket": False, "data.end": "2024-03-05"})
    run = replay_rows(plan, ends=[0]).run
    assert len(run.fills) == 0
    assert set(run.orders["state"].tolist()) == {int(OrderState.REJECTED)}


# ---- the command


def hft(*arguments: str, **more: Any) -> Any:
    command = [sys.executable, "-c", "from hft.cli.main import main; main()", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, **more)


def test_a_run_of_days_is_verified_and_reported(store: Path, taker: Path, tmp_path: Path) -> None:
    ran = hft(
        *("backtest", str(taker), "--data", str(store), "--jobs", "2", "--out", str(tmp_path)),
        *("--set", "engine.overnight=flatten"),
    )
    assert ran.returncode == 0, ran.stderr
    (folder,) = tmp_path.iterdir()
    assert (folder / "state.json").is_file()
    verified = hft("verify", str(folder))
    assert verified.returncode == 0, verified.stdout
    assert " 0 differences" in verified.stdout


def test_workers_find_modules_as_their_parent_does(
    store: Path, taker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, Path("/nowhere")])  # which imports pass over
    assert run_with_variants(flat(taker, store), jobs=2).run.status == "complete"


def test_workers_log_as_their_parent_does(store: Path, tmp_path: Path) -> None:
    said = TAKER.replace("self.heard = 0", "self.heard = 0; self.log.info('begun'); print('aloud')")
    (tmp_path / "said.py").write_text(said)
    ran = hft(
        *("--log-json", "backtest", str(tmp_path / "said.py"), "--data", str(store)),
        *("--jobs", "2", "--out", str(tmp_path / "runs"), "--set", "engine.overnight=flatten"),
        *("--set", "engine.bracket=false"),
    )
    assert ran.returncode == 0, ran.stderr
    lines = [line for line in ran.stderr.splitlines() if "begun" in line]
    assert len(lines) == len(DAYS)
    assert all(msgspec.json.decode(line)["message"].endswith("begun") for line in lines)
    assert ran.stderr.count("aloud") == len(DAYS)


SLOW = TAKER.replace(
    "self.heard += 1",
    "import os, time; time.sleep(float(os.environ.get('SLEEP_S', 0)))",
)


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_ctrl_c_ends_all_and_leaves_a_marked_report(store: Path, tmp_path: Path, jobs: str) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    arguments = ("backtest", str(tmp_path / "slow.py"), "--data", str(store), "--jobs", jobs)
    arguments += ("--set", "engine.overnight=flatten", "--out", str(tmp_path / "runs"))
    process = subprocess.Popen(
        [sys.executable, "-c", "from hft.cli.main import main; main()", *arguments],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"SLEEP_S": "0.05"},
    )
    while len(workers := children(process.pid)) < (2 if jobs == "2" else 0):
        time.sleep(0.1)
    time.sleep(3.0)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    (folder,) = (tmp_path / "runs").iterdir()
    facts = msgspec.json.decode((folder / "run.json").read_bytes())
    assert facts["status"] == "interrupted"
    assert "PARTIAL" in out
    assert not any(runs(pid) for pid in workers)
    assert " 0 differences" in hft("verify", str(folder)).stdout


def test_a_live_session_has_no_days_apart(tmp_path: Path) -> None:
    from hft.live.session import run_sim

    plan = prepare(type("Idle", (Strategy,), {}), settings={"engine.overnight": "flatten"})
    with pytest.raises(ConfigError, match=r"engine\.overnight = 'flatten' cuts recorded days"):
        run_sim(plan, tmp_path, 1)


def runs(pid: int) -> bool:
    """Whether a process does: one that has ended may still wait to be counted by its parent."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in text.split()]

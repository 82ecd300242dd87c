"""Profiles in runs: which leg is drawn, from which rows, and a run's own latencies again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from hft import BUY, Strategy, _core, backtest, run_folder
from hft.analysis.records import NO_TIME
from hft.analysis.run_data import load
from hft.cli.main import cli
from hft.config import LatencyConfig, Series
from hft.errors import ConfigError
from hft.execution.draws import Stream, draw_bits, draw_uniform
from hft.execution.latency import core_legs, delayed, drawn_from, resolve
from hft.execution.profile_of_run import profile_of_run
from hft.execution.profiles import (
    NONE,
    LatencyProfile,
    ProfileFacts,
    load_profile,
    make_profile,
    save_profile,
)
from hft.feeds import open_feeds
from hft.live.verify import verify_run
from hft.plan import prepare
from hft.recipe_checks import to_recipe
from hft.recipe_files import load_recipe
from hft.types import EVENT

FACTS = ProfileFacts(origin="measured", source="a test")
N = 4000
CLOCKWORK = """
from hft import BUY, SELL, Strategy


class Clockwork(Strategy):
    def on_start(self):
        self.every("20ms", self.tick)

    def tick(self):
        if not self.book().two_sided:
            return
        for order in self.orders():
            self.cancel(order)
        self.submit(BUY, 1, self.book().bid - 5)
        self.submit(SELL, 1, self.book().ask + 5)
"""


def trace(base: int, n: int = N) -> np.ndarray:
    drawn = draw_uniform(4, 1, np.arange(n, dtype=np.uint64))
    return base + (1000 * drawn).astype(np.int64)


def profile(**changes: Any) -> LatencyProfile:
    """Orders with every leg; entry + 1,000,000 is the response of the same message."""
    entry = trace(2_000_000)
    columns: dict[str, Any] = {
        "kind": ["order"] * N,
        "ts": np.arange(N) * 5_000_000,
        "feed_ns": trace(300_000),
        "entry_ns": entry,
        "response_ns": entry + 1_000_000,
    }
    return make_profile("made up", FACTS, columns | changes)


def saved(made: LatencyProfile, folder: Path) -> str:
    path = folder / "profile.parquet"
    save_profile(made, path)
    return str(path)


@pytest.fixture
def clockwork(tmp_path: Path) -> Path:
    file = tmp_path / "clockwork.py"
    file.write_text(CLOCKWORK)
    return file


def quiet(**latency: Any) -> dict[str, Any]:
    """A run of 20 s of the synthetic market."""
    settings = {"data.synth.duration_s": 20.0, "engine.bracket": False}
    return settings | {f"latency.{name}": value for name, value in latency.items()}


# ---- which leg is whose


def test_without_a_profile_legs_are_their_defaults() -> None:
    told = resolve(LatencyConfig())
    assert (told.entry, told.response, told.compute, told.inference) == (
        "1ms",
        "1ms",
        "20us",
        "50us",
    )
    assert (told.entry_cancel, told.entry_replace) == ("1ms", "1ms")


def test_zero_is_a_duration_and_no_default() -> None:
    told = resolve(LatencyConfig(entry=0, compute=0, inference=0))
    assert (told.entry, told.entry_cancel, told.compute, told.inference) == (0, 0, 0, 0)


def test_unset_legs_are_the_profiles_where_it_has_them(tmp_path: Path) -> None:
    told = resolve(LatencyConfig(profile=saved(profile(), tmp_path), response="3ms"))
    assert told.entry == "profile"
    assert told.response == "3ms"
    assert told.entry_cancel == "profile"  # of all messages, as entry is
    assert told.compute == "20us"
    assert told.feed == "data"


def test_cancels_are_their_own_from_a_thousand_on(tmp_path: Path) -> None:
    for cancels, expected in ((999, "4ms"), (1000, "profile")):
        message = ["cancel"] * cancels + ["new"] * (N - cancels)
        path = saved(profile(message=message), tmp_path)
        assert resolve(LatencyConfig(profile=path, entry="4ms")).entry_cancel == expected


def test_a_stage_that_a_profile_lacks_is_refused_with_those_it_has(tmp_path: Path) -> None:
    path = saved(profile(), tmp_path)
    with pytest.raises(ConfigError, match=r"no compute stage; it has feed, entry, response"):
        resolve(LatencyConfig(profile=path, compute="profile"))
    with pytest.raises(ConfigError, match=r"latency.feed is \"profile\", and latency.profile"):
        resolve(LatencyConfig(feed="profile"))


def test_the_run_folder_says_what_each_leg_was(clockwork: Path, tmp_path: Path) -> None:
    arguments = ["backtest", str(clockwork), "--latency", "same-region", "--out", str(tmp_path)]
    arguments += ["--set", "data.synth.duration_s=2", "--set", "latency.response=3ms"]
    result = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    (folder,) = tmp_path.glob("backtest-*")
    written = load_recipe(folder / "recipe.toml")["latency"]
    assert written["profile"] == "same-region"
    assert (written["entry"], written["response"]) == ("profile", "3ms")


def test_the_option_draws_what_the_profile_has_over_what_the_recipe_says(tmp_path: Path) -> None:
    path = saved(profile(), tmp_path)
    cls = {"latency": {"entry": "9ms", "compute": "5us"}}
    plan = prepare(Strategy, "synth", recipe=cls, settings=drawn_from(path))
    latency = plan.recipe.latency
    assert (latency.entry, latency.response, latency.compute) == ("profile", "profile", "5us")
    assert latency.feed == "data"


# ---- what is drawn


def legs_of(latency: LatencyConfig, seconds: float = 20.0, seed: int = 1) -> Any:
    feeds = open_feeds(to_recipe({"data": {"synth": {"duration_s": seconds}}}))
    return core_legs(latency, seed, feeds, ids=True)


START = 1_704_067_200_000_000_000  # of the synthetic market
TIMES = START + np.arange(0, 10_000_000_000, 3_000_000)


@pytest.mark.parametrize("model", ["bootstrap", "empirical"])
def test_entry_and_response_of_a_message_stay_a_pair(tmp_path: Path, model: Any) -> None:
    legs = legs_of(LatencyConfig(profile=saved(profile(), tmp_path), model=model))
    entry, response = legs.entry.at(TIMES), legs.response.at(TIMES)
    assert np.unique(entry).size > 100
    assert (response == entry + 1_000_000).all()


def test_the_feed_shares_the_layout_of_the_wire(tmp_path: Path) -> None:
    legs = legs_of(LatencyConfig(profile=saved(profile(), tmp_path), feed="profile"))
    assert (legs.feed.at(TIMES) == legs.entry.at(TIMES) - 1_700_000).all()


def test_empirical_draws_are_the_cores(tmp_path: Path) -> None:
    made = profile()
    legs = legs_of(LatencyConfig(profile=saved(made, tmp_path), model="empirical"), seed=9)
    index = draw_bits(9, Stream.ENTRY, TIMES.astype(np.uint64)) % np.uint64(N)
    assert (legs.entry.at(TIMES) == made.numbers("entry_ns")[index.astype(np.int64)]).all()


def test_cancels_are_drawn_from_their_own_trace(tmp_path: Path) -> None:
    is_cancel = draw_uniform(8, 1, np.arange(N, dtype=np.uint64)) < 0.3
    message = np.where(is_cancel, "cancel", "new").tolist()
    entry = np.where(is_cancel, 7_000_000, 2_000_000)
    path = saved(profile(message=message, entry_ns=entry), tmp_path)
    legs = legs_of(LatencyConfig(profile=path))
    assert (legs.entry.at(TIMES) == 2_000_000).all()
    assert (legs.entry_cancel.at(TIMES) == 7_000_000).all()
    assert set(legs.entry_replace.at(TIMES)) == {2_000_000, 7_000_000}  # has none: of all


def test_scale_multiplies_what_is_drawn(tmp_path: Path) -> None:
    path = saved(profile(), tmp_path)
    once = legs_of(LatencyConfig(profile=path)).entry.at(TIMES)
    twice = legs_of(LatencyConfig(profile=path, scale=2.0)).entry.at(TIMES)
    assert (twice == 2 * once).all()


def test_lognormal_is_a_series_that_does_not_depend_on_who_asks(tmp_path: Path) -> None:
    path = saved(profile(), tmp_path)
    leg = legs_of(LatencyConfig(profile=path, model="lognormal")).entry
    assert (leg.at(TIMES)[::2] == leg.at(TIMES[::2])).all()
    assert np.median(leg.at(TIMES)) == pytest.approx(np.median(trace(2_000_000)), rel=0.05)


def test_short_profiles_are_replayed_and_nothing_else(tmp_path: Path) -> None:
    columns = {"kind": ["order"] * 5, "ts": np.arange(5) * 10**9, "entry_ns": np.arange(5) + 7}
    path = saved(make_profile("short", FACTS, columns), tmp_path)
    for model in ("bootstrap", "empirical", "lognormal"):
        with pytest.raises(ConfigError, match=r"has 5 rows, want at least 1000; latency.model"):
            legs_of(LatencyConfig(profile=path, model=model))
    leg = legs_of(LatencyConfig(profile=path, model="recorded")).entry
    feeds = open_feeds(to_recipe({"data": {"synth": {"duration_s": 20.0}}}))
    first = int(next(feeds[0].chunks())["ts_recv"][0])
    assert leg.at(first + np.array([0, 10**9, 3 * 10**9 - 1, 10**12])).tolist() == [7, 8, 9, 11]


def test_a_feed_of_another_delay_is_raised_and_not_reordered(tmp_path: Path) -> None:
    rows = np.zeros(3, EVENT)
    rows["ts_event"] = [0, 10, 20]
    rows["ts_recv"] = [4, 14, 24]
    leg = _core.Latency.recorded(np.array([0, 10, 20]), np.array([30, 5, 1]))
    (moved,) = delayed(iter([rows]), leg, 1.0)
    assert moved["ts_recv"].tolist() == [30, 30, 30]
    (half,) = delayed(iter([rows]), None, 0.5)
    assert half["ts_recv"].tolist() == [2, 12, 22]
    assert rows["ts_recv"].tolist() == [4, 14, 24]


def test_a_recorded_series_may_stand_beside_a_profile(tmp_path: Path) -> None:
    (tmp_path / "entry.csv").write_text("ts,ns\n0,123\n")
    leg = Series(file=str(tmp_path / "entry.csv"), scale=2.0)
    legs = legs_of(LatencyConfig(profile=saved(profile(), tmp_path), entry=leg))
    assert (legs.entry.at(TIMES) == 246).all()


def test_orders_taken_away_leave_the_latency_of_the_others() -> None:
    class Some(Strategy):
        every_other = False

        def on_start(self) -> None:
            self.count = 0
            self.every("20ms", self.tick)

        def tick(self) -> None:
            self.count += 1
            if self.book().two_sided and not (self.every_other and self.count % 2):
                self.submit(1, 1, self.book().bid - 50)

    class Fewer(Some):
        every_other = True

    settings = quiet(profile="same-region")
    more, fewer = (backtest(cls, "synth", settings=settings).run.orders for cls in (Some, Fewer))
    sent = dict(zip(more["ts_send"].tolist(), more["ts_arrive"].tolist(), strict=True))
    assert 300 < len(fewer) < 0.6 * len(more)
    for ts, arrived in zip(fewer["ts_send"].tolist(), fewer["ts_arrive"].tolist(), strict=True):
        # A channel does not reorder: where the one before is still under way, both arrive with it.
        assert arrived <= sent[ts] or sent[ts] == NO_TIME


# ---- a run's own latencies


def run_of(clockwork: Path, runs: Path, **settings: Any) -> Path:
    """The folder of 20 s of the synthetic market."""
    arguments = ["backtest", str(clockwork), "--out", str(runs)]
    for key, value in quiet(**settings).items():
        arguments += ["--set", f"{key}={str(value).lower()}"]
    assert CliRunner().invoke(cli, arguments, catch_exceptions=False).exit_code == 0
    (folder,) = runs.iterdir()
    return folder


@pytest.mark.parametrize("ordering", ["fifo", "independent"])
def test_a_run_replayed_as_recorded_has_its_own_latencies(
    clockwork: Path, tmp_path: Path, ordering: str
) -> None:
    settings = {"profile": "same-region", "compute": "30us", "ordering": ordering}
    folder = run_of(clockwork, tmp_path / "runs", **settings)
    settings |= {"profile": saved(profile_of_run(folder), tmp_path), "compute": "profile"}
    again = backtest(clockwork, "synth", settings=quiet(**settings, model="recorded", inference=0))
    first, second = load(folder).orders, again.run.orders
    assert len(first) > 1000
    # On one channel an answer to a cancel can hold up one to an order, and it is not recorded
    # which: there only the way out is the run's own.
    stamps = ["id", "ts_send", "ts_handled", "ts_arrive"]
    for stamp in [*stamps, *["ts_ack"] * (ordering == "independent")]:
        assert (first[stamp] == second[stamp]).all(), stamp
    assert np.unique(second["ts_arrive"] - second["ts_send"]).size > 150


def test_a_run_is_verified_with_the_profile_it_used_and_no_other(
    clockwork: Path, tmp_path: Path
) -> None:
    path = saved(profile(), tmp_path)
    folder = run_of(clockwork, tmp_path / "runs", profile=path)
    assert verify_run(folder).differences == 0
    saved(profile(entry_ns=trace(1_000_000)), tmp_path)
    with pytest.raises(ConfigError, match="the latency profile is not what the run used"):
        verify_run(folder)


def test_inferences_of_a_run_become_rows_with_wait_and_service(tmp_path: Path) -> None:
    maker = Path(__file__).parents[2] / "strategies/lstm_mm.py"
    folder = run_of(maker, tmp_path / "runs", inference="70us")
    made = profile_of_run(folder)
    rows = made.rows(["inference"])
    run = load(folder)
    assert rows.size == run.counters["signals"] > 500
    assert set(made.numbers("service_ns", rows).tolist()) == {70_000}
    assert (np.sort(made.numbers("wait_ns", rows)) == np.sort(run.model_wait_ns[: rows.size])).all()
    assert (made.numbers("batch", rows) == 1).all()
    # What an order says of the inference before it is among them.
    asked = run.orders[run.orders["by_signal"] == 1]
    offered = made.numbers("ts", rows)
    assert asked.size > 20
    assert np.isin(asked["ts_cause_recv"], offered).mean() > 0.9


def test_a_runs_cancels_come_from_its_journal(clockwork: Path, tmp_path: Path) -> None:
    legs = {"entry": "2ms", "response": "3ms", "entry_cancel": "5ms", "compute": "30us"}
    folder = run_of(clockwork, tmp_path / "runs", **legs, ordering="independent")
    made = profile_of_run(folder)
    assert made.count("entry", "new") > 500
    assert made.count("entry", "cancel") > 500
    entry = {
        message: set(made.numbers("entry_ns", made.rows(["entry"], message)).tolist())
        for message in ("new", "cancel")
    }
    assert entry == {"new": {2_000_000}, "cancel": {5_000_000}}
    assert set(made.numbers("response_ns", made.rows(["response"], "cancel"))) == {3_000_000}
    assert set(made.numbers("compute_ns", made.rows(["compute"]))) == {30_000}
    assert (made.numbers("rate") > 0).mean() > 0.95
    assert made.facts.origin == "fitted"
    assert made.facts.clock_offset is not None
    assert made.facts.clock_offset.half_width_ns == 0


class BuyOnce(Strategy):
    def on_start(self) -> None:
        self.every("100ms", lambda: self.submit(BUY, 1, self.book().bid))


def test_rates_are_not_those_of_other_rows_than_the_runs(tmp_path: Path) -> None:
    synth = open_feeds(to_recipe({"data": {"synth": {"duration_s": 5.0, "seed": 77}}}))[0]
    rows = np.concatenate(list(synth.chunks()))
    report = backtest(BuyOnce, {synth.spec.name: rows}, specs=[synth.spec])
    report.save(tmp_path)
    made = profile_of_run(tmp_path)
    assert "not those of the run" in " ".join(made.facts.notes)
    assert (made.numbers("rate") == NONE).all()


def test_a_live_session_becomes_a_profile(clockwork: Path, tmp_path: Path) -> None:
    arguments = ["live", "--venue", "sim", str(clockwork), "--duration", "3s"]
    arguments += ["--out", str(tmp_path / "runs"), "--set", "latency.entry=300us"]
    assert CliRunner().invoke(cli, arguments).exit_code == 0
    (folder,) = (tmp_path / "runs").iterdir()
    out = tmp_path / "live.parquet"
    result = CliRunner().invoke(
        cli, ["latency", "fit", str(folder), "-o", str(out)], catch_exceptions=False
    )
    assert result.exit_code == 0
    made = load_profile(out)
    assert made.facts.origin == "measured"
    assert {"feed", "entry", "response", "compute", "risk"} <= set(made.stages())
    sent = load(folder).orders
    assert made.count("entry", "new") == (sent["ts_arrive"] != NO_TIME).sum()
    assert made.count("entry", "cancel") > 50
    entry = made.numbers("entry_ns", made.rows(["entry"], "new"))
    assert entry.min() >= 300_000
    assert (made.numbers("rate") != NONE).all()
    assert run_folder.read_journal(folder).size


def test_live_refuses_a_profile_in_words(clockwork: Path, tmp_path: Path) -> None:
    arguments = ["live", "--venue", "sim", str(clockwork), "--duration", "1s"]
    arguments += ["--out", str(tmp_path), "--set", "latency.profile=same-region"]
    result = CliRunner().invoke(cli, arguments)
    assert isinstance(result.exception, ConfigError)
    told = str(result.exception)
    assert "latency.entry: the sim venue's wire takes a constant" in told
    assert "none drawn from a latency profile" in told

"""Queue models scored on fates that are known: a market whose law is known, and real ones."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from hft.cli.main import cli
from hft.data import import_source
from hft.data.opening import open_data
from hft.data.sources import open_sources
from hft.data.store import Store
from hft.data.synth import SynthConfig, synthesize
from hft.errors import ConfigError, DataError
from hft.fitting.tape import Source
from hft.scoring.exponents import Search
from hft.scoring.ghosts import Model, Options, candidates, hide
from hft.scoring.queues import BY_PLACES, Score, score_queues
from hft.scoring.show import draw, lines_of
from hft.scoring.statistics import Blocks, fair_brier

OPTIONS = Options(horizon_ns=12_000_000_000, ghosts=6000, particles=32)


@contextmanager
def quiet(label: str) -> Any:
    yield lambda rows, done: None


def score_of(store: Store, options: Options = OPTIONS, **more: Any) -> list[Score]:
    return score_queues(store, str(store.path), options=options, progress=quiet, **more)


@pytest.fixture(scope="module")
def beta(beta_store: Store) -> Score:
    (score,) = score_of(beta_store)
    return score


def named(figures: list[Any], name: str) -> Any:
    return next(f for f in figures if f.model == name)


def test_the_law_of_the_cancels_is_found_both_ways(beta: Score) -> None:
    assert beta.cancels_n is not None
    assert beta.cancels_n.low < 2 < beta.cancels_n.high
    assert named(beta.place, "power3").n == pytest.approx(2, rel=0.25)
    assert named(beta.place, BY_PLACES).n == pytest.approx(beta.cancels_n.value)


def test_the_right_model_wins_and_wrong_ones_lose_for_certain(beta: Score) -> None:
    assert named(beta.place, "power3").behind_best.low <= 0
    for wrong in ("uniform", "risk_averse", "log1"):
        assert named(beta.place, wrong).behind_best.low > 0
        assert named(beta.order, wrong).behind_best.low > 0
    assert named(beta.place, "uniform").bias.low > 0.05
    assert named(beta.place, "risk_averse").bias.high < -0.05
    assert named(beta.place, "power3").skill.value > 0.3


def test_of_orders_that_the_right_model_gave_a_probability_that_many_are_filled(
    beta: Score,
) -> None:
    bins = [b for b in named(beta.place, "power3").reliability if b.orders >= 25]
    assert len(bins) >= 6
    for each in bins:
        assert each.realised.value == pytest.approx(each.predicted, abs=0.15)


def test_the_known_queue_is_never_wrong(beta: Score) -> None:
    assert beta.wrong_exact == 0
    exact = named(beta.order, "exact")
    assert exact.brier.value == 0
    assert exact.time_error_s.value == exact.time_error_p90_s == 0
    assert named(beta.removed, "exact").bias.high < 0  # whom nobody meets is not filled


def test_parts_do_not_meet(beta: Score) -> None:
    assert beta.fitted_on < 3000
    assert beta.scored == 3000
    assert sum(beta.ends.values()) == beta.scored


def test_every_score_is_the_same_in_another_process(tmp_path: Path, beta_store: Store) -> None:
    flags = ["--horizon", "12s", "--ghosts", "500", "--particles", "8"]
    call = ["score", "queue", str(beta_store.path), *flags, "-o"]
    here = CliRunner().invoke(cli, [*call, str(tmp_path / "here")], catch_exceptions=False)
    assert here.exit_code == 0
    assert "power3" in here.output
    subprocess.run(
        [sys.executable, "-m", "hft", *call, str(tmp_path / "there")],
        check=True,
        capture_output=True,
        env={"PYTHONHASHSEED": "77", "PATH": ""},
    )
    for name in ("queue-score.json", "queue-score.md", "queue-score.png"):
        assert (tmp_path / "here" / name).read_bytes() == (tmp_path / "there" / name).read_bytes()
    told = json.loads((tmp_path / "here" / "queue-score.json").read_text())
    assert told["options"]["particles"] == 8
    assert told["scores"][0]["scored"] == 250


def test_ghosts_do_not_see_each_other(beta_store: Store) -> None:
    source = Source(beta_store, "BETA.TEST", "here")
    rows, count = candidates(source, OPTIONS)
    assert len(rows) == 6000 < count
    models = [Model("power3", 2.0), Model("log2")]
    some = rows[::40]
    every, few = hide(source, rows, models, OPTIONS), hide(source, some, models, OPTIONS)
    at = np.searchsorted(rows, some)
    assert (every.place.probability[at] == few.place.probability).all()
    assert (every.order.ts_median[at] == few.order.ts_median).all()
    assert few.place.probability.std() > 0.1


def test_a_picture_and_tables_of_it(beta: Score) -> None:
    assert draw([beta]).startswith(b"\x89PNG")
    lines = lines_of(beta.order)
    assert lines[-1][0] == "exact"
    assert lines[0][3].startswith("0.00 ")


def test_golden_section_finds_a_minimum() -> None:
    search = Search(-2.0, 3.0)
    for _ in range(30):
        at = search.wanted()
        search.tell((at - 0.7) ** 2)
    assert search.best() == pytest.approx(0.7, abs=1e-4)


def test_few_particles_do_not_count_against_a_model() -> None:
    rng = np.random.default_rng(3)
    chance = rng.random(200_000)
    filled = rng.random(200_000) < chance
    few = rng.binomial(4, chance) / 4
    exact = float(((chance - filled) ** 2).mean())
    assert fair_brier(few[:, None], filled, 4).mean() == pytest.approx(exact, abs=2e-3)
    assert ((few - filled) ** 2).mean() > exact + 0.03


def test_intervals_by_blocks_hold_what_they_should() -> None:
    """A level that all orders of a block share: 95 % of intervals hold the truth, or nearly."""
    held = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        ts = np.repeat(np.arange(60) * 300_000_000_000, 20)
        values = np.repeat(rng.normal(0, 1, 60), 20) + rng.normal(0, 1, 1200)
        (mean,) = Blocks(ts, 1, 1).ratio(values[:, None], np.ones(1200))
        held += mean.low < 0 < mean.high
    assert held >= 51


def test_levels_are_refused(tmp_path: Path) -> None:
    config = SynthConfig(duration_s=5.0)
    rows, specs = synthesize(config)
    store = Store(tmp_path)
    with store.writer(specs[0]) as writer:
        writer.add(rows[specs[0].name])
    with pytest.raises(DataError, match="tells levels, not orders"):
        score_of(store)


def test_what_cannot_be_scored_is_refused_in_words(beta_store: Store, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no rows of '2020-01-01'; it has 2023-11-14"):
        score_of(beta_store, date="2020-01-01")
    with pytest.raises(ConfigError, match="particles is 1: expected at least 2"):
        score_of(beta_store, Options(particles=1))
    with pytest.raises(ConfigError, match=r"share is 1\.0"):
        score_of(beta_store, Options(share=1.0))
    with pytest.raises(ConfigError, match="there are BETA"):
        score_of(beta_store, symbols=("OTHER",))
    with pytest.raises(DataError, match="no order's window of 6000 s"):
        score_of(beta_store, Options(horizon_ns=6000 * 10**9))
    with pytest.raises(DataError, match=r"in \d blocks of \d+ s; want at least 8"):
        score_of(beta_store, Options(horizon_ns=600 * 10**9, ghosts=400, particles=2))


def test_few_orders_are_refused(beta_store: Store, tmp_path: Path) -> None:
    store = Store(tmp_path)
    with store.writer(beta_store.spec("BETA.TEST")) as writer:
        writer.add(beta_store.read("BETA.TEST")[:100])
    with pytest.raises(DataError, match="want at least 200"):
        score_of(store)


def test_the_command_refuses_as_the_others_do(beta_store: Store) -> None:
    path = str(beta_store.path)
    for flags in (["--particles", "1"], ["--levels", "0"], ["--replace-keeps", "all"]):
        assert CliRunner().invoke(cli, ["score", "queue", path, *flags]).exit_code == 2
    done = CliRunner().invoke(cli, ["score", "queue", path, "--horizon", "soon"])
    assert isinstance(done.exception, ConfigError)
    assert "'soon' is not a duration" in str(done.exception)


def test_first_in_first_out_explains_every_fate_of_a_shanghai_stock(
    data_dir: Path, tmp_path: Path
) -> None:
    (source,) = open_sources("shanghai", [data_dir / "cn_l3/sse_600519_20230201_tonglian.zip"])
    import_source(source, Store(tmp_path))
    stock = Source(open_data(tmp_path), "600519.SSE", "here")
    options = Options()
    rows, count = candidates(stock, options)
    assert len(rows) == 20_000 < count
    fates = hide(stock, rows, [], options)
    assert (fates.exact == fates.order.ts_filled).all()
    assert 0.5 < fates.order.filled.mean() < 0.7

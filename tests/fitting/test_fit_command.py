"""`hft fit` from data to a recipe that runs."""

from __future__ import annotations

from pathlib import Path

import made_up_tapes as made
import numpy as np
import pytest
from click.testing import CliRunner

from hft.cli.main import cli
from hft.data.sources import write_synthetic
from hft.durations import parse_ns
from hft.errors import ConfigError, DataError
from hft.recipe_checks import to_recipe
from hft.recipe_files import load_recipe

pytest.importorskip("matplotlib", reason="fits are drawn with matplotlib")

PNG = b"\x89PNG\r\n\x1a\n"


def fit(*args: object) -> str:
    done = CliRunner().invoke(cli, ["fit", *map(str, args)])
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.output


@pytest.fixture(scope="module")
def synthetic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of orders of two synthetic instruments."""
    store = tmp_path_factory.mktemp("synthetic") / "store"
    settings = ["duration_s=300", "messages_per_s=150", "order_by_order=true", "seed=4"]
    write_synthetic(store, [*settings, 'symbols=["AAA","BBB"]'])
    return store


def test_a_synthetic_market_is_fitted_and_a_recipe_includes_what_was_found(
    synthetic: Path, tmp_path: Path
) -> None:
    told = fit("queue", synthetic, "--symbol", "AAA", "-o", tmp_path / "fits")
    assert "n of power3" in told
    assert "loss, bits" in told
    for what in ("refill", "impact"):
        told = fit(what, synthetic, "--symbol", "AAA.SIM", "-o", tmp_path / "fits")
        assert "trades" in told
    names = {path.name for path in (tmp_path / "fits").iterdir()}
    assert names == {f"{w}.{e}" for w in ("queue", "refill", "impact") for e in ("toml", "png")}
    for name in names:
        if name.endswith("png"):
            assert (tmp_path / "fits" / name).read_bytes().startswith(PNG)
    run = tmp_path / "run.toml"
    run.write_text('include = ["fits/queue.toml", "fits/refill.toml", "fits/impact.toml"]\n')
    recipe = to_recipe(load_recipe(run))
    assert recipe.venue.queue == "power3"
    assert recipe.venue.queue_n != 2.0
    assert "# hft fit queue: AAA.SIM of store" in (tmp_path / "fits/queue.toml").read_text()


def test_every_instrument_is_fitted_unless_one_is_chosen(synthetic: Path, tmp_path: Path) -> None:
    fit("queue", synthetic, "--near", 1, "-o", tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {
        f"queue-{name}.SIM.{end}" for name in ("AAA", "BBB") for end in ("toml", "png")
    }


def test_a_range_of_time_is_taken_and_told(synthetic: Path, tmp_path: Path) -> None:
    bounds = ("--from", "2024-01-01T00:01", "--to", "2024-01-01T00:04")
    fit("queue", synthetic, "--symbol", "AAA", *bounds, "-o", tmp_path)
    head = (tmp_path / "queue.toml").read_text().splitlines()[0]
    assert head.endswith("2024-01-01T00:01 to 2024-01-01T00:04")


def test_what_was_found_is_written_as_a_recipe_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "made.npy"
    np.save(path, made.levels_with_refill(2.0, seed=101))
    facts = ("--tick", 0.01, "--lot", 1, "-o", tmp_path)
    fit("refill", path, *facts)
    venue = to_recipe(load_recipe(tmp_path / "refill.toml")).venue
    assert parse_ns(venue.refill_half_life) == pytest.approx(2e9, rel=0.2)
    np.save(path, made.prices_with_kernel({1.0: 0.4}, 0.1, seed=11))
    fit("impact", path, *facts, "--heal", "1s")
    impact = to_recipe(load_recipe(tmp_path / "impact.toml")).venue.impact
    assert sum(impact.weights) + impact.permanent == pytest.approx(0.5, rel=0.05)
    assert len(impact.weights) == len(impact.half_lives)
    assert "1s" in impact.half_lives


def test_what_the_data_cannot_tell_sets_nothing(tmp_path: Path) -> None:
    path = tmp_path / "made.npy"
    facts = ("--tick", 0.01, "--lot", 1, "-o", tmp_path)
    for what, rows in (
        ("refill", made.levels_with_refill(1e-6, seed=1)),
        ("impact", made.prices_with_kernel({}, 0.0, seed=2)),
    ):
        np.save(path, rows)
        assert "The data cannot tell" in fit(what, path, *facts)
        assert load_recipe(tmp_path / f"{what}.toml") == {}
        assert "# The data cannot tell" in (tmp_path / f"{what}.toml").read_text()


@pytest.mark.parametrize(
    ("args", "error", "message"),
    [
        (("refill", "--step", "x"), ConfigError, "--step: "),
        (("refill", "--step", "10us"), ConfigError, r"--step is '10us': expected at least 1ms"),
        (("impact", "--heal", "0s"), ConfigError, "--heal is 0"),
        (("queue", "--symbol", "CCC"), ConfigError, r"0 instruments are called 'CCC'; there are"),
        (("queue", "--to", "2023-01-01"), DataError, "AAA.SIM has no rows from the first"),
    ],
)
def test_what_cannot_be_fitted_is_refused_and_leaves_nothing(
    args: tuple[str, ...], error: type[Exception], message: str, synthetic: Path, tmp_path: Path
) -> None:
    with pytest.raises(error, match=message):
        fit(args[0], synthetic, *args[1:], "-o", tmp_path / "fits")
    assert not (tmp_path / "fits").exists()


def test_levels_end_the_command_as_any_refusal_of_data(tmp_path: Path) -> None:
    path = tmp_path / "made.npy"
    np.save(path, made.levels_with_refill(1.0, seed=1, duration_s=20))
    with pytest.raises(DataError, match="cannot tell the queue model's n") as refused:
        fit("queue", path, "--tick", 0.01, "--lot", 1, "-o", tmp_path / "fits")
    assert refused.value.exit_code == 5
    assert not (tmp_path / "fits").exists()


def test_latency_is_fitted_by_the_same_command_under_both_names() -> None:
    both = [
        CliRunner().invoke(cli, [*name, "--help"])
        for name in (["fit", "latency"], ["latency", "fit"])
    ]
    options = [done.output.partition("Options:")[2] for done in both]
    assert options[0] == options[1]
    assert "--request" in options[0]

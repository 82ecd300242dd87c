"""`include` of a recipe: fragments under it, the recipe's own keys over them."""

from __future__ import annotations

from pathlib import Path

import pytest

from hft.errors import ConfigError
from hft.recipe_checks import to_recipe
from hft.recipe_files import load_recipe, to_toml


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_suffix(".toml").write_text(text)


def test_the_recipe_wins_over_what_it_includes_and_later_files_over_earlier(tmp_path: Path) -> None:
    write(
        tmp_path,
        run='include = ["fits/queue.toml", "fits/refill.toml"]\nseed = 5\n[venue]\nqueue_n = 3.0\n',
        fits__queue='[venue]\nqueue = "power2"\nqueue_n = 0.2\ntaker_fee = 0.1\n',
        fits__refill='[venue]\nrefill_half_life = "2s"\ntaker_fee = 0.2\n',
    )
    recipe = to_recipe(load_recipe(tmp_path / "run.toml"))
    venue = recipe.venue
    assert (venue.queue, venue.queue_n, venue.refill_half_life) == ("power2", 3.0, "2s")
    assert (venue.taker_fee, recipe.seed) == (0.2, 5)
    # The resolved recipe holds what came of it, and includes nothing.
    assert "include" not in to_toml(recipe)
    assert 'refill_half_life = "2s"' in to_toml(recipe)


def test_a_fragment_includes_another_beside_it(tmp_path: Path) -> None:
    write(
        tmp_path,
        run='include = ["fits/all.toml"]\n',
        fits__all='include = ["deeper/one.toml"]\n',
        fits__deeper__one="[venue.impact]\npermanent = 0.5\n",
    )
    assert load_recipe(tmp_path / "run.toml") == {"venue": {"impact": {"permanent": 0.5}}}


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"run": 'include = "a.toml"\n'}, r"include is 'a.toml': expected a list of files"),
        ({"run": "include = [1]\n"}, r"include is \[1\]: expected a list"),
        ({"run": 'include = ["a\\u0000b"]\n'}, r"include 'a.x00b' is no name of a file"),
        ({"run": 'include = ["a.toml"]\n'}, r"run\.toml: include: no recipe at .*a\.toml"),
        ({"run": 'include = ["run.toml"]\n'}, r"run\.toml: include 'run.toml' leads back"),
        (
            {"run": 'include = ["a.toml"]\n', "a": 'include = ["run.toml"]\n'},
            r"run\.toml: include: .*a\.toml: include 'run.toml' leads back to .*run\.toml",
        ),
        (
            {"run": 'include = ["a.toml"]\n', "a": "[venue]\nqueu_n = 2.0\n"},
            r"a\.toml: no key venue\.queu_n; did you mean queue_n",
        ),
        (
            {"run": 'include = ["a.toml"]\n', "a": "[venue]\nqueue_n = -1.0\n"},
            r"a\.toml: venue\.queue_n is -1\.0",
        ),
    ],
)
def test_what_cannot_be_included_is_refused_by_name(
    files: dict[str, str], message: str, tmp_path: Path
) -> None:
    write(tmp_path, **files)
    with pytest.raises(ConfigError, match=message):
        load_recipe(tmp_path / "run.toml")

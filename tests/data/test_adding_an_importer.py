"""docs/adding-an-importer.md, step by step."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import conformance
import pytest
import test_conformance as suite
from click.testing import CliRunner
from conformance import Case, packed

from hft.cli.main import cli
from hft.data import Store
from hft.data.sources import FORMATS
from hft.types import Kind

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/adding-an-importer.md").read_text()

SUITE = (
    suite.test_rows_are_in_order_and_packets_end,
    suite.test_every_row_and_lot_of_the_file_arrives,
    suite.test_a_second_pass_is_the_first,
    suite.test_importing_twice_is_refused_and_overwriting_changes_nothing,
    suite.test_a_file_that_was_cut_is_refused_or_mended_to_what_came_before,
    suite.test_what_is_no_such_file_is_refused_by_name,
)


def block(word: str) -> str:
    """A code block of the page by its first line."""
    found = re.search(rf"^```{word}\n(.*?)^```", PAGE, re.M | re.S)
    assert found, f"no block {word}"
    return found[1]


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The template changed as the page says, and named as a format."""
    text = (ROOT / "adapters/template.py").read_text()
    text = swap(text, r"_WORDS = .*?(?=\n\ndef open_files)", block("python constants"))
    text = swap(text, r"    def _part\(.*?(?=\n    def )", block("python part"))
    text = text.replace("TemplateFile", "AcmeFile").replace('"TEMPLATE"', '"ACME"')
    (tmp_path / "acme.py").write_text(text)
    (tmp_path / "acme.csv").write_text(block("csv"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(FORMATS, "acme", "acme")
    monkeypatch.setitem(conformance.MODULES, "acme", "acme")
    yield
    sys.modules.pop("acme", None)


def swap(text: str, pattern: str, new: str) -> str:
    out, count = re.subn(pattern, lambda _: new, text, flags=re.S)
    assert count == 1, f"{pattern} is {count} times in the template"
    return out


def command(line: str) -> str:
    result = CliRunner().invoke(cli, line.split()[1:], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.usefixtures("acme")
def test_the_example_is_imported(tmp_path: Path) -> None:
    lines = re.findall(r"^    (hft data .*)", PAGE, re.M)
    assert len(lines) == 3
    output = [command(line) for line in lines]
    assert "acme" in output[0]
    assert "X.ACME: 5 rows" in output[1]
    assert "X.ACME: 5 rows are sound" in output[2]
    rows = Store(tmp_path / "data").read("X.ACME")
    assert rows["kind"].tolist() == [Kind.LEVEL, Kind.LEVEL, Kind.TRADE, Kind.LEVEL, Kind.LEVEL]
    assert rows["price"].tolist() == [10001, 10003, 10001, 10001, 10003]
    assert (rows["flags"] & 4 != 0).tolist() == [False, True, False, True, True]


@pytest.mark.usefixtures("acme")
def test_the_example_passes_the_suite(tmp_path: Path) -> None:
    names: dict[str, Any] = vars(conformance).copy()
    exec(block("python case"), names)
    case: Case = names["_ACME"]
    for one in (case, packed(case)):
        for check in SUITE:
            folder = tmp_path / one.name / check.__name__
            folder.mkdir(parents=True)
            check(one, folder)


@pytest.mark.usefixtures("acme")
def test_the_example_is_imported_from_anywhere(tmp_path: Path) -> None:
    exec(block("python anywhere"), {})
    assert len(Store(tmp_path / "data").read("X.ACME")) == 5


@pytest.mark.parametrize(
    "path", sorted(set(re.findall(r"`((?:adapters|framework)/[\w/.]+)", PAGE)))
)
def test_what_the_page_points_to_exists(path: str) -> None:
    assert (ROOT / path).exists() or path == "adapters/acme.py"

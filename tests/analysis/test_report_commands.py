"""`hft report` and `hft compare` on run folders."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from made_up_runs import RunMaker
from rich.console import Console

from hft.analysis import tables, terminal
from hft.analysis.compare import compare as compare_runs
from hft.analysis.figures import figures_of
from hft.analysis.run_data import RunData, save
from hft.cli.compare import compare
from hft.cli.report import report
from hft.errors import DataError, OrderError


@pytest.fixture
def folders(random_run: RunMaker, tmp_path: Path) -> tuple[Path, Path]:
    for name, seed in (("a", 1), ("b", 2)):
        save(random_run(seed), tmp_path / name)
        (tmp_path / name / "strategy.py").write_text(f"LOTS = {seed}\n")
    return tmp_path / "a", tmp_path / "b"


def test_report_shows_a_run(folders: tuple[Path, Path]) -> None:
    result = CliRunner().invoke(report, [str(folders[0])], env={"COLUMNS": "140"})
    assert result.exit_code == 0, result.output
    for words in (
        "random-1",
        "Net result",
        "Profit and loss",
        "Mark-outs",
        "Latency",
        "would cross",
    ):
        assert words in result.output
    assert len(result.output.splitlines()) < 50


def test_report_prints_json(folders: tuple[Path, Path]) -> None:
    result = CliRunner().invoke(report, [str(folders[0]), "--json"])
    assert json.loads(result.output) == json.loads((folders[0] / "report.json").read_text())


def test_report_tells_an_order(folders: tuple[Path, Path]) -> None:
    result = CliRunner().invoke(report, [str(folders[0]), "--order", "7"])
    assert result.output.startswith("Order 7: ")
    result = CliRunner().invoke(report, [str(folders[0]), "--order", "7000"])
    assert isinstance(result.exception, OrderError)


def test_report_of_no_run_is_a_data_error(tmp_path: Path) -> None:
    assert isinstance(CliRunner().invoke(report, [str(tmp_path)]).exception, DataError)


def test_compare_shows_figures_and_settings(folders: tuple[Path, Path]) -> None:
    result = CliRunner().invoke(compare, [str(folders[0]), str(folders[1])], env={"COLUMNS": "140"})
    assert result.exit_code == 0, result.output
    assert "recipe.seed" in result.output
    assert "strategy source" in result.output


def test_compare_by_hand(folders: tuple[Path, Path]) -> None:
    sides = compare_runs(*folders)
    assert [each.where for each in sides.differences] == ["strategy source", "recipe.seed"]
    net = sides.rows[0]
    assert net.name == "net"
    assert net.first is not None
    assert net.second is not None
    assert net.change == pytest.approx(net.second - net.first)


def test_a_run_compared_with_itself_has_no_differences(folders: tuple[Path, Path]) -> None:
    sides = compare_runs(folders[0], folders[0])
    assert sides.differences == []
    assert all(row.change in (0.0, None) for row in sides.rows)


@pytest.mark.parametrize("which", ["empty_run", "rich_run", "three_fills"])
def test_terminal_survives_every_run(which: str, request: pytest.FixtureRequest) -> None:
    run: RunData = request.getfixturevalue(which)
    run.status, run.error = "failed", "KeyError: [up]"
    screen = io.StringIO()
    terminal.show(figures_of(run), Console(file=screen, width=120))
    assert "PARTIAL: run failed. KeyError: [up]" in screen.getvalue()


def test_commands_import_nothing_heavy() -> None:
    code = (
        "import sys, hft.cli.report, hft.cli.compare; "
        "print([m for m in ('numpy', 'polars', 'pandas', 'rich') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_no_number_is_cut_on_a_narrow_terminal() -> None:
    numbers = ["3,336,110", "1,234,567.89", "-0.083..-0.082", "1.311..15.233", "-166.81", "99.7 %"]
    head = ["instrument", *(f"figure number {n}" for n in range(len(numbers)))]
    table = tables.Table("Made up", head, [["BTCUSDT.BINANCE takers", *numbers]])
    screen = io.StringIO()
    Console(file=screen, width=80).print(terminal.rich_table(table, 80))
    lines = screen.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert all(number in screen.getvalue() for number in numbers)

"""`hft new` lays out a project that runs at once, and never touches one that is there."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from hft import backtest
from hft.cli.main import cli
from hft.errors import ConfigError
from hft.project import lay_out


def test_a_new_project_runs_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(cli, ["new", "my-maker"])
    assert done.exit_code == 0, done.output
    assert "cd my-maker && hft backtest strategies/my_maker.py" in done.output
    monkeypatch.chdir(tmp_path / "my-maker")
    run = CliRunner().invoke(cli, ["backtest", "--set", "data.synth.duration_s=20"])
    assert run.exit_code == 0, run.output
    assert list(Path("backtests/runs").glob("backtest-my_maker-*/report.html"))
    ignored = Path(".gitignore").read_text().split()
    assert "backtests/runs/" in ignored


def test_its_strategy_trades(tmp_path: Path) -> None:
    project = lay_out(tmp_path, "maker")
    report = backtest(project.folder / project.strategy, settings={"data.synth.duration_s": 20.0})
    assert len(report.fills) > 0


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "maker").mkdir()
    (tmp_path / "maker" / "README.md").write_text("mine")
    with pytest.raises(ConfigError, match="exists already"):
        lay_out(tmp_path, "maker")
    assert [p.name for p in (tmp_path / "maker").iterdir()] == ["README.md"]
    assert (tmp_path / "maker" / "README.md").read_text() == "mine"
    assert [p.name for p in tmp_path.iterdir()] == ["maker"]


@pytest.mark.parametrize("name", ["", "9lives", "a/b", "..", "a b", "-x", "x-", "a.b", "é"])
def test_a_name_must_do_for_a_folder_and_a_module(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="project name"):
        lay_out(tmp_path, name)
    assert list(tmp_path.iterdir()) == []

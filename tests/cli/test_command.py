"""The command as a shell sees it: exit codes, streams, interruption, and what it imports."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

Hft = Callable[..., subprocess.CompletedProcess[str]]
HEAVY = ("numpy", "polars", "pandas", "pyarrow", "scipy", "rich", "hft._core")


def loaded(program: str, cwd: Path) -> list[str]:
    """Which of HEAVY a program has imported when it ends."""
    tail = f"\nimport sys\nprint(*(m for m in {HEAVY!r} if m in sys.modules), file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", program + tail], cwd=cwd, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stderr.split()


def as_hft(*args: str) -> str:
    return f"""
import sys
sys.argv = ["hft", *{args!r}]
from hft.cli.main import main
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
"""


def test_help_and_the_package_import_nothing_heavy(tmp_path: Path) -> None:
    assert loaded("import hft", tmp_path) == []
    assert loaded(as_hft("--help"), tmp_path) == []
    assert loaded(as_hft("backtest", "--help"), tmp_path) == []


def test_a_backtest_needs_no_pandas_pyarrow_or_scipy(home: Path) -> None:
    modules = loaded(as_hft("backtest", "strategies/join_bid.py"), home)
    assert {"pandas", "pyarrow", "scipy"}.isdisjoint(modules)
    assert "hft._core" in modules


def test_a_run_by_hand_writes_report_to_stdout_and_ends_with_0(hft: Hft, home: Path) -> None:
    done = hft("backtest", "strategies/join_bid.py")
    assert done.returncode == 0, done.stderr
    assert "Net result" in done.stdout
    folder = home / done.stdout.split("run folder: ")[1].splitlines()[0]
    assert folder.parent == home / "backtests" / "runs"
    for name in ("recipe.toml", "strategy.py", "journal.bin", "report.html", "run.json"):
        assert (folder / name).is_file()
    again = hft("report", str(folder))
    assert again.returncode == 0
    assert "Net result" in again.stdout
    assert hft("verify", str(folder)).returncode == 0
    first = hft("report", str(folder), "--order", "1")
    assert first.returncode == 0
    assert "BUY" in first.stdout.upper()
    assert hft("report", str(folder), "--order", "999999999").returncode == 6


def test_piped_output_has_no_control_characters(hft: Hft) -> None:
    done = hft("backtest", "strategies/join_bid.py")
    text = done.stdout + done.stderr
    assert [c for c in text if ord(c) < 32 and c != "\n"] == []


@pytest.mark.parametrize("columns", ["40", "80", "200"])
def test_no_line_is_wider_than_the_terminal(
    hft: Hft, monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    done = hft("backtest", "strategies/join_bid.py")
    assert done.returncode == 0, done.stderr
    table = done.stdout.split("run folder: ")[0]
    assert max(map(len, table.splitlines())) <= int(columns)


def test_a_reader_that_has_enough_is_no_traceback(hft: Hft, home: Path) -> None:
    run = hft("backtest", "strategies/join_bid.py").stdout.split("run folder: ")[1].splitlines()[0]
    report = subprocess.Popen(
        [sys.executable, "-m", "hft", "report", run],
        cwd=home,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert report.stdout is not None
    report.stdout.close()
    assert report.stderr is not None
    assert "Traceback" not in report.stderr.read()
    report.stderr.close()
    report.wait(timeout=30)


def test_a_reader_that_has_enough_does_not_cost_the_run_folder(home: Path) -> None:
    piped = '"$0" -m hft backtest strategies/join_bid.py | true'
    subprocess.run(["bash", "-c", piped, sys.executable], cwd=home, timeout=60, check=True)
    (folder,) = (home / "backtests" / "runs").iterdir()
    assert (folder / "run.json").is_file()


def test_ctrl_c_leaves_a_marked_partial_report(home: Path) -> None:
    command = [sys.executable, "-m", "hft", "backtest", "strategies/join_bid.py"]
    run = subprocess.Popen(
        [*command, "--set", "data.synth.duration_s=360000"],
        cwd=home,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    runs = home / "backtests" / "runs"
    deadline = time.monotonic() + 20
    while not runs.is_dir() and time.monotonic() < deadline:  # made just before the first row
        time.sleep(0.02)
    time.sleep(0.5)
    run.send_signal(signal.SIGINT)
    out, err = run.communicate(timeout=30)
    assert run.returncode == 130, err
    assert "Traceback" not in err
    assert "PARTIAL" in out
    assert "interrupted" in out
    (folder,) = runs.iterdir()
    assert (folder / "report.html").is_file()


def test_ctrl_c_before_the_first_row_leaves_nothing(home: Path) -> None:
    program = as_hft("backtest", "strategies/join_bid.py")
    stop = """
import hft.feeds
def stop(*args, **kwargs):
    raise KeyboardInterrupt
hft.feeds.open_feeds = stop
"""
    done = subprocess.run(
        [sys.executable, "-c", stop + program], cwd=home, capture_output=True, text=True, timeout=60
    )
    assert "interrupted" in done.stderr
    assert not (home / "backtests" / "runs").exists()


def test_a_failing_handler_ends_with_3_and_a_marked_report(hft: Hft, home: Path) -> None:
    strategy = home / "strategies" / "join_bid.py"
    strategy.write_text(strategy.read_text() + "\n    def on_fill(self, fill):\n        1 / 0\n")
    done = hft("backtest", "strategies/join_bid.py")
    assert done.returncode == 3
    assert "ZeroDivisionError" in done.stderr
    assert "join_bid.py" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "PARTIAL" in done.stdout


def test_sys_exit_in_a_handler_is_a_failure_too(hft: Hft, home: Path) -> None:
    strategy = home / "strategies" / "join_bid.py"
    strategy.write_text(
        strategy.read_text() + "\n    def on_fill(self, fill): raise SystemExit(7)\n"
    )
    done = hft("backtest", "strategies/join_bid.py")
    assert done.returncode == 3
    assert "SystemExit: 7" in done.stderr
    assert "PARTIAL" in done.stdout


def test_a_misspelt_handler_is_named(hft: Hft, home: Path) -> None:
    strategy = home / "strategies" / "join_bid.py"
    strategy.write_text(strategy.read_text() + "\n    def on_fil(self, fill): ...\n")
    done = hft("backtest", "strategies/join_bid.py")
    assert done.returncode == 0
    assert "JoinBid.on_fil is no handler" in done.stderr
    assert "did you mean on_fill?" in done.stderr


def test_two_runs_in_one_second_have_folders_of_their_own(hft: Hft, home: Path) -> None:
    for _ in range(2):
        assert hft("backtest", "strategies/join_bid.py").returncode == 0
    folders = list((home / "backtests" / "runs").iterdir())
    assert len(folders) == 2
    compared = hft("compare", *map(str, folders))
    assert compared.returncode == 0, compared.stderr
    journals = {(f / "journal.bin").read_bytes() for f in folders}
    assert len(journals) == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_named(hft: Hft, home: Path) -> None:
    (home / "backtests").chmod(0o555)
    done = hft("backtest", "strategies/join_bid.py")
    (home / "backtests").chmod(0o755)
    assert done.returncode == 2
    assert "Permission denied" in done.stderr


def test_a_full_disk_is_named_and_the_figures_are_still_shown(home: Path) -> None:
    limited = 'ulimit -f 8; exec "$0" -m hft backtest strategies/join_bid.py'
    done = subprocess.run(
        ["bash", "-c", limited, sys.executable],
        cwd=home,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert "Net result" in done.stdout
    assert len(done.stderr.splitlines()) == 1
    assert "backtest-join_bid" in done.stderr
    assert "File too large" in done.stderr
    assert not list((home / "backtests" / "runs").glob("*/run.json"))

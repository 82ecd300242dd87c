"""Every file in examples/ runs by itself and says something; none is longer than a page."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_an_example_runs_and_prints(path: Path, tmp_path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 60
    done = subprocess.run(
        [sys.executable, "-W", "error", str(path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert "failed" not in done.stdout
    assert "IDENTITY BROKEN" not in done.stdout
    assert list(tmp_path.iterdir()) == []  # nothing left behind

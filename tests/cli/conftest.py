"""A folder with a strategy and a recipe, and the `hft` command in it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

STRATEGY = """
from hft import BUY, Params, Strategy

class JoinBidParams(Params, frozen=True):
    lots: int = 20
    edge: float = 0.0

class JoinBid(Strategy):
    params: JoinBidParams

    def on_start(self):
        self.every("100ms", self.requote, if_changed=("touch", "orders"))

    def requote(self):
        book = self.book()
        if book.live and book.two_sided:
            self.quote(BUY, book.bid - self.params.edge, self.params.lots)
"""
RECIPE = """
[data.synth]
duration_s = 5
[engine]
bracket = false
"""

Hft = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """strategies/join_bid.py and backtests/join_bid.toml."""
    (tmp_path / "strategies").mkdir()
    (tmp_path / "backtests").mkdir()
    (tmp_path / "strategies" / "join_bid.py").write_text(STRATEGY)
    (tmp_path / "backtests" / "join_bid.toml").write_text(RECIPE)
    return tmp_path


@pytest.fixture
def hft(home: Path) -> Hft:
    """Runs `hft ARGS` in `home`, in a process of its own."""

    def run(*args: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "hft", *args]
        return subprocess.run(command, cwd=home, capture_output=True, text=True, timeout=60)

    return run

"""The shipped strategies and small markets to run them in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hft.engine import Outcome, run_once
from hft.plan import prepare

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def shipped() -> Callable[[str], Path]:
    """A strategy's file by name; its recipe and bundle lie beside it."""
    return lambda name: ROOT / "strategies" / f"{name}.py"


@pytest.fixture(scope="session")
def run(shipped: Callable[[str], Path]) -> Callable[..., Outcome]:
    """`run(strategy, seconds, **settings)`: one pass over its own recipe's market, shortened."""

    def shortened(strategy: Any, seconds: float = 40.0, **settings: Any) -> Outcome:
        name = strategy if isinstance(strategy, str) else "lstm_mm"
        changed = {"data.synth.duration_s": seconds} | {
            key.replace("__", "."): value for key, value in settings.items()
        }
        recipe = ROOT / "backtests" / f"{name}.toml"
        what = shipped(name) if isinstance(strategy, str) else strategy
        return run_once(prepare(what, recipe=recipe, settings=changed))

    return shortened

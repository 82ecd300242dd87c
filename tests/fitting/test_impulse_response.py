"""What a tape answers to trades, fitted, is what a replay charges for ours, to the end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import made_up_tapes as made
import numpy as np
import pytest
from click.testing import CliRunner

from hft import BUY, Strategy
from hft.cli.main import cli
from hft.engine import run_once
from hft.execution.impact import Kernel
from hft.plan import prepare
from hft.recipe_checks import to_recipe
from hft.recipe_files import load_recipe

pytest.importorskip("matplotlib", reason="fits are drawn with matplotlib")

S = 1_000_000_000
GAPS_S = (0.5, 2.0, 8.0, 30.0)
TAKE = 500


class Probes(Strategy):
    """One large take, then single lots that pay for what is left of its push."""

    def on_start(self) -> None:
        start = self.now + 60 * S
        self.at(start, self.take, TAKE)
        for gap in GAPS_S:
            self.at(start + round(gap * S), self.take, 1)

    def take(self, lots: int) -> None:
        self.submit(BUY, lots)


def charged(rows: np.ndarray, recipe: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """When our takes were filled [ns] and the ticks a lot that each paid for pushing."""
    recipe = recipe | {
        "latency": {"feed": 0, "entry": 0, "response": 0, "compute": 0},
        "engine": {"bracket": False},
    }
    plan = prepare(Probes, {made.SPEC.name: rows}, specs=[made.SPEC], recipe=recipe)
    outcome = run_once(plan)
    assert outcome.run.status == "complete", outcome.run.error
    fills = outcome.run.fills
    assert fills["lots"].tolist() == [TAKE, 1, 1, 1, 1]
    ticks = fills["impact"] / 1e9 / (made.SPEC.tick * made.SPEC.lot)
    return fills["ts_venue"], ticks / fills["lots"]


def test_a_replay_charges_the_response_that_the_tape_was_made_with(tmp_path: Path) -> None:
    truth = Kernel((0.4,), (S,), 0.1)
    rows = made.prices_with_kernel({1.0: 0.4}, 0.1, seed=11)
    np.save(tmp_path / "made.npy", rows)
    facts = ("--tick", made.SPEC.tick, "--lot", made.SPEC.lot, "--heal", "1s")
    args = ("fit", "impact", tmp_path / "made.npy", *facts, "-o", tmp_path)
    done = CliRunner().invoke(cli, [*map(str, args)])
    assert done.exit_code == 0, done.output
    (tmp_path / "run.toml").write_text('include = ["impact.toml"]\n')
    recipe = load_recipe(tmp_path / "run.toml")

    fitted = Kernel.of_config(to_recipe(recipe).venue.impact)
    ts, paid = charged(rows, recipe)
    for kernel, near in ((fitted, 1e-9), (truth, 0.12)):
        left = [TAKE * float(kernel.at(t - ts[0])) for t in ts[1:]]
        own = np.array([float(kernel.at(0)) / 2] * len(left))
        others = [sum(float(kernel.at(t - s)) for s in ts[1:] if s < t) for t in ts[1:]]
        assert paid[0] == pytest.approx(TAKE * float(kernel.at(0)) / 2, rel=near)
        assert paid[1:] == pytest.approx(left + own + others, abs=near * TAKE * 0.5)
    assert (np.diff(paid[1:]) < 0).all()
    assert paid[1] > 2 * paid[-1]

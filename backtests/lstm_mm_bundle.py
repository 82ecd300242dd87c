"""The shipped bundle of lstm_mm, built from a synthetic market by the commands that a user has.

    python backtests/lstm_mm_bundle.py                      # LIGHT, MICRO and parts: make lstm-mm
    python backtests/lstm_mm_bundle.py --train -o my.bundle # the weights too: five hours of market

FULL was trained on five hours of the market and its weights stay, byte for byte: what backtests are
compared with hangs on them. The market here is another seed of it: rows that FULL has not seen.
What is printed is what runs; with `--hours` small it is what a test does (docs/build.md).
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STRATEGY = ROOT / "strategies" / "lstm_mm.py"
SHIPPED = ROOT / "strategies" / "lstm_mm.bundle"
MARKET = ("symbols=BNBUSDT", "price0_ticks=60000", "tick=0.01", "lot=0.01")
"""What strategies/lstm_mm.py meets in a backtest without other data (backtests/lstm_mm.toml)."""
HORIZON, LATENCY = "500ms", "1ms"


@dataclass(frozen=True, slots=True)
class Recipe:
    """How much of a market, and how it is learned."""

    hours: float = 1.0
    seed: int = 2001
    start: str = "2024-02-01"
    lanes: int = 64
    reach: int = 100
    epochs: int = 5
    learning_rate: float = 2e-3
    formats: str = "onnx,litert"
    pnl: str = "15min"
    rows: int = 10_000


TRAINED = Recipe(hours=5.0, seed=1001, start="2023-12-20")
"""The market that FULL was trained on."""


def to_rows(recipe: Recipe, home: Path) -> list[list[str]]:
    """Commands from nothing to a data set in `home`."""
    market = (*MARKET, f"seed={recipe.seed}", f"start={recipe.start}")
    settings = [f"--set={each}" for each in (*market, f"duration_s={recipe.hours * 3600:g}")]
    store = str(home / "store")
    return [
        ["hft", "data", "synth", "--store", store, *settings],
        [
            *("hft", "dataset", str(STRATEGY), "--data", store, "--labels", HORIZON),
            *("--latency", LATENCY, "-o", str(home / "set")),
        ],
    ]


def to_weights(recipe: Recipe, home: Path) -> list[str]:
    """The command that trains FULL in `home`, as the shipped one was."""
    return [
        *("hft", "train", str(STRATEGY), "--dataset", str(home / "set"), "--model", "lstm:32,32"),
        *("--lanes", str(recipe.lanes), "--reach", str(recipe.reach)),
        *("--epochs", str(recipe.epochs), "--learning-rate", str(recipe.learning_rate)),
        *("-o", str(home / "lstm_mm.bundle")),
    ]


def to_bundle(recipe: Recipe, home: Path, model: Path, out: Path) -> list[str]:
    """The command that makes tiers and parts of `model` by the rows in `home`."""
    return [
        *("hft", "build", str(model), "--strategy", str(STRATEGY)),
        *("--dataset", str(home / "set"), "--distil", "--formats", recipe.formats),
        *("--pnl", recipe.pnl, "--rows", str(recipe.rows), "-o", str(out), "--overwrite"),
    ]


def run(command: Sequence[str]) -> None:
    """Says and runs a command.

    Raises:
        CalledProcessError: it failed.
    """
    print("$", shlex.join(command), flush=True)
    start = [sys.executable, "-c", "from hft.cli.main import main; main()"]
    subprocess.run([*start, *command[1:]], check=True, env=os.environ | {"COLUMNS": "200"})


def build(
    recipe: Recipe,
    home: Path,
    out: Path,
    *,
    trained: bool = False,
    run: Callable[[Sequence[str]], None] = run,
) -> None:
    """From nothing to a bundle.

    Args:
        recipe: how much.
        home: folder for the market and what is made of it.
        out: NAME.bundle.
        trained: whether FULL is trained too, or is the shipped one.
        run: does a command.
    """
    for command in to_rows(recipe, home):
        run(command)
    model = SHIPPED
    if trained:
        run(to_weights(recipe, home))
        model = home / "lstm_mm.bundle"
    run(to_bundle(recipe, home, model, out))


def main() -> None:
    """Builds by the command line's word."""
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("--train", action="store_true", help="train FULL anew, too")
    args.add_argument("--hours", type=float, help="of the market; 1, with --train 5")
    args.add_argument("-o", "--out", type=Path, default=SHIPPED, help="NAME.bundle")
    given = args.parse_args()
    if given.train and given.out.resolve() == SHIPPED:
        args.error("--train wants another place than the shipped bundle: -o NAME.bundle")
    recipe = TRAINED if given.train else Recipe()
    if given.hours:
        recipe = replace(recipe, hours=given.hours)
    with tempfile.TemporaryDirectory(prefix="hft-lstm-mm-") as home:
        build(recipe, Path(home), given.out, trained=given.train)


if __name__ == "__main__":
    main()

"""`hft check skew RUN`."""

from __future__ import annotations

from pathlib import Path

import click


@click.group()
def check() -> None:
    """Compare what a run computed with what training sees."""


@check.command()
@click.argument("run", type=click.Path(path_type=Path))
def skew(run: Path) -> None:
    """Make the features of RUN once more as a data set would, and compare every row.

    Exits with 1 where a row differs.
    """
    from rich.console import Console

    from hft.inference.skew.check import check_skew
    from hft.inference.skew.view import show

    found = check_skew(run)
    show(found, Console())
    if found.differ:
        raise SystemExit(1)

"""`hft compare RUN RUN`."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("first", type=click.Path(path_type=Path))
@click.argument("second", type=click.Path(path_type=Path))
def compare(first: Path, second: Path) -> None:
    """Show two run folders side by side, and what differs in how they were run."""
    from rich.console import Console

    from hft.analysis import compare as sides

    sides.show(sides.compare(first, second), Console())

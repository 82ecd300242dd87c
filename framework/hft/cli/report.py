"""`hft report RUN`."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--order", type=int, metavar="ID", help="Tell the life of one order.")
@click.option("--json", "as_json", is_flag=True, help="Print every figure as JSON.")
def report(run: Path, order: int | None, as_json: bool) -> None:  # noqa: FBT001 - click passes flags so
    """Show the figures of a run folder, or the life of one order."""
    from rich.console import Console

    from hft.analysis import order_life, terminal
    from hft.analysis.report import Report
    from hft.run_folder import require_ended

    require_ended(run)
    loaded = Report.load(run)
    if order is not None:
        click.echo("\n".join(order_life.order_life(loaded.run, order)))
    elif as_json:
        click.echo(loaded.json())
    else:
        terminal.show(loaded.figures, Console())

"""`hft new NAME`."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("name")
@click.option("--in", "parent", type=click.Path(path_type=Path), default=".", help="Parent folder.")
def new(name: str, parent: Path) -> None:
    """Lay out a project of your own in the new folder NAME; it runs at once."""
    from hft.project import lay_out

    project = lay_out(parent, name)
    for path in project.files:
        click.echo(f"  {path}")
    click.echo(f"\nnow: cd {project.folder} && hft backtest {project.strategy}")

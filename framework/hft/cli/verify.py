"""`hft verify RUN`."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
def verify(run: Path) -> None:
    """Feed a run's inputs back into the engine and compare every output, to the byte."""
    from hft.live.verify import verify_run

    result = verify_run(run)
    click.echo(str(result))
    if result.differences:
        raise SystemExit(1)

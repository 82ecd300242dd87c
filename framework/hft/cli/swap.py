"""`hft swap RUN BUNDLE`."""

from __future__ import annotations

from pathlib import Path

import click

PATH = click.Path(path_type=Path)


@click.command()
@click.argument("run", type=PATH)
@click.argument("bundle", type=PATH)
@click.option("--model", default="", help="Which of the strategy's models, if it has several.")
@click.option(
    "--timeout",
    default="10min",
    show_default=True,
    metavar="DURATION",
    help="How long to wait until every instrument has changed over.",
)
def swap(run: Path, bundle: Path, model: str, timeout: str) -> None:
    """Hand the live session of folder RUN a new BUNDLE, and wait until it has taken over.

    The bundle is checked, copied into the run folder, and runs beside the old one until it is warm.
    """
    from hft.durations import parse_ns
    from hft.live.swap_request import swap as hand_over
    from hft.swaps import utc

    def tell(line: str) -> None:
        click.echo(line, err=True)

    result = hand_over(run, bundle, model, timeout_s=parse_ns(timeout) / 1e9, tell=tell)
    for name, ts in result.took_over.items():
        click.echo(f"{name}: took over at {utc(ts)}")

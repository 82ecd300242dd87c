"""`hft score queue`."""

from __future__ import annotations

from pathlib import Path

import click

PATH = click.Path(path_type=Path)
COUNT = click.IntRange(min=1)


@click.group()
def score() -> None:
    """Compare execution models with what really happened."""


@score.command()
@click.argument("data", metavar="DATA", type=PATH)
@click.option(
    "--symbol", "symbols", multiple=True, help="SYMBOL or SYMBOL.VENUE; repeat for several."
)
@click.option("--date", help="UTC day, YYYY-MM-DD; without it, all days.")
@click.option("--horizon", default="60s", show_default=True, help="Longest that an order waits.")
@click.option(
    "--levels", type=COUNT, default=5, show_default=True, help="How near the touch it must rest."
)
@click.option("--ghosts", type=COUNT, default=20_000, show_default=True, help="Most orders hidden.")
@click.option(
    "--particles",
    type=click.IntRange(2, 10_000),
    default=64,
    show_default=True,
    help="Draws of where cancels stood, for each order and model.",
)
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True)
@click.option(
    "--replace-keeps",
    type=click.Choice(["smaller", "same_price", "nothing"]),
    default="smaller",
    show_default=True,
    help="Changed orders that keep their place, as in a recipe.",
)
@click.option(
    "-o", "--out", "folder", type=PATH, default=Path("scores"), show_default=True, help="Results."
)
def queue(
    data: Path,
    symbols: tuple[str, ...],
    date: str | None,
    horizon: str,
    replace_keeps: str,
    folder: Path,
    **counts: int,
) -> None:
    """Hide real orders of L3 data, and score every queue model on their fates."""
    from rich.console import Console

    from hft.core_terms import KEEPS
    from hft.data.opening import open_data
    from hft.data.progress import progress
    from hft.durations import parse_ns
    from hft.scoring import show
    from hft.scoring.ghosts import Options
    from hft.scoring.queues import score_queues
    from hft.whole_files import require_folder

    require_folder(folder)
    options = Options(
        horizon_ns=parse_ns(horizon), replace_keeps=KEEPS.index(replace_keeps), **counts
    )
    scores = score_queues(
        open_data(data), str(data), options=options, progress=progress, symbols=symbols, date=date
    )
    console = Console()
    for each in scores:
        show.show_score(each, console)
    for path in show.write(scores, options, folder):
        click.echo(path)

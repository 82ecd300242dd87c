"""`hft live --venue sim [STRATEGY]`."""

from __future__ import annotations

from pathlib import Path

import click

PATH = click.Path(path_type=Path)


@click.command()
@click.argument("strategy", required=False)
@click.option("--venue", type=click.Choice(["sim"]), required=True, help="Where to trade.")
@click.option("--duration", default="60s", show_default=True, help="How long, such as 30s or 2h.")
@click.option(
    "--recipe", type=PATH, help="TOML; by default backtests/NAME.toml beside the strategy's folder."
)
@click.option(
    "--set", "assignments", multiple=True, metavar="KEY=VALUE", help="A recipe key or parameter."
)
@click.option("--seed", type=click.IntRange(min=0), help="Of the recipe and the simulated market.")
@click.option(
    "--idle",
    default="50us",
    show_default=True,
    metavar="DURATION|spin",
    help="With nothing to do: nap so long at most, or spin (25 us faster on a core of its own).",
)
@click.option("--out", type=PATH, help="Folder for run folders.")
def live(
    strategy: str | None,
    venue: str,
    duration: str,
    recipe: Path | None,
    assignments: tuple[str, ...],
    seed: int | None,
    idle: str,
    out: Path | None,
) -> None:
    """Run STRATEGY on the wall clock; without one, the project's (`[tool.hft] strategy`)."""
    import logging

    from rich.console import Console

    from hft import run_folder
    from hft.analysis import terminal
    from hft.analysis.report import Report
    from hft.durations import parse_ns
    from hft.live import session
    from hft.loader import project_strategy
    from hft.plan import prepare

    log = logging.getLogger(__name__)
    duration_ns = parse_ns(duration)
    nap_ns = 0 if idle == "spin" else parse_ns(idle)
    plan = prepare(
        strategy or project_strategy(), recipe=recipe, assignments=assignments, seed=seed
    )
    folder = run_folder.new_folder("live", plan.recipe.name, out)
    log.info("%s on %s for %s: %s", plan.recipe.name, venue, duration, session.describe(plan))
    outcome = session.run_sim(plan, folder, duration_ns, nap_ns=nap_ns)
    run_folder.write_outcome(folder, plan, outcome)
    terminal.show(Report(outcome.run).figures, Console())
    click.echo(
        f"run folder: {folder}\npage:       {folder / 'report.html'}\n"
        f"check:      hft verify {folder}"
    )
    if outcome.run.status == "failed":
        click.echo(f"error: {outcome.run.error}", err=True)
        raise SystemExit(3)
    if outcome.run.status == "interrupted":
        raise SystemExit(130)

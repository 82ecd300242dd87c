"""`hft backtest [STRATEGY]`."""

from __future__ import annotations

from pathlib import Path

import click

PATH = click.Path(path_type=Path)


@click.command()
@click.argument("strategy", required=False)
@click.option(
    "--recipe", type=PATH, help="TOML; by default backtests/NAME.toml beside the strategy's folder."
)
@click.option("--data", "--store", metavar="DATA", help="A store, a file, or `synth`.")
@click.option(
    "--symbol", "symbols", multiple=True, help="SYMBOL or SYMBOL.VENUE; repeat for several."
)
@click.option("--from", "start", help="First time, ISO, UTC.")
@click.option("--to", "end", help="Last time, excluded.")
@click.option(
    "--set", "assignments", multiple=True, metavar="KEY=VALUE", help="A recipe key or parameter."
)
@click.option("--seed", type=click.IntRange(min=0), help="Of the recipe and of synthetic data.")
@click.option(
    "--latency", metavar="PROFILE", help="A file or a shipped profile: draws what it has."
)
@click.option("--placebo", is_flag=True, help="Also run with the signal taken from other rows.")
@click.option(
    "--sweep", is_flag=True, help="Also run with latency x 0, 1/2, 2 and 4, and the placebo."
)
@click.option("--profile", is_flag=True, help="Time each stage.")
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=1,
    help="Processes: for variants, and for days with engine.overnight=flatten.",
)
@click.option("--out", type=PATH, help="Folder for run folders.")
def backtest(
    strategy: str | None,
    recipe: Path | None,
    data: str | None,
    symbols: tuple[str, ...],
    start: str | None,
    end: str | None,
    assignments: tuple[str, ...],
    seed: int | None,
    latency: str | None,
    placebo: bool,  # noqa: FBT001 - click passes flags so
    sweep: bool,  # noqa: FBT001
    profile: bool,  # noqa: FBT001
    jobs: int,
    out: Path | None,
) -> None:
    """Run STRATEGY (file.py or file.py:Class) over recorded or synthetic rows.

    Without one, the project's: `[tool.hft] strategy` of pyproject.toml.
    """
    import logging

    from rich.console import Console

    from hft import engine, run_folder
    from hft.analysis import terminal
    from hft.analysis.report import Report
    from hft.data.progress import progress
    from hft.execution.latency import drawn_from, told_of
    from hft.loader import project_strategy
    from hft.plan import prepare

    log = logging.getLogger(__name__)
    chosen = {
        "data.symbols": symbols,
        "data.start": start,
        "data.end": end,
        "engine.profile": profile,
    }
    settings: dict[str, object] = {key: value for key, value in chosen.items() if value}
    if latency is not None:
        settings |= drawn_from(latency)
    plan = prepare(
        strategy or project_strategy(),
        data,
        recipe=recipe,
        settings=settings,
        assignments=assignments,
        seed=seed,
    )
    if latency is not None:
        log.info("%s", told_of(plan.recipe.latency))
    # Made first: a folder that cannot be written must not cost a run of an hour.
    folder = run_folder.new_folder("backtest", plan.recipe.name, out)
    try:
        outcome = engine.run_with_variants(
            plan, placebo=placebo, sweep=sweep, progress=progress, jobs=jobs
        )
    except BaseException:
        folder.rmdir()
        raise
    try:
        run_folder.write_outcome(folder, plan, outcome)
    except OSError as error:
        raise OSError(error.errno, error.strerror, error.filename or str(folder)) from error
    finally:  # a full disk must not hide the figures, nor a closed pipe cost the run folder
        terminal.show(Report(outcome.run).figures, Console())
    click.echo(f"run folder: {folder}\npage:       {folder / 'report.html'}")
    if outcome.run.status == "failed":
        click.echo(f"error: {outcome.run.error}", err=True)
        raise SystemExit(3)
    if outcome.run.status == "interrupted":
        raise SystemExit(130)

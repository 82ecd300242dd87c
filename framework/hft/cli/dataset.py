"""`hft dataset STRATEGY`."""

from __future__ import annotations

from pathlib import Path

import click

from hft.cli.within import Within

PATH = click.Path(path_type=Path)


@click.command()
@click.argument("strategy", required=False)
@click.option("--data", "--store", metavar="DATA", help="A store, a file, or `synth`.")
@click.option(
    "--symbol", "symbols", multiple=True, help="SYMBOL or SYMBOL.VENUE; repeat for several."
)
@click.option("--from", "start", help="First time, ISO, UTC.")
@click.option("--to", "end", help="Last time, excluded.")
@click.option("--recipe", type=PATH, help="TOML; by default the one beside the strategy.")
@click.option("--set", "assignments", multiple=True, metavar="KEY=VALUE", help="A recipe key.")
@click.option(
    "--source", "--model", "model", help="Which model's features, of a strategy with several."
)
@click.option("--labels", required=True, metavar="HORIZONS", help="Such as 100ms,500ms,1s.")
@click.option(
    "--latency",
    default="recipe",
    show_default=True,
    help="From row to label: a duration, `recipe`, or a latency profile.",
)
@click.option("--median", is_flag=True, help="The latency's median instead of draws.")
@click.option(
    "--flat",
    type=Within(0, 1, min_open=True, max_open=True),
    default=0.34,
    show_default=True,
    help="Share of training time whose move is called flat.",
)
@click.option("--threshold", type=Within(min=0), metavar="TICKS", help="Instead of --flat.")
@click.option("--trips", is_flag=True, help="Also what a round trip by takers makes.")
@click.option(
    "--split",
    default="0.6,0.15",
    show_default=True,
    metavar="TRAIN,CALIBRATE",
    help="Shares of time; the rest is test.",
)
@click.option(
    "--by", type=click.Choice(["time", "day"]), default="time", show_default=True, help="Borders."
)
@click.option(
    "--folds", type=click.IntRange(min=1), default=1, show_default=True, help="Walking forward."
)
@click.option("--embargo", metavar="DURATION", help="[default: the longest label]")
@click.option(
    "--window",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Rows a windowed model wants; counts where they are not there.",
)
@click.option(
    "--bridge", default="1s", show_default=True, help="How long a missing side is bridged."
)
@click.option("--pause", default="5min", show_default=True, help="A longer silence is a break.")
@click.option("--period", default="1h", show_default=True, help="Of trailing scales.")
@click.option("--memory", default="1d", show_default=True, help="How far a scale looks back.")
@click.option(
    "--drift",
    type=Within(min=0),
    default=3.0,
    show_default=True,
    help="Scales by which a mean is off that makes new ones at once; 0: never.",
)
@click.option("-o", "--out", "folder", type=PATH, required=True, help="Folder to write.")
@click.option("--overwrite", is_flag=True, help="Replace a dataset that exists.")
def dataset(
    strategy: str | None,
    data: str | None,
    symbols: tuple[str, ...],
    start: str | None,
    end: str | None,
    recipe: Path | None,
    assignments: tuple[str, ...],
    model: str | None,
    labels: str,
    latency: str,
    median: bool,  # noqa: FBT001 - click passes flags so
    flat: float,
    threshold: float | None,
    trips: bool,  # noqa: FBT001
    split: str,
    by: str,
    folds: int,
    embargo: str | None,
    window: int,
    bridge: str,
    pause: str,
    period: str,
    memory: str,
    drift: float,
    folder: Path,
    overwrite: bool,  # noqa: FBT001
) -> None:
    """Write the features of STRATEGY and labels to Parquet, for any trainer.

    Features are made by the engine's own code, labels begin when an order could trade.
    """
    from hft.cli.given import given
    from hft.data.progress import progress
    from hft.durations import parse_ns
    from hft.errors import ConfigError
    from hft.inference.dataset.command import make_datasets
    from hft.inference.dataset.lines import lines
    from hft.inference.dataset.rows import Options, shares_of
    from hft.inference.dataset.splitting import Cuts
    from hft.loader import project_strategy
    from hft.plan import prepare

    if threshold is not None and given("flat"):
        raise ConfigError("--flat and --threshold both say which moves are flat: give one of them")
    chosen = {"data.symbols": symbols, "data.start": start, "data.end": end}
    plan = prepare(
        strategy or project_strategy(),
        data,
        recipe=recipe,
        settings={key: value for key, value in chosen.items() if value},
        assignments=assignments,
    )
    options = Options(
        cuts=Cuts(shares_of(split), folds),
        by_day=by == "day",
        flat_share=flat,
        threshold_ticks=threshold,
        trips=trips,
        window=window,
        period_ns=parse_ns(period),
        memory_ns=parse_ns(memory),
        drift=drift,
    )
    made = make_datasets(
        plan,
        folder,
        labels=labels,
        latency=latency,
        median=median,
        model=model,
        embargo=embargo,
        one_sided_ns=parse_ns(bridge),
        pause_ns=parse_ns(pause),
        options=options,
        overwrite=overwrite,
        progress=progress,
    )
    for place, facts in made.items():
        click.echo("\n".join([str(place), *lines(facts)]))

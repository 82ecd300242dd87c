"""`hft train [STRATEGY]`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hft.cli.within import Within

PATH = click.Path(path_type=Path)
COUNT = click.IntRange(min=1)


@click.command()
@click.argument("strategy", required=False)
@click.option("--dataset", type=PATH, help="Folder of `hft dataset`, instead of --data.")
@click.option("--fold", type=COUNT, default=1, show_default=True, help="Of a data set of several.")
@click.option("--data", "--store", "store", metavar="DATA", help="A store, a file, or `synth`.")
@click.option("--symbol", help="SYMBOL or SYMBOL.VENUE of --data.")
@click.option("--from", "start", help="First time of --data, ISO, UTC.")
@click.option("--to", "end", help="Last time, excluded.")
@click.option("--recipe", type=PATH, help="TOML; by default the one beside the strategy.")
@click.option("--set", "assignments", multiple=True, metavar="KEY=VALUE", help="A recipe key.")
@click.option("--source", help="Which model of a strategy with several.")
@click.option(
    "--labels",
    metavar="HORIZONS",
    help="The shortest at which a linear model does nearly its best is taken "
    "[default: 100ms,250ms,500ms,1s; of --dataset: all it has].",
)
@click.option(
    "--latency",
    help="Of --data, from row to label: a duration, `recipe`, or a latency profile "
    "[default: recipe].",
)
@click.option(
    "--model",
    "models",
    multiple=True,
    default=("lstm:32,32",),
    show_default=True,
    help="lstm:64,64; gru:32; conv:32x5 (units x rows); dense:64,32; conv:16x3+lstm:32; "
    "transformer:d=32,heads=2,layers=1. Repeat with --sweep.",
)
@click.option(
    "--window",
    "window_rows",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="ROWS",
    help="Rows the model sees, each time anew; 0: streaming, state is carried.",
)
@click.option(
    "--trailing",
    is_flag=True,
    help="Scale rows by what was seen lately, in training and in runs, as the data set does; "
    "of --data every hour, of a day.",
)
@click.option(
    "--class-weights",
    default="none",
    show_default=True,
    help="none, balanced, or of down, flat and up: 2,1,2.",
)
@click.option("--epochs", type=COUNT, default=5, show_default=True, help="At most.")
@click.option(
    "--patience", type=COUNT, default=2, show_default=True, help="Epochs without a better loss."
)
@click.option(
    "--learning-rate",
    type=Within(0, 1, min_open=True),
    default=2e-3,
    show_default=True,
    help="Of Adam, at the start.",
)
@click.option("--lanes", type=COUNT, default=64, show_default=True, help="Streaming: side by side.")
@click.option(
    "--reach", type=COUNT, default=100, show_default=True, help="Streaming: rows of a gradient."
)
@click.option("--batch", type=COUNT, default=256, show_default=True, help="Windows a step.")
@click.option(
    "--warm-up",
    type=click.IntRange(min=0),
    default=100,
    show_default=True,
    help="Streaming: rows after a start that do not count.",
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Of the training."
)
@click.option(
    "--latency-table", type=PATH, metavar="FILE", help="What rows cost, of --measure-latency."
)
@click.option(
    "--lambda",
    "latency_weight",
    type=Within(min=0),
    default=0.0,
    show_default=True,
    help="Loss + lambda * expected latency / latency of all units; closed units are removed.",
)
@click.option(
    "--sweep", metavar="LAMBDAS", help="Such as 0,0.1,0.3: a bundle each, and the fronts."
)
@click.option(
    "--measure-latency",
    type=PATH,
    metavar="FILE",
    help="Measure here what --model is made of [ns a row], write it, and stop.",
)
@click.option(
    "--precision",
    type=click.Choice(["fp32", "int8"]),
    help="Of weights, for --measure-latency [default: fp32]; of a bundle see `hft build`.",
)
@click.option("-o", "--out", type=PATH, help="NAME.bundle; with --sweep a folder for several.")
@click.option("--overwrite", is_flag=True, help="Replace a bundle that exists.")
def train(
    strategy: str | None,
    dataset: Path | None,
    fold: int,
    store: str | None,
    symbol: str | None,
    start: str | None,
    end: str | None,
    recipe: Path | None,
    assignments: tuple[str, ...],
    source: str | None,
    labels: str | None,
    latency: str | None,
    trailing: bool,  # noqa: FBT001
    models: tuple[str, ...],
    latency_table: Path | None,
    sweep: str | None,
    measure_latency: Path | None,
    precision: str | None,
    out: Path | None,
    overwrite: bool,  # noqa: FBT001 - click passes flags so
    **training: Any,
) -> None:
    """Fit a model to a data set, or to the columns of STRATEGY; write a bundle.

    Without either, to the columns of lstm_mm on --data, a synthetic market by default.
    Ctrl-C leaves nothing behind.
    """
    from hft.cli.given import given, refuse
    from hft.data.progress import progress
    from hft.errors import ConfigError
    from hft.inference.training import command
    from hft.inference.training.task import TrainConfig

    if dataset is None:
        refuse("fold", why="of a data set: give --dataset too")
    elif strategy is None:
        refuse(
            *("store", "symbol", "start", "end", "recipe", "assignments", "source"),
            why=f"of the data that a strategy runs on; {dataset} has its own rows. Leave it out, "
            "or name the strategy",
        )
    idle = given("lanes", "reach", "warm_up") if training["window_rows"] else given("batch")
    if idle:
        how = "not used with --window" if training["window_rows"] else "used with --window alone"
        click.echo(f"{', '.join(idle)}: {how}", err=True)
    chosen = {"data.symbols": (symbol,) if symbol else (), "data.start": start, "data.end": end}
    data = command.DataOptions(
        strategy=strategy,
        dataset=dataset,
        fold=fold,
        store=store,
        recipe=recipe,
        settings={key: value for key, value in chosen.items() if value},
        assignments=assignments,
        source=source,
        labels=labels,
        latency=latency,
        trailing=trailing,
    )
    if measure_latency is not None:
        if out is not None or sweep is not None or latency_table is not None:
            raise ConfigError(
                "--measure-latency stops when it has measured: leave out -o, --sweep and "
                "--latency-table, and train after it"
            )
        command.run_measure(data, models, measure_latency, precision or "fp32", click.echo)
        click.echo(f"latency table: {measure_latency}")
        return
    if precision is not None:
        raise ConfigError(
            f"--precision {precision} is for --measure-latency: training is in float, "
            "`hft build --precision` makes 8 bits of it"
        )
    if out is None:
        raise ConfigError("say where to write: -o NAME.bundle")
    training["reach_rows"], training["warm_up_rows"] = (
        training.pop("reach"),
        training.pop("warm_up"),
    )
    config = TrainConfig(model=models[0], **training)
    if sweep is not None:
        if overwrite or config.latency_weight:
            raise ConfigError(
                "--sweep has lambdas and a folder of its own: leave out --lambda and --overwrite"
            )
        weights = command.weights_in(sweep)
        command.run_sweep(
            data,
            config,
            models,
            weights,
            out,
            table=latency_table,
            report=click.echo,
            progress=progress,
        )
        click.echo(f"folder: {out}")
        return
    if len(models) > 1:
        raise ConfigError("several --model: want --sweep, such as --sweep 0")
    made = command.run_train(
        data,
        config,
        out,
        table=latency_table,
        overwrite=overwrite,
        report=click.echo,
        progress=progress,
    )
    click.echo(f"bundle: {made.path}")

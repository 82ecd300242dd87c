"""`hft build MODEL`."""

from __future__ import annotations

from pathlib import Path

import click

from hft.cli.within import Within

PATH = click.Path(path_type=Path)
SHARE = Within(0, 1, max_open=True)


@click.command()
@click.argument("model", type=PATH)
@click.option("--strategy", help="Whose features the model sees, and whose P&L is compared.")
@click.option("--dataset", type=PATH, help="Folder of `hft dataset`: rows to judge on.")
@click.option("--fold", type=click.IntRange(min=1), default=1, help="Of a data set with several.")
@click.option(
    "--data", "--store", "store", metavar="DATA", help="Instead: a store, a file, or `synth`."
)
@click.option("--symbol", "symbols", multiple=True, help="SYMBOL or SYMBOL.VENUE of the data.")
@click.option("--from", "start", help="First time used of --data, ISO, UTC.")
@click.option("--to", "end", help="Last time, excluded.")
@click.option("--recipe", type=PATH, help="TOML; by default the one beside the strategy.")
@click.option("--set", "assignments", multiple=True, metavar="KEY=VALUE", help="A recipe key.")
@click.option("--source", help="Which model of a strategy with several.")
@click.option("--card", type=PATH, help="model.toml with the facts of a model that has none.")
@click.option(
    "--window",
    type=click.IntRange(min=0),
    default=0,
    help="Rows the model sees, where its file takes any number.",
)
@click.option(
    "--warm-up",
    type=click.IntRange(min=0),
    default=100,
    show_default=True,
    help="Rows until a streaming LSTM or GRU of another maker is warm.",
)
@click.option(
    "--precision",
    type=click.Choice(["fp32", "int8", "auto"]),
    help="Of the native weights; auto: layers whose 8 bits cost too much stay in float.",
)
@click.option("--prune-units", type=SHARE, default=0.0, help="Share of hidden units taken out.")
@click.option("--prune-weights", type=SHARE, default=0.0, help="Share of weights set to 0.")
@click.option(
    "--train-on",
    type=click.Choice(["masks", "tfmot"]),
    help="Train what pruning leaves; without it the last layer alone is learned anew.",
)
@click.option("--distil", is_flag=True, help="Also LIGHT and MICRO, which repeat the model.")
@click.option(
    "--formats",
    help="Parts to make: onnx,litert,saved_model; default: those whose library is installed.",
)
@click.option(
    "--tier-limit",
    "tier_limits",
    multiple=True,
    metavar="GATE=VALUE",
    help="What LIGHT and MICRO must hold: correlation=0.8, kl=0.1, auc=0.55 ...",
)
@click.option("--budget", metavar="DURATION", help="What a row may cost at p99, warm: 5us.")
@click.option("--calibration", type=PATH, help="Data set for 8 bits; default: the rows' own.")
@click.option(
    "--pnl",
    default="5min",
    show_default=True,
    metavar="DURATION",
    help="How much of the market P&L is compared on; 0s: not at all.",
)
@click.option(
    "--limit",
    default="5min",
    show_default=True,
    metavar="DURATION",
    help="For each export and each trial; what takes longer has failed.",
)
@click.option(
    "--rows",
    type=click.IntRange(min=100),
    default=10_000,
    show_default=True,
    help="Rows of the test slice that outputs are compared on.",
)
@click.option("--strict", is_flag=True, help="End with 1 if any gate failed or was not judged.")
@click.option("-o", "--out", type=PATH, required=True, help="NAME.bundle to write.")
@click.option("--overwrite", is_flag=True, help="Replace a bundle that exists.")
def build(
    model: Path,
    strategy: str | None,
    dataset: Path | None,
    fold: int,
    store: str | None,
    symbols: tuple[str, ...],
    start: str | None,
    end: str | None,
    recipe: Path | None,
    assignments: tuple[str, ...],
    source: str | None,
    card: Path | None,
    window: int,
    warm_up: int,
    precision: str | None,
    prune_units: float,
    prune_weights: float,
    train_on: str | None,
    distil: bool,  # noqa: FBT001 - click passes flags so
    formats: str | None,
    tier_limits: tuple[str, ...],
    budget: str | None,
    calibration: Path | None,
    pnl: str,
    limit: str,
    rows: int,
    strict: bool,  # noqa: FBT001
    out: Path,
    overwrite: bool,  # noqa: FBT001
) -> None:
    """Make every form of MODEL, hold each against its gates, and write a bundle.

    MODEL is a bundle of `hft train`, a .keras file, the folder of a SavedModel, or an .onnx file.
    A form that fails a gate is told and recorded, and is not what runs by default. Ends with 1 if
    FULL has no form that passed (the native one, where there is one), with 2 to 5, before anything
    is made, if what was asked for cannot be built.
    """
    from hft.cli.given import refuse
    from hft.cli.wide import wide_console
    from hft.durations import parse_ns
    from hft.inference.build.building import Options
    from hft.inference.build.command import (
        Wanted,
        exit_code,
        formats_of,
        notes_of,
        run_build,
        table_of,
    )
    from hft.inference.build.evidence import Asked
    from hft.inference.build.smaller import Cuts
    from hft.inference.build.tiers import limits_of

    if strategy is None:
        refuse(
            *("symbols", "start", "end", "recipe", "assignments", "source"),
            why="of what a strategy runs on: give --strategy too",
        )
    elif dataset is not None:
        refuse("start", "end", why=f"of --data; {dataset} has its own rows")
    if dataset is None:
        refuse("fold", why="of a data set: give --dataset too")
    chosen = {"data.symbols": symbols, "data.start": start, "data.end": end}
    asked = Asked(
        strategy=strategy,
        dataset=dataset,
        fold=fold,
        store=store,
        settings={key: value for key, value in chosen.items() if value},
        assignments=assignments,
        recipe=recipe,
        model=source,
        pnl_ns=parse_ns(pnl),
    )
    options = Options(
        formats=formats_of(formats),
        cuts=Cuts(prune_units, prune_weights, precision, train_on),  # type: ignore[arg-type]
        distil=distil,
        budget_ns=parse_ns(budget) if budget else 0,
        limit_s=parse_ns(limit) / 1e9,
        gate_rows=rows,
        tier_limits=limits_of(tier_limits),
    )
    wanted = Wanted(model, out, asked, options, card, calibration, window, warm_up, overwrite)
    found = run_build(wanted, lambda line: click.echo(line, err=True))
    wide_console().print(table_of(found))
    for note in notes_of(found):
        click.echo(note)
    click.echo(f"bundle: {out}")
    raise SystemExit(exit_code(found, strict=strict))

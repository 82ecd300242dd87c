"""`hft data`: import, check, describe and synthesize market data."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from hft.data.importing import Imported, Source
    from hft.data.opening import MarketData

PATH = click.Path(path_type=Path)
SEQUENCE = click.Choice(["ignore", "increasing", "contiguous"])


def positive(ctx: click.Context, param: click.Parameter, value: float | None) -> float | None:
    """An option's value, if it is a number above 0."""
    # Not FloatRange: it lets NaN and infinity pass.
    if value is not None and not 0 < value < math.inf:
        raise click.BadParameter(f"{value} is not a number above 0.", ctx, param)
    return value


def _day(ctx: click.Context, param: click.Parameter, value: str | None) -> date | None:
    try:
        return None if value is None else date.fromisoformat(value)
    except ValueError:
        raise click.BadParameter(f"{value!r} is no day such as 2020-01-30.", ctx, param) from None


@click.group()
def data() -> None:
    """Bring market data into a store, check it, and look at it."""


def _facts(command: Callable[..., None]) -> Callable[..., None]:
    for option in (
        click.option("--symbol", help="Such as BTCUSDT."),
        click.option("--venue", help="Such as BINANCE."),
        click.option("--tick", type=float, callback=positive, help="Smallest price step."),
        click.option("--lot", type=float, callback=positive, help="Smallest quantity step."),
    ):
        command = option(command)
    return command


@data.command("import")
@click.argument("form", metavar="FORMAT")
@click.argument("files", nargs=-1, required=True, type=PATH)
@click.option("--store", required=True, type=PATH, help="Store folder; made if it is not there.")
@_facts
@click.option("--currency", help="Settlement currency.")
@click.option("--multiplier", type=float, callback=positive, help="Contract multiplier.")
@click.option("--inverse", is_flag=True, default=None, help="An inverse contract.")
@click.option(
    "--negative-price", is_flag=True, default=None, help="Prices at or below zero are valid."
)
@click.option("--date", callback=_day, help="Day of files that do not say it: YYYY-MM-DD.")
@click.option("--map", "columns", type=PATH, help="What the columns of a csv or parquet file mean.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="What a format asks for itself, such as bars: `--set bar=1min`.",
)
@click.option("--clock-offset", help="`auto`, or a duration added to ts_recv, such as 1271ms.")
@click.option("--sequence", type=SEQUENCE, default="ignore", help="What to ask of `seq`.")
@click.option("--repair", is_flag=True, help="Mend what can be mended, and count it.")
@click.option("--raw", is_flag=True, help="Also write the memory-mapped form.")
@click.option("--overwrite", is_flag=True, help="Replace days that exist.")
@click.option("--append", is_flag=True, help="Merge into days that exist.")
@click.option(
    "--jobs", type=click.IntRange(min=1), default=1, help="Processes, a source each at a time."
)
def import_(
    form: Any,
    files: tuple[Path, ...],
    store: Path,
    columns: Path | None,
    settings: tuple[str, ...],
    repair: bool,  # noqa: FBT001 - click passes flags so
    jobs: int,
    **options: Any,
) -> None:
    """Import FILES of FORMAT; `hft data formats` lists them."""
    from hft.data.import_jobs import Opening, import_sources
    from hft.data.progress import progress
    from hft.data.store import Store
    from hft.settings import parse_setting
    from hft.types import InstrumentSpec

    facts = {name: options.pop(name) for name in InstrumentSpec.__struct_fields__}
    more = {"facts": facts, "columns": columns, "date": options.pop("date"), "repair": repair}
    more["settings"] = dict(parse_setting(each) for each in settings)
    target = Store(store)
    opening = Opening(form, list(files), more)
    sources = opening.sources()
    if options["overwrite"]:
        _want_one_each([source.spec.name for source in sources])
    label = sources[0].name if len(sources) == 1 else f"{len(sources)} sources"
    with progress(label if jobs == 1 else f"{label}, {jobs} jobs") as tick:
        import_sources(
            opening,
            sources,
            target,
            jobs=jobs,
            tick=tick,
            done=_say_imported,
            repair=repair,
            **options,
        )


def _want_one_each(names: list[str]) -> None:
    for name in names:
        if (times := names.count(name)) > 1:
            raise click.UsageError(
                f"--overwrite takes one source of {name} at a time, was given {times}: a later one "
                "would replace the days of an earlier one."
            )


def _say_imported(source: Source, done: Imported) -> None:
    rate = done.rows / max(done.seconds, 1e-9)
    days = ", ".join(done.days)
    click.echo(f"{done.spec.name}: {done.rows:,} rows, {rate:,.0f}/s, days {days}")
    for label, counts in (("counted", done.counts), ("repaired", done.repaired)):
        if counts:
            click.echo(f"  {label}: " + ", ".join(f"{n} {c:,}" for n, c in counts.items() if c))
    if source.inferred:
        click.echo(f"  inferred: {', '.join(source.inferred)}")
    if done.clock["shift_ns"]:
        click.echo(f"  clock: {done.clock}")


@data.command()
def formats() -> None:
    """List the formats that can be imported."""
    from importlib import import_module

    from hft.data.sources import FORMATS

    for name in sorted(FORMATS):
        what = (import_module(FORMATS[name]).__doc__ or "").partition("\n")[0]
        click.echo(f"{name:<12} {what}")


@data.command()
@click.argument("path", type=PATH)
@_facts
@click.option("--book", is_flag=True, help="Also follow the book: crossed, unknown orders.")
@click.option("--sequence", type=SEQUENCE, default="ignore", help="What to ask of `seq`.")
def check(path: Path, book: bool, sequence: Any, **facts: Any) -> None:  # noqa: FBT001 - as above
    """Check a store, or a file of rows; the first bad row ends the command with an error."""
    from hft.data.info import check_data, counted

    market = _open(path, facts)
    for name in market.symbols():
        report = check_data(market, name, book=book, sequence=sequence)
        for finding in report.findings:
            click.echo(f"{finding.count:,} x {finding.rule}: {finding.message}")
        if any(report.counted.values()):
            click.echo(f"{name}: {counted(report.counted)}")
        report.require()
        click.echo(f"{name}: {report.rows:,} rows are sound")


@data.command()
@click.argument("path", type=PATH)
@_facts
@click.option("--from", "start", help="First time, ISO, UTC.")
@click.option("--to", "end", help="Last time, excluded.")
@click.option("--book/--no-book", default=True, help="Follow the book, and how it went.")
@click.option("--picture", type=PATH, help="Also draw the day, into FILE.svg or FILE.html.")
def info(
    path: Path,
    start: str | None,
    end: str | None,
    book: bool,  # noqa: FBT001 - as above
    picture: Path | None,
    **facts: Any,
) -> None:
    """Show what a store or a file of rows holds."""
    from rich.console import Console

    from hft.data.info import describe, show
    from hft.data.picture import draw_days, require_picture

    if picture is not None:
        if not book:
            raise click.UsageError("--picture needs the book: leave --no-book out.")
        require_picture(picture)  # before the data are read
    market = _open(path, facts)
    infos = [describe(market, name, start, end, book=book) for name in market.symbols()]
    for each in infos:
        show(each, Console())
    if picture is not None:
        draw_days(infos, picture)
        click.echo(f"picture: {picture}")


def _open(path: Path, facts: dict[str, Any]) -> MarketData:
    from hft.data.opening import open_data
    from hft.types import InstrumentSpec

    given = {name: value for name, value in facts.items() if value is not None}
    spec = None
    if {"tick", "lot"} <= set(given):
        spec = InstrumentSpec(**{"symbol": path.stem, "venue": "FILE"} | given)
    return open_data(path, spec, check=False)


@data.command()
@click.option("--store", required=True, type=PATH, help="Store folder; made if it is not there.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Field of SynthConfig.")
@click.option("--raw", is_flag=True, help="Also write the memory-mapped form.")
@click.option("--overwrite", is_flag=True, help="Replace days that exist.")
def synth(store: Path, settings: tuple[str, ...], **options: Any) -> None:
    """Make a synthetic market."""
    from hft.data.progress import progress
    from hft.data.sources import write_synthetic

    with progress("synthetic market") as tick:
        for name, rows in write_synthetic(store, list(settings), tick=tick, **options).items():
            click.echo(f"{name}: {rows:,} rows")

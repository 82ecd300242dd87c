"""`hft latency show`, `hft latency fit`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from hft.execution.profiles import LatencyProfile

PATH = click.Path(path_type=Path)


@click.group()
def latency() -> None:
    """Latency profiles: what stages took, for replays to draw from."""


@latency.command()
@click.argument("profile")
@click.option("--picture", type=PATH, metavar="FILE.svg", help="Also draw it.")
def show(profile: str, picture: Path | None) -> None:
    """Show PROFILE: a file, or colocated, same-region or cross-region."""
    from hft.execution.profile_view import draw
    from hft.execution.profiles import load_profile

    loaded = load_profile(profile)
    if picture is not None:
        draw(loaded, picture)
    _print(loaded)


@latency.command()
@click.argument("source", type=PATH)
@click.option("-o", "--out", type=PATH, required=True, help="File to write.")
@click.option("--request", metavar="COLUMN", help="Sent, our clock [default: req_ts].")
@click.option("--exchange", metavar="COLUMN", help="At the venue, its clock [default: exch_ts].")
@click.option("--response", metavar="COLUMN", help="Answered, our clock [default: resp_ts].")
@click.option("--order-id", metavar="COLUMN", help="Whole numbers [default: order_id].")
@click.option("--message", metavar="COLUMN", help="new, cancel, replace [default: message].")
@click.option(
    "--feed-exchange",
    metavar="COLUMN",
    help="Venue's stamp of the data behind the order [default: feed_exch_ts].",
)
@click.option(
    "--feed-receive", metavar="COLUMN", help="When they reached us [default: feed_recv_ts]."
)
@click.option(
    "--unit",
    type=click.Choice(["ns", "us", "ms", "s"]),
    default="ns",
    show_default=True,
    help="Of all stamps.",
)
@click.option(
    "--quantum",
    default="1ns",
    show_default=True,
    metavar="DURATION",
    help="What the venue rounds its stamps down to, such as 1ms; they are spread evenly over it.",
)
@click.option(
    "--clock-offset",
    default="estimate",
    show_default=True,
    metavar="estimate|none|DURATION",
    help="Our clock less the venue's; a negative one as -250us.",
)
@click.option("--market", default="", help="Store or file whose message rates belong to the log.")
def fit(
    source: Path,
    out: Path,
    unit: str,
    quantum: str,
    clock_offset: str,
    market: str,
    **names: str | None,
) -> None:
    """Make a profile from SOURCE: a run folder, or an order log.

    A log is CSV, Parquet, or hftbacktest's order-latency .npz, with three stamps a message.
    """
    from hft.durations import parse_ns
    from hft.errors import ConfigError
    from hft.execution.profile_of_log import LogColumns, LogOptions, profile_of_log
    from hft.execution.profile_of_run import profile_of_run
    from hft.execution.profiles import save_profile

    columns = LogColumns(**{name: column for name, column in names.items() if column})
    offset: str | int = clock_offset
    if clock_offset not in ("estimate", "none"):
        sign = -1 if clock_offset.startswith("-") else 1
        offset = sign * parse_ns(clock_offset.removeprefix("-"))
    options = LogOptions(unit=unit, quantum_ns=parse_ns(quantum), offset=offset, market=market)
    if source.is_dir():
        if (columns, options) != (LogColumns(), LogOptions()):
            raise ConfigError(
                f"{source} is a folder, so a run's: its stamps need no columns, unit or offset"
            )
        made = profile_of_run(source)
    else:
        made = profile_of_log(source, columns, options)
    save_profile(made, out)
    _print(made)
    click.echo(f"profile: {out}")


def _print(profile: LatencyProfile) -> None:
    from rich.console import Console

    from hft.analysis.terminal import rich_table
    from hft.execution.profile_view import about, table_of

    console = Console()
    told = table_of(profile)
    for line in about(profile):
        console.print(line, style="dim", markup=False, highlight=False)
    console.print(rich_table(told, console.width, gap=1))
    console.print(told.note, style="dim", markup=False, highlight=False)

"""`hft fit queue|refill|impact|latency`."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from hft.cli.data import positive

PATH = click.Path(path_type=Path)
RESULTS = Path("fits")


class FitGroup(click.Group):
    """`hft fit latency` is `hft latency fit`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*super().list_commands(ctx), "latency"]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name != "latency":
            return super().get_command(ctx, name)
        latency: click.Group = importlib.import_module("hft.cli.latency").latency
        return latency.get_command(ctx, "fit")


@click.group(cls=FitGroup)
def fit() -> None:
    """Estimate what the execution models need, from market data."""


def _common(command: Callable[..., None]) -> Callable[..., None]:
    for option in (
        click.option(
            "-o", "--out", "folder", type=PATH, default=RESULTS, show_default=True, help="Results."
        ),
        click.option("--lot", type=float, callback=positive, help="Of a .npy or .npz file."),
        click.option("--tick", type=float, callback=positive, help="Of a .npy or .npz file."),
        click.option("--to", "end", help="Last time, excluded."),
        click.option("--from", "start", help="First time, ISO, UTC."),
        click.option(
            "--symbol", "symbols", multiple=True, help="SYMBOL or SYMBOL.VENUE; repeat for several."
        ),
        click.argument("path", metavar="DATA", type=PATH),
    ):
        command = option(command)
    return command


@fit.command()
@_common
@click.option(
    "--near",
    "near_ticks",
    type=click.IntRange(min=0, max=1000),
    default=4,
    show_default=True,
    help="Furthest level behind the touch that is looked at, in ticks.",
)
def queue(**options: Any) -> None:
    """Fit the queue model's n to cancels of orders (L3 data)."""
    _run("queue", **options)


def _grid(command: Callable[..., None]) -> Callable[..., None]:
    for option in (
        click.option(
            "--levels",
            type=click.IntRange(min=1, max=1000),
            default=10,
            show_default=True,
            help="Levels whose depth is summed.",
        ),
        click.option("--step", default="100ms", show_default=True, help="Of the grid of time."),
    ):
        command = option(command)
    return command


@fit.command()
@_common
@_grid
def refill(**options: Any) -> None:
    """Fit how fast depth comes back after trades, and how often."""
    _run("refill", **options)


@fit.command()
@_common
@_grid
@click.option("--heal", help="Half-life of walked levels; by default it is fitted first.")
def impact(**options: Any) -> None:
    """Fit the kernel by which prices answer signed trades."""
    _run("impact", **options)


def _run(what: str, path: Path, folder: Path, **options: Any) -> None:
    from rich.console import Console

    from hft.data.progress import progress
    from hft.fitting.commands import fit_all

    console = Console()
    for written in fit_all(what, path, folder, console=console, progress=progress, **options):
        click.echo(f"written: {written}")

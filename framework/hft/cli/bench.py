"""`hft bench inference`, `hft bench release`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from hft.cli.data import positive
from hft.cli.within import Within

PATH = click.Path(path_type=Path)
TIER = click.Choice(["FULL", "LIGHT", "MICRO"], case_sensitive=False)


@click.group()
def bench() -> None:
    """Measure what a model takes here, warm, cold and beside others."""


def _words(ctx: click.Context, param: click.Parameter, value: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in value.split(",") if word.strip())


def _common(command: Callable[..., None]) -> Callable[..., None]:
    for option in (
        click.option(
            "--seconds",
            type=float,
            callback=positive,
            default=1.0,
            show_default=True,
            help="Of each measurement; 20,000 calls one after another end it sooner.",
        ),
        click.option(
            "--threads",
            type=click.IntRange(1, 256),
            default=1,
            show_default=True,
            help="Of backends that have any; one is pinned to a processor.",
        ),
        click.option("--tier", type=TIER, default="FULL", show_default=True, help="Of the bundle."),
    ):
        command = option(command)
    return command


@bench.command()
@click.argument("bundle", type=PATH)
@click.option(
    "--backend",
    "backends",
    default="",
    metavar="NAME,...",
    callback=_words,
    help="native, onnx, litert, tensorflow [default: all that can run it]; serving, with --url.",
)
@click.option(
    "--precision",
    "precisions",
    default="",
    metavar="NAME,...",
    callback=_words,
    help="fp32, fp16, int8, dynamic [default: all parts; native: each layer's own].",
)
@_common
@click.option("--cold", is_flag=True, help="Also with caches as other work leaves them.")
@click.option("--neighbour", is_flag=True, help="Also beside a memory-heavy process.")
@click.option(
    "--rate", type=float, callback=positive, metavar="ROWS/S", help="Poisson arrivals of rows."
)
@click.option(
    "--arrivals", "dataset", type=PATH, metavar="DATASET", help="Arrivals as in its test part."
)
@click.option(
    "--url", default="", help="Of backend serving: http://HOST:8501/v1/models/NAME; wants --rate."
)
@click.option(
    "--connections",
    type=click.IntRange(1, 256),
    default=4,
    show_default=True,
    help="Of backend serving: requests under way at once, at most.",
)
@click.option(
    "--batch", is_flag=True, help="Batches of streams: alpha + beta k, and when they win."
)
@click.option(
    "--deadline",
    default="",
    metavar="DURATION",
    help="What a row waits for company, such as 50us [default: one service].",
)
@click.option("-o", "--out", type=PATH, metavar="FILE.parquet", help="Latency profile to write.")
def inference(**options: Any) -> None:
    """Time every form of BUNDLE: P50, P95, P99, P99.9 of a row.

    With -o and --rate (or --arrivals) writes a latency profile for `hft backtest --latency`.
    """
    from hft.cli.wide import wide_console
    from hft.durations import parse_ns
    from hft.errors import ConfigError
    from hft.inference.bench.command import Wanted, bench_inference

    path, deadline = options.pop("bundle"), options.pop("deadline")
    if options["rate"] is not None and options["dataset"] is not None:
        raise ConfigError("--rate and --arrivals both say when rows come: give one of them")
    wanted = Wanted(deadline_ns=parse_ns(deadline) if deadline else 0, **options)
    bench_inference(path, wanted, wide_console())


@bench.command()
@click.argument("new", type=PATH)
@click.argument("old", type=PATH)
@click.option("--backend", default="native", show_default=True, help="As `inference` has them.")
@click.option("--precision", default="", help="fp32, fp16, int8, dynamic [default: their own].")
@_common
@click.option("--dataset", type=PATH, help="Rows to answer: its test part [default: made up].")
@click.option(
    "--slower",
    type=float,
    callback=positive,
    default=1.1,
    show_default=True,
    help="Most that p50 and p99 may grow, as a ratio.",
)
@click.option(
    "--kl",
    type=float,
    callback=positive,
    default=0.01,
    show_default=True,
    help="Largest mean divergence of probabilities [nats].",
)
@click.option(
    "--correlation",
    type=Within(-1, 1),
    default=0.98,
    show_default=True,
    help="Least of each output.",
)
@click.option(
    "--agreement",
    type=Within(0, 1),
    default=0.98,
    show_default=True,
    help="Least share of rows with the same decision.",
)
def release(new: Path, old: Path, **options: Any) -> None:
    """Hold NEW bundle's latency and answers against those of OLD, which runs; exit 1 if worse."""
    from hft.cli.wide import wide_console
    from hft.inference.bench.command import bench_release
    from hft.inference.bench.release import Limits

    limits = Limits(
        **{name: options.pop(name) for name in ("slower", "kl", "correlation", "agreement")}
    )
    found = bench_release(new, old, limits=limits, console=wide_console(), **options)
    if not found.passed:
        sys.exit(1)

"""The `hft` command itself."""

from __future__ import annotations

import importlib
import logging
import os
import sys

import click

from hft.logs import log_to_stderr

COMMANDS = {
    "backtest": ("hft.cli.backtest:backtest", "Run a strategy over recorded or synthetic rows."),
    "live": ("hft.cli.live:live", "Run a strategy on the wall clock against a venue."),
    "verify": ("hft.cli.verify:verify", "Feed a run's journal back and compare every output."),
    "report": ("hft.cli.report:report", "Show the figures of a run, or the life of one order."),
    "compare": ("hft.cli.compare:compare", "Two runs side by side."),
    "fit": ("hft.cli.fit:fit", "Estimate what the execution models need, from market data."),
    "latency": (
        "hft.cli.latency:latency",
        "Show latency profiles, and make them from runs and logs.",
    ),
    "dataset": (
        "hft.cli.dataset:dataset",
        "Write a strategy's features and labels for training.",
    ),
    "train": ("hft.cli.train:train", "Fit a model to a data set, and write a bundle."),
    "build": (
        "hft.cli.build:build",
        "Make every form of a model, and hold each against its gates.",
    ),
    "bench": (
        "hft.cli.bench:bench",
        "Measure what a model takes here, warm, cold and beside others.",
    ),
    "swap": ("hft.cli.swap:swap", "Hand a live session a new bundle."),
    "check": ("hft.cli.check:check", "Compare what a run computed with what training sees."),
    "score": ("hft.cli.score:score", "Compare execution models with what really happened."),
    "data": ("hft.cli.data:data", "Import, check, describe and synthesize market data."),
    "new": ("hft.cli.new:new", "Lay out a project of your own."),
}


class LazyGroup(click.Group):
    """Knows its commands by name and one line; importing one waits until it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="hft-framework", prog_name="hft")
@click.option("-v", "--verbose", count=True, help="More log lines.")
@click.option("-q", "--quiet", count=True, help="Fewer log lines.")
@click.option("--log-json", is_flag=True, help="Log as JSON lines.")
def cli(verbose: int, quiet: int, log_json: bool) -> None:  # noqa: FBT001 - click passes flags so
    """One engine for replay and live trading."""
    levels = [logging.ERROR, logging.WARNING, logging.INFO, logging.DEBUG]
    log_to_stderr(levels[max(0, min(3, 2 + verbose - quiet))], as_json=log_json)


def main() -> None:
    """Entry point: what went wrong becomes one line and the exit code of its class."""
    try:
        cli.main(standalone_mode=False)
        sys.stdout.flush()
    except (click.exceptions.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.exceptions.Exit as error:
        sys.exit(error.exit_code)
    except BrokenPipeError:  # `hft report RUN | head`: the reader has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:  # a full disk, a folder without permission
        where = f"{error.filename}: " if error.filename else ""
        click.echo(f"error: {where}{error.strerror or error}", err=True)
        sys.exit(1)
    except Exception as error:
        from hft.errors import HftError

        if not isinstance(error, HftError):
            raise
        click.echo(f"error: {error}", err=True)
        sys.exit(error.exit_code)

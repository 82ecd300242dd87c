"""Which options were said: what a default cannot tell from a choice."""

from __future__ import annotations

import click
from click.core import ParameterSource


def given(*names: str) -> list[str]:
    """Those of the running command's options that are on its command line, as they are spelled.

    Args:
        names: of parameters.
    """
    ctx = click.get_current_context()
    spelled = {p.name: p.opts[0] for p in ctx.command.params}
    said = (n for n in names if ctx.get_parameter_source(n) is ParameterSource.COMMANDLINE)
    return [spelled[name] for name in said]


def refuse(*names: str, why: str) -> None:
    """Refuses options that would do nothing.

    Args:
        names: of parameters.
        why: what the options are of, and what would be right.

    Raises:
        ConfigError: one is on the command line; it is named as it is spelled.
    """
    from hft.errors import ConfigError

    idle = given(*names)
    if idle:
        raise ConfigError(f"{', '.join(idle)}: {why}")

"""Where tables go that are wider than a pipe is taken to be."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

COLUMNS = 150


def wide_console() -> Console:
    """A terminal as it is; a pipe has no width: figures are not to be cut for it."""
    from rich.console import Console

    console = Console()
    return console if console.is_terminal else Console(width=COLUMNS)

"""A skew check in a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from rich.console import Console

    from hft.inference.skew.check import Skew
    from hft.inference.skew.sides import SourceSkew

MOST_COLUMNS = 40


def show(skew: Skew, console: Console) -> None:
    """Says what differs, a source at a time."""
    for source in skew.sources:
        where = f"{source.instrument} {source.source}"
        console.print(f"{where}: {source.rows:,} rows, {source.differ:,} differ", highlight=False)
        if not source.differ:
            continue
        console.print(f"  first: {source.first}", highlight=False)
        if source.unknown:
            console.print(
                f"  {source.unknown:,} digests of the journal are not those of the run repeated: "
                "what these rows held cannot be told (`hft verify` says what else differs)",
                highlight=False,
            )
        if source.largest.any():
            _columns(source, console)
    for note in skew.notes:
        console.print(f"  {note}", highlight=False)


def _columns(source: SourceSkew, console: Console) -> None:
    from rich.table import Table

    worst = np.argsort(-source.largest, kind="stable")[:MOST_COLUMNS]
    table = Table("column", "largest difference")
    for column in worst.tolist():
        table.add_row(source.names[column], f"{source.largest[column]:.6g}")
    console.print(table)

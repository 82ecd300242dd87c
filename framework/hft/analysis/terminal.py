"""The report on a terminal: one screen of compact tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hft.analysis import execution_tables, tables
from hft.analysis.figures import Figures

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table as RichTable


def show(figures: Figures, console: Console) -> None:
    """Print a report."""
    from rich.columns import Columns

    console.print(_head(figures))
    for words in _warnings(figures):
        console.print(words, style="bold red", markup=False)
    console.print(_headline(figures))
    shown = [make(figures) for make in (tables.pnl, tables.variants, tables.trading)]
    shown += execution_tables.shortfalls(figures)
    shown += [make(figures) for make in (tables.markouts, tables.latency)]
    shown += [make(figures) for make in execution_tables.ONE_EACH]
    for table in shown:
        if table.rows:
            console.print(rich_table(table, console.width))
    small = [
        rich_table(make(figures), console.width)
        for make in (tables.refusals, tables.endings, tables.counters)
        if make(figures).rows
    ]
    if small:
        console.print(Columns(small, padding=(0, 3)))
    for note in figures["notes"]:
        console.print(note, style="dim", markup=False)


def _head(figures: Figures) -> RenderableType:
    from rich.text import Text

    run = figures["run"]
    text = Text(f"{run['name']}", style="bold")
    text.append(f"  {run['kind']} of {run['strategy']}\n", style="not bold")
    text.append("\n".join(tables.about(figures)), style="not bold dim")
    return text


def _warnings(figures: Figures) -> list[str]:
    run, words = figures["run"], []
    if run["status"] != "complete":
        words.append(f"PARTIAL: run {run['status']}. {run['error']}".strip())
    if not figures["headline"]["identity_holds"]:
        words.append(
            "IDENTITY BROKEN: the parts do not add up to the account; trust no amount below."
        )
    return words


def _headline(figures: Figures) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    entries = tables.headline(figures)
    half = -(-len(entries) // 2)
    for left, right in zip(entries[:half], [*entries[half:], ("", "", "")], strict=False):
        cells = []
        for name, value, words in (left, right):
            cells += [Text(name, style="dim"), Text(value, style="bold"), Text(words, style="dim")]
        grid.add_row(*cells)
    for column in (1, 4):
        grid.columns[column].justify = "right"
    return grid


def rich_table(table: tables.Table, width: int, *, gap: int = 2) -> RichTable:
    """A table as rich prints it, with `gap` blanks between columns.

    In less than its width names and words go on in the next line, and numbers, which would read as
    others, do so last.
    """
    from rich.table import Table
    from rich.text import Text

    columns = list(zip(table.head, *table.rows, strict=True))
    narrow = sum(max(map(len, column)) + gap for column in columns) - gap > width
    shown = Table(
        title=Text(table.title),
        title_justify="left",
        title_style="bold",
        box=None,
        header_style="dim",
        padding=(0, 1 if narrow else gap, 0, 0),
        pad_edge=False,
    )
    for i, (name, *cells) in enumerate(columns):
        whole = i > 0 and not any(" " in cell for cell in cells)
        shown.add_column(
            Text(name.replace(" ", "\n") if narrow and whole else name),
            justify="right" if i else "left",
            no_wrap=whole,
            overflow="fold",
        )
    for row in table.rows:
        shown.add_row(*(Text(cell) for cell in row))
    return shown

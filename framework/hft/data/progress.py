"""How far a long import is: a bar in a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

LINE_EVERY_S = 10.0


@contextmanager
def progress(label: str, stream: TextIO | None = None) -> Iterator[Callable[[int, float], None]]:
    """Give a function to tell (rows so far, share done 0..1)."""
    stream = stream or sys.stderr
    if stream.isatty():
        with _bar(label, stream) as tell:
            yield tell
    else:
        yield _lines(label, stream)


@contextmanager
def _bar(label: str, stream: TextIO) -> Iterator[Callable[[int, float], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[rows]:,} rows, {task.fields[rate]:,.0f}/s"),
        TimeRemainingColumn(),
    )
    began = time.monotonic()
    with Progress(*columns, console=Console(file=stream)) as bar:
        task = bar.add_task(label, total=1.0, rows=0, rate=0.0)

        def tell(rows: int, done: float) -> None:
            rate = rows / max(time.monotonic() - began, 1e-9)
            bar.update(task, completed=done, rows=rows, rate=rate)

        yield tell


def _lines(label: str, stream: TextIO) -> Callable[[int, float], None]:
    began = said = time.monotonic()

    def tell(rows: int, done: float) -> None:
        nonlocal said
        now = time.monotonic()
        if now - said < LINE_EVERY_S:
            return
        said = now
        spent_s = now - began
        left = f", {spent_s * (1 - done) / done:.0f} s left" if done > 0 else ""
        print(f"{label}: {rows:,} rows, {rows / spent_s:,.0f}/s{left}", file=stream, flush=True)

    return tell

"""Many sources at once: each in a process of its own, with the result of one after the other.

Decoding, checking and writing run side by side; days get their names in the order of the sources.
So a source that would have found a day taken is refused whether or not it came first, and one that
fails leaves those before it in the store and those after it out. No two processes write one day:
a writer holds its instrument's folder while it names its days (writing.py), and with `append`,
where a day is read before it is written, all sources of an instrument go to one process.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hft import workers
from hft.data.importing import Imported, Source, Tick, import_source
from hft.data.sources import open_sources
from hft.data.store import Store
from hft.errors import HftError


@dataclass(frozen=True, slots=True)
class Opening:
    """How the sources were opened: the arguments of `open_sources`."""

    form: str
    paths: list[Path]
    more: dict[str, Any] = field(default_factory=dict)

    def sources(self) -> list[Source]:
        """The sources, opened anew."""
        return open_sources(self.form, self.paths, **self.more)


@dataclass(frozen=True, slots=True)
class Task:
    """Sources that one process imports, in their order."""

    opening: Opening
    numbers: tuple[int, ...]
    pickled: bytes
    """The sources; empty where they cannot travel, and are opened again."""
    store: Path
    options: dict[str, Any]


Done = Callable[[Source, Imported], None]


def import_sources(
    opening: Opening,
    sources: list[Source],
    store: Store,
    *,
    jobs: int = 1,
    tick: Tick = lambda rows, done: None,
    done: Done = lambda source, imported: None,
    **options: Any,
) -> None:
    """Import sources into a store, up to the first that is refused.

    Args:
        opening: how they were opened.
        sources: what `opening` gave.
        store: where to.
        jobs: processes.
        tick: told (rows over all sources, share of all that is done).
        done: told of each source as it is finished.
        options: of `import_source`.

    Raises:
        HftError: of the first source that is refused; it names the file. Its days are untouched.
    """
    if jobs == 1:
        for source, imported in _each(sources, store, tick, options):
            done(source, imported)
        return
    tasks = _tasks(opening, sources, store, options)

    def told(number: int, result: Any) -> bool:
        if isinstance(result, workers.Failure):
            return False
        for at, imported in zip(tasks[number].numbers, result, strict=True):
            done(sources[at], imported)
        return True

    work = "hft.data.import_jobs:work"
    results = workers.run_tasks(work, tasks, jobs, tick=tick, done=told)
    if (failure := results.failure()) is not None:
        raise failure
    if results.interrupted:
        raise KeyboardInterrupt


def _tasks(
    opening: Opening, sources: list[Source], store: Store, options: dict[str, Any]
) -> list[Task]:
    groups: dict[Any, list[int]] = {}
    for number, source in enumerate(sources):
        key = source.spec.name if options.get("append") else number
        groups.setdefault(key, []).append(number)
    return [
        Task(opening, tuple(mine), _pickled([sources[n] for n in mine]), store.path, options)
        for mine in groups.values()
    ]


def _pickled(sources: list[Source]) -> bytes:
    try:
        return pickle.dumps(sources)
    except (TypeError, AttributeError, pickle.PicklingError):  # an open file, a generator
        return b""


def _import(source: Source, store: Store, tick: Tick, options: dict[str, Any]) -> Imported:
    try:
        return import_source(source, store, tick=tick, **options)
    except HftError as error:
        if source.name in str(error):
            raise
        raise type(error)(f"{source.name}: {error}") from error


def work(task: Task, link: workers.Link) -> list[Imported]:
    """Import the sources of a task, in a worker."""
    if task.pickled:
        sources = pickle.loads(task.pickled)
    else:
        opened = task.opening.sources()
        sources = [opened[n] for n in task.numbers]
    options = dict(task.options)
    if not options.get("append"):
        options["turn"] = link.turn
    return [done for _, done in _each(sources, Store(task.store), link.tick, options)]


def _each(
    sources: list[Source], store: Store, tick: Tick, options: dict[str, Any]
) -> Iterator[tuple[Source, Imported]]:
    before = 0
    for number, source in enumerate(sources):

        def part(rows: int, share: float, number: int = number, before: int = before) -> None:
            tick(before + rows, (number + share) / len(sources))

        imported = _import(source, store, part, options)
        before += imported.rows
        yield source, imported

"""What `hft swap` and a live session leave each other in the run folder.

swaps/
    1.bundle/  the new bundle, whole       1.request.json  asks for it; written last
                                           1.result.json   the session's answer

The session looks between inputs, each 50 ms. It reads a bundle in a thread of its own, which gets
the interpreter only when the session is idle, so that inputs wait 0.1 ms for it and not as long as
the bundle takes.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from hft.errors import HftError, ModelError
from hft.sources import bundle_for, hash_word
from hft.swaps import core_arguments, require_alike, source_named, utc
from hft.whole_files import write_whole

if TYPE_CHECKING:
    from hft.plan import Plan

log = logging.getLogger(__name__)

FOLDER = "swaps"
REQUEST = re.compile(r"([1-9][0-9]{0,8})\.request\.json")
"""Its number is the version of the answers that follow: from 1, within 31 bits."""
LOOK_EVERY = 50
"""Calls of the watch, which come each ms."""
SWITCH_S = 1e-4
"""How long the session waits for the interpreter while a bundle is read."""


class Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is asked for."""

    model: str
    hash: int
    """Word of the bundle's hash, `hft.sources.hash_word`."""


class Result(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How far it is."""

    state: Literal["warming", "done", "refused", "superseded", "ended"]
    took_over: dict[str, int] = {}
    """When, by instrument [ns]."""
    error: str = ""


def bundle_of(folder: Path, number: int) -> Path:
    return folder / FOLDER / f"{number}.bundle"


def request_of(folder: Path, number: int) -> Path:
    return folder / FOLDER / f"{number}.request.json"


def result_of(folder: Path, number: int) -> Path:
    return folder / FOLDER / f"{number}.result.json"


class SwapWatch:
    """The session's side: called each ms between inputs, where it mostly only counts."""

    def __init__(self, live: Any, plan: Plan, folder: Path) -> None:
        self._live, self._plan, self._folder = live, plan, folder
        self._opened = ExitStack()
        self._seen: set[int] = set()
        self._under_way: dict[int, _Swap] = {}
        self._loading: _Swap | None = None
        self._calls = 0
        self.notes: list[str] = []
        """For the report."""

    def __call__(self) -> None:
        self._calls += 1
        if self._loading is not None:
            self._take_loaded(self._loading)
        elif self._calls % LOOK_EVERY == 0:
            for swap in list(self._under_way.values()):
                self._follow(swap)
            self._look()

    def close(self) -> None:
        """After the session: what was still to come never will."""
        if self._loading is not None:
            self._loading.thread.join()
            self._lend(on=False)
            self._under_way[self._loading.number] = self._loading
        for swap in list(self._under_way.values()):
            self._follow(swap)
        for swap in self._under_way.values():
            self._answer(swap, "ended", "the session ended before every instrument was warm")
        self._opened.close()

    def _look(self) -> None:
        try:
            names = os.listdir(self._folder / FOLDER)
        except OSError:  # not there yet, or not to be read: the session trades on
            return
        asked = {int(m[1]) for n in names if (m := REQUEST.fullmatch(n))}
        if new := asked - self._seen:
            self._begin(min(new))

    def _begin(self, number: int) -> None:
        self._seen.add(number)
        self._loading = _Swap(number, self._plan, self._folder, self._opened)
        self._lend(on=True)
        self._loading.thread.start()

    def _lend(self, *, on: bool) -> None:
        if on:
            self._interval = sys.getswitchinterval()
        sys.setswitchinterval(SWITCH_S if on else self._interval)
        self._live.lend(on)

    def _take_loaded(self, swap: _Swap) -> None:
        if swap.thread.is_alive():
            return
        self._lend(on=False)
        self._loading = None
        try:
            swapped = not swap.error and self._live.swap(*swap.arguments)
        except Exception as error:  # of a backend asked for its states
            swap.error = in_words(error)
        if swap.error:
            self._answer(swap, "refused", swap.error)
            return
        if not swapped:
            self._answer(swap, "ended", "the session was winding down")
            return
        for older in [s for s in self._under_way.values() if s.source == swap.source]:
            self._follow(older)
            if self._under_way.pop(older.number, None) is not None:
                self._answer(older, "superseded", f"swap {swap.number} came before it was warm")
        self._under_way[swap.number] = swap
        self._answer(swap, "warming")

    def _follow(self, swap: _Swap) -> None:
        times, dropped = self._live.taken_over(swap.number), self._live.dropped(swap.number)
        if len(times) == len(swap.took_over) and dropped is None:
            return
        feeds = self._plan.feeds
        swap.took_over = {feeds[i].spec.name: ts for i, ts in times.items()}
        if dropped is None and len(times) < len(feeds):
            self._answer(swap, "warming")
            return
        del self._under_way[swap.number]
        if dropped is None:
            self._answer(swap, "done")
        else:
            ts, why = dropped
            self._answer(swap, "refused", f"dropped at {utc(ts)}, it failed as it ran: {why}")

    def _answer(self, swap: _Swap, state: Any, error: str = "") -> None:
        result = Result(state=state, took_over=swap.took_over, error=error)
        if state != "warming":
            times = ", ".join(f"{name} {utc(ts)}" for name, ts in swap.took_over.items())
            words = [f"Swap {swap.number}", state, error, times and f"took over at {times}"]
            self.notes.append(": ".join(word for word in words if word) + ".")
            log.info("%s", self.notes[-1])
        try:
            write_whole(result_of(self._folder, swap.number), msgspec.json.encode(result))
        except OSError as error_of_disk:  # the run goes on
            log.error("swap %d: %s", swap.number, error_of_disk)


class _Swap:
    """One request, and its bundle as a thread reads it."""

    def __init__(self, number: int, plan: Plan, folder: Path, opened: ExitStack) -> None:
        self.number, self.source, self.error = number, -1, ""
        self.arguments: tuple[Any, ...] = ()
        self.took_over: dict[str, int] = {}
        self.thread = threading.Thread(target=self._load, args=(plan, folder, opened), daemon=True)

    def _load(self, plan: Plan, folder: Path, opened: ExitStack) -> None:
        try:
            raw = request_of(folder, self.number).read_bytes()
            request = msgspec.json.decode(raw, type=Request)
            self.arguments = self._arguments(plan, folder, request, opened)
            self.source = self.arguments[1]
        except BaseException as error:  # a user's library may raise anything
            self.error = in_words(error)

    def _arguments(
        self, plan: Plan, folder: Path, request: Request, opened: ExitStack
    ) -> tuple[Any, ...]:
        index = source_named(request.model, plan.strategy, plan.sources, "model")
        source = plan.sources[index]
        bundle = bundle_for(plan.strategy, bundle_of(folder, self.number), source.config)
        if hash_word(bundle) != request.hash:
            raise ModelError(
                f"{bundle.path} is not the bundle that was asked for: its hash differs"
            )
        assert source.bundle is not None
        require_alike(source.bundle, bundle)
        return core_arguments(self.number, index, bundle, source.config, opened)


def in_words(error: BaseException) -> str:
    """Why a bundle is refused; never empty."""
    return str(error) if isinstance(error, HftError) else f"{type(error).__name__}: {error}"


def add_journaled(verify: Any, plan: Plan, folder: Path, journal: Any, opened: ExitStack) -> None:
    """Gives a verification the bundles that the journal's swaps asked for.

    Raises:
        ModelError: one is gone or damaged, or another than the run's.
    """
    from hft.journal import RecordKind

    for record in journal[(journal["kind"] == RecordKind.SWAP) & (journal["b"] == 0)]:
        number, index = int(record["order"]), int(record["lots"])
        source = plan.sources[index]
        bundle = bundle_for(plan.strategy, bundle_of(folder, number), source.config)
        if hash_word(bundle) != int(record["a"]):
            raise ModelError(f"{bundle.path} is not the bundle of the run's swap: its hash differs")
        verify.add_swap(*core_arguments(number, index, bundle, source.config, opened))

"""A live session's side of `hft swap`: bundles read, handed over and closed while it trades.

The session looks between inputs, each 50 ms. A bundle is read and warmed up, and what nothing uses
any more is closed, in a thread beside it, one at a time: that gets the interpreter only when the
session is idle, so that inputs wait 0.1 ms for it and not as long as the work takes. What holds the
interpreter for long inside a library's call is waited for all the same.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from hft.errors import HftError, ModelError
from hft.live.swaps import FOLDER, REQUEST, Request, Result, bundle_of, request_of, result_of
from hft.sources import bundle_for, hash_word
from hft.swaps import core_arguments, require_alike, source_named, utc
from hft.whole_files import write_whole

if TYPE_CHECKING:
    from hft.plan import Plan
    from hft.sources import Opened

log = logging.getLogger(__name__)

LOOK_EVERY = 50
"""Calls of the watch, which come each ms."""
SWITCH_S = 1e-4
"""How long the session waits for the interpreter while something is done beside it."""
END_S = 5.0
"""How long a session that has ended waits for that."""


class SwapWatch:
    """Called each ms between inputs, where it mostly only counts."""

    def __init__(self, live: Any, plan: Plan, folder: Path, opened: Opened) -> None:
        self._live, self._plan, self._folder = live, plan, folder
        self._open = {  # what computes a source, by the number of the swap that brought it
            (number, 0): opened.of(number)
            for number, source in enumerate(plan.sources)
            if source.bundle is not None and source.config.backend != "native"
        }
        self._seen: set[int] = set()
        self._under_way: dict[int, _Swap] = {}
        self._thread: threading.Thread | None = None
        self._loading: _Swap | None = None
        self._calls = 0
        self._is_changed = False
        self.notes: list[str] = []
        """For the report."""

    def __call__(self) -> None:
        self._calls += 1
        if self._thread is not None:
            if not self._thread.is_alive():
                self._end_beside()
        elif self._calls % LOOK_EVERY == 0:
            for swap in list(self._under_way.values()):
                self._follow(swap)
            self._close_unused()
            if self._thread is None:
                self._look()

    def close(self) -> None:
        """After the session: what was still to come never will."""
        if self._thread is not None:
            self._thread.join(END_S)
            self._lend(on=False)
        if self._loading is not None:
            self._end_of_loading(self._loading)
        elif self._thread is not None and self._thread.is_alive():
            self.notes.append(f"A model's library was not closed {END_S:g} s after the session.")
        for swap in list(self._under_way.values()):
            self._follow(swap)
        for swap in self._under_way.values():
            self._answer(swap, "ended", "the session ended before every instrument was warm")
        _close_all(list(self._open.values()))

    def _beside(self, work: Callable[[], None]) -> None:
        self._thread = threading.Thread(target=work, daemon=True)
        self._lend(on=True)
        self._thread.start()

    def _end_beside(self) -> None:
        self._lend(on=False)
        self._thread = None
        if self._loading is not None:
            swap, self._loading = self._loading, None
            self._take(swap)

    def _lend(self, *, on: bool) -> None:
        if on:
            self._interval = sys.getswitchinterval()
        sys.setswitchinterval(SWITCH_S if on else self._interval)
        self._live.lend(on)

    def _look(self) -> None:
        try:
            names = os.listdir(self._folder / FOLDER)
        except OSError:  # not there yet, or not to be read: the session trades on
            return
        asked = {int(m[1]) for n in names if (m := REQUEST.fullmatch(n))}
        if new := asked - self._seen:
            number = min(new)
            self._seen.add(number)
            self._loading = _Swap(number)
            self._beside(partial(self._loading.load, self._plan, self._folder))

    def _take(self, swap: _Swap) -> None:
        """What was read runs beside the old one from here on."""
        try:
            swapped = not swap.error and self._live.swap(*swap.arguments)
        except Exception as error:  # of a backend asked for its states
            swap.error = in_words(error)
        self._keep_open(swap)
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
        self._is_changed = True
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

    def _keep_open(self, swap: _Swap) -> None:
        if swap.source >= 0 and self._plan.sources[swap.source].config.backend != "native":
            self._open[swap.source, swap.number] = swap.opened
        swap.arguments = ()
        self._is_changed = True

    def _close_unused(self) -> None:
        if not self._is_changed:
            return
        self._is_changed = False
        unused = [key for key in self._open if key[1] not in self._live.in_use(key[0])]
        if unused:
            self._beside(partial(_close_all, [self._open.pop(key) for key in unused]))

    def _end_of_loading(self, swap: _Swap) -> None:
        if not swap.give_up():
            over = f"the session ended while it was read, which took longer than {END_S:g} s more"
            self._answer(swap, "ended", over)
            return
        self._keep_open(swap)
        if swap.error:
            self._answer(swap, "refused", swap.error)
        else:
            self._answer(swap, "ended", "the session ended while it was read")

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

    def __init__(self, number: int) -> None:
        self.number, self.source, self.error = number, -1, ""
        self.arguments: tuple[Any, ...] = ()
        self.took_over: dict[str, int] = {}
        self.opened = ExitStack()
        self._lock = threading.Lock()
        self._is_read = self._is_given_up = False

    def load(self, plan: Plan, folder: Path) -> None:
        """Reads and warms up the bundle: `arguments`, or what is the matter, `error`."""
        try:
            self.arguments = self._arguments(plan, folder)
        except BaseException as error:  # a user's library may raise anything
            self.error = in_words(error)
        with self._lock:
            self._is_read = True
        if self._is_given_up:  # nobody else will
            _close_all([self.opened])

    def give_up(self) -> bool:
        """Whether it was read; if not, what is being opened closes itself."""
        with self._lock:
            self._is_given_up = not self._is_read
            return self._is_read

    def _arguments(self, plan: Plan, folder: Path) -> tuple[Any, ...]:
        raw = request_of(folder, self.number).read_bytes()
        request = msgspec.json.decode(raw, type=Request)
        self.source = source_named(request.model, plan.strategy, plan.sources, "model")
        source = plan.sources[self.source]
        bundle = bundle_for(plan.strategy, bundle_of(folder, self.number), source.config)
        if hash_word(bundle) != request.hash:
            raise ModelError(
                f"{bundle.path} is not the bundle that was asked for: its hash differs"
            )
        assert source.bundle is not None
        require_alike(source.bundle, bundle)
        return core_arguments(
            self.number, self.source, bundle, source.config, self.opened, is_live=True
        )


def in_words(error: BaseException) -> str:
    """Why a bundle is refused; never empty."""
    return str(error) if isinstance(error, HftError) else f"{type(error).__name__}: {error}"


def _close_all(stacks: list[ExitStack]) -> None:
    for stack in stacks:
        try:
            stack.close()
        except BaseException as error:  # a user's library may raise anything
            log.warning("a model's library failed as it was closed: %s", in_words(error))

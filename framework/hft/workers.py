"""Processes that do several things at once: days of a backtest, variants, files of an import.

Each is a fresh interpreter of its own, fed over its standard input and heard over its standard
output, both of them pickles with a length before them. Nothing is forked (polars and Arrow keep
threads) and nobody's main module is run again (a script need not guard against it).

Ctrl-C reaches the parent alone. It asks the workers to stop, takes what they have, and ends those
that do not answer; a worker whose parent died stops by itself.
"""

from __future__ import annotations

import io
import logging
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from types import FrameType
from typing import IO, Any

from hft.errors import HftError
from hft.logs import log_to_stderr, logs_json

GRACE_S = 10.0
"""How long a worker that was asked to stop may take."""
TELL_EVERY_S = 0.1

_START = "import sys; sys.path[:] = {path!r}; from hft.workers import serve; serve({level}, {json})"


@dataclass(frozen=True, slots=True)
class Failure:
    """What a task raised."""

    error: BaseException


@dataclass(slots=True)
class Results:
    """What tasks gave, by number; those that were never done are absent."""

    done: dict[int, Any] = field(default_factory=dict)
    interrupted: bool = False

    def failure(self) -> BaseException | None:
        """What the first task that failed raised."""
        failed = [self.done[n] for n in sorted(self.done) if isinstance(self.done[n], Failure)]
        return failed[0].error if failed else None


def run_tasks(
    work: str,
    tasks: Sequence[Any],
    jobs: int,
    *,
    tick: Callable[[int, float], None] | None = None,
    done: Callable[[int, Any], bool] = lambda number, result: True,
) -> Results:
    """Do tasks in at most `jobs` processes, begun in their order.

    Args:
        work: `module:function`, called with a task and a `Link`.
        tasks: what is pickled and sent.
        jobs: processes.
        tick: told (rows over all tasks, share of all that is done).
        done: told of each result, or `Failure`, as it comes; false: the tasks after it are useless.

    Returns:
        Results of tasks; after a stop, of those that had something to give.
    """
    pool = _Pool(work, tasks, min(jobs, len(tasks)), tick, done)
    try:
        pool.run()
    finally:
        pool.close()
    return pool.results


class _Pool:
    def __init__(
        self,
        work: str,
        tasks: Sequence[Any],
        jobs: int,
        tick: Callable[[int, float], None] | None,
        done: Callable[[int, Any], bool],
    ) -> None:
        self.results = Results()
        self._work, self._tasks, self._tick, self._done = work, tasks, tick, done
        self._heard: queue.Queue[tuple[_Worker, Any]] = queue.Queue()
        self._progress = [(0, 0.0)] * len(tasks)
        self._next = 0
        self._turns: dict[int, _Worker] = {}
        self._deadline: float | None = None
        self._workers = [_Worker(self._heard) for _ in range(jobs)]

    def run(self) -> None:
        for worker in self._workers:
            self._feed(worker)
        while any(worker.task is not None for worker in self._workers):
            try:
                self._step()
            except KeyboardInterrupt:
                if self._deadline is not None:  # the second one: do not wait
                    return
                self.results.interrupted = True
                self._deadline = time.monotonic() + GRACE_S
                self._stop(-1)
            except queue.Empty:
                return

    def close(self) -> None:
        for worker in self._workers:
            worker.close()

    def _stop(self, after: int) -> None:
        """Begin no more tasks, and cut those after one that makes them useless."""
        self._next = len(self._tasks)
        for worker in self._workers:
            if worker.task is not None and worker.task > after:
                worker.send(("stop",))

    def _feed(self, worker: _Worker) -> None:
        worker.task = None
        if self._next < len(self._tasks):
            worker.task = self._next
            worker.send(("do", self._work, self._tasks[self._next]))
            self._next += 1

    def _step(self) -> None:
        left = None if self._deadline is None else max(0.0, self._deadline - time.monotonic())
        worker, message = self._heard.get(timeout=left)
        number = worker.task
        if message is None:
            if number is None:
                return
            message = ("done", Failure(HftError(f"a worker process {worker.end()}")))
        assert number is not None
        if message[0] == "tick":
            self._progress[number] = (message[1], message[2])
            self._tell()
        elif message[0] == "turn":
            self._turns[number] = worker
        else:
            self._take(worker, number, message[1])
        self._give_turns()

    def _take(self, worker: _Worker, number: int, result: Any) -> None:
        if isinstance(result, Failure) and isinstance(result.error, KeyboardInterrupt):
            self._feed(worker)  # it was asked to stop, and has nothing to give
            return
        self.results.done[number] = result
        self._progress[number] = (self._progress[number][0], 1.0)
        self._tell()
        if not self._done(number, result):
            self._stop(number)
        self._feed(worker)

    def _give_turns(self) -> None:
        for number in [n for n in self._turns if all(k in self.results.done for k in range(n))]:
            self._turns.pop(number).send(("go",))

    def _tell(self) -> None:
        if self._tick is not None:
            rows, shares = zip(*self._progress, strict=True)
            self._tick(sum(rows), sum(shares) / len(self._tasks))


class _Worker:
    """The parent's end of a process."""

    def __init__(self, heard: queue.Queue[tuple[_Worker, Any]]) -> None:
        self.task: int | None = None
        level = logging.getLogger().getEffectiveLevel()
        path = [each for each in sys.path if isinstance(each, str)]  # as imports take them
        start = _START.format(path=path, level=level, json=logs_json())
        self._process = subprocess.Popen(
            [sys.executable, "-c", start],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        self._hear = threading.Thread(target=self._listen, args=(heard,), daemon=True)
        self._hear.start()

    def send(self, message: Any) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it died: `_listen` says so
            _send(self._process.stdin, message)

    def end(self) -> str:
        code = self._process.wait()
        why = "; is there memory enough?" if code == -9 else ""
        return f"was ended by signal {-code}{why}" if code < 0 else f"ended with code {code}"

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()  # its end: no more tasks, and stop at once
        try:
            self._process.wait(GRACE_S if self.task is None else 0.5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._hear.join()
        self._process.stdout.close()

    def _listen(self, heard: queue.Queue[tuple[_Worker, Any]]) -> None:
        assert self._process.stdout is not None
        while True:
            message = _receive(self._process.stdout)
            heard.put((self, message))
            if message is None:
                return


# ---- in the worker --------------------------------------------------------------------------


class Link:
    """What a task has of its parent."""

    def __init__(self, out: IO[bytes]) -> None:
        self._out = out
        self._stop = threading.Event()
        self.busy = False
        """A task is at work: Ctrl-C may cut it."""
        self._go: queue.Queue[None] = queue.Queue()
        self._said = 0.0

    def tick(self, rows: int, done: float) -> None:
        """Tell how far the task is."""
        now = time.monotonic()
        if now - self._said >= TELL_EVERY_S:
            self._said = now
            _send(self._out, ("tick", rows, done))

    def stopped(self) -> bool:
        """Whether the task should give what it has."""
        return self._stop.is_set()

    def stop(self) -> None:
        """The task is to stop: it finds out by itself, or its handler is cut."""
        self._stop.set()
        self._go.put(None)
        main = threading.main_thread().ident
        assert main is not None
        signal.pthread_kill(main, signal.SIGINT)

    def go(self) -> None:
        """It is the task's turn."""
        self._go.put(None)

    def turn(self) -> None:
        """Wait until every task before this one is done.

        Raises:
            KeyboardInterrupt: it never will be.
        """
        _send(self._out, ("turn",))
        self._go.get()
        if self._stop.is_set():
            raise KeyboardInterrupt


def serve(level: int, as_json: bool) -> None:  # noqa: FBT001 - called from text
    """Do what comes in over standard input, until it ends."""
    log_to_stderr(level, as_json=as_json)
    source, out = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a strategy prints must not get between the messages
    sys.stdout = os.fdopen(1, "w", buffering=1, closefd=False)  # and is told line by line
    sys.stdin = io.StringIO()
    link, tasks = Link(out), queue.Queue[Any]()

    def cut(number: int, frame: FrameType | None) -> None:
        if link.busy:  # never while a result is being sent
            link.busy = False
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, cut)
    threading.Thread(target=_obey, args=(source, link, tasks), daemon=True).start()
    with suppress(BrokenPipeError):  # the parent is gone
        while (message := tasks.get()) is not None:
            _send(out, ("done", _done(message, link)))
    os._exit(0)  # the thread above may still wait for input


def _obey(source: IO[bytes], link: Link, tasks: queue.Queue[Any]) -> None:
    while (message := _receive(source)) is not None:
        if message[0] == "do":
            tasks.put(message)
        elif message[0] == "go":
            link.go()
        else:
            link.stop()
    link.stop()
    tasks.put(None)


def _done(message: Any, link: Link) -> Any:
    module, _, function = message[1].partition(":")
    link.busy = True
    try:
        return getattr(import_module(module), function)(message[2], link)
    except BaseException as error:
        return Failure(_told(error))
    finally:
        link.busy = False


def _told(error: BaseException) -> BaseException:
    """The error as it can be sent; where it was raised goes along as text."""
    import traceback

    if not isinstance(error, HftError | KeyboardInterrupt | OSError):
        error.add_note("in a worker process:\n" + "".join(traceback.format_exception(error)))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        text = "".join(traceback.format_exception(error))
        return RuntimeError(f"in a worker process:\n{text}")
    return error


def _send(stream: IO[bytes], message: Any) -> None:
    body = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    stream.write(len(body).to_bytes(8, "little"))
    stream.write(body)
    stream.flush()


def _receive(stream: IO[bytes]) -> Any:
    head = stream.read(8)
    if len(head) < 8:
        return None
    body = stream.read(int.from_bytes(head, "little"))
    return pickle.loads(body) if len(body) == int.from_bytes(head, "little") else None

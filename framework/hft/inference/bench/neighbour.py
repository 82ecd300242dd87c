"""A process that moves memory all the time, beside what is measured.

It takes no time of the processor that is measured, where there is another; what it takes is memory
bandwidth and room in the caches that processors share.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import numpy as np

from hft.errors import HftError

SIZE_BYTES = 256 << 20


@contextmanager
def neighbour(cpu: int | None = None, size_bytes: int = SIZE_BYTES) -> Iterator[int]:
    """Runs one until the end of the block; gives its process id.

    Args:
        cpu: the processor that it must leave alone, if there is another.
        size_bytes: what it moves from end to end, again and again.
    """
    command = [sys.executable, "-m", "hft.inference.bench.neighbour", str(size_bytes)]
    process = subprocess.Popen(
        [*command, "" if cpu is None else str(cpu)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        if process.stdout.readline() != b"moving\n":
            raise HftError("the memory-heavy neighbour did not start; see above")
        yield process.pid
    finally:
        process.stdin.close()  # its end; so it ends too when this process is killed
        process.stdout.close()
        process.wait()


def move(size_bytes: int, avoid: int | None) -> None:
    """Moves memory until standard input ends."""
    with suppress(AttributeError, OSError):
        others = os.sched_getaffinity(0) - {avoid}
        os.sched_setaffinity(0, others or os.sched_getaffinity(0))
    threading.Thread(target=_end_with_input, daemon=True).start()
    here = np.zeros(max(size_bytes // 16, 1), np.int64)
    there = np.ones_like(here)
    print("moving", flush=True)
    while True:
        np.copyto(here, there)
        np.add(there, 1, out=there)


def _end_with_input() -> None:
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    move(int(sys.argv[1]), int(sys.argv[2]) if sys.argv[2] else None)

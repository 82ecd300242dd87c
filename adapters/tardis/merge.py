"""Several streams of batches as one, in order of arrival."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from hft.data.importing import Batch


class _Stream:
    """A stream and the rows of it that wait."""

    def __init__(self, batches: Iterator[Batch]) -> None:
        self._batches = batches
        self.head: Batch | None = None
        self.keys: NDArray[np.int64] = np.empty(0, np.int64)
        self.done = 0.0
        self.fill()

    def fill(self) -> None:
        """Read on if nothing waits."""
        while self.head is None or not len(self.keys):
            self.head = next(self._batches, None)
            if self.head is None:
                self.done = 1.0
                return
            # Should time go back, the later row waits for nobody and is found by the checks.
            self.keys = np.maximum.accumulate(self.head.events["ts_recv"])
            self.done = self.head.done

    def take(self, horizon: int) -> Batch:
        """Rows up to a time."""
        assert self.head is not None
        cut = int(np.searchsorted(self.keys, horizon, "right"))
        head, lines = self.head, self.head.lines
        assert lines is not None
        taken = Batch(head.events[:cut], lines[:cut])
        self.head = Batch(head.events[cut:], lines[cut:], head.done)
        self.keys = self.keys[cut:]
        return taken


def merged(streams: list[Iterator[Batch]]) -> Iterator[Batch]:
    """Rows of all, by `ts_recv`; at equal times those of the first stream first.

    Holds a batch of each stream. What is later than the end of the stream that ends first among
    those batches waits for the next one.
    """
    waiting = [_Stream(batches) for batches in streams]
    while live := [s for s in waiting if s.head is not None]:
        horizon = min(int(s.keys[-1]) for s in live)
        parts = [s.take(horizon) for s in live]
        events = np.concatenate([part.events for part in parts])
        lines = np.concatenate([part.lines for part in parts if part.lines is not None])
        order = np.argsort(events["ts_recv"], kind="stable")
        for stream in live:
            stream.fill()
        yield Batch(events[order], lines[order], sum(s.done for s in waiting) / len(waiting))

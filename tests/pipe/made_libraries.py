"""A model's library in a test's hands: the native kernels, which fail where the test says."""

from __future__ import annotations

import threading

from hft.inference.backends.native import NativeBackend


class Library(NativeBackend):
    """What the core takes for another library; `open_backend` gives it in a test."""

    name = "onnx"
    opened: list[Library]
    """Of this test."""
    fails: dict[tuple[str, int], int]
    """(folder of a bundle, number of a stream): the row at which it raises; -1: as it is reset."""
    opens_after: dict[str, threading.Event]
    """Folder of a bundle: it opens when this is set."""

    def __init__(self, bundle, tier, precision):
        if wait := self.opens_after.get(bundle.path.name):
            wait.wait()
        super().__init__(bundle, tier, precision)
        self.closed_by = None
        self.states = []
        self.rows = {}
        self.opened.append(self)

    def _state(self):
        self.states.append(super()._state())
        self.rows[self.states[-1]] = 0
        return self.states[-1]

    def _step(self, state, row, out):
        self.rows[state] += 1
        if self.rows[state] == self._fails_at(state):
            raise RuntimeError("the library gave up")
        super()._step(state, row, out)

    def _reset(self, state):
        if self._fails_at(state) == -1:
            raise RuntimeError("it cannot forget")
        super()._reset(state)

    def _close(self):
        self.closed_by = threading.current_thread()

    def _fails_at(self, state):
        return self.fails.get((self.bundle.path.name, self.states.index(state)))


def take_over_open_backend(monkeypatch):
    """From here on what opens a backend opens a Library; gives its class."""
    from hft.inference import backends

    here = type("Here", (Library,), {"opened": [], "fails": {}, "opens_after": {}})

    def open_backend(bundle, name="native", *, tier="FULL", precision="", threads=1, url=""):
        return here(bundle, tier, precision)

    monkeypatch.setattr(backends, "open_backend", open_backend)
    return here

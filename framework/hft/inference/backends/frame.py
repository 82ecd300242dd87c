"""What stands around a network in every backend: scaling before it, readout after it.

Both give the bits of the core, which does the same inside its native network: differences between
backends are then those of the networks alone.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hft.inference.card import Readout, Scaler

Doubles = npt.NDArray[np.float64]
Floats = npt.NDArray[np.float32]


class Frame:
    """Of one tier of a bundle."""

    def __init__(self, scaler: Scaler, readout: Readout | None, classes: int) -> None:
        self._mean = np.array(scaler.mean)
        self._inverse = 1.0 / np.array(scaler.scale)  # as the core: a product, not a quotient
        self._high = np.full(len(scaler.mean), scaler.clip)
        self._low = -self._high
        self._readout = readout
        self.classes = classes

    def scale(self, rows: Doubles, scratch: Doubles, x: Floats) -> None:
        """Clamp of (rows - mean) / scale in double, then rounded.

        Args:
            rows: features as they come, (..., k).
            scratch: of the same shape.
            x: what the network takes, of the same shape.
        """
        np.subtract(rows, self._mean, out=scratch)
        np.multiply(scratch, self._inverse, out=scratch)
        np.maximum(scratch, self._low, out=scratch)
        np.minimum(scratch, self._high, out=scratch)
        x[...] = scratch

    def read_out(self, y: Floats, out: Floats) -> None:
        """The network's own outputs, and the forecast after them where there is a readout.

        Args:
            y: (classes,).
            out: (classes,), or (classes + 2,).
        """
        n = self.classes
        out[:n] = y
        if self._readout is None:
            return
        expected = 0.0
        each = y.tolist()
        for p, move in zip(each, self._readout.move_ticks):  # noqa: B905 - checked when loaded
            expected += p * move  # in order: another order gives other bits
        out[n] = self._readout.shrink * expected
        out[n + 1] = max(each)

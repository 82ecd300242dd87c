"""Outputs of what a form is held against: native layers, or another maker's file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from hft.errors import ModelError
from hft.inference.build.apart import ApartError, call_apart
from hft.inference.card import Card
from hft.inference.compress.stack import Stack
from hft.inference.dataset.in_memory import Rows
from hft.inference.training.task import scaled

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Outputs:
    """What a model gives, without what a readout adds."""

    of: Callable[[Floats], Floats]
    """On (n, k) consecutive features rows from nothing, (n, outputs)."""
    on: Callable[[Rows, slice], Floats]
    """On a cut, warmed up on the rows before it."""


def native_outputs(stack: Stack) -> Outputs:
    """Of native layers."""

    def of(x: Floats) -> Floats:
        from hft import _core

        network, x = stack.network(), np.ascontiguousarray(x)
        if stack.window_rows:
            found = _core.NetworkWindow(network, stack.window_rows).steps(x)
        else:
            found = _core.NetworkStream(network).batch(x)
        return np.asarray(found, np.float64)

    return Outputs(of, stack.outputs)


def original_outputs(original: Path, card: Card, work: Path, limit_s: float) -> Outputs:
    """Of a file that its own library runs, apart from us."""

    def of(x: Floats) -> Floats:
        rows, out = work / "original-rows.npy", work / "original-answers.npy"
        np.save(rows, scaled(x, card.scaler))
        arguments = {
            "file": str(original),
            "rows": str(rows),
            "window_rows": card.window_rows,
            "out": str(out),
        }
        try:
            call_apart("hft.inference.build.originals:original_on_rows", arguments, limit_s)
        except ApartError as error:
            raise ModelError(f"{original} does not run: {error}") from error
        return np.asarray(np.load(out), np.float64)

    def on(rows: Rows, cut: slice) -> Floats:
        before = min(card.window_rows - 1, cut.start)
        found = []
        for piece in rows.pieces(cut.start - before, cut.stop):
            found.append(_whole(of, rows.x[piece], card.window_rows))
        return np.concatenate(found)[before:]

    return Outputs(of, on)


def _whole(of: Callable[[Floats], Floats], x: Floats, window_rows: int) -> Floats:
    """Pieces shorter than a window are led in by their first row."""
    missing = max(window_rows - len(x), 0)
    return of(np.concatenate([np.repeat(x[:1], missing, axis=0), x]))[missing:]

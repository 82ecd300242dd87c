"""Networks and rows that tests of compression share."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hft.inference.bundle import ARRAYS
from hft.inference.card import LayerEntry, Scaler
from hft.inference.compress.stack import Stack
from hft.inference.dataset.in_memory import Rows, Split
from hft.inference.training.task import Task

SECOND_NS = 1_000_000_000


def stack_from(layers: list[dict[str, Any]], clip: float = 10.0) -> Stack:
    """Of layers as numpy_lstm has them; inputs are not scaled."""
    inputs = layers[0]["kernel"].shape[-2]
    entries = []
    for layer in layers:
        kind = layer["kind"]
        gates = {"lstm": 4, "gru": 3}.get(kind, 1)
        entries.append(
            LayerEntry(
                kind=kind,
                units=layer["kernel"].shape[-1] // gates,
                activation=layer.get("activation", "linear"),
                width=layer["kernel"].shape[0] if kind == "conv" else 1,
            )
        )
    scaler = Scaler(mean=(0.0,) * inputs, scale=(1.0,) * inputs, clip=clip)
    weights = [{name: layer[name] for name in ARRAYS[layer["kind"]]} for layer in layers]
    return Stack(tuple(entries), weights, scaler)


def rows_of(
    x: npt.NDArray[Any],
    moves: npt.NDArray[Any] | None = None,
    storm: npt.NDArray[np.bool_] | None = None,
    alive_ns: npt.NDArray[np.int64] | None = None,
) -> Rows:
    """Rows a millisecond apart, of one stretch."""
    n = len(x)
    ts = np.arange(n) * 1_000_000
    return Rows(
        ts=ts,
        x=np.ascontiguousarray(x, np.float64),
        moves={SECOND_NS: np.zeros(n) if moves is None else moves},
        label_end=ts + SECOND_NS,
        alive_ns=np.full(n, 1_000_000) if alive_ns is None else alive_ns,
        stretch=np.zeros(n, np.int64),
        storm=np.zeros(n, bool) if storm is None else storm,
        sha256="",
    )


def task_of(
    x: npt.NDArray[Any],
    moves: npt.NDArray[Any],
    storm: npt.NDArray[np.bool_] | None = None,
    alive_ns: npt.NDArray[np.int64] | None = None,
    threshold: float = 0.5,
) -> Task:
    """Labelled rows, 60 % to train, 15 % to calibrate; NaN moves are not known."""
    n = len(x)
    rows = rows_of(x, moves, storm, alive_ns)
    known = np.nan_to_num(moves)
    label = np.where(known > threshold, 2, np.where(known < -threshold, 0, 1))
    a, b = n * 60 // 100, n * 75 // 100
    inputs = x.shape[1]
    return Task(
        rows=rows,
        moves=known,
        label=label.astype(np.int64),
        weight=np.where(np.isnan(moves), 0.0, rows.weight),
        parts=Split(slice(0, a), slice(a, b), slice(b, n)),
        horizon_ns=SECOND_NS,
        scaler=Scaler(mean=(0.0,) * inputs, scale=(1.0,) * inputs, clip=10.0),
        move_ticks=(-1.0, 0.0, 1.0),
    )

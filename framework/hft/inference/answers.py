"""What the native network says of rows, forgetting where a run forgets."""

from __future__ import annotations

from typing import Any

import numpy as np

from hft.inference.dataset.in_memory import Floats, Rows

WARM_ROWS = 2_000
"""Rows before a cut that bring the state of a streaming model to where it would be."""


def answers(network: Any, rows: Rows, cut: slice, window_rows: int = 0) -> Floats:
    """Outputs on the rows of a cut, (n, outputs).

    Args:
        network: of `_core.build_network`; takes rows unscaled.
        rows: those before the cut warm up a state, or fill a window.
        cut: which of `rows`.
        window_rows: 0: state is carried. Else exactly the last so many rows are seen.
    """
    from hft import _core

    start = max(cut.start - (window_rows - 1 if window_rows else WARM_ROWS), 0)
    if window_rows:
        window = _core.NetworkWindow(network, window_rows)
        reset, run = window.reset, window.steps
    else:
        stream = _core.NetworkStream(network)
        reset, run = stream.reset, stream.batch
    found = []
    for piece in rows.pieces(start, cut.stop):
        reset()
        found.append(run(np.ascontiguousarray(rows.x[piece])))
    return np.asarray(np.concatenate(found)[cut.start - start :], np.float64)

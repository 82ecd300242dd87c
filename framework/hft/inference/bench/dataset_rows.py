"""Rows of a data set: when they came, and what was in them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from hft.errors import ConfigError
from hft.inference.bench.subject import Floats
from hft.inference.bench.timing import Int
from hft.inference.bundle import Bundle


def rows_of(folder: Path, of: Bundle | None = None) -> tuple[Int, Floats]:
    """Times and features of the test part of a data set, (n,) and (n, inputs).

    Of a model whose scales trail, features as a run gives them to it.

    Args:
        folder: that `hft dataset` wrote.
        of: whose features they must be; None: any.

    Raises:
        ConfigError: other features, or no row.
    """
    from hft.inference.dataset.reading import open_dataset

    dataset = open_dataset(folder)
    if of is not None and tuple(dataset.facts.features) != of.card.features:
        raise ConfigError(
            f"{folder} has columns {', '.join(dataset.names)}; {of.path.name} reads "
            f"{', '.join(f.name for f in of.card.features)}, by the same definitions"
        )
    if of is not None and of.card.trailing is not None:
        dataset.require_trailing(of.card.trailing)
    ts, x = [], []
    for frame in dataset.frames("test"):
        ts.append(frame["ts"].to_numpy())
        if of is not None and of.card.trailing is not None:
            x.append(dataset.in_own_terms(frame, of.card.scaler))
        else:
            x.append(frame.select(dataset.names).to_numpy())
    if not ts:
        raise ConfigError(f"{folder}: its test part is empty")
    rows = np.concatenate(x).astype(np.float64)
    whole = ~np.isnan(rows).any(axis=1)
    return np.concatenate(ts)[whole].astype(np.int64), rows[whole]

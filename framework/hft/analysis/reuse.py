"""What reuse of answers saved, by weather: a storm is when most rows come and fewest are alike.

A second of market time is a storm when it has more than twice the median of a model's rows over
the seconds that have any, all instruments together.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hft.analysis.run_data import RunData
from hft.analysis.trading import ratio

Figures = dict[str, Any]
Counts = NDArray[np.int64]

STORM = 2.0
"""Times the median."""
COUNTED = ("rows", "reused", "shadows", "compared", "disagreed", "trips")
REASONS = ("off", "under_way", "no_answer", "too_often", "too_old", "side", "far", "unsure")
"""Why rows were computed, the first that held."""
QUANTILES = {"p50": 0.5, "p99": 0.99, "max": 1.0}


def reuse(run: RunData) -> list[Figures]:
    """One a model whose answers could be given again."""
    return [
        _of_model(_name(run, int(model)), run.reuse[run.reuse["model"] == model])
        for model in np.unique(run.reuse["model"])
    ]


def _name(run: RunData, model: int) -> str:
    return run.models[model] if model < len(run.models) else f"model {model}"


def _of_model(name: str, seconds: NDArray[np.void]) -> Figures:
    by_second = _summed(seconds)
    rows = by_second["rows"]
    storm = rows > STORM * np.median(rows)
    weathers = {"all": np.ones_like(storm), "calm": ~storm, "storm": storm}
    return {
        "name": name,
        **{weather: _figures(by_second, there) for weather, there in weathers.items()},
        "reasons": {reason: int(by_second[reason].sum()) for reason in REASONS},
    }


def _summed(seconds: NDArray[np.void]) -> dict[str, Counts]:
    """Instruments together, a value a second."""
    times, at = np.unique(seconds["second"], return_inverse=True)
    sums = {}
    for name in (*COUNTED, *REASONS):
        sums[name] = np.zeros(times.size, np.int64)
        np.add.at(sums[name], at, seconds[name])
    return sums


def _figures(by_second: dict[str, Counts], there: NDArray[np.bool_]) -> Figures:
    sums = {name: int(by_second[name][there].sum()) for name in COUNTED}
    to_compute = (by_second["rows"] - by_second["reused"])[there]
    misses = sums["rows"] - sums["reused"] - sums["shadows"]
    return {
        "seconds": int(there.sum()),
        **sums,
        "misses": misses,
        "hit_rate": ratio(sums["rows"] - misses, sums["rows"]),
        "saved": ratio(sums["reused"], sums["rows"]),
        "to_compute_a_second": _quantiles(to_compute),
        "disagreement": ratio(sums["disagreed"], sums["compared"]),
    }


def _quantiles(values: Counts) -> dict[str, int | None]:
    if not values.size:
        return dict.fromkeys(QUANTILES)
    drawn = np.quantile(values, list(QUANTILES.values()), method="inverted_cdf")
    return dict(zip(QUANTILES, map(int, drawn), strict=True))

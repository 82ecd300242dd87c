"""A latency profile of what was measured at a rate: rows of kind "model", for `--latency`."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hft.errors import ConfigError
from hft.execution.profiles import ClockOffset, LatencyProfile, ProfileFacts, make_profile
from hft.execution.resampling import FEWEST
from hft.inference.bench.rate import Served


def profile_of_bench(
    served: Served,
    *,
    source: str,
    tier: str,
    device: str = "cpu",
    about: dict[str, object] | None = None,
    start_ts: int | None = None,
) -> LatencyProfile:
    """Rows as they were served, waits beside services: a replay makes waits anew.

    Args:
        served: of one backend and tier.
        source: what was measured, for people.
        tier: of the bundle.
        device: where it ran.
        about: how it was measured.
        start_ts: when the run began, UTC; None: now.

    Raises:
        ConfigError: too few rows to be drawn from.
    """
    n = served.arrival_ns.size
    if n < FEWEST:
        raise ConfigError(
            f"{n:,} rows were served, a profile that is to be drawn from wants {FEWEST:,}: "
            "raise --seconds or --rate"
        )
    start = time.time_ns() if start_ts is None else start_ts
    notes = (
        "Waits are those of this rate; a replay makes them anew from arrivals and services.",
        f"The model was at work {served.load:.1%} of the time.",
    )
    facts = ProfileFacts(
        origin="measured",
        source=source,
        clock_offset=ClockOffset(estimate_ns=0, half_width_ns=0),
        created_from=dict(about or {}),
        notes=notes,
    )
    columns: dict[str, NDArray[Any] | list[Any]] = {
        "kind": ["model"] * n,
        "ts": start + served.arrival_ns,
        "wait_ns": served.wait_ns,
        "service_ns": served.service_ns,
        "batch": served.batch.astype(np.int64),
        "tier": [tier] * n,
        "device": [device] * n,
    }
    return make_profile(source, facts, columns)

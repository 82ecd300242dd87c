"""The inference server's figures, and what the execution models were asked beyond their means."""

from __future__ import annotations

from typing import Any

from hft.analysis import legs
from hft.analysis.run_data import RunData
from hft.analysis.trading import ratio

Figures = dict[str, Any]

LOST = ("conflated", "skipped", "expired", "overflowed")
"""What becomes of rows that the server does not answer: counters `signals_...`."""


def model_server(run: RunData) -> Figures | None:
    """None where no model ran."""
    if not run.counters.get("services") and not run.model_service_ns.size:
        return None
    signals, services = run.counters.get("signals", 0), run.counters.get("services", 0)
    return {
        "wait": legs.quantiles(run.model_wait_ns),
        "service": legs.quantiles(run.model_service_ns),
        "signal age at venue": legs.quantiles(legs.signal_age_ns(run.orders)),
        "signals": signals,
        "services": services,
        "signals_a_service": ratio(signals, services),
        **{name: run.counters.get(f"signals_{name}", 0) for name in LOST},
    }


def strains(run: RunData) -> list[str]:
    """Fills that rest on weak data or on too large a share of the volume, a sentence each."""
    notes = []
    venue = run.recipe.get("venue", {})
    depths = {"every venue": venue, **run.recipe.get("venues", {})}
    if shallow := [name for name, facts in depths.items() if facts.get("depth") == "touch"]:
        notes.append(
            f"Weak data ({', '.join(shallow)}): takers filled whole at the best price and paid a "
            "slippage model, for the data tell no depth."
        )
    beyond = run.fills[run.fills["extrapolated"] == 1]
    if beyond.size:
        share = 100 * float(beyond["lots"].sum()) / float(run.fills["lots"].sum())
        notes.append(
            f"{beyond.size:,} of {run.fills.size:,} fills ({share:.1f} % of the lots) are "
            "extrapolated: our share of the traded volume was too large to believe them."
        )
    return notes

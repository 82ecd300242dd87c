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
        "signals_a_service": ratio(_served(run), services),
        **{name: run.counters.get(f"signals_{name}", 0) for name in LOST},
    }


def _served(run: RunData) -> float:
    """Rows that services answered."""
    # Live, services begin with the rows that warm a model up, which give no signal.
    if run.kind == "live":
        return run.counters.get("inferences", 0)
    return run.counters.get("signals", 0) - int(run.reuse["reused"].sum())


def strains(run: RunData) -> list[str]:
    """What the execution models were asked beyond their means, a sentence each."""
    beyond = run.fills[run.fills["extrapolated"] == 1]
    if not beyond.size:
        return []
    share = 100 * float(beyond["lots"].sum()) / float(run.fills["lots"].sum())
    return [
        f"{beyond.size:,} of {run.fills.size:,} fills ({share:.1f} % of the lots) are "
        "extrapolated: our share of the traded volume was too large to believe them."
    ]

"""Parameters of the execution models, estimated from market data; see docs/fitting.md."""

from hft.fitting.impact import ImpactFit, fit_impact
from hft.fitting.queue import QueueFit, fit_queue
from hft.fitting.refill import RefillFit, fit_refill
from hft.fitting.tape import Source, sources_of

__all__ = [
    "ImpactFit",
    "QueueFit",
    "RefillFit",
    "Source",
    "fit_impact",
    "fit_queue",
    "fit_refill",
    "sources_of",
]

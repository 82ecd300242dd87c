"""From a features row to the earliest trade on it: a constant, or what a recipe's legs draw.

The way is the model's service, the handler, the risk gate and the wire to the venue. Waiting for
the model is no leg: it depends on the load of the run, and a dataset has none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import numpy.typing as npt

from hft.durations import format_ns, parse_ns
from hft.errors import ConfigError

if TYPE_CHECKING:
    from hft.plan import Plan

Int = npt.NDArray[np.int64]

LEGS = ("inference", "compute", "risk", "entry")
"""In the order in which a row passes them."""


@dataclass(frozen=True, slots=True)
class LabelLatency:
    """What lies between a row and the start of its labels."""

    text: str
    """As it was asked for."""
    legs: tuple[Any, ...]
    """`hft._core.Latency`, one after the other."""
    constant_ns: int | None
    """None: drawn by row."""

    @property
    def typical_ns(self) -> int:
        """The constant, or the medians of the legs together."""
        if self.constant_ns is not None:
            return self.constant_ns
        return sum(int(leg.median) for leg in self.legs)

    def of(self, ts: Int) -> Int:
        """Of rows made at `ts`, (n,) [ns]."""
        if self.constant_ns is not None:
            return np.full(len(ts), self.constant_ns, np.int64)
        at = np.ascontiguousarray(ts)
        for leg in self.legs:
            at = at + leg.at(at)
        return at - ts


def constant(latency_ns: int) -> LabelLatency:
    """The same for every row."""
    return LabelLatency(format_ns(latency_ns), (), latency_ns)


def label_latency(plan: Plan, text: str, *, median: bool = False) -> LabelLatency:
    """The latency that `text` names.

    Args:
        plan: whose recipe and market the legs are of.
        text: a duration; `recipe`: the recipe's legs; else a latency profile, a file or a shipped
            one, which draws what it has, the rest staying the recipe's.
        median: the legs' medians added up, instead of draws.

    Raises:
        ConfigError: neither a duration nor a profile.
    """
    from hft.config import PROFILE, Series
    from hft.execution.latency import core_legs, resolve

    try:
        return constant(parse_ns(text))
    except ConfigError:
        if text[:1].isdigit():
            raise
    section = plan.recipe.latency
    if text != "recipe":
        section = _of_profile(section, text)
    section = resolve(section)
    made = core_legs(section, plan.recipe.seed, plan.feeds, ids=False)
    legs = tuple(getattr(made, name) for name in LEGS)
    told = [getattr(section, name) for name in LEGS]
    is_drawn = any(leg == PROFILE or isinstance(leg, Series) for leg in told)
    drawn = LabelLatency(text, legs, None)
    if is_drawn and not median:
        return drawn
    said = f"median of {text}" if is_drawn else text
    return LabelLatency(said, (), drawn.typical_ns)


def _of_profile(section: Any, profile: str) -> Any:
    from hft.execution.latency import drawn_from

    chosen = {key.rpartition(".")[2]: value for key, value in drawn_from(profile).items()}
    return msgspec.structs.replace(section, **{k: v for k, v in chosen.items() if k != "response"})

"""The offset of our clock against the venue's, from stamps of the feed and of orders.

    feed      T2 - T0   = feed leg     + theta        theta: our clock less the venue's
    entry     T10 - T9  = entry leg    - theta
    response  T11 - T10 = response leg + theta

No leg is negative, so over a window  -min(entry) <= theta <= min(feed, response) , all as stamped.
The middle of that interval is the estimate: it takes the quickest way out to be as long as the
quickest way back, which nothing in the stamps can show. What holds whatever theta is: the round
trip T11 - T9, the age of data at the match T10 - T0, and feed + entry.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hft.errors import DataError
from hft.execution.profiles import ClockOffset

Int = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Bounds:
    """Where theta can lie [ns], ends included."""

    low: int
    high: int

    @property
    def offset(self) -> ClockOffset:
        """The middle and half the width, rounded up."""
        middle = (self.low + self.high) // 2
        return ClockOffset(estimate_ns=middle, half_width_ns=self.high - middle)


def offset_bounds(
    entry: Int, response: Int, feed: Int | None = None, quantum_ns: int = 1
) -> Bounds:
    """Bounds of theta from legs as stamped.

    Args:
        entry: T10 - T9, (n,) [ns].
        response: T11 - T10, (n,) [ns].
        feed: T2 - T0, (m,) [ns].
        quantum_ns: what the venue's stamps are rounded down to: 1,000,000 where they are whole ms.
            A stamp may then be up to a quantum early, and the lower bound gives way by as much.

    Raises:
        DataError: no offset makes every leg positive: the clocks drifted.
    """
    down = int(np.argmin(entry))
    legs = {"response": response} | ({"feed": feed} if feed is not None and feed.size else {})
    name = min(legs, key=lambda each: int(legs[each].min()))
    up = int(np.argmin(legs[name]))
    low, high = -int(entry[down]) - (quantum_ns - 1), int(legs[name][up])
    if low > high:
        raise DataError(
            f"no single clock offset fits: entry of row {down} ({entry[down]} ns) wants at least "
            f"{low} ns, {name} of row {up} ({legs[name][up]} ns) at most {high} ns; the clocks "
            "drifted against each other (fit shorter stretches, or hand over corrected stamps), or "
            "the venue rounds its stamps and the quantum was not told (--quantum 1ms)"
        )
    return Bounds(low, high)


def corrected(entry: Int, response: Int, offset_ns: int) -> tuple[Int, Int]:
    """Entry and response on one clock; their sum, the round trip, is never changed."""
    round_trip = entry + response
    moved: Int = np.clip(entry + offset_ns, 0, round_trip)
    return moved, round_trip - moved

"""What our own trading did to the market in a run, and how much of it is to be believed."""

from __future__ import annotations

from typing import Any

import numpy as np

from hft.analysis.joining import mark_e9
from hft.analysis.pnl import last_mark2
from hft.analysis.run_data import RunData
from hft.analysis.trading import ratio
from hft.analysis.units import MONEY_PER_UNIT

Figures = dict[str, Any]

COUNTED = ("capped_lots", "taker_unfilled_lots", "faded_lots")
"""Counters of the venue, over all instruments."""


def footprint(run: RunData) -> list[Figures]:
    """What each instrument's trading left, and how much of it is extrapolated."""
    return [_of_instrument(run, i) for i in range(len(run.instruments))]


def _of_instrument(run: RunData, instrument: int) -> Figures:
    fills = run.fills[run.fills["instrument"] == instrument]
    lots, beyond = int(fills["lots"].sum()), fills["extrapolated"] == 1
    traded = run.traded_lots[instrument] if run.traded_lots else None
    overlay = run.overlay_ticks[instrument] if run.overlay_ticks else 0.0
    return {
        "name": run.instruments[instrument].name,
        "currency": run.instruments[instrument].spec.currency,
        "impact": int(fills["impact"].sum()) / MONEY_PER_UNIT,
        "taker_lots": int(fills["lots"][fills["maker"] == 0].sum()),
        "volume_share": None if traded is None else ratio(lots, traded),
        "extrapolated_fills": int(beyond.sum()),
        "extrapolated_share": ratio(int(fills["lots"][beyond].sum()), lots),
        "overlay_ticks": overlay,
        "overlay_worth": _overlay_worth(run, instrument, overlay),
    }


def _overlay_worth(run: RunData, instrument: int, ticks: float) -> float:
    """What the open position gains when it is marked at the mid we pushed, not at the tape's."""
    facts = run.instruments[instrument]
    samples = run.samples[run.samples["instrument"] == instrument]
    mid2 = last_mark2(samples, np.zeros(0, np.int64))
    if not samples.size or not mid2 or not ticks:
        return 0.0
    lots = int(samples["position"][-1])
    pushed = mid2 + round(2 * ticks)
    return (mark_e9(facts, lots, pushed) - mark_e9(facts, lots, mid2)) / MONEY_PER_UNIT

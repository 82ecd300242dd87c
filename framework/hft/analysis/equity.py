"""The equity path of a run: several instruments added up, and taken apart over time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hft.analysis.pnl import Float, Int, spread_gain
from hft.analysis.records import NO_TIME
from hft.analysis.run_data import RunData
from hft.analysis.units import MONEY_PER_UNIT


@dataclass(frozen=True, slots=True)
class EquityPath:
    """An account over time; arrays are (n,), amounts cumulative from zero [settlement currency].

    Attributes:
        ts: sample times [ns, UTC].
        equity_e9: net of fees, funding and impact, whole [1e-9 currency].
        net: the same in currency.
        gross: before fees, funding and impact.
        spread: gained against the mid at fills.
        inventory: gross less spread.
        fees: paid.
        funding: received.
        impact: paid.
    """

    ts: Int
    equity_e9: Int
    net: Float
    gross: Float
    spread: Float
    inventory: Float
    fees: Float
    funding: Float
    impact: Float


def equity_path(run: RunData, instruments: list[int]) -> EquityPath:
    """Add up the samples of some instruments that settle in one currency.

    An instrument that has no sample at a time yet counts with its last one, before its first with
    zero.
    """
    chosen = np.isin(run.samples["instrument"], instruments)
    ts = np.unique(run.samples["ts"][chosen])
    sums = {name: np.zeros(ts.size, np.int64) for name in ("equity", "fees", "funding", "impact")}
    spread = np.zeros(ts.size)
    for instrument in instruments:
        samples = run.samples[run.samples["instrument"] == instrument]
        at = np.searchsorted(samples["ts"], ts, side="right")
        for name, total in sums.items():
            total += np.append(0, samples[name])[at]
        fills = run.fills[run.fills["instrument"] == instrument]
        fills = fills[fills["ts_recv"] != NO_TIME]
        gained = spread_gain(run.instruments[instrument], fills)
        order = np.argsort(fills["ts_recv"], kind="stable")
        at = np.searchsorted(fills["ts_recv"][order], ts, side="right")
        spread += np.append(0.0, np.cumsum(gained[order]))[at]
    net, fees, paid, impact = (total / MONEY_PER_UNIT for total in sums.values())
    gross = net + fees + paid + impact
    return EquityPath(ts, sums["equity"], net, gross, spread, gross - spread, fees, -paid, impact)

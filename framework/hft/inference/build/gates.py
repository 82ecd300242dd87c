"""Gates: what a form of a model must hold against its parent to be run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hft.analysis.statistics import block_bootstrap
from hft.inference.card import Gate, Readout
from hft.inference.compress.quantise import divergence
from hft.inference.training.scores import correlation

Floats = npt.NDArray[np.float64]

CORRELATION = 0.98
"""Least, of any output with the parent's."""
KL = 0.01
"""Most, mean over rows [nats]."""
ARGMAX = 0.98
"""Least share of rows with the same most probable class."""
DECISIONS = 0.98
"""Least share of rows with the same side."""
LATENCY = 1.05
"""Most, of the parent's; above 1 by what a busy machine makes of equal ones."""
PNL = 0.5
"""Most that the difference may cost, in half-widths of the parent's own interval."""
LEAST_BLOCKS = 30
"""Samples of P&L; with fewer an interval says nothing."""


@dataclass(frozen=True, slots=True)
class Gains:
    """A replay's P&L, a sample each."""

    ts: npt.NDArray[np.int64]
    gain: Floats
    """(n,) [currency], since the sample before."""
    fills: int


def broken(why: str, name: str = "export") -> Gate:
    """The gate of what could not be made, run or measured."""
    return Gate(name=name, value=0.0, limit=1.0, passed=False, note=why)


def output_gates(parent: Floats, ours: Floats, readout: Readout | None) -> list[Gate]:
    """Outputs on the same rows, and what would be decided by them.

    Args:
        parent: (n, outputs), the network's own, without what a readout adds.
        ours: likewise.
        readout: what makes a forecast of probabilities.
    """
    if parent.shape != ours.shape:
        return [broken(f"gives {ours.shape[1]} outputs, its parent {parent.shape[1]}", "outputs")]
    finite = np.isfinite(ours).all(axis=1)
    if not finite.all():
        share = float(finite.mean())
        return [Gate(name="finite", value=share, limit=1.0, passed=False, note="NaN or infinity")]
    found = [_at_least("correlation", _least_correlation(parent, ours), CORRELATION)]
    if are_probabilities(parent):
        found.append(_at_most("kl", divergence(parent, ours), KL))
        same = float((parent.argmax(axis=1) == ours.argmax(axis=1)).mean())
        found.append(_at_least("argmax", same, ARGMAX))
    return [*found, decision_gate(parent, ours, readout)]


def decision_gate(parent: Floats, ours: Floats, readout: Readout | None) -> Gate:
    """Share of rows on the same side: long, short, or no forecast worth a side.

    A forecast is worth a side where it is beyond the parent's median, in size: half of the rows.
    """
    a, b = _forecast(parent, readout), _forecast(ours, readout)
    threshold = float(np.median(np.abs(a)))
    sides = [np.where(np.abs(f) > threshold, np.sign(f), 0.0) for f in (a, b)]
    opposite = int((sides[0] * sides[1] < 0).sum())
    note = f"{opposite} of {len(a)} rows on the opposite side" if opposite else ""
    return _at_least("decisions", float((sides[0] == sides[1]).mean()), DECISIONS, note)


def latency_gate(ratio: float, ours_ns: float, parent_ns: float) -> Gate:
    """Ours over the parent's: the median over short runs that took turns."""
    note = f"{ours_ns / 1e3:.3g} us, its parent {parent_ns / 1e3:.3g} us, medians of a step"
    return _at_most("latency", ratio, LATENCY, note)


def budget_gate(p99_ns: float, budget_ns: int) -> Gate:
    """What a warm row costs at p99 [ns]."""
    return _at_most("budget", p99_ns, float(budget_ns), "ns a row at p99, warm")


def pnl_gate(parent: Gains, ours: Gains) -> Gate:
    """The lower end of what is gained beside the parent, paired by time.

    Value and limit are in half-widths of the 95 % interval of the parent's own P&L: what is not to
    be told from luck anyway. The interval of the difference is a block bootstrap's.
    """
    _, at, here = np.intersect1d(parent.ts, ours.ts, return_indices=True)
    if len(at) < LEAST_BLOCKS:
        return broken(f"{len(at)} samples of P&L, want {LEAST_BLOCKS}: replay longer", "pnl")
    base, difference = parent.gain[at], ours.gain[here] - parent.gain[at]
    _, own = block_bootstrap(base)
    _, apart = block_bootstrap(difference)
    half = float(np.diff(np.quantile(own, [0.025, 0.975]))[0]) / 2
    low, high = (float(v) for v in np.quantile(apart, [0.025, 0.975]))
    note = (
        f"difference {difference.sum():.4g} ({low:.4g} to {high:.4g}), parent {base.sum():.4g} "
        f"+- {half:.4g} [currency]; {ours.fills} fills, parent {parent.fills}"
    )
    if not parent.fills:
        return broken(f"the parent never traded: nothing to compare; {note}", "pnl")
    value = low / half if half else (0.0 if low == 0 else -float("inf"))
    return _at_least("pnl", value, -PNL, note)


def are_probabilities(outputs: Floats) -> bool:
    """Whether each row is a distribution over several classes."""
    sums = outputs.sum(axis=1)
    return bool(outputs.shape[1] > 1 and (outputs >= 0).all() and np.allclose(sums, 1, atol=1e-4))


def _forecast(outputs: Floats, readout: Readout | None) -> Floats:
    if readout is not None:
        return np.asarray(outputs @ np.array(readout.move_ticks))
    # Without one: the last class against the first, or the only output.
    last = outputs[:, -1]
    return np.asarray(last - outputs[:, 0] if are_probabilities(outputs) else last)


def _least_correlation(parent: Floats, ours: Floats) -> float:
    return min(_alike(parent[:, n], ours[:, n]) for n in range(parent.shape[1]))


def _alike(a: Floats, b: Floats) -> float:
    still = float(np.abs(a - b).max()) < 1e-6  # of an output that never varies, too
    return 1.0 if still else correlation(a, b)


def _at_least(name: str, value: float, limit: float, note: str = "") -> Gate:
    return Gate(name=name, value=value, limit=limit, passed=bool(value >= limit), note=note)


def _at_most(name: str, value: float, limit: float, note: str = "") -> Gate:
    return Gate(name=name, value=value, limit=limit, passed=bool(value <= limit), note=note)


def worst(gates: Sequence[Gate]) -> str:
    """Failed gates, in words; empty: none failed."""
    return "; ".join(str(gate) for gate in gates if not gate.passed)

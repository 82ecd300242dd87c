"""Gates: what a form of a model, or a cheaper one, must hold against its parent to be run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hft.analysis.statistics import block_bootstrap
from hft.inference.bench.ratio import Ratio
from hft.inference.card import Gate, Readout
from hft.inference.compress.quantise import divergence
from hft.inference.training.scores import correlation

Floats = npt.NDArray[np.float64]

LEAST_SAMPLES = 30
"""Of P&L; with fewer an interval says nothing."""
LEAST_FILLS = 30
"""Of the parent: a few trades alike are no evidence."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a form of the same network must hold."""

    correlation: float = 0.98
    """Least, of any output with the parent's."""
    kl: float = 0.01
    """Most, mean over rows [nats]."""
    argmax: float = 0.98
    """Least share of rows with the same most probable class."""
    decisions: float = 0.98
    """Least share of rows with the same side."""
    latency: float = 1.05
    """Most, of the parent's; above 1 by what a busy machine makes of equal ones."""
    pnl: float = -0.5
    """Least difference, in half-widths of the parent's own interval."""
    is_lesser: bool = False
    """A cheaper model, which must be worth having: faster by its whole interval, nearer to its
    parent than chance is, and not shown to lose; of the same network nothing may be lost."""


PARTS = Limits()


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


def not_judged(name: str, why: str) -> Gate:
    """The gate of what there was too little to judge by."""
    return Gate(name=name, value=0.0, limit=0.0, passed=False, note=why, judged=False)


def output_gates(
    parent: Floats,
    ours: Floats,
    readout: Readout | None,
    limits: Limits = PARTS,
    slope: float = 1.0,
) -> list[Gate]:
    """Outputs on the same rows, and what would be decided by them.

    Args:
        parent: (n, outputs), the network's own, without what a readout adds.
        ours: likewise.
        readout: what makes a forecast of probabilities.
        limits: what must hold.
        slope: of our forecast's `shrink` over the parent's.
    """
    if parent.shape != ours.shape:
        return [broken(f"gives {ours.shape[1]} outputs, its parent {parent.shape[1]}", "outputs")]
    finite = np.isfinite(ours).all(axis=1)
    if not finite.all():
        share = float(finite.mean())
        return [Gate(name="finite", value=share, limit=1.0, passed=False, note="NaN or infinity")]
    found = [at_least("correlation", _least_correlation(parent, ours), limits.correlation)]
    if are_probabilities(parent):
        found.append(_kl_gate(parent, ours, limits))
        found.append(_agreement("argmax", parent.argmax(axis=1), ours.argmax(axis=1), limits))
    return [*found, decision_gate(parent, ours, readout, limits, slope)]


def _kl_gate(parent: Floats, ours: Floats, limits: Limits) -> Gate:
    kl = divergence(parent, ours)
    if not limits.is_lesser:
        return at_most("kl", kl, limits.kl)
    still = divergence(parent, np.broadcast_to(parent.mean(axis=0), parent.shape))
    return at_most("kl", kl, min(limits.kl, still), f"{still:.3g} by FULL's own mean")


def decision_gate(
    parent: Floats,
    ours: Floats,
    readout: Readout | None,
    limits: Limits = PARTS,
    slope: float = 1.0,
) -> Gate:
    """Share of rows on the same side: long, short, or no forecast worth a side.

    A forecast is worth a side where it is beyond the parent's median, in size: half of the rows.
    """
    a, b = forecast_of(parent, readout), forecast_of(ours, readout) * slope
    threshold = float(np.median(np.abs(a)))
    theirs, mine = (
        np.where(np.abs(f) > threshold, np.sign(f), 0.0).astype(np.int64) for f in (a, b)
    )
    opposite = int((theirs * mine < 0).sum())
    note = f"{opposite} of {len(a)} rows on the opposite side" if opposite else ""
    return _agreement("decisions", theirs, mine, limits, note)


def _agreement(
    name: str,
    parent: npt.NDArray[np.int64],
    ours: npt.NDArray[np.int64],
    limits: Limits,
    note: str = "",
) -> Gate:
    """Share of rows alike; a lesser model must be alike more often than by chance."""
    same, limit = float((parent == ours).mean()), float(getattr(limits, name))
    if limits.is_lesser:
        chance = sum(
            float((parent == each).mean()) * float((ours == each).mean())
            for each in np.unique(parent)
        )
        note = "; ".join(filter(None, (f"{chance:.2f} by chance", note)))
        limit = max(limit, chance)
    return at_least(name, same, limit, note)


def latency_gate(ratio: Ratio, limits: Limits = PARTS) -> Gate:
    """Ours over the parent's: the median over short runs that took turns, and its interval.

    A form of the same network fails where the whole interval is beyond the limit, so that a busy
    machine's luck does not; a lesser one where any of it is.
    """
    note = (
        f"{ratio.low:.3f} to {ratio.high:.3f}; {ratio.new_ns / 1e3:.3g} us, its parent "
        f"{ratio.old_ns / 1e3:.3g} us, medians of a step"
    )
    end = ratio.high if limits.is_lesser else ratio.low
    passed = end < limits.latency if limits.is_lesser else end <= limits.latency
    return Gate(
        name="latency", value=ratio.value, limit=limits.latency, passed=bool(passed), note=note
    )


def budget_gate(p99_ns: float, budget_ns: int) -> Gate:
    """What a warm row costs at p99 [ns]."""
    return at_most("budget", p99_ns, float(budget_ns), "ns a row at p99, warm")


def pnl_gate(parent: Gains, ours: Gains, limits: Limits = PARTS) -> Gate:
    """What is gained beside the parent, paired by time.

    Value and limit are in half-widths of the 95 % interval of the parent's own P&L: what is not to
    be told from luck anyway. The interval of the difference is a block bootstrap's. Its lower end
    counts; of a lesser model, which may lose a little, the upper: it fails where it is shown to
    lose more.
    """
    _, at, here = np.intersect1d(parent.ts, ours.ts, return_indices=True)
    if len(at) < LEAST_SAMPLES:
        return not_judged("pnl", f"{len(at)} samples of P&L, want {LEAST_SAMPLES}: replay longer")
    base, difference = parent.gain[at], ours.gain[here] - parent.gain[at]
    _, own = block_bootstrap(base)
    _, apart = block_bootstrap(difference)
    half = float(np.diff(np.quantile(own, [0.025, 0.975]))[0]) / 2
    low, high = (float(v) for v in np.quantile(apart, [0.025, 0.975]))
    note = (
        f"difference {difference.sum():.4g} ({low:.4g} to {high:.4g}), parent {base.sum():.4g} "
        f"+- {half:.4g} [currency]; {ours.fills} fills, parent {parent.fills}"
    )
    if parent.fills < LEAST_FILLS or not half:
        return not_judged("pnl", f"want {LEAST_FILLS} fills of the parent: replay longer; {note}")
    if limits.is_lesser and not difference.any():
        # Another model, and nothing was traded otherwise: the strategy is deaf to both.
        return not_judged("pnl", f"the strategy does the same whatever the model says; {note}")
    return at_least("pnl", (high if limits.is_lesser else low) / half, limits.pnl, note)


def are_probabilities(outputs: Floats) -> bool:
    """Whether each row is a distribution over several classes."""
    sums = outputs.sum(axis=1)
    return bool(outputs.shape[1] > 1 and (outputs >= 0).all() and np.allclose(sums, 1, atol=1e-4))


def forecast_of(outputs: Floats, readout: Readout | None) -> Floats:
    """Up to a factor, (n,)."""
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


def at_least(name: str, value: float, limit: float, note: str = "") -> Gate:
    return Gate(name=name, value=value, limit=limit, passed=bool(value >= limit), note=note)


def at_most(name: str, value: float, limit: float, note: str = "") -> Gate:
    return Gate(name=name, value=value, limit=limit, passed=bool(value <= limit), note=note)


def worst(gates: Sequence[Gate]) -> str:
    """Failed gates, in words; empty: none failed."""
    return "; ".join(str(gate) for gate in gates if gate.failed)

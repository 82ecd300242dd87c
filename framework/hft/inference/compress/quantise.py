"""8-bit weights, layer by layer: where they cost too much, a layer stays in float.

`dynamic` keeps every layer's weights in 8 bits, a scale a column; the native kernels find each
row's own scale as they run, so that nothing has to be calibrated for them. `quantise` measures on
calibration rows what that does to the outputs, by the kernels that will run, and leaves a layer
wide whose error is large. `activation_ranges` is for formats whose scales are fixed beforehand
(Q/DQ).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from hft.errors import ConfigError
from hft.inference.compress.calibration import Calibration
from hft.inference.compress.stack import Stack
from hft.inference.dataset.in_memory import Floats, Rows
from hft.inference.training.task import Task


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What 8 bits may do to the outputs, of one layer alone and of all together."""

    kl: float = 0.01
    """Mean Kullback-Leibler divergence from the float outputs [nats]; of a softmax."""
    noise: float = 0.02
    """Mean square of the error, as a share of the outputs' variance over the rows."""
    change: float = 0.1
    """Largest change of an output on any row."""


@dataclass(frozen=True, slots=True)
class Error:
    """How far outputs are from those in float."""

    kl: float
    """0 where outputs are not a softmax's."""
    noise: float
    change: float

    def beyond(self, limits: Limits) -> str:
        """Which limits it is beyond, in words; empty: none."""
        found = [
            f"{name} {getattr(self, name):.3g} > {getattr(limits, name):g}"
            for name in ("kl", "noise", "change")
            if getattr(self, name) > getattr(limits, name)
        ]
        return ", ".join(found)


@dataclass(frozen=True, slots=True)
class LayerError:
    """What 8 bits in one layer do, all others in float."""

    layer: int
    """From 1."""
    kind: str
    units: int
    error: Error
    precision: str
    why: str = ""
    """Why it stays in float."""


@dataclass(frozen=True, slots=True)
class Quantised:
    """A network in the precisions that were found fit."""

    stack: Stack
    layers: tuple[LayerError, ...]
    error: Error
    """Of the network as it is."""
    rows: Calibration

    @property
    def wide(self) -> tuple[int, ...]:
        """Layers that stay in float, from 0."""
        return tuple(n for n, e in enumerate(self.stack.layers) if e.precision == "fp32")

    def table(self) -> list[str]:
        """For people, a line a layer and one for the whole."""
        lines = ["layer                 KL     noise    change"]
        for row in self.layers:
            name = f"{row.layer} {row.kind} {row.units}"
            why = f"  {row.why}" if row.why else ""
            lines.append(f"{name:14} {_figures(row.error)}  {row.precision}{why}")
        return [*lines, f"{'as built':14} {_figures(self.error)}"]


@dataclass(frozen=True, slots=True)
class Range:
    """Between what values a layer's outputs lie."""

    low: float
    high: float

    @property
    def reach(self) -> float:
        """Largest distance from zero: what a symmetric scale must hold."""
        return max(abs(self.low), abs(self.high))


def dynamic(stack: Stack) -> Stack:
    """All weights in 8 bits."""
    return stack.in_precisions(("int8",) * len(stack.layers))


def quantise(
    stack: Stack, task: Task, rows: Calibration, limits: Limits | None = None
) -> Quantised:
    """8 bits wherever the outputs bear it.

    A layer whose 8 bits alone break a limit stays in float. Of the rest the one with the most
    noise follows, as long as all together break one.

    Args:
        stack: what to quantise; precisions that it has are not looked at.
        task: has the rows.
        rows: of `calibration`.
        limits: of the outputs' error.
    """
    limits = limits or Limits()
    count = len(stack.layers)
    exact = _outputs(stack, ("fp32",) * count, task, rows)
    alone = []
    for n in range(count):
        one = tuple("int8" if at == n else "fp32" for at in range(count))
        alone.append(error_of(stack, _outputs(stack, one, task, rows), exact))
    why = {n: words for n, error in enumerate(alone) if (words := error.beyond(limits))}
    while True:
        chosen = tuple("fp32" if n in why else "int8" for n in range(count))
        error = error_of(stack, _outputs(stack, chosen, task, rows), exact)
        narrow = [n for n in range(count) if n not in why]
        if not narrow or not (words := error.beyond(limits)):
            break
        why[max(narrow, key=lambda n: alone[n].noise)] = f"all together: {words}"
    layers = tuple(
        LayerError(n + 1, entry.kind, entry.units, alone[n], chosen[n], why.get(n, ""))
        for n, entry in enumerate(stack.layers)
    )
    return Quantised(stack.in_precisions(chosen), layers, error, rows)


def error_of(stack: Stack, outputs: Floats, exact: Floats) -> Error:
    """Of outputs against those in float, (n, outputs) each."""
    away = outputs - exact
    power = float(((exact - exact.mean(axis=0)) ** 2).mean())
    noise = float((away**2).mean())
    return Error(
        kl=divergence(exact, outputs) if stack.gives_probabilities else 0.0,
        # Outputs that never vary carry nothing that noise could drown.
        noise=noise / power if power > 0 else 0.0,
        change=float(np.abs(away).max()),
    )


def divergence(p: Floats, q: Floats) -> float:
    """Mean Kullback-Leibler divergence of q from p by row [nats]."""
    tiny = 1e-12
    ratio = np.log(np.maximum(p, tiny)) - np.log(np.maximum(q, tiny))
    # Rows that are not whole to the last digit would give -1e-10 for equal ones.
    return max(0.0, float((p * ratio).sum(axis=1).mean()))


def activation_ranges(
    stack: Stack, rows: Rows, cut: slice, percentile: float = 100.0
) -> list[Range]:
    """Ranges of what each layer is given, and of the outputs: one more than there are layers.

    Args:
        stack: run in float, whatever precisions it has.
        rows: calibration rows.
        cut: which of them.
        percentile: share of values that lie within, in percent and symmetric at both ends; 100:
            the least and the largest.

    Raises:
        ConfigError: the percentile is out of range.
    """
    if not 50.0 < percentile <= 100.0:
        raise ConfigError(f"percentile is {percentile:g}: want more than 50 and at most 100")
    wide = stack.in_precisions(("fp32",) * len(stack.layers))
    given: Sequence[Floats] = [wide.scaled(rows.x[cut]).astype(np.float64)]
    given = [*given, *(wide.outputs(rows, cut, upto=n + 1) for n in range(len(stack.layers)))]
    ends = (100.0 - percentile) / 2
    return [Range(*(float(v) for v in np.percentile(x, (ends, 100.0 - ends)))) for x in given]


def _outputs(stack: Stack, precisions: tuple[str, ...], task: Task, rows: Calibration) -> Floats:
    return stack.in_precisions(precisions).outputs(task.rows, rows.cut)


def _figures(error: Error) -> str:
    return f"{error.kl:9.2e} {error.noise:9.2e} {error.change:9.2e}"

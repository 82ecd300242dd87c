"""What is done to native layers before they are exported: fewer units, weights and bits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

import msgspec

from hft.errors import ConfigError, DataError, ModelError
from hft.inference.build.subject import Subject
from hft.inference.bundle import Weights
from hft.inference.card import Card, LesserTier
from hft.inference.compress.calibration import Calibration, calibration
from hft.inference.compress.distil import DistilConfig, Teacher, distil, refit_head
from hft.inference.compress.prune_units import prune_units
from hft.inference.compress.prune_weights import prune_weights
from hft.inference.compress.quantise import dynamic, quantise
from hft.inference.compress.sensitivity import sensitivity_of
from hft.inference.compress.stack import Stack
from hft.inference.compress.train_on import Tool, TrainOn, train_on
from hft.inference.training.task import Report, Task

Precision = Literal["fp32", "int8", "auto"]


@dataclass(frozen=True, slots=True)
class Cuts:
    """What is to be taken away."""

    units: float = 0.0
    """Share of each hidden layer's units."""
    weights: float = 0.0
    """Share of each array's weights that become 0."""
    precision: Precision | None = None
    """Of the native weights; None: as the card has it."""
    train_on: Tool | None = None
    """Trains what is left, with `masks` or `tfmot`; None: the last layer is learned anew."""

    @property
    def any(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.units or self.weights or self.precision)


@dataclass(frozen=True, slots=True)
class Narrow:
    """What 8-bit parts are made with."""

    rows: Calibration
    task: Task
    wide: tuple[int, ...]
    """Layers, from 0, that stay in float."""


@dataclass(frozen=True, slots=True)
class Taught:
    """LIGHT and MICRO as they were distilled."""

    card: Card
    weights: Mapping[LesserTier, Weights] = field(default_factory=dict)


def stack_of_subject(subject: Subject) -> Stack:
    card = subject.card
    return Stack(card.layers, subject.weights, card.scaler, card.window_rows)


def in_float(subject: Subject) -> Stack:
    """Its native layers, none in 8 bits: what forms are held against."""
    stack = stack_of_subject(subject)
    return stack.in_precisions(("fp32",) * len(stack.layers))


def smaller(
    subject: Subject, cuts: Cuts, task: Task | None, narrow: Narrow | None, report: Report
) -> Subject:
    """The subject with less in it.

    Raises:
        ConfigError: it has no native layers to take anything from, or no rows to calibrate on.
    """
    if cuts.train_on and not (cuts.units or cuts.weights):
        raise ConfigError("--train-on trains what pruning leaves: give --prune-units or -weights")
    if not cuts.any:
        return subject
    if not subject.card.layers:
        raise ConfigError(
            f"only native layers can be pruned or kept in 8 bits, the model has none: "
            f"{subject.why_not}"
        )
    whole = stack = stack_of_subject(subject)
    if cuts.units:
        rows = (task.rows, task.parts.calibrate) if task else (None, None)
        pruned = prune_units(stack, cuts.units, rows=rows[0], cut=rows[1])
        for row in pruned.table:
            report(str(row))
        stack = pruned.stack
    if cuts.weights:
        stack = prune_weights(stack, cuts.weights)
        report(f"{cuts.weights:.0%} of the weights are 0: dense kernels are no faster for it")
    if cuts.units or cuts.weights:
        stack = _learned_anew(stack, whole, cuts, task, report)
    stack = _in_bits(stack, cuts.precision, narrow, report)
    card = msgspec.structs.replace(subject.card, layers=stack.layers)
    return replace(subject, card=card, weights=stack.weights)


def _learned_anew(
    stack: Stack, whole: Stack, cuts: Cuts, task: Task | None, report: Report
) -> Stack:
    """What is left, taught to say what the whole network said."""
    if task is None:
        if cuts.train_on:
            raise ConfigError("--train-on needs rows to learn on: give --dataset or --data")
        return stack
    teacher = partial(whole.outputs, task.rows)
    if cuts.train_on:
        report(f"training what is left ({cuts.train_on})")
        return train_on(stack, task, cuts.weights, teacher, TrainOn(tool=cuts.train_on))
    if cuts.weights or not stack.gives_probabilities or len(stack.layers) < 2:
        return stack
    report("learning the last layer anew")
    return refit_head(stack, task, teacher, DistilConfig())


def _in_bits(
    stack: Stack, precision: Precision | None, narrow: Narrow | None, report: Report
) -> Stack:
    if precision in (None, "fp32"):
        return stack.in_precisions(("fp32",) * len(stack.layers)) if precision else stack
    if narrow is None:
        raise ConfigError(
            f"--precision {precision} needs rows to calibrate on: give --dataset, --data or "
            "--calibration"
        )
    found = quantise(stack, narrow.task, narrow.rows)
    for line in found.table():
        report(line)
    return found.stack if precision == "auto" else dynamic(stack)


def narrow_of(subject: Subject, task: Task | None, cut: slice | None, report: Report) -> Narrow:
    """Calibration rows, and the layers that do not bear 8 bits on them.

    Raises:
        ConfigError: no rows, or no native layers.
        DataError: the rows have not seen every weather.
    """
    if task is None:
        raise ConfigError(
            "8 bits need rows to calibrate on: give --dataset, --data or --calibration"
        )
    if not subject.card.layers:
        raise ConfigError(f"8 bits need native layers: {subject.why_not}")
    rows = calibration(task, cut)
    report(str(rows))
    return Narrow(rows, task, quantise(stack_of_subject(subject), task, rows).wide)


def taught(
    card: Card, tiers: Sequence[LesserTier], task: Task, teacher: Teacher, report: Report
) -> Taught:
    """LIGHT and MICRO, which repeat what FULL says."""
    entries, weights, metrics = dict(card.tiers), {}, dict(card.metrics)
    for tier in tiers:
        made = distil(tier, task, card.scaler, card.readout, teacher, report=report)
        entries[tier], weights[tier] = made.entry, made.weights
        metrics |= made.metrics
    return Taught(msgspec.structs.replace(card, tiers=entries, metrics=metrics), weights)


def sensitivity(subject: Subject, task: Task | None, report: Report) -> float:
    """What bounds the reuse of answers; 0: not measured, or the model carries state."""
    if task is None or not subject.card.layers:
        return 0.0
    try:
        found = sensitivity_of(stack_of_subject(subject), task)
    except (ModelError, DataError) as error:
        report(f"no bound for the reuse of answers: {error}")
        return 0.0
    report(f"an answer moves by at most {found.value:.3g} a scaled input: {found.how}")
    return found.value

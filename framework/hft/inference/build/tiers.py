"""Is a lesser tier worth having? LIGHT and MICRO against FULL, and against the labels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from hft.errors import ConfigError
from hft.inference.build.forms import Row, of_tier, readout_of
from hft.inference.build.gates import (
    Limits,
    at_least,
    at_most,
    forecast_of,
    not_judged,
    output_gates,
)
from hft.inference.build.judge import Judge, Parent
from hft.inference.build.parents import Floats
from hft.inference.build.smaller import stack_of_subject
from hft.inference.build.subject import Subject
from hft.inference.card import Card, Gate, LesserTier, Readout
from hft.inference.dataset.classes import OUTPUTS
from hft.inference.training.metrics import measure
from hft.inference.training.scores import correlation
from hft.inference.training.task import Task

LEAST_OF_A_WEATHER = 100
"""Rows by which a forecast is judged in calm or in storm."""


@dataclass(frozen=True, slots=True)
class TierLimits:
    """What a lesser tier must hold against FULL; what it loses is printed, whatever the limits."""

    correlation: float = 0.5
    """Least, of the forecast with FULL's, in calm or in storm."""
    kl: float = 0.2
    """Most [nats], and less than FULL's own mean, which says nothing of a row, has."""
    argmax: float = 0.5
    """Least share of rows with FULL's most probable class, and more than by chance."""
    decisions: float = 0.5
    """Least share of rows with FULL's side, and more than by chance."""
    latency: float = 1.0
    """Of FULL's; the whole interval has to lie below."""
    pnl: float = -0.5
    """Of the difference to FULL, in half-widths of FULL's own interval: its upper end counts."""
    log_loss: float = 1.0
    """Most on the labels, of what training's shares of the classes have."""
    auc: float = 0.5
    """Least of up and down."""

    @property
    def of_outputs(self) -> Limits:
        """Those held against FULL's outputs."""
        own = {field.name for field in fields(Limits)}
        values = {name: value for name, value in asdict(self).items() if name in own}
        return Limits(**values, is_lesser=True)


def _number(value: str, text: str) -> float:
    with suppress(ValueError):
        if not math.isnan(number := float(value)):
            return number
    raise ConfigError(f"--tier-limit {text}: want a number, {text.partition('=')[0]}=0.5")


def limits_of(texts: Sequence[str]) -> TierLimits:
    """`("kl=0.1", "auc=0.55")`.

    Raises:
        ConfigError: no gate of that name, or no number.
    """
    limits = TierLimits()
    names = [field.name for field in fields(TierLimits)]
    for text in texts:
        name, _, value = text.partition("=")
        if name not in names:
            raise ConfigError(f"--tier-limit {text}: there are {', '.join(names)}")
        limits = replace(limits, **{name: _number(value, text)})
    return limits


@dataclass(frozen=True, slots=True)
class Full:
    """What tiers are held against."""

    outputs: Floats | None
    """On the test slice; None: no rows were given."""
    folder: Path | None
    """Trial bundle that runs it; None: there is none."""


def judge_tier(
    tier: LesserTier,
    subject: Subject,
    full: Full,
    judge: Judge,
    task: Task | None,
    limits: TierLimits,
) -> Row:
    """Holds the native form of a tier against FULL on rows that neither was fitted on.

    All of the test slice, not the judge's rows alone: a lesser tier is another model, and what it
    is worth differs by weather.

    Args:
        tier: which.
        subject: has it.
        full: what it repeats.
        judge: times it and has the market.
        task: rows with labels; None: none were given.
        limits: what must hold.
    """
    alone = of_tier(subject, tier)
    size = sum(a.nbytes for of in alone.weights for a in of.values())
    if task is None or full.outputs is None:
        gates = (not_judged("outputs", "no rows: give --dataset or --data"),)
        return Row(tier.lower(), size, "", gates, tier=tier)
    cut = task.parts.test
    p, known = stack_of_subject(alone).outputs(task.rows, cut), task.weight[cut] > 0
    found = output_gates(
        full.outputs[known],
        p[known],
        subject.card.readout,
        limits.of_outputs,
        _slope(subject, tier),
    )
    if found[0].name == "correlation":
        storm = task.rows.storm[cut][known]
        found[0] = correlation_gate(
            found[0], full.outputs[known], p[known], storm, subject.card.readout
        )
    found += label_gates(alone.card, p, task, limits)
    parent = Parent(None, full.folder, full.folder, limits.of_outputs)
    trial = judge.try_form(judge.bundle(tier, alone.card, alone.weights), parent, None)
    if full.folder is None:
        found.append(not_judged("latency", "no part of FULL ran"))
    return Row(tier.lower(), size, "", (*found, *trial.gates), trial.step_ns, tier)


def correlation_gate(
    whole: Gate, full: Floats, p: Floats, storm: npt.NDArray[np.bool_], readout: Readout | None
) -> Gate:
    """Of the forecast, in the weather in which it is less.

    Over all rows outputs go together for knowing calm from storm alone; of a handful of rows in one
    weather they go together or not by luck.

    Args:
        whole: the gate of outputs on all rows.
        full: (n, outputs) of FULL.
        p: likewise of the tier.
        storm: (n,).
        readout: what makes a forecast of outputs.
    """
    ours, theirs = forecast_of(p, readout), forecast_of(full, readout)
    weathers = {"calm": ~storm, "storm": storm}
    seen = {name: at for name, at in weathers.items() if at.sum() >= LEAST_OF_A_WEATHER}
    seen = seen or {"all rows": np.ones(len(storm), bool)}
    found = {name: correlation(ours[at], theirs[at]) for name, at in seen.items()}
    told = ", ".join(f"{name} {value:.3f}" for name, value in found.items())
    note = f"of the forecast, {told}; least of an output, all rows {whole.value:.3f}"
    return at_least(whole.name, min(found.values()), whole.limit, note)


def _slope(subject: Subject, tier: LesserTier) -> float:
    full, own = subject.card.readout, readout_of(subject, tier)
    return own.shrink / full.shrink if full and own and full.shrink else 1.0


def label_gates(card: Card, p: Floats, task: Task, limits: TierLimits) -> list[Gate]:
    """A tier on its own against what happened in the test slice.

    Args:
        card: of the tier as a model of its own.
        p: what it says there, (n, outputs).
        task: rows with labels.
        limits: what must hold.
    """
    if card.outputs != OUTPUTS or card.readout is None:
        return [not_judged("log_loss", f"labels are {', '.join(OUTPUTS)}, outputs others")]
    told = measure(task, p, card.readout)
    loss, shares = told["log_loss"], told["log_loss_of_shares"]
    note = f"{loss:.4g} nats, the classes' shares {shares:.4g}"
    found = [at_most("log_loss", loss / shares, limits.log_loss, note)]
    sides = [told[name] for name in ("auc_up", "auc_down") if name in told]
    if sides:
        found.append(at_least("auc", min(sides), limits.auc, "the lesser of up and down"))
    return found


def with_gates(card: Card, found: Mapping[LesserTier, tuple[Gate, ...]]) -> Card:
    """The card with what each tier held."""
    tiers = {
        name: msgspec.structs.replace(entry, gates=found.get(name, entry.gates))
        for name, entry in card.tiers.items()
    }
    return msgspec.structs.replace(card, tiers=tiers)

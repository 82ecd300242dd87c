"""Pruning as `hft build` does it: something is taken out, and what is left learns to do without."""

from __future__ import annotations

from functools import partial

import msgspec

from hft.inference.compress.distil import DistilConfig, refit_head
from hft.inference.compress.lessons import Teacher
from hft.inference.compress.prune_units import prune_units
from hft.inference.compress.prune_weights import NO_LATENCY, prune_weights
from hft.inference.compress.quantise import divergence
from hft.inference.compress.stack import Stack
from hft.inference.compress.train_on import Tool, TrainOn, has_tool, require_tool, train_on
from hft.inference.task import Report, Task


class Pruning(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to take out, and how what is left learns."""

    units: float = 0.0
    """Share of each hidden layer's units."""
    weights: float = 0.0
    """Share of each matrix's weights that become zero."""
    tool: Tool | None = None
    """None: masks where Keras is installed, else the last layer alone is learned anew."""
    training: TrainOn = TrainOn()
    """Its tool is not looked at."""


def pruned(stack: Stack, task: Task | None, how: Pruning, report: Report = print) -> Stack:
    """A network with less in it that says nearly what it said.

    Without rows, or without a dense softmax at the end, nothing can be learned: units go by their
    weights' norms, weights by their size. Else the last layer is learned anew, all layers are
    trained on, and what is nearest to the network as it was, on the calibration slice, is kept.

    Args:
        stack: what to prune.
        task: labelled rows, or none.
        how: see `Pruning`.
        report: told how it goes, a line at a time.

    Raises:
        ConfigError: a share is out of range, there is nothing to prune, or a tool that was asked
            for is not installed.
    """
    if how.tool is not None:
        require_tool(how.tool)
    less = stack
    if how.units:
        rows = (task.rows, task.parts.calibrate) if task else (None, None)
        found = prune_units(stack, how.units, rows=rows[0], cut=rows[1])
        for row in found.table:
            report(str(row))
        less = found.stack
    if how.weights:
        report(NO_LATENCY)
    bare = prune_weights(less, how.weights)
    if task is None or not (how.units or how.weights) or not _learns(stack):
        return bare
    teacher = partial(stack.outputs, task.rows)
    tries = {"as cut": bare, "new last layer": _new_head(bare, task, teacher, how.weights)}
    tool = how.tool or ("masks" if has_tool("masks") else None)
    if tool is None:
        report("without Keras (extra `train`) only the last layer is learned anew")
    else:
        training = msgspec.structs.replace(how.training, tool=tool)
        tries[f"trained on, {tool}"] = train_on(less, task, how.weights, teacher, training)
    return _nearest(tries, task, teacher, report)


def _learns(stack: Stack) -> bool:
    return stack.gives_probabilities and stack.layers[-1].kind == "dense" and len(stack.layers) > 1


def _new_head(stack: Stack, task: Task, teacher: Teacher, zeros: float) -> Stack:
    found = refit_head(stack, task, teacher, DistilConfig(ridge=1e-6))
    return prune_weights(found, [0.0] * (len(stack.layers) - 1) + [zeros]) if zeros else found


def _nearest(tries: dict[str, Stack], task: Task, teacher: Teacher, report: Report) -> Stack:
    cut = task.parts.calibrate
    exact = teacher(cut)
    away = {name: divergence(exact, stack.outputs(task.rows, cut)) for name, stack in tries.items()}
    best = min(away, key=lambda name: away[name])
    told = ", ".join(f"{name} {value:.2g}" for name, value in away.items())
    report(f"KL from what it said before: {told}; kept: {best}")
    return tries[best]

"""Cheaper models that repeat the answers of FULL: LIGHT (three dense layers) and MICRO (linear).

Both see the newest row alone: they have no state to warm up, so a step down to them is at once, and
what FULL knows of the past is lost. They learn FULL's probabilities, not the labels, which are
noise around them; each row counts for as long as it was the newest, so that a storm's many rows do
not drown the calm. MICRO is convex: one optimum, found by L-BFGS, without Keras.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from hft.errors import ConfigError, ModelError
from hft.inference.bundle import Weights
from hft.inference.card import LayerEntry, LesserTier, Readout, Scaler, TierEntry
from hft.inference.compress.quantise import divergence
from hft.inference.compress.stack import Stack, scaled
from hft.inference.dataset import Floats
from hft.inference.keras_models import keras_seeded
from hft.inference.scores import correlation, slope
from hft.inference.task import Report, Task

Teacher = Callable[[slice], Floats]
"""Probabilities of FULL on the rows of a cut, (n, outputs)."""
BLOCKS = 40
"""That training rows are taken in where there are more than are used."""


class DistilConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the tiers learn."""

    units: tuple[int, int] = (32, 16)
    """Hidden layers of LIGHT."""
    epochs: int = 5
    """Of LIGHT; the one nearest to FULL on the calibration slice is kept."""
    learning_rate: float = 3e-3
    """Of LIGHT."""
    ridge: float = 1e-4
    """Penalty on MICRO's weights: half their squares times it."""
    at_most: int = 200_000
    """Training rows used, in evenly spaced blocks."""
    seed: int = 1
    """Of LIGHT."""


@dataclass(frozen=True, slots=True)
class Distilled:
    """A cheaper tier."""

    tier: LesserTier
    stack: Stack
    entry: TierEntry
    """For the card; `save_bundle` fills in the hash."""
    metrics: dict[str, float]
    """Against FULL on the test slice, by weather: `light_calm_kl`."""

    @property
    def weights(self) -> Weights:
        """For `save_bundle`."""
        return self.stack.weights


@dataclass(frozen=True, slots=True)
class Lesson:
    """Training rows and what FULL says of them."""

    x: npt.NDArray[np.float32]
    """(n, k): scaled rows, or what hidden layers make of them."""
    target: Floats
    """(n, outputs)."""
    weight: Floats
    """(n,), mean 1."""


def distil(
    tier: LesserTier,
    task: Task,
    scaler: Scaler,
    readout: Readout | None,
    teacher: Teacher,
    config: DistilConfig | None = None,
    report: Report = print,
) -> Distilled:
    """Learns on the training slice, reads out by the calibration slice, is measured on the test's.

    Args:
        tier: LIGHT needs the extra `train`, MICRO does not.
        task: labelled rows; labels serve for the readout alone.
        scaler: of the bundle; a tier shares its inputs.
        readout: of FULL; the tier gets a slope of its own.
        teacher: what to repeat.
        config: see `DistilConfig`.
        report: told how it goes, a line at a time.

    Raises:
        ConfigError: LIGHT without Keras.
        ModelError: the teacher's outputs are no probabilities.
    """
    config = config or DistilConfig()
    lesson = lesson_of(task, scaler, teacher, config.at_most)
    if tier == "MICRO":
        stack = micro(lesson, scaler, config.ridge)
    else:
        stack = _light(lesson, scaler, task, _answers(teacher, task.parts.calibrate), config)
    own = None if readout is None else _readout(stack, task, readout)
    metrics = compare(stack, own, task, _answers(teacher, task.parts.test), readout)
    report(
        f"{tier}: {stack.parameters} weights; on test rows argmax as FULL in "
        f"{metrics['argmax']:.1%}, KL {metrics['kl']:.4f}"
    )
    file = f"{tier.lower()}.npz"
    entry = TierEntry(weights=file, weights_sha256="", layers=stack.layers, readout=own)
    named = {f"{tier.lower()}_{name}": value for name, value in metrics.items()}
    return Distilled(tier, stack, entry, named)


def lesson_of(task: Task, scaler: Scaler, teacher: Teacher, at_most: int) -> Lesson:
    """Rows of the training slice, evenly chosen, and the teacher's word on them."""
    return _lesson(task, lambda cut: scaled(task.rows.x[cut], scaler), teacher, at_most)


def _lesson(task: Task, inputs: Callable[[slice], Any], teacher: Teacher, at_most: int) -> Lesson:
    blocks = _blocks(task.parts.train, at_most)
    weight = np.concatenate([task.rows.weight[cut] for cut in blocks])
    return Lesson(
        np.concatenate([np.asarray(inputs(cut), np.float32) for cut in blocks]),
        np.concatenate([_answers(teacher, cut) for cut in blocks]),
        weight / weight.mean(),
    )


def _blocks(train: slice, at_most: int) -> list[slice]:
    # Blocks, not single rows: to answer for one row a teacher with memory reads those before it.
    if train.stop - train.start <= at_most:
        return [train]
    size = max(at_most // BLOCKS, 1)
    starts = np.linspace(train.start, train.stop - size, at_most // size).astype(np.int64)
    return [slice(start, start + size) for start in starts.tolist()]


def micro(lesson: Lesson, scaler: Scaler, ridge: float) -> Stack:
    """The linear softmax that is nearest to the target."""
    return _dense([(*softmax_fit(lesson, ridge), "softmax")], scaler)


def refit_head(stack: Stack, task: Task, teacher: Teacher, config: DistilConfig) -> Stack:
    """The same network with its last layer learned anew, to say what the teacher says.

    What pruning takes away of the layers before can often be said by those that are left. It is
    convex and takes seconds; training on, with Keras, can do more.

    Args:
        stack: ends with a dense softmax.
        task: rows; the training slice is used.
        teacher: the network that it was made from.
        config: `ridge` and `at_most` are used.

    Raises:
        ConfigError: another last layer.
    """
    head = stack.layers[-1]
    if (head.kind, head.activation) != ("dense", "softmax") or len(stack.layers) < 2:
        raise ConfigError("only a dense softmax behind other layers can be learned anew")
    hidden = partial(stack.outputs, task.rows, upto=len(stack.layers) - 1)
    kernel, bias = softmax_fit(_lesson(task, hidden, teacher, config.at_most), config.ridge)
    weights = {"kernel": kernel.astype(np.float32), "bias": bias.astype(np.float32)}
    return replace(stack, weights=[*stack.weights[:-1], weights])


def softmax_fit(lesson: Lesson, ridge: float) -> tuple[Floats, Floats]:
    """The linear map whose softmax has the least mean cross entropy to the target, and penalty.

    Returns:
        (k, outputs) and (outputs,).
    """
    from scipy.optimize import minimize

    x, target = lesson.x.astype(np.float64), lesson.target
    share = (lesson.weight / lesson.weight.sum())[:, None]
    inputs, outputs = x.shape[1], target.shape[1]

    def loss(flat: Floats) -> tuple[float, Floats]:
        w, b = flat[:-outputs].reshape(inputs, outputs), flat[-outputs:]
        z = x @ w + b
        z -= z.max(axis=1, keepdims=True)
        log_p = z - np.log(np.exp(z).sum(axis=1, keepdims=True))
        away = share * (np.exp(log_p) - target)
        value = float(-(share * target * log_p).sum()) + ridge / 2 * float((w**2).sum())
        return value, np.concatenate([(x.T @ away + ridge * w).ravel(), away.sum(axis=0)])

    start = np.zeros((inputs + 1) * outputs)
    options = {"maxiter": 500, "ftol": 1e-12, "gtol": 1e-7}
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options=options).x
    w, b = found[:-outputs].reshape(inputs, outputs), found[-outputs:]
    return w, b - b.mean()  # a constant in all outputs says nothing


def _light(
    lesson: Lesson, scaler: Scaler, task: Task, later: Floats, config: DistilConfig
) -> Stack:
    keras = keras_seeded(config.seed)
    activations = ("relu", "relu", "softmax")
    sizes = (*config.units, lesson.target.shape[1])
    dense = [
        keras.layers.Dense(units, activation=activation)
        for units, activation in zip(sizes, activations, strict=True)
    ]
    model = keras.Sequential([keras.Input((lesson.x.shape[1],)), *dense])
    batch = 256
    steps = -(-len(lesson.x) // batch) * config.epochs
    rate = keras.optimizers.schedules.CosineDecay(config.learning_rate, steps, alpha=0.05)
    model.compile(
        optimizer=keras.optimizers.Adam(rate),
        loss="categorical_crossentropy",  # KL and a constant: the target's entropy
        weighted_metrics=[],
    )
    best: tuple[float, Stack | None] = (np.inf, None)
    for _ in range(config.epochs):
        model.fit(lesson.x, lesson.target, sample_weight=lesson.weight, batch_size=batch, verbose=0)
        arrays = [layer.get_weights() for layer in dense]
        stack = _dense([(*a, name) for a, name in zip(arrays, activations, strict=True)], scaler)
        away = divergence(later, stack.outputs(task.rows, task.parts.calibrate))
        if away < best[0]:
            best = (away, stack)
    if best[1] is None:
        raise ModelError("LIGHT did not learn: its outputs are not finite; take a smaller rate")
    return best[1]


def compare(
    stack: Stack,
    readout: Readout | None,
    task: Task,
    full: Floats,
    full_readout: Readout | None,
) -> dict[str, float]:
    """A tier against FULL on the test slice, all of it and by weather.

    Args:
        stack: the tier.
        readout: of the tier.
        task: has the rows.
        full: probabilities of FULL there, (n, outputs).
        full_readout: of FULL.

    Returns:
        `kl` [nats], `argmax` (share of rows with the same), and of the forecast `alpha`
        (correlation with FULL's) and `moves` (with what happened); with `calm_` and `storm_` as
        well.
    """
    cut = task.parts.test
    ours = stack.outputs(task.rows, cut)
    known, storm = task.weight[cut] > 0, task.rows.storm[cut]
    every = np.ones(len(ours), bool)
    found = {}
    for weather, at in (("", every), ("calm_", ~storm), ("storm_", storm)):
        if not at.any():
            continue
        found[weather + "kl"] = divergence(full[at], ours[at])
        found[weather + "argmax"] = float((full[at].argmax(1) == ours[at].argmax(1)).mean())
        if readout is None or full_readout is None:
            continue
        alpha = _alpha(ours, readout)
        found[weather + "alpha"] = correlation(alpha[at], _alpha(full, full_readout)[at])
        if (at & known).any():
            moves = task.moves[cut][at & known]
            found[weather + "moves"] = correlation(alpha[at & known], moves)
    return {name: round(value, 6) for name, value in found.items()}


def _readout(stack: Stack, task: Task, full: Readout) -> Readout:
    cut = task.parts.calibrate
    alpha = _alpha(stack.outputs(task.rows, cut), msgspec.structs.replace(full, shrink=1.0))
    shrink = float(np.clip(slope(alpha, task.moves[cut], task.weight[cut]), 0.0, 1.5))
    return msgspec.structs.replace(full, shrink=shrink)


def _alpha(p: Floats, readout: Readout) -> Floats:
    return np.asarray(readout.shrink * p @ np.array(readout.move_ticks))


def _answers(teacher: Teacher, cut: slice) -> Floats:
    p = np.asarray(teacher(cut), np.float64)
    if p.ndim != 2 or len(p) != cut.stop - cut.start:
        raise ModelError(
            f"the teacher gave {p.shape} for {cut.stop - cut.start} rows: want outputs of each"
        )
    if not np.isfinite(p).all() or p.min() < -1e-5 or np.abs(p.sum(axis=1) - 1).max() > 1e-3:
        raise ModelError(
            "the teacher's outputs are no probabilities: LIGHT and MICRO are made of a model that "
            "ends with a softmax"
        )
    return p


def _dense(layers: list[tuple[npt.NDArray[Any], npt.NDArray[Any], str]], scaler: Scaler) -> Stack:
    entries = tuple(
        LayerEntry(kind="dense", units=len(bias), activation=activation)  # type: ignore[arg-type]
        for _, bias, activation in layers
    )
    weights = [
        {"kernel": np.asarray(kernel, np.float32), "bias": np.asarray(bias, np.float32)}
        for kernel, bias, _ in layers
    ]
    return Stack(entries, weights, scaler)

"""Cheaper models that repeat the answers of FULL: LIGHT (three dense layers) and MICRO (linear).

Both see the newest row alone: they have no state to warm up, so a step down to them is at once, and
what FULL knows of the past is lost. They learn FULL's probabilities, not the labels, which are
noise around them; each row counts for as long as it was the newest, so that a storm's many rows do
not drown the calm. MICRO is convex: one optimum, found by L-BFGS, without Keras.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from hft.errors import ConfigError
from hft.inference.bundle import Weights
from hft.inference.card import LayerEntry, LesserTier, Readout, Scaler, TierEntry
from hft.inference.compress.lessons import Lesson, answers_of, lesson_of, softmax_fit
from hft.inference.compress.lessons import Teacher as Teacher
from hft.inference.compress.quantise import divergence
from hft.inference.compress.stack import Stack
from hft.inference.compress.train_on import TrainOn, train_on
from hft.inference.dataset.in_memory import Floats
from hft.inference.training.scores import correlation
from hft.inference.training.task import Report, Task, scaled

PIECE_ROWS = 8
"""That LIGHT learns together; 32 such pieces make a batch."""


class DistilConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the tiers learn."""

    units: tuple[int, int] = (32, 16)
    """Hidden layers of LIGHT."""
    epochs: int = 5
    """Of LIGHT."""
    learning_rate: float = 3e-3
    """Of LIGHT."""
    ridge: float = 1e-4
    """Penalty on MICRO's weights: half their squares times it."""
    head_ridge: float = 1e-6
    """The same where a last layer is learned anew."""
    at_most: int = 200_000
    """Training rows used, in evenly spaced blocks."""
    seed: int = 1
    """Of LIGHT."""
    limit_s: float = 600.0
    """For LIGHT's training, which has a process of its own."""


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
    if tier == "MICRO":
        x = partial(_scaled_rows, task, scaler)
        stack = micro(lesson_of(task, x, teacher, config.at_most), scaler, config.ridge)
    else:
        outputs = answers_of(teacher, task.parts.calibrate).shape[1]
        stack = _light(task, scaler, teacher, outputs, config)
    own = None if readout is None else _readout(stack, task, readout)
    metrics = compare(stack, own, task, answers_of(teacher, task.parts.test), readout)
    report(
        f"{tier}: {stack.parameters} weights; on test rows argmax as FULL in "
        f"{metrics['argmax']:.1%}, KL {metrics['kl']:.4f}"
    )
    file = f"{tier.lower()}.npz"
    entry = TierEntry(weights=file, weights_sha256="", layers=stack.layers, readout=own)
    named = {f"{tier.lower()}_{name}": value for name, value in metrics.items()}
    return Distilled(tier, stack, entry, named)


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
        config: `head_ridge` and `at_most` are used.

    Raises:
        ConfigError: another last layer.
    """
    head = stack.layers[-1]
    if (head.kind, head.activation) != ("dense", "softmax") or len(stack.layers) < 2:
        raise ConfigError("only a dense softmax behind other layers can be learned anew")
    hidden = partial(stack.outputs, task.rows, upto=len(stack.layers) - 1)
    kernel, bias = softmax_fit(lesson_of(task, hidden, teacher, config.at_most), config.head_ridge)
    weights = {"kernel": kernel.astype(np.float32), "bias": bias.astype(np.float32)}
    return replace(stack, weights=[*stack.weights[:-1], weights])


def _light(task: Task, scaler: Scaler, teacher: Teacher, outputs: int, how: DistilConfig) -> Stack:
    sizes = (len(scaler.mean), *how.units, outputs)
    rng = np.random.default_rng(how.seed)
    layers = []
    for (a, b), activation in zip(pairwise(sizes), ("relu", "relu", "softmax"), strict=True):
        reach = np.sqrt(6.0 / (a + b))  # Glorot and Bengio (2010), equation 16
        layers.append((rng.uniform(-reach, reach, (a, b)), np.zeros(b), activation))
    # A row stands alone here, so that short pieces only make the batches smaller.
    training = TrainOn(
        epochs=how.epochs,
        learning_rate=how.learning_rate,
        piece_rows=PIECE_ROWS,
        at_most=max(how.at_most // PIECE_ROWS, 1),
        seed=how.seed,
        limit_s=how.limit_s,
    )
    return train_on(_dense(layers, scaler), task, teacher=teacher, config=training)


def _scaled_rows(task: Task, scaler: Scaler, cut: slice) -> npt.NDArray[np.float32]:
    return scaled(task.rows.x[cut], scaler)


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
    return msgspec.structs.replace(full, shrink=task.shrink(alpha, cut))


def _alpha(p: Floats, readout: Readout) -> Floats:
    return np.asarray(readout.shrink * p @ np.array(readout.move_ticks))


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

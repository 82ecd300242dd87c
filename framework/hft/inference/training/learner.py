"""A model in training: state carried from span to span, or shuffled windows; and its gates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hft.errors import ConfigError
from hft.inference.dataset.classes import OUTPUTS
from hft.inference.dataset.in_memory import Floats
from hft.inference.training.batches import Carried, Windows
from hft.inference.training.fitted import Fitted
from hft.inference.training.keras_models import carried_model, weights_of, whole_model
from hft.inference.training.lanes import lanes_of, window_ends
from hft.inference.training.latency_table import LatencyTable, along
from hft.inference.training.model_spec import ModelSpec
from hft.inference.training.task import Task, TrainConfig, warm_up_rows
from hft.inference.training.unit_gates import (
    OPEN,
    chance_open,
    drawn,
    gated,
    settled,
    without_closed,
)

Tell = Callable[[int, float], None]
GATES_FASTER = 20.0
"""Learning rate of gates over that of weights: a logit has units to go, a weight hundredths."""


def class_weights(config: TrainConfig, task: Task) -> Floats:
    """How much more a row of each class counts, (3,).

    Raises:
        ConfigError: neither words nor numbers.
    """
    if config.class_weights == "none":
        return np.ones(len(OUTPUTS))
    if config.class_weights == "balanced":
        cut = task.parts.train
        share = np.bincount(task.label[cut], task.weight[cut], minlength=len(OUTPUTS))
        return np.asarray(share.sum() / (len(OUTPUTS) * share))
    try:
        found = np.array([float(part) for part in config.class_weights.split(",")])
    except ValueError:
        found = np.empty(0)
    if len(found) != len(OUTPUTS) or not (np.isfinite(found).all() and (found > 0).all()):
        raise ConfigError(
            f"class weights {config.class_weights!r}: want none, balanced, or three numbers above "
            "0 for down, flat and up, such as 2,1,2"
        )
    return found


def learner_of(
    keras: Any, task: Task, spec: ModelSpec, config: TrainConfig, table: LatencyTable | None = None
) -> Learner:
    """An untrained model with the batches it will see.

    Raises:
        HftError: too few rows for lanes or windows.
    """
    cut = task.parts.train
    source: Windows | Carried
    if config.window_rows:
        ends = window_ends(task.rows, cut, config.window_rows, task.weight > 0)
        batch = min(config.batch, len(ends))
        model = whole_model(keras, spec, task.inputs.shape[1], len(OUTPUTS), config.window_rows)
        source, steps = Windows(ends, batch), len(ends) // batch
    else:
        lanes = lanes_of(task.rows, cut, config.lanes, config.reach_rows)
        model = carried_model(keras, spec, task.inputs.shape[1], len(OUTPUTS), config.reach_rows)
        source, steps = Carried(lanes), len(lanes.at)
        if not source.counted(task, config)[cut].any():
            per_lane = (cut.stop - cut.start) // config.lanes
            raise ConfigError(
                f"no training row counts: lanes of {per_lane} rows, each within its warm-up of "
                f"{warm_up_rows(config)}: want fewer lanes, a shorter warm-up or more data"
            )
    return Learner(keras, model, task, spec, config, source, steps, table)


class Learner:
    """Model, gates and their optimizers."""

    def __init__(
        self,
        keras: Any,
        model: Any,
        task: Task,
        spec: ModelSpec,
        config: TrainConfig,
        source: Windows | Carried,
        steps: int,
        table: LatencyTable | None,
    ) -> None:
        import tensorflow as tf

        self._tf, self._model, self._task, self._config = tf, model, task, config
        self._source, self._steps, self._table = source, steps, table
        self._spec, self._entries = spec, spec.entries(len(OUTPUTS))
        self._classes = class_weights(config, task)
        schedule = keras.optimizers.schedules.CosineDecay
        self._adam = [
            keras.optimizers.Adam(
                schedule(rate * config.learning_rate, steps * config.epochs, alpha=0.05),
                clipnorm=1.0,
            )
            for rate in (1.0, GATES_FASTER)
        ]
        gated_layers = self._entries[:-1] if config.latency_weight else ()
        self._logits = [
            keras.Variable(np.full(layer.units, OPEN, np.float32)) for layer in gated_layers
        ]
        self._adam[0].build(model.trainable_variables)
        self._adam[1].build(self._logits)
        self._step = tf.function(self._stepped)

    def epoch(self, epoch: int, tell: Tell | None) -> float:
        """Learns every training row once; the mean loss of those that count."""
        tf, config = self._tf, self._config
        shapes = [(config.lanes, *s.shape[1:]) for s in self._model.inputs[1:]]
        states, losses = [tf.zeros(shape) for shape in shapes], []
        latencies, counted = [], 0.0
        for n, (x, y, w, keeps) in enumerate(self._source.batches(self._task, config, epoch)):
            w = (w * self._classes[y]).astype(np.float32)
            ones = np.ones(len(x), np.float32) if keeps is None else keeps
            step = epoch * self._steps + n
            seed = tf.constant([config.seed, step], tf.int32)
            batch = tf.constant(x), tf.constant(y), tf.constant(w), tf.constant(ones)
            loss, latency, states = self._step(*batch, states, seed)
            losses.append(float(loss) * y.size)
            latencies.append(float(latency))
            counted += float(w.sum())
            if tell is not None:
                tell((step + 1) * y.size, (step + 1) / (config.epochs * self._steps))
        return float(np.sum(losses) / counted + np.mean(latencies))

    def _stepped(self, x: Any, y: Any, w: Any, keeps: Any, states: Any, seed: Any) -> Any:
        tf, model = self._tf, self._model
        with tf.GradientTape() as tape:
            states = [s * tf.reshape(keeps, [-1] + [1] * (len(s.shape) - 1)) for s in states]
            out = self._forward(x, states, seed)
            p = tf.gather(out[0], y, axis=-1, batch_dims=y.shape.rank)
            loss = tf.reduce_mean(-w * tf.math.log(tf.maximum(p, 1e-7)))
            latency = self._latency()
            whole = loss + latency
        weights = model.trainable_variables
        groups = (weights, self._logits)
        gradients = tape.gradient(whole, [v.value for v in (*weights, *self._logits)])
        for adam, variables, at in zip(self._adam, groups, (0, len(weights)), strict=True):
            if variables:
                adam.apply(gradients[at : at + len(variables)], variables)
        return loss, latency, out[1:]

    def _forward(self, x: Any, states: list[Any], seed: Any) -> list[Any]:
        """Answers and new states, with gates drawn where there are any."""
        values = [v.value for v in self._model.trainable_variables]
        if self._logits:
            gates = [
                drawn(self._tf, v.value, seed + self._tf.constant([0, 7919 * n]))
                for n, v in enumerate(self._logits)
            ]
            layers = gated(weights_of(self._entries, values), gates)  # type: ignore[arg-type]
            values = [a for arrays in layers for a in arrays.values()]
        fixed = [v.value for v in self._model.non_trainable_variables]
        given = [x, *states] if states else x
        out, _ = self._model.stateless_call(values, fixed, given, training=True)
        return list(out) if isinstance(out, list | tuple) else [out]

    def _latency(self) -> Any:
        """Lambda * expected latency / latency of all units."""
        if not self._logits or self._table is None:
            return 0.0
        tf, hidden = self._tf, self._entries[:-1]
        expected: Any = self._table.base_ns
        for logits, (widths, ns) in zip(self._logits, self._table.steps(hidden), strict=True):
            width = tf.reduce_sum(chance_open(tf, logits.value))
            expected += along(widths, ns, width, tf.clip_by_value)
        return self._config.latency_weight * expected / self._table.of_layers(hidden)

    def fitted(self) -> Fitted:
        """What would run: priors as they were, closed units gone."""
        arrays = [np.asarray(v.value, np.float32) for v in self._model.trainable_variables]
        found = Fitted(self._spec, arrays, self._task.scaler, self._config.window_rows)
        found = found.headed(shift=-np.log(self._classes))
        if not self._logits:
            return found
        gates = [settled(np.asarray(v.value)) for v in self._logits]
        return found.of_stack(without_closed(found.stack, gates))

    def cost(self, found: Fitted) -> float:
        """The latency term of a network as it is."""
        if not self._logits or self._table is None:
            return 0.0
        share = self._table.of_layers(found.layers[:-1]) / self._table.of_layers(self._entries[:-1])
        return self._config.latency_weight * share

    def says(self, found: Fitted) -> str:
        """Of the gates, for a line of the report."""
        if not self._logits:
            return ""
        units = ", ".join(str(layer.units) for layer in found.layers[:-1])
        return f", {units} units open"

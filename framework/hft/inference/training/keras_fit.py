"""Training in Keras: epochs, and which of them is kept."""

from __future__ import annotations

import numpy as np

from hft.errors import ConfigError
from hft.inference.training.fitted import Fitted
from hft.inference.training.keras_models import keras_seeded
from hft.inference.training.latency_table import LatencyTable
from hft.inference.training.learner import Tell, learner_of
from hft.inference.training.model_spec import ModelSpec, model_spec
from hft.inference.training.scores import log_loss
from hft.inference.training.task import Report, Task, TrainConfig


def fit(
    task: Task,
    config: TrainConfig,
    report: Report = print,
    *,
    table: LatencyTable | None = None,
    tell: Tell | None = None,
) -> Fitted:
    """The weights of the epoch with the least loss on the calibration slice.

    What is compared is what would run: the native network, without units whose gate is closed.

    Args:
        task: see `prepare`.
        config: how.
        report: told a line an epoch.
        table: what rows cost, where `config.latency_weight` is not 0.
        tell: told rows so far and the share done.

    Raises:
        ConfigError: model and options do not fit each other, or there is no Keras.
        DataError: too few rows.
    """
    spec = checked_spec(config, table)
    keras = keras_seeded(config.seed)
    learner = learner_of(keras, task, spec, config, table)
    cut, best, since = task.parts.calibrate, None, 0
    for epoch in range(config.epochs):
        trained = learner.epoch(epoch, tell)
        if not np.isfinite(trained):
            raise ConfigError(
                f"training diverged in epoch {epoch + 1}, its loss is {trained}: want a smaller "
                f"learning rate than {config.learning_rate:g}"
            )
        found = learner.fitted()
        p = found.probabilities(task, cut)
        later = log_loss(p, task.label[cut], task.weight[cut]) + learner.cost(found)
        report(f"epoch {epoch + 1}: train {trained:.4f}, later {later:.4f}{learner.says(found)}")
        since += 1
        if best is None or later < best[0]:
            best, since = (later, found), 0
        if since >= config.patience:
            report(f"no better for {since} epochs: the best one is kept")
            break
    assert best is not None
    return best[1]


def checked_spec(config: TrainConfig, table: LatencyTable | None) -> ModelSpec:
    """The model asked for, if the other options allow it."""
    spec = model_spec(config.model)
    if config.window_rows < 0 or config.epochs < 1:
        raise ConfigError("want a window of at least 0 rows and at least one epoch")
    if spec.transformer is not None and not config.window_rows:
        raise ConfigError(
            f"model {spec.text!r} sees a window: say how long with --window, such as --window 50"
        )
    if not config.latency_weight:
        return spec
    if spec.transformer is not None:
        raise ConfigError("a latency term needs native layers, a transformer has none")
    if table is None:
        raise ConfigError(
            "--lambda needs --latency-table FILE; `hft train --measure-latency FILE` makes one"
        )
    table.steps(spec.hidden)
    return spec

"""A network as training leaves it: native layers, or a Keras model that no native layers can be."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hft.inference.answers import WARM_ROWS, answers
from hft.inference.bundle import Weights
from hft.inference.card import LayerEntry, Scaler
from hft.inference.compress.stack import Stack
from hft.inference.dataset.classes import OUTPUTS
from hft.inference.dataset.in_memory import Floats, Int
from hft.inference.training.keras_models import (
    Arrays,
    arrays_of,
    keras_seeded,
    weights_of,
    whole_model,
)
from hft.inference.training.model_spec import ModelSpec
from hft.inference.training.task import Task

AT_ONCE = 1024
"""Windows a call of Keras."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """Weights of a spec."""

    spec: ModelSpec
    arrays: Arrays
    scaler: Scaler
    window_rows: int = 0

    @property
    def layers(self) -> tuple[LayerEntry, ...]:
        """Native ones; none of a Transformer."""
        return self.spec.entries(len(OUTPUTS))

    @property
    def weights(self) -> Weights:
        """Of the native layers."""
        return weights_of(self.layers, self.arrays) if self.layers else []

    @property
    def stack(self) -> Stack:
        """As compression takes it."""
        return Stack(self.layers, self.weights, self.scaler, self.window_rows)

    def of_stack(self, stack: Stack) -> Fitted:
        """With other layers."""
        spec = replace(self.spec, hidden=stack.layers[:-1])
        return replace(self, spec=spec, arrays=arrays_of(stack.weights))

    def headed(self, *, temperature: float = 1.0, shift: Floats | None = None) -> Fitted:
        """With logits shifted by class, then divided by a temperature."""
        kernel, bias = self.arrays[-2:]
        moved = bias if shift is None else bias + shift
        head = [np.asarray(a / temperature, np.float32) for a in (kernel, moved)]
        return replace(self, arrays=[*self.arrays[:-2], *head])

    def keras_model(self, seed: int = 1) -> Any:
        """The model without state, as it is saved."""
        keras = keras_seeded(seed)
        inputs = len(self.scaler.mean)
        model = whole_model(keras, self.spec, inputs, len(OUTPUTS), self.window_rows)
        model.set_weights(self.arrays)
        return model

    def probabilities(self, task: Task, cut: slice) -> Floats:
        """On the rows of a cut, (n, 3), by what will run where there are native layers."""
        if self.layers:
            return answers(self.stack.network(), task.rows, cut, self.window_rows)
        return by_windows(
            self.keras_model(), task, np.arange(cut.start, cut.stop), self.window_rows
        )

    def parity(self, task: Task, rows: int = 2_000) -> float:
        """Largest difference of a probability between Keras and the native network on test rows."""
        cut = slice(task.parts.test.start, min(task.parts.test.start + rows, task.parts.test.stop))
        model = self.keras_model()
        if self.window_rows:
            at = np.arange(cut.start, cut.stop)
            known = task.rows.since_fresh()[cut] >= self.window_rows - 1
            theirs = by_windows(model, task, at, self.window_rows)[known]
            return _furthest(theirs, self.probabilities(task, cut)[known])
        start = max(cut.start - WARM_ROWS, 0)
        pieces = task.rows.pieces(start, cut.stop)
        theirs = np.concatenate([model.predict_on_batch(task.inputs[None, p])[0] for p in pieces])
        return _furthest(theirs[cut.start - start :], self.probabilities(task, cut))


def by_windows(model: Any, task: Task, ends: Int, length: int) -> Floats:
    """Keras on the windows that end at these rows; short ones repeat their first row, (n, 3)."""
    inputs, since = task.inputs, task.rows.since_fresh()
    found = []
    for first in range(0, len(ends), AT_ONCE):
        some = ends[first : first + AT_ONCE]
        back = np.minimum(np.arange(length - 1, -1, -1), since[some][:, None])
        found.append(model.predict_on_batch(inputs[some[:, None] - back]))
    return np.asarray(np.concatenate(found), np.float64)


def _furthest(a: Floats, b: Floats) -> float:
    return float(np.abs(a - b).max(initial=0.0))

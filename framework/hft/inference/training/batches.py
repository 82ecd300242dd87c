"""What a model in training sees at once: shuffled windows, or lanes side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hft.inference.dataset.in_memory import Floats, Int
from hft.inference.training.lanes import Lanes
from hft.inference.training.task import Task, TrainConfig, warm_up_rows


@dataclass(frozen=True, slots=True)
class Windows:
    ends: Int
    batch: int

    def batches(self, task: Task, config: TrainConfig, epoch: int) -> Any:
        order = np.random.default_rng([config.seed, epoch]).permutation(self.ends)
        back, inputs = np.arange(1 - config.window_rows, 1), task.inputs
        for first in range(0, len(order) - self.batch + 1, self.batch):
            at = order[first : first + self.batch]
            yield inputs[at[:, None] + back], task.label[at], task.weight[at], None


@dataclass(frozen=True, slots=True)
class Carried:
    lanes: Lanes

    def counted(self, task: Task, config: TrainConfig) -> Floats:
        """Weights of rows, 0 where a lane is not warm yet."""
        counted = task.weight.copy()
        for first in self.lanes.begins:
            counted[first : first + warm_up_rows(config)] = 0.0
        return counted

    def batches(self, task: Task, config: TrainConfig, epoch: int) -> Any:
        lanes, inputs, counted = self.lanes, task.inputs, self.counted(task, config)
        for at, keeps in zip(lanes.at, lanes.keeps, strict=True):
            row = np.maximum(at, 0)
            weight = np.where(at >= 0, counted[row], 0.0)
            yield inputs[row], task.label[row], weight, keeps

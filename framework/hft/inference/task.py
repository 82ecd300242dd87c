"""What a training run learns from: rows, labels, scaling and the slices of time they fall into."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec
import numpy as np
import numpy.typing as npt

from hft.inference.card import Scaler
from hft.inference.dataset import Floats, Rows, Split, future_moves, split, time_weights

Report = Callable[[str], None]


class TrainConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to train; what on is given as rows."""

    units: tuple[int, ...] = (32, 32)
    latency_ns: int = 1_000_000
    """From the row to the earliest trade on it; labels start there."""
    horizons_ns: tuple[int, ...] = (100_000_000, 250_000_000, 500_000_000, 1_000_000_000)
    """Candidates; see `choose_horizon`."""
    flat_share: float = 0.34
    """Share of training time labelled flat; sets the move that counts as one."""
    lanes: int = 64
    window: int = 100
    """Rows that a gradient reaches back."""
    warm_up_rows: int = 100
    epochs: int = 5
    learning_rate: float = 2e-3
    clip: float = 5.0
    seed: int = 1
    longest_row_ns: int = 50_000_000


@dataclass(frozen=True, slots=True)
class Task:
    """Rows with labels, split and scaled."""

    rows: Rows
    moves: Floats
    label: npt.NDArray[np.int64]
    weight: Floats
    parts: Split
    horizon_ns: int
    scaler: Scaler
    move_ticks: tuple[float, ...]

    @property
    def inputs(self) -> npt.NDArray[np.float32]:
        """(n, k) as the network sees them."""
        s = self.scaler
        x = (self.rows.x - np.array(s.mean)) / np.array(s.scale)
        return np.asarray(np.clip(x, -s.clip, s.clip), np.float32)


def prepare(rows: Rows, config: TrainConfig, report: Report = print) -> Task:
    """Chooses the horizon, then labels, splits and scales."""
    weight = time_weights(rows.ts, config.longest_row_ns)
    horizon_ns = choose_horizon(rows, weight, config, report)
    moves, known = future_moves(rows, config.latency_ns, horizon_ns)
    parts = split(rows, known, config.latency_ns + horizon_ns)
    train = parts.train
    threshold = _weighted_quantile(np.abs(moves[train]), weight[train], config.flat_share)
    label = np.where(moves > threshold, 2, np.where(moves < -threshold, 0, 1)).astype(np.int64)
    means = [
        float(np.average(moves[train][label[train] == c], weights=weight[train][label[train] == c]))
        for c in range(3)
    ]
    scaler = _scaler(rows.x[train], weight[train], config.clip)
    report(f"flat is a move of at most {threshold:g} ticks; mean moves {means}")
    return Task(rows, moves, label, weight, parts, horizon_ns, scaler, tuple(means))


def choose_horizon(rows: Rows, weight: Floats, config: TrainConfig, report: Report = print) -> int:
    """The shortest horizon at which a linear model forecasts nearly as well as at its best one.

    Fitted on two thirds of the training slice and judged on the last third: calibration and test
    stay unseen. Beyond the signal's life a longer horizon only adds noise to the label.
    """
    scores = {}
    for horizon_ns in sorted(config.horizons_ns):
        moves, known = future_moves(rows, config.latency_ns, horizon_ns)
        train = split(rows, known, config.latency_ns + horizon_ns).train
        scores[horizon_ns] = _linear_score(rows.x[train], moves[train], weight[train])
        report(f"horizon {horizon_ns / 1e6:6g} ms: linear correlation {scores[horizon_ns]:.3f}")
    enough = 0.9 * max(scores.values())
    return next(horizon_ns for horizon_ns, score in scores.items() if score >= enough)


def _scaler(x: Floats, weight: Floats, clip: float) -> Scaler:
    mean = np.average(x, axis=0, weights=weight)
    scale = np.sqrt(np.average((x - mean) ** 2, axis=0, weights=weight))
    scale = np.where(scale > 1e-9 * np.maximum(np.abs(mean), 1.0), scale, 1.0)
    return Scaler(mean=tuple(mean.tolist()), scale=tuple(scale.tolist()), clip=clip)


def _weighted_quantile(values: Floats, weight: Floats, share: float) -> float:
    order = np.argsort(values, kind="stable")
    passed = np.cumsum(weight[order])
    return float(values[order][np.searchsorted(passed, share * passed[-1])])


def _with_one(x: Floats, scaler: Scaler) -> Floats:
    z = np.clip((x - np.array(scaler.mean)) / np.array(scaler.scale), -scaler.clip, scaler.clip)
    return np.column_stack([z, np.ones(len(z))])


def _solve(z: Floats, y: Floats, weight: Floats) -> Floats:
    """Weighted ridge; the small penalty only keeps nearly equal columns apart."""
    gram = (z * weight[:, None]).T @ z + 1e-3 * len(z) * np.eye(z.shape[1])
    return np.asarray(np.linalg.solve(gram, (z * weight[:, None]).T @ y))


def _linear_score(x: Floats, moves: Floats, weight: Floats) -> float:
    cut = len(x) * 2 // 3
    z = _with_one(x, _scaler(x[:cut], weight[:cut], 5.0))
    forecast = z[cut:] @ _solve(z[:cut], moves[:cut], weight[:cut])
    w, y = weight[cut:], moves[cut:]
    return float((w * forecast * y).sum() / np.sqrt((w * forecast**2).sum() * (w * y**2).sum()))


def linear_forecast(task: Task) -> Floats:
    """The linear model on the same columns: what an LSTM has to beat."""
    train, test = task.parts.train, task.parts.test
    z = _with_one(task.rows.x, task.scaler)
    return np.asarray(z[test] @ _solve(z[train], task.moves[train], task.weight[train]))

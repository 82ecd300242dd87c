"""What a training run learns from: rows, labels, scaling and the slices of time they fall into."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import msgspec
import numpy as np
import numpy.typing as npt

from hft.errors import DataError
from hft.inference.card import Scaler, TrailingEntry
from hft.inference.dataset.classes import Classes, MoveWeights
from hft.inference.dataset.in_memory import Floats, Rows, Split, split
from hft.inference.dataset.splitting import Cuts
from hft.inference.dataset.trailing import varying
from hft.inference.training.model_spec import model_spec
from hft.inference.training.scores import slope

Report = Callable[[str], None]
MOST_SHRINK = 1.5
"""Largest factor of a forecast: one that moves outdo further was fitted in another weather."""


class TrainConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to train; what on is given as rows."""

    model: str = "lstm:32,32"
    """See model_spec.py."""
    window_rows: int = 0
    """0: streaming, state is carried. Else the model sees exactly so many rows, each time anew."""
    latency_ns: int = 1_000_000
    """From the row to the earliest trade on it; labels start there."""
    horizons_ns: tuple[int, ...] = (100_000_000, 250_000_000, 500_000_000, 1_000_000_000)
    """Candidates; see `choose_horizon`."""
    flat_share: float = 0.34
    """Share of training time labelled flat; sets the move that counts as one."""
    class_weights: str = "none"
    """`none`, `balanced`, or one number a class: `2,1,2`. Probabilities are set right again
    afterwards."""
    lanes: int = 64
    """Of a streaming model: stretches of training time that are learned side by side."""
    reach_rows: int = 100
    """Of a streaming model: rows that a gradient reaches back."""
    batch: int = 256
    """Of a windowed model: windows a step."""
    warm_up_rows: int = 100
    """Of a streaming model with LSTM or GRU: rows after a start that are not counted."""
    epochs: int = 5
    patience: int = 2
    """Epochs without a better loss on later rows after which training ends."""
    learning_rate: float = 2e-3
    clip: float = 5.0
    seed: int = 1
    latency_weight: float = 0.0
    """Lambda: loss + lambda * expected latency / latency of all units."""
    longest_row_ns: int = 50_000_000


@dataclass(frozen=True, slots=True)
class Task:
    """Rows with labels, split and scaled."""

    rows: Rows
    moves: Floats
    """(n,) [ticks]; 0 where not known."""
    label: npt.NDArray[np.int64]
    weight: Floats
    """0 where the move is not known, or a run's model would still be warming up."""
    parts: Split
    horizon_ns: int
    scaler: Scaler
    move_ticks: tuple[float, ...]
    trailing: TrailingEntry | None = None
    """What put `rows` in the terms of `scaler`; None: they are as they were made."""

    @property
    def inputs(self) -> npt.NDArray[np.float32]:
        """(n, k) as the network sees them."""
        return scaled(self.rows.x, self.scaler)

    def shrink(self, forecast: Floats, cut: slice) -> float:
        """Move per unit of forecast on a slice, within 0 and MOST_SHRINK: a readout's factor.

        Args:
            forecast: of the slice's rows [ticks].
            cut: rows that the forecast was not fitted on.
        """
        found = slope(forecast, self.moves[cut], self.weight[cut])
        return float(np.clip(found, 0.0, MOST_SHRINK))


def scaled(x: Floats, scaler: Scaler) -> npt.NDArray[np.float32]:
    """Clamp of (x - mean) / scale, (..., k), in double before it is rounded, as in the core."""
    return np.asarray(_scaled_in_double(x, scaler), np.float32)


def _scaled_in_double(x: Floats, scaler: Scaler) -> Floats:
    z = (x - np.array(scaler.mean)) / np.array(scaler.scale)
    return np.asarray(np.clip(z, -scaler.clip, scaler.clip))


def prepare(
    rows: Rows,
    config: TrainConfig,
    report: Report = print,
    parts: Split | None = None,
    classes: Mapping[int, Classes] | None = None,
    scaler: Scaler | None = None,
) -> Task:
    """Chooses the horizon, then labels, splits and scales.

    Rows whose scales trail are put in the terms of the scaler before anything else looks at them:
    what is trained, calibrated, distilled and judged is what a run computes.

    Args:
        rows: with labels of every horizon of `config`.
        config: see `TrainConfig`.
        report: told what is chosen.
        parts: of rows that are split already.
        classes: by horizon, of labels that are given already.
        scaler: of a network that is there already; None: of the training rows.
    """
    rows.require_horizons(config.horizons_ns)
    parts = parts or split(rows, Cuts())
    rule = None if rows.trailed is None else rows.trailed.rule
    if rows.trailed is not None:
        scaler = scaler or _scaler(rows.x[parts.train], rows.weight[parts.train], config.clip)
        rows = in_own_terms(rows, scaler)
        report(f"scales trail, {rule}")
    horizon_ns = choose_horizon(rows, parts, config, report)
    moves = rows.moves[horizon_ns]
    train = parts.train
    chosen = classes[horizon_ns] if classes else classes_of(rows, parts, horizon_ns, config)
    means = ", ".join(f"{mean:.3g}" for mean in chosen.move_ticks)
    report(f"flat is a move of at most {chosen.threshold_ticks:g} ticks; mean moves {means}")
    weight = _known_weight(rows, moves)
    scaler = scaler or _scaler(rows.x[train], weight[train], config.clip)
    label = chosen.of(np.nan_to_num(moves)).astype(np.int64)
    weight = np.where(rows.since_fresh() >= warm_up_rows(config), weight, 0.0)
    for name, cut in (("train", train), ("calibrate", parts.calibrate), ("test", parts.test)):
        if not weight[cut].any():
            raise DataError(
                f"{name} has no labelled row that comes {warm_up_rows(config)} rows after a model "
                "begins anew: want more data, longer stretches or a model of fewer rows"
            )
    moves = np.nan_to_num(moves)
    return Task(rows, moves, label, weight, parts, horizon_ns, scaler, chosen.move_ticks, rule)


def in_own_terms(rows: Rows, own: Scaler) -> Rows:
    """Rows as a run gives them to a network with that scaler, from here on like any others."""
    assert rows.trailed is not None
    return replace(rows, x=rows.trailed.in_own_terms(rows.x, own), trailed=None)


def warm_up_rows(config: TrainConfig) -> int:
    """Rows after a start or gap whose outputs are not to be trusted."""
    if config.window_rows:
        return config.window_rows - 1
    reach = model_spec(config.model).reach
    return config.warm_up_rows if reach is None else reach


def classes_of(rows: Rows, parts: Split, horizon_ns: int, config: TrainConfig) -> Classes:
    """Classes of the training slice."""
    weights = MoveWeights()
    weights.add(rows.moves[horizon_ns][parts.train], rows.weight[parts.train])
    return weights.classes(config.flat_share, None)


def choose_horizon(rows: Rows, parts: Split, config: TrainConfig, report: Report = print) -> int:
    """The shortest horizon at which a linear model forecasts nearly as well as at its best one.

    Fitted on two thirds of the training slice and judged on the last third: calibration and test
    stay unseen. Beyond the signal's life a longer horizon only adds noise to the label.
    """
    scores = {}
    for horizon_ns in sorted(config.horizons_ns):
        moves = rows.moves[horizon_ns]
        weight = _known_weight(rows, moves)[parts.train]
        known = np.flatnonzero(weight) + parts.train.start
        scores[horizon_ns] = _linear_score(rows.x[known], moves[known], weight[weight > 0])
        report(f"horizon {horizon_ns / 1e6:6g} ms: linear correlation {scores[horizon_ns]:.3f}")
    best = max(scores.values())
    enough = best - 0.1 * abs(best)  # the best may be below 0
    return next(horizon_ns for horizon_ns, score in scores.items() if score >= enough)


def _known_weight(rows: Rows, moves: Floats) -> Floats:
    return np.where(np.isnan(moves), 0.0, rows.weight)


def _scaler(x: Floats, weight: Floats, clip: float) -> Scaler:
    mean = np.average(x, axis=0, weights=weight)
    scale = np.sqrt(np.average((x - mean) ** 2, axis=0, weights=weight))
    scale = varying(mean, scale)
    return Scaler(mean=tuple(mean.tolist()), scale=tuple(scale.tolist()), clip=clip)


def _with_one(x: Floats, scaler: Scaler) -> Floats:
    return np.column_stack([_scaled_in_double(x, scaler), np.ones(len(x))])


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

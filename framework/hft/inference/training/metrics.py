"""What a trained model is worth on the test slice, and two that it has to beat."""

from __future__ import annotations

import numpy as np

from hft.inference.card import Readout
from hft.inference.dataset.classes import OUTPUTS
from hft.inference.dataset.in_memory import Floats
from hft.inference.training.scores import (
    TEMPERATURES,
    auc,
    calibration_error,
    correlation,
    log_loss,
    slope,
)
from hft.inference.training.task import MOST_SHRINK, Task, linear_forecast

UP, DOWN = OUTPUTS.index("up"), OUTPUTS.index("down")


def measure(task: Task, p: Floats, readout: Readout) -> dict[str, float]:
    """Metrics of probabilities (n, 3) of the test slice, all of it and by weather.

    Beside them: a linear model on the same columns, and the placebo, which is what the model said
    of rows half a slice away.
    """
    cut = task.parts.test
    alpha = readout.shrink * p @ np.array(readout.move_ticks)
    linear, placebo = linear_forecast(task), np.roll(p, len(p) // 2, axis=0)
    storm, label, moves = task.rows.storm[cut], task.label[cut], task.moves[cut]
    weight, found = task.weight[cut], {}
    known = weight > 0
    weathers = {"": known, "calm_": known & ~storm, "storm_": known & storm}
    for weather, at in weathers.items():
        found[weather + "rows"] = float(at.sum())
        if not at.any():
            continue
        up, down = label[at] == UP, label[at] == DOWN
        told = {
            "share_up": float(np.average(up, weights=weight[at])),
            "share_down": float(np.average(down, weights=weight[at])),
            "auc_up": auc(p[at, UP], up),
            "auc_down": auc(p[at, DOWN], down),
            "linear_auc_up": auc(linear[at], up),
            "linear_auc_down": auc(-linear[at], down),
            "placebo_auc_up": auc(placebo[at, UP], up),
            "calibration_up": calibration_error(p[at, UP], up),
            "calibration_down": calibration_error(p[at, DOWN], down),
            "alpha_correlation": correlation(alpha[at], moves[at]),
            "linear_correlation": correlation(linear[at], moves[at]),
            "alpha_slope": slope(alpha[at], moves[at], weight[at]),
            "alpha_rms_ticks": float(np.sqrt((alpha[at] ** 2).mean())),
        }
        # A class that a regime lacks has no AUC, and TOML's nan would not compare.
        found |= {weather + k: v for k, v in told.items() if np.isfinite(v)}
    found["log_loss"] = log_loss(p, label, weight)
    found["log_loss_of_shares"] = log_loss(_shares(task), label, weight)
    return {name: round(value, 6) for name, value in found.items()}


def doubts(metrics: dict[str, float]) -> list[str]:
    """What speaks against trading on such a model, a line each."""
    pairs = (
        ("log_loss", "log_loss_of_shares", -1, "the shares of the classes alone"),
        ("alpha_correlation", "linear_correlation", 1, "a linear model on the same columns"),
    )
    told = [
        f"no better than {than}: {ours} {metrics[ours]:.4g} against {metrics[theirs]:.4g}"
        for ours, theirs, sign, than in pairs
        if ours in metrics and theirs in metrics and sign * (metrics[ours] - metrics[theirs]) <= 0
    ]
    if metrics.get("alpha_rms_ticks") == 0:
        told.append("alpha_ticks is 0 on every row: on the calibration slice moves went against it")
    return told


def doubts_of_calibration(temperature: float, shrink: float) -> list[str]:
    """Where a search ended because it may go no further, a line each."""
    told, (least, most) = [], TEMPERATURES
    if not 1.01 * least < temperature < most / 1.01:
        told.append(
            f"the temperature stopped at the end of {least:g} to {most:g}: probabilities are not "
            "honest yet; train on more market, or a smaller model"
        )
    if shrink >= MOST_SHRINK:
        told.append(
            f"shrink stopped at {shrink:g}: moves outdid the forecast; the calibration slice may "
            "be of another weather than the training"
        )
    return told


def _shares(task: Task) -> Floats:
    """Training's class shares, said of every test row."""
    cut = task.parts.train
    share = np.bincount(task.label[cut], task.weight[cut], minlength=len(OUTPUTS))
    rows = task.parts.test.stop - task.parts.test.start
    return np.tile(share / share.sum(), (rows, 1))

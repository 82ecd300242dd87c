"""`training.md` of a bundle: the card's training and metrics, for people."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from hft.durations import format_ns
from hft.inference.card import Card

NOTES = "training.md"
_WEATHERS = ("", "calm_", "storm_")
LINES = {
    "rows": "test rows",
    "share_up": "share of up",
    "share_down": "share of down",
    "auc_up": "AUC up",
    "linear_auc_up": "AUC up, linear model",
    "placebo_auc_up": "AUC up, placebo",
    "auc_down": "AUC down",
    "linear_auc_down": "AUC down, linear model",
    "calibration_up": "calibration error up",
    "calibration_down": "calibration error down",
    "alpha_correlation": "correlation of forecast and move",
    "linear_correlation": "the same, linear model",
    "alpha_slope": "move per unit of forecast",
    "alpha_rms_ticks": "typical forecast [ticks]",
}
"""Metrics of a card and what they are called."""


def notes(card: Card) -> str:
    """Markdown."""
    made, options = card.training, json.loads(card.training.recipe)
    lines = [
        f"# {card.name}",
        "",
        f"{options['model']}, {_seen(card)}; forecasts the mid's move from "
        f"{format_ns(card.latency_ns)} to {format_ns(card.latency_ns + card.horizon_ns)} "
        "after a row.",
        "",
        f"- data: {made.data} (sha256 {made.data_sha256})",
        f"- training rows: {made.rows:,}, {_time(made.start_ts)} to {_time(made.end_ts)}",
        "- versions: " + ", ".join(f"{k} {v}" for k, v in made.versions.items()),
        "- options: " + ", ".join(f"{k} = {v}" for k, v in options.items()),
        "",
        "On the test slice, later than everything the model was made from; the placebo is what "
        "the model said of other rows:",
        "",
        "| | all | calm | storm |",
        "| --- | --- | --- | --- |",
    ]
    for key, name in LINES.items():
        cells = [card.metrics.get(weather + key) for weather in _WEATHERS]
        told = " | ".join("" if cell is None else f"{cell:.4g}" for cell in cells)
        lines.append(f"| {name} | {told} |")
    shown = {weather + key for weather in _WEATHERS for key in LINES}
    others = [key for key in card.metrics if key not in shown]
    lines += ["", *(f"- {k}: {card.metrics[k]:.4g}" for k in others)]
    return "\n".join(lines) + "\n"


def _seen(card: Card) -> str:
    if card.window_rows:
        return f"on windows of {card.window_rows} rows"
    return "state carried from row to row"


def _time(ts: int) -> str:
    return f"{datetime.fromtimestamp(ts / 1e9, UTC):%Y-%m-%d %H:%M:%S} UTC"

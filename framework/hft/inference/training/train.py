"""Trains a model, calibrates and measures it, and writes its bundle.

A streaming model is trained as it will run: lanes of consecutive rows whose state carries over,
and is forgotten where a run forgets. Scaling comes from the training rows, the earliest;
temperature and shrinkage from a later slice; the metrics from one later still. What decides
between epochs is the native network's loss on the calibration slice, so that what is chosen is
what will run.

Needs the extra `[train]` (Keras, TensorFlow). Same seed, data and machine: same weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

import msgspec
import numpy as np

from hft import features as f
from hft.features import Features, OnTouch
from hft.inference.bundle import Bundle, load_bundle, part_sha256, require_free, save_bundle
from hft.inference.card import FORMAT, Card, PartEntry, Readout, Training, entries_of
from hft.inference.dataset.classes import OUTPUTS, Classes
from hft.inference.dataset.in_memory import Rows, Split
from hft.inference.training.fitted import Fitted
from hft.inference.training.keras_files import SOURCE, save_keras
from hft.inference.training.keras_fit import checked_spec, fit
from hft.inference.training.latency_table import LatencyTable
from hft.inference.training.learner import Tell
from hft.inference.training.metrics import doubts, doubts_of_calibration, measure
from hft.inference.training.notes import NOTES, notes
from hft.inference.training.scores import temperature
from hft.inference.training.task import Report, Task, TrainConfig, prepare, warm_up_rows
from hft.whole_files import replacing_folder

INPUTS = Features(
    f.micro_price_minus_mid(),
    f.spread().log(),
    f.imbalance(1),
    f.imbalance(3),
    f.imbalance(5),
    f.imbalance(10),
    f.ofi(1).log(),
    f.ofi(5, "100ms").log(),
    f.ofi(5, "500ms").log(),
    f.trade_flow("100ms").log(),
    f.trade_flow("300ms").log(),
    f.trade_flow("1s").log(),
    f.mid_return("100ms"),
    f.mid_return("500ms"),
    f.volatility("1s").log(),
    f.since_row(),
    trigger=OnTouch(),
)
"""Columns of lstm_mm: all relative to the touch, so that they mean the same at any price."""
SAVED_MODEL = "saved_model"
_PACKAGES = ("hft-framework", "keras", "numpy", "tensorflow", "tensorflow-cpu")


def train(
    rows: Rows,
    features: Features,
    config: TrainConfig,
    *,
    out: str | Path,
    data: str,
    report: Report = print,
    parts: Split | None = None,
    classes: Mapping[int, Classes] | None = None,
    table: LatencyTable | None = None,
    tell: Tell | None = None,
    overwrite: bool = False,
) -> Bundle:
    """Trains, calibrates, measures and writes a bundle, whole or not at all.

    Args:
        rows: from `collect`, or of a dataset.
        features: what the rows hold.
        config: see `TrainConfig`.
        out: the bundle's folder; its stem is the model's name.
        data: what the rows are, for the card.
        report: told what happens, a line at a time.
        parts: where the slices lie, of a dataset that is split already.
        classes: by horizon, of a dataset that has them.
        table: what rows cost, for `config.latency_weight`.
        tell: told rows trained and the share done.
        overwrite: replace a bundle that is there.

    Raises:
        ConfigError: options that do not fit each other; a folder that is there.
        DataError: too few rows.
    """
    folder = Path(out)
    require_free(folder, overwrite=overwrite)
    checked_spec(config, table)
    task = prepare(rows, config, report, parts, classes)
    fitted = fit(task, config, report, table=table, tell=tell)
    fitted, readout = _calibrated(task, fitted, report)
    metrics = measure(task, fitted.probabilities(task, task.parts.test), readout)
    if fitted.layers:
        metrics["parity_keras"] = round(fitted.parity(task), 9)
    if table is not None and fitted.layers:
        metrics["expected_ns"] = round(table.of_layers(fitted.layers[:-1]), 1)
    for name, value in metrics.items():
        report(f"{name:26} {value:.4g}")
    for doubt in doubts(metrics):
        report(doubt)
    card = _card(task, features, config, fitted, readout, metrics, folder.stem, data)
    with replacing_folder(folder) as draft:
        _write(draft, card, fitted, config.seed)
    return load_bundle(folder, [column for column in features if column.kind == "own"])


def _calibrated(task: Task, fitted: Fitted, report: Report) -> tuple[Fitted, Readout]:
    """Temperature goes into the last layer's weights, the forecast's slope into `shrink`."""
    cut = task.parts.calibrate
    p = fitted.probabilities(task, cut)
    t = temperature(p, task.label[cut], task.weight[cut])
    fitted = fitted.headed(temperature=t)
    alpha = fitted.probabilities(task, cut) @ np.array(task.move_ticks)
    shrink = task.shrink(alpha, cut)
    report(f"temperature {t:.3f}, shrink {shrink:.3f}")
    for doubt in doubts_of_calibration(t, shrink):
        report(doubt)
    return fitted, Readout(move_ticks=task.move_ticks, shrink=shrink)


def _card(
    task: Task,
    features: Features,
    config: TrainConfig,
    fitted: Fitted,
    readout: Readout,
    metrics: dict[str, float],
    name: str,
    data: str,
) -> Card:
    entries, trigger = entries_of(features)
    train = task.parts.train
    return Card(
        format=FORMAT,
        name=name,
        outputs=OUTPUTS,
        horizon_ns=task.horizon_ns,
        latency_ns=config.latency_ns,
        warm_up_rows=warm_up_rows(config),
        window_rows=config.window_rows,
        trigger=trigger,
        features=entries,
        layers=fitted.layers,
        scaler=task.scaler,
        trailing=task.trailing,
        readout=readout,
        training=Training(
            data=data,
            data_sha256=task.rows.sha256,
            start_ts=int(task.rows.ts[train.start]),
            end_ts=int(task.rows.ts[train.stop - 1]),
            rows=train.stop - train.start,
            seed=config.seed,
            recipe=msgspec.json.encode(config).decode(),
            versions=_versions(),
        ),
        metrics=metrics,
    )


def _versions() -> dict[str, str]:
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:  # tensorflow, or tensorflow-cpu
            continue
    return found


def _write(folder: Path, card: Card, fitted: Fitted, seed: int) -> None:
    model = fitted.keras_model(seed)
    save_keras(model, folder / SOURCE)
    parts: tuple[PartEntry, ...] = ()
    if not fitted.layers:
        from hft.inference.build.saved_model import save_window

        place = folder / SAVED_MODEL
        save_window(model, fitted.window_rows, len(card.features), place)
        parts = (
            PartEntry(
                file=SAVED_MODEL, backend="tensorflow", form="window", sha256=part_sha256(place)
            ),
        )
    card = msgspec.structs.replace(card, source_sha256=part_sha256(folder / SOURCE), parts=parts)
    (folder / NOTES).write_text(notes(card), encoding="utf-8")
    save_bundle(folder, card, fitted.weights)

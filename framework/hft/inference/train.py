"""Trains the streaming LSTM of a bundle: `python -m hft.inference.train --out NAME.bundle`.

The network is trained as it will run: lanes of consecutive rows whose state carries over from one
window to the next, the first rows of a lane not counted. Scaling comes from the training rows, the
earliest; temperature and shrinkage from a later slice; the metrics from one later still. What
decides between epochs is the native network's loss on the calibration slice, so that what is
chosen is what will run.

Needs the extra `[train]` (Keras, TensorFlow). Same seed, data and machine: same weights.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from hft import features as f
from hft.durations import parse_ns
from hft.errors import ConfigError, HftError
from hft.features import Features, OnTouch
from hft.inference.bundle import Bundle, Weights, save_bundle
from hft.inference.card import FORMAT, Card, LayerEntry, Readout, Training, entries_of
from hft.inference.dataset import Rows, Split, collect
from hft.inference.keras_fit import OUTPUTS, fit, parity, probabilities, require_keras
from hft.inference.scores import auc, calibration_error, correlation, log_loss, slope, temperature
from hft.inference.task import Report, Task, TrainConfig, linear_forecast, prepare

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


def train(
    rows: Rows,
    features: Features,
    config: TrainConfig,
    *,
    out: str | Path,
    data: str,
    report: Report = print,
    parts: Split | None = None,
) -> Bundle:
    """Trains, calibrates, measures and writes a bundle.

    Args:
        rows: from `collect`.
        features: what the rows hold.
        config: see `TrainConfig`.
        out: the bundle's folder; its stem is the model's name.
        data: what the rows are, for the card.
        report: told what happens, a line at a time.
        parts: where the slices lie, of a dataset that is split already.
    """
    task = prepare(rows, config, report, parts)
    weights, layers = fit(task, config, report)
    card = _card(task, features, config, layers, name=Path(out).stem, data=data)
    weights, card = _calibrate(task, weights, card, report)
    metrics = measure(task, weights, card) | {"parity_keras": parity(task, weights, config)}
    for name, value in metrics.items():
        report(f"{name:26} {value:.4g}")
    return save_bundle(out, msgspec.structs.replace(card, metrics=metrics), weights)


def measure(task: Task, weights: Weights, card: Card) -> dict[str, float]:
    """Metrics on the test slice, all of it and by weather."""
    cut = task.parts.test
    p = probabilities(task, weights, card.layers, cut)
    assert card.readout is not None
    alpha = card.readout.shrink * p @ np.array(card.readout.move_ticks)
    storm, label, moves = task.rows.storm[cut], task.label[cut], task.moves[cut]
    linear = linear_forecast(task)
    found = {}
    known = task.weight[cut] > 0
    weathers = {"": known, "calm_": known & ~storm, "storm_": known & storm}
    for weather, at in weathers.items():
        found[weather + "rows"] = float(at.sum())
        if not at.any():
            continue
        found[weather + "auc_up"] = auc(p[at, 2], label[at] == 2)
        found[weather + "auc_down"] = auc(p[at, 0], label[at] == 0)
        found[weather + "calibration_up"] = calibration_error(p[at, 2], label[at] == 2)
        found[weather + "calibration_down"] = calibration_error(p[at, 0], label[at] == 0)
        found[weather + "alpha_correlation"] = correlation(alpha[at], moves[at])
        found[weather + "linear_correlation"] = correlation(linear[at], moves[at])
        found[weather + "alpha_slope"] = slope(alpha[at], moves[at], task.weight[cut][at])
        found[weather + "alpha_rms_ticks"] = float(np.sqrt((alpha[at] ** 2).mean()))
    found["log_loss"] = log_loss(p, label, task.weight[cut])
    return {name: round(value, 6) for name, value in found.items()}


def _calibrate(task: Task, weights: Weights, card: Card, report: Report) -> tuple[Weights, Card]:
    """Temperature goes into the last layer's weights, the forecast's slope into `shrink`."""
    cut = task.parts.calibrate
    p = probabilities(task, weights, card.layers, cut)
    t = temperature(p, task.label[cut], task.weight[cut])
    head = {part: (array / np.float32(t)).astype(np.float32) for part, array in weights[-1].items()}
    weights = [*weights[:-1], head]
    alpha = probabilities(task, weights, card.layers, cut) @ np.array(task.move_ticks)
    shrink = float(np.clip(slope(alpha, task.moves[cut], task.weight[cut]), 0.0, 1.5))
    report(f"temperature {t:.3f}, shrink {shrink:.3f}")
    readout = Readout(move_ticks=task.move_ticks, shrink=shrink)
    return weights, msgspec.structs.replace(card, readout=readout)


def _card(
    task: Task,
    features: Features,
    config: TrainConfig,
    layers: tuple[LayerEntry, ...],
    *,
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
        warm_up_rows=config.warm_up_rows,
        trigger=trigger,
        features=entries,
        layers=layers,
        scaler=task.scaler,
        training=Training(
            data=data,
            data_sha256=task.rows.sha256,
            start_ts=int(task.rows.ts[train.start]),
            end_ts=int(task.rows.ts[train.stop - 1]),
            rows=train.stop - train.start,
            seed=config.seed,
            recipe=msgspec.json.encode(config).decode(),
        ),
    )


def _events(args: argparse.Namespace) -> tuple[Iterator[Any], str]:
    if args.data is None:
        from hft.data.synth import SynthConfig, synthesize_chunks

        synth = SynthConfig(seed=args.synth_seed, start=args.start, duration_s=args.hours * 3600)
        says = f"synthetic market, seed {synth.seed}, {args.hours:g} h from {synth.start}"
        return (rows for _, rows in synthesize_chunks(synth)), says
    from hft.data import open_data

    source = open_data(args.data)
    symbols = source.symbols()
    symbol = args.symbol or symbols[0]
    if symbol not in symbols:
        raise ConfigError(f"--symbol {symbol}: {args.data} holds {', '.join(symbols)}")
    return source.chunks(symbol, args.start_of_data, args.end_of_data), symbol


def _rows(
    args: argparse.Namespace, config: TrainConfig
) -> tuple[Rows, Features, Split | None, str, TrainConfig]:
    """Rows of a dataset, or of events; of a dataset the labels are what they are."""
    if args.dataset is not None:
        from hft.inference.dataset_reading import open_dataset

        dataset = open_dataset(args.dataset, args.fold)
        rows, parts = dataset.rows()
        config = msgspec.structs.replace(
            config, latency_ns=dataset.typical_latency_ns(), horizons_ns=tuple(rows.moves)
        )
        return rows, dataset.features(), parts, dataset.facts.instrument, config
    chunks, data = _events(args)
    rows = collect(
        chunks,
        INPUTS,
        latency_ns=config.latency_ns,
        horizons_ns=config.horizons_ns,
        longest_row_ns=config.longest_row_ns,
    )
    return rows, INPUTS, None, data, config


def _layers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(units) for units in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}: want whole numbers, such as 32,32") from None


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m hft.inference.train", description=__doc__)
    parser.add_argument("--out", required=True, help="folder to write, NAME.bundle")
    parser.add_argument("--data", help="store folder or file of rows; default: a synthetic market")
    parser.add_argument("--dataset", help="folder of `hft dataset`, instead of --data")
    parser.add_argument("--fold", type=int, default=1, help="of a dataset with several")
    parser.add_argument("--symbol", help="SYMBOL.VENUE in --data; default: the first")
    parser.add_argument("--from", dest="start_of_data", help="first time used of --data")
    parser.add_argument("--to", dest="end_of_data", help="end of --data used")
    parser.add_argument("--synth-seed", type=int, default=1001, help="of the synthetic market")
    parser.add_argument("--hours", type=float, default=5.0, help="of the synthetic market")
    parser.add_argument("--start", default="2023-12-20", help="of the synthetic market")
    parser.add_argument("--seed", type=int, default=1, help="of the training")
    parser.add_argument("--units", type=_layers, default=(32, 32), help="of the LSTM layers: 32,32")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--latency", default="1ms", help="from a row to the earliest trade on it")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    """The command line."""
    args = _arguments(argv)
    try:
        config = TrainConfig(
            units=args.units, latency_ns=parse_ns(args.latency), epochs=args.epochs, seed=args.seed
        )
        require_keras()
        rows, features, parts, data, config = _rows(args, config)
        print(f"{data}: {len(rows)} rows")
        train(rows, features, config, out=args.out, data=data, parts=parts)
    except HftError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(error.exit_code) from error


if __name__ == "__main__":
    main()

"""A model of real data, judged on later data: forecasts by weather, and money after latency.

    python backtests/real_model.py [--data FOLDER] [MARKET ...]

Each market's capture is imported and made a data set of; a model is trained on the first 60 % of
trading time, calibrated on the next 15 % and judged on the rest, with three seeds. Then
strategies/lstm_mm.py runs over the rest with that model, with its signals of other rows (placebo),
and with the bundle that was trained on a synthetic market. Nothing is tuned to the result. Tables:
docs/training.md.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from hft.data.importing import import_source
from hft.data.sources import open_sources
from hft.data.store import Store
from hft.features import Features, OnTouch
from hft.inference.bundle import Bundle, load_bundle
from hft.inference.training.data import Material, of_plan
from hft.inference.training.notes import LINES
from hft.inference.training.sweep import after_training, net_of, with_model
from hft.inference.training.task import TrainConfig
from hft.inference.training.train import INPUTS, train
from hft.plan import prepare
from hft.strategy import Strategy

ROOT = Path(__file__).resolve().parents[1]
STRATEGY = ROOT / "strategies" / "lstm_mm.py"
SEEDS = (1, 2, 3)
SERVICE_NS = 50_000
"""Of a row in a backtest; generous for the native network."""
SHOWN = (
    "auc_up",
    "linear_auc_up",
    "placebo_auc_up",
    "auc_down",
    "linear_auc_down",
    "calibration_up",
    "calibration_down",
    "alpha_correlation",
    "linear_correlation",
)


class Columns(Strategy):
    """Those of lstm_mm, made also when only sizes at the touch change: real touches rest long."""

    features = Features(*INPUTS, trigger=OnTouch(sizes=True))


@dataclass(frozen=True)
class Market:
    """One capture."""

    title: str
    form: str
    file: str
    labels: str
    leg: str
    """Entry and response."""
    params: dict[str, Any]
    fees: dict[str, float]
    """What a maker pays of a trade's value, by what it is called."""
    options: dict[str, Any] = field(default_factory=dict)
    lanes: int = 16


MARKETS = {
    "shanghai": Market(
        "Shanghai 600519, 2023-02-01, one day",
        "shanghai",
        "cn_l3/sse_600519_20230201_tonglian.zip",
        "1s,3s,10s,30s",
        "5ms",
        {"lots": 100, "max_lots": 1000, "depth_ticks": 200, "max_loss": 1e9, "max_silence": "1min"},
        # Handling, transfer and regulation, 0.8 bp a side, and 10 bp of stamp duty on sales.
        {"none": 0.0, "5.8 bp": 0.00058},
    ),
    "binance": Market(
        "Binance BTCUSDT perpetual, 2024-08-08, six minutes",
        "binance",
        "crypto_l2/usdm_btcusdt_20240808.gz",
        "500ms,1s,2s,5s",
        "3ms",
        {"lots": 10, "max_lots": 100, "depth_ticks": 20},
        {"none": 0.0, "2 bp": 0.0002},
        {"clock_offset": "auto"},
        lanes=8,
    ),
}


def main() -> None:
    each_market(__doc__, judge)


def each_market(title: str | None, judge: Callable[[Market, Path, Path], None]) -> None:
    """Judges the markets of the command line whose capture is there; others are told."""
    parser = argparse.ArgumentParser(description=title)
    known = Path(os.environ.get("HFT_DATA", ROOT.parent / "shared/data"))
    parser.add_argument("--data", type=Path, default=known, help="folder of the files")
    parser.add_argument("only", nargs="*", metavar="MARKET", help=" ".join(MARKETS))
    args = parser.parse_args()
    for name in args.only or MARKETS:
        market = MARKETS[name]
        if not (args.data / market.file).is_file():
            print(f"{market.title}: left out, no {args.data / market.file}")
            continue
        with tempfile.TemporaryDirectory() as home:
            judge(market, args.data, Path(home))


def judge(market: Market, data: Path, home: Path) -> None:
    store, latency, material = imported(market, data, home)
    config = TrainConfig(
        model="lstm:16", lanes=market.lanes, reach_rows=40, epochs=8, learning_rate=3e-3
    )
    bundles = [
        trained(material, msgspec.structs.replace(config, seed=seed), home / f"{seed}.bundle")
        for seed in SEEDS
    ]
    horizon = bundles[0].card.horizon_ns / 1e9
    print(f"\n**{market.title}**: {len(material.rows):,} rows, horizon {horizon:g} s\n")
    show_forecasts(bundles)
    show_profit(market, store, latency, material, bundles)


def imported(
    market: Market, data: Path, home: Path, columns: type[Strategy] = Columns
) -> tuple[Path, dict[str, Any], Material]:
    """The store, latency in a recipe's terms, and what to train on."""
    folder = home / "store"
    store = Store(folder)
    for source in open_sources(market.form, [data / market.file]):
        import_source(source, store, **market.options)
    latency = {"entry": market.leg, "response": market.leg, "inference": SERVICE_NS}
    plan = prepare(columns, folder, recipe={"latency": latency})
    return folder, latency, of_plan(plan, labels=market.labels)


def trained(material: Material, config: TrainConfig, out: Path) -> Bundle:
    return train(
        material.rows,
        material.features,
        material.config(config),
        out=out,
        data=material.data,
        parts=material.parts,
        classes=material.classes,
        report=lambda line: None,
    )


def show_forecasts(bundles: list[Bundle]) -> None:
    found = [bundle.card.metrics for bundle in bundles]
    weathers = ("", "calm_", "storm_")
    counts = [f"{found[0].get(weather + 'rows', 0):,.0f}" for weather in weathers]
    print("| | all | calm | storm |\n| --- | --- | --- | --- |")
    print(f"| test rows | {' | '.join(counts)} |")
    for key, title in ((key, LINES[key]) for key in SHOWN):
        cells = [spread([m.get(w + key, np.nan) for m in found], "{:.3f}") for w in weathers]
        print(f"| {title} | {' | '.join(cells)} |")


def show_profit(
    market: Market, store: Path, latency: dict[str, Any], material: Material, ours: list[Bundle]
) -> None:
    shipped = [load_bundle(ROOT / "strategies" / "lstm_mm.bundle")]
    print("\n| maker fee | net | net, placebo | net, model of a synthetic market |")
    print("| --- | --- | --- | --- |")
    for title, fee in market.fees.items():
        recipe = {"latency": latency, "params": market.params, "venue": {"maker_fee": fee}}
        plan = after_training(prepare(STRATEGY, store, recipe=recipe), material)

        def nets(bundles: list[Bundle], *, placebo: bool = False, plan: Any = plan) -> str:
            runs = [with_model(plan, b, SERVICE_NS, "model", placebo=placebo) for b in bundles]
            return spread([net_of(run) for run in runs], "{:,.1f}")

        print(f"| {title} | {nets(ours)} | {nets(ours, placebo=True)} | {nets(shipped)} |")


def spread(values: list[float], form: str) -> str:
    """Mean, and least and most where they differ."""
    if len(set(values)) == 1:
        return form.format(values[0])
    low, high = form.format(min(values)), form.format(max(values))
    return f"{form.format(float(np.mean(values)))} ({low} to {high})"


if __name__ == "__main__":
    main()

"""A data set for a trainer of one's own: least squares, judged on later data.

The later an order could trade, the less of the move is left. Labels know that, so what a model
forecasts is what a strategy could have had.

python examples/09_own_trainer.py
"""

import tempfile
from pathlib import Path

import numpy as np
import polars as pl

from hft import Strategy
from hft.features import Features, OnTouch, imbalance, micro_price_minus_mid, ofi, trade_flow
from hft.inference.dataset.command import make_datasets
from hft.inference.dataset.reading import Dataset, open_dataset
from hft.plan import prepare


class Look(Strategy):
    """Nothing but features: no order is sent here."""

    features = Features(
        micro_price_minus_mid(),
        imbalance(5),
        ofi(5, "500ms").log(),
        trade_flow("300ms").log(),
        trigger=OnTouch(),
    )


def rows_of(dataset: Dataset, part: str):
    """(n, k + 1) inputs and (n,) moves in ticks, where the move is known."""
    frame = pl.read_parquet(dataset.path(part)).filter(pl.col("move_500ms").is_not_null())
    x = dataset.scaled(frame)
    return np.column_stack([x, np.ones(len(x))]), frame["move_500ms"].to_numpy()


def main() -> None:
    plan = prepare(Look, "synth", settings={"data.synth.duration_s": 240.0})
    for latency in ("0ms", "5ms", "50ms", "500ms"):
        with tempfile.TemporaryDirectory() as home:
            make_datasets(plan, Path(home) / "set", labels="500ms", latency=latency)
            dataset = open_dataset(Path(home) / "set")
            x, move = rows_of(dataset, "train")
            weight, *_ = np.linalg.lstsq(x, move, rcond=None)
            x, move = rows_of(dataset, "test")
        forecast = np.corrcoef(x @ weight, move)[0, 1]
        print(f"traded {latency:>5} after the row: correlation {forecast:.3f} on {len(move)} rows")


if __name__ == "__main__":
    main()

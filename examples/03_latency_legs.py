"""Each latency leg by itself, constant or as it was recorded, and what it does to a result."""

import tempfile
from pathlib import Path

import numpy as np
import polars as pl

from hft import BUY, SELL, Strategy, backtest

START, SECONDS = 1_704_067_200_000_000_000, 60


class Join(Strategy):
    """One order a side at the touch; slow orders meet a touch that has moved."""

    def on_book(self, book):
        if book.two_sided:
            held = self.position().lots
            self.quote(BUY, book.bid, 20 if held < 200 else 0)
            self.quote(SELL, book.ask, 20 if held > -200 else 0)


def recorded(path: Path) -> None:
    """What a gateway's log could hold: 0.4 ms, and 20 ms in every tenth second."""
    ts = START + np.arange(SECONDS * 10) * 100_000_000
    slow = (np.arange(len(ts)) // 10) % 10 == 9
    pl.DataFrame({"ts": ts, "ns": np.where(slow, 20_000_000, 400_000)}).write_csv(path)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "entry.csv"
        recorded(log)
        legs = {
            "at once": {"latency.scale": 0.0},
            "0.4 ms": {"latency.entry": "400us"},
            "as recorded": {"latency.entry": {"file": str(log)}},
            "20 ms": {"latency.entry": "20ms"},
        }
        market = {"data.synth.duration_s": float(SECONDS), "engine.bracket": False}
        for name, leg in legs.items():
            report = backtest(Join, "synth", settings=market | leg)
            entry = report.figures["latency"]["entry"]
            print(f"{name:12} p50 {entry['p50']:>12} p99 {entry['p99']:>12}: {report}")


if __name__ == "__main__":
    main()

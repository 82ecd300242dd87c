"""Your own rows: a frame of prints and book levels into a store, checked, and a run over it.

Integer prices and quantities are ticks and lots, floats are in currency; see docs/own-data.md.
"""

import tempfile
from pathlib import Path

import numpy as np
import polars as pl

from hft import BUY, InstrumentSpec, Strategy, backtest
from hft.data import Store

START = 1_704_067_200_000_000_000  # 2024-01-01, ns since the epoch


def market(packets: int = 2_000) -> pl.DataFrame:
    """A touch that wanders and a print at the bid now and then; one packet a millisecond."""
    rng = np.random.default_rng(7)
    bid = 10_000 + np.cumsum(rng.integers(-1, 2, packets))
    ts = START + np.arange(packets) * 1_000_000
    rows = []
    for k in range(packets):
        # Levels are absolute: the old touch goes, the new one comes. A first row needs no old one.
        if k and bid[k] != bid[k - 1]:
            rows += [(ts[k], bid[k - 1], 0, "level", "B"), (ts[k], bid[k - 1] + 1, 0, "level", "S")]
        rows += [(ts[k], bid[k], 50, "level", "B"), (ts[k], bid[k] + 1, 50, "level", "S")]
        if k % 5 == 4:
            rows.append((ts[k], bid[k], 60, "trade", "S"))  # a seller hits the bid
    names = ["ts_event", "price", "qty", "kind", "side"]
    frame = pl.DataFrame(rows, schema=names, orient="row")
    return frame.with_columns(ts_recv=pl.col("ts_event") + 200_000)  # 0.2 ms to us


class JoinBid(Strategy):
    """Buys at the touch, ten lots at a time."""

    def on_book(self, book):
        if book.two_sided:
            self.quote(BUY, book.bid, 10)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        spec = InstrumentSpec(symbol="TOY", venue="MINE", tick=0.01, lot=1.0, currency="EUR")
        store = Store(Path(folder) / "store")
        store.write(market(), spec)
        print("stored:", store.symbols(), store.days("TOY.MINE"))
        report = backtest(JoinBid, store.path, settings={"latency.entry": "300us"})
        print(report)
        print(report.fills.select("ts_venue", "price", "lots", "reason").head(3))


if __name__ == "__main__":
    main()

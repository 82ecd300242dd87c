"""Bars of open, high, low, close and volume (CSV or Parquet): weak data, docs/weak-data.md.

    hft data import bars btc.csv --store data --symbol BTCUSDT --venue BINANCE --tick 0.1 \
        --lot 0.001 --set stamp=start --set bar=1min --set spread_ticks=1

Columns `ts open high low close volume`, and `bid ask` at the close where there are any, under
these names or others (`--set close=c`). Which end of its interval a bar is stamped with is asked:
nothing in a file says it. `options.py` has all options, `path.py` how rows are made of a bar.
"""

from pathlib import Path

from hft.adapters.bars.options import BarOptions, read_options
from hft.adapters.bars.source import BarFile
from hft.data.sources import Request
from hft.data.text import TextFile, text_files

__all__ = ["BarFile", "BarOptions", "open_files"]


def open_files(request: Request) -> list[BarFile]:
    """One source a file, or member of a zip, all of one instrument."""
    options = read_options(request.settings)
    spec = request.spec()
    return [
        BarFile(file, spec, options, parquet=is_parquet, repair=request.repair)
        for path in request.paths
        for is_parquet in [_is_parquet(path)]
        for file in ([TextFile(path)] if is_parquet else text_files(path))
    ]


def _is_parquet(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"PAR1"

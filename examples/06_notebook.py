"""What a notebook does with a report: figures, polars frames, a pandas frame, a saved folder."""

import tempfile
from pathlib import Path

import polars as pl

from hft import Report, backtest

STRATEGY = Path(__file__).parents[1] / "strategies" / "quote_at_touch.py"


def main() -> None:
    report = backtest(STRATEGY, "synth", settings={"data.synth.duration_s": 60.0}, seed=5)
    print(report)  # in a notebook the bare name shows tables and pictures

    headline = report.figures["headline"]
    print("net", headline["net"], "bps", headline["bps_of_turnover"], "fills", headline["fills"])

    # Money by the reason of the fill, and the worst moment of the account.
    by_reason = report.fills.group_by("reason").agg(pl.len(), pl.col("lots").sum()).sort("reason")
    print(by_reason)
    print("lowest equity:", report.equity.sort("net").select("ts", "net").row(0))
    print(report.to_pandas("orders")[["side", "price", "lots", "state"]].head(3))

    with tempfile.TemporaryDirectory() as folder:
        report.save(folder)  # the same files as a run folder's, report.html among them
        assert Report.load(folder).json() == report.json()


if __name__ == "__main__":
    main()

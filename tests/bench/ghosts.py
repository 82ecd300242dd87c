"""Hiding orders: its speed, what an n of `power3` that was not fitted costs, odd fates.

    python tests/bench/ghosts.py STORE ...

Prints, for each instrument of stores of orders, the speed of a pass with all models, and Brier
scores of `power3` by n over the part that `hft score queue` scores (docs/queue-score.md).
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from hft.data.opening import open_data
from hft.fitting.tape import Source, sources_of
from hft.scoring.ghosts import MODELS, Model, Options, candidates, hide, split
from hft.scoring.statistics import fair_brier
from hft.types import Kind

LADDER = (0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
OPTIONS = Options()


def main() -> None:
    """Prints both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stores", nargs="+", type=Path)
    sources = [
        source
        for path in parser.parse_args().stores
        for source in sources_of(open_data(path), str(path), (), None, None)
    ]
    print("| instrument | rows | hidden | scan, rows/s | pass, s | rows/s | orders x models/s |")
    print("|---|---|---|---|---|---|---|")
    lines = [speed(source) for source in sources]
    print("\n| instrument |", " | ".join(f"n = {n:g}" for n in LADDER), "|")
    print("|---|" + "---|" * len(LADDER))
    for source, rows in zip(sources, lines, strict=True):
        ladder(source, rows)
    print()
    for source, rows in zip(sources, lines, strict=True):
        unexplained(source, rows)


def speed(source: Source) -> np.ndarray:
    """One line; returns the rows that were hidden."""
    count = sum(len(chunk) for chunk in source.market.chunks(source.name))
    began = time.perf_counter()
    rows, _ = candidates(source, OPTIONS)
    scanned_s = time.perf_counter() - began
    models = [Model(name, 1.7) for name in MODELS]  # no whole power: the slow way
    began = time.perf_counter()
    hide(source, rows, models, OPTIONS)
    spent_s = time.perf_counter() - began
    print(
        f"| {source.name} | {count:,} | {len(rows):,} | {count / scanned_s:,.0f} | {spent_s:.2f} | "
        f"{count / spent_s:,.0f} | {len(rows) * len(models) / spent_s:,.0f} |",
        flush=True,
    )
    return rows


def ladder(source: Source, rows: np.ndarray) -> None:
    """Two lines: Brier scores times 1000, of real orders and of places."""
    _, late = split(hide(source, rows, [], OPTIONS).rows, OPTIONS)
    hidden = hide(source, late, [Model("power3", n) for n in LADDER], OPTIONS)
    for what, window in (("orders", hidden.order), ("places", hidden.place)):
        mean = fair_brier(window.probability, window.filled, OPTIONS.particles).mean(axis=0)
        cells = " | ".join(f"{1e3 * each:.2f}" for each in mean)
        print(f"| {source.name}, {what} | {cells} |", flush=True)


def unexplained(source: Source, rows: np.ndarray) -> None:
    """Fates that first in, first out does not explain, and those that self-match prevention does.

    It does where an order at the price is cancelled in the instant of a trade that it is not in.
    """
    fates = hide(source, rows, [], OPTIONS).rows
    odd = fates[fates["ts_exact"] != fates["ts_fill"]]
    tape = source.market.read(source.name)
    prevented = 0
    for fate in odd:
        at = min(int(fate["ts_exact"]), int(fate["ts_fill"]))
        first, last = np.searchsorted(tape["ts_event"], [at, at + 1])
        told = tape[first:last]
        traded = told["order_id"][told["kind"] == Kind.EXECUTE]
        gone = (told["kind"] == Kind.CANCEL) & (told["price"] == fate["price"])
        prevented += bool(len(traded) and (~np.isin(told["order_id"][gone], traded)).any())
    print(
        f"{source.name}: {len(odd):,} of {len(fates):,} fates are not those of a queue; with "
        f"{prevented:,} of them an order is cancelled in the instant of a trade past it"
    )


if __name__ == "__main__":
    main()

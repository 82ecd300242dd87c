"""What looking up the mids of a run costs, in seconds a million rows, rows in memory.

    python tests/bench/mids.py

A maker at the touch on the synthetic market, told by levels and order by order. Best of five.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from hft.analysis.mids import mids_of
from hft.engine import run_once
from hft.plan import prepare

STRATEGY = Path(__file__).parents[2] / "strategies" / "quote_at_touch.py"


def measure(*, by_orders: bool) -> str:
    """One line of the table."""
    settings = {
        "data.synth.duration_s": 300.0,
        "data.synth.order_by_order": by_orders,
        "engine.bracket": False,
        "engine.shortfall": False,
    }
    plan = prepare(STRATEGY, "synth", settings=settings)
    rows = np.concatenate(list(plan.feeds[0].chunks()))
    plan = replace(plan, feeds=[replace(plan.feeds[0], chunks=lambda: iter([rows]))])
    run = run_once(plan).run
    took_s = []
    for _ in range(5):
        began = time.perf_counter()
        mids_of(run, lambda _: iter([rows]))
        took_s.append(time.perf_counter() - began)
    each = min(took_s) / len(rows) * 1e6
    share = min(took_s) / run.wall_s
    what = "orders" if by_orders else "levels"
    return (
        f"{what}: {each:.3f} s a million rows ({len(rows):,} rows, {len(run.orders):,} orders), "
        f"{100 * share:.1f} % of the run"
    )


if __name__ == "__main__":
    for by_orders in (False, True):
        print(measure(by_orders=by_orders))

"""Golden figures: what each shipped strategy did in a minute of synthetic market, exactly.

A change of the engine, the market, a strategy, a recipe or the bundle that moves a figure shows.
When the move is meant, write the figures anew, look at the difference, and commit it:

    python tests/pipe/test_golden.py && git diff backtests/golden

All figures are whole numbers: counts, lots, and money in 1e-9 of the settlement currency. The
network gives the same bits with AVX2 and AVX-512; elsewhere lstm_mm may differ and is left out.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hft.engine import run_once
from hft.plan import prepare

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "backtests" / "golden"
NAMES = ("glft_mm", "lstm_mm", "obi_mm", "quote_at_touch")
SECONDS = 60.0


def figures(name: str) -> dict[str, int]:
    """Of one run under the strategy's own recipe, cut to a minute."""
    settings = {"data.synth.duration_s": SECONDS}
    done = run_once(prepare(ROOT / "strategies" / f"{name}.py", settings=settings)).run
    assert done.status == "complete", done.error
    last = done.samples[-1]
    found: dict[str, Any] = {
        "rows": done.rows,
        "orders": len(done.orders),
        "replaces": done.orders["replaces"].sum(),
        "fills": len(done.fills),
        "filled_lots": done.fills["lots"].sum(),
        "bought_ticks": (done.fills["lots"] * done.fills["price"])[done.fills["side"] > 0].sum(),
        "sold_ticks": (done.fills["lots"] * done.fills["price"])[done.fills["side"] < 0].sum(),
        "position_lots": last["position"],
        "equity_e9": last["equity"],
        "fees_e9": last["fees"],
        "funding_e9": last["funding"],
        "signals": done.counters["signals"],
    }
    return {key: int(value) for key, value in found.items()}


@pytest.mark.parametrize("name", NAMES)
def test_golden(name: str) -> None:
    from hft import _core

    if name == "lstm_mm" and _core.best_isa() not in ("avx2", "avx512"):
        pytest.skip(f"golden figures of a network are for AVX, this is {_core.best_isa()}")
    assert figures(name) == json.loads((GOLDEN / f"{name}.json").read_text())


def write() -> None:
    """Write the figures anew."""
    GOLDEN.mkdir(parents=True, exist_ok=True)
    for name in NAMES:
        (GOLDEN / f"{name}.json").write_text(json.dumps(figures(name), indent=2) + "\n")


if __name__ == "__main__":
    write()

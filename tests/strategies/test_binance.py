"""The shipped strategies on captures of two real venues: that they run, not what they earn."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from hft.analysis.report import Report
from hft.engine import run_once
from hft.plan import prepare

ROOT = Path(__file__).parents[2]
CAPTURES = {
    "BTCUSDT.BINANCE": ("spot_btcusdt_20240808.gz", 6168599, 6168600, 200, 10_000),
    "BTCUSDT.BINANCE_USDM": ("usdm_btcusdt_20240808.gz", 616597, 616598, 20, 10),
}
"""File, final touch [ticks] by the README of the data, depth of the calibration, lots an order."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, data_dir: Path) -> Path:
    """Both captures, imported as docs/strategies.md says."""
    from hft.data.importing import import_source
    from hft.data.sources import open_sources
    from hft.data.store import Store

    folder = tmp_path_factory.mktemp("binance")
    for name, *_ in CAPTURES.values():
        capture = data_dir / "crypto_l2" / name
        if not capture.is_file():
            pytest.skip(f"no capture at {capture}")
        for source in open_sources("binance", [capture]):
            import_source(source, Store(folder), clock_offset="auto")
    return folder


def recipe(store: Path, symbol: str, name: str) -> dict[str, Any]:
    """backtests/lstm_mm_binance.toml for another symbol and strategy."""
    tables = tomllib.loads((ROOT / "backtests" / "lstm_mm_binance.toml").read_text())
    *_, depth_ticks, lots = CAPTURES[symbol]
    tables["data"] |= {"path": str(store), "symbols": [symbol]}
    tables["params"] |= {"lots": lots, "max_lots": 10 * lots, "depth_ticks": depth_ticks}
    if name != "lstm_mm":
        del tables["params"]["max_age"]
    if name in ("quote_at_touch", "obi_mm"):
        del tables["params"]["depth_ticks"]
    return tables


@pytest.mark.parametrize("symbol", CAPTURES)
@pytest.mark.parametrize("name", ["quote_at_touch", "glft_mm", "obi_mm", "lstm_mm"])
def test_runs_on_a_real_feed(store: Path, symbol: str, name: str) -> None:
    plan = prepare(ROOT / "strategies" / f"{name}.py", recipe=recipe(store, symbol, name))
    done = run_once(plan).run
    _, bid, ask, _, lots = CAPTURES[symbol]
    assert done.status == "complete"
    assert done.counters["gaps"] == 0
    assert (done.samples["bid"] < done.samples["ask"]).all()
    assert (done.samples["bid"][-1], done.samples["ask"][-1]) == (bid, ask)
    assert len(done.fills) > 0
    assert abs(done.fills["position"]).max() <= 10 * lots
    assert Report(done).figures["headline"]["identity_holds"]

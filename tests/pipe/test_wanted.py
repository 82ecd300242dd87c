"""The four strategies of `wanted.py` run as they are written."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cards import card

from hft.data.synth import SynthConfig, symbol_chunks
from hft.engine import Outcome, run_once
from hft.features import Features, OnTouch, imbalance, spread
from hft.inference.bundle import save_bundle
from hft.inference.card import LayerEntry, Scaler
from hft.plan import prepare
from hft.types import InstrumentSpec

WANTED = Path(__file__).parent / "wanted.py"


def market(*names: str, **more: Any) -> tuple[dict[str, np.ndarray], list[InstrumentSpec]]:
    """Synthetic rows under other names."""
    symbols = tuple(f"S{k}" for k in range(len(names)))
    config = SynthConfig(symbols=symbols, **{"duration_s": 60.0, "messages_per_s": 300.0, **more})
    data, specs = {}, []
    for number, (name, spec) in enumerate(zip(names, config.specs(), strict=True)):
        symbol, venue = name.split(".")
        data[name] = np.concatenate(list(symbol_chunks(config, number, rows=100_000)))
        specs.append(InstrumentSpec(symbol=symbol, venue=venue, tick=spec.tick, lot=spec.lot))
    return data, specs


def run(file: Path, name: str, data: Any, specs: Any, **params: Any) -> Outcome:
    recipe = {"engine": {"bracket": False}, "params": params}
    outcome = run_once(prepare(f"{file}:{name}", data, specs=specs, recipe=recipe))
    assert outcome.run.status == "complete", outcome.run.error
    return outcome


def tagged(outcome: Outcome, tag: str) -> np.ndarray:
    orders = outcome.run.orders
    return orders[orders["tag"] == outcome.run.tags.index(tag)]


def test_maker_quotes_two_instruments_from_features() -> None:
    outcome = run(WANTED, "Maker", *market("A.SIM", "B.SIM"), max_lots=3)
    fills = outcome.run.fills
    assert set(fills["instrument"]) == {0, 1}
    assert fills["maker"].all()
    assert np.abs(fills["position"]).max() <= 3


def constant_bundle(folder: Path) -> None:
    """A model that always says up 0.9, down 0.1, move 3 ticks."""
    made = card(
        Features(spread(), imbalance(5), trigger=OnTouch()),
        name="alpha_v3",
        outputs=("up", "down", "move_ticks"),
        warm_up_rows=10,
        layers=(LayerEntry(kind="dense", units=3),),
        scaler=Scaler(mean=(0.0, 0.0), scale=(1.0, 1.0), clip=5.0),
        readout=None,
    )
    layer = {
        "kernel": np.zeros((2, 3), np.float32),
        "bias": np.array([0.9, 0.1, 3.0], np.float32),
    }
    save_bundle(folder, made, [layer])


def test_taker_crosses_on_a_signal_and_leaves_after_a_while(tmp_path: Path) -> None:
    file = tmp_path / "taker.py"
    shutil.copy(WANTED, file)
    constant_bundle(tmp_path / "alpha_v3.bundle")
    outcome = run(file, "Taker", *market("A.SIM"), hold_ns=500_000_000)
    entries, exits = tagged(outcome, "entry"), tagged(outcome, "flatten")
    assert len(entries) > 10
    assert len(exits) > 10
    assert entries["by_signal"].all()
    assert outcome.run.samples[-1]["position"] in range(6)


def test_arb_hedges_what_was_filled() -> None:
    data, specs = market("BTCUSDT.BINANCE", "BTC-PERP.DERIBIT")
    data["BTC-PERP.DERIBIT"]["price"] += 40  # dear enough to be worth it
    outcome = run(WANTED, "Arb", data, specs)
    fills = outcome.run.fills
    assert len(tagged(outcome, "leg")) > 5
    hedged = tagged(outcome, "hedge")["lots"].sum()
    assert hedged == fills["lots"][fills["instrument"] == 0].sum()


def test_twap_buys_in_slices_between_two_times_of_day() -> None:
    data, specs = market(
        "600519.SSE", start="2024-01-02T01:40", duration_s=2400.0, messages_per_s=20.0
    )
    outcome = run(WANTED, "Twap", data, specs)
    strategy: Any = outcome.strategy
    assert strategy.parent.filled_lots == outcome.run.fills["lots"].sum()
    assert 250 <= strategy.on_save()["done"] <= 300
    first, last = (int(outcome.run.orders["ts_decide"][k]) for k in (0, -1))
    assert last - first == pytest.approx(59 * 30e9, abs=60e9)

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from hft import _core
from hft.analysis.records import Reason, Tif
from hft.data.checks import check
from hft.data.sources import write_synthetic
from hft.data.store import Store
from hft.data.synth import SIM_REPORT, SynthConfig, synthesize, synthesize_chunks
from hft.errors import ConfigError
from hft.types import EVENT, Flag, Kind

SHORT = SynthConfig(duration_s=3.0)
START_NS = 1_704_067_200_000_000_000  # 2024-01-01
ACK, FILL, CANCELED, CANCEL_REJECT = 1, 3, 4, 6  # SimReportKind


def digest(config: SynthConfig, rows: int = 1 << 18) -> str:
    found = hashlib.sha256()
    for _, chunk in synthesize_chunks(config, rows=rows):
        found.update(chunk.tobytes())
    return found.hexdigest()


def test_the_same_config_gives_the_same_bytes_in_any_chunks_and_in_another_process() -> None:
    code = (
        "import hashlib; from hft.data.synth import SynthConfig, synthesize_chunks\n"
        "h = hashlib.sha256()\n"
        "for _, rows in synthesize_chunks(SynthConfig(duration_s=3.0)): h.update(rows.tobytes())\n"
        "print(h.hexdigest())"
    )
    path = os.pathsep.join(p for p in sys.path if p)
    other = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": path, "PYTHONHASHSEED": "123"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert other.stdout.strip() == digest(SHORT) == digest(SHORT, rows=13)
    assert digest(msgspec.structs.replace(SHORT, seed=2)) != digest(SHORT)


def test_rows_pass_the_checks_of_the_store_and_come_back_from_it(tmp_path: Path) -> None:
    rows, (spec,) = synthesize(SHORT)
    events = rows["BTCUSDT.SIM"]
    assert events.dtype == EVENT
    assert len(events) > 5_000
    check(events, spec, sequence="increasing").require()
    assert events["kind"][0] == Kind.SNAPSHOT_BEGIN
    assert START_NS <= events["ts_event"].min() <= events["ts_event"].max() <= START_NS + 3 * 10**9
    store = Store(tmp_path / "store")
    with store.writer(spec) as writer:
        for _, chunk in synthesize_chunks(SHORT, rows=1000):
            writer.add(chunk)
    assert writer.rows == len(events)


def test_symbols_do_not_change_each_other() -> None:
    both, specs = synthesize(msgspec.structs.replace(SHORT, symbols=("BTCUSDT", "ETHUSDT")))
    alone, _ = synthesize(SHORT)
    assert [spec.name for spec in specs] == list(both) == ["BTCUSDT.SIM", "ETHUSDT.SIM"]
    assert both["BTCUSDT.SIM"].tobytes() == alone["BTCUSDT.SIM"].tobytes()
    assert set(both["ETHUSDT.SIM"]["instrument"]) == {1}


def test_order_by_order_rows() -> None:
    rows, (spec,) = synthesize(msgspec.structs.replace(SHORT, order_by_order=True))
    events = rows[spec.name]
    check(events, spec).require()
    assert {Kind.ADD, Kind.CANCEL, Kind.EXECUTE} <= set(events["kind"])
    assert not np.isin(events["kind"], [Kind.LEVEL, Kind.TRADE]).any()


def test_progress_goes_from_nothing_to_all() -> None:
    seen: list[tuple[int, float]] = []
    rows, _ = synthesize(SHORT, lambda count, share: seen.append((count, share)))
    assert seen == sorted(seen)
    assert seen[-1] == (len(rows["BTCUSDT.SIM"]), 1.0)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"messages_per_s": 0.0}, "messages_per_s"),
        ({"symbols": ()}, "symbols"),
        ({"symbols": ("A", "A")}, "symbols must differ"),
        ({"alpha_half_life_s": 0.001}, "alpha_half_life_s"),
        ({"start": "yesterday"}, "yesterday"),
    ],
)
def test_a_wrong_config_is_named(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        next(synthesize_chunks(msgspec.structs.replace(SHORT, **wrong)))


@pytest.mark.parametrize("symbols", ["A,B", '["A","B"]', "['A', 'B']"])
def test_settings_are_written_as_in_a_recipe(tmp_path: Path, symbols: str) -> None:
    settings = [f"symbols={symbols}", "duration_s=1", "start=2024-03-04", "tick = 0.5"]
    rows = write_synthetic(tmp_path / "s", settings)
    assert list(rows) == ["A.SIM", "B.SIM"]
    assert Store(tmp_path / "s").days("B.SIM") == ["2024-03-04"]
    with pytest.raises(ConfigError, match=r"--set wants key=value, was 'seed'"):
        write_synthetic(tmp_path / "s", ["seed"])


class Desk:
    """The market with orders of ours, as an in-process venue has it."""

    def __init__(self) -> None:
        instrument = _core.SimInstrument()
        config = _core.SimMarketConfig()
        config.instruments = [instrument]
        config.start_ts = START_NS
        self.market = _core.SimMarket(config)
        self.levels: dict[int, dict[int, int]] = {1: {}, -1: {}}
        self.read(START_NS)

    def read(self, until_ts: int) -> NDArray[Any]:
        buffer = np.zeros(1 << 14, EVENT)
        events = buffer[: self.market.fill(buffer.view(np.uint8), until_ts)]
        for row in events[events["kind"] == Kind.LEVEL]:
            self.levels[int(row["side"])][int(row["price"])] = int(row["qty"])
        return events

    def reports(self) -> NDArray[Any]:
        buffer = np.zeros(100, SIM_REPORT)
        return buffer[: self.market.fill_reports(buffer.view(np.uint8))]

    @property
    def bid(self) -> int:
        return max(price for price, qty in self.levels[1].items() if qty)


def test_our_order_joins_the_queue_fills_in_turn_and_is_gone() -> None:
    desk = Desk()
    price = desk.bid
    queue = desk.levels[1][price]
    desk.market.submit(0, 7, 1, price, 5, int(Tif.GTC), START_NS + 1)
    (row,) = desk.read(START_NS + 1)
    assert (row["qty"], row["ref_id"]) == (queue + 5, 5)
    assert row["flags"] & Flag.OWN
    (ack,) = desk.reports()
    assert (ack["id"], ack["kind"], ack["leaves"], ack["ahead"]) == (7, ACK, 5, queue)
    assert desk.market.ahead(7) == queue
    desk.market.submit(0, 8, 1, price - 50, 5, int(Tif.GTC), START_NS + 1)
    desk.market.cancel(0, 8, START_NS + 1)
    desk.market.cancel(0, 8, START_NS + 1)
    assert list(desk.reports()["kind"]) == [ACK, CANCELED, CANCEL_REJECT]
    for ms in range(1, 60_000, 100):
        desk.read(START_NS + ms * 1_000_000)
        if np.isnan(desk.market.ahead(7)):
            break
    fills = desk.reports()
    assert fills["lots"].sum() == 5
    assert set(fills["kind"]) == {FILL}
    assert fills["maker"].all()
    assert fills["price"][0] == price


def test_what_a_caller_may_not_do() -> None:
    desk = Desk()
    with pytest.raises(ConfigError, match="lots must be positive, was 0"):
        desk.market.submit(0, 1, 1, 600_000, 0, 0, START_NS)
    with pytest.raises(ConfigError, match="instrument 3 is not in this market"):
        desk.market.submit(3, 1, 1, 600_000, 1, 0, START_NS)
    desk.market.submit(0, 1, 1, 10**9, 1, 0, START_NS)
    assert desk.reports()["reason"][0] == Reason.PRICE_COLLAR


def touch_path(events: NDArray[Any], every_ns: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Mid and touch imbalance on a grid of time, from the rows alone."""
    books: dict[int, dict[int, int]] = {1: {}, -1: {}}
    mids, imbalances = [], []
    due = START_NS + every_ns
    for ts, kind, side, price, qty in zip(
        *(events[f].tolist() for f in ("ts_event", "kind", "side", "price", "qty")), strict=True
    ):
        if ts >= due:
            bid, ask = max(books[1]), min(books[-1])
            bids, asks = books[1][bid], books[-1][ask]
            assert bid < ask
            while due <= ts:
                mids.append((bid + ask) / 2)
                imbalances.append((bids - asks) / (bids + asks))
                due += every_ns
        if kind == Kind.LEVEL:
            if qty:
                books[side][price] = qty
            else:
                del books[side][price]
    return np.array(mids), np.array(imbalances)


def test_imbalance_predicts_the_next_half_second_and_no_later_one() -> None:
    config = SynthConfig(duration_s=120.0, seed=4, alpha_strength=0.8, calm_s=1e9)
    mids, imbalances = touch_path(synthesize(config)[0]["BTCUSDT.SIM"], 20_000_000)
    ahead = 25  # of 20 ms
    skill = {}
    for delay in (0, 5, 250):
        moves = mids[delay + ahead :] - mids[delay:-ahead]
        skill[delay] = np.corrcoef(imbalances[: len(moves)], moves)[0, 1]
    assert skill[0] > skill[5] > 0.05
    assert abs(skill[250]) < skill[0] / 2


@pytest.mark.parametrize("seed", [1, 2])
def test_the_market_is_never_crossed(seed: int) -> None:
    rows, _ = synthesize(SynthConfig(duration_s=5.0, seed=seed, messages_per_s=10_000))
    mids, _ = touch_path(rows["BTCUSDT.SIM"], 1_000_000)  # asserts it each ms
    assert len(mids) > 4_000

"""Runs on bars and on the best level alone: what takers and makers get, what the report says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hft import BUY, SELL, Strategy
from hft.adapters.bars import open_files
from hft.analysis.records import FillReason
from hft.data import Store, import_source
from hft.data.importing import NO_DEPTH
from hft.data.sources import Request
from hft.engine import run_once
from hft.feeds import Feed
from hft.plan import Plan, prepare
from hft.types import EVENT, SEEN_BY_BOTH, Flag, InstrumentSpec, Kind

MINUTE_NS = 60_000_000_000
START_NS = 1_704_186_000_000_000_000  # 2024-01-02T09:00
BARS = 40
SPEC = InstrumentSpec(symbol="X", venue="V", tick=0.01, lot=1.0)
TOUCH = {
    "venue.depth": "touch",
    "venue.slippage.model": "spread",
    "venue.slippage.coefficient": 0.5,
}


@pytest.fixture(scope="module")
def bars() -> np.ndarray:
    """(BARS, 5): open, high, low, close [ticks], volume [lots]; a walk with gaps."""
    rng = np.random.default_rng(7)
    close = 10_000 + np.cumsum(rng.integers(-6, 7, BARS))
    first = np.concatenate([[10_000], close[:-1]]) + rng.integers(-1, 2, BARS)
    high = np.maximum(first, close) + rng.integers(0, 5, BARS)
    low = np.minimum(first, close) - rng.integers(0, 5, BARS)
    return np.stack([first, high, low, close, rng.integers(100, 900, BARS)], axis=1)


@pytest.fixture(scope="module")
def store(bars: np.ndarray, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("bars")
    lines = ["ts,open,high,low,close,volume"]
    for number, (first, high, low, close, lots) in enumerate(bars.tolist()):
        ts = START_NS // 10**9 + 60 * number
        prices = ",".join(f"{ticks / 100:.2f}" for ticks in (first, high, low, close))
        lines.append(f"{ts},{prices},{lots}")
    path = folder / "bars.csv"
    path.write_text("\n".join(lines) + "\n")
    said = {"stamp": "start", "bar": "1min", "unit": "s", "spread_ticks": 2}
    facts = {"symbol": "X", "venue": "V", "tick": 0.01, "lot": 1.0}
    (source,) = open_files(Request("bars", [Path(path)], facts, settings=said))
    import_source(source, Store(folder / "store"))
    return str(folder / "store")


def bbo(bars: np.ndarray) -> np.ndarray:
    """The closes as best bid and ask of 20 lots, and a print at each."""
    rows = np.zeros((len(bars), 3), EVENT)
    rows["ts_event"] = rows["ts_recv"] = (START_NS + MINUTE_NS * np.arange(len(bars)))[:, None]
    rows["kind"] = [Kind.TRADE, Kind.BBO, Kind.BBO]
    rows["side"] = [-1, 1, -1]
    falls = np.diff(bars[:, 3], prepend=bars[0, 3]) < 0
    rows["side"][~falls, 1:] = [-1, 1]
    rows["price"] = bars[:, 3, None] + np.where(rows["kind"] == Kind.BBO, -rows["side"], 0)
    rows["qty"] = np.where(rows["kind"] == Kind.BBO, 20, bars[:, 4, None])
    rows["flags"] = SEEN_BY_BOTH
    rows["flags"][:, 2] |= np.uint16(Flag.LAST)
    return rows.reshape(-1)


class Takes(Strategy):
    """Buys 50 lots at a bar's end, and sells them at the next."""

    bars = "1min"
    told: list[tuple[int, ...]]

    def on_start(self) -> None:
        type(self).told = []

    def on_bar(self, bar: Any) -> None:
        type(self).told.append((bar.open, bar.high, bar.low, bar.close, bar.lots))
        self.submit(side=SELL if self.position().lots > 0 else BUY, lots=50)


class Quotes(Strategy):
    """Rests on both sides."""

    def on_start(self) -> None:
        self.every("1min", self.join)

    def join(self) -> None:
        book = self.book()
        if book.live and book.two_sided:
            self.quotes(bid=book.bid, ask=book.ask, lots=5)


def plan_of(strategy: type[Strategy], data: Any, **settings: Any) -> Plan:
    given = {key.replace("__", "."): value for key, value in settings.items()}
    specs = [SPEC] if isinstance(data, dict) else None
    return prepare(strategy, data, specs=specs, settings={"engine.bracket": False, **given})


def run_of(strategy: type[Strategy], data: Any, **settings: Any) -> Any:
    run = run_once(plan_of(strategy, data, **settings)).run
    assert run.status == "complete", run.error
    return run


def feed_of(data: Any) -> Feed:
    return plan_of(Quotes, data).feeds[0]


def test_on_bar_tells_the_bars_of_the_file(store: str, bars: np.ndarray) -> None:
    run_of(Takes, store)
    # The last ends with the data, and timers with the market.
    assert Takes.told == [tuple(bar) for bar in bars[:-1].tolist()]


def test_a_taker_on_bars_gets_what_the_touch_shows(store: str) -> None:
    run = run_of(Takes, store)
    assert run.orders["cum_lots"].max() < 50
    assert run.counters["taker_unfilled_lots"] > 0
    assert any("best level alone" in note and 'depth = "touch"' in note for note in run.notes)


def test_at_the_touch_it_is_filled_whole_and_pays_by_the_formula(store: str) -> None:
    run = run_of(Takes, store, **{k.replace(".", "__"): v for k, v in TOUCH.items()})
    sent = run.orders[run.orders["ts_arrive"] < START_NS + BARS * MINUTE_NS]
    assert (sent["cum_lots"] == 50).all()
    # half of the spread of 2 ticks, each worth 0.01 a lot
    assert (run.fills["impact"] == run.fills["lots"] * 10_000_000).all()
    assert any("weaker than on data with depth" in note for note in run.notes)
    assert any("0.5 of the spread a lot" in note for note in run.notes)


def test_each_slippage_model_is_named(store: str) -> None:
    for model, said in (
        ("none", "nothing for its size"),
        ("volatility", "deviation over 5s a lot"),
        ("square_root", "deviation over 3min a lot, times the root of its share"),
    ):
        run = run_of(
            Takes,
            store,
            venue__depth="touch",
            venue__slippage__model=model,
            venue__slippage__horizon="5s",
            venue__participation_window="3min",
        )
        assert any(said in note for note in run.notes), run.notes
        paid = run.fills["impact"][5:]
        assert (paid == 0).all() if model == "none" else (paid > 0).any()


def test_a_maker_on_bars_is_filled_by_prints_and_by_quotes_through_its_price(store: str) -> None:
    run = run_of(Quotes, store)
    assert len(run.fills) > 10
    assert run.fills["maker"].all()
    reasons = {FillReason(int(reason)).name for reason in run.fills["reason"]}
    assert reasons <= {"QUEUE", "THROUGH", "CROSSED"}
    assert "THROUGH" in reasons


def test_the_best_level_alone_is_run_on_likewise(bars: np.ndarray) -> None:
    data = {"X.V": bbo(bars)}
    shown = run_of(Takes, data)
    assert shown.orders["cum_lots"].max() <= 50
    assert any("best level alone" in note for note in shown.notes)
    whole = run_of(Takes, data, **{k.replace(".", "__"): v for k, v in TOUCH.items()})
    assert (whole.orders["cum_lots"][:-1] == 50).all()
    assert len(run_of(Quotes, data).fills) > 0


def test_data_with_depth_are_not_warned_of(bars: np.ndarray) -> None:
    rows = bbo(bars)
    rows["kind"][rows["kind"] == Kind.BBO] = Kind.LEVEL
    run = run_of(Quotes, {"X.V": rows})
    assert run.notes == []
    run = run_of(Quotes, {"X.V": rows}, venue__depth="touch")
    assert any("though the data show more levels" in note for note in run.notes)


def test_depth_is_known_of_a_feed(store: str, bars: np.ndarray) -> None:
    assert not feed_of(store).has_depth
    assert NO_DEPTH in feed_of(store).cannot_tell
    assert not feed_of({"X.V": bbo(bars)}).has_depth
    rows = bbo(bars)
    rows["kind"][rows["kind"] == Kind.BBO] = Kind.LEVEL
    assert feed_of({"X.V": rows}).has_depth


def test_the_report_says_what_bars_cannot_tell(store: str) -> None:
    from hft.analysis.figures import figures_of

    notes = figures_of(run_of(Quotes, store))["notes"]
    assert any("cannot tell" in note and "knows the future" in note for note in notes)

"""Timers, schedules, and timers that skip what did not change."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from recorder import Recorder, S, market, played, refused
from sim import T0

from hft.engine import run_once
from hft.errors import ConfigError
from hft.plan import prepare
from hft.types import BUY, IOC, InstrumentSpec


def test_timers_every_at_and_cancel() -> None:
    class Look(Recorder):
        def on_start(self) -> None:
            self.timer = self.every("10us", self.tick, "arg")
            self.every(15_000, None)
            self.at(T0 + 25_000, self.stop)
            self.at(0, self.note, "past")

        def tick(self, arg: str) -> None:
            self.note("tick", arg)

        def on_timer(self, timer: Any) -> None:
            self.note("timer")

        def stop(self) -> None:
            self.timer.cancel()

    sim = market()
    sim.tick(50_000)
    s = played(sim, Look)
    assert [at for at, _ in s.of("tick")] == [10_000, 20_000]
    assert s.of("tick")[0][1] == "arg"
    assert [at for at, _ in s.of("timer")] == [15_000, 30_000, 45_000]
    assert s.of("past") == [(0, None)]


def test_timer_with_if_changed_skips_what_did_not_change() -> None:
    class Look(Recorder):
        def on_start(self) -> None:
            self.every(100, self.note, "touch", if_changed=("touch",))
            self.every(100, self.note, "orders", if_changed=("orders",))
            self.every(100, self.note, "position", if_changed=("position",))
            self.at(T0 + 250, lambda: self.submit(BUY, 1, 102, IOC))

    sim = market()
    sim.level(BUY, 101, 1, at=410)
    sim.level(BUY, 101, 2, at=610)  # size alone is no change of the touch
    s = played(sim, Look)
    assert [at for at, _ in s.of("touch")] == [100, 500]
    assert [at for at, _ in s.of("orders")] == [100, 300]
    assert [at for at, _ in s.of("position")] == [100, 300]


def test_schedule_is_a_time_of_day_in_a_zone() -> None:
    class Look(Recorder):
        def on_start(self) -> None:
            self.schedule("09:45", "10:15:00", 3, self.slice, tz="Asia/Shanghai")

        def slice(self, k: int) -> None:
            clock = datetime.fromtimestamp(self.now / 1e9, UTC)
            self.note("slice", (k, f"{clock:%H:%M}"))

    sim = market()
    day = (T0 // (86_400 * S)) * 86_400 * S
    rows = sim.markets["X.SIM"].array()
    for name in ("ts_event", "ts_recv"):
        rows[name] += day + 90 * 60 * S - T0  # 01:30 UTC is 09:30 in Shanghai
    end = rows[-1:].copy()
    end["ts_event"] += 60 * 60 * S
    end["ts_recv"] += 60 * 60 * S
    spec = InstrumentSpec(symbol="X", venue="SIM", tick=1.0, lot=1.0)
    plan = prepare(
        Look,
        {"X.SIM": np.concatenate([rows, end])},
        specs=[spec],
        recipe={"engine": {"bracket": False}},
    )
    strategy: Any = run_once(plan).strategy
    assert [v for _, v in strategy.of("slice")] == [(0, "01:45"), (1, "01:55"), (2, "02:05")]


@pytest.mark.parametrize(
    "bad",
    [
        ("25:00", "26:00", "UTC"),
        ("x", "y", "UTC"),
        ("09:00", "10:00", "Mars/Base"),
        ("10:00", "09:00", "UTC"),
    ],
)
def test_schedule_refuses_what_is_no_time_of_day(bad: tuple[str, str, str]) -> None:
    assert refused(
        market(), lambda s: s.schedule(bad[0], bad[1], 2, lambda k: None, tz=bad[2]), ConfigError
    )

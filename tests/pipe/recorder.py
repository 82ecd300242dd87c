"""A quiet market and a strategy that keeps what it is told, for tests of the strategy API."""

from __future__ import annotations

from typing import Any

import pytest
from sim import T0, Sim

from hft import Strategy

MS, S = 1_000_000, 1_000_000_000


def market(**more: Any) -> Sim:
    """A quiet two-sided market: 100 x 102, 10 lots each, 5 levels deep."""
    sim = Sim(**more)
    for inst in sim.markets:
        sim.book(
            bids={100 - k: 10 for k in range(5)},
            asks={102 + k: 10 for k in range(5)},
            at=0,
            inst=inst,
        )
    return sim


def do(sim: Sim, at: int, action: Any) -> list[Any]:
    """Runs `action(strategy)` at a time; the list holds what it returned."""
    out: list[Any] = []
    sim.call(lambda s: out.append(action(s)), at=at)
    return out


def refused(sim: Sim, action: Any, error: type[Exception]) -> str:
    """What an action raises when it is called inside a handler, caught there."""
    said: list[str] = []

    def attempt(s: Strategy) -> None:
        with pytest.raises(error) as caught:
            action(s)
        said.append(str(caught.value))

    sim.call(attempt, at=10)
    sim.run()
    return said[0]


class Recorder(Strategy):
    """Keeps (time, handler, argument) of everything."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[int, str, Any]] = []

    def note(self, what: str, value: Any = None) -> None:
        self.seen.append((self.now - T0, what, value))

    def of(self, what: str) -> list[tuple[int, Any]]:
        return [(at, v) for at, w, v in self.seen if w == what]


def played(sim: Sim, cls: type[Strategy]) -> Any:
    sim.strategy = cls
    return sim.run().strategy

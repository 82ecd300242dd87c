"""What goes past the binding is what the binding would do: `bind/shortcuts.hpp`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from recorder import market

from hft import Strategy
from hft._core import Book, StrategyBase
from hft.errors import OrderError
from hft.types import BUY, SELL


def asked(action: Callable[[Any], Any]) -> list[tuple[int, int, int]]:
    """What rests after a call inside a handler: side, price, lots."""
    sim = market()
    out: list[tuple[int, int, int]] = []
    sim.call(action, at=10)
    sim.call(lambda s: out.extend((o.side, o.price, o.lots) for o in s.orders()), at=1_000_000_000)
    sim.run()
    return sorted(out)


def inside(action: Callable[[Any], Any]) -> Any:
    """What a call inside a handler returns."""
    sim = market()
    out: list[Any] = []
    sim.call(lambda s: out.append(action(s)), at=10)
    sim.run()
    return out[0]


@pytest.mark.parametrize(
    "action",
    [
        lambda s: s.quotes(98.5, 103.5, 2),
        lambda s: s.quotes(bid=98.5, ask=103.5, lots=2),
        lambda s: s.quotes(98.5, 103.5, lots=2),
        lambda s: s.quotes("X.SIM", 98, 104, 2),
        lambda s: s.quotes(s.listed[0], 98, ask=104, lots=2),
        lambda s: Strategy.quotes(s, 98.5, 103.5, 2),
        lambda s: (s.quote(BUY, 98.5, 2), s.quote("X.SIM", SELL, 103.5, 2)),
        lambda s: (s.ladder(BUY, 98.5, 1, 1, 2), s.ladder("X.SIM", SELL, 103.5, 1, 1, lots=2)),
    ],
)
def test_all_forms_of_a_call_are_one(action: Callable[[Any], Any]) -> None:
    assert asked(action) == [(SELL, 104, 2), (BUY, 98, 2)]


def test_a_method_may_be_kept() -> None:
    def act(s: Any) -> None:
        quotes, book = s.quotes, s.book
        quotes(book().bid - 2, book("X.SIM").ask + 2, 2)

    assert asked(act) == [(SELL, 104, 2), (BUY, 98, 2)]


def wrong(action: Callable[[Any], Any], error: type[Exception], says: str) -> None:
    def attempt(s: Any) -> None:
        with pytest.raises(error, match=says):
            action(s)

    inside(attempt)


@pytest.mark.parametrize(
    ("action", "error", "says"),
    [
        (lambda s: s.quotes(1, 2), TypeError, r"quotes\(self, bid"),
        (lambda s: s.quotes(1, 2, 2.5), TypeError, "incompatible"),
        (lambda s: s.quotes(1, 2, 1 << 70), TypeError, "incompatible"),
        (lambda s: s.quotes(None, 2, 1), TypeError, "incompatible"),
        (lambda s: s.quotes("a", "b", 1), TypeError, "must be real number"),
        (lambda s: s.ladder(BUY, 1, 0, 5, 1), OrderError, "step must be positive"),
        (lambda s: s.quote(0, 1, 1), OrderError, "side must be BUY"),
        (lambda s: s.book(7), TypeError, r"book\(self\)"),
        (lambda s: s.book("Y"), OrderError, "no such instrument"),
        (lambda s: setattr(s.book(), "bid", 3), AttributeError, "no setter"),
        (lambda s: StrategyBase.book(3), TypeError, "incompatible"),
        (lambda s: Book.bid.__get__(3), TypeError, "incompatible"),
    ],
)
def test_wrong_calls_are_told_by_the_binding(
    action: Callable[[Any], Any], error: type[Exception], says: str
) -> None:
    wrong(action, error, says)


def test_docs_and_signatures_are_the_bindings() -> None:
    market().run()  # puts the shortcuts there
    assert "One bid and one ask that should rest" in str(Strategy.quotes.__doc__)
    assert "def book(self) -> object" in StrategyBase.book.__nb_signature__[0][0]
    assert isinstance(Book.bid, property)
    assert "Best bid" in str(Book.bid.__doc__)


@pytest.mark.parametrize("short", [(Book, "bid"), (StrategyBase, "quotes")])
def test_nobody_else_makes_a_shortcut(short: tuple[type, str]) -> None:
    market().run()
    kind = type(vars(short[0])[short[1]])
    with pytest.raises(TypeError, match="cannot create"):
        kind()


@pytest.mark.filterwarnings("ignore:nanobind:RuntimeWarning")
def test_a_strategy_that_was_not_initialised_is_told_so() -> None:
    class Bare(Strategy):
        def __init__(self) -> None:
            pass

    market().run()
    with pytest.raises(TypeError):
        Bare().book()

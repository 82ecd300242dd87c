"""What `from hft import ...` gives, and that each public name says what it is."""

from __future__ import annotations

import subprocess
import sys

import pytest

import hft


def test_all_is_what_can_be_imported() -> None:
    program = """
names = {}
exec("from hft import *", names)
print(*sorted(set(names) - {"__builtins__"}))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == sorted(hft.__all__)
    assert set(hft.__all__) <= set(dir(hft))


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="Strategee"):
        _ = hft.Strategee  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "name",
    [n for n in hft.__all__ if n not in ("BUY", "SELL", "EVENT", "GTC", "IOC", "FOK", "POST_ONLY")],
)
def test_public_names_have_docstrings(name: str) -> None:
    doc = getattr(hft, name).__doc__
    assert doc is not None
    assert not doc.startswith("An enumeration"), "the enum's own docstring, not ours"


def test_what_a_user_meets_in_a_strategy_has_docstrings() -> None:
    handlers = [n for n in vars(hft.Strategy) if n.startswith("on_")]
    assert len(handlers) > 10
    for name in [
        *handlers,
        "submit",
        "cancel",
        "replace",
        "quote",
        "quotes",
        "ladder",
        "flatten",
        "every",
        "at",
        "schedule",
    ]:
        assert getattr(hft.Strategy, name).__doc__, name

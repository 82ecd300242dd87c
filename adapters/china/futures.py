"""Facts of Chinese futures that their exchanges publish, and the sessions of CFFEX."""

from __future__ import annotations

import re
from datetime import date

from hft.adapters.china.sessions import Phase
from hft.types import Trading

PRODUCTS = {
    "IF": (0.2, 300), "IH": (0.2, 300), "IC": (0.2, 200), "IM": (0.2, 200),
    "T": (0.005, 10_000), "TF": (0.005, 10_000), "TL": (0.01, 10_000),
    "au": (0.02, 1000), "ag": (1, 15), "cu": (10, 5), "rb": (1, 10), "TA": (2, 5),
}  # fmt: skip
"""Tick, and what a price of 1 is worth in a contract [CNY]; one that changed, as of TS, is left to
the user."""

_BONDS = ("T", "TF", "TS", "TL")
_INDICES = ("IF", "IH", "IC", "IM")


def product_of(code: str) -> str:
    """Letters of a contract: IF of `IF2203`."""
    match = re.match(r"[A-Za-z]+", code)
    return match[0] if match else ""


def facts_of(code: str) -> dict[str, float]:
    """Tick and multiplier of a contract, if they are known here; one lot is one contract."""
    known: dict[str, float] = {"lot": 1.0}
    if product_of(code) in PRODUCTS:
        known["tick"], known["multiplier"] = PRODUCTS[product_of(code)]
    return known


def at_cffex(code: str) -> bool:
    """Whether it is one of CFFEX's futures."""
    return product_of(code) in _BONDS + _INDICES


def phases_of(code: str, day: date) -> tuple[Phase, ...]:
    """Phases of a CFFEX contract on a day; none for another exchange's.

    Opening auctions are the five minutes before continuous trading.
    """
    product = product_of(code)
    if product in _BONDS:
        opens, closes = ("09:15" if day < date(2020, 7, 20) else "09:30"), "15:15"
    elif product in _INDICES:
        opens, closes = ("09:15", "15:15") if day.year < 2016 else ("09:30", "15:00")
    else:
        return ()
    return (
        Phase("09:10" if opens == "09:15" else "09:25", Trading.AUCTION),
        Phase(opens, Trading.OPEN),
        Phase("11:30", Trading.HALT),
        Phase("13:00", Trading.OPEN),
        Phase(closes, Trading.CLOSED),
    )

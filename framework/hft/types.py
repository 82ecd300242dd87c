"""Names shared by every part: the market-data row, its kinds and flags, sides, time in force."""

from __future__ import annotations

from enum import IntEnum, IntFlag

import msgspec
import numpy as np

EVENT = np.dtype(
    [
        ("ts_event", "<i8"),  # venue's clock, ns since the epoch, UTC
        ("ts_recv", "<i8"),  # our clock
        ("price", "<i8"),  # ticks
        ("qty", "<i8"),  # lots
        ("order_id", "<i8"),
        ("ref_id", "<i8"),  # second order of a trade, new id of a replace, or a small payload
        ("seq", "<i8"),  # venue's sequence or update id; 0: none
        ("instrument", "<u4"),
        ("kind", "u1"),
        ("side", "i1"),  # +1 bid or buyer, -1 ask or seller, 0 unknown
        ("flags", "<u2"),
    ]
)
"""One market-data row: 64 bytes, the same bytes as `hft::Event` (framework/core/event.hpp)."""


class Kind(IntEnum):
    """What a row says; see framework/core/event.hpp for each field's meaning by kind."""

    LEVEL = 1
    CLEAR = 2
    SNAPSHOT_BEGIN = 3
    SNAPSHOT_END = 4
    TRADE = 5
    BBO = 6
    BAR = 7
    ADD = 16
    MODIFY = 17
    CANCEL = 18
    EXECUTE = 19
    REPLACE = 20
    STATUS = 32
    DATUM = 33


class Flag(IntFlag):
    """Who sees a row, and how sure we are of it."""

    SEEN_BY_VENUE = 1
    SEEN_BY_US = 2
    LAST = 4
    RECOVERED = 8
    UNCERTAIN = 16
    OWN = 32
    NO_PRINT = 64
    NO_CHANGE = 128


SEEN_BY_BOTH = int(Flag.SEEN_BY_VENUE | Flag.SEEN_BY_US)


class Trading(IntEnum):
    """Trading state in a STATUS row's `ref_id`."""

    OPEN = 0
    HALT = 1
    AUCTION = 2
    CLOSED = 3
    GAP = 4


class Datum(IntEnum):
    """What a DATUM row carries, in its `order_id`."""

    FUNDING = 1
    MARK = 2
    SIGNAL = 3


class Side(IntEnum):
    """+1 and -1, so that `price * side` orders both sides the same way."""

    BUY = 1
    SELL = -1


BUY, SELL = Side.BUY, Side.SELL


class Tif(IntEnum):
    """Time in force."""

    GTC = 0
    IOC = 1
    FOK = 2
    POST_ONLY = 3

    def __str__(self) -> str:
        return self.name


GTC, IOC, FOK, POST_ONLY = Tif.GTC, Tif.IOC, Tif.FOK, Tif.POST_ONLY


class InstrumentSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Facts about one instrument, kept in a store's metadata.

    Prices are `ticks * tick`, quantities `lots * lot`. A linear contract is worth
    `price * quantity * multiplier` in its quote currency; an inverse one
    `quantity * multiplier / price` in its base currency.
    """

    symbol: str
    venue: str
    tick: float
    lot: float
    multiplier: float = 1.0
    inverse: bool = False
    currency: str = ""
    """Settlement currency, for reports."""
    negative_price: bool = False
    """Prices at or below zero are valid: spreads, some futures."""

    @property
    def name(self) -> str:
        """`SYMBOL.VENUE`, the key of `self.instruments`."""
        return f"{self.symbol}.{self.venue}"

"""What a run leaves behind, as NumPy rows: the same bytes as framework/core/records.hpp."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from hft.types import Tif as Tif

NO_TIME = np.iinfo(np.int64).min
"""A time that never came."""
NO_PRICE = np.iinfo(np.int64).min
"""A price or mid that does not exist."""
MARKOUT_NS = (10_000_000, 100_000_000, 1_000_000_000, 5_000_000_000, 10_000_000_000, 60_000_000_000)


class OrderState(IntEnum):
    """State of an order, in FIX words."""

    PENDING_NEW = 0
    NEW = 1
    PARTIALLY_FILLED = 2
    FILLED = 3
    PENDING_CANCEL = 4
    PENDING_REPLACE = 5
    CANCELED = 6
    REJECTED = 7
    EXPIRED = 8
    UNKNOWN = 9

    def __str__(self) -> str:
        return self.name


class Reason(IntEnum):
    """Why an order was refused or ended; see framework/core/records.hpp."""

    NONE = 0
    ORDER_SIZE = 1
    POSITION_LIMIT = 2
    OPEN_ORDERS = 3
    PRICE_COLLAR = 4
    MESSAGE_RATE = 5
    NO_REFERENCE = 6
    HALTED_BY_RISK = 7
    WOULD_CROSS = 8
    NO_LIQUIDITY = 9
    MARKET_CLOSED = 10
    UNKNOWN_ORDER = 11
    TOO_SMALL = 12
    CANCELED_BY_US = 13
    END_OF_RUN = 14

    def __str__(self) -> str:
        return self.name


class FillReason(IntEnum):
    """Why a fill happened; see framework/core/records.hpp."""

    NONE = 0
    QUEUE = 1
    THROUGH = 2
    CROSSED = 3
    TAKEN = 4

    def __str__(self) -> str:
        return self.name


ORDER_ROW = np.dtype(
    [
        ("id", "<u8"),
        ("price", "<i8"),
        ("lots", "<i8"),
        ("cum_lots", "<i8"),
        ("cum_ticks", "<i8"),
        ("ahead_at_accept", "<f8"),
        ("ts_cause_event", "<i8"),
        ("ts_cause_recv", "<i8"),
        ("ts_model_start", "<i8"),
        ("ts_model_end", "<i8"),
        ("ts_decide", "<i8"),
        ("ts_handled", "<i8"),
        ("ts_send", "<i8"),
        ("ts_arrive", "<i8"),
        ("ts_ack", "<i8"),
        ("ts_done", "<i8"),
        ("cause_row", "<i8"),
        ("instrument", "<u4"),
        ("tag", "<u4"),
        ("parent", "<u4"),
        ("replaces", "<u4"),
        ("side", "i1"),
        ("tif", "u1"),
        ("state", "u1"),
        ("reason", "u1"),
        ("by_signal", "u1"),
        ("pad", "V11"),
    ]
)
FILL_ROW = np.dtype(
    [
        ("order", "<u8"),
        ("price", "<i8"),
        ("lots", "<i8"),
        ("fee", "<i8"),
        ("impact", "<i8"),
        ("ts_venue", "<i8"),
        ("ts_recv", "<i8"),
        ("mid2", "<i8"),
        ("ahead_at_accept", "<f8"),
        ("cause_row", "<i8"),
        ("position", "<i8"),
        ("markout_mid2", "<i8", (len(MARKOUT_NS),)),
        ("instrument", "<u4"),
        ("side", "i1"),
        ("maker", "u1"),
        ("reason", "u1"),
        ("extrapolated", "u1"),
    ]
)
SAMPLE_ROW = np.dtype(
    [
        ("ts", "<i8"),
        ("bid", "<i8"),
        ("ask", "<i8"),
        ("position", "<i8"),
        ("equity", "<i8"),
        ("fees", "<i8"),
        ("funding", "<i8"),
        ("impact", "<i8"),
        ("instrument", "<u4"),
        ("open_orders", "<u4"),
    ]
)
REUSE_SECOND = np.dtype(
    [
        ("second", "<i8"),
        ("model", "<u4"),
        ("instrument", "<u4"),
        ("rows", "<u4"),
        ("reused", "<u4"),
        ("shadows", "<u4"),
        ("compared", "<u4"),
        ("disagreed", "<u4"),
        ("trips", "<u4"),
        ("off", "<u4"),
        ("under_way", "<u4"),
        ("no_answer", "<u4"),
        ("too_often", "<u4"),
        ("too_old", "<u4"),
        ("side", "<u4"),
        ("far", "<u4"),
        ("unsure", "<u4"),
    ]
)
"""What became of a stream's rows in a second of market time (framework/core/similarity.hpp)."""

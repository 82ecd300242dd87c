"""Columns of the Shanghai files, and their rows as EVENT rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hft.adapters.china.clock import read_dates, read_stamps, read_times
from hft.data.blocks import Block
from hft.data.checks import Events
from hft.types import EVENT, SEEN_BY_BOTH, InstrumentSpec, Kind

Ints = NDArray[np.int64]

_ADD, _CANCEL = int(Kind.ADD), int(Kind.CANCEL)
_LETTERS, _NUMBERS = {"B": 1, "S": -1}, {"1": 1, "2": -1}


class Layout(NamedTuple):
    """Which column holds what; an empty name: no such column."""

    name: str
    symbol: str
    seq: str
    date: str
    time: str
    received: str
    """Time of day where there is no date, else an instant."""
    price: str
    qty: str
    side: str
    sides: Mapping[str, int]
    kind: str = ""
    kinds: Mapping[str, int] = {}
    """Of orders."""
    order_id: str = ""
    buyer: str = ""
    seller: str = ""
    source: str = ""
    """Tells orders from trades where one file holds both."""
    per_unit: int = 1
    """Of the price."""

    def columns(self) -> list[str]:
        """Those that are read."""
        c = (self.symbol, self.seq, self.date, self.time, self.received, self.price, self.qty)
        more = (self.side, self.kind, self.order_id, self.buyer, self.seller, self.source)
        return [name for name in (*c, *more) if name]


TONGLIAN_ORDERS = Layout(
    "entrust", "SecurityID", "BizIndex", "", "OrderTime", "LocalTime", "OrderPrice", "Balance",
    "OrderBSFlag", _LETTERS, "OrderType", {"A": _ADD, "D": _CANCEL}, "OrderNO",
)  # fmt: skip
TONGLIAN_TRADES = Layout(
    "trade", "SecurityID", "BizIndex", "", "TradTime", "LocalTime", "TradPrice", "TradVolume",
    "TradeBSFlag", {**_LETTERS, "N": 0}, buyer="TradeBuyNo", seller="TradeSellNo",
)  # fmt: skip
ORDERS = Layout(
    "orders", "SecurityID", "ApplSeqNum", "MDDate", "MDTime", "ReceiveDateTime", "OrderPrice",
    "OrderQty", "OrderBSFlag", _NUMBERS, "OrderType", {"2": _ADD, "10": _CANCEL}, "OrderNO",
)  # fmt: skip
TRADES = Layout(
    "trades", "SecurityID", "ApplSeqNum", "MDDate", "MDTime", "ReceiveDateTime", "TradePrice",
    "TradeQty", "TradeBSFlag", {**_NUMBERS, "0": 0}, buyer="TradeBuyNo", seller="TradeSellNo",
)  # fmt: skip
BOTH = Layout(
    "orders and trades", "SecurityID", "ApplSeqNum", "Date", "Time", "", "Price", "Qty", "BSFlag",
    {**_NUMBERS, "0": 0}, "Type", {"2": _ADD, "10": _CANCEL}, buyer="BuyNo", seller="SellNo",
    source="SourceType", per_unit=10_000,
)  # fmt: skip

LAYOUTS = (TONGLIAN_ORDERS, TONGLIAN_TRADES, ORDERS, TRADES, BOTH)


def layout_of(header: list[str]) -> Layout | None:
    """The layout that has these columns."""
    found = set(header)
    return next((layout for layout in LAYOUTS if found.issuperset(layout.columns())), None)


def symbol_of(word: str) -> str:
    """A security's number without its exchange: 600519 of `600519.SH`."""
    return word.partition(".")[0]


def events_of(block: Block, layout: Layout, spec: InstrumentSpec, day_ns: int) -> Events:
    """Rows of a block that could be read, and which are good is left in `block.good`.

    `seq` is the venue's number; LAST is not set.

    Args:
        block: rows of one instrument.
        layout: of the file.
        spec: tick and lot.
        day_ns: when the day begins, where the file holds no date.
    """
    out = np.zeros(len(block), EVENT)
    _stamp(out, block, layout, day_ns)
    out["seq"] = block.integers(layout.seq)
    side = block.codes(layout.side, dict(layout.sides))
    out["qty"] = block.steps(block.floats(layout.qty), spec.lot, "qty")
    price = block.floats(layout.price) / layout.per_unit
    if layout.source:
        trade = block.codes(layout.source, {"0": 0, "1": 1}).astype(bool)
    else:
        trade = np.full(len(block), not layout.kind)
    if trade.any():
        _trades(out, block, layout, side, trade)
    if not trade.all():
        _orders(out, block, layout, side, ~trade)
    price[out["kind"] == _CANCEL] = 0.0  # some vendors leave it out
    out["price"] = block.steps(price, spec.tick, "price")
    out["flags"] = SEEN_BY_BOTH
    return out


def _stamp(out: Events, block: Block, layout: Layout, day_ns: int) -> None:
    day: Any = day_ns
    if layout.date:
        day = block.read(layout.date, read_dates, "date such as 2023.07.11")
    out["ts_event"] = day + block.read(layout.time, read_times, "time such as 09:15:00.020")
    if not layout.received:
        out["ts_recv"] = out["ts_event"]
    elif layout.date:
        out["ts_recv"] = block.read(
            layout.received, read_stamps, "time such as 2023.07.11T09:15:00.020"
        )
    else:
        out["ts_recv"] = day + block.read(layout.received, read_times, "time such as 09:15:00.020")


def _trades(out: Events, block: Block, layout: Layout, side: Ints, mine: NDArray[Any]) -> None:
    """B (S) took from a resting sell (buy) order; of a taker only what is left comes as an order.

    An auction matches two that rest.
    """
    buyer, seller = block.integers(layout.buyer), block.integers(layout.seller)
    buyer_rests = side <= 0
    out["kind"][mine] = Kind.EXECUTE
    out["side"][mine] = -side[mine]
    out["order_id"][mine] = np.where(buyer_rests, buyer, seller)[mine]
    out["ref_id"][mine] = np.where(buyer_rests, seller, buyer)[mine]


def _orders(out: Events, block: Block, layout: Layout, side: Ints, mine: NDArray[Any]) -> None:
    words = dict(layout.kinds)
    if layout.source:
        words |= {"0": 0, "1": 0}  # of trades
    kind = block.codes(layout.kind, words)
    if layout.order_id:
        order_id = block.integers(layout.order_id)
    else:
        buyer, seller = block.integers(layout.buyer), block.integers(layout.seller)
        order_id = np.where(side > 0, buyer, seller)
    out["kind"][mine] = kind[mine]
    out["side"][mine] = side[mine]
    out["order_id"][mine] = order_id[mine]

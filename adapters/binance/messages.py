"""Messages of a capture, and what a few of them say about the instrument."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

import msgspec

from hft.data.checks import TS_END
from hft.data.csv_blocks import decimals

Levels = list[tuple[str, str]]
Id = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
MS_END = TS_END // 1_000_000
US_BEGIN = 10**15  # 2001
VenueTime = Annotated[int, msgspec.Meta(ge=0, le=TS_END // 1_000)]  # in ms or us


class Message(msgspec.Struct):
    """Any message read here; `data` if it came wrapped as `{stream, data}`."""

    data: Message | None = None
    e: str = ""
    E: VenueTime = 0
    T: VenueTime = 0
    s: str = ""
    U: Id = 0
    u: Id = 0
    pu: Id | None = None
    b: Levels | str | int = 0
    a: Levels | str | Id = 0
    p: str = ""
    q: str = ""
    m: bool = False
    t: Id = 0
    X: str = "MARKET"
    lastUpdateId: Id = 0
    bids: Levels = []
    asks: Levels = []


class _Name(msgspec.Struct):
    data: _Name | None = None
    e: str = ""


class Unreadable(Exception):
    pass


def parse(text: bytes, decode: Any) -> tuple[int, Message]:
    stamp, _, body = text.partition(b" ")
    try:
        message = decode(body)
    except msgspec.ValidationError as error:
        message = _foreign(body, error)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Unreadable(f"JSON is cut or damaged: {error}") from error
    if not stamp.isdigit() or len(stamp) not in (16, 19):
        raise Unreadable(f"local time {stamp[:32]!r} is not 16 digits (us) or 19 digits (ns)")
    ts_recv = int(stamp) * (1_000 if len(stamp) == 16 else 1)
    if ts_recv >= TS_END:
        raise Unreadable(f"local time {stamp!r} is after the year 2200")
    message = message.data or message
    if MS_END <= message.E < US_BEGIN or MS_END <= message.T < US_BEGIN:
        raise Unreadable(f"venue time {max(message.E, message.T)} is neither in ms nor in us")
    return ts_recv, message


def _foreign(body: bytes, error: msgspec.ValidationError) -> Message:
    """A message of a kind not read here may use the same letters for other types."""
    try:
        name = msgspec.json.decode(body, type=_Name)
    except msgspec.MsgspecError:
        raise Unreadable(str(error)) from error
    event = (name.data or name).e
    if event in ("", "depthUpdate", "trade", "aggTrade"):
        raise Unreadable(f"{event or 'message'}: {error}") from error
    return Message(e=event)


def venue_ns(stamp: int) -> int:
    """Venue time is in ms, or in us for a stream opened with `timeUnit=MICROSECOND`."""
    return stamp * (1_000_000 if stamp < MS_END else 1_000)


class Sample:
    """What the first lines say about the instrument."""

    def __init__(self, messages: Iterable[Message]) -> None:
        self.symbol = ""
        self.futures = False
        self.has_trade = False
        self.price_decimals = 0
        self.qty_decimals = 0
        for m in messages:
            self.symbol = self.symbol or m.s
            self.futures |= m.pu is not None
            self.has_trade |= m.e == "trade"
            levels = [*m.bids, *m.asks]
            for side in (m.b, m.a):
                levels += side if isinstance(side, list) else []
            if m.e in ("trade", "aggTrade"):
                levels.append((m.p, m.q))
            prices, sizes = (decimals(level[at] for level in levels) for at in (0, 1))
            self.price_decimals = max(self.price_decimals, prices)
            self.qty_decimals = max(self.qty_decimals, sizes)

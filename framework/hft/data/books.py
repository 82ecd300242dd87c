"""The book that a feed's rows lead to: its touch after every packet, its levels and its queues.

The core keeps it, the same book that replay and live use.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hft.features import as_words
from hft.types import EVENT, Trading

Events = NDArray[Any]

NO_PRICE = int(np.iinfo(np.int64).min)
"""Price of a side that is empty."""

TOUCH = np.dtype(
    [
        ("ts_event", "<i8"),
        ("ts_recv", "<i8"),
        ("bid", "<i8"),  # ticks; NO_PRICE: no bids
        ("bid_lots", "<i8"),
        ("ask", "<i8"),
        ("ask_lots", "<i8"),
        ("row", "<i8"),  # of the packet's last row, counted over all that were fed
        ("trading", "<i8"),  # a `Trading` value
    ]
)
"""The best levels after a packet."""


class BookStream:
    """Our book of one instrument, fed chunk by chunk."""

    def __init__(self) -> None:
        from hft import _core

        self._core = _core.BookStream()

    def feed(self, rows: Events) -> NDArray[Any]:
        """Apply EVENT rows; the touch after each packet that we see, (packets,) TOUCH."""
        return np.asarray(self._core.feed(as_words(rows))).view(TOUCH).reshape(-1)

    def levels(self, side: int, n: int) -> NDArray[np.int64]:
        """The best `n` levels, (k, 3): price in ticks, lots, orders (0 on a feed of levels)."""
        return np.asarray(self._core.levels(int(side), n))

    def queue(self, side: int, price: int) -> NDArray[np.int64]:
        """Orders at a price, first in the queue first, (k, 2): id, lots."""
        return np.asarray(self._core.queue(int(side), price))

    @property
    def live_orders(self) -> int:
        """Orders that rest; 0 on a feed of levels."""
        return int(self._core.live_orders)

    @property
    def faults(self) -> dict[str, int]:
        """What an order-by-order feed got wrong: `unknown_id`, `reused_id`, `overfill`."""
        return dict(self._core.faults)

    @property
    def trading(self) -> Trading:
        """State of the market."""
        return Trading(self._core.trading)

    @property
    def state(self) -> str:
        """`EMPTY`, `SYNCING`, `LIVE` or `GAP`."""
        return str(self._core.state)


def levels_of(chunks: Iterable[Events]) -> Iterator[Events]:
    """An order-by-order feed as one of levels: what each row does to them, and its print."""
    from hft import _core

    stream = _core.LevelStream()
    for rows in chunks:
        yield _events(stream.feed(as_words(rows)))
    rest = _events(stream.rest())
    if len(rest):
        yield rest


def _events(words: Any) -> Events:
    return np.asarray(words).view(EVENT).reshape(-1)

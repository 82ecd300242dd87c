"""Raw captures of Binance, spot and USD-M: `<local time> {json}` a line, plain or packed.

Read are depth diffs, trades (`trade`, else `aggTrade`) and the REST depth snapshot; other messages
are counted and left out. The local time is in us or ns, told by its size.

**Book.** Diffs wait for a snapshot with `lastUpdateId` L. Spot: those with `u <= L` are dropped,
the first kept one needs `U <= L + 1 <= u`, and then each `U` is the previous `u + 1`. USD-M:
dropped with `u < L`, first `U <= L <= u`, and then each `pu` is the previous `u` (its `U` is
normally not `pu + 1`). A diff that does not chain gives a STATUS row GAP; the book is down until
the next snapshot.

**Clock of the venue.** `T` where there is one, else `E`. Trades and diffs are sent by different
machines and interleave in another order than they happened, so the importing splits late rows by
side (hft/data/reorder.py). A spot snapshot has no time: it gets that of the diff before it.
"""

from hft.adapters.binance.capture import BinanceCapture
from hft.data.sources import Request

__all__ = ["BinanceCapture", "open_files"]


def open_files(request: Request) -> list[BinanceCapture]:
    """Captures follow each other as one source."""
    return [BinanceCapture(*request.paths, repair=request.repair, **request.facts)]

"""Bitstamp order logs: a CSV of order events, or the raw log of the websocket.

    id,timestamp,exchange.timestamp,price,volume,action,direction            (CSV, times in ms)
    <ms> order_created {"price": "236.47", "amount": "2.0", "id": 65595247, "order_type": 0, ...}

What the data show (2015-05-01, 50,414 order events beside 575 trades of the same log):

- `volume` is what is left. `deleted` with 0 left is a fill, with more a cancel.
- Nobody can amend an order, so a `changed` with less left at the same price is a fill, and both
  sides of a trade appear, next to each other and equal to 2 satoshi (one, in the raw log): the
  older order made the price. 574 of the 575 trades are found so, at their price and size.
- A `changed` at another price is a market order moving on: it is a MODIFY, its size being counted
  anew from the money that is left.
- An aggressive order is published whole, and what it trades a tenth of a second later: the book
  stands crossed for so long.
- `exchange.timestamp` is when the order was created, in whole seconds, on each of its events, so it
  is no time of the event and goes back all the time. `timestamp` is the receiver's.

A trade becomes EXECUTE of the older order, the print, and EXECUTE with NO_PRINT of the younger one,
both UNCERTAIN.
"""

from hft.adapters.bitstamp.source import BitstampLog, open_files

__all__ = ["BitstampLog", "open_files"]

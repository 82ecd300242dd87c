"""CSV files of Tardis: incremental_book_L2, trades, quotes, book_snapshot_N.

    exchange,symbol,timestamp,local_timestamp,...        times in us since the epoch

What a file is, is told by its header line. Files of one instrument that are given together are one
feed, merged by `local_timestamp`; a file with several symbols gives a source for each.

- incremental_book_L2: LEVEL rows; those with `is_snapshot` stand between SNAPSHOT_BEGIN and
  SNAPSHOT_END.
- trades: TRADE rows, `side` being the aggressor's.
- quotes: BBO rows, bid then ask; a side without a quote is a CLEAR.
- book_snapshot_N: the level changes between two snapshots, marked UNCERTAIN.

Tick and lot are those of the decimals in the first lines, unless given. `timestamp` is the venue's,
or for venues that send none Tardis' own.
"""

from hft.adapters.tardis.feed import TardisFeed, open_files

__all__ = ["TardisFeed", "open_files"]

"""Databento's DBN, `.dbn` or `.dbn.zst`: MBO, MBP-1, MBP-10, TBBO and trades of versions 1 to 3.

One source a symbol, venue and file; symbols are those that the header maps instrument ids to, which
may be other ids each day. Definition and status records are used wherever they stand, in the same
file or in another one given with it: `hft data import databento mbo.dbn.zst definition.dbn.zst`.
How records become rows: rows.py; trading states: sessions.py; ticks that nobody gives: survey.py.
"""

from hft.adapters.databento.opening import open_files
from hft.adapters.databento.source import DbnSource

__all__ = ["DbnSource", "open_files"]

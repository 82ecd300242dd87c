"""Market data: the event store, checks before replay, importing, and synthetic markets."""

from hft.data.checks import Checker, Finding, Report, check
from hft.data.importing import Batch, Imported, Source, import_source
from hft.data.opening import FileData, MarketData, open_data
from hft.data.repairs import repair
from hft.data.store import Store

__all__ = [
    "Batch",
    "Checker",
    "FileData",
    "Finding",
    "Imported",
    "MarketData",
    "Report",
    "Source",
    "Store",
    "check",
    "import_source",
    "open_data",
    "repair",
]

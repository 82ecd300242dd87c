"""A user's own CSV or Parquet file, read by a map that says what its columns mean (docs/data.md).

The map is TOML. `[instrument]` holds the facts; `[columns]` names a column for each EVENT field,
with the unit and zone of times and the words for sides and kinds. Files are read in blocks, so
memory does not grow with them. Line numbers count the header, and take one row as one line.
"""

from hft.adapters.table.layout import Columns, Map, load_map
from hft.adapters.table.source import TableFile

__all__ = ["Columns", "Map", "TableFile", "load_map"]

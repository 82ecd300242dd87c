"""A user's own CSV or Parquet file, read by a map that says what its columns mean (docs/data.md).

The map is TOML. `[instrument]` holds the facts; `[columns]` names a column for each EVENT field,
with the unit and zone of times and the words for sides and kinds. Files are read in blocks, so
memory does not grow with them. Line numbers count the header, and take one row as one line.
"""

from hft.adapters.table.layout import Columns, Map, load_map
from hft.adapters.table.source import Format, TableFile
from hft.data.sources import Request
from hft.errors import ConfigError

__all__ = ["Columns", "Map", "TableFile", "load_map", "open_files"]


def open_files(request: Request) -> list[TableFile]:
    """One source a file, all by the same map."""
    if request.columns is None:
        raise ConfigError(
            f"a {request.form} file needs --map FILE.toml, which says what its columns mean"
        )
    if request.facts:
        raise ConfigError(
            f"{', '.join(request.facts)} of a {request.form} file belong into [instrument] of "
            "the map"
        )
    layout = load_map(request.columns)
    form: Format = "csv" if request.form == "csv" else "parquet"
    return [TableFile(path, layout, form, repair=request.repair) for path in request.paths]

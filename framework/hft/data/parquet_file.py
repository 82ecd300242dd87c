"""A Parquet file, opened so that memory does not grow with it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hft.errors import DataError

if TYPE_CHECKING:
    import pyarrow.parquet as pq


def open_parquet(path: Path) -> pq.ParquetFile:
    """The file, to be closed; pages are held against their checksums where they have some.

    Raises:
        DataError: it cannot be read, or is not whole: what a file holds is written at its end.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        # Pre-buffered, which is the default, a file keeps every byte that was read of it until it
        # is closed (apache/arrow#39808); from a disk it is no faster.
        return pq.ParquetFile(path, pre_buffer=False, page_checksum_verification=True)
    except (FileNotFoundError, PermissionError) as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path}: not a whole Parquet file: {error}") from error

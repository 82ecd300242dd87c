"""Parquet files in the same blocks of rows as text: wanted columns, and row groups, alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hft.data.blocks import Block, Place, Reading
from hft.data.parquet_file import open_parquet
from hft.errors import DataError, SchemaError

BATCH_ROWS = 1 << 14


class ParquetReader(Reading):
    """Reads some columns in batches; the place of a block is that of its row group.

    Args:
        path: what to read.
        wanted: columns.
        repair: end where the file is damaged, and count it, instead of refusing.
        counts: where to count.
    """

    def __init__(
        self,
        path: Path,
        wanted: Sequence[str],
        *,
        repair: bool = False,
        counts: dict[str, int] | None = None,
    ) -> None:
        super().__init__(str(path), "row", repair=repair, counts=counts)
        self._path = path
        self._wanted = list(wanted)

    def blocks(self, only: set[Place] | None = None) -> Iterator[Block]:
        """Rows in file order; with `only`, those of the row groups at these places."""
        import pyarrow as pa

        self.damaged = False
        row = 1
        with open_parquet(self._path) as file:
            missing = [name for name in self._wanted if name not in file.schema_arrow.names]
            if missing:
                raise SchemaError(
                    f"{self.name}: no column {missing[0]!r}; it has {file.schema_arrow.names}"
                )
            total = max(file.metadata.num_rows, 1)
            try:
                for group in range(file.num_row_groups):
                    place = Place(group, file.metadata.row_group(group).num_rows, row)
                    if only is None or place in only:
                        yield from self._batches(file, place, total)
                    row += place.size
            except (pa.ArrowException, OSError) as error:
                if not self.repair:
                    raise DataError(f"{self.name}: damaged after row {row - 1}: {error}") from error
                self.broke_off()

    def _batches(self, file: Any, place: Place, total: int) -> Iterator[Block]:
        import pyarrow as pa

        row = place.line
        for batch in file.iter_batches(BATCH_ROWS, row_groups=[place.at], columns=self._wanted):
            rows = np.arange(row, row + batch.num_rows)
            row += batch.num_rows
            yield Block(self, pa.Table.from_batches([batch]), rows, (row - 1) / total, place)

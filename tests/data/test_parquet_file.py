"""Files read through `open_parquet`: what has been read of one is let go."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hft.data.files import parquet_chunks
from hft.data.parquet_file import open_parquet
from hft.errors import DataError
from hft.types import EVENT

GROUPS, ROWS = 32, 4096


def test_reading_on_holds_no_more_than_reading_the_first(tmp_path) -> None:
    events = np.zeros(GROUPS * ROWS, EVENT)
    for name in ("ts_recv", "order_id"):
        events[name] = np.random.default_rng(1).integers(0, 1 << 62, len(events))
    columns = {name: events[name] for name in EVENT.names or ()}
    pq.write_table(pa.table(columns), tmp_path / "day.parquet", row_group_size=ROWS)
    before, held, rows = pa.total_allocated_bytes(), [], 0
    for chunk in parquet_chunks(tmp_path / "day.parquet", ROWS):
        held.append(pa.total_allocated_bytes() - before)
        rows += len(chunk)
    assert rows == len(events)
    assert max(held) < 8 * ROWS * EVENT.itemsize, held  # a few of 32 groups


def test_a_file_that_is_not_there_is_no_damaged_one(tmp_path) -> None:
    with pytest.raises(DataError, match=r"y\.parquet cannot be read: "):
        open_parquet(tmp_path / "y.parquet")


def test_half_a_file_is_refused(tmp_path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": [1, 2, 3]}), path)
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(DataError, match=r"x\.parquet: not a whole Parquet file"):
        open_parquet(path)

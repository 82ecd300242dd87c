"""A CSV or Parquet file as a source of EVENT rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from hft.adapters.table.layout import Map, TimeColumn, codes_of
from hft.data.arrow_columns import Bad, Read, coded, text, times
from hft.data.blocks import Block
from hft.data.importing import Batch, duration_ns
from hft.data.packets import Packets, Part, Snapshots
from hft.data.parquet_blocks import ParquetReader
from hft.data.text import TextFile
from hft.data.text_blocks import TextReader
from hft.errors import ConfigError, DataError
from hft.types import EVENT, SEEN_BY_BOTH, Kind

if TYPE_CHECKING:
    import pyarrow as pa

Format = Literal["csv", "parquet"]


class TableFile:
    """One CSV or Parquet file as a source of EVENT rows.

    Args:
        path: the file; CSV may be packed.
        columns: the map.
        form: what the file is.
        repair: leave out rows that cannot be read, and round prints off the tick; counted.
    """

    cannot_tell = ()

    def __init__(
        self, path: str | Path, columns: Map, form: Format, *, repair: bool = False
    ) -> None:
        self.name = str(path)
        self.spec = columns.instrument
        self.reorders = columns.reorders
        self.counts: dict[str, int] = {}
        self.inferred: list[str] = []
        self._path = Path(path)
        self._map = columns
        self._form = form
        self._repair = repair
        self._codes = codes_of(columns.columns)
        if not self._path.is_file():
            raise DataError(f"{path}: no such file")
        for what, step in (("tick", self.spec.tick), ("lot", self.spec.lot)):
            if not (step > 0 and np.isfinite(step)):
                raise ConfigError(f"instrument.{what} is {step}, want above 0")

    def batches(self) -> Iterator[Batch]:
        """Rows in file order; a batch ends with a packet."""
        self.counts.clear()
        self.counts["rows"] = 0
        snapshots, packets = Snapshots(), Packets(self._map.packets)
        for block in self._reader().blocks():
            self.counts["rows"] += len(block)
            part = packets.feed(snapshots.feed(*self._part(block)))
            if len(part.events):
                yield Batch(part.events, part.lines, block.done)
        part = packets.flush(snapshots.flush())
        if len(part.events):
            yield Batch(part.events, part.lines, 1.0)

    def _reader(self) -> TextReader | ParquetReader:
        wanted = self._wanted()
        if self._form == "parquet":
            return ParquetReader(self._path, wanted, repair=self._repair, counts=self.counts)
        return TextReader(
            TextFile(self._path),
            wanted,
            names=self._map.names,
            separator=self._map.separator,
            repair=self._repair,
            counts=self.counts,
        )

    def _part(self, block: Block) -> tuple[Part, Bad]:
        """The rows that are wanted and can be read, and which of them rebuild the book."""
        wanted = np.ones(len(block), bool)
        for name, value in self._map.where.items():
            wanted &= text(block.column(name)) == value
        block.reader.count("rows of other instruments", int(np.count_nonzero(~wanted)))
        block = block.filter(wanted)
        events = self._events(block)
        keys: NDArray[Any] = np.zeros(len(block), np.int8)
        if self._map.packets not in ("time", "row"):
            keys = text(block.column(self._map.packets))
        marked = np.zeros(len(block), bool)
        snapshot = self._map.columns.snapshot
        if snapshot:
            marked = np.isin(text(block.column(snapshot.column)), snapshot.values)
        good = block.good
        return Part(events[good], block.lines[good], keys[good]), marked[good]

    def _events(self, block: Block) -> NDArray[Any]:
        c = self._map.columns
        events = np.zeros(len(block), EVENT)
        events["ts_event"] = _times(block, c.ts_event)
        events["ts_recv"] = _times(block, c.ts_recv)
        for field, (column, codes) in self._codes.items():
            events[field] = self._coded(block, field, column, codes)
        for field in ("order_id", "ref_id", "seq"):
            if column := getattr(c, field):
                events[field] = block.integers(column)
        price, qty = block.floats(c.price), block.floats(c.qty)
        block.count_bad()
        loose = (events["kind"] == Kind.TRADE) if self._repair else None
        events["price"] = block.steps(price, self.spec.tick, "price", loose=loose)
        events["qty"] = block.steps(qty, self.spec.lot, "qty")
        events["flags"] = SEEN_BY_BOTH
        return events

    def _coded(self, block: Block, field: str, column: str, codes: dict[str, int]) -> Any:
        if not column:
            return codes[""]
        wanted = f"a {field}; the map knows {sorted(codes)}"
        return block.read(column, lambda words: coded(words, codes), wanted)

    def _wanted(self) -> list[str]:
        c = self._map.columns
        names = [c.ts_event.column, c.ts_recv.column, c.price, c.qty, c.order_id, c.ref_id, c.seq]
        names += [words[0] for words in self._codes.values()]
        names += [c.snapshot.column if c.snapshot else "", *self._map.where]
        names.append("" if self._map.packets in ("time", "row") else self._map.packets)
        return list(dict.fromkeys(name for name in names if name))


def _times(block: Block, time: TimeColumn) -> NDArray[Any]:
    add_ns = duration_ns(time.add)

    def convert(column: pa.Array) -> Read:
        return times(column, time.unit, time.zone, add_ns)

    return block.read(time.column, convert, f"time in {time.unit}")

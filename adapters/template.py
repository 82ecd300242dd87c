"""A made-up text format, to be copied; docs/adding-an-importer.md goes through it.

One event a line, oldest first; times are microseconds since the epoch, UTC:

    time,what,price,size
    1700000000000100,bid,100.01,300      300 are bid at 100.01; 0: the level is gone
    1700000000000100,ask,100.03,200
    1700000000004200,sell,100.01,100     a print whose aggressor sold
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hft.data.checks import TS_END
from hft.data.csv_blocks import Block, CsvFile
from hft.data.exact import on_grid
from hft.data.importing import Batch
from hft.data.packets import Packets, Part
from hft.data.sources import Request
from hft.errors import DataError
from hft.types import EVENT, SEEN_BY_BOTH, InstrumentSpec, Kind

_WORDS = ("bid", "ask", "buy", "sell")
_KINDS = np.array([Kind.LEVEL, Kind.LEVEL, Kind.TRADE, Kind.TRADE], np.uint8)
_SIDES = np.array([1, -1, 1, -1], np.int8)
_COLUMNS: dict[str, Any] = {
    "time": "int",
    "what": {word: code for code, word in enumerate(_WORDS)},
    "price": "float",
    "size": "float",
}


def open_files(request: Request) -> list[TemplateFile]:
    """One source a file, all of one instrument; what the format knows need not be given."""
    spec = request.spec(venue="TEMPLATE", lot=1.0)
    return [TemplateFile(path, spec, repair=request.repair) for path in request.paths]


class TemplateFile:
    """One file as a source of EVENT rows.

    Args:
        path: the file, plain or packed.
        spec: the instrument.
        repair: leave out lines that cannot be read, and what is after a damage; counted.
    """

    reorders = False
    cannot_tell = ("when we would have received a row: ts_recv is ts_event",)

    def __init__(self, path: Path, spec: InstrumentSpec, *, repair: bool) -> None:
        self.name = str(path)
        self.spec = spec
        self.counts: dict[str, int] = {}
        self.inferred: list[str] = []
        self._file = CsvFile(path, repair=repair)
        self._file.want(_COLUMNS)

    def batches(self) -> Iterator[Batch]:
        """Rows in file order; a batch ends with a packet, which is all rows of one time."""
        self.counts = {"lines": 0}
        packets = Packets("time")
        for block in self._file.blocks(_COLUMNS, self.counts):
            self.counts["lines"] += len(block.lines)
            part = packets.feed(self._part(block))
            if len(part.events):
                yield Batch(part.events, part.lines, block.done)
        part = packets.flush(None)
        if len(part.events):
            yield Batch(part.events, part.lines, 1.0)

    def _part(self, block: Block) -> Part:
        c = block.columns
        rows = np.zeros(len(block.lines), EVENT)
        rows["ts_event"] = rows["ts_recv"] = self._ns(c["time"], block.lines)
        rows["price"] = self._whole(c["price"], self.spec.tick, "price", block.lines)
        rows["qty"] = self._whole(c["size"], self.spec.lot, "qty", block.lines)
        rows["kind"], rows["side"] = _KINDS[c["what"]], _SIDES[c["what"]]
        rows["flags"] = SEEN_BY_BOTH
        return Part(rows, block.lines, np.zeros(len(rows), np.int8))

    def _ns(self, us: NDArray[np.int64], lines: NDArray[np.int64]) -> NDArray[np.int64]:
        bad = (us <= 0) | (us >= TS_END // 1000)
        if bad.any():
            at = int(bad.argmax())
            raise DataError(f"{self.name}: line {lines[at]}: time {us[at]}, want us since 1970")
        return us * 1000

    def _whole(
        self, values: NDArray[np.float64], step: float, what: str, lines: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        return on_grid(values, step, what, rows=lines, where="line", source=self.name)[0]

"""A Bitstamp order log as a source of EVENT rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hft.adapters.bitstamp.fills import Fills, Parsed
from hft.adapters.bitstamp.readers import (
    CREATED,
    SATOSHI,
    CsvReader,
    LogReader,
    OrderEvents,
    is_raw_log,
)
from hft.data.checks import TS_END, Events
from hft.data.csv_blocks import count
from hft.data.exact import on_grid
from hft.data.importing import Batch
from hft.data.packets import Packets, Part
from hft.data.sources import Request
from hft.errors import DataError
from hft.types import InstrumentSpec

_MS = 1_000_000  # ns
_MS_END = TS_END // _MS


def open_files(request: Request) -> list[BitstampLog]:
    """One source a file, all of one symbol."""
    return [BitstampLog(path, request) for path in request.paths]


class BitstampLog:
    """One file, CSV or raw log, plain or packed.

    Args:
        path: the file.
        request: symbol, and tick and lot if they are not as the decimals show.
    """

    reorders = False
    cannot_tell = (
        "no venue time of events: ts_event is ts_recv, the receiver's clock in ms",
        "trades are inferred from two orders that lose the same size; whose aggressor is the "
        "younger order",
        "an aggressive order shows whole until its trades are published, and crosses the book",
        "orders that rested before the file began are not in it",
        "events that the receiver missed leave orders in the book for ever",
    )

    def __init__(self, path: str | Path, request: Request) -> None:
        self.name = str(path)
        self.counts: dict[str, int] = {}
        self.inferred: list[str] = []
        reader = LogReader if is_raw_log(Path(path)) else CsvReader
        self._reader: LogReader | CsvReader = reader(Path(path), repair=request.repair)
        self._repair = request.repair
        tick = float(f"1e-{self._reader.price_decimals}")
        self.spec: InstrumentSpec = request.spec(venue="BITSTAMP", tick=tick, lot=SATOSHI)
        if "tick" not in request.facts:
            self.inferred.append(f"tick {tick:g}")

    def batches(self) -> Iterator[Batch]:
        """Rows in file order; a batch ends with a packet."""
        self.counts = {"order events": 0}
        fills, packets = Fills(max(round(2 * SATOSHI / self.spec.lot), 1)), Packets("time")
        done = 0.0
        for block, done in self._reader.events(self.counts):
            parsed = self._parsed(block)
            self.counts["order events"] += len(parsed.lines)
            part = packets.feed(_part(*fills.feed(parsed)))
            if len(part.events):
                yield Batch(part.events, part.lines, done)
        for part in (packets.feed(_part(*fills.flush())), packets.flush(None)):
            if len(part.events):
                yield Batch(part.events, part.lines, 1.0)
        self.counts |= fills.counts()

    def _parsed(self, block: OrderEvents) -> Parsed:
        """Whole ticks and lots; amounts that cannot be are refused."""
        bad = (block.left < 0) | (block.price <= 0) | (block.ts_ms < 0) | (block.ts_ms >= _MS_END)
        bad |= (block.action == CREATED) & (block.left == 0)
        if bad.any():
            if not self._repair:
                at = int(bad.argmax())
                raise DataError(
                    f"{self.name}: line {block.lines[at]}: timestamp {block.ts_ms[at]}, price "
                    f"{block.price[at]:g}, volume {block.left[at]:g}; want ms since the epoch, a "
                    "price above 0, and a volume above 0 if created"
                )
            count(self.counts, "events impossible", int(np.count_nonzero(bad)))
            kept: list[Any] = [values[~bad] for values in block]
            block = OrderEvents(*kept)
        return Parsed(
            block.order_id,
            block.ts_ms * _MS,
            self._whole(block.price, self.spec.tick, "price", block.lines),
            self._whole(block.left, self.spec.lot, "qty", block.lines),
            block.action,
            block.side,
            block.lines,
        )

    def _whole(
        self, values: NDArray[np.float64], step: float, what: str, lines: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        try:
            return on_grid(values, step, what, rows=lines, where="line")[0]
        except DataError as error:
            raise DataError(f"{self.name}: {error}; tick and lot can be given") from None


def _part(events: Events, lines: NDArray[np.int64]) -> Part:
    return Part(events, lines, np.zeros(len(lines), np.int8))

"""One file of bars as a source of EVENT rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hft.adapters.bars.options import BarOptions
from hft.adapters.bars.path import NO_SPREAD, BarPath, Bars, Ints
from hft.data.arrow_columns import Read, times
from hft.data.blocks import Block
from hft.data.exact import duration
from hft.data.importing import NO_DEPTH, Batch
from hft.data.parquet_blocks import ParquetReader
from hft.data.parquet_file import open_parquet
from hft.data.text import TextFile
from hft.data.text_blocks import TextReader, names_in
from hft.errors import DataError
from hft.types import InstrumentSpec

if TYPE_CHECKING:
    import pyarrow as pa

Mask = NDArray[np.bool_]

EARLIEST_NS = 631_152_000_000_000_000  # 1990-01-01


class BarFile:
    """One file of bars of one instrument.

    Args:
        file: text, plain or packed, or Parquet.
        spec: the instrument.
        options: what its rows mean.
        parquet: it is Parquet.
        repair: leave out bars that cannot be, and round prices off the tick; counted.
    """

    reorders = False

    def __init__(
        self,
        file: TextFile,
        spec: InstrumentSpec,
        options: BarOptions,
        *,
        parquet: bool,
        repair: bool,
    ) -> None:
        self.name = file.name
        self.spec = spec
        self.counts: dict[str, int] = {}
        self.inferred: list[str] = []
        self._file = file
        self._options = options
        self._parquet = parquet
        self._repair = repair
        self._unit = "row" if parquet else "line"
        self._quotes = options.quotes(self._header(), file.name)
        self.cannot_tell = _cannot_tell(options, quoted=self._quotes is not None)

    def batches(self) -> Iterator[Batch]:
        """Rows in order; a batch ends with a bar."""
        self.counts.clear()
        self.counts["bars"] = 0
        options = self._options
        path = BarPath(options.bar_ns, options.spread_ticks or NO_SPREAD, options.size_share)
        end_ns = 0
        for block in self._reader().blocks():
            self.counts["bars"] += len(block)
            bars, end_ns = self._bars(block, end_ns)
            rows, lines = path.rows(bars)
            self._want_bids(rows, lines)
            if len(rows):
                yield Batch(rows, lines, block.done)

    def _header(self) -> list[str]:
        if self._parquet:
            with open_parquet(self._file.path) as file:
                return list(file.schema_arrow.names)
        options = self._options
        return (
            options.names.split(",") if options.names else names_in(self._file, options.separator)
        )

    def _reader(self) -> TextReader | ParquetReader:
        wanted = [*self._options.columns(), *(self._quotes or ())]
        if self._parquet:
            return ParquetReader(self._file.path, wanted, repair=self._repair, counts=self.counts)
        return TextReader(
            self._file,
            wanted,
            names=self._header() if self._options.names else (),
            separator=self._options.separator,
            repair=self._repair,
            counts=self.counts,
        )

    def _bars(self, block: Block, end_ns: int) -> tuple[Bars, int]:
        """The bars of a block that can be, and the end of the last."""
        o = self._options
        stamps = block.read(o.ts, self._times, f"time in {o.unit}")
        ts_start = stamps - (o.bar_ns if o.stamp == "end" else 0)
        ohlc = [block.floats(name) for name in (o.open, o.high, o.low, o.close)]
        volume = block.floats(o.volume)
        quotes = [block.floats(name) for name in self._quotes or ()]
        block.count_bad()
        self._want_sane(block, ts_start, ohlc, volume, quotes)
        self._want_order(block, ts_start, end_ns)
        good = block.good
        ticks = [self._ticks(block, each)[good] for each in (*ohlc, *quotes)]
        lots = block.steps(volume, self.spec.lot, "qty")[good]
        first, high, low, last = ticks[:4]
        bid, ask = ticks[4:] or (None, None)
        found = Bars(block.lines[good], ts_start[good], first, high, low, last, lots, bid, ask)
        return found, int(found.ts_start[-1]) + o.bar_ns if good.any() else end_ns

    def _times(self, column: pa.Array) -> Read:
        return times(column, self._options.unit, self._options.zone)

    def _ticks(self, block: Block, values: NDArray[np.float64]) -> Ints:
        loose = np.ones(len(values), bool) if self._repair else None
        return block.steps(values, self.spec.tick, "price", loose=loose)

    def _want_sane(
        self, block: Block, ts_start: Ints, ohlc: list[Any], volume: Any, quotes: list[Any]
    ) -> None:
        o, h, low, c = ohlc
        faults: list[tuple[str, Mask, str]] = [
            ("time", ts_start < EARLIEST_NS, "a time after 1990; unit= says what numbers count"),
            ("high below low", h < low, "high at or above low"),
            ("open outside", (o > h) | (o < low), "open between low and high"),
            ("close outside", (c > h) | (c < low), "close between low and high"),
            ("negative volume", volume < 0, "a volume of at least 0"),
        ]
        if quotes:
            faults.append(("bid not below ask", quotes[0] >= quotes[1], "bid below ask"))
        for what, bad, want in faults:
            bad = bad & block.good
            if bad.any():
                at = int(bad.argmax())
                values = ", ".join(
                    f"{name} {each[at]:g}"
                    for name, each in zip(
                        ("open", "high", "low", "close", "volume", "bid", "ask"),
                        (*ohlc, volume, *quotes),
                        strict=False,
                    )
                )
                if what == "time":
                    values = f"{block.column(self._options.ts)[at].as_py()!r}"
                self._refuse(block, bad, what, f"{what}: {values}; want {want}")

    def _want_order(self, block: Block, ts_start: Ints, end_ns: int) -> None:
        """A bar begins when the one before is over, or later."""
        bar_ns = self._options.bar_ns
        at = np.flatnonzero(block.good)
        ends = np.concatenate([[end_ns], ts_start[at][:-1] + bar_ns])
        late = ts_start[at] < ends
        if not late.any():
            return
        first = int(late.argmax())
        gap_ns = int(ts_start[at[first]] - ends[first]) + bar_ns
        said = (
            f"a bar begins {duration(gap_ns)} after the one before, which is to last "
            f"{duration(bar_ns)}: they overlap, or bar= is wrong"
            if gap_ns > 0
            else f"a bar begins {duration(-gap_ns)} before the one before it: want them in order"
        )
        bad = np.zeros(len(block), bool)
        for each in at.tolist():  # what is left out does not count for the next
            bad[each] = ts_start[each] < end_ns
            end_ns = end_ns if bad[each] else int(ts_start[each]) + bar_ns
        self._refuse(block, bad, "out of order", said)

    def _refuse(self, block: Block, bad: Mask, what: str, said: str) -> None:
        if not self._repair:
            line = block.lines[int(bad.argmax())]
            raise DataError(f"{self.name}: {self._unit} {line}: {said}")
        block.reader.count(f"bars unreadable, {what}", int(np.count_nonzero(bad)))
        block.leave_out(bad)

    def _want_bids(self, rows: Any, lines: Ints) -> None:
        if self.spec.negative_price:
            return
        bad = rows["price"] < 1
        if bad.any():
            at = int(bad.argmax())
            raise DataError(
                f"{self.name}: {self._unit} {lines[at]}: a price or bid of {rows['price'][at]} "
                "ticks; want a smaller tick or spread_ticks, or --negative-price"
            )


def _cannot_tell(options: BarOptions, *, quoted: bool) -> tuple[str, ...]:
    spread = (
        "the spread inside a bar: it is that of the last close"
        if quoted
        else f"the spread: it is taken as {options.spread_ticks} ticks"
    )
    return (
        NO_DEPTH,
        f"sizes at the touch, and so queues: they are {options.size_share:g} of the last bar's "
        "volume",
        spread,
        "the path inside a bar, and its prints: they are open, low and high (or high and low, if "
        "it fell), close, with a quarter of the volume each; a decision inside a bar knows the "
        "future",
        "when we would have received a row: ts_recv is ts_event",
        "the trading state: no STATUS rows",
    )

"""The first pass of `hft dataset`: events, through the engine's features, to one file of rows.

The rows have their moves; what classes, borders and storms are is known only when the data are
over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hft.durations import format_ns
from hft.errors import ConfigError
from hft.inference.card import TrailingEntry
from hft.inference.dataset.extract import Block, Extractor, Wanted
from hft.inference.dataset.in_memory import Seconds, require_any, spans_of
from hft.inference.dataset.moves import column
from hft.inference.dataset.splitting import Cuts
from hft.inference.dataset.trailing import Trailing

if TYPE_CHECKING:
    import pyarrow as pa

    from hft.feeds import Feed

Tick = Callable[[int, float], None]

ROW_GROUP = 1 << 16
DAY_NS = 86_400_000_000_000


def shares_of(text: str) -> tuple[float, float]:
    """`0.6,0.15`: shares of train and calibrate.

    Raises:
        ConfigError: not two numbers.
    """
    try:
        train, calibrate = (float(part) for part in text.split(","))
    except ValueError:
        raise ConfigError(f"--split {text}: want two shares, such as 0.6,0.15") from None
    return train, calibrate


@dataclass(frozen=True, slots=True)
class Options:
    """How rows become a dataset."""

    cuts: Cuts = field(default_factory=Cuts)
    by_day: bool = False
    flat_share: float = 0.34
    threshold_ticks: float | None = None
    """Instead of `flat_share`."""
    trips: bool = False
    """Also what a round trip by takers makes, in ticks."""
    window: int = 1
    """Rows that a windowed model wants behind it; only counted."""
    period_ns: int = 3_600_000_000_000
    """Of trailing scales."""
    memory_ns: int = 86_400_000_000_000
    drift: float = 3.0
    days_apart: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.period_ns <= self.memory_ns:
            raise ConfigError(
                f"scales of every {format_ns(self.period_ns)} look back "
                f"{format_ns(self.memory_ns)}: want a period above 0, and a memory at least as long"
            )
        Trailing(self.trailing, 1)  # refuses the rest, before there are files

    @property
    def trailing(self) -> TrailingEntry:
        """How scales trail."""
        return TrailingEntry(period_ns=self.period_ns, memory_ns=self.memory_ns, drift=self.drift)


@dataclass(slots=True)
class Passed:
    """What the first pass found."""

    rows_file: Path
    extractor: Extractor
    seconds: Seconds = field(default_factory=Seconds)
    rows: int = 0
    filled: int = 0
    unscaled: int = 0
    first_ts: int = 0
    last_ts: int = 0
    spans: dict[int, tuple[int, int]] = field(default_factory=dict)
    """By stretch: its first and last row with a label."""
    days: list[int] = field(default_factory=list)
    """UTC days with rows, from the epoch."""


@dataclass(slots=True)
class Groups:
    """Tables on their way into a file, a row group at a time."""

    writer: Any
    _held: list[pa.Table] = field(default_factory=list)
    _rows: int = 0

    def add(self, table: pa.Table) -> None:
        """Rows that follow."""
        self._held.append(table)
        self._rows += table.num_rows
        if self._rows >= ROW_GROUP:
            self.flush()

    def flush(self) -> None:
        """Writes what is held."""
        import pyarrow as pa

        if self._rows:
            self.writer.write_table(pa.concat_tables(self._held), row_group_size=ROW_GROUP)
        self._held, self._rows = [], 0


def first_pass(
    path: Path, feed: Feed, wanted: Wanted, options: Options, tick: Tick | None
) -> Passed:
    import pyarrow.parquet as pq

    passed = Passed(path, Extractor(wanted, options.trailing))
    schema = schema_of(wanted, options, final=False)
    with pq.ParquetWriter(path, schema, compression="zstd", compression_level=1) as writer:
        groups = Groups(writer)
        for block in _blocks(feed, passed, options, tick):
            if len(block):
                groups.add(_table(block, passed, wanted, options, schema))
        groups.flush()
    require_any(passed.rows)
    return passed


def _blocks(feed: Feed, passed: Passed, options: Options, tick: Tick | None) -> Iterator[Block]:
    extractor, seen = passed.extractor, 0
    first, last = feed.ts_range
    for number, chunks in enumerate(days_of(feed, apart=options.days_apart)):
        if number:
            yield extractor.new_day()
        for chunk in chunks:
            if not len(chunk):
                continue
            passed.seconds.add(chunk)
            yield extractor.feed(chunk)
            seen += len(chunk)
            if tick is not None:
                done = (int(chunk["ts_recv"][-1]) - first) / max(last - first, 1)
                tick(seen, min(max(done, 0.0), 1.0))
    yield extractor.rest()


def days_of(feed: Feed, *, apart: bool) -> Iterator[Iterator[npt.NDArray[Any]]]:
    """A feed's chunks by runs: one, or with days `apart` one a day."""
    if not apart:
        yield feed.chunks()
        return
    for day in feed.days.names():
        yield feed.days.chunks(day)


def _table(
    block: Block, passed: Passed, wanted: Wanted, options: Options, schema: pa.Schema
) -> pa.Table:
    import pyarrow as pa

    _note(block, passed)
    columns: dict[str, npt.NDArray[Any]] = {"ts": block.ts}
    columns |= {name: block.x[:, i] for i, name in enumerate(wanted.features.names)}
    columns |= {
        "mid_ticks": block.labels.mid,
        "latency_ns": block.latency_ns,
        "alive_ns": block.alive_ns,
        "stretch": block.labels.stretch,
        "number": block.number,
        "filled": block.filled,
        "period": block.period,
        "levels_bid": block.levels[:, 0],
        "levels_ask": block.levels[:, 1],
    }
    labels = {"move": block.labels.move, "long": block.labels.long, "short": block.labels.short}
    for h, horizon_ns in enumerate(wanted.horizons_ns):
        columns |= {column(name, horizon_ns): values[:, h] for name, values in labels.items()}
    arrays = [pa.array(columns[f.name], f.type, from_pandas=f.nullable) for f in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


def _note(block: Block, passed: Passed) -> None:
    if not passed.rows:
        passed.first_ts = int(block.ts[0])
    passed.rows += len(block)
    passed.last_ts = int(block.ts[-1])
    known = ~np.isnan(block.labels.move).all(axis=1)
    stretch = block.labels.stretch[known]
    for start, end in spans_of(block.ts[known], stretch) if known.any() else ():
        number = int(stretch[np.searchsorted(block.ts[known], start)])
        passed.spans[number] = (passed.spans.get(number, (start, end))[0], end)
    passed.filled += int(block.filled.sum())
    passed.unscaled += int((block.period < 0).sum())
    for day in np.unique(block.ts // DAY_NS).tolist():
        if not passed.days or passed.days[-1] != day:
            passed.days.append(day)


def schema_of(wanted: Wanted, options: Options, *, final: bool) -> pa.Schema:
    """Columns of the rows; `final` adds what only the second pass knows."""
    import pyarrow as pa

    fields = [pa.field("ts", pa.int64(), nullable=False)]
    fields += [pa.field(name, pa.float64(), nullable=False) for name in wanted.features.names]
    fields.append(pa.field("mid_ticks", pa.float64()))
    if wanted.latency.constant_ns is None:
        fields.append(pa.field("latency_ns", pa.int64(), nullable=False))
    fields += [
        pa.field("alive_ns", pa.int64(), nullable=False),
        pa.field("stretch", pa.int32(), nullable=False),
        pa.field("number", pa.int64(), nullable=False),
        pa.field("filled", pa.bool_(), nullable=False),
        pa.field("period", pa.int32(), nullable=False),
    ]
    for side, deepest in zip(("bid", "ask"), wanted.levels, strict=True):
        if deepest:
            fields.append(pa.field(f"levels_{side}", pa.uint8(), nullable=False))
    if final:
        fields.append(pa.field("storm", pa.bool_(), nullable=False))
    for horizon_ns in wanted.horizons_ns:
        names = ("move", "long", "short") if options.trips else ("move",)
        fields += [pa.field(column(name, horizon_ns), pa.float32()) for name in names]
        if final:
            fields.append(pa.field(column("label", horizon_ns), pa.int8()))
    return pa.schema(fields)

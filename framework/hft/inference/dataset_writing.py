"""`hft dataset`: labelled rows of a feed, split, to Parquet; whole or not at all.

Two passes. The first streams the events once, through the engine's features, into one file of rows
with their moves: what classes, borders and storms are is known only when the data are over. The
second streams those rows into the parts of each fold. Memory holds a chunk, the rows whose labels
are open, and a counter for each size of move.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import numpy.typing as npt

from hft.errors import ConfigError
from hft.inference.card import Scaler, entries_of
from hft.inference.classes import OUTPUTS, Classes, MoveWeights
from hft.inference.dataset import Seconds, require_any, spans_of
from hft.inference.dataset_facts import (
    FACTS,
    METADATA_KEY,
    SCALES,
    DatasetFacts,
    FoldFacts,
    HorizonFacts,
    PartFacts,
)
from hft.inference.extract import Block, Extractor, Wanted
from hft.inference.moves import column
from hft.inference.splitting import Cuts, Fold, Part, require_rows
from hft.inference.trailing import Trailing, varying

if TYPE_CHECKING:
    import pyarrow as pa

    from hft.feeds import Feed

Floats = npt.NDArray[np.float64]
Tick = Callable[[int, float], None]

ROW_GROUP = 1 << 16
ROWS = "rows.parquet"
CLIP = 5.0
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

    cuts: Cuts
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
                f"scales of every {self.period_ns} ns look back {self.memory_ns} ns: want a period "
                "above 0, and a memory at least as long"
            )


@dataclass(frozen=True, slots=True)
class Source:
    """Where the rows come from, for the facts."""

    strategy: str
    model: str
    data: str


def write_dataset(
    folder: Path,
    feed: Feed,
    wanted: Wanted,
    options: Options,
    source: Source,
    *,
    overwrite: bool = False,
    tick: Tick | None = None,
) -> DatasetFacts:
    """Writes the dataset of one instrument.

    Raises:
        ConfigError: the folder exists, or the options do not fit the data.
        DataError: the data are damaged, or too few.
    """
    _refuse_twins(wanted, options)
    with _replacing(folder, overwrite=overwrite) as temporary:
        passed = _first_pass(temporary / ROWS, feed, wanted, options, tick)
        facts = _facts(feed, wanted, options, source, passed)
        folds = _folds(options, passed)
        made = tuple(
            _write_fold(temporary, _place(number, folds), fold, wanted, options, passed)
            for number, fold in enumerate(folds, 1)
        )
        facts = msgspec.structs.replace(facts, folds=made)
        _write_scales(temporary / SCALES, wanted, passed.trailing)
        (temporary / ROWS).unlink()
        text = msgspec.json.encode(facts)
        (temporary / FACTS).write_bytes(msgspec.json.format(text))
    return facts


def _refuse_twins(wanted: Wanted, options: Options) -> None:
    columns = _schema(wanted, options, final=True).names
    for name in wanted.features.names:
        if columns.count(name) > 1:
            raise ConfigError(
                f"feature {name!r} has the name of a column of every dataset; rename it with "
                '.named("...")'
            )


def _place(number: int, folds: list[Fold]) -> str:
    return f"fold-{number}" if len(folds) > 1 else ""


@contextmanager
def _replacing(folder: Path, *, overwrite: bool) -> Iterator[Path]:
    """A folder to write into, which becomes `folder` when all is well."""
    if folder.exists() and not overwrite:
        raise ConfigError(f"{folder} exists: give another folder, or --overwrite")
    if folder.exists() and not (folder / FACTS).is_file():
        raise ConfigError(f"{folder} is no dataset: it is not overwritten")
    temporary = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
    try:
        temporary.mkdir(parents=True)
        yield temporary
        if folder.exists():
            shutil.rmtree(folder)
        temporary.rename(folder)
    except OSError as error:
        raise ConfigError(f"cannot write dataset {folder}: {error}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


# ---- first pass: events to rows ----


@dataclass(slots=True)
class _Passed:
    """What the first pass found."""

    rows_file: Path
    extractor: Extractor
    trailing: Trailing
    seconds: Seconds = field(default_factory=Seconds)
    rows: int = 0
    filled: int = 0
    unscaled: int = 0
    period: int = -1
    """Of the newest row."""
    first_ts: int = 0
    last_ts: int = 0
    spans: dict[int, tuple[int, int]] = field(default_factory=dict)
    """By stretch: its first and last row with a label."""
    days: list[int] = field(default_factory=list)
    """UTC days with rows, from the epoch."""


def _first_pass(
    path: Path, feed: Feed, wanted: Wanted, options: Options, tick: Tick | None
) -> _Passed:
    import pyarrow.parquet as pq

    trailing = Trailing(options.period_ns, options.memory_ns, options.drift)
    passed = _Passed(path, Extractor(wanted), trailing)
    schema = _schema(wanted, options, final=False)
    with pq.ParquetWriter(path, schema, compression="zstd", compression_level=1) as writer:
        for block in _blocks(feed, passed, options, tick):
            if len(block):
                writer.write_table(_table(block, passed, wanted, options, schema))
    require_any(passed.rows)
    return passed


def _blocks(feed: Feed, passed: _Passed, options: Options, tick: Tick | None) -> Iterator[Block]:
    extractor, seen = passed.extractor, 0
    first, last = feed.ts_range
    for number, chunks in enumerate(_days(feed, apart=options.days_apart)):
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


def _days(feed: Feed, *, apart: bool) -> Iterator[Iterator[npt.NDArray[Any]]]:
    if not apart:
        yield feed.chunks()
        return
    for day in feed.days.names():
        yield feed.days.chunks(day)


def _table(
    block: Block, passed: _Passed, wanted: Wanted, options: Options, schema: pa.Schema
) -> pa.Table:
    import pyarrow as pa

    real = ~block.filled
    period = np.full(len(block), passed.period)
    period[real] = passed.trailing.feed(block.ts[real], block.x[real])
    period = np.maximum.accumulate(period)  # a row that repeats another has the same
    _note(block, period, passed)
    columns: dict[str, npt.NDArray[Any]] = {"ts": block.ts}
    columns |= {name: block.x[:, i] for i, name in enumerate(wanted.features.names)}
    columns |= {
        "mid_ticks": block.labels.mid,
        "latency_ns": block.latency_ns,
        "alive_ns": block.alive_ns,
        "stretch": block.labels.stretch,
        "number": block.number,
        "filled": block.filled,
        "period": period,
        "levels_bid": block.levels[:, 0],
        "levels_ask": block.levels[:, 1],
    }
    labels = {"move": block.labels.move, "long": block.labels.long, "short": block.labels.short}
    for h, horizon_ns in enumerate(wanted.horizons_ns):
        columns |= {column(name, horizon_ns): values[:, h] for name, values in labels.items()}
    arrays = [pa.array(columns[f.name], f.type, from_pandas=f.nullable) for f in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


def _note(block: Block, period: npt.NDArray[np.int64], passed: _Passed) -> None:
    if not passed.rows:
        passed.first_ts = int(block.ts[0])
    passed.rows += len(block)
    passed.period = int(period[-1])
    passed.last_ts = int(block.ts[-1])
    known = ~np.isnan(block.labels.move).all(axis=1)
    stretch = block.labels.stretch[known]
    for start, end in spans_of(block.ts[known], stretch) if known.any() else ():
        number = int(stretch[np.searchsorted(block.ts[known], start)])
        passed.spans[number] = (passed.spans.get(number, (start, end))[0], end)
    passed.filled += int(block.filled.sum())
    passed.unscaled += int((period < 0).sum())
    for day in np.unique(block.ts // DAY_NS).tolist():
        if not passed.days or passed.days[-1] != day:
            passed.days.append(day)


def _schema(wanted: Wanted, options: Options, *, final: bool) -> pa.Schema:
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


# ---- second pass: rows to parts ----


def _folds(options: Options, passed: _Passed) -> list[Fold]:
    if options.by_day:
        return options.cuts.by_day([day * DAY_NS for day in passed.days], passed.last_ts)
    require_rows({"train": len(passed.spans)}, (passed.last_ts - passed.first_ts) / 1e9)
    return options.cuts.by_time(list(passed.spans.values()))


def _write_fold(
    folder: Path, place: str, fold: Fold, wanted: Wanted, options: Options, passed: _Passed
) -> FoldFacts:
    import pyarrow.parquet as pq

    (folder / place).mkdir(exist_ok=True)
    classes, scaler = _learn(fold[0], wanted, options, passed)
    horizons = tuple(
        HorizonFacts(horizon_ns=h, threshold_ticks=c.threshold_ticks, move_ticks=c.move_ticks)
        for h, c in classes.items()
    )
    schema = _schema(wanted, options, final=True)
    counts = {part.name: _Counts(wanted, options) for part in fold}
    files = {part.name: (Path(place) / f"{part.name}.parquet").as_posix() for part in fold}
    writers = {
        name: pq.ParquetWriter(folder / file, schema, compression="zstd")
        for name, file in files.items()
    }
    try:
        for rows in _stored(passed, wanted):
            finished = _finished(rows, classes, passed, schema)
            for part in fold:
                held = part.holds(rows.ts, rows.label_end)
                counts[part.name].add(rows, held, part, finished)
                if held.any():
                    writers[part.name].write_table(finished.filter(held))
        facts = {p.name: counts[p.name].facts(p, files[p.name]) for p in fold}
        for name, part_facts in facts.items():
            text = msgspec.json.encode({"part": name, "horizons": horizons} | _plain(part_facts))
            writers[name].add_key_value_metadata({METADATA_KEY: text})
    finally:
        for writer in writers.values():
            writer.close()
    labelled = {name: f.rows - f.unlabelled for name, f in facts.items()}
    require_rows(labelled, sum(end - start for start, end in passed.spans.values()) / 1e9)
    return FoldFacts(parts=facts, horizons=horizons, scaler=scaler)


def _plain(facts: PartFacts) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(facts)
    return plain


@dataclass(frozen=True, slots=True)
class _Stored:
    """A row group of the first pass."""

    table: pa.Table
    ts: npt.NDArray[np.int64]
    label_end: npt.NDArray[np.int64]
    weight: Floats

    def values(self, name: str) -> npt.NDArray[Any]:
        found: npt.NDArray[Any] = self.table[name].to_numpy()
        return found


def _stored(passed: _Passed, wanted: Wanted) -> Iterator[_Stored]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(passed.rows_file) as file:
        for batch in file.iter_batches(ROW_GROUP):
            table = pa.Table.from_batches([batch])
            ts = table["ts"].to_numpy()
            constant_ns = wanted.latency.constant_ns
            latency = table["latency_ns"].to_numpy() if constant_ns is None else constant_ns
            weight = np.maximum(table["alive_ns"].to_numpy().astype(np.float64), 1.0)
            weight = np.where(table["filled"].to_numpy(), 0.0, weight)
            yield _Stored(table, ts, ts + latency + max(wanted.horizons_ns), weight)


def _learn(
    train: Part, wanted: Wanted, options: Options, passed: _Passed
) -> tuple[dict[int, Classes], Scaler]:
    """Classes and scaling of the training rows."""
    moves = {horizon_ns: MoveWeights() for horizon_ns in wanted.horizons_ns}
    width = len(wanted.features)
    about, total, x1, x2 = None, 0.0, np.zeros(width), np.zeros(width)
    for rows in _stored(passed, wanted):
        held = train.holds(rows.ts, rows.label_end)
        if not held.any():
            continue
        weight = rows.weight[held]
        for horizon_ns, seen in moves.items():
            seen.add(rows.values(column("move", horizon_ns))[held].astype(np.float64), weight)
        x = np.stack([rows.values(name)[held] for name in wanted.features.names], axis=1)
        about = x[0] if about is None else about
        total += float(weight.sum())
        x1 += weight @ (x - about)
        x2 += weight @ (x - about) ** 2
    require_rows({"train": int(total)}, (train.end_ts - train.start_ts) / 1e9)
    assert about is not None
    mean = x1 / total
    scale = np.sqrt(np.maximum(x2 / total - mean**2, 0.0))
    mean = about + mean
    share = None if options.threshold_ticks is not None else options.flat_share
    classes = {}
    for horizon_ns, seen in moves.items():
        require_rows({f"train at {horizon_ns} ns": len(seen.weight)}, 0.0)
        classes[horizon_ns] = seen.classes(share, options.threshold_ticks)
    scaled = varying(mean, scale)
    return classes, Scaler(mean=tuple(mean.tolist()), scale=tuple(scaled.tolist()), clip=CLIP)


def _finished(
    rows: _Stored, classes: dict[int, Classes], passed: _Passed, schema: pa.Schema
) -> pa.Table:
    import pyarrow as pa

    made: dict[str, Any] = {"storm": pa.array(passed.seconds.stormy(rows.ts))}
    for horizon_ns, each in classes.items():
        label = each.of(rows.values(column("move", horizon_ns)).astype(np.float64))
        made[column("label", horizon_ns)] = pa.array(label, pa.int8(), mask=label < 0)
    arrays = [made[f.name] if f.name in made else rows.table[f.name] for f in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


@dataclass(slots=True)
class _Counts:
    """Of one part, as it is written."""

    wanted: Wanted
    options: Options
    rows: int = 0
    purged: int = 0
    embargoed: int = 0
    unlabelled: int = 0
    refused: int = 0
    classes: dict[str, dict[str, int]] = field(default_factory=dict)

    def add(
        self, rows: _Stored, held: npt.NDArray[np.bool_], part: Part, finished: pa.Table
    ) -> None:
        """One row group, of which `held` belong to the part."""
        self.purged += part.purges(rows.ts, rows.label_end)
        self.embargoed += part.embargoes(rows.ts)
        self.rows += int(held.sum())
        longest = column("move", max(self.wanted.horizons_ns))
        self.unlabelled += int(np.isnan(rows.values(longest)[held]).sum())
        self.refused += int((rows.values("number")[held] < self.options.window - 1).sum())
        storm = finished["storm"].to_numpy()
        for horizon_ns in self.wanted.horizons_ns:
            name = column("label", horizon_ns)
            label = finished[name].fill_null(-1).to_numpy()
            found = self.classes.setdefault(name, {})
            for regime, at in (("calm", held & ~storm), ("storm", held & storm)):
                counts = np.bincount(label[at] + 1, minlength=len(OUTPUTS) + 1)[1:]
                for output, count in zip(OUTPUTS, counts.tolist(), strict=True):
                    key = f"{regime}.{output}"
                    found[key] = found.get(key, 0) + count

    def facts(self, part: Part, file: str) -> PartFacts:
        """What was counted."""
        return PartFacts(
            file=file,
            border_ts=part.border_ts,
            start_ts=part.start_ts,
            end_ts=part.end_ts,
            labels_by_ts=part.labels_by_ts,
            rows=self.rows,
            purged=self.purged,
            embargoed=self.embargoed,
            unlabelled=self.unlabelled,
            windows_refused=self.refused,
            classes=self.classes,
        )


def _write_scales(path: Path, wanted: Wanted, trailing: Trailing) -> None:
    """One row an estimate, in order: `period` of a row is its number here."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    estimates = trailing.estimates
    columns: dict[str, Any] = {
        "start_ts": pa.array([e.start_ts for e in estimates], pa.int64()),
        "rows": pa.array([e.rows for e in estimates], pa.int64()),
        "drifted": pa.array([e.drifted for e in estimates], pa.bool_()),
    }
    for i, name in enumerate(wanted.features.names):
        columns[f"mean_{name}"] = pa.array([float(e.mean[i]) for e in estimates], pa.float64())
        columns[f"scale_{name}"] = pa.array([float(e.scale[i]) for e in estimates], pa.float64())
    pq.write_table(pa.table(columns), path, compression="zstd")


def _facts(
    feed: Feed, wanted: Wanted, options: Options, source: Source, passed: _Passed
) -> DatasetFacts:
    from hft import __version__

    entries, trigger = entries_of(wanted.features)
    causes = passed.extractor.stretches.causes
    asked = msgspec.to_builtins(options)
    asked |= {
        "one_sided_ns": wanted.one_sided_ns,
        "pause_ns": wanted.pause_ns,
        "longest_row_ns": wanted.longest_row_ns,
    }
    return DatasetFacts(
        hft=__version__,
        strategy=source.strategy,
        model=source.model,
        instrument=feed.spec.name,
        tick=feed.spec.tick,
        lot=feed.spec.lot,
        data=source.data,
        data_hash=feed.hash,
        first_ts=passed.first_ts,
        last_ts=passed.last_ts,
        trigger=trigger,
        features=entries,
        latency=wanted.latency.text,
        latency_ns=wanted.latency.constant_ns,
        horizons_ns=wanted.horizons_ns,
        options=asked,
        stretches={cause: causes.count(cause) for cause in sorted(set(causes)) if cause},
        rows=passed.rows,
        outside=passed.extractor.outside,
        filled=passed.filled,
        unscaled=passed.unscaled,
    )

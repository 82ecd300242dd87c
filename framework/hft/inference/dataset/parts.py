"""The second pass of `hft dataset`: rows to the parts of each fold, with their classes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import numpy.typing as npt

from hft.data.parquet_file import open_parquet
from hft.durations import format_ns
from hft.inference.card import Scaler
from hft.inference.dataset.classes import OUTPUTS, Classes, MoveWeights
from hft.inference.dataset.extract import Wanted
from hft.inference.dataset.facts import METADATA_KEY, FoldFacts, HorizonFacts, PartFacts
from hft.inference.dataset.moves import column
from hft.inference.dataset.rows import DAY_NS, ROW_GROUP, Groups, Options, Passed, schema_of
from hft.inference.dataset.splitting import Fold, Part, require_rows
from hft.inference.dataset.trailing import varying

if TYPE_CHECKING:
    import pyarrow as pa

Floats = npt.NDArray[np.float64]

CLIP = 5.0


def folds_of(options: Options, passed: Passed) -> list[Fold]:
    """Where the parts of each fold lie."""
    if options.by_day:
        return options.cuts.by_day([day * DAY_NS for day in passed.days], passed.last_ts)
    require_rows({"train": len(passed.spans)}, (passed.last_ts - passed.first_ts) / 1e9)
    return options.cuts.by_time(list(passed.spans.values()))


def write_fold(
    folder: Path, place: str, fold: Fold, wanted: Wanted, options: Options, passed: Passed
) -> FoldFacts:
    """Writes the parts of a fold into `folder / place`.

    Raises:
        ConfigError: a class has no row.
        DataError: a part has none.
    """
    import pyarrow.parquet as pq

    (folder / place).mkdir(exist_ok=True)
    classes, scaler = _learn(fold[0], wanted, options, passed)
    horizons = tuple(
        HorizonFacts(horizon_ns=h, threshold_ticks=c.threshold_ticks, move_ticks=c.move_ticks)
        for h, c in classes.items()
    )
    schema = schema_of(wanted, options, final=True)
    counts = {part.name: _Counts(wanted, options) for part in fold}
    files = {part.name: (Path(place) / f"{part.name}.parquet").as_posix() for part in fold}
    writers = {
        name: pq.ParquetWriter(folder / file, schema, compression="zstd")
        for name, file in files.items()
    }
    groups = {name: Groups(writer) for name, writer in writers.items()}
    try:
        for rows in _stored(passed, wanted):
            finished = _finished(rows, classes, passed, schema)
            for part in fold:
                held = part.holds(rows.ts, rows.label_end)
                counts[part.name].add(rows, held, part, finished)
                if held.any():
                    groups[part.name].add(finished.filter(held))
        for group in groups.values():
            group.flush()
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


def _stored(passed: Passed, wanted: Wanted) -> Iterator[_Stored]:
    import pyarrow as pa

    with open_parquet(passed.rows_file) as file:
        for batch in file.iter_batches(ROW_GROUP):
            table = pa.Table.from_batches([batch])
            ts = table["ts"].to_numpy()
            constant_ns = wanted.latency.constant_ns
            latency = table["latency_ns"].to_numpy() if constant_ns is None else constant_ns
            weight = np.maximum(table["alive_ns"].to_numpy().astype(np.float64), 1.0)
            weight = np.where(table["filled"].to_numpy(), 0.0, weight)
            yield _Stored(table, ts, ts + latency + max(wanted.horizons_ns), weight)


def _learn(
    train: Part, wanted: Wanted, options: Options, passed: Passed
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
    span_s = (train.end_ts - train.start_ts) / 1e9
    require_rows({"train": int(total)}, span_s)
    assert about is not None
    mean = x1 / total
    scale = np.sqrt(np.maximum(x2 / total - mean**2, 0.0))
    mean = about + mean
    share = None if options.threshold_ticks is not None else options.flat_share
    classes = {}
    for horizon_ns, seen in moves.items():
        require_rows({f"train at {format_ns(horizon_ns)}": len(seen.weight)}, span_s)
        classes[horizon_ns] = seen.classes(share, options.threshold_ticks)
    scaled = varying(mean, scale)
    return classes, Scaler(mean=tuple(mean.tolist()), scale=tuple(scaled.tolist()), clip=CLIP)


def _finished(
    rows: _Stored, classes: dict[int, Classes], passed: Passed, schema: pa.Schema
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

"""`hft dataset`: labelled rows of a feed, split, to Parquet; whole or not at all.

Two passes. The first streams the events once, through the engine's features, into one file of rows
with their moves: what classes, borders and storms are is known only when the data are over. The
second streams those rows into the parts of each fold. Memory holds a chunk, the rows whose labels
are open, and a counter for each size of move.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from hft.errors import ConfigError
from hft.inference.card import entries_of
from hft.inference.dataset.extract import Wanted
from hft.inference.dataset.facts import FACTS, SCALES, STRETCHES, DatasetFacts
from hft.inference.dataset.parts import folds_of, write_fold
from hft.inference.dataset.rows import Options, Passed, Tick, first_pass, schema_of
from hft.inference.dataset.splitting import Fold
from hft.inference.dataset.stretches import NEVER, Stretches
from hft.inference.dataset.trailing import Estimates
from hft.whole_files import replacing_folder

if TYPE_CHECKING:
    from hft.feeds import Feed

ROWS = "rows.parquet"
REACTIVE = (
    "The features are reactive: a run makes them of the book less what it took, these are of the "
    "tape."
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
    require_free(folder, overwrite=overwrite)
    with replacing_folder(folder) as temporary:
        passed = first_pass(temporary / ROWS, feed, wanted, options, tick)
        facts = _facts(feed, wanted, options, source, passed)
        folds = folds_of(options, passed)
        made = tuple(
            write_fold(temporary, _place(number, folds), fold, wanted, options, passed)
            for number, fold in enumerate(folds, 1)
        )
        facts = msgspec.structs.replace(facts, folds=made)
        assert passed.extractor.trailing is not None
        _write_scales(temporary / SCALES, wanted, passed.extractor.trailing.estimates())
        _write_stretches(temporary / STRETCHES, passed.extractor.stretches)
        (temporary / ROWS).unlink()
        text = msgspec.json.encode(facts)
        (temporary / FACTS).write_bytes(msgspec.json.format(text))
    return facts


def _refuse_twins(wanted: Wanted, options: Options) -> None:
    columns = schema_of(wanted, options, final=True).names
    for name in wanted.features.names:
        if columns.count(name) > 1:
            raise ConfigError(
                f"feature {name!r} has the name of a column of every dataset; rename it with "
                '.named("...")'
            )


def _place(number: int, folds: list[Fold]) -> str:
    return f"fold-{number}" if len(folds) > 1 else ""


def require_free(folder: Path, *, overwrite: bool) -> None:
    """Refuses to write where something is.

    Raises:
        ConfigError: the folder exists; with `overwrite`, it is no dataset.
    """
    if folder.exists() and not overwrite:
        raise ConfigError(f"{folder} exists: give another folder, or --overwrite")
    if folder.exists() and not (folder / FACTS).is_file():
        raise ConfigError(f"{folder} is no dataset: it is not overwritten")


def _write_scales(path: Path, wanted: Wanted, estimates: Estimates) -> None:
    """One row an estimate, in order: `period` of a row is its number here."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns: dict[str, Any] = {
        "start_ts": estimates.start_ts,
        "rows": estimates.rows,
        "drifted": estimates.drifted,
    }
    for i, name in enumerate(wanted.features.names):
        columns[f"mean_{name}"] = estimates.mean[:, i]
        columns[f"scale_{name}"] = estimates.scale[:, i]
    pq.write_table(pa.table(columns), path, compression="zstd")


def _write_stretches(path: Path, stretches: Stretches) -> None:
    """One row a stretch, in order: `stretch` of a row is its number here."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    ends = [None if end == NEVER else end for end in stretches.ends]
    columns = {
        "start_ts": pa.array(stretches.starts, pa.int64()),
        "end_ts": pa.array(ends, pa.int64()),
        "cause": pa.array(stretches.causes, pa.string()),
        "fresh": pa.array(stretches.fresh, pa.bool_()),
    }
    pq.write_table(pa.table(columns), path, compression="zstd")


def _facts(
    feed: Feed, wanted: Wanted, options: Options, source: Source, passed: Passed
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
        notes=(*feed.cannot_tell, *((REACTIVE,) if wanted.features.reactive else ())),
    )

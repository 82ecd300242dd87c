"""Reads what `hft dataset` wrote, by batches or windows, scaled as a run would scale."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import numpy.typing as npt

from hft.data.parquet_file import open_parquet
from hft.errors import ConfigError, DataError, ModelError
from hft.features import Feature, Features
from hft.inference.card import Scaler, TrailingEntry
from hft.inference.dataset.extract import OF_LEVELS
from hft.inference.dataset.facts import SCALES, STRETCHES, DatasetFacts, FoldFacts, read_facts
from hft.inference.dataset.in_memory import Rows, Split, joined, memories
from hft.inference.dataset.moves import column
from hft.inference.dataset.splitting import PARTS
from hft.inference.dataset.trailing import Trailed

if TYPE_CHECKING:
    import polars as pl

Floats = npt.NDArray[np.float64]
BATCH = 1 << 16


@dataclass(frozen=True, slots=True)
class Dataset:
    """A folder of `hft dataset`, one fold of it."""

    folder: Path
    facts: DatasetFacts
    fold: FoldFacts

    @property
    def names(self) -> list[str]:
        """Of the feature columns, in order."""
        return [entry.name for entry in self.facts.features]

    def features(self, own: Iterable[Feature] = ()) -> Features:
        """Columns and trigger, for the engine; `own` are those of `@feature`."""
        from hft.inference.bundle import features_of

        try:
            return features_of(
                self.facts.features, self.facts.trigger, {f.name: f for f in own}, self.folder
            )
        except ModelError as error:
            raise ConfigError(str(error)) from error

    def path(self, part: str) -> Path:
        """The file of a part.

        Raises:
            ConfigError: no such part.
            DataError: its file is missing, damaged, or not the one that was written.
        """
        if part not in self.fold.parts:
            raise ConfigError(f"no part {part!r}; there are {', '.join(PARTS)}")
        facts = self.fold.parts[part]
        path = self.folder / facts.file
        rows = _rows_in(path)
        if rows != facts.rows:
            raise DataError(
                f"{path} holds {rows:,} rows, the dataset says {facts.rows:,}: it is of another "
                "writing, make the dataset again"
            )
        return path

    def frames(self, part: str, rows: int = BATCH) -> Iterator[pl.DataFrame]:
        """All columns of a part, at most `rows` rows at a time."""
        import polars as pl

        with open_parquet(self.path(part)) as file:
            for batch in file.iter_batches(rows):
                frame = pl.from_arrow(batch)
                assert isinstance(frame, pl.DataFrame)
                yield frame

    def scales(self) -> tuple[npt.NDArray[np.int64], Floats, Floats]:
        """Trailing estimates: from when each holds, (p,) [ns], means and scales, (p, k)."""
        table = _table(self.folder / SCALES)
        mean, scale = (
            table.select(f"{what}_{name}" for name in self.names).to_numpy()
            for what in ("mean", "scale")
        )
        return table["start_ts"].to_numpy(), mean, scale

    def fresh(self) -> npt.NDArray[np.bool_]:
        """By stretch: whether a run's model begins it without a memory, (s,)."""
        found: npt.NDArray[np.bool_] = _table(self.folder / STRETCHES)["fresh"].to_numpy()
        return found

    @property
    def trailing(self) -> TrailingEntry:
        """How its scales trail."""
        return msgspec.convert(
            {key: self.facts.options[key] for key in ("period_ns", "memory_ns", "drift")},
            TrailingEntry,
        )

    def require_trailing(self, rule: TrailingEntry) -> None:
        """Refuses a model whose scales trail otherwise.

        Raises:
            ConfigError: says how each does.
        """
        if rule != self.trailing:
            raise ConfigError(
                f"{self.folder} has scales of {self.trailing}, the model's are of {rule}: make the "
                "data set again with --period, --memory and --drift of the model"
            )

    def in_own_terms(self, frame: pl.DataFrame, own: Scaler) -> Floats:
        """(n, k) as a run gives them to a network with that scaler whose scales trail."""
        return self._trailed(frame).in_own_terms(frame.select(self.names).to_numpy(), own)

    def _trailed(self, frame: pl.DataFrame) -> Trailed:
        _, mean, scale = self.scales()
        return Trailed(self.trailing, frame["period"].to_numpy(), mean, scale)

    def scaled(self, frame: pl.DataFrame, *, trailing: bool = False) -> Floats:
        """(n, k) as a network sees them; by `fold.scaler` alone before the first estimate."""
        scaler = self.fold.scaler
        x = frame.select(self.names).to_numpy()
        if trailing:
            x = self._trailed(frame).in_own_terms(x, scaler)
        z = (x - np.array(scaler.mean)) / np.array(scaler.scale)
        return np.asarray(np.clip(z, -scaler.clip, scaler.clip))

    def mask(self, frame: pl.DataFrame) -> npt.NDArray[np.bool_]:
        """(n, k) whether the level a column reads was there; padding is False."""
        there = np.ones((frame.height, len(self.names)), bool)
        for i, entry in enumerate(self.facts.features):
            if entry.kind in OF_LEVELS:
                side = "bid" if entry.side > 0 else "ask"
                there[:, i] = frame[f"levels_{side}"].to_numpy() >= entry.levels
        return there

    def windows(
        self, part: str, length: int, *, trailing: bool = False, rows: int = BATCH
    ) -> Iterator[tuple[npt.NDArray[np.float32], pl.DataFrame]]:
        """Windows of consecutive rows of one stretch, and the frame of each one's last row.

        Yields:
            (n, length, k) scaled, never across a break, and n rows of the part.
        """
        import polars as pl

        if length < 1:
            raise ConfigError(f"window length is {length}: want at least 1")
        before: pl.DataFrame | None = None
        for frame in self.frames(part, rows):
            whole = frame if before is None else pl.concat([before, frame])
            x = self.scaled(whole, trailing=trailing).astype(np.float32)
            # Consecutive rows of the part are consecutive rows of the stretch: numbers tell.
            number, stretch = whole["number"].to_numpy(), whole["stretch"].to_numpy()
            end = np.arange(max(length - 1, whole.height - frame.height), whole.height)
            start = end - length + 1
            one = (stretch[end] == stretch[start]) & (number[end] - number[start] == length - 1)
            whole_row = ~np.isnan(x).any(axis=1)
            gaps = np.concatenate([[0], np.cumsum(~whole_row)])
            ends = end[one & (gaps[end + 1] == gaps[start])]
            if len(ends):
                yield x[ends[:, None] + np.arange(1 - length, 1)], whole[ends.tolist()]
            before = whole.tail(length - 1) if length > 1 else None

    def typical_latency_ns(self) -> int:
        """From a row to its labels: the constant, or the median of the training rows."""
        if self.facts.latency_ns is not None:
            return self.facts.latency_ns
        drawn = _table(self.path("train"), ["latency_ns"])["latency_ns"]
        return int(np.median(drawn.to_numpy()))

    def rows(self, *, trailing: bool = False) -> tuple[Rows, Split]:
        """The fold in memory, for training; rows that repeat the one before are left out."""
        return joined({part: self._rows(part, trailing=trailing) for part in PARTS})

    def _rows(self, part: str, *, trailing: bool) -> Rows:
        import polars as pl

        frame = _table(self.path(part)).filter(~pl.col("filled"))
        latency: Any = self.facts.latency_ns
        if latency is None:
            latency = frame["latency_ns"].to_numpy()
        ts, stretch = frame["ts"].to_numpy(), frame["stretch"].to_numpy()
        moves = {
            h: frame[column("move", h)].cast(pl.Float64).fill_null(np.nan).to_numpy()
            for h in self.facts.horizons_ns
        }
        return Rows(
            ts,
            frame.select(self.names).to_numpy(),
            moves,
            ts + latency + max(self.facts.horizons_ns),
            frame["alive_ns"].to_numpy(),
            stretch,
            frame["storm"].to_numpy(),
            self.facts.data_hash,
            self._trailed(frame) if trailing else None,
            memories(self.fresh(), stretch),
        )


def _rows_in(path: Path) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return int(pq.read_metadata(path).num_rows)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path} cannot be read: {error}") from error


def _table(path: Path, columns: list[str] | None = None) -> pl.DataFrame:
    import polars as pl

    try:
        return pl.read_parquet(path, columns=columns)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataError(f"{path} cannot be read: {error}") from error


def open_dataset(folder: str | Path, fold: int = 1) -> Dataset:
    """Opens a dataset folder.

    Raises:
        ConfigError: it has no such fold.
        DataError: it is none, or damaged.
    """
    path = Path(folder)
    facts = read_facts(path)
    if not 1 <= fold <= len(facts.folds):
        there = f"{len(facts.folds)} folds" if len(facts.folds) > 1 else "one fold"
        raise ConfigError(f"{path} has {there}, there is no fold {fold}")
    return Dataset(path, facts, facts.folds[fold - 1])

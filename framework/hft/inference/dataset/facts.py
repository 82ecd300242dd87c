"""What a dataset says of itself: `dataset.json`, and the same in the metadata of each file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from hft.errors import DataError
from hft.inference.card import FeatureEntry, Scaler, TriggerEntry
from hft.inference.dataset.splitting import PARTS

VERSION = 1
FACTS = "dataset.json"
SCALES = "scales.parquet"
STRETCHES = "stretches.parquet"
METADATA_KEY = b"hft.dataset"


class HorizonFacts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Classes of one horizon, by the training rows of a fold."""

    horizon_ns: int
    threshold_ticks: float
    """A move beyond it is up or down."""
    move_ticks: tuple[float, ...]
    """Mean move of down, flat and up."""


class PartFacts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One file of a fold."""

    file: str
    border_ts: int
    start_ts: int
    end_ts: int
    """Rows lie in [start_ts, end_ts)."""
    labels_by_ts: int
    rows: int = 0
    purged: int = 0
    """Rows left out because their labels reach beyond the part."""
    embargoed: int = 0
    unlabelled: int = 0
    """Rows kept for a model's state, without a label at the longest horizon."""
    windows_refused: int = 0
    """Rows with fewer than `window` rows behind them in their stretch."""
    classes: dict[str, dict[str, int]] = {}
    """By horizon: rows of each class, by regime: `calm.up`."""


class FoldFacts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Parts that belong together."""

    parts: dict[str, PartFacts]
    horizons: tuple[HorizonFacts, ...]
    scaler: Scaler
    """Of the training rows."""


class DatasetFacts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`dataset.json`."""

    version: int = VERSION
    hft: str
    strategy: str
    model: str
    """Which of the strategy's sources the features are of."""
    instrument: str
    tick: float
    lot: float
    data: str
    data_hash: str
    first_ts: int
    last_ts: int
    trigger: TriggerEntry
    features: tuple[FeatureEntry, ...]
    latency: str
    """From a row to the start of its labels, as it was asked for."""
    latency_ns: int | None
    """None: drawn, see the column `latency_ns`."""
    horizons_ns: tuple[int, ...]
    options: dict[str, Any]
    stretches: dict[str, int]
    """How often a stretch of trading ended, by cause."""
    rows: int
    outside: int
    """Rows made while the market was not open or the feed silent: left out."""
    filled: int
    """Rows that repeat the one before, of a clock that struck while a side was missing."""
    unscaled: int
    """Rows before the first trailing estimate."""
    notes: tuple[str, ...] = ()
    """What the data leave open, and what else a reader should know."""
    folds: tuple[FoldFacts, ...] = ()


def read_facts(folder: Path) -> DatasetFacts:
    """The facts of a dataset folder.

    Raises:
        DataError: it is none, is damaged, or of another version.
    """
    path = folder / FACTS
    if not path.is_file():
        raise DataError(f"{folder} has no {FACTS}: want a folder that `hft dataset` wrote")
    try:
        text = path.read_bytes()
        version = msgspec.json.decode(text, type=dict[str, Any]).get("version")
        if version != VERSION:
            raise DataError(f"{path} has version {version}; this release reads {VERSION}")
        facts = msgspec.json.decode(text, type=DatasetFacts)
    except msgspec.MsgspecError as error:
        raise DataError(f"{path} is damaged: {error}") from error
    for number, fold in enumerate(facts.folds, 1):
        if set(fold.parts) != set(PARTS):
            raise DataError(f"{path} is damaged: fold {number} has parts {sorted(fold.parts)}")
    return facts

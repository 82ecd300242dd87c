"""What `copy()` of a book, row or signal gives: frozen values that outlive the handler."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class BookCopy:
    """A whole book at one moment; prices in ticks, sizes in lots, best level first."""

    instrument: Any
    bid: int | None
    ask: int | None
    bid_lots: int
    ask_lots: int
    ts_event: int
    ts_recv: int
    bids: list[tuple[int, int]]
    asks: list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class RowCopy:
    """One features row."""

    instrument: Any
    ts: int
    values: dict[str, float]

    def __getitem__(self, name: str) -> float:
        return self.values[name]


@dataclass(frozen=True, slots=True)
class SignalCopy:
    """What a model said of one features row; `age_ns` is as it was when copied."""

    instrument: Any
    ts: int
    ts_event: int
    age_ns: int
    tier: str
    model: str
    reused: bool
    values: dict[str, float]

    def __getitem__(self, name: str) -> float:
        return self.values[name]

    @property
    def confidence(self) -> float:
        """Largest class probability."""
        return self.values["confidence"]

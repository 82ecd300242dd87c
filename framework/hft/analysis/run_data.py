"""One run as data: what the engine left behind, and the folder that keeps it.

A folder holds `orders.parquet`, `fills.parquet`, `samples.parquet`, `feed_latency.parquet`,
`mids.parquet` and `touches.parquet` (what the market was when), with a model `model_wait.parquet`
and `model_service.parquet`, where its answers may be given again `reuse.parquet`, `run.json` (the
facts needed to load it again), `report.json` and `report.html`. The run under the risk-averse queue
lies in `bracket/`, variants (placebo, other latencies) in `variants/NN-name/`, each in the same
form without a report of its own. Journal, strategy copy and resolved recipe are put beside them by
whoever ran it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from hft.analysis.mids import Mids
from hft.analysis.records import FILL_ROW, ORDER_ROW, REUSE_SECOND, SAMPLE_ROW
from hft.errors import ConfigError, DataError
from hft.types import InstrumentSpec

Rows = NDArray[np.void]
Kind = Literal["backtest", "live"]
Status = Literal["complete", "interrupted", "failed"]

FORMAT = 2
"""Version of run.json; raised when an old folder could no longer be read rightly."""


@dataclass(frozen=True, slots=True)
class InstrumentFacts:
    """An instrument and its fees, as rates of notional; negative for a rebate."""

    spec: InstrumentSpec
    maker_fee: float
    taker_fee: float

    @property
    def name(self) -> str:
        """`SYMBOL.VENUE`."""
        return self.spec.name

    @property
    def tick_value_e9(self) -> Fraction:
        """What one lot gains a tick [1e-9 currency]; linear contracts only."""
        spec = self.spec
        if spec.inverse:
            raise ConfigError(f"{spec.name} is an inverse contract: its tick has no constant value")
        value = _exact(spec.tick) * _exact(spec.lot) * _exact(spec.multiplier) * 1_000_000_000
        return Fraction(value)

    @property
    def inverse_value_e9(self) -> float:
        """Over a price in ticks, one lot's notional [1e-9 base currency * ticks]."""
        spec = self.spec
        return float(_exact(spec.lot) * _exact(spec.multiplier) / _exact(spec.tick) * 1_000_000_000)


@dataclass(kw_only=True)
class RunData:
    """A finished, interrupted or failed run.

    Attributes:
        strategy: path of the strategy file.
        error: why a run failed, in one line.
        environment: versions, machine, hashes of strategy and data.
        recipe: the resolved recipe.
        ts_start: first market row's time [ns, UTC].
        ts_end: last time reached [ns, UTC].
        rows: market rows replayed or received.
        stages_s: wall time by stage (decode, book, features, inference, strategy, venue ...).
        orders: ORDER_ROW, (n,).
        fills: FILL_ROW, (n,), in the venue's order.
        samples: SAMPLE_ROW, (n,), one row an instrument and sample time, instruments interleaved.
        sample_ns: distance of the sample grid.
        tags: names of order tags by tag id.
        counters: signals, conflated, messages, gaps ...
        feed_latency_ns: int64 sample of `ts_recv - ts_event` over market packets.
        model_wait_ns: int64 sample of how long rows waited for the inference server.
        model_service_ns: int64 sample of how long it worked on them.
        models: names of models and feature sources by id.
        reuse: REUSE_SECOND, (n,), of streams whose answers could be given again.
        traded_lots: what the market traded over the run, by instrument; empty: not counted.
        overlay_ticks: our push of the price that is left at the end, by instrument [ticks]; empty:
            there was no overlay.
        mids: what the market was at the stamps of orders and fills; None: not looked up.
        notes: what a reader must know of how it went, a sentence each.
        bracket: the same run under the risk-averse queue.
        variants: the same run changed in one respect, such as `("latency x2", run)` or `("placebo",
            run)`.
    """

    kind: Kind
    name: str
    strategy: str
    instruments: list[InstrumentFacts]
    status: Status = "complete"
    error: str = ""
    environment: dict[str, Any] = field(default_factory=dict)
    recipe: dict[str, Any] = field(default_factory=dict)
    started_utc: str = ""
    wall_s: float = 0.0
    ts_start: int = 0
    ts_end: int = 0
    rows: int = 0
    stages_s: dict[str, float] = field(default_factory=dict)
    orders: Rows = field(default_factory=lambda: np.zeros(0, ORDER_ROW))
    fills: Rows = field(default_factory=lambda: np.zeros(0, FILL_ROW))
    samples: Rows = field(default_factory=lambda: np.zeros(0, SAMPLE_ROW))
    sample_ns: int = 1_000_000_000
    tags: list[str] = field(default_factory=list)
    counters: dict[str, int | float] = field(default_factory=dict)
    feed_latency_ns: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    model_wait_ns: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    model_service_ns: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    models: list[str] = field(default_factory=list)
    reuse: Rows = field(default_factory=lambda: np.zeros(0, REUSE_SECOND))
    traded_lots: list[int] = field(default_factory=list)
    overlay_ticks: list[float] = field(default_factory=list)
    mids: Mids | None = None
    notes: list[str] = field(default_factory=list)
    bracket: RunData | None = None
    variants: list[tuple[str, RunData]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for rows, dtype, what in (
            (self.orders, ORDER_ROW, "orders"),
            (self.fills, FILL_ROW, "fills"),
            (self.samples, SAMPLE_ROW, "samples"),
        ):
            if rows.dtype != dtype:
                raise DataError(f"{what} must be rows of hft.analysis.records, was {rows.dtype}")
            if rows.size and int(rows["instrument"].max()) >= len(self.instruments):
                raise DataError(
                    f"{what} name instrument {int(rows['instrument'].max())}, but the run lists "
                    f"{len(self.instruments)}"
                )
        if self.mids is not None:
            of = len(self.mids.orders), len(self.mids.touch)
            if of != (len(self.orders), len(self.fills)):
                raise DataError(
                    f"mids are of {of[0]} orders and {of[1]} fills, but the run has "
                    f"{len(self.orders)} and {len(self.fills)}"
                )

    @property
    def instrument_names(self) -> list[str]:
        """`SYMBOL.VENUE` by instrument id."""
        return [facts.name for facts in self.instruments]


class _Facts(msgspec.Struct, kw_only=True):
    """What run.json holds; the rows are in the Parquet files."""

    format: int
    kind: Kind
    name: str
    strategy: str
    status: Status
    error: str
    environment: dict[str, Any]
    recipe: dict[str, Any]
    started_utc: str
    wall_s: float
    ts_start: int
    ts_end: int
    rows: int
    stages_s: dict[str, float]
    instruments: list[InstrumentFacts]
    sample_ns: int
    tags: list[str]
    counters: dict[str, int | float]
    notes: list[str] = []  # absent in older folders
    models: list[str] = []
    traded_lots: list[int] = []
    overlay_ticks: list[float] = []
    bracket: bool
    variants: list[tuple[str, str]]


_SHARED = tuple(
    name for name in _Facts.__struct_fields__ if name not in ("format", "bracket", "variants")
)


def save(run: RunData, folder: Path) -> None:
    """Write a run and its report into `folder`, which is made if it does not exist."""
    from hft.analysis.figures import figures_of
    from hft.analysis.html import page

    _save_rows(run, folder)
    figures = figures_of(run)
    text = msgspec.json.format(msgspec.json.encode(figures), indent=2)
    (folder / "report.json").write_bytes(text)
    (folder / "report.html").write_text(page(run, figures), encoding="utf-8")


def load(folder: Path) -> RunData:
    """Read back what `save` wrote, to the last bit."""
    from hft.analysis.frames import read_rows

    facts = _read_facts(folder)
    rows = read_rows(folder, [instrument.name for instrument in facts.instruments])
    return RunData(
        **{name: getattr(facts, name) for name in _SHARED},
        **rows,
        bracket=load(folder / "bracket") if facts.bracket else None,
        variants=[(name, load(folder / "variants" / place)) for name, place in facts.variants],
    )


def _save_rows(run: RunData, folder: Path) -> None:
    from hft.analysis.frames import write_rows

    folder.mkdir(parents=True, exist_ok=True)
    write_rows(run, folder)
    places = [f"{i:02d}-{_slug(name)}" for i, (name, _) in enumerate(run.variants)]
    if run.bracket is not None:
        _save_rows(run.bracket, folder / "bracket")
    for place, (_, variant) in zip(places, run.variants, strict=True):
        _save_rows(variant, folder / "variants" / place)
    facts = _Facts(
        format=FORMAT,
        bracket=run.bracket is not None,
        variants=[(name, place) for place, (name, _) in zip(places, run.variants, strict=True)],
        **{name: getattr(run, name) for name in _SHARED},
    )
    # Written last: a folder with a run.json is a whole one.
    (folder / "run.json").write_bytes(msgspec.json.format(msgspec.json.encode(facts), indent=2))


def _read_facts(folder: Path) -> _Facts:
    path = folder / "run.json"
    if not path.is_file():
        if (folder / "environment.json").is_file():
            raise DataError(f"{folder} has no run.json: its run died before the report was written")
        raise DataError(f"{folder} is not a run folder: it has no run.json")
    try:
        facts = msgspec.json.decode(path.read_bytes(), type=_Facts)
    except msgspec.DecodeError as error:
        raise DataError(f"{path} is damaged: {error}") from error
    if facts.format != FORMAT:
        raise DataError(f"{path} has format {facts.format}; this version reads {FORMAT}")
    return facts


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-.") or "variant"


def _exact(value: float) -> Decimal:
    # The decimal that a person wrote: 0.1 is a tenth here, not the binary fraction next to it.
    return Decimal(repr(float(value)))

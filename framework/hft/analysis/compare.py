"""Two runs side by side: their figures, and what differs in how they were run."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hft.analysis.figures import Figures, figures_of
from hft.analysis.run_data import load
from hft.analysis.units import amount, count, duration, share

if TYPE_CHECKING:
    from rich.console import Console

_ABSENT = "(absent)"


@dataclass(frozen=True, slots=True)
class Row:
    """One figure of both runs; `unit` says how to write it: amount, count, share or ns."""

    name: str
    unit: str
    first: float | None
    second: float | None

    @property
    def change(self) -> float | None:
        """Second less first; None where either is missing."""
        return None if self.first is None or self.second is None else self.second - self.first


@dataclass(frozen=True, slots=True)
class Difference:
    """A setting that differs, by its key path."""

    where: str
    first: str
    second: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs side by side."""

    first: str
    second: str
    rows: list[Row]
    differences: list[Difference]


def compare(first: Path, second: Path) -> Comparison:
    """Compare two run folders."""
    runs = load(first), load(second)
    a, b = (figures_of(run) for run in runs)
    rows = [
        Row(name, unit, x, y)
        for (name, unit, x), (_, _, y) in zip(_figures(a), _figures(b), strict=True)
    ]
    facts_a, facts_b = (
        {
            "kind": run.kind,
            "status": run.status,
            "strategy": run.strategy,
            "strategy source": strategy_hash(folder),
            "instruments": run.instrument_names,
            "market": {"ts_start": run.ts_start, "ts_end": run.ts_end, "rows": run.rows},
            "recipe": run.recipe,
            "environment": run.environment,
        }
        for run, folder in zip(runs, (first, second), strict=True)
    )
    return Comparison(str(first), str(second), rows, differences(facts_a, facts_b))


def strategy_hash(folder: Path) -> str:
    """SHA-256 over names and text of the Python files in a run folder; empty without any."""
    sources = sorted(path for path in folder.rglob("*.py") if path.is_file())
    digest = hashlib.sha256()
    for path in sources:
        digest.update(
            path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes() + b"\0"
        )
    return digest.hexdigest() if sources else ""


def differences(first: dict[str, Any], second: dict[str, Any]) -> list[Difference]:
    """Settings whose values differ, in the order of the first, then those only the second has."""
    a, b = dict(_flat(first)), dict(_flat(second))
    return [
        Difference(where, a.get(where, _ABSENT), b.get(where, _ABSENT))
        for where in dict.fromkeys([*a, *b])
        if a.get(where, _ABSENT) != b.get(where, _ABSENT)
    ]


def show(comparison: Comparison, console: Console) -> None:
    """Print a comparison."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    figures = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("figure", Path(comparison.first).name, Path(comparison.second).name, "difference"):
        figures.add_column(
            Text(name), justify="left" if name == "figure" else "right", overflow="fold"
        )
    for row in comparison.rows:
        figures.add_row(
            Text(row.name), *(_write(row.unit, v) for v in (row.first, row.second, row.change))
        )
    console.print(figures)
    if not comparison.differences:
        console.print("Same recipe, environment, strategy and data.")
        return
    settings = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("what differs", "first", "second"):
        settings.add_column(name, overflow="fold")
    for each in comparison.differences:
        settings.add_row(*(Text(cell) for cell in (each.where, each.first, each.second)))
    console.print(settings)


def _figures(figures: Figures) -> Iterator[tuple[str, str, float | None]]:
    head, orders = figures["headline"], figures["orders"]
    for name in (
        "net",
        "gross",
        "spread",
        "inventory",
        "fees",
        "impact",
        "turnover",
        "max_drawdown",
    ):
        yield name.replace("_", " "), "amount", head[name]
    yield "bps of turnover", "amount", head["bps_of_turnover"]
    yield "t of mean gain (Lo)", "amount", head["t_stat_lo"]
    bracket = figures["bracket"] or {}
    yield "net, risk-averse queue", "amount", bracket.get("net")
    short = figures["shortfall"][0]["all"]["total"] if figures["shortfall"] else {}
    yield "implementation shortfall", "amount", short.get("money")
    yield "shortfall, bps of what was asked", "amount", short.get("bps")
    for name in ("orders", "fills", "filled_lots", "refused", "replaces"):
        yield name.replace("_", " "), "count", orders[name]
    for name in ("fill_ratio", "passive_fill_ratio", "maker_share", "cancel_ratio"):
        yield name.replace("_", " "), "share", orders[name]
    yield "order to trade", "amount", orders["order_to_trade"]
    for leg in ("feed", "compute", "entry", "response", "signal age at venue"):
        for quantile in ("p50", "p99"):
            yield f"{leg} {quantile}", "ns", figures["latency"][leg][quantile]
    yield "wall time [s]", "amount", figures["run"]["wall_s"]


def _flat(value: Any, where: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _flat(inner, f"{where}.{key}" if where else str(key))
    else:
        yield where, str(value)


def _write(unit: str, value: float | None) -> str:
    if unit == "ns":
        return duration(value)
    return {"amount": amount, "count": count, "share": share}[unit](value)

"""What `hft build` does: reads a model, finds its evidence, builds, and shows what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from hft.errors import ConfigError
from hft.inference.build.building import Options, build_bundle
from hft.inference.build.evidence import Asked, Evidence, Known, evidence_of, sizes_of
from hft.inference.build.exports import FORMATS, missing_for, missing_of
from hft.inference.build.forms import NATIVE, Row
from hft.inference.build.subject import (
    Subject,
    is_bundle,
    known_of,
    of_bundle,
    of_model,
    read_model,
)
from hft.inference.build.tiers import TierLimits
from hft.inference.bundle import read_card, require_free
from hft.inference.card import Gate
from hft.inference.compress.train_on import require_tool
from hft.inference.training.task import Report

if TYPE_CHECKING:
    from rich.table import Table

GATES = (
    *("parity", "correlation", "kl", "argmax", "decisions"),
    *("log_loss", "auc", "latency", "pnl", "budget"),
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What was asked for on the command line."""

    model: Path
    out: Path
    asked: Asked
    options: Options
    card: Path | None = None
    calibration: Path | None = None
    window_rows: int = 0
    warm_up_rows: int = 100
    overwrite: bool = False


def formats_of(text: str | None) -> tuple[str, ...]:
    """`onnx,litert`; None: all, whether or not their libraries are there.

    Raises:
        ConfigError: none of that name, or its library is not installed.
    """
    if text is None:
        return tuple(FORMATS)
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    for name in names:
        if name not in FORMATS:
            raise ConfigError(f"--formats has {name!r}; there are {', '.join(FORMATS)}")
        missing = missing_for(FORMATS[name])
        if missing:
            raise ConfigError(f"--formats {name} {missing}")
    return names


def _require_libraries(options: Options) -> None:
    """Of what was asked for by name, before any work."""
    if options.distil:
        missing = missing_of(("keras", "tensorflow"), "train")
        if missing:
            raise ConfigError(f"--distil: LIGHT {missing}")
    if options.cuts.train_on:
        require_tool(options.cuts.train_on)


def run_build(wanted: Wanted, report: Report) -> list[Row]:
    """Builds what was asked for.

    Raises:
        HftError: it cannot be built; says what would be right.
    """
    require_free(wanted.out, overwrite=wanted.overwrite)
    _require_libraries(wanted.options)
    subject, evidence = _subject(wanted, report)
    options = wanted.options
    if options.tier_limits != TierLimits() and not (options.distil or subject.lesser):
        raise ConfigError(
            f"--tier-limit is of LIGHT and MICRO, {wanted.model} has neither: give --distil too"
        )
    if wanted.calibration is not None:
        asked = Asked(dataset=wanted.calibration)
        found = evidence_of(asked, known_of(subject.card), report)
        assert found is not None
        options = replace(options, calibration=found.task)
    if evidence is not None:
        report(sizes_of(evidence.task))
    return build_bundle(wanted.out, subject, evidence, options, report)


def _subject(wanted: Wanted, report: Report) -> tuple[Subject, Evidence | None]:
    if is_bundle(wanted.model):
        if wanted.card is not None:
            raise ConfigError(f"{wanted.model} is a bundle and has a card of its own: leave --card")
        if wanted.window_rows:
            raise ConfigError(
                f"{wanted.model} is a bundle and knows the rows it sees: leave --window"
            )
        subject = of_bundle(wanted.model)
        return subject, evidence_of(wanted.asked, known_of(subject.card), report)
    template = None if wanted.card is None else read_card(wanted.card)
    window = wanted.window_rows or (template.window_rows if template else 0)
    report(f"reading {wanted.model}")
    read = read_model(wanted.model, window, wanted.options.limit_s)
    if read.why_not:
        report(f"no native layers: {read.why_not}")
    known = Known(window_rows=read.window_rows, warm_up_rows=wanted.warm_up_rows)
    if template is not None:
        known = known_of(template)
    evidence = evidence_of(wanted.asked, known, report)
    name = wanted.out.stem
    return of_model(read, name, evidence, template, wanted.warm_up_rows), evidence


def table_of(rows: Sequence[Row]) -> Table:
    """Forms by gates."""
    from rich.table import Table

    shown = [g for g in GATES if any(gate.name == g for row in rows for gate in row.gates)]
    table = Table(box=None, pad_edge=False)
    for name in ("part", "bytes", "step us", *shown, "", "sha256"):
        table.add_column(name, justify="right" if name in ("bytes", "step us", *shown) else "left")
    for row in rows:
        by_name = {gate.name: gate for gate in row.gates}
        cells = [_figure(by_name[name]) if name in by_name else "" for name in shown]
        step = f"{row.step_ns / 1e3:.2f}" if row.step_ns else ""
        verdict = f"[bold red]{row.verdict}[/]" if not row.passed else row.verdict
        size = f"{row.bytes:,}" if row.bytes else ""
        table.add_row(row.name, size, step, *cells, verdict, row.sha256[:12])
    return table


def _figure(gate: Gate) -> str:
    if not gate.judged:
        return "not judged"
    value = f"{gate.value:.5f}" if gate.name == "correlation" else f"{gate.value:.3g}"
    return f"[red]{value}[/]" if gate.failed else value


def notes_of(rows: Sequence[Row]) -> list[str]:
    """What gates that did not pass said, every P&L, tiers by weather, and what was not built."""
    found = []
    for row in rows:
        if row.missing:
            found.append(f"{row.name}: not built: {row.missing}")
        for gate in row.gates:
            if not gate.passed:
                found.append(f"{row.name}: {gate}")
            elif gate.name == "pnl" or (gate.name == "correlation" and gate.note):
                found.append(f"{row.name}: {gate.name}: {gate.note}")
    return found


def exit_code(rows: Sequence[Row], *, strict: bool) -> int:
    """How the command ends, the bundle written.

    0: FULL has a form that passed; the native one, where there is one, which is what runs by
    default. 1: it has none; or, if strict, any gate failed or could not be judged.
    """
    native = [row for row in rows if row.name == NATIVE]
    runs = any(row.passed for row in native or rows if row.tier == "FULL")
    doubtful = any(not gate.passed for row in rows for gate in row.gates)
    return 0 if runs and not (strict and doubtful) else 1

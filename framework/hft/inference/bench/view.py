"""Tables of what was measured."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from hft.analysis.tables import Table
from hft.analysis.units import count, duration, share
from hft.inference.bench.company import WAYS, Cell
from hft.inference.bench.curve import LEVEL, Curve
from hft.inference.bench.measure import Line
from hft.inference.bench.rate import Served
from hft.inference.bench.release import Release
from hft.inference.bench.timing import QUANTILES, quantiles

if TYPE_CHECKING:
    from rich.console import Console


def steps_table(title: str, lines: Iterable[Line]) -> Table:
    """A row a backend, form and place."""
    lines = list(lines)
    rows = [
        [
            line.subject.name,
            line.form,
            line.where,
            *(duration(ns) for ns in line.timing.quantiles().values()),
            count(line.timing.ns.size),
            share(line.timing.share_disturbed),
        ]
        for line in lines
    ]
    clocks = sorted({line.timing.clock_ns for line in lines})
    own = " to ".join(str(ns) for ns in dict.fromkeys((clocks[0], clocks[-1]))) if clocks else "0"
    note = (
        f"Without the clock's own time, {own} ns a call. Disturbed: in blocks with an involuntary "
        "context switch; left out unless less than a tenth would remain. -: too few calls to tell."
    )
    return Table(title, ["backend", "form", "caches", *QUANTILES, "calls", "disturbed"], rows, note)


def rate_table(served: dict[str, Served], told: str) -> Table:
    """Waiting apart from service."""
    rows = []
    for name, one in served.items():
        for what, ns in (
            ("wait", one.wait_ns),
            ("service", one.service_ns),
            ("answer", one.answer_ns),
        ):
            found = [duration(v) for v in quantiles(ns).values()]
            load = share(one.load) if what == "wait" else ""
            rows.append([name, what, *found, count(ns.size), load])
    note = (
        "Answer: from arrival, wait and service together. At a load near 100 % waits never settle."
    )
    return Table(told, ["backend", "", *QUANTILES, "rows", "load"], rows, note)


SHOWN_SIZES = (1, 8, 64)


def curve_table(curves: dict[str, Curve]) -> Table:
    """The line alpha + beta k, and what was measured of some k."""
    rows = []
    for name, c in curves.items():
        by_size = dict(zip(c.sizes, c.medians_ns, strict=True))
        rows.append(
            [
                name,
                _with_half(c.alpha_ns, c.alpha_interval),
                _with_half(c.beta_ns, c.beta_interval),
                share(c.worst_misfit),
                *(duration(by_size.get(k)) for k in SHOWN_SIZES),
            ]
        )
    head = ["backend", "alpha", "beta", "misfit", *(f"k={k}" for k in SHOWN_SIZES)]
    note = (
        f"A batch of k rows of different streams takes alpha + beta k; ± half of the {LEVEL:.0%} "
        "interval. Misfit: largest distance of a measured median from the line. Called from "
        "Python: of native, most of alpha is that call, which the engine's inline step has not."
    )
    return Table("Batches", head, rows, note)


def _with_half(ns: float, interval: tuple[float, float]) -> str:
    return f"{duration(ns)} ± {duration((interval[1] - interval[0]) / 2)}"


def company_table(name: str, cells: Iterable[Cell], deadline_ns: int) -> Table:
    """p99 from arrival to answer by rate and streams, one after the other and in batches."""
    rows = [
        [
            f"{c.rows_a_second:,.0f}/s",
            str(c.streams),
            "together" if c.together else "alone",
            share(c.load),
            *(duration(c.p99_ns[way]) for way in WAYS),
            c.best,
        ]
        for c in cells
    ]
    note = (
        "p99 from arrival to answer, simulated on the fitted line. At once: what is there when the "
        f"server is free. Deadline: rows also wait up to {duration(deadline_ns)} for company. "
        "Together: every stream has its row within 20 µs of each move."
    )
    head = ["rows a stream", "streams", "arrive", "load", *WAYS, "least"]
    return Table(f"Batches of streams, {name}", head, rows, note)


def release_table(release: Release) -> Table:
    """Every condition, with its limit."""
    rows = [
        [g.name, f"{g.value:.4g}", f"{g.limit:.4g}", g.note, "passed" if g.passed else "FAILED"]
        for g in release.gates
    ]
    times = ", ".join(
        f"{name} {duration(r.new_ns)} against {duration(r.old_ns)}"
        for name, r in release.latency.items()
    )
    note = f"{times}; answers on {release.rows:,} rows. Ratios are new over old."
    return Table("Release check", ["condition", "value", "limit", "", "verdict"], rows, note)


def show(table: Table, console: Console) -> None:
    """Prints one."""
    from hft.analysis.terminal import rich_table

    console.print(rich_table(table, console.width, gap=1))
    console.print(table.note, style="dim", markup=False, highlight=False)

"""`hft bench inference`, `hft bench release`: what is measured in which order, and shown."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hft.analysis.units import duration
from hft.errors import ConfigError
from hft.execution.resampling import FEWEST
from hft.inference.bench.batching import Batcher, recipe_of, run
from hft.inference.bench.cold import evict_bytes
from hft.inference.bench.company import SPREAD_NS, arrivals, compare
from hft.inference.bench.curve import Curve, measure_curve
from hft.inference.bench.measure import (
    BACKENDS,
    Batches,
    Floats,
    Line,
    Subject,
    at_rate,
    made_up_rows,
    opened_bundle,
    steps_of,
    subjects,
)
from hft.inference.bench.profile import profile_of_bench
from hft.inference.bench.rate import Served, poisson, recorded
from hft.inference.bench.release import Limits, Release, check_release
from hft.inference.bench.timing import Int, quantiles
from hft.inference.bundle import Bundle
from hft.inference.card import TierName

if TYPE_CHECKING:
    from rich.console import Console

    from hft.analysis.tables import Table
    from hft.execution.profiles import LatencyProfile

MAX_BATCH = 64
LOAD = 0.3
MOST_ROWS = 2_000_000
RELEASE_ROWS = 20_000


@dataclass(frozen=True, slots=True)
class Wanted:
    """Options of `hft bench inference`."""

    backends: tuple[str, ...] = ()
    precisions: tuple[str, ...] = ()
    tier: TierName = "FULL"
    threads: int = 1
    rate: float | None = None
    """Rows a second of one stream."""
    dataset: Path | None = None
    """Whose rows' times are the arrivals, where `rate` is None."""
    cold: bool = False
    neighbour: bool = False
    batch: bool = False
    deadline_ns: int = 0
    seconds: float = 1.0
    out: Path | None = None


def bench_inference(path: Path, wanted: Wanted, console: Console) -> None:
    """Measures, and prints each table as it is there.

    Raises:
        ConfigError: options that do not fit each other.
        ModelError: the bundle is damaged, or has not what is to be measured.
    """
    from hft.inference.bench.view import rate_table, steps_table

    chosen = subjects(
        opened_bundle(path), wanted.backends, wanted.tier, wanted.precisions, wanted.threads
    )
    if wanted.out is not None:
        _require_one(chosen, wanted)
    _say_where(wanted.threads, console)
    lines = []
    for subject in chosen:
        for line in steps_of(
            subject, seconds=wanted.seconds, cold=wanted.cold, beside=wanted.neighbour
        ):
            lines.append(line)
            _tell(line)
    show(steps_table(f"{path.name}, a row, {wanted.tier}", lines), console)
    if wanted.rate is not None or wanted.dataset is not None:
        arrival, told = _arrivals(wanted)
        served = {s.name: _served(s, arrival, wanted) for s in chosen}
        show(rate_table(served, told), console)
        if wanted.out is not None:
            _write(_profile(chosen[0], served[chosen[0].name], wanted, told), wanted, console)
    if wanted.batch:
        _bench_batches(chosen, wanted, console)


def _require_one(chosen: list[Subject], wanted: Wanted) -> None:
    from hft.whole_files import require_folder

    assert wanted.out is not None
    if len(chosen) != 1:
        raise ConfigError(
            f"a profile is of one form of a model, these are {', '.join(s.name for s in chosen)}: "
            "name one by --backend and --precision"
        )
    if wanted.rate is None and wanted.dataset is None:
        raise ConfigError("a profile is of rows that arrive: give --rate or --arrivals with -o")
    if wanted.rate is not None and wanted.rate * wanted.seconds < 1.1 * FEWEST:
        raise ConfigError(
            f"a profile wants {FEWEST:,} rows, {wanted.rate:g} rows/s bring "
            f"{wanted.rate * wanted.seconds:,.0f} in {wanted.seconds:g} s: raise --seconds"
        )
    if wanted.out.suffix != ".parquet":
        raise ConfigError(f"a profile is a .parquet file, {wanted.out} is not")
    require_folder(wanted.out.parent)


def _tell(line: Line) -> None:
    # A bar that moves by itself would take turns with what is timed.
    if sys.stderr.isatty():
        took = duration(line.timing.quantiles()["p50"])
        print(f"{line.subject.name}, {line.form}, {line.where}: p50 {took}", file=sys.stderr)


def _say_where(threads: int, console: Console) -> None:
    """On what figures were taken."""
    how = "one thread, pinned where permitted (TensorFlow: two, which cannot be)"
    told = how if threads == 1 else f"{threads} threads, not pinned"
    console.print(f"{machine()}; {told}", style="dim", markup=False, highlight=False)


def machine() -> str:
    """Its processor, for the line above a table."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = (x.partition(":")[2].strip() for x in lines if x.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


def show(table: Table, console: Console) -> None:
    """Prints one."""
    from hft.analysis.terminal import rich_table

    console.print(rich_table(table, console.width, gap=1))
    console.print(table.note, style="dim", markup=False, highlight=False)


def _arrivals(wanted: Wanted) -> tuple[Int, str]:
    if wanted.dataset is None:
        assert wanted.rate is not None
        n = int(wanted.rate * wanted.seconds * 1.2) + 10
        if n > MOST_ROWS:
            raise ConfigError(
                f"{wanted.rate:g} rows/s over {wanted.seconds:g} s are {n:,} rows, want at most "
                f"{MOST_ROWS:,}: lower --rate or --seconds"
            )
        return poisson(wanted.rate, n), f"Poisson arrivals of {wanted.rate:,.0f} rows/s"
    ts = rows_of(wanted.dataset)[0]
    return recorded(ts), f"arrivals as in {wanted.dataset.name}"


def rows_of(folder: Path, of: Bundle | None = None) -> tuple[Int, Floats]:
    """Times and features of the test part of a data set, (n,) and (n, inputs).

    Args:
        folder: that `hft dataset` wrote.
        of: whose features they must be; None: any.

    Raises:
        ConfigError: other features, or no row.
    """
    from hft.inference.dataset_reading import open_dataset

    dataset = open_dataset(folder)
    if of is not None and tuple(dataset.facts.features) != of.card.features:
        raise ConfigError(
            f"{folder} has columns {', '.join(dataset.names)}; {of.path.name} reads "
            f"{', '.join(f.name for f in of.card.features)}, by the same definitions"
        )
    ts, x = [], []
    for frame in dataset.frames("test"):
        ts.append(frame["ts"].to_numpy())
        x.append(frame.select(dataset.names).to_numpy())
    if not ts:
        raise ConfigError(f"{folder}: its test part is empty")
    rows = np.concatenate(x).astype(np.float64)
    whole = ~np.isnan(rows).any(axis=1)
    return np.concatenate(ts)[whole].astype(np.int64), rows[whole]


def _served(subject: Subject, arrival: Int, wanted: Wanted) -> Served:
    return at_rate(
        subject,
        arrival,
        seconds=wanted.seconds,
        walked_bytes=evict_bytes(2) if wanted.cold else 0,
        beside=wanted.neighbour,
    )


def _profile(subject: Subject, served: Served, wanted: Wanted, told: str) -> LatencyProfile:
    bundle = subject.bundle
    return profile_of_bench(
        served,
        source=f"{bundle.path.name} on {subject.name}",
        tier=subject.tier,
        about={
            "arrivals": told,
            "backend": subject.backend,
            "precision": subject.precision,
            "threads": subject.threads,
            "cold": wanted.cold,
            "neighbour": wanted.neighbour,
            "machine": machine(),
            "weights": bundle.card.weights_sha256,
        },
    )


def _write(profile: LatencyProfile, wanted: Wanted, console: Console) -> None:
    from hft.execution.profiles import save_profile

    assert wanted.out is not None
    save_profile(profile, wanted.out)
    console.print(f"profile: {wanted.out}", markup=False, highlight=False)


def _bench_batches(chosen: list[Subject], wanted: Wanted, console: Console) -> None:
    from hft.inference.bench.view import company_table, curve_table

    curves: dict[str, Curve] = {}
    for subject in chosen:
        with subject.held(), subject.opened() as backend:
            batches = Batches(backend, MAX_BATCH, subject.rows())
            curves[subject.name] = measure_curve(batches.first, seconds=wanted.seconds)
            run_told = _really(batches, curves[subject.name], wanted)
        console.print(run_told, style="dim", markup=False, highlight=False)
    show(curve_table(curves), console)
    for name, curve in curves.items():
        deadline = wanted.deadline_ns or round(curve.service_ns(1))
        cells = [
            cell
            for together in (False, True)
            for cell in compare(curve, deadline_ns=deadline, max_batch=MAX_BATCH, together=together)
        ]
        show(company_table(name, cells, deadline), console)
        console.print(
            f"{name}: what a replay charges for batches at once:", style="dim", highlight=False
        )
        console.print("\n".join(recipe_of(curve, MAX_BATCH)), markup=False, highlight=False)


def _really(batches: Batches, curve: Curve, wanted: Wanted) -> str:
    """The batcher on the clock, over streams that move together, at a third of its capacity."""
    streams, deadline = 16, wanted.deadline_ns or curve.service_ns(1)
    # Capacity one by one, with what this loop adds to each call.
    crowd = np.zeros(400, np.int64)
    all_at_once = run(crowd, np.arange(400) % streams, Batcher(1, 0), batches.of, seconds=1.0)
    each_ns = float(all_at_once.answer_ns.max()) / all_at_once.answer_ns.size
    rate = LOAD * 1e9 / each_ns
    n = min(max(int(rate * wanted.seconds), streams), 50_000)
    ts, of = arrivals(rate / streams, streams, together=True, n=n)
    ways: dict[str, Callable[[], Batcher]] = {
        "one by one": lambda: Batcher(1, 0),
        "at once": lambda: Batcher(streams, 0),
        "deadline": lambda: Batcher(streams, deadline),
    }
    told = []
    for way, make in ways.items():
        served = run(ts, of, make(), batches.of, seconds=2 * wanted.seconds)
        told.append(f"{way} {duration(quantiles(served.answer_ns)['p95'])}")
    return (
        f"On the clock, {streams} streams within {duration(SPREAD_NS)} of each move, "
        f"{rate / streams:,.0f} moves/s: p95 to answer {', '.join(told)}"
    )


def bench_release(
    new: Path,
    old: Path,
    *,
    backend: str,
    tier: TierName,
    precision: str,
    threads: int,
    dataset: Path | None,
    limits: Limits,
    seconds: float,
    console: Console,
) -> Release:
    """Compares two bundles and prints every condition.

    Raises:
        ModelError: one of them is damaged, or they cannot be compared.
    """
    from hft.inference.bench.view import release_table

    if backend not in BACKENDS:
        raise ConfigError(f"no backend {backend!r}; there are {', '.join(BACKENDS)}")
    ours, theirs = (
        Subject(opened_bundle(path), backend, tier, precision, threads) for path in (new, old)
    )
    if dataset is None:
        x = made_up_rows(theirs.bundle.card.scaler, RELEASE_ROWS)
        console.print(
            "Answers on made-up rows: they differ more there than on a market's; --dataset has "
            "those of yours.",
            style="dim",
            highlight=False,
        )
    else:
        x = rows_of(dataset, theirs.bundle)[1][-RELEASE_ROWS:]
    _say_where(threads, console)
    with ours.held():
        release = check_release(ours, theirs, x, limits=limits, seconds=seconds)
    show(release_table(release), console)
    return release

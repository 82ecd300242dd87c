"""`hft bench inference`, `hft bench release`: what is measured in which order, and shown."""

from __future__ import annotations

import platform
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hft.analysis.units import duration
from hft.errors import ConfigError
from hft.execution.resampling import FEWEST
from hft.inference.bench.batch_command import bench_batches
from hft.inference.bench.cold import evict_bytes
from hft.inference.bench.dataset_rows import rows_of
from hft.inference.bench.measure import Line, at_rate, steps_of
from hft.inference.bench.profile import profile_of_bench
from hft.inference.bench.rate import Served, poisson, recorded
from hft.inference.bench.release import Limits, Release, check_release
from hft.inference.bench.subject import (
    BACKENDS,
    Subject,
    made_up_rows,
    not_installed,
    opened_bundle,
    subjects,
)
from hft.inference.bench.timing import Int
from hft.inference.card import TierName

if TYPE_CHECKING:
    from rich.console import Console

    from hft.execution.profiles import LatencyProfile

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
    url: str = ""
    """Of backend `serving`."""
    connections: int = 4
    """Likewise."""


def bench_inference(path: Path, wanted: Wanted, console: Console) -> None:
    """Measures, and prints each table as it is there.

    Raises:
        ConfigError: options that do not fit each other.
        ModelError: the bundle is damaged, or has not what is to be measured.
    """
    from hft.inference.bench.view import rate_table, show, steps_table

    if wanted.url or "serving" in wanted.backends:
        _bench_server(path, wanted, console)
        return
    _require_use(wanted)
    bundle = opened_bundle(path)
    chosen = subjects(bundle, wanted.backends, wanted.tier, wanted.precisions, wanted.threads)
    if wanted.out is not None:
        _require_one(chosen, wanted)
    _say_where(wanted.threads, console)
    absent = [] if wanted.backends else not_installed(bundle, wanted.tier)
    if absent:
        console.print(
            f"Not installed, left out: {', '.join(absent)}. pip install 'hft-framework[inference]'",
            style="dim",
            markup=False,
            highlight=False,
        )
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
        bench_batches(
            chosen, seconds=wanted.seconds, deadline_ns=wanted.deadline_ns, console=console
        )


def _bench_server(path: Path, wanted: Wanted, console: Console) -> None:
    """A load on a server; what is measured of a library in this process makes no sense there."""
    from hft.inference.backends.serving import ServingBackend
    from hft.inference.backends.serving_load import load_test

    if wanted.backends != ("serving",) or not wanted.url:
        raise ConfigError("a server is measured by itself: give --backend serving and --url")
    if wanted.rate is None and wanted.dataset is None:
        raise ConfigError("a server is measured under load: give --rate or --arrivals")
    ours = ("precisions", "cold", "neighbour", "batch", "out")
    given = [name for name in ours if getattr(wanted, name)]
    if given or wanted.threads != 1:
        raise ConfigError(
            f"{', '.join(given) or 'threads'}: not of a server, maybe on another machine; leave out"
        )
    arrival, told = _arrivals(wanted)
    with ServingBackend(
        opened_bundle(path), wanted.tier, wanted.url, timeout_s=10.0, ready_s=30.0
    ) as backend:
        backend.warm_up(50)
        load = load_test(backend, arrival, seconds=wanted.seconds, connections=wanted.connections)
    console.print("\n".join([told, *load.lines()]), markup=False, highlight=False)


def _require_use(wanted: Wanted) -> None:
    """Options that would do nothing are told, rather than left to be believed."""
    if wanted.deadline_ns and not wanted.batch:
        raise ConfigError("--deadline is of batches: give --batch too")
    if wanted.connections != Wanted().connections:
        raise ConfigError("--connections is of a server: give --backend serving and --url too")


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
    from hft.inference.bench.view import release_table, show

    if backend not in BACKENDS:
        raise ConfigError(f"no backend {backend!r}; there are {', '.join(BACKENDS)}")
    ours, theirs = (
        Subject(opened_bundle(path), backend, tier, precision, threads) for path in (new, old)
    )
    trails = ours.bundle.card.trailing is not None or theirs.bundle.card.trailing is not None
    x_new = None
    if dataset is None:
        x = made_up_rows(theirs.bundle.card.scaler, RELEASE_ROWS)
        if trails:
            x_new = made_up_rows(ours.bundle.card.scaler, RELEASE_ROWS)
        console.print(
            "Answers on made-up rows: they differ more there than on a market's; --dataset has "
            "those of yours.",
            style="dim",
            highlight=False,
        )
    else:
        x = rows_of(dataset, theirs.bundle)[1][-RELEASE_ROWS:]
        if trails:
            x_new = rows_of(dataset, ours.bundle)[1][-RELEASE_ROWS:]
    _say_where(threads, console)
    with ours.held():
        release = check_release(ours, theirs, x, limits=limits, seconds=seconds, x_new=x_new)
    show(release_table(release), console)
    return release

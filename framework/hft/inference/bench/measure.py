"""A bundle's backends, step by step, in quiet and in trouble."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from hft.errors import ConfigError, ModelError
from hft.execution.resampling import FEWEST
from hft.features import Feature
from hft.inference.bench.cold import Evictor, evict_bytes
from hft.inference.bench.native import Mode, time_native
from hft.inference.bench.neighbour import neighbour
from hft.inference.bench.rate import Served, open_loop, queued
from hft.inference.bench.timing import Int, Timing, pinned, timed
from hft.inference.bundle import CARD, Bundle, load_bundle, read_card
from hft.inference.card import PartEntry, Scaler, TierName

if TYPE_CHECKING:
    from hft.inference.backends import Backend

Floats = npt.NDArray[np.float64]
Where = Literal["warm", "L2 cold", "L3 cold", "neighbour"]
ROWS = 4096
BACKENDS = ("native", "onnx", "litert", "tensorflow")
_LIBRARIES = {"onnx": "onnxruntime", "litert": "ai_edge_litert", "tensorflow": "tensorflow"}


@dataclass(frozen=True, slots=True)
class Subject:
    """What is measured: one backend of a bundle, as it would run."""

    bundle: Bundle
    backend: str
    tier: TierName = "FULL"
    precision: str = ""
    """Empty: each layer's own, or the backend's first part."""
    threads: int = 1

    @property
    def name(self) -> str:
        """Such as `onnx int8`."""
        return f"{self.backend} {self.precision}".strip()

    def opened(self) -> Backend:
        """The backend, loaded; close it."""
        from hft.inference.backends import open_backend

        return open_backend(
            self.bundle,
            self.backend,
            tier=self.tier,
            precision=self.precision,
            threads=self.threads,
        )

    def network(self) -> Any:
        """The native network of the same."""
        return self.bundle.network(tier=self.tier, precision=self.precision)

    def rows(self, n: int = ROWS, seed: int = 1) -> Floats:
        """Rows as wide and as large as those of the training, made up, (n, inputs)."""
        return made_up_rows(self.bundle.card.scaler, n, seed)

    def held(self) -> AbstractContextManager[int | None]:
        """Pins this thread to a processor, where the work is this thread's own.

        TensorFlow hands work to threads of its own even if there is one: on one processor the two
        would wait for each other's turns, milliseconds long.
        """
        alone = self.threads == 1 and self.backend != "tensorflow"
        return pinned() if alone else nullcontext()

    @property
    def window_rows(self) -> int:
        """Of the tier; 0: it carries a state."""
        return self.bundle.card.window_rows if self.tier == "FULL" else 0

    @property
    def forms(self) -> tuple[Mode, ...]:
        """In which a native row is timed."""
        return ("window",) if self.window_rows else ("step", "armed")


@dataclass(frozen=True, slots=True)
class Line:
    """One measurement of a table."""

    subject: Subject
    form: str
    where: Where
    timing: Timing


def opened_bundle(path: str | Path) -> Bundle:
    """A bundle to be timed: own features are no part of a step, so their code is not wanted."""
    own = [e.name for e in read_card(Path(path) / CARD).features if e.kind == "own"]
    return load_bundle(
        path, [Feature("own", n, update=lambda state, row: (state, 0.0)) for n in own]
    )


def made_up_rows(scaler: Scaler, n: int, seed: int = 1) -> Floats:
    """Normal in each column with the mean and scale of the training, (n, inputs)."""
    z = np.random.default_rng(seed).standard_normal((n, len(scaler.mean)))
    return np.ascontiguousarray(np.array(scaler.mean) + np.array(scaler.scale) * z)


def backends_of(bundle: Bundle, tier: TierName) -> list[str]:
    """Those that can run a tier, `native` first."""
    there = {p.backend for p in _parts(bundle, tier)}
    native = ["native"] if bundle.layers(tier) else []
    return native + [name for name in BACKENDS if name in there]


def not_installed(bundle: Bundle, tier: TierName) -> list[str]:
    """Backends that could run a tier if their library were here."""
    return [
        name
        for name in backends_of(bundle, tier)
        if name in _LIBRARIES and importlib.util.find_spec(_LIBRARIES[name]) is None
    ]


def subjects(
    bundle: Bundle,
    backends: Sequence[str],
    tier: TierName,
    precisions: Sequence[str],
    threads: int,
) -> list[Subject]:
    """What to measure of a bundle.

    Raises:
        ConfigError: an unknown backend.
        ModelError: the bundle has none that could run.
    """
    for name in backends:
        if name not in BACKENDS:
            raise ConfigError(f"no backend {name!r}; there are {', '.join(BACKENDS)}")
    names = list(backends)
    if not names:
        there, absent = backends_of(bundle, tier), not_installed(bundle, tier)
        names = [name for name in there if name not in absent] or there
    if not names:
        raise ModelError(f"{bundle.path}: {tier} has no form to run; `hft build` makes them")
    return [
        Subject(bundle, name, tier, precision, threads)
        for name in names
        for precision in (precisions or _precisions(bundle, name, tier))
    ]


def _precisions(bundle: Bundle, backend: str, tier: TierName) -> list[str]:
    there = [p.precision for p in _parts(bundle, tier) if p.backend == backend]
    return list(dict.fromkeys(there)) or [""]


def _parts(bundle: Bundle, tier: TierName) -> list[PartEntry]:
    """Those that could be made: a card names the others too."""
    return [p for p in bundle.card.parts if p.tier == tier and p.sha256]


def steps_of(
    subject: Subject,
    *,
    seconds: float,
    cold: bool = False,
    beside: bool = False,
) -> Iterator[Line]:
    """Times every form of a subject wherever it was asked for.

    Args:
        subject: what is timed.
        seconds: of each line.
        cold: also with caches as other work leaves them.
        beside: also beside a memory-heavy neighbour.
    """
    wheres: list[Where] = ["warm"]
    wheres += ["L2 cold", "L3 cold"] if cold else []
    wheres += ["neighbour"] if beside else []
    with ExitStack() as stack:
        cpu = stack.enter_context(subject.held())
        time_one = _native_timer(subject) if subject.backend == "native" else None
        backend = None
        if time_one is None:
            backend = stack.enter_context(subject.opened())
        for where in wheres:
            if where == "neighbour":
                stack.enter_context(neighbour(cpu))
            bytes_ = {"L2 cold": evict_bytes(2), "L3 cold": evict_bytes(3)}.get(where, 0)
            if time_one is not None:
                forms = (
                    *subject.forms,
                    *(("touched",) if bytes_ and len(subject.forms) > 1 else ()),
                )
                for form in forms:
                    yield Line(subject, form, where, time_one(form, seconds, bytes_))
            else:
                assert backend is not None
                took = step_timing(backend, subject.rows(), seconds=seconds, walked_bytes=bytes_)
                yield Line(subject, "window" if backend.window_rows else "step", where, took)


def _native_timer(subject: Subject) -> Any:
    network, rows = subject.network(), subject.rows()

    def time_one(form: Mode, seconds: float, bytes_: int) -> Timing:
        return time_native(
            network,
            rows,
            form,
            seconds=seconds,
            evict_bytes=bytes_,
            window_rows=subject.window_rows or 1,
        )

    return time_one


def step_timing(
    backend: Backend,
    rows: Floats,
    *,
    seconds: float,
    walked_bytes: int = 0,
    most: int = 20_000,
    least: int = 50,
) -> Timing:
    """Times `backend.step` from Python, as the engine calls it.

    Args:
        backend: any; of the native one this times the call around the step as well.
        rows: features as they come, (n, inputs), used in turn.
        seconds: ends after so long.
        walked_bytes: other work before each step, not timed.
        most: ends after so many steps.
        least: but not before so many.
    """
    step = _stepper(backend, rows)
    before = Evictor(walked_bytes) if walked_bytes else None
    return timed(step, seconds=seconds, most=most, least=least, before=before)


def _stepper(backend: Backend, rows: Floats) -> Any:
    """A function of the row's number that steps one stream, from Python."""
    each = list(np.ascontiguousarray(rows, np.float64))  # views: none is made in a timed call
    state, out = backend.state(), np.zeros(len(backend.outputs), np.float32)
    n, step = len(each), backend.step
    for row in each[: max(backend.window_rows, 1)]:
        step(state, row, out)

    def one(i: int) -> None:
        step(state, each[i % n], out)

    return one


def at_rate(
    subject: Subject,
    arrival_ns: Int,
    *,
    seconds: float,
    walked_bytes: int = 0,
    beside: bool = False,
) -> Served:
    """One stream's rows as they arrive: what they wait, and what they take.

    The native network runs inline, so its waits are computed from services timed in the core, which
    is exact; a Python loop would add more than it takes. Other backends are really called.

    Args:
        subject: what serves.
        arrival_ns: from 0, ascending.
        seconds: of arrivals.
        walked_bytes: other work between rows.
        beside: a memory-heavy neighbour is at work.
    """
    with subject.held() as cpu, neighbour(cpu) if beside else nullcontext():
        return _at_rate(subject, arrival_ns, seconds, walked_bytes)


def _at_rate(subject: Subject, arrival_ns: Int, seconds: float, walked_bytes: int) -> Served:
    if subject.backend == "native":
        n = int(np.searchsorted(arrival_ns, int(seconds * 1e9)))
        took = time_native(
            subject.network(),
            subject.rows(),
            subject.forms[0],
            seconds=seconds,
            evict_bytes=walked_bytes,
            window_rows=subject.window_rows or 1,
            most=n,
            least=min(n, 2 * FEWEST),
        )
        n = min(n, took.ns.size)
        return queued(arrival_ns[:n], took.ns[:n])
    with subject.opened() as backend:
        step = _stepper(backend, subject.rows())
        between = Evictor(walked_bytes) if walked_bytes else None
        return open_loop(step, arrival_ns, seconds=seconds, between=between)

"""What one call takes: a line a backend, form and state of the caches, and a line of batches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from bench_models import Models, Shape
from library_calls import litert_invoke, onnx_run

from hft.errors import HftError
from hft.inference.bench.batch_command import MAX_BATCH, Batches
from hft.inference.bench.cold import Evictor, evict_bytes
from hft.inference.bench.curve import Curve, measure_curve
from hft.inference.bench.measure import step_timing
from hft.inference.bench.native import time_native
from hft.inference.bench.subject import Subject, made_up_rows
from hft.inference.bench.timing import Timing, pinned
from hft.inference.bundle import Bundle


@dataclass(frozen=True)
class Line:
    """One line of the table; times in ns, null where too few calls were made to tell."""

    shape: str
    who: str
    """Such as `native int8`."""
    form: str
    caches: str
    p50: float | None
    p99: float | None
    p999: float | None
    calls: int
    disturbed: float


def lines_of(m: Models, seconds: float) -> Iterator[Line]:
    for caches, walked in (("warm", 0), ("cold", evict_bytes(2))):
        if m.streaming is not None:
            with pinned():
                yield from _native(m, seconds, caches, walked)
            yield from _libraries(m.shape, m.streaming, "step", seconds, caches, walked)
        if m.windowed is not None:
            yield from _libraries(m.shape, m.windowed, "window", seconds, caches, walked)


def _native(m: Models, seconds: float, caches: str, walked: int) -> Iterator[Line]:
    assert m.streaming is not None
    rows = made_up_rows(m.streaming.card.scaler, 2048)
    forms = ["step", "armed"] + (["touched"] if walked else [])
    forms += ["window"] if m.shape.window_rows else []
    for precision in ("fp32", "int8"):
        network = m.streaming.network(precision=precision)
        for form in forms:
            took = time_native(
                network,
                rows,
                form,  # type: ignore[arg-type]
                seconds=seconds,
                evict_bytes=walked,
                window_rows=m.shape.window_rows or 1,
            )
            yield line(m.shape, f"native {precision}", form, caches, took)


def _libraries(
    shape: Shape, bundle: Bundle, form: str, seconds: float, caches: str, walked: int
) -> Iterator[Line]:
    rows = made_up_rows(bundle.card.scaler, 2048)
    for part in bundle.card.parts:
        subject = Subject(bundle, part.backend, precision=part.precision)
        before = Evictor(walked) if walked else None
        path, who = bundle.path / part.file, subject.name
        try:
            with subject.held():
                if part.backend == "onnx":
                    yield line(shape, who, f"{form}, run", caches, onnx_run(path, seconds, before))
                elif part.backend == "litert":
                    took = litert_invoke(path, seconds, before)
                    yield line(shape, who, f"{form}, invoke", caches, took)
                with subject.opened() as backend:
                    took = step_timing(backend, rows, seconds=seconds, walked_bytes=walked)
                yield line(shape, who, f"{form}, Backend.step", caches, took)
        except HftError as error:
            print(f"{shape.name}, {who}: {error}")


def line(shape: Shape, who: str, form: str, caches: str, took: Timing) -> Line:
    found = [took.quantiles()[q] for q in ("p50", "p99", "p99.9")]
    known = [None if np.isnan(v) else round(v, 1) for v in found]
    return Line(shape.name, who, form, caches, *known, took.ns.size, round(took.share_disturbed, 3))


def batches_of_windows(m: Models, seconds: float) -> dict[str, Curve]:
    """The lines alpha + beta k of the backends that answer windows; by backend."""
    if m.windowed is None:
        return {}
    found = {}
    for part in m.windowed.card.parts:
        subject = Subject(m.windowed, part.backend, precision=part.precision)
        try:
            with subject.held(), subject.opened() as backend:
                batches = Batches(backend, MAX_BATCH, made_up_rows(m.windowed.card.scaler, 2048))
                found[subject.name] = measure_curve(batches.first, seconds=seconds)
        except HftError as error:
            print(f"{m.shape.name}, batches, {subject.name}: {error}")
    return found

"""What inference takes here, every backend and form: `make bench-inference`.

Random weights: a step takes as long whatever they are. Native steps are timed in the core; of
other libraries both their own call alone (`onnx run`, `litert invoke`: what the aims are held
against) and `Backend.step`, which scales and copies around it as the engine has it done. One
thread, pinned (but TensorFlow, whose work is another thread's); blocks with an involuntary context
switch are left out; the clock's own time is taken off.
Writes build/bench/inference.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import floors
import numpy as np
from bench_models import SHAPES, Models, Shape, build
from library_calls import litert_invoke, onnx_run, onnx_step
from rich.console import Console
from turns import cpu

from hft import _core
from hft.analysis.tables import Table
from hft.analysis.units import duration
from hft.errors import HftError
from hft.inference.bench.cold import Evictor, evict_bytes
from hft.inference.bench.measure import Subject, made_up_rows, step_timing
from hft.inference.bench.native import time_native
from hft.inference.bench.timing import Timing, pinned
from hft.inference.bench.view import show
from hft.inference.bundle import Bundle

ROOT = Path(__file__).parents[2]
DAY_ROWS = 10_000_000
CHUNK = 100_000


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


def main() -> None:
    args = argparse.ArgumentParser(description=__doc__)
    args.add_argument("--quick", action="store_true", help="seconds: one small shape, ONNX alone")
    args.add_argument("--seconds", type=float, default=0.3, help="of each line")
    args.add_argument("--out", type=Path, default=ROOT / "build/bench/inference.json")
    chosen = args.parse_args()
    began = time.perf_counter()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    seconds = 0.02 if chosen.quick else chosen.seconds
    shapes = (replace(SHAPES[0], units=16, window_rows=10),) if chosen.quick else SHAPES
    console = Console()
    if not console.is_terminal:
        console = Console(width=120)  # its tables are wide, and a file has no edge
    with tempfile.TemporaryDirectory() as folder:
        models = []
        for n, shape in enumerate(shapes):
            console.print(f"building {shape.name}", style="dim", highlight=False)
            models.append(build(shape, Path(folder) / str(n), quick=chosen.quick))
        found = measured(models, seconds, quick=chosen.quick)
    found["machine"] = f"{cpu()}, Python {platform.python_version()}"
    found["took_s"] = round(time.perf_counter() - began)
    found["taken"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    print_all(found, console)
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    chosen.out.write_text(json.dumps(found, indent=2))
    console.print(f"written: {chosen.out}", markup=False, highlight=False)


def measured(models: list[Models], seconds: float, *, quick: bool) -> dict[str, Any]:
    shapes = [m.shape for m in models if m.streaming]
    sizes = [s.weight_bytes(p) for s in shapes for p in ("fp32", "int8")]
    with pinned():
        rates = floors.rates(sizes)
    lines = [line for m in models for line in lines_of(m, seconds)]
    if rates is not None:
        with pinned():
            rates = rates.least(floors.rates(sizes))
    held = {} if rates is None else floors_of(shapes, rates)
    with pinned():
        day = replay(models[0], DAY_ROWS // 100 if quick else DAY_ROWS, 300 if quick else 20_000)
    return {
        "lines": [asdict(line) for line in lines],
        "failed_parts": {m.shape.name: {f.part.file: f.why_not for f in m.failed} for m in models},
        "rates": None if rates is None else asdict(rates),
        "floors": held,
        "replay": day,
        "aims": [asdict(aim) for aim in aims(lines, held, day)],
    }


# ---- lines


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


# ---- floors


def floors_of(shapes: list[Shape], rates: floors.Rates) -> dict[str, dict[str, Any]]:
    """By shape and precision."""
    found = {}
    for s in shapes:
        for precision in ("fp32", "int8"):
            floor = floors.floor_of(
                rates, s.products, s.weight_bytes(precision), s.units * s.layers, precision
            )
            found[f"{s.name}, {precision}"] = {
                **asdict(floor),
                "ns": floor.ns,
                "with_gates": floor.with_gates,
            }
    return found


# ---- a day


def replay(m: Models, day_rows: int, onnx_rows: int) -> dict[str, Any]:
    """A streaming model over a day natively, in batches, and as ONNX Runtime steps it.

    The native day is really run; ONNX Runtime steps a part of it, from which its day is scaled.
    Times are the thread's own, without those in which the processor did other things.
    """
    assert m.streaming is not None
    rows = made_up_rows(m.streaming.card.scaler, CHUNK)
    found: dict[str, Any] = {"rows": day_rows, "onnx_rows_run": onnx_rows}
    for precision in ("fp32", "int8"):
        network = m.streaming.network(precision=precision)
        stream = _core.NetworkStream(network)
        began, done = time.thread_time(), 0
        while done < day_rows:
            done += len(stream.batch(rows[: day_rows - done]))
        found[f"native_{precision}_s"] = time.thread_time() - began
        part = rows[:20_000]
        batch = _core.NetworkStream(network).batch(part)
        one_by_one = _core.NetworkStream(network).steps(part)
        found[f"native_{precision}_bit_equal"] = batch.tobytes() == one_by_one.tobytes()
    _, path = m.streaming.part("onnx", form="step", precision="fp32")
    ready = np.clip(rows[:onnx_rows], -5, 5).astype(np.float32)
    found["onnx_fp32_s_scaled"] = _seconds(onnx_step(path, ready), onnx_rows) * day_rows / onnx_rows
    with Subject(m.streaming, "onnx", precision="fp32").opened() as backend:
        state, out = backend.state(), np.zeros(len(backend.outputs), np.float32)
        each = list(rows[:onnx_rows])
        took = _seconds(lambda i: backend.step(state, each[i], out), onnx_rows)
    found["onnx_backend_fp32_s_scaled"] = took * day_rows / onnx_rows
    return found


def _seconds(step: Callable[[int], object], n: int) -> float:
    for i in range(50):
        step(i)
    began = time.thread_time()
    for i in range(n):
        step(i)
    return time.thread_time() - began


# ---- aims


@dataclass(frozen=True)
class Aim:
    """A condition, with what was found."""

    what: str
    found: float
    wanted: str
    met: bool


def aims(lines: list[Line], held: dict[str, dict[str, Any]], day: dict[str, Any]) -> list[Aim]:
    """Those of the issue, as far as their lines are there."""
    warm = {(x.shape, x.who, x.form): x for x in lines if x.caches == "warm"}
    found: list[Aim] = []
    for shape in dict.fromkeys(x.shape for x in lines):
        step = warm.get((shape, "native int8", "step"))
        if step is None:
            continue
        found += _against(warm, shape, step, "litert dynamic", "step, invoke", 2.0)
        found += _against(warm, shape, step, "onnx fp32", "step, run", 15.0)
        for precision in ("fp32", "int8"):
            one = warm[shape, f"native {precision}", "step"]
            armed = warm[shape, f"native {precision}", "armed"]
            found += _floor(held, f"{shape}, {precision}", one)
            found += _at_most(
                f"{shape}, {precision}: pre-armed of the step, p50", armed.p50, one.p50, 0.7
            )
        if "128x2" in shape:
            p99 = warm[shape, "native int8", "armed"].p99 or float("nan")
            found.append(
                Aim(f"{shape}, int8: pre-armed p99 [ns]", p99, "below 2000", bool(p99 < 2000))
            )
    for precision in ("fp32", "int8"):
        ratio = day["onnx_fp32_s_scaled"] / day[f"native_{precision}_s"]
        what = f"a day of rows, {precision}: ONNX Runtime over native"
        found.append(Aim(what, ratio, "15 or more", ratio >= 15))
    equal = day["native_fp32_bit_equal"] and day["native_int8_bit_equal"]
    found.append(Aim("a day in batches bit-equal to one by one", float(equal), "1", equal))
    return found


def _against(
    warm: dict[Any, Line], shape: str, step: Line, who: str, form: str, least: float
) -> list[Aim]:
    other = warm.get((shape, who, form))
    if other is None or not other.p99 or not step.p99:
        return []
    ratio = other.p99 / step.p99
    what = f"{shape}: {who} {form} over native int8 step, p99"
    return [Aim(what, ratio, f"{least:g} or more", ratio >= least)]


def _floor(held: dict[str, dict[str, Any]], name: str, step: Line) -> list[Aim]:
    if name not in held or not step.p50:
        return []
    share = held[name]["ns"] / step.p50
    return [Aim(f"{name}: floor of the step's p50", share, "0.85 or more", share >= 0.85)]


def _at_most(what: str, a: float | None, b: float | None, most: float) -> list[Aim]:
    if not a or not b:
        return []
    return [Aim(what, a / b, f"{most:g} or less", a / b <= most)]


# ---- tables


def print_all(found: dict[str, Any], console: Console) -> None:
    console.print(f"{found['machine']}; {found['took_s']} s", highlight=False)
    for shape in dict.fromkeys(x["shape"] for x in found["lines"]):
        show(_shape_table(shape, found["lines"]), console)
    for shape, parts in found["failed_parts"].items():
        for file, why in parts.items():
            console.print(f"{shape}: {file} was not made: {why}", markup=False, highlight=False)
    if found["floors"]:
        show(_floor_table(found), console)
    show(_day_table(found["replay"]), console)
    rows = [
        [a["what"], f"{a['found']:.4g}", a["wanted"], "met" if a["met"] else "MISSED"]
        for a in found["aims"]
    ]
    show(Table("Aims", ["", "found", "wanted", ""], rows, "Steps warm, in this one run."), console)


def _shape_table(shape: str, lines: list[dict[str, Any]]) -> Table:
    cells: dict[tuple[str, str], dict[str, dict[str, Any]]] = {}
    for x in lines:
        if x["shape"] == shape:
            cells.setdefault((x["who"], x["form"]), {})[x["caches"]] = x
    rows = []
    for (who, form), by_caches in cells.items():
        row = [f"{who}, {form}"]
        for caches in ("warm", "cold"):
            one = by_caches.get(caches)
            row += [duration(one[q]) if one else "-" for q in ("p50", "p99", "p999")]
        rows.append([*row, ", ".join(f"{x['disturbed']:.0%}" for x in by_caches.values())])
    head = ["", "p50", "p99", "p99.9", "cold p50", "cold p99", "cold p99.9", "disturbed"]
    note = (
        "cold: a buffer of four times the second-level cache was walked before each. touched: "
        "armed, and weights read again after it. -: not measured, or too few calls to tell."
    )
    return Table(shape, head, rows, note)


def _floor_table(found: dict[str, Any]) -> Table:
    step = {
        f"{x['shape']}, {x['who'].split()[1]}": x
        for x in found["lines"]
        if (x["form"], x["caches"]) == ("step", "warm")
    }
    rows = [
        [
            name,
            duration(f["products"]),
            duration(f["reading"]),
            duration(f["gates"]),
            duration(step[name]["p50"]),
            f"{f['ns'] / step[name]['p50']:.0%}" if step[name]["p50"] else "-",
            f"{f['with_gates'] / step[name]['p50']:.0%}" if step[name]["p50"] else "-",
        ]
        for name, f in found["floors"].items()
    ]
    r = found["rates"]
    note = (
        f"{1 / r['fma_ns']:.0f} float and {1 / r['dot_ns']:.0f} 8-bit multiply-adds a ns. The "
        "floor is the larger of products and reading; gates come on top, by the shortest sequence "
        "of instructions known."
    )
    head = ["floors", "products", "reading", "gates", "step p50", "floor of it", "with gates"]
    return Table("What the machine allows", head, rows, note)


def _day_table(day: dict[str, Any]) -> Table:
    onnx = day["onnx_fp32_s_scaled"]
    rows = [
        [
            f"native {p}, batches",
            f"{day[f'native_{p}_s']:.2f} s",
            f"{onnx / day[f'native_{p}_s']:.1f} x",
            "bit-equal" if day[f"native_{p}_bit_equal"] else "DIFFERS",
        ]
        for p in ("fp32", "int8")
    ]
    rows.append(["ONNX Runtime fp32, its own call", f"{onnx:.1f} s", "1 x", "scaled"])
    as_backend = day["onnx_backend_fp32_s_scaled"]
    rows.append(
        [
            "ONNX Runtime fp32, Backend.step",
            f"{as_backend:.1f} s",
            f"{onnx / as_backend:.2f} x",
            "scaled",
        ]
    )
    note = (
        f"{day['rows']:,} rows as they come, which native scales too; ONNX Runtime's own call gets "
        f"them scaled. It really stepped {day['onnx_rows_run']:,}; its time is scaled to the day. "
        "Bit-equal: to one row after the other, on 20,000 rows."
    )
    return Table("A streaming 64x2 over a day", ["", "time", "faster", ""], rows, note)


if __name__ == "__main__":
    main()

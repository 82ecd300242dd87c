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
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import floors
import numpy as np
from bench_models import SHAPES, Models, Shape, build
from inference_aims import aims
from inference_lines import batches_of_windows, lines_of
from inference_tables import print_all
from library_calls import onnx_step
from rich.console import Console
from turns import cpu

from hft import _core
from hft.inference.bench.subject import Subject, made_up_rows
from hft.inference.bench.timing import pinned

ROOT = Path(__file__).parents[2]
DAY_ROWS = 10_000_000
CHUNK = 100_000


def main() -> None:
    args = argparse.ArgumentParser(description=__doc__)
    args.add_argument("--quick", action="store_true", help="seconds: one small shape, ONNX alone")
    args.add_argument("--only", default="", metavar="WORD", help="shapes with this in their name")
    args.add_argument("--seconds", type=float, default=0.3, help="of each line")
    args.add_argument("--out", type=Path, default=ROOT / "build/bench/inference.json")
    chosen = args.parse_args()
    began = time.perf_counter()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    seconds = 0.02 if chosen.quick else chosen.seconds
    shapes = (replace(SHAPES[0], units=16, window_rows=10),) if chosen.quick else SHAPES
    shapes = tuple(shape for shape in shapes if chosen.only.lower() in shape.name.lower())
    if not shapes:
        args.error(f"--only {chosen.only}: there are {', '.join(shape.name for shape in SHAPES)}")
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
    streaming = [m for m in models if m.streaming]
    shapes = [m.shape for m in streaming]
    sizes = [s.weight_bytes(p) for s in shapes for p in ("fp32", "int8")]
    with pinned():
        rates = floors.rates(sizes)
    lines = [line for m in models for line in lines_of(m, seconds)]
    curves = {
        f"{m.shape.name}, {who}": asdict(curve)
        for m in models
        for who, curve in batches_of_windows(m, seconds).items()
    }
    if rates is not None:
        with pinned():
            rates = rates.least(floors.rates(sizes))
    held = {} if rates is None else floors_of(shapes, rates)
    day = None
    if streaming:
        with pinned():
            rows, onnx_rows = (DAY_ROWS // 100, 300) if quick else (DAY_ROWS, 20_000)
            day = replay(streaming[0], rows, onnx_rows)
    return {
        "lines": [asdict(line) for line in lines],
        "batches": curves,
        "failed_parts": {m.shape.name: {f.part.file: f.why_not for f in m.failed} for m in models},
        "rates": None if rates is None else asdict(rates),
        "floors": held,
        "replay": day,
        "aims": [asdict(aim) for aim in aims(lines, held, day)],
    }


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
                "usual": floor.usual,
                "with_gates": floor.with_gates,
            }
    return found


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


if __name__ == "__main__":
    main()

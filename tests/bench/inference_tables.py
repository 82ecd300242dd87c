"""The tables of `make bench-inference`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rich.console import Console

from hft.analysis.tables import Table
from hft.analysis.units import duration
from hft.inference.bench.curve import Curve
from hft.inference.bench.view import curve_table, show


def print_all(found: dict[str, Any], console: Console) -> None:
    console.print(f"{found['machine']}; {found['took_s']} s", highlight=False)
    for shape in dict.fromkeys(x["shape"] for x in found["lines"]):
        show(_shape_table(shape, found["lines"]), console)
    for shape, parts in found["failed_parts"].items():
        for file, why in parts.items():
            console.print(f"{shape}: {file} was not made: {why}", markup=False, highlight=False)
    if found["floors"]:
        show(_floor_table(found), console)
    if found["batches"]:
        curves = {name: Curve(**curve) for name, curve in found["batches"].items()}
        show(replace(curve_table(curves), title="Batches of windows"), console)
    if found["replay"]:
        show(_day_table(found["replay"]), console)
    rows = [
        [a["what"], f"{a['found']:.4g}", a["wanted"], "met" if a["met"] else "MISSED"]
        for a in found["aims"]
    ]
    if rows:
        show(
            Table("Aims", ["", "found", "wanted", ""], rows, "Steps warm, in this one run."),
            console,
        )


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
            duration(f["usual_reading"]),
            duration(f["gates"]),
            duration(step[name]["p50"]),
            *(
                f"{f[which] / step[name]['p50']:.0%}" if step[name]["p50"] else "-"
                for which in ("ns", "usual", "with_gates")
            ),
        ]
        for name, f in found["floors"].items()
    ]
    r = found["rates"]
    note = (
        f"{1 / r['fma_ns']:.0f} float and {1 / r['dot_ns']:.0f} 8-bit multiply-adds a ns. The "
        "floor is the larger of products and reading, at best and as fast as reading is most of "
        "the time; gates come on top of the first, by the shortest sequence of instructions known."
    )
    head = ["floors", "products", "reading", "usually", "gates", "step p50"]
    head += ["floor of it", "usual floor", "with gates"]
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

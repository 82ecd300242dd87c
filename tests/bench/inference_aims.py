"""The aims that are held against the lines of `make bench-inference`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from inference_lines import Line


@dataclass(frozen=True)
class Aim:
    """A condition, with what was found."""

    what: str
    found: float
    wanted: str
    met: bool


def aims(
    lines: list[Line], held: dict[str, dict[str, Any]], day: dict[str, Any] | None
) -> list[Aim]:
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
    return found + ([] if day is None else _of_day(day))


def _of_day(day: dict[str, Any]) -> list[Aim]:
    found = []
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

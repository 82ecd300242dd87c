"""`make bench-inference` in its quick mode: what it writes is whole and follows from its lines."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    out = tmp_path_factory.mktemp("bench") / "inference.json"
    command = [sys.executable, str(BENCH / "inference.py"), "--quick", "--out", str(out)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    assert "Aims" in run.stdout
    made: dict[str, Any] = json.loads(out.read_text())
    return made


def test_every_form_is_there_warm_and_cold(found: dict[str, Any]) -> None:
    assert not any(found["failed_parts"].values())
    there = {(x["who"], x["form"], x["caches"]) for x in found["lines"]}
    for caches in ("warm", "cold"):
        for precision in ("fp32", "int8"):
            for form in ("step", "armed", "window"):
                assert (f"native {precision}", form, caches) in there
        for precision in ("fp32", "fp16", "int8"):
            assert (f"onnx {precision}", "step, run", caches) in there
            assert (f"onnx {precision}", "step, Backend.step", caches) in there
        assert ("onnx fp32", "window, run", caches) in there
    assert ("native int8", "touched", "cold") in there


def test_quantiles_ascend_and_are_of_calls(found: dict[str, Any]) -> None:
    for x in found["lines"]:
        told = [x[q] for q in ("p50", "p99", "p999") if x[q] is not None]
        assert told
        assert told == sorted(told)
        assert x["calls"] > 0
        assert 0 <= x["disturbed"] <= 1


def test_aims_follow_from_the_lines(found: dict[str, Any]) -> None:
    aims = {a["what"]: a for a in found["aims"]}
    day = found["replay"]
    ratio = day["onnx_fp32_s_scaled"] / day["native_fp32_s"]
    of_day = aims["a day of rows, fp32: ONNX Runtime over native"]
    assert of_day["found"] == pytest.approx(ratio)
    assert of_day["met"] == (ratio >= 15)
    assert aims["a day in batches bit-equal to one by one"]["met"]
    for shape in {x["shape"] for x in found["lines"] if x["who"] == "native int8"}:
        assert f"{shape}: onnx fp32 step, run over native int8 step, p99" in aims


def test_floors_are_larger_than_nothing_and_ordered(found: dict[str, Any]) -> None:
    if found["rates"] is None:
        pytest.skip("no compiler, or no x86")
    for floor in found["floors"].values():
        assert 0 < floor["ns"] <= floor["with_gates"]
        assert floor["ns"] == max(floor["products"], floor["reading"])

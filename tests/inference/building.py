"""Builds without a command line."""

from dataclasses import replace
from pathlib import Path

import pytest

from hft.inference.build.building import Options
from hft.inference.build.command import Wanted, run_build
from hft.inference.build.evidence import Asked
from hft.inference.build.smaller import Cuts
from hft.inference.bundle import load_bundle

LIBRARIES = ("tensorflow", "keras", "ai_edge_litert", "onnx", "onnxruntime")


def quiet(line):
    pass


def built(model, out, formats=(), report=quiet, **changes):
    options = Options(formats=formats, limit_s=120.0, cuts=changes.pop("cuts", Cuts()))
    options = replace(options, budget_ns=changes.pop("budget_ns", 0))
    wanted = Wanted(Path(model), Path(out), Asked(), options, **changes)
    rows = run_build(wanted, report)
    return rows, load_bundle(out)


def require(*names):
    for name in names:
        pytest.importorskip(name, reason="needs the extra [inference]")

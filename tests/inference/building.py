"""Builds without a command line."""

from dataclasses import replace
from pathlib import Path

import pytest

from hft.inference.build.building import Options
from hft.inference.build.command import Wanted, run_build
from hft.inference.build.evidence import Asked
from hft.inference.build.smaller import Cuts
from hft.inference.bundle import load_bundle

STRATEGY = Path(__file__).parents[2] / "strategies" / "lstm_mm.py"
MARKET = {
    "data.synth.messages_per_s": 2000,
    "data.synth.calm_s": 20,
    "data.synth.storm_s": 6,
    "data.synth.symbols": ("BTCUSDT",),
}
"""Of which four minutes have every weather."""
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


def synthetic_dataset(folder, duration_s=240):
    """Rows of lstm_mm's features, labelled 500 ms after 1 ms."""
    from hft.inference.dataset.command import make_datasets
    from hft.plan import prepare

    settings = MARKET | {"data.synth.duration_s": duration_s}
    plan = prepare(STRATEGY, "synth", settings=settings)
    make_datasets(plan, folder, labels="500ms", latency="1ms")
    return folder

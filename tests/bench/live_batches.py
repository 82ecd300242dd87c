"""Instruments that move together, live: their rows one by one, and in batches.

    python tests/bench/live_batches.py [--seconds 5] [--instruments 16] [--hold 20us]

The simulated venue, and a model (LSTM 64x2 on 40 features) whose rows are made by a clock, so that
each instrument has one at the same instants. *wait*: from a row's making to the beginning of its
service. *service*: of a row, or of a batch. *all answered*: from the first row of an instant to the
last answer, all that the thread does between them included; *rows/s* are an instant's rows in that
time. On a busy machine look at p50 alone. Ways take turns, twice.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "pipe"))

import msgspec
import numpy as np
from made_models import add_step_part, make_bundle

from hft import features as f
from hft import run_folder
from hft.durations import parse_ns
from hft.inference.bundle import save_bundle
from hft.inference.card import LayerEntry
from hft.journal import RecordKind
from hft.live import session
from hft.plan import prepare

STRATEGY = """
from hft import Model, Strategy


class Listening(Strategy):
    model = Model("lstm")
"""
UNITS = 64


def columns(every: str) -> f.Features:
    """40 of them, by a clock."""
    depths = [f.imbalance(n) for n in range(1, 11)]
    flows = [f.ofi(n, f"{window}ms") for n in range(1, 6) for window in (5, 10, 20, 50, 100)]
    rest = [f.spread(), f.micro_price_minus_mid()]
    rest += [f.trade_flow(f"{window}ms") for window in (20, 50, 100)]
    return f.Features(*rest, *depths, *flows, trigger=f.Every(every))


def made(folder: Path, every: str) -> Path:
    """A strategy, and beside it an LSTM 64x2 of random weights."""
    seen = columns(every)
    rng = np.random.default_rng(1)
    shapes = [(len(seen), 4 * UNITS), (UNITS, 4 * UNITS), (UNITS, 4 * UNITS), (UNITS, 4 * UNITS)]
    k1, r1, k2, r2 = (rng.normal(0, 0.1, s).astype(np.float32) for s in shapes)
    head = rng.normal(0, 0.3, (UNITS, 2)).astype(np.float32)
    bias = np.zeros(4 * UNITS, np.float32)
    weights = [
        {"kernel": k1, "recurrent": r1, "bias": bias},
        {"kernel": k2, "recurrent": r2, "bias": bias},
        {"kernel": head, "bias": np.zeros(2, np.float32)},
    ]
    lstm = LayerEntry(kind="lstm", units=UNITS)
    softmax = LayerEntry(kind="dense", units=2, activation="softmax")
    small = make_bundle(folder / "small.bundle", features=seen)
    card = msgspec.structs.replace(
        small.card, name="lstm", layers=(lstm, lstm, softmax), tiers={}, weights_sha256=""
    )
    add_step_part(save_bundle(folder / "lstm.bundle", card, weights))
    file = folder / "listening.py"
    file.write_text(STRATEGY)
    return file


def run(file: Path, way: dict[str, Any], args: argparse.Namespace) -> list[str]:
    """One session's line."""
    settings = {
        "data.synth.symbols": [f"S{i}" for i in range(args.instruments)],
        "data.synth.messages_per_s": 50.0,
        "models.model.backend": args.backend,
        **{f"latency.server.{key}": value for key, value in way.items()},
    }
    plan = prepare(file, "synth", recipe={}, settings=settings)
    folder = run_folder.new_folder("live", "batches", file.parent)
    outcome = session.run_sim(plan, folder, round(args.seconds * 1e9), nap_ns=50_000)
    if outcome.run.status != "complete":
        raise SystemExit(outcome.run.error)
    journal = run_folder.read_journal(folder)
    spans, rows = instants(journal[journal["kind"] == RecordKind.SIGNAL], parse_ns(args.every))
    of = outcome.run
    inferences = of.counters["inferences"]
    return [
        f"{inferences:,}",
        f"{inferences / of.counters.get('services', inferences):.1f}",
        *(f"{ns / 1e3:.1f}" for ns in np.quantile(of.model_wait_ns, [0.5, 0.99])),
        *(f"{ns / 1e3:.1f}" for ns in np.quantile(of.model_service_ns, [0.5, 0.99])),
        *(f"{ns / 1e3:.1f}" for ns in np.quantile(spans, [0.5, 0.99])),
        f"{1e9 * np.median(rows / spans):,.0f}",
    ]


def instants(signals: Any, every_ns: int) -> tuple[Any, Any]:
    """Of each instant: from its first row to its last answer [ns], and its rows."""
    at, which = np.unique(signals["b"] // every_ns, return_inverse=True)
    first, last = np.full(at.size, 1 << 62), np.zeros(at.size, np.int64)
    np.minimum.at(first, which, signals["b"])
    np.maximum.at(last, which, signals["ts"])
    return last - first, np.bincount(which)


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--instruments", type=int, default=16)
    parser.add_argument("--every", default="1ms")
    parser.add_argument("--hold", default="20us")
    parser.add_argument("--backend", default="native")
    args = parser.parse_args()
    most = args.instruments
    ways = {
        "one by one": {},
        "at once": {"max_batch": most},
        f"hold {args.hold}": {"max_batch": most, "hold": args.hold},
    }
    head = ["", "rows", "a service", "wait p50", "p99", "service p50", "p99"]
    print("| " + " | ".join([*head, "all answered p50", "p99", "rows/s"]) + " |  [us]")
    with tempfile.TemporaryDirectory() as folder:
        file = made(Path(folder), args.every)
        for _ in range(2):
            for name, way in ways.items():
                print("| " + " | ".join([name, *run(file, way, args)]) + " |", flush=True)


if __name__ == "__main__":
    main()

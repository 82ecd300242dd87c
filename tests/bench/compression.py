"""What each way of making lstm_mm smaller gains and costs.

    python tests/bench/compression.py             # two minutes; pin it: taskset -c 1
    python tests/bench/compression.py --minutes 3

Rows are those of a synthetic market that the model was not trained on. Agreement is with the model
as it is shipped, on the last quarter; steps are of the native network.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from functools import partial
from pathlib import Path

import numpy as np
from turns import cpu

from hft.data.synth import SynthConfig, synthesize_chunks
from hft.inference.bench.native import time_native
from hft.inference.bundle import Bundle, load_bundle
from hft.inference.card import LesserTier, Readout
from hft.inference.compress.calibration import calibration
from hft.inference.compress.distil import DistilConfig, compare, distil, refit_head
from hft.inference.compress.prune_units import prune_units
from hft.inference.compress.prune_weights import NO_LATENCY, prune_weights
from hft.inference.compress.quantise import dynamic, quantise
from hft.inference.compress.sensitivity import sensitivity_of
from hft.inference.compress.stack import Stack, stack_of
from hft.inference.compress.train_on import train_on
from hft.inference.dataset.in_memory import collect
from hft.inference.training.task import Task, TrainConfig, prepare

ROOT = Path(__file__).resolve().parents[2]
KERAS = importlib.util.find_spec("keras") is not None
Variants = dict[str, tuple[Stack, Readout]]


def task_of(bundle: Bundle, minutes: float) -> Task:
    """Calm and storm, as they come."""
    config = TrainConfig(horizons_ns=(bundle.card.horizon_ns,))
    synth = SynthConfig(seed=79, duration_s=minutes * 60, calm_s=30.0, storm_s=6.0)
    rows = collect(
        [(chunk for _, chunk in synthesize_chunks(synth))],
        bundle.features,
        latency_ns=bundle.card.latency_ns,
        horizons_ns=config.horizons_ns,
    )
    return prepare(rows, config, lambda line: None)


def variants(bundle: Bundle, task: Task) -> Variants:
    """Everything that is compared, as shipped first."""
    full, readout = stack_of(bundle), bundle.readout()
    assert readout is not None
    cut = task.parts.calibrate
    teacher = partial(full.outputs, task.rows)
    measured = quantise(full, task, calibration(task))
    print("\n".join([str(measured.rows), *measured.table()]))
    made = {"as shipped": full, "8 bits where they fit": measured.stack}
    for share in (0.25, 0.5):
        name = f"{share:.0%} of units out"
        pruned = prune_units(full, share, rows=task.rows, cut=cut)
        print("\n".join(map(str, pruned.table)))
        made[name] = pruned.stack
        made[f"{name}, new head"] = refit_head(pruned.stack, task, teacher, DistilConfig())
        if KERAS:
            made[f"{name}, trained on"] = train_on(pruned.stack, task, teacher=teacher)
    last = list(made)[-1]
    made[f"{last}, 8 bits"] = dynamic(made[last])
    made["25% of units out, by norms"] = prune_units(full, 0.25).stack
    made["75% of weights zero"] = prune_weights(full, 0.75)
    if KERAS:
        made["75% zero, trained on"] = train_on(full, task, 0.75, teacher)
    print(NO_LATENCY)
    return {name: (stack, readout) for name, stack in made.items()} | tiers(full, readout, task)


def tiers(full: Stack, readout: Readout, task: Task) -> Variants:
    """LIGHT, where there is Keras, and MICRO."""
    found: Variants = {}
    teacher = partial(full.outputs, task.rows)
    names: tuple[LesserTier, ...] = ("LIGHT", "MICRO") if KERAS else ("MICRO",)
    for tier in names:
        began = time.perf_counter()
        made = distil(tier, task, full.scaler, readout, teacher)
        print(
            f"{tier} took {time.perf_counter() - began:.1f} s; {sensitivity_of(made.stack, task)}"
        )
        assert made.entry.readout is not None
        found[tier] = (made.stack, made.entry.readout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=12.0, help="of the market")
    parser.add_argument("--seconds", type=float, default=0.5, help="of steps a variant")
    arguments = parser.parse_args()
    bundle = load_bundle(ROOT / "strategies" / "lstm_mm.bundle")
    task = task_of(bundle, arguments.minutes)
    print(f"{len(task.rows):,} rows, {task.rows.storm.mean():.0%} stormy; {cpu()}")
    found = variants(bundle, task)
    full, readout = found["as shipped"]
    p = full.outputs(task.rows, task.parts.test)
    x = np.ascontiguousarray(task.rows.x[task.parts.test][:4_000])
    print(
        f"\n{'':36}   p50    p99  ns  weights bytes    KL     argmax  alpha   calm  storm   moves"
    )
    for name, (stack, own) in found.items():
        network = stack.network()
        ns = time_native(network, x, "step", seconds=arguments.seconds).quantiles()
        c = compare(stack, own, task, p, readout)
        print(
            f"{name:36} {ns['p50']:5.0f}  {ns['p99']:5.0f}      {stack.parameters:7,} "
            f"{network.weight_bytes:6,} {c['kl']:9.1e} {c['argmax']:7.1%} {c['alpha']:6.3f} "
            f"{c.get('calm_alpha', float('nan')):6.3f} {c.get('storm_alpha', float('nan')):6.3f} "
            f"{c['moves']:7.3f}"
        )


if __name__ == "__main__":
    main()

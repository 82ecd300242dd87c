"""Reuse of answers by models of real data: how often, how far off, and what it does to money.

    python backtests/reuse_real.py [--data FOLDER] [MARKET ...]

Markets, data sets and slices are those of real_model.py. A dense model of the newest row and LSTMs
over windows are trained, their sensitivity measured on the calibration slice as `hft build` does,
and the last quarter is replayed with `[models.model.reuse]` and without: hits by calm and storm,
shadows, rows to compute, and the profit of strategies/lstm_mm.py. How far a reused answer is off is
told from a replay that computes every row. Tables: docs/reuse.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from real_model import STRATEGY, Columns, Market, each_market, imported, trained

from hft import Model
from hft.analysis.figures import headline_of
from hft.analysis.reuse import reuse
from hft.analysis.run_data import RunData
from hft.engine import Outcome, run_once
from hft.features import Features, OnPacket, imbalance, micro_price_minus_mid, spread
from hft.inference.bundle import Bundle, load_bundle, save_bundle
from hft.inference.compress.sensitivity import sensitivity_of
from hft.inference.compress.stack import stack_of
from hft.inference.training.data import Material
from hft.inference.training.sweep import after_training
from hft.inference.training.task import TrainConfig, prepare, scaled
from hft.inference.training.train import INPUTS
from hft.plan import prepare as plan_of
from hft.strategy import Strategy

MODELS = (("dense:32", 0), ("lstm:16", 5), ("lstm:16", 20))
"""And the rows of its window."""
CASES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("50us", {"epsilon": 0.05}),
    ("50us", {"epsilon": 0.3}),
    ("50us", {"epsilon": 0.3, "max_age": "10s"}),
    ("1ms", {"epsilon": 0.3}),
)
"""What a row takes, and the rule."""


@dataclass(frozen=True)
class Subject:
    """A market's last quarter and a model of it."""

    market: Market
    store: Path
    latency: dict[str, Any]
    material: Material
    bundle: Bundle

    def run(self, strategy: Any, service: str, rule: dict[str, Any]) -> Outcome:
        """Of the rows after training."""
        recipe = {
            "latency": self.latency | {"inference": service},
            "models": {"model": {"bundle": str(self.bundle.path), "reuse": rule}},
        }
        if strategy is STRATEGY:
            recipe |= {"params": self.market.params, "venue": {"maker_fee": 0.0}}
        plan = after_training(plan_of(strategy, self.store, recipe=recipe), self.material)
        outcome = run_once(plan)
        if outcome.run.status != "complete":
            raise SystemExit(f"the run {outcome.run.status}: {outcome.run.error}")
        return outcome


class Listens(Strategy):
    """Keeps what it is told."""

    model = Model("model")

    def on_start(self) -> None:
        self.heard: list[tuple[int, bool, list[float]]] = []

    def on_signal(self, s: Any) -> None:
        self.heard.append((s.ts, s.reused, [s[name] for name in ("down", "flat", "up")]))


class EveryPacket(Strategy):
    """The columns of lstm_mm at every packet: rows also when nothing has changed at the touch."""

    features = Features(*INPUTS, trigger=OnPacket())


class BookAlone(Strategy):
    """What the best levels are, without flows or time: the rows most often alike."""

    features = Features(
        spread(), imbalance(1), imbalance(5), micro_price_minus_mid(), trigger=OnPacket()
    )


COLUMNS: dict[str, type[Strategy]] = {
    "columns of lstm_mm, rows when the touch changes": Columns,
    "columns of lstm_mm, rows at every packet": EveryPacket,
    "columns of the book alone, rows at every packet": BookAlone,
}


def judge(market: Market, data: Path, home: Path) -> None:
    for n, title in enumerate(COLUMNS):
        (home / str(n)).mkdir()
        of_columns(market, data, home / str(n), title)


def of_columns(market: Market, data: Path, home: Path, title: str) -> None:
    store, latency, material = imported(market, data, home, COLUMNS[title])
    rows = len(material.rows) - material.parts.test.start
    print(f"\n**{market.title}**, {title}: {rows:,} to test on\n")
    print(
        "| model | service | epsilon | max_age | hits, calm | hits, storm | to compute a second, "
        "calm: p50 / p99 / max | storm | most misses | shadows apart | error: p50 / max | bound | "
        "another class | net | net without |"
    )
    print("| " + " | ".join(["---"] * 15) + " |")
    told = []
    for n, (model, window_rows) in enumerate(MODELS):
        bundle = with_sensitivity(material, model, window_rows, home / f"{n}.bundle")
        subject = Subject(market, store, latency, material, bundle)
        name = f"{model}, window {window_rows}" if window_rows else model
        told.append(f"{name}: {moved(bundle, material)}")
        answers = answers_of(subject.run(Listens, "0ns", {}))
        for service, rule in CASES:
            ours, without = (subject.run(STRATEGY, service, each).run for each in (rule, {}))
            cells = (name, service, f"{rule['epsilon']:g}", rule.get("max_age", "100ms"))
            more = (line(ours), errors(subject, service, rule, answers), net(ours), net(without))
            print(f"| {' | '.join((*cells, *more))} |", flush=True)
    print("\n" + "\n".join(told))


def with_sensitivity(material: Material, model: str, window_rows: int, out: Path) -> Bundle:
    config = TrainConfig(
        model=model, window_rows=window_rows, lanes=8, epochs=8, learning_rate=3e-3
    )
    bundle = trained(material, config, out)
    task = prepare(
        material.rows, material.config(config), lambda line: None, material.parts, material.classes
    )
    found = sensitivity_of(stack_of(bundle), task)
    card = msgspec.structs.replace(bundle.card, sensitivity=found.value)
    save_bundle(out, card, bundle.weights)
    return load_bundle(out)


def moved(bundle: Bundle, material: Material) -> str:
    """How far the farthest input of the newest row is from that of the row before."""
    x = scaled(material.rows.x[material.parts.test], bundle.card.scaler)
    low, mid = np.quantile(np.abs(np.diff(x, axis=0)).max(axis=1), [0.1, 0.5])
    return f"the farthest input moves by {low:.2g} (p10), {mid:.2g} (p50) from row to row"


def net(run: RunData) -> str:
    return f"{headline_of(run)['net'] or 0.0:,.1f}"


def line(run: RunData) -> str:
    """Hits and rows to compute, by weather; why rows were computed; what shadows showed."""
    (figures,) = reuse(run)
    hits, loads = [], []
    for weather in ("calm", "storm"):
        rate, load = figures[weather]["hit_rate"], figures[weather]["to_compute_a_second"]
        hits.append("-" if rate is None else f"{100 * rate:.1f} %")
        loads.append(" / ".join("-" if n is None else f"{n:,}" for n in load.values()))
    reason, count = max(figures["reasons"].items(), key=lambda item: item[1])
    share = count / max(1, figures["all"]["misses"])
    shadows = f"{figures['all']['disagreed']} of {figures['all']['compared']}"
    return " | ".join([*hits, *loads, f"{reason} {100 * share:.0f} %", shadows])


def answers_of(outcome: Outcome) -> dict[int, np.ndarray]:
    """Classes by time of the row; rows of one instant are left out."""
    found: dict[int, np.ndarray] = {}
    twice = set()
    for ts, _, values in outcome.strategy.heard:
        if ts in found:
            twice.add(ts)
        found[ts] = np.array(values)
    return {ts: values for ts, values in found.items() if ts not in twice}


def errors(
    subject: Subject, service: str, rule: dict[str, Any], answers: dict[int, np.ndarray]
) -> str:
    """Of reused answers against computed ones; the bound; how many named another class."""
    heard = subject.run(Listens, service, rule).strategy.heard
    pairs = [(np.array(v), answers[ts]) for ts, reused, v in heard if reused and ts in answers]
    bound = subject.bundle.card.sensitivity * rule["epsilon"]
    if not pairs:
        return f"- | {bound:.3f} | -"
    off = np.array([np.abs(ours - theirs).max() for ours, theirs in pairs])
    other = sum(int(ours.argmax() != theirs.argmax()) for ours, theirs in pairs)
    return f"{np.median(off):.4f} / {off.max():.4f} | {bound:.3f} | {other} of {len(pairs):,}"


if __name__ == "__main__":
    each_market(__doc__, judge)

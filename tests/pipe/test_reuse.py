"""Answers given again: against a twin of the rule, and what must never happen whatever the rule."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from core_replay import market
from naive_reuse import Twin, linear_softmax, probabilities, recipe_of, scaled, twin_of

from hft import Model, Strategy
from hft.config import ReuseConfig
from hft.engine import Outcome, run_once
from hft.errors import ConfigError
from hft.inference.bundle import Bundle, part_sha256, save_bundle
from hft.inference.card import LayerEntry, PartEntry
from hft.journal import JOURNAL, RecordKind
from hft.plan import prepare
from hft.types import Flag

COUNTED = (
    "rows", "reused", "shadows", "compared", "disagreed", "trips", "off", "under_way", "no_answer",
    "too_often", "too_old", "side", "far", "unsure",
)  # fmt: skip
MS = 1_000_000

RULES: dict[str, dict[str, Any]] = {
    "narrow": dict(epsilon=0.02),
    "wide": dict(epsilon=0.5, shadow=0.2),
    "seldom": dict(epsilon=0.3, max_reuse=3),
    "fresh": dict(epsilon=0.3, max_age="4ms"),
    "once": dict(epsilon=0.3, max_reuse=1, shadow=0.5),
    "never": dict(epsilon=0.3, max_reuse=0),
    "all shadows": dict(epsilon=0.3, shadow=1.0),
    "distrusted": dict(epsilon=1.5, shadow=0.3, budget=0.01, pause="500ms"),
}


def rule_of(name: str) -> ReuseConfig:
    return ReuseConfig(**RULES[name])


def told_apart(*names: str, seconds: float = 15.0) -> tuple[dict[str, np.ndarray], Any]:
    """A market whose packets all come at times of their own, so that a time names a row."""
    data, specs = market(*(names or ("A.SIM",)), messages_per_s=1500.0, duration_s=seconds)
    for rows in data.values():
        rows["ts_recv"][1:] += np.cumsum((rows["flags"][:-1] & Flag.LAST) != 0)
    return data, specs


def run(
    bundle: Bundle,
    config: ReuseConfig,
    *names: str,
    inference: str = "30us",
    mode: str = "conflate",
) -> Outcome:
    data, specs = told_apart(*names)
    recipe = recipe_of(config)
    recipe["latency"] = {"inference": inference, "compute": 0, "server": {"mode": mode}}
    strategy = twin_of(bundle, config, skips=mode == "skip")
    outcome = run_once(prepare(strategy, data, specs=specs, recipe=recipe))
    assert outcome.run.status == "complete", outcome.run.error
    return outcome


def counts_of(outcome: Outcome, instrument: int) -> dict[str, int]:
    rows = outcome.run.reuse[outcome.run.reuse["instrument"] == instrument]
    return {name: int(rows[name].sum()) for name in COUNTED}


def check_twin(outcome: Outcome, instrument: int = 0) -> None:
    """Every count, and which rows."""
    twin: Twin = outcome.strategy
    naive = twin.naive[instrument]
    assert counts_of(outcome, instrument) == {name: naive.counts[name] for name in COUNTED}
    told = [ts for ts, _, reused, _ in twin.heard[instrument] if reused]
    assert told == [ts for ts, verdict in twin.verdicts[instrument] if verdict == "reused"]


@pytest.fixture(scope="module")
def linear(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return linear_softmax(tmp_path_factory.mktemp("linear") / "linear.bundle")


@pytest.fixture(scope="module")
def boastful(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """Says that its answers move 50 times less than they do."""
    return linear_softmax(tmp_path_factory.mktemp("x") / "linear.bundle", understated=50.0)


@pytest.mark.parametrize("name", RULES)
def test_the_rule_equals_its_twin(name: str, linear: Bundle, boastful: Bundle) -> None:
    outcome = run(boastful if name == "distrusted" else linear, rule_of(name))
    check_twin(outcome)
    counts = counts_of(outcome, 0)
    if name == "distrusted":
        assert counts["trips"] >= 2
        assert counts["disagreed"] >= 2
    if name == "never":
        assert counts["reused"] == counts["shadows"] == 0
    if name == "wide":
        assert counts["reused"] > 1000
        assert counts["shadows"] > 100


@pytest.mark.parametrize("mode", ["conflate", "queue", "skip"])
@pytest.mark.parametrize("inference", ["0ns", "2ms", "20ms"])
def test_answers_under_way_and_lost_ones(mode: str, inference: str, linear: Bundle) -> None:
    outcome = run(linear, rule_of("wide"), inference=inference, mode=mode)
    check_twin(outcome)
    if inference == "20ms":
        assert counts_of(outcome, 0)["under_way"] > 1000
        assert outcome.run.counters["signals_conflated"] > 0 or mode != "conflate"


def test_streams_do_not_know_each_other(linear: Bundle) -> None:
    outcome = run(linear, rule_of("wide"), "A.SIM", "B.SIM", inference="3ms")
    check_twin(outcome, 0)
    check_twin(outcome, 1)


@pytest.mark.parametrize("name", ["wide", "seldom", "fresh"])
def test_what_never_happens(name: str, linear: Bundle) -> None:
    """Told from rows and signals alone, without the rule."""
    config = rule_of(name)
    twin: Twin = run(linear, config, inference="1ms").strategy
    base, in_a_row, reused_rows, worst = None, 0, 0, 0.0
    longest = {"fresh": 4 * MS}.get(name, 100 * MS)
    for ts, _, reused, outputs in twin.heard[0]:
        row, side = twin.rows[0][ts]
        truth = probabilities(linear, row)
        if not reused:
            base, in_a_row = (ts, row, side, outputs), 0
            np.testing.assert_allclose(outputs[:3], truth, atol=1e-6)
            continue
        assert base is not None
        in_a_row, reused_rows = in_a_row + 1, reused_rows + 1
        ts_base, row_base, side_base, said = base
        assert outputs == said
        assert side == side_base
        assert in_a_row <= config.max_reuse
        assert 0 <= ts - ts_base <= longest
        distance = np.abs(np.subtract(scaled(row), scaled(row_base))).max()
        assert distance <= config.epsilon
        error = np.abs(truth - said[:3]).max()
        assert error <= linear.card.sensitivity * distance + 1e-6
        assert truth.argmax() == np.argmax(said[:3])
        worst = max(worst, error)
    assert reused_rows > 500
    assert worst > 0.01  # the bound was put to work


def test_a_true_sensitivity_never_changes_a_class(linear: Bundle) -> None:
    counts = counts_of(run(linear, ReuseConfig(epsilon=1.0, shadow=0.5, budget=1.0)), 0)
    assert counts["compared"] > 500


def test_an_answer_given_again_waits_for_nothing(linear: Bundle) -> None:
    outcome = run(linear, rule_of("wide"), inference="5ms")
    twin: Twin = outcome.strategy
    delays = {True: [], False: []}
    for ts, now, reused, _ in twin.heard[0]:
        delays[reused].append(now - ts)
    assert set(delays[True]) == {0}
    assert min(delays[False]) >= 5 * MS
    assert outcome.run.counters["services"] == len(delays[False])
    assert len(outcome.run.model_service_ns) == len(delays[False])
    inferences = outcome.run.counters["inferences"]
    assert inferences == counts_of(outcome, 0)["rows"] - len(delays[True])


def test_the_journal_tells_which(linear: Bundle) -> None:
    outcome = run(linear, rule_of("wide"))
    journal = outcome.journal.view(JOURNAL)
    signals = journal[journal["kind"] == RecordKind.SIGNAL]
    assert signals["price"].tolist() == [int(r) for _, _, r, _ in outcome.strategy.heard[0]]


def test_without_epsilon_nothing_changes(linear: Bundle) -> None:
    data, specs = told_apart()
    journals = []
    for models in ({}, {"model": {"reuse": {"epsilon": 0.0, "shadow": 1.0, "max_reuse": 9}}}):
        recipe = {**recipe_of(ReuseConfig()), "models": models}
        strategy = twin_of(linear, ReuseConfig())
        outcome = run_once(prepare(strategy, data, specs=specs, recipe=recipe))
        assert outcome.run.reuse.size == 0
        journals.append(outcome.journal.tobytes())
    assert journals[0] == journals[1]


def test_the_placebo_keeps_the_hits(linear: Bundle) -> None:
    data, specs = told_apart()
    counts = []
    for placebo in (False, True):
        recipe = recipe_of(rule_of("wide"), placebo=placebo)
        recipe["engine"]["shortfall"] = False
        strategy = type("Quiet", (twin_of(linear, rule_of("wide")),), {"on_signal": _hear_nothing})
        counts.append(counts_of(run_once(prepare(strategy, data, specs=specs, recipe=recipe)), 0))
    assert counts[0] == counts[1]


def test_of_a_window_every_row_is_compared(tmp_path: Path) -> None:
    config = ReuseConfig(epsilon=0.8, shadow=0.2, budget=1.0)
    outcome = run(windowed(tmp_path, "native", window_rows=4), config)
    check_twin(outcome)
    counts = counts_of(outcome, 0)
    assert counts["reused"] > 100
    alone = counts_of(run(remade(tmp_path, "lstm", window_rows=1, sensitivity=0.05), config), 0)
    assert counts["reused"] < alone["reused"]


@pytest.mark.parametrize("backend", ["native", "onnx"])
def test_a_row_that_is_not_computed_stays_in_its_window(backend: str, tmp_path: Path) -> None:
    """What is computed is what would have been without reuse."""
    bundle = windowed(tmp_path, backend, window_rows=4)
    answers = {}
    for epsilon in (0.0, 0.8):
        config = ReuseConfig(epsilon=epsilon)
        recipe = recipe_of(config)
        recipe["models"]["model"]["backend"] = backend
        data, specs = told_apart(seconds=4.0)
        strategy = type("Keeps", (Keeps,), {"model": Model(str(bundle.path))})
        outcome = run_once(prepare(strategy, data, specs=specs, recipe=recipe))
        assert outcome.run.status == "complete", outcome.run.error
        answers[epsilon] = outcome.strategy.heard
    computed = {ts: up for ts, reused, up in answers[0.8] if not reused}
    alone = {ts: up for ts, _, up in answers[0.0]}
    assert len(answers[0.8]) > len(computed) + 100
    both = computed.keys() & alone.keys()
    assert len(both) > 300
    assert all(computed[ts] == alone[ts] for ts in both)


class Keeps(Strategy):
    def on_start(self) -> None:
        self.heard: list[tuple[int, bool, float]] = []

    def on_signal(self, signal: Any) -> None:
        self.heard.append((signal.ts, signal.reused, signal["up"]))


def windowed(folder: Path, backend: str, window_rows: int) -> Bundle:
    """An LSTM over its last rows."""
    bundle = remade(folder, "lstm", window_rows=window_rows, sensitivity=0.05)
    if backend == "onnx":
        pytest.importorskip("onnxruntime")
        pytest.importorskip("onnx")
        return with_window_part(bundle)
    return bundle


def with_window_part(bundle: Bundle) -> Bundle:
    from hft.inference.build.onnx_builder import window_model
    from hft.inference.build.onnx_graph import write_onnx

    model = window_model(bundle.card.layers, bundle.weights, bundle.card.window_rows)
    write_onnx(model, bundle.path / "window.onnx")
    sha256 = part_sha256(bundle.path / "window.onnx")
    part = PartEntry(file="window.onnx", backend="onnx", form="window", sha256=sha256)
    card = msgspec.structs.replace(bundle.card, parts=(part,))
    return save_bundle(bundle.path, card, bundle.weights)


def test_a_storm_costs_the_hits(linear: Bundle) -> None:
    """When most is to be computed least is alike: a server sized by the mean is too small."""
    from hft.analysis.reuse import reuse

    recipe = recipe_of(ReuseConfig(epsilon=0.05))
    recipe["latency"] = {"inference": "1ms"}
    synth = dict(seed=2, duration_s=120.0, calm_s=30.0, storm_s=8.0, messages_per_s=400.0)
    recipe["data"] = {"synth": synth}
    strategy = type("Quiet", (Listens,), {"model": Model(str(linear.path))})
    (figures,) = reuse(run_once(prepare(strategy, "synth", recipe=recipe)).run)
    calm, storm = figures["calm"], figures["storm"]
    assert storm["seconds"] > 3
    assert calm["hit_rate"] > 0.3
    assert storm["hit_rate"] < calm["hit_rate"] / 2
    assert storm["to_compute_a_second"]["p50"] > 3 * calm["to_compute_a_second"]["p50"]


class Listens(Strategy):
    def on_signal(self, signal: Any) -> None:
        pass


def _hear_nothing(self: Any, signal: Any) -> None:
    pass


def test_a_bundle_that_takes_over_brings_its_own_rule(linear: Bundle, tmp_path: Path) -> None:
    other = linear_softmax(tmp_path / "second.bundle", seed=2)
    unmeasured = remade(tmp_path, "unmeasured")
    shares = []
    for bundle in (other, unmeasured):
        data, specs = told_apart(seconds=8.0)
        recipe = recipe_of(rule_of("wide"))
        half = int(data["A.SIM"]["ts_recv"][0]) + 4_000_000_000
        recipe["swaps"] = [{"at": half, "bundle": str(bundle.path)}]
        strategy = type("Keeps", (Keeps,), {"model": Model(str(linear.path))})
        outcome = run_once(prepare(strategy, data, specs=specs, recipe=recipe))
        assert outcome.run.status == "complete", outcome.run.error
        after = half + 500_000_000
        later = [(ts, reused, up) for ts, reused, up in outcome.strategy.heard if ts > after]
        shares.append(np.mean([reused for _, reused, _ in later]))
        fresh = {up for _, reused, up in outcome.strategy.heard if not reused}
        assert {up for _, reused, up in later if reused} <= fresh
    assert shares[0] > 0.2
    assert shares[1] == 0  # it cannot be told how far its answers move: all are computed
    assert outcome.run.reuse["off"].sum() > 1000


class TestRefused:
    def plan(self, bundle: Bundle, **reuse: Any) -> None:
        data, specs = market("A.SIM")
        config = ReuseConfig(**{"epsilon": 0.1, **reuse})
        prepare(twin_of(bundle, config), data, specs=specs, recipe=recipe_of(config))

    def test_a_model_with_memory(self, tmp_path: Path) -> None:
        bundle = remade(tmp_path, "lstm")
        why = r"models\.model\.reuse\.epsilon is 0\.1: .* a state from row to row \(lstm\)"
        with pytest.raises(ConfigError, match=why):
            self.plan(bundle)
        self.plan(bundle, epsilon=0.0)

    def test_a_sensitivity_that_nobody_measured(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="sensitivity 0, which is not measured; `hft build`"):
            self.plan(remade(tmp_path, "unmeasured"))


def remade(folder: Path, how: str, **card: Any) -> Bundle:
    """The linear model with one thing against it."""
    linear = linear_softmax(folder / "linear.bundle")
    if how == "unmeasured":
        changed = msgspec.structs.replace(linear.card, sensitivity=0.0)
        return save_bundle(folder / "other.bundle", changed, linear.weights)
    layers = (LayerEntry(kind="lstm", units=4), *linear.card.layers)
    rng = np.random.default_rng(0)
    shapes = {"kernel": (len(linear.card.features), 16), "recurrent": (4, 16)}
    lstm = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    zeros = {n: np.zeros(n, np.float32) for n in (3, 16)}
    dense = {"kernel": rng.normal(size=(4, 3)).astype(np.float32), "bias": zeros[3]}
    changed = msgspec.structs.replace(linear.card, layers=layers, **card)
    return save_bundle(folder / "other.bundle", changed, [{**lstm, "bias": zeros[16]}, dense])

"""What a recipe's [models.NAME] changes: bundle, tier, precision; windows; foreign models."""

from __future__ import annotations

import numpy as np
import pytest
from made_models import SECONDS, Listener, listening, make_bundle

from hft import _core, engine
from hft.errors import ConfigError, ModelError
from hft.plan import prepare


@pytest.fixture
def bundle(tmp_path):
    return make_bundle(tmp_path / "first.bundle")


def run(bundle, **settings):
    plan = prepare(listening(bundle.path), "synth", settings={**SECONDS, **settings})
    outcome = engine.run_once(plan)
    assert outcome.run.status == "complete", outcome.run.error
    return outcome


def rows_of(bundle, **settings):
    """Every features row of the run, (n, 2), and when it was made."""
    plan = prepare(listening(bundle.path), "synth", settings={**SECONDS, **settings})
    keys, values = [], []
    engine.replay_rows(plan, kept=lambda k, v: (keys.append(k), values.append(v)))
    return np.concatenate(keys)[:, 0], np.concatenate(values).reshape(-1, 2)


def said(outcome):
    """By time of the features row, what was published."""
    return {ts: (up, alpha) for _, ts, _, _, up, alpha in outcome.strategy.heard}


def agrees(outcome, ts, outputs):
    """Every published answer is that of the row."""
    rows = {t: (float(o[1]), float(o[2])) for t, o in zip(ts.tolist(), outputs, strict=True)}
    heard = said(outcome)
    assert len(heard) > 100
    assert all(rows[t] == answer for t, answer in heard.items())


def test_a_tier_is_the_bundles_own_and_told(bundle):
    outcome = run(bundle, **{"models.model.tier": "MICRO"})
    ts, rows = rows_of(bundle)
    agrees(outcome, ts, _core.NetworkStream(bundle.network(tier="MICRO")).steps(rows))
    assert {tier for _, _, tier, *_ in outcome.strategy.heard} == {"MICRO"}
    assert outcome.run.environment["model_model"] == "native MICRO"


def test_a_tier_has_its_own_warm_up(bundle):
    full = run(bundle).run.counters
    micro = run(bundle, **{"models.model.tier": "MICRO"}).run.counters
    lost = [c["inferences"] - c["signals"] - c["signals_conflated"] for c in (full, micro)]
    assert lost == [20, 3]


def test_precision_is_of_all_layers(bundle):
    outcome = run(bundle, **{"models.model.precision": "int8"})
    ts, rows = rows_of(bundle)
    agrees(outcome, ts, _core.NetworkStream(bundle.network(precision="int8")).steps(rows))


def test_another_bundle_takes_the_place_of_the_strategys(bundle, tmp_path):
    other = make_bundle(tmp_path / "other.bundle", seed=2)
    outcome = run(bundle, **{"models.model.bundle": str(other.path)})
    assert said(outcome) == said(run(other))
    assert said(outcome) != said(run(bundle))
    assert outcome.run.environment["bundle_model"] == run(other).run.environment["bundle_model"]


def test_a_windowed_model_sees_exactly_its_window(tmp_path):
    bundle = make_bundle(tmp_path / "window.bundle", window_rows=30, warm_up_rows=0)
    outcome = run(bundle)
    ts, rows = rows_of(bundle)
    agrees(outcome, ts, _core.NetworkWindow(bundle.network(), 30).steps(rows))
    counters = outcome.run.counters
    published = counters["signals"] + counters["signals_conflated"]
    assert counters["inferences"] - published == 29  # until the first window is full
    assert engine.run_once(
        prepare(listening(bundle.path), "synth", settings=SECONDS)
    ).journal.tobytes() == (outcome.journal.tobytes())


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"models.alpha.tier": "FULL"}, ConfigError, r"models\.alpha: no such .* there are model"),
        ({"models.model.tier": "LIGHT"}, ModelError, "no tier LIGHT, there are FULL, MICRO"),
        ({"models.model.tier": "HEAVY"}, ConfigError, "tier: expected one of FULL, LIGHT, MICRO"),
        ({"models.model.precision": "bf16"}, ConfigError, 'one of "", fp32, fp16, int8, dynamic'),
        ({"models.model.precision": "fp16"}, ModelError, "the native backend has no fp16"),
        ({"models.model.bundle": "nowhere"}, ModelError, r"nowhere/model\.toml: no such file"),
        ({"models.model.url": "http://x"}, ConfigError, "url .* backend native takes none"),
        ({"models.model.backend": "serving"}, ConfigError, "url .* backend serving needs one"),
        ({"models.model.threads": 2}, ConfigError, "threads is 2: the native backend runs on"),
    ],
)
def test_what_cannot_run_is_refused(bundle, settings, error, message):
    with pytest.raises(error, match=message):
        run(bundle, **settings)


def test_a_strategy_without_models_takes_no_table_of_one():
    with pytest.raises(ConfigError, match=r"models\.model: no such model of Listener; it has none"):
        prepare(Listener, "synth", settings={**SECONDS, "models.model.tier": "MICRO"})

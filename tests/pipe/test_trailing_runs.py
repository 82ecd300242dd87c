"""A model whose scales trail, in runs: what it is given, and that nothing else changes."""

from __future__ import annotations

from collections import defaultdict

import msgspec
import numpy as np
import pytest
from made_models import FEATURES, SECONDS, add_step_part, listening, make_bundle

from hft import _core, engine
from hft.errors import ModelError
from hft.inference.bundle import load_bundle
from hft.inference.card import TrailingEntry
from hft.inference.dataset.in_memory import collect
from hft.inference.dataset.trailing import Trailed, Trailing
from hft.inference.training.task import in_own_terms
from hft.journal import JOURNAL, RecordKind
from hft.plan import prepare

RULE = TrailingEntry(period_ns=2_000_000_000, memory_ns=6_000_000_000, drift=0.5)
OTHER = msgspec.structs.replace(RULE, memory_ns=8_000_000_000)
BUSY = {"data.synth.messages_per_s": 4_000.0, "latency.compute": 0}
"""A row is answered when it is made, so that a signal's time names it."""
AT = 1_704_067_200_000_000_000 + 12_000_000_000


@pytest.fixture
def bundle(tmp_path):
    return make_bundle(tmp_path / "first.bundle", trailing=RULE)


def plan_of(bundle, *swaps, **settings):
    return prepare(
        listening(bundle.path),
        "synth",
        recipe={"swaps": [{"at": AT, "bundle": str(swap.path)} for swap in swaps]},
        settings={**SECONDS, **BUSY, **settings},
    )


def run(*given, **settings):
    outcome = engine.run_once(plan_of(*given, **settings))
    assert outcome.run.status == "complete", outcome.run.error
    return outcome


def rows_of(bundle):
    """When each row of AAA was made, and its values (n, 2), as the engine made them."""
    keys, values = [], []
    engine.replay_rows(plan_of(bundle), kept=lambda k, v: (keys.append(k), values.append(v)))
    return np.concatenate(keys)[:, 0], np.concatenate(values).reshape(-1, 2)


def put(ts, x, rule, scaler):
    trailing = Trailing(rule, x.shape[1])
    period, made = trailing.feed(ts, x), trailing.estimates()
    assert len(made.rows) > 3
    assert (period < 0).any()
    return Trailed(rule, period, made.mean, made.scale).in_own_terms(x, scaler)


def heard(outcome, version=0):
    return [(ts, up, alpha) for _, ts, _, v, up, alpha in outcome.strategy.heard if v == version]


def check(found, ts, said):
    by_row = defaultdict(list)  # packets may share an instant
    for row, out in zip(ts, said, strict=True):
        by_row[row].append(tuple(out[1:3].tolist()))
    assert len(found) > 300
    assert all((up, alpha) in by_row[row] for row, up, alpha in found)


@pytest.mark.parametrize("window_rows", [0, 30])
def test_a_run_computes_what_training_does_of_rows_in_the_scalers_terms(tmp_path, window_rows):
    bundle = make_bundle(tmp_path / "first.bundle", trailing=RULE, window_rows=window_rows)
    ts, x = rows_of(bundle)
    seen = put(ts, x, RULE, bundle.card.scaler)
    assert np.abs(seen - x).max() > 0.5
    steps = _core.NetworkWindow(bundle.network(), 30) if window_rows else None
    said = (steps or _core.NetworkStream(bundle.network())).steps(seen)
    check(heard(run(bundle)), ts, said)


def test_rows_made_for_training_are_those(bundle):
    plan = plan_of(bundle)
    rows = collect(
        [plan.feeds[0].chunks()], FEATURES, latency_ns=0, horizons_ns=(1_000_000,), trailing=RULE
    )
    ts, x = rows_of(bundle)
    n = len(rows)
    assert np.array_equal(rows.ts, ts[:n])
    assert n > 0.9 * len(ts)
    own = bundle.card.scaler
    assert np.array_equal(in_own_terms(rows, own).x, put(ts, x, RULE, own)[:n])


def test_rows_in_the_journal_and_for_handlers_are_as_they_were_made(bundle, tmp_path):
    plain = make_bundle(tmp_path / "plain.bundle")
    rows = [
        journal[journal["kind"] == RecordKind.ROW].tobytes()
        for journal in (run(of).journal.view(JOURNAL) for of in (bundle, plain))
    ]
    assert rows[0] == rows[1]
    assert heard(run(bundle)) != heard(run(plain))


def test_another_library_is_given_the_same_rows(bundle):
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    add_step_part(bundle)
    native, onnx = run(bundle), run(bundle, **{"models.model.backend": "onnx"})
    assert np.abs(np.array(heard(native)) - np.array(heard(onnx))).max() < 1e-5


def test_a_bundle_of_the_same_rule_goes_on_from_the_estimates(bundle, tmp_path):
    new = make_bundle(tmp_path / "new.bundle", seed=2, trailing=RULE)
    ts, x = rows_of(bundle)
    first = int(np.searchsorted(ts, AT))
    seen = put(ts, x, RULE, new.card.scaler)[first:]
    said = _core.NetworkStream(new.network()).steps(seen)
    check(heard(run(bundle, new), version=1), ts[first:], said)


def test_a_bundle_of_another_rule_begins_its_own(bundle, tmp_path):
    new = make_bundle(tmp_path / "new.bundle", seed=2, trailing=OTHER)
    ts, x = rows_of(bundle)
    first = int(np.searchsorted(ts, AT))
    seen = put(ts[first:], x[first:], OTHER, new.card.scaler)
    said = _core.NetworkStream(new.network()).steps(seen)
    check(heard(run(bundle, new), version=1), ts[first:], said)


def test_a_bundle_without_scales_that_trail_takes_over_and_back(bundle, tmp_path):
    plain = make_bundle(tmp_path / "plain.bundle", seed=2)
    ts, x = rows_of(bundle)
    first = int(np.searchsorted(ts, AT))
    said = _core.NetworkStream(plain.network()).steps(x[first:])
    check(heard(run(bundle, plain), version=1), ts[first:], said)
    back = put(ts[first:], x[first:], RULE, bundle.card.scaler)
    said = _core.NetworkStream(bundle.network()).steps(back)
    check(heard(run(plain, bundle), version=1), ts[first:], said)


def check_rows(plan, number, bundle, chunks):
    """An instrument's answers against rows made for training of these chunks."""
    outcome = engine.run_once(plan)
    assert outcome.run.status == "complete", outcome.run.error
    rows = collect([chunks], FEATURES, latency_ns=0, horizons_ns=(1_000_000,), trailing=RULE)
    seen = in_own_terms(rows, bundle.card.scaler).x
    said = _core.NetworkStream(bundle.network()).steps(seen)
    name = plan.feeds[number].spec.name
    mine = [h[1:2] + h[4:] for h in outcome.strategy.heard if h[0] == name]
    check([h for h in mine if rows.ts[0] <= h[0] <= rows.ts[-1]], rows.ts, said)


@pytest.mark.parametrize("number", [0, 1])
def test_instruments_have_scales_of_their_own(bundle, number):
    plan = plan_of(bundle, **{"data.synth.symbols": ["AAA", "BBB"]})
    check_rows(plan, number, bundle, plan.feeds[number].chunks())


def test_days_apart_have_scales_of_their_own(bundle):
    days = {
        "data.synth.start": "2024-01-01T23:59:50",
        "engine.overnight": "flatten",
        "engine.flatten_before": "1s",
    }
    plan = plan_of(bundle, **days)
    check_rows(plan, 0, bundle, plan.feeds[0].days.chunks("2024-01-02"))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("memory_ns = 6000000000 -> 1", "trailing memory_ns: is 1, must be at least period_ns, 2"),
        ("drift = 0.5 -> inf", "trailing drift: is inf, must be finite"),
        ("drift = 0.5 -> -1.0", r"Expected `float` >= 0.0 - at `\$.trailing.drift`"),
        ("period_ns = 2000000000 -> 0", r"Expected `int` >= 1 - at `\$.trailing.period_ns`"),
        ("period_ns = 2000000000 -> 'an hour'", r"Expected `int`, got `str` - at `\$.trailing"),
    ],
)
def test_a_card_with_a_rule_that_means_nothing_is_refused(bundle, change, words):
    card = bundle.path / "model.toml"
    old, new = change.split(" -> ")
    key = old.split(" = ")[0]
    text = card.read_text()
    assert old in text
    card.write_text(text.replace(old, f"{key} = {new}"))
    with pytest.raises(ModelError, match=words):
        load_bundle(bundle.path)

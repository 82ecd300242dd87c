"""A bundle takes over from another while a replay runs."""

from __future__ import annotations

import dataclasses

import msgspec
import numpy as np
import pytest
from made_models import FEATURES, SECONDS, listening, make_bundle

from hft import _core, engine
from hft.errors import ConfigError, ModelError
from hft.features import Features, OnTrade, imbalance, micro_price_minus_mid, spread
from hft.journal import JOURNAL, RecordKind
from hft.plan import prepare

START = 1_704_067_200_000_000_000
AT = START + 8_000_000_000
WARM_UP = 20


@pytest.fixture
def old(tmp_path):
    return make_bundle(tmp_path / "old.bundle")


@pytest.fixture
def new(tmp_path):
    return make_bundle(tmp_path / "new.bundle", seed=2)


def plan_of(old, *swaps, **settings):
    tables = [msgspec.to_builtins(each) for each in swaps]
    return prepare(
        listening(old.path), "synth", recipe={"swaps": tables}, settings={**SECONDS, **settings}
    )


def at(ts, bundle, **more):
    return {"at": ts, "bundle": str(bundle.path), **more}


def run(*given, **settings):
    outcome = engine.run_once(plan_of(*given, **settings))
    assert outcome.run.status == "complete", outcome.run.error
    return outcome


def swap_records(outcome):
    journal = outcome.journal.view(JOURNAL)
    found = journal[journal["kind"] == RecordKind.SWAP]
    return found[found["b"] == 0], found[found["b"] == 1]


def rows_of(old):
    """When each row of AAA was made, and its values (n, 2)."""
    keys, values = [], []
    engine.replay_rows(plan_of(old), kept=lambda k, v: (keys.append(k), values.append(v)))
    return np.concatenate(keys)[:, 0], np.concatenate(values).reshape(-1, 2)


def test_it_runs_beside_the_old_one_from_the_request_on_and_takes_over_when_warm(old, new):
    outcome = run(old, at(AT, new))
    (asked,), (took,) = swap_records(outcome)
    ts, rows = rows_of(old)
    first = int(np.searchsorted(ts, AT))
    assert asked["ts"] == AT
    assert ts[first + WARM_UP - 1] < took["ts"] <= ts[first + WARM_UP]
    by_old = _core.NetworkStream(old.network()).steps(rows)
    by_new = _core.NetworkStream(new.network()).steps(rows[first:])
    said = {0: dict(zip(ts, by_old, strict=True)), 1: dict(zip(ts[first:], by_new, strict=True))}
    versions = [version for *_, version, _, _ in outcome.strategy.heard]
    assert versions == sorted(versions)
    assert set(versions) == {0, 1}
    for _, row_ts, _, version, up, alpha in outcome.strategy.heard:
        assert version == (row_ts >= took["ts"])
        assert (up, alpha) == tuple(said[version][row_ts][1:3].tolist())


def test_before_the_request_nothing_differs(old, new):
    with_swap, without = run(old, at(AT, new)), run(old)
    before = [h for h in without.strategy.heard if h[1] < AT]
    assert with_swap.strategy.heard[: len(before)] == before
    until = int(np.searchsorted(without.journal.view(JOURNAL)["ts"], AT))
    same = until * JOURNAL.itemsize
    assert with_swap.journal[:same].tobytes() == without.journal[:same].tobytes()


def test_the_same_swap_gives_the_same_bytes(old, new):
    runs = [run(old, at(AT, new)) for _ in range(2)]
    assert runs[0].journal.tobytes() == runs[1].journal.tobytes()


def test_answers_under_way_at_the_takeover_are_published_with_their_own_version(old, new):
    slow = {"latency.inference": "2s", "latency.server.mode": "queue"}
    outcome = run(old, at(AT, new), **slow)
    journal = outcome.journal.view(JOURNAL)
    took = int(np.flatnonzero((journal["kind"] == RecordKind.SWAP) & (journal["b"] == 1))[0])
    after = journal[took:]
    late = after[(after["kind"] == RecordKind.SIGNAL) & (after["b"] < journal[took]["ts"])]
    assert len(late) > 0
    assert (late["lots"] >> 32 == 0).all()


def test_an_instant_may_be_text(old, new):
    text = run(old, at("2024-01-01T00:00:08", new))
    assert text.journal.tobytes() == run(old, at(AT, new)).journal.tobytes()


def test_a_newer_swap_takes_the_place_of_one_that_is_not_warm(old, new, tmp_path):
    third = make_bundle(tmp_path / "third.bundle", seed=3)
    outcome = run(old, at(AT, new), at(AT + 1_000_000, third))
    asked, took = swap_records(outcome)
    assert asked["order"].tolist() == [1, 2]
    assert took["order"].tolist() == [2]
    assert {version for *_, version, _, _ in outcome.strategy.heard} == {0, 2}
    assert any("Swap 1: new.bundle" in n and "never took over" in n for n in outcome.run.notes)
    assert any("Swap 2: third.bundle" in n and "took over at" in n for n in outcome.run.notes)


def test_windows_fill_before_they_take_over(old, tmp_path):
    window = make_bundle(tmp_path / "window.bundle", seed=4, window_rows=30, warm_up_rows=0)
    outcome = run(old, at(AT, window))
    _, (took,) = swap_records(outcome)
    ts, rows = rows_of(old)
    first = int(np.searchsorted(ts, AT))
    assert ts[first + 28] < took["ts"] <= ts[first + 29]
    by_window = _core.NetworkWindow(window.network(), 30).steps(rows[first:])
    said = dict(zip(ts[first:], by_window, strict=True))
    for _, row_ts, _, version, up, _ in outcome.strategy.heard:
        assert version == 0 or up == said[row_ts][1]


def test_each_instrument_takes_over_by_itself(old, new):
    outcome = run(old, at(AT, new), **{"data.synth.symbols": ["AAA", "BBB"]})
    _, took = swap_records(outcome)
    assert sorted(took["instrument"]) == [0, 1]
    assert took["ts"][0] != took["ts"][1]


def test_days_apart_begin_with_the_bundle_that_took_over_before(old, new):
    settings = {
        "data.synth.start": "2024-01-01T23:59:50",
        "engine.overnight": "flatten",
        "engine.flatten_before": "1s",
    }
    outcome = run(old, at("2024-01-01T23:59:55", new), **settings)
    assert {version for *_, version, _, _ in outcome.strategy.heard} == {1}  # of the second day
    asked, took = swap_records(outcome)
    assert len(asked) == len(took) == 1
    assert "bundle_swap_1" in outcome.run.environment


def other(field, tmp_path):
    features = {
        "features": Features(spread(), micro_price_minus_mid(), trigger=FEATURES.trigger),
        "more": Features(spread(), imbalance(5), micro_price_minus_mid(), trigger=FEATURES.trigger),
        "trigger": Features(spread(), imbalance(5), trigger=OnTrade()),
    }
    more = {"features": features[field]} if field in features else {"outputs": ("fall", "up")}
    return make_bundle(tmp_path / "other.bundle", **more)


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ("features", r"other\.bundle/model\.toml: feature 2 is micro_price_minus_mid .*imbalance"),
        ("more", r"feature 3 is micro_price_minus_mid .* take over from absent"),
        ("trigger", r"trigger is .*trade.*, the old is .*touch"),
        ("outputs", r"output 1 is fall, of the bundle it would take over from down"),
    ],
)
def test_what_cannot_take_over_is_refused_and_the_first_difference_named(
    old, tmp_path, field, message
):
    with pytest.raises(ModelError, match=message):
        plan_of(old, at(AT, other(field, tmp_path)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": "alpha"}, r"swaps\[0\]\.model is 'alpha': no such model .* there are model"),
        ({"at": "noon"}, r"swaps\[0\]\.at: 'noon' is no ISO date or time"),
    ],
)
def test_a_swap_that_says_nothing_is_refused(old, new, change, message):
    with pytest.raises(ConfigError, match=message):
        plan_of(old, at(AT, new) | change)


def test_a_swapped_run_has_variants_and_processes(old, new):
    plan = plan_of(old, at(AT, new))
    assert dataclasses.replace(plan).swaps == plan.swaps
    outcome = engine.run_with_variants(plan, placebo=True)
    assert [name for name, _ in outcome.run.variants] == ["placebo"]

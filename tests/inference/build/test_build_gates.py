"""Gates that hold, and gates that fail for a reason that can be seen by hand."""

import numpy as np
import pytest

from hft.inference.bench.ratio import Ratio
from hft.inference.build.gates import (
    Gains,
    Limits,
    budget_gate,
    decision_gate,
    latency_gate,
    output_gates,
    pnl_gate,
    worst,
)
from hft.inference.card import Readout

LESSER = Limits(correlation=0.5, kl=10.0, argmax=0.3, decisions=0.3, latency=1.0, is_lesser=True)
READOUT = Readout(move_ticks=(-4.0, 0.0, 4.0), shrink=1.0)


def probabilities(n=400, seed=1):
    z = np.random.default_rng(seed).normal(size=(n, 3))
    return np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)


def by_name(gates):
    return {gate.name: gate for gate in gates}


def test_the_same_outputs_hold_every_gate():
    p = probabilities()
    found = output_gates(p, p + 1e-9, READOUT)
    assert [g.name for g in found] == ["correlation", "kl", "argmax", "decisions"]
    assert all(g.passed for g in found)
    assert worst(found) == ""


def test_outputs_of_other_rows_fail_all_of_them():
    found = by_name(output_gates(probabilities(), probabilities(seed=2), READOUT))
    assert not any(g.passed for g in found.values())
    assert found["correlation"].value < 0.2
    assert found["kl"].value > 0.1
    assert "argmax" in worst(list(found.values()))


def test_one_wrong_output_of_three_is_enough():
    p = probabilities()
    ours = p.copy()
    ours[:, 0] = p[::-1, 0]
    assert not by_name(output_gates(p, ours, READOUT))["correlation"].passed


def test_an_output_that_never_varies_and_is_the_same_holds():
    one = np.full((50, 1), 0.3)
    assert by_name(output_gates(one, one, None))["correlation"].value == 1.0
    assert not by_name(output_gates(one, one + 0.1, None))["correlation"].passed


def test_nan_and_missing_outputs_are_told():
    p = probabilities(n=100)
    broken = p.copy()
    broken[0, 1] = np.nan
    (gate,) = output_gates(p, broken, READOUT)
    assert (gate.name, gate.value, gate.passed) == ("finite", 0.99, False)
    (gate,) = output_gates(p, p[:, :2], READOUT)
    assert not gate.passed
    assert "gives 2 outputs, its parent 3" in gate.note


def test_decisions_count_sides_of_forecasts_beyond_the_median():
    # Forecasts of the parent: 8 p_up - 4 with p_flat 0; half of them beyond 2 in size.
    up = np.array([1.0, 0.9, 0.1, 0.0, 0.55, 0.5, 0.45, 0.6])
    parent = np.column_stack([1 - up, np.zeros(8), up])
    ours = parent.copy()
    ours[0] = ours[0][::-1]
    gate = decision_gate(parent, ours, READOUT)
    assert gate.value == pytest.approx(7 / 8)
    assert gate.note == "1 of 8 rows on the opposite side"
    assert not gate.passed


def ratio(value, low, high):
    return Ratio(value, low, high, value * 1e3, 1e3)


def test_a_part_is_slower_where_its_whole_interval_is_beyond_the_limit():
    slow = latency_gate(ratio(2.0, 1.8, 2.3))
    assert (slow.value, slow.passed) == (2.0, False)
    assert slow.note.startswith("1.800 to 2.300; 2 us, its parent 1 us")
    assert latency_gate(ratio(1.07, 0.9, 1.3)).passed  # may be as fast: nothing was shown
    assert not latency_gate(ratio(1.07, 1.06, 1.08)).passed


def test_a_lesser_model_is_faster_where_its_whole_interval_is_below_its_parents():
    assert latency_gate(ratio(0.6, 0.5, 0.7), LESSER).passed
    assert not latency_gate(ratio(0.9, 0.7, 1.1), LESSER).passed
    assert not latency_gate(ratio(1.0, 1.0, 1.0), LESSER).passed


def test_a_lesser_model_must_agree_more_than_by_chance():
    """Whatever the limits: one that always says the same says nothing of a row."""
    p = probabilities(4_000)
    alike = by_name(output_gates(p, 0.7 * p + 0.3 / 3, READOUT, LESSER))
    assert all(gate.passed for gate in alike.values())
    still = np.tile(p.mean(axis=0), (len(p), 1))
    lax = Limits(correlation=-1.0, kl=99.0, argmax=0.0, decisions=0.0, is_lesser=True)
    found = by_name(output_gates(p, np.roll(p, 1, axis=0), READOUT, lax))
    share = np.bincount(p.argmax(axis=1)) / len(p)
    assert found["argmax"].limit == pytest.approx((share**2).sum())
    assert not found["kl"].passed
    mean = by_name(output_gates(p, still, READOUT, lax))
    assert mean["kl"].value == pytest.approx(mean["kl"].limit)
    assert mean["argmax"].value == pytest.approx(mean["argmax"].limit)


def test_decisions_of_a_tier_are_by_its_own_slope():
    p = probabilities()
    assert decision_gate(p, p, READOUT).value == 1.0
    half = decision_gate(p, p, READOUT, LESSER, slope=0.5)
    assert half.value < 1.0
    assert "opposite" not in half.note


def test_a_budget_is_of_p99():
    assert budget_gate(4_900.0, 5_000).passed
    assert not budget_gate(5_100.0, 5_000).passed


def gains(gain, fills=100, start=0):
    ts = np.arange(len(gain), dtype=np.int64) + start
    return Gains(ts, np.asarray(gain, float), fills)


def test_the_same_pnl_holds_and_a_steady_loss_does_not():
    base = np.random.default_rng(3).normal(size=200)
    same = pnl_gate(gains(base), gains(base))
    assert (same.value, same.passed) == (0.0, True)
    half = 1.96 * np.sqrt(200)  # of the sum of 200 draws of deviation 1
    lossy = pnl_gate(gains(base), gains(base - 0.7 * half / 200))
    assert lossy.failed
    assert lossy.value == pytest.approx(-0.7, abs=0.2)
    assert pnl_gate(gains(base), gains(base - 0.2 * half / 200)).passed


def test_a_lesser_model_fails_where_it_is_shown_to_lose():
    """A noisy difference of nothing is none; the same noise around a loss is one."""
    base, noise = np.random.default_rng(3).normal(size=(2, 200))
    half = 1.96 * np.sqrt(200)
    other = gains(base + noise - noise.mean())
    assert pnl_gate(gains(base), other).failed
    assert pnl_gate(gains(base), other, LESSER).passed
    assert pnl_gate(gains(base), gains(other.gain - 2 * half / 200), LESSER).failed


def test_a_lesser_model_that_nothing_hears_is_not_judged():
    base = gains(np.random.default_rng(3).normal(size=200))
    gate = pnl_gate(base, base, LESSER)
    assert (gate.passed, gate.failed) == (False, False)
    assert "the strategy does the same whatever the model says" in gate.note


def test_pnl_is_paired_by_time():
    base = np.random.default_rng(3).normal(size=200)
    later = gains(base[50:], start=50)
    gate = pnl_gate(gains(base), later)
    assert gate.passed
    assert gate.note.startswith("difference 0 ")


@pytest.mark.parametrize(
    ("parent", "words"),
    [
        (gains(np.ones(20)), "20 samples"),
        (gains(np.zeros(200), fills=0), "want 30 fills of the parent"),
        (gains(np.arange(200.0), fills=1), "1 fills, parent 1"),  # one trade alike is no evidence
    ],
)
def test_pnl_that_tells_nothing_is_not_judged(parent, words):
    gate = pnl_gate(parent, parent)
    assert not gate.passed
    assert not gate.failed
    assert words in gate.note
    assert str(gate).startswith("pnl not judged: ")
    assert worst([gate]) == ""

"""Gates that hold, and gates that fail for a reason that can be seen by hand."""

import numpy as np
import pytest

from hft.inference.build.gates import (
    Gains,
    budget_gate,
    decision_gate,
    latency_gate,
    output_gates,
    pnl_gate,
    worst,
)
from hft.inference.card import Readout

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


def test_latency_is_held_against_the_parents():
    slow = latency_gate(2.0, 2e3, 1e3)
    assert (slow.value, slow.passed) == (2.0, False)
    assert "2 us, its parent 1 us" in slow.note
    assert latency_gate(1.04, 1.04e3, 1e3).passed


def test_a_budget_is_of_p99():
    assert budget_gate(4_900.0, 5_000).passed
    assert not budget_gate(5_100.0, 5_000).passed


def gains(gain, fills=10, start=0):
    ts = np.arange(len(gain), dtype=np.int64) + start
    return Gains(ts, np.asarray(gain, float), fills)


def test_the_same_pnl_holds_and_a_steady_loss_does_not():
    base = np.random.default_rng(3).normal(size=200)
    same = pnl_gate(gains(base), gains(base))
    assert (same.value, same.passed) == (0.0, True)
    half = 1.96 * np.sqrt(200)  # of the sum of 200 draws of deviation 1
    lossy = pnl_gate(gains(base), gains(base - 0.7 * half / 200))
    assert not lossy.passed
    assert lossy.value == pytest.approx(-0.7, abs=0.2)
    assert pnl_gate(gains(base), gains(base - 0.2 * half / 200)).passed


def test_pnl_is_paired_by_time():
    base = np.random.default_rng(3).normal(size=200)
    later = gains(base[50:], start=50)
    gate = pnl_gate(gains(base), later)
    assert gate.passed
    assert gate.note.startswith("difference 0 ")


def test_pnl_that_tells_nothing_is_no_pass():
    base = np.random.default_rng(3).normal(size=200)
    short = pnl_gate(gains(base[:20]), gains(base[:20]))
    assert not short.passed
    assert "20 samples" in short.note
    idle = pnl_gate(gains(np.zeros(200), fills=0), gains(np.zeros(200), fills=0))
    assert not idle.passed
    assert "never traded" in idle.note

"""Spread + inventory - fees + funding - impact is the account, to the unit."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from made_up_runs import BTC, INVERSE, ODD, RunMaker, S

from hft.analysis import pnl, tables
from hft.analysis.equity import equity_path
from hft.analysis.figures import figures_of
from hft.analysis.joining import Joining
from hft.analysis.records import NO_PRICE, NO_TIME
from hft.analysis.run_data import InstrumentFacts, RunData
from hft.analysis.units import amount
from hft.errors import ConfigError
from hft.journal import JOURNAL
from hft.types import InstrumentSpec


def test_three_fills_add_up_by_hand(three_fills: RunData) -> None:
    parts = pnl.split(three_fills, 0)
    # Lot ticks of 100,000 units: spread 2 * 0.5 + 0.5 - 0.5 = 1, inventory 2 * 3 - 4 = 2.
    assert (parts.spread2 / 2, parts.inventory2 / 2, parts.fees) == (100_000, 200_000, 24_940)
    assert parts.total2 == 2 * 275_060
    assert parts.residual2 == 0
    assert parts.holds


@pytest.mark.parametrize("facts", [[BTC], [ODD], [INVERSE], [BTC, ODD, INVERSE]])
@pytest.mark.parametrize("seed", range(3))
def test_identity_holds_on_random_runs(
    random_run: RunMaker, facts: list[InstrumentFacts], seed: int
) -> None:
    run = random_run(seed, orders=120, seconds=600, facts=facts)
    splits = [pnl.split(run, i) for i in range(len(facts))]
    assert all(split.holds for split in splits)
    assert all(split.residual2 == 0 for split in splits if split.instrument == BTC.name)
    assert all(split.fills > 20 for split in splits)


def test_one_unit_too_much_in_the_account_is_caught(random_run: RunMaker) -> None:
    run = random_run(5)
    run.samples["equity"][-1] += 1
    split = pnl.split(run, 0)
    assert split.residual2 == -2
    assert not split.holds
    figures = figures_of(run)
    assert not figures["headline"]["identity_holds"]
    assert any(note.startswith("Identity broken: BTCUSDT.SIM") for note in figures["notes"])


def test_a_lost_fill_is_caught(random_run: RunMaker) -> None:
    run = random_run(5)
    lost = run.fills[10]
    run.fills = np.delete(run.fills, 10)
    split = pnl.split(run, 0)
    assert split.position_gap == lost["side"] * lost["lots"]
    assert not split.holds


def test_mids_between_do_not_matter_to_the_sum(random_run: RunMaker) -> None:
    run = random_run(6)
    before = pnl.split(run, 0)
    run.fills["mid2"][::3] = NO_PRICE
    run.fills["mid2"][0] = NO_PRICE
    after = pnl.split(run, 0)
    assert after.total2 == before.total2
    assert after.holds
    assert after.spread2 != before.spread2


def test_fills_without_a_mid_take_the_last_known_one_or_their_price(three_fills: RunData) -> None:
    three_fills.fills["mid2"][[0, 2]] = NO_PRICE
    assert pnl.fill_mid2(three_fills.fills).tolist() == [2000, 2007, 2007]


def test_fills_reported_after_the_last_sample_are_left_to_the_next(three_fills: RunData) -> None:
    three_fills.fills["ts_recv"][2] = three_fills.samples["ts"][-1] + 1
    split = pnl.split(three_fills, 0)
    assert (split.fills, split.late_fills, split.position) == (2, 1, 1)
    three_fills.fills["ts_recv"][2] = NO_TIME
    assert pnl.split(three_fills, 0).late_fills == 1


def test_a_run_that_ends_without_a_book_is_marked_at_the_last_one(three_fills: RunData) -> None:
    three_fills.samples["bid"][-1] = NO_PRICE
    assert pnl.last_mark2(three_fills.samples, three_fills.fills["mid2"]) == 999 + 1000
    assert pnl.last_mark2(three_fills.samples[:0], three_fills.fills["mid2"]) == 1999
    assert pnl.last_mark2(three_fills.samples[:0], three_fills.fills["mid2"][:0]) == 0


def test_funding_received_counts_for_us(three_fills: RunData) -> None:
    three_fills.samples["funding"][-1] = 500  # paid
    three_fills.samples["equity"][-1] -= 500
    split = pnl.split(three_fills, 0)
    assert split.funding == -500
    assert split.holds


def test_inverse_contract_gains_in_base_currency(three_fills: RunData) -> None:
    three_fills.instruments = [INVERSE]
    fills = three_fills.fills[:1]  # buy 2 lots of 100 at 1000 ticks of 0.5
    assert pnl.notional(INVERSE, fills["price"], fills["lots"])[0] == pytest.approx(200 / 500)
    # Against a mid of 500.25 the buyer is ahead by 200 / 500 - 200 / 500.25.
    assert pnl.spread_gain(INVERSE, fills)[0] == pytest.approx(200 / 500 - 200 / 500.25)


def test_equity_path_splits_into_the_same_parts(random_run: RunMaker) -> None:
    run = random_run(7)
    path, split = equity_path(run, [0]), pnl.split(run, 0)
    assert path.net[-1] == pytest.approx(split.total2 / 2e9, abs=1e-12)
    assert path.spread[-1] == pytest.approx(split.spread2 / 2e9, abs=1e-12)
    assert path.inventory[-1] == pytest.approx(split.inventory2 / 2e9, abs=1e-12)
    parts = path.spread + path.inventory - path.fees + path.funding - path.impact
    np.testing.assert_allclose(path.net, parts)
    assert path.impact[-1] == pytest.approx(split.impact / 1e9)
    assert split.impact > 0


def test_equity_of_instruments_with_different_samples_is_carried_forward(
    random_run: RunMaker,
) -> None:
    run = random_run(8, facts=[BTC, ODD])
    thin = (run.samples["instrument"] == 0) | (run.samples["ts"] % (10 * S) == 0)
    run.samples = run.samples[thin]
    path = equity_path(run, [0, 1])
    last = sum(int(run.samples["equity"][run.samples["instrument"] == i][-1]) for i in (0, 1))
    assert path.equity_e9[-1] == last


def test_a_tick_may_be_worth_less_than_a_unit_of_money() -> None:
    spec = InstrumentSpec(symbol="X", venue="SIM", tick=1e-8, lot=1e-3, currency="USDT")
    assert InstrumentFacts(spec, 0.0, 0.0).tick_value_e9 == Fraction(1, 100)
    assert BTC.tick_value_e9 == 100_000
    with pytest.raises(ConfigError, match="inverse"):
        _ = INVERSE.tick_value_e9


def test_what_our_own_push_of_the_price_cost_stands_in_the_table(random_run: RunMaker) -> None:
    run = random_run(9)
    figures = figures_of(run)
    paid = int(run.fills["impact"].sum())
    assert figures["instruments"][0]["impact"] == figures["headline"]["impact"] == paid / 1e9
    table = tables.pnl(figures)
    assert table.rows[0][table.head.index("impact")] == amount(-paid / 1e9, signed=True)
    run.fills["impact"][run.fills["maker"] == 0] += 1
    assert not pnl.split(run, 0).holds


def test_days_put_together_carry_what_impact_cost(random_run: RunMaker) -> None:
    joining, days = Joining(), [random_run(3), random_run(4)]
    for run in days:
        joining.add(run, np.zeros(0, JOURNAL), (0,))
    joined = joining.run()
    assert joined.samples["impact"][-1] == sum(int(run.fills["impact"].sum()) for run in days)
    assert pnl.split(joined, 0).holds

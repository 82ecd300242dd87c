"""The figures of a run as one plain dictionary, which report.json, tables and pictures share.

    run         who, when, how it ended, how fast it went
    notes       what a reader must know before trusting a figure
    headline    the dozen figures that are compared first
    accounts    one a settlement currency: P&L identity, Sharpe, drawdown, turnover
    instruments one an instrument: P&L identity, holding, activity, queue, mark-outs
    orders      activity over all instruments, refusals and endings by reason
    shortfall   one a settlement currency: what carrying decisions out cost, stage by stage
    latency     the four legs, parts of compute, signal age, packets' feed latency [ns]
    model_server  wait and service of the inference server [ns], and what became of its rows
    reuse         by model: rows that were answered by an earlier answer, and what was computed
    footprint   one an instrument: what our own trading did to the market
    venue_limits  lots that takers did not get, by reason
    cost_checks simulated costs beside three laws
    stages_s, counters, environment, recipe: as the run left them
    bracket     the headline under the risk-averse queue, or None
    variants    headlines of changed runs

Amounts are in settlement currency, `residual_e9` in units of 1e-9 of it. A figure that cannot be
had is None.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from hft.analysis import legs, pnl, statistics, trading
from hft.analysis.cost_checks import cost_checks
from hft.analysis.equity import equity_path
from hft.analysis.execution import model_server, strains
from hft.analysis.footprint import COUNTED, footprint
from hft.analysis.reuse import reuse
from hft.analysis.run_data import RunData
from hft.analysis.shortfall import shortfalls
from hft.analysis.shortfall_figures import shortfall_figures
from hft.analysis.units import MONEY_PER_UNIT, NS_PER_S

Figures = dict[str, Any]

VERSION = 2


def figures_of(run: RunData) -> Figures:
    """Every figure of a run, in the order of the module's head."""
    accounts, instruments = (
        _accounts(run),
        [_instrument(run, i) for i in range(len(run.instruments))],
    )
    by_instrument = shortfalls(run)
    short = shortfall_figures(by_instrument, by_currency(run))
    return {
        "version": VERSION,
        "run": _about(run),
        "notes": [*_notes(run, accounts, instruments), *_shortfall_notes(short)],
        "headline": _headline(run, accounts),
        "accounts": accounts,
        "instruments": instruments,
        "orders": {
            **asdict(trading.activity(run.orders, run.fills)),
            "refusals": trading.refusals(run.orders),
            "endings": trading.endings(run.orders),
        },
        "shortfall": short,
        "latency": _latency(run),
        "model_server": model_server(run),
        "reuse": reuse(run),
        "footprint": footprint(run),
        "venue_limits": {name: int(run.counters.get(name, 0)) for name in COUNTED},
        "cost_checks": cost_checks(run, by_instrument),
        "stages_s": dict(run.stages_s),
        "counters": dict(run.counters),
        "environment": run.environment,
        "recipe": run.recipe,
        "bracket": None if run.bracket is None else headline_of(run.bracket),
        "variants": [{"name": name, **headline_of(variant)} for name, variant in run.variants],
    }


def headline_of(run: RunData) -> Figures:
    """The figures that are compared first, of the account in the first instrument's currency."""
    return _headline(run, _accounts(run))


def by_currency(run: RunData) -> dict[str, list[int]]:
    """Instrument ids by settlement currency, the first instrument's currency first."""
    groups: dict[str, list[int]] = {}
    for i, facts in enumerate(run.instruments):
        groups.setdefault(facts.spec.currency, []).append(i)
    return groups


def _about(run: RunData) -> Figures:
    seconds = (run.ts_end - run.ts_start) / NS_PER_S
    return {
        "kind": run.kind,
        "name": run.name,
        "strategy": run.strategy,
        "status": run.status,
        "error": run.error,
        "started_utc": run.started_utc,
        "ts_start": run.ts_start,
        "ts_end": run.ts_end,
        "market_s": seconds,
        "wall_s": run.wall_s,
        "rows": run.rows,
        "rows_a_second": trading.ratio(run.rows, run.wall_s),
        "times_real_time": trading.ratio(seconds, run.wall_s),
    }


def _headline(run: RunData, accounts: list[Figures]) -> Figures:
    account = accounts[0] if accounts else {}
    activity = trading.activity(run.orders, run.fills)
    age = legs.quantiles(legs.signal_age_ns(run.orders))
    taken = (
        "currency",
        "net",
        "gross",
        "spread",
        "inventory",
        "fees",
        "impact",
        "turnover",
        "bps_of_turnover",
    )
    return {
        "status": run.status,
        **{name: account.get(name) for name in taken},
        "max_drawdown": account["drawdown"]["depth"] if account else None,
        "t_stat_lo": account["sharpe"]["t_stat_lo"] if account else None,
        "orders": activity.orders,
        "fills": activity.fills,
        "filled_lots": activity.filled_lots,
        "fill_ratio": activity.fill_ratio,
        "maker_share": activity.maker_share,
        "signal_age_p50_ns": age["p50"],
        "identity_holds": all(each["identity_holds"] for each in accounts),
    }


def _accounts(run: RunData) -> list[Figures]:
    return [_account(run, currency, group) for currency, group in by_currency(run).items()]


def _account(run: RunData, currency: str, group: list[int]) -> Figures:
    splits = [pnl.split(run, i) for i in group]
    path = equity_path(run, group)
    sampling_ns = max(statistics.SHARPE_SAMPLING_NS, run.sample_ns)
    turnover = sum(_turnover(run, i) for i in group)
    total = _money(splits)
    annual = statistics.annual(path.ts, path.net)
    return {
        "currency": currency,
        "instruments": [run.instruments[i].name for i in group],
        **total,
        "turnover": turnover,
        "bps_of_turnover": None if not turnover else 1e4 * total["net"] / turnover,
        "sharpe": asdict(statistics.sharpe(path.ts, path.net, sampling_ns)),
        "annual": None if annual is None else asdict(annual),
        "drawdown": asdict(statistics.drawdown(path.ts, path.net)),
    }


def _instrument(run: RunData, instrument: int) -> Figures:
    facts = run.instruments[instrument]
    mine = {
        "fills": run.fills[run.fills["instrument"] == instrument],
        "orders": run.orders[run.orders["instrument"] == instrument],
        "samples": run.samples[run.samples["instrument"] == instrument],
    }
    split = pnl.split(run, instrument)
    fills = mine["fills"]
    roles = {"maker": fills[fills["maker"] == 1], "taker": fills[fills["maker"] == 0]}
    return {
        "name": facts.name,
        "currency": facts.spec.currency,
        **_money([split]),
        "late_fills": split.late_fills,
        "position": split.position,
        "position_gap": split.position_gap,
        "turnover": _turnover(run, instrument),
        "activity": asdict(trading.activity(mine["orders"], fills)),
        "holding": asdict(trading.inventory(mine["samples"]["position"])),
        "queue_ahead": trading.queue_ahead(fills),
        "markouts": {
            role: [asdict(m) for m in trading.markouts(rows)] for role, rows in roles.items()
        },
    }


def _money(splits: list[pnl.Split]) -> Figures:
    residuals = [split.residual2 for split in splits]
    known = [residual for residual in residuals if residual is not None]
    parts = {
        "net": sum(split.total2 for split in splits) / 2,
        "gross": sum(split.spread2 + split.inventory2 for split in splits) / 2,
        "spread": sum(split.spread2 for split in splits) / 2,
        "inventory": sum(split.inventory2 for split in splits) / 2,
        "fees": sum(split.fees for split in splits),
        "funding": sum(split.funding for split in splits),
        "impact": sum(split.impact for split in splits),
    }
    return {
        **{name: value / MONEY_PER_UNIT for name, value in parts.items()},
        "residual_e9": sum(abs(residual) for residual in known) / 2 if known else None,
        "identity_holds": all(split.holds for split in splits),
    }


def _turnover(run: RunData, instrument: int) -> float:
    fills = run.fills[run.fills["instrument"] == instrument]
    return float(pnl.notional(run.instruments[instrument], fills["price"], fills["lots"]).sum())


def _latency(run: RunData) -> Figures:
    parts = legs.parts_of_compute(run.orders)
    packets = np.asarray(run.feed_latency_ns, np.int64)
    return {
        **{name: legs.quantiles(values) for name, values in legs.durations(run.orders).items()},
        **{name: legs.quantiles(values) for name, values in parts.items()},
        "feed, all packets": legs.quantiles(packets),
    }


def _shortfall_notes(short: list[Figures]) -> list[str]:
    return [
        f"Implementation shortfall broken: its stages miss the orders' own rows by "
        f"{account['residual_e9'] / MONEY_PER_UNIT:.9f} {account['currency']}."
        for account in short
        if not account["holds"]
    ]


def _notes(run: RunData, accounts: list[Figures], instruments: list[Figures]) -> list[str]:
    notes = [*run.notes, *_cannot_tell(run), *strains(run)]
    for each in instruments:
        notes += _identity_notes(each)
        if each["late_fills"]:
            notes.append(
                f"{each['name']}: {each['late_fills']} fills were reported after the last sample."
            )
    if len(accounts) > 1:
        others = ", ".join(account["currency"] or "no currency" for account in accounts[1:])
        notes.append(
            f"Headline figures are in {accounts[0]['currency']}; accounts in {others} stand apart."
        )
    if any(account["annual"] is None and account["sharpe"]["increments"] for account in accounts):
        notes.append(
            "Fewer than 20 whole days: the Sharpe ratio is per increment and not annualised."
        )
    return notes


def _cannot_tell(run: RunData) -> list[str]:
    """What the data leave open, instruments that say the same taken together."""
    told: dict[tuple[str, ...], list[str]] = {}
    for name, sentences in run.environment.get("cannot_tell", {}).items():
        told.setdefault(tuple(sentences), []).append(name)
    notes = []
    for sentences, names in told.items():
        whose = f" of {', '.join(names)}" if len(told) > 1 else ""
        notes.append(f"The data{whose} cannot tell: {'; '.join(sentences)}.")
    return notes


def _identity_notes(each: Figures) -> list[str]:
    if each["identity_holds"]:
        return (
            []
            if each["residual_e9"] is not None
            else [f"{each['name']}: no samples, identity not checked."]
        )
    gap = f", position differs by {each['position_gap']} lots" if each["position_gap"] else ""
    return [
        f"Identity broken: {each['name']} adds up to {each['residual_e9'] / MONEY_PER_UNIT:.9f} "
        f"{each['currency']} more or less than the core's equity{gap}."
    ]

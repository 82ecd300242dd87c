"""Tables of how decisions were carried out: shortfall, model server, footprint, cost laws."""

from __future__ import annotations

from collections.abc import Callable

from hft.analysis.cost_laws import BAND
from hft.analysis.execution import LOST
from hft.analysis.figures import Figures
from hft.analysis.tables import Table
from hft.analysis.units import NONE, amount, count, duration, share

STAGE_NAMES = {
    "scheduling": "from parent to child",
    "feed": "feed",
    "wait": "model wait",
    "service": "model service",
    "gateway": "strategy, risk",
    "network": "network",
    "timing": "timing",
    "spread": "spread",
    "walk": "impact, walked",
    "charged": "impact, charged",
    "opportunity": "opportunity",
    "fees": "fees",
    "total": "total",
}


WHY_MISSED = {
    "off": "while off",
    "under_way": "an answer was under way",
    "no_answer": "no answer yet",
    "too_often": "reused too often",
    "too_old": "too old",
    "side": "the touch leaned elsewhere",
    "far": "inputs too far",
    "unsure": "classes too close",
}


def shortfalls(figures: Figures) -> list[Table]:
    """Stage by stage, a table for each settlement currency and one for its parent orders."""
    tables = []
    for account in figures["shortfall"]:
        currency = f" [{account['currency']}]" if account["currency"] else ""
        tables.append(_of_orders(account, f"Implementation shortfall{currency}"))
        if account["parents"]:
            tables.append(_of_parents(account["parents"], f"Shortfall of parents{currency}"))
    return tables


def _of_orders(account: Figures, title: str) -> Table:
    rows = []
    for name, every in account["all"].items():
        filled = account["filled"].get(name)
        if name != "total" and not every["money"] and not every["q25"] and not every["q75"]:
            continue
        rows.append([STAGE_NAMES[name], _money(every["money"]), *_spread(every), *_spread(filled)])
    head = ["stage", "cost", "bps", "median", "IQR", "filled: bps", "median", "IQR"]
    residual = account["residual_e9"]
    sums = "the stages add up to the orders' own rows"
    broken = f"BROKEN: {sums[4:]} only within {residual:g}e-9"
    note = (
        f"Positive is a cost. {count(account['orders'])} orders, bps of what they asked for at the "
        f"mid of their decision; {count(account['filled_orders'])} filled ones, without "
        f"opportunity, of what they traded. {sums.capitalize() if account['holds'] else broken}."
    )
    if account["left_out"]:
        note += f" {count(account['left_out'])} orders without any mid are left out."
    return Table(title, head, rows, note)


def _of_parents(stages: Figures, title: str) -> Table:
    rows = [
        [STAGE_NAMES[name], _money(stage["money"]), *_spread(stage)]
        for name, stage in stages.items()
        if name == "total" or stage["money"] or stage["q25"] or stage["q75"]
    ]
    note = (
        f"{count(stages['total']['n'])} parents that traded, bps of what they traded at the mid of "
        "their first child's decision."
    )
    return Table(title, ["stage", "cost", "bps", "median", "IQR"], rows, note)


def model_server(figures: Figures) -> Table:
    """Wait and service of the inference server, and the rows that it did not answer."""
    server = figures["model_server"]
    if server is None:
        return Table("Model server", [], [])
    rows = [
        [name, count(q["n"]), *(duration(q[p]) for p in ("p50", "p90", "p99", "p99.9", "max"))]
        for name in ("wait", "service", "signal age at venue")
        if (q := server[name])["n"]
    ]
    lost = ", ".join(f"{count(server[name])} {name}" for name in LOST)
    a_service = server["signals_a_service"]
    batches = "" if a_service is None else f", {a_service:.2f} a service"
    note = f"{count(server['signals'])} signals{batches}; rows never answered: {lost}."
    return Table("Model server", ["", "n", "p50", "p90", "p99", "p99.9", "max"], rows, note)


def reuse(figures: Figures) -> Table:
    """Rows answered by an earlier answer, and what was left to compute when the market stormed."""
    rows, notes = [], []
    for model in figures["reuse"]:
        for weather in ("all", "calm", "storm"):
            w = model[weather]
            if not w["seconds"]:
                continue
            a_second = w["to_compute_a_second"]
            rows.append(
                [
                    f"{model['name']}, {weather}",
                    *(count(w[name]) for name in ("seconds", "rows", "reused", "shadows")),
                    count(w["misses"]),
                    share(w["hit_rate"]),
                    *(count(a_second[p]) for p in ("p50", "p99", "max")),
                    f"{count(w['disagreed'])} of {count(w['compared'])}",
                    count(w["trips"]),
                ]
            )
        why = [f"{count(n)} {WHY_MISSED[name]}" for name, n in model["reasons"].items() if n]
        notes.append(f"{model['name']} missed: {', '.join(why) or 'none'}.")
    head = ["model", "seconds", "rows", "reused", "shadows", "misses", "hit rate"]
    head += ["to compute/s p50", "p99", "max", "shadows disagreed", "times off"]
    note = (
        "By seconds of market time; storm: more than twice the median of rows. Hits are what is "
        "reused and shadows, which are computed all the same; what the server then drops is "
        f"counted as to be computed. {' '.join(notes)}"
    )
    return Table("Reuse of answers", head, rows, note)


def footprint(figures: Figures) -> Table:
    """What our own trading did to the market; nothing where it did nothing."""
    limits, rows = figures["venue_limits"], []
    for each in figures["footprint"]:
        stirred = each["taker_lots"] or each["extrapolated_fills"] or each["overlay_ticks"]
        if not (stirred or any(limits.values())):
            continue
        net = next(i["net"] for i in figures["instruments"] if i["name"] == each["name"])
        rows.append(
            [
                each["name"] + (f" [{each['currency']}]" if each["currency"] else ""),
                count(each["taker_lots"]),
                share(each["volume_share"]),
                share(each["extrapolated_share"]),
                _money(each["impact"]),
                f"{each['overlay_ticks']:+.3g}" if each["overlay_ticks"] else "0",
                amount(net, signed=True),
                amount(net + each["overlay_worth"], signed=True),
            ]
        )
    head = ["instrument", "lots taken", "of volume", "extrapolated", "impact paid"]
    head += ["overlay left [ticks]", "net", "net with overlay"]
    note = (
        f"Lots that takers did not get: {count(limits['taker_unfilled_lots'])} unfilled in all, "
        f"{count(limits['faded_lots'])} faded before they came, {count(limits['capped_lots'])} "
        "beyond the participation cap. Of volume: all our fills, makers' too."
    )
    return Table("Footprint", head, rows, note)


def cost_checks(figures: Figures) -> Table:
    """Simulated costs beside three laws of what trading costs."""
    rows = [
        [
            f"{check['name']} {check['of']}",
            check["law"],
            count(check["n"]),
            _money(check["simulated"]),
            _money(check["expected"]),
            NONE if check["ratio"] is None else f"{check['ratio']:.2f}",
            share(check["in_band"]),
            "outside" if check["flagged"] else "inside",
        ]
        for check in figures["cost_checks"]
    ]
    low, high = BAND
    head = ["orders", "law", "n", "simulated", "law's", "ratio", f"within {low:g}-{high:g}", "all"]
    note = "A check, not a part of the result: laws of large trades, in the run's own volatility."
    return Table("Costs beside laws", head, rows, note)


ONE_EACH: tuple[Callable[[Figures], Table], ...] = (
    model_server,
    reuse,
    footprint,
    cost_checks,
)


def _spread(stage: Figures | None) -> list[str]:
    if stage is None:
        return [""] * 3
    middle = f"{_bps(stage['q25'])}..{_bps(stage['q75'])}"
    return [_bps(stage["bps"]), _bps(stage["median"]), middle]


def _bps(value: float | None) -> str:
    if value is None:
        return NONE
    return "0" if not value else f"{value:.3f}" if abs(value) >= 0.001 else f"{value:.0e}"


def _money(value: float) -> str:
    return amount(value, signed=True) if value else "0"

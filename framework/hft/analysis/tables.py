"""Tables of a report as rows of text: the page and the terminal show the same ones."""

from __future__ import annotations

from dataclasses import dataclass

from hft.analysis.figures import Figures
from hft.analysis.records import MARKOUT_NS
from hft.analysis.units import MONEY_PER_UNIT, amount, count, duration, share, span, utc, with_error


@dataclass(frozen=True, slots=True)
class Table:
    """Text cells; the first column names the row, the others are set flush right."""

    title: str
    head: list[str]
    rows: list[list[str]]
    note: str = ""


def headline(figures: Figures) -> list[tuple[str, str, str]]:
    """The first figures of a report: name, value, and a word of context."""
    head, account = figures["headline"], (figures["accounts"] or [None])[0]
    currency = head["currency"] or ""
    bracket = figures["bracket"]
    rows = [
        ("Net result", amount(head["net"], signed=True), currency),
        (
            "Under risk-averse queue",
            amount(bracket["net"], signed=True) if bracket else "-",
            f"{count(bracket['fills'])} fills, fill ratio {share(bracket['fill_ratio'])}"
            if bracket
            else "not run",
        ),
        ("Per turnover", f"{amount(head['bps_of_turnover'], signed=True)}", "bps"),
        ("Turnover", amount(head["turnover"]), currency),
    ]
    if account is not None:
        rows += [_sharpe(account), _drawdown(account)]
    passive = share(figures["orders"]["passive_fill_ratio"])
    rows += [
        ("Fills", count(head["fills"]), f"of {count(head['orders'])} orders"),
        ("Fill ratio", share(head["fill_ratio"]), f"{passive} of lots that rested"),
        ("Maker share", share(head["maker_share"]), "of filled lots"),
        ("Signal age", duration(head["signal_age_p50_ns"]), "p50, at the venue"),
    ]
    return rows


def pnl(figures: Figures) -> Table:
    """The identity, instrument by instrument."""
    rows = []
    for each in figures["instruments"]:
        parts = (each[name] for name in ("net", "spread", "inventory"))
        residual = each["residual_e9"]
        rows.append(
            [
                f"{each['name']}" + (f" [{each['currency']}]" if each["currency"] else ""),
                *(amount(part, signed=True) for part in parts),
                amount(-each["fees"], signed=True),
                amount(each["funding"], signed=True),
                amount(-each["impact"], signed=True),
                _residual(residual, holds=each["identity_holds"]),
                amount(each["turnover"]),
            ]
        )
    head = ["instrument", "net", "spread", "inventory", "fees", "funding", "impact"]
    head += ["residual", "turnover"]
    note = (
        "Net = spread + inventory + fees + funding + impact; "
        "the core's equity differs by the residual."
    )
    return Table("Profit and loss", head, rows, note)


def latency(figures: Figures) -> Table:
    """Legs by quantile."""
    rows = [
        [name, count(q["n"]), *(duration(q[p]) for p in ("p50", "p90", "p99", "p99.9", "max"))]
        for name, q in figures["latency"].items()
        if q["n"]
    ]
    note = (
        "Weighted by order. Compute = model wait + model service + strategy wait + strategy + risk."
    )
    return Table("Latency", ["leg", "orders", "p50", "p90", "p99", "p99.9", "max"], rows, note)


def markouts(figures: Figures) -> Table:
    """Mark-outs of makers and takers, instrument by instrument."""
    rows = []
    for each in figures["instruments"]:
        for role, points in each["markouts"].items():
            if points[0]["fills"] or points[1]["fills"]:
                ticks = [with_error(point["ticks"], point["ticks_se"]) for point in points]
                rows.append([f"{each['name']} {role}", *ticks])
    horizons = ["at fill", *(span(ns) for ns in MARKOUT_NS)]
    note = "Ticks, lot-weighted, ± one standard error with fills of one horizon taken together."
    return Table("Mark-outs", ["fills", *horizons], rows, note)


def trading(figures: Figures) -> Table:
    """Inventory, activity and queue, instrument by instrument."""
    rows = []
    for each in figures["instruments"]:
        held, done, queue = each["holding"], each["activity"], each["queue_ahead"]
        rows.append(
            [
                each["name"],
                count(done["fills"]),
                share(done["fill_ratio"]),
                share(done["maker_share"]),
                share(done["cancel_ratio"]),
                amount(done["order_to_trade"]),
                f"{amount(held['mean_abs'])} / {amount(held['p99_abs'])}",
                share(held["time_flat"]),
                f"{amount(queue['p50'])} / {amount(queue['p90'])}",
            ]
        )
    head = ["instrument", "fills", "fill ratio", "maker", "canceled", "msgs/trade"]
    head += ["|position| mean / p99", "time flat", "queue ahead p50 / p90"]
    return Table("Trading", head, rows, "Positions and queue in lots.")


def refusals(figures: Figures) -> Table:
    """Orders refused, by reason."""
    rows = [[_words(name), count(n)] for name, n in figures["orders"]["refusals"].items()]
    return Table("Refused orders", ["reason", "orders"], rows)


def endings(figures: Figures) -> Table:
    """Orders by final state."""
    rows = [[_words(name), count(n)] for name, n in figures["orders"]["endings"].items()]
    return Table("Final states", ["state", "orders"], rows)


def variants(figures: Figures) -> Table:
    """The run beside itself under the risk-averse queue and changed in one respect."""
    runs = [("this run", figures["headline"])]
    if figures["bracket"]:
        runs.append(("risk-averse queue", figures["bracket"]))
    runs += [(variant["name"], variant) for variant in figures["variants"]]
    rows = [
        [
            name,
            amount(run["net"], signed=True),
            amount(run["bps_of_turnover"], signed=True),
            count(run["fills"]),
            share(run["fill_ratio"]),
            share(run["maker_share"]),
            amount(run["max_drawdown"]),
            duration(run["signal_age_p50_ns"]),
        ]
        for name, run in runs
    ]
    head = ["run", "net", "bps", "fills", "fill ratio", "maker", "drawdown", "signal age p50"]
    return Table("The same run, changed", head, rows if len(rows) > 1 else [])


def counters(figures: Figures) -> Table:
    """What the engine counted, and where the wall time went."""
    rows = [[_words(name), count(value)] for name, value in figures["counters"].items()]
    rows += [[f"{name} [wall]", duration(s * 1e9)] for name, s in figures["stages_s"].items()]
    return Table("Engine", ["", ""], rows)


def about(figures: Figures) -> list[str]:
    """One line each on the period, the speed and what computed each model."""
    run = figures["run"]
    if not run["ts_end"]:
        return ["No market data were reached."]
    lines = [
        f"{utc(run['ts_start'])[:19]} to {utc(run['ts_end'])[:19]} UTC "
        f"({duration(run['market_s'] * 1e9)})"
    ]
    speed = (
        ""
        if run["times_real_time"] is None
        else f", {count(round(run['times_real_time'], 2))}x real time"
    )
    rate = "" if run["rows_a_second"] is None else f", {count(round(run['rows_a_second']))} rows/s"
    lines.append(
        f"{count(run['rows'])} market rows in {duration(run['wall_s'] * 1e9)}{rate}{speed}"
    )
    for key, computed_by in figures["environment"].items():
        if key.startswith("model_"):
            lines.append(f"{key.removeprefix('model_')} is computed by {computed_by}")
    return lines


def _sharpe(account: Figures) -> tuple[str, str, str]:
    sharpe, annual = account["sharpe"], account["annual"]
    if annual is not None:
        return (
            "Sharpe a year",
            f"{annual['sharpe']:.2f}",
            f"{annual['sharpe_lo']:.2f} Lo, {annual['days']} days",
        )
    if sharpe["ratio"] is None:
        return (
            "t of mean gain",
            "-",
            f"{sharpe['increments']} x {span(sharpe['sampling_ns'])}: too few",
        )
    low, high = sharpe["ci95"]
    words = (
        f"Sharpe {sharpe['ratio']:.3f} [{low:.3f}, {high:.3f}] per {span(sharpe['sampling_ns'])}"
    )
    return ("t of mean gain", f"{sharpe['t_stat_lo']:.2f}", words)


def _drawdown(account: Figures) -> tuple[str, str, str]:
    fall = account["drawdown"]
    return (
        "Max drawdown",
        amount(fall["depth"]),
        f"{duration(fall['longest_ns'])} under water",
    )


def _residual(residual_e9: float | None, *, holds: bool) -> str:
    if residual_e9 is None:
        return "not checked" if holds else "BROKEN"
    if not holds:
        return f"BROKEN: {amount(residual_e9 / MONEY_PER_UNIT)}"
    return "0" if residual_e9 == 0 else f"{residual_e9:g}e-9"


def _words(name: str) -> str:
    return name.replace("_", " ").lower()

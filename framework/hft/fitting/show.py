"""Fits as tables in a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from hft.fitting.impact import ImpactFit
    from hft.fitting.queue import QueueFit
    from hft.fitting.refill import RefillFit


def show_queue(fit: QueueFit, console: Console) -> None:
    """The exponent, by kind of queue and by model."""
    head = f"{fit.source.name}: n of power3 from {fit.informative:,} of {fit.cancels:,} cancels"
    table = _table(head, "", "cancels", "that tell", "n (95 % interval)")
    table.add_row(
        f"all, at most {fit.near_ticks} ticks behind",
        f"{fit.cancels:,}",
        f"{fit.informative:,}",
        fit.n.text(),
    )
    for group in fit.groups:
        n = group.n.text() if group.n else "too few"
        table.add_row(group.label, f"{group.cancels:,}", f"{group.informative:,}", n)
    console.print(table)
    console.print(
        f"standard error if cancels were independent {fit.se:.2g}; midpoints would give "
        f"{fit.midpoint_n:.3g}; largest gap between their law and u^n {fit.largest_gap:.3f}"
    )
    if not fit.models:
        return
    table = _table(
        "Was a cancel before or behind an order?",
        "model",
        "n (95 % interval)",
        "loss, bits",
    )
    for each in sorted(fit.models, key=lambda m: m.loss):
        table.add_row(each.model, each.n.text() if each.n else "", f"{each.loss:.4f}")
    console.print(table)


def show_refill(fit: RefillFit, console: Console) -> None:
    """Half-life, b, and how often depth comes back."""
    head = f"{fit.source.name}: depth of {fit.levels} levels after {fit.sweeps:,} trades"
    table = _table(head, "", "95 % interval")
    table.add_row("half-life, s", fit.half_life_s.text())
    table.add_row("b, lots that go for a lot traded", fit.b.text())
    table.add_row("of a lot, back in 3 half-lives: seen", fit.recovery.text(2))
    table.add_row("  by the fit", f"{fit.modelled_recovery:.2g}")
    if fit.share:
        share = fit.share
        table.add_row("share of trades that refill", share.probability.text())
        table.add_row(
            f"  {share.trades:,} trades of {share.large_lots:,} lots or more: came back",
            f"{share.came_back:.3f}",
        )
        table.add_row(
            "  if they always did, if never", f"{share.if_always:.3f}, {share.if_never:.3f}"
        )
    elif not fit.untold:
        table.add_row("share of trades that refill", "the data cannot tell")
    console.print(table)
    _show_untold(fit.untold, console)


def show_impact(fit: ImpactFit, console: Console) -> None:
    """The kernel, and what else the response is made of."""
    table = _table(
        f"{fit.source.name}: push of the mid by {fit.sweeps:,} trades", "", "ticks a lot (95 %)"
    )
    for weight, half_life in zip(fit.weights, fit.half_lives_s, strict=True):
        table.add_row(f"half-life {half_life:g} s", weight.text())
    table.add_row("permanent", fit.permanent.text())
    table.add_row("at once, all together", fit.at_once.text())
    table.add_row("walked levels, beside it", f"{fit.walked:.3g}")
    console.print(table)
    how = "fitted to these data" if fit.heal_fitted else "not fitted"
    moves = f"the mid's moves over {fit.step_ns / 1e9:g} s"
    told = f"kernel and walk explain {100 * fit.r2:.2g} % of {moves}"
    if fit.r2 < 0:
        told = f"sweeps move the mid less than by the levels shown: they explain nothing of {moves}"
    console.print(f"walked levels heal in {fit.heal_s:.3g} s ({how}); {told}")
    if fit.ofi:
        ofi = fit.ofi
        console.print(
            f"order flow imbalance, {ofi.windows:,} windows of 10 s: {ofi.beta:.3g} ticks a lot = "
            f"{ofi.c:.2g} / {ofi.depth:.3g} lots at the touch, R2 {ofi.r2:.2f}"
        )
    if fit.unsided:
        console.print(f"{fit.unsided:,} prints do not say who took and were left out")
    console.print(
        "The tape's response contains what other traders knew: take the kernel as an upper bound, "
        "and scale it by your own measured response once there is one."
    )
    _show_untold(fit.untold, console)


def _show_untold(untold: tuple[str, ...], console: Console) -> None:
    for why in untold:
        console.print(f"The data cannot tell: {why}.", style="yellow")


def _table(title: str, *columns: str) -> Table:
    from rich.table import Table

    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=None,
        header_style="dim",
        padding=(0, 2, 0, 0),
        pad_edge=False,
    )
    for at, column in enumerate(columns):
        table.add_column(column, justify="right" if at else "left", overflow="fold")
    return table

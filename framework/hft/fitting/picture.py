"""Pictures of fits, as PNG."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from hft.fitting.impact import ImpactFit
    from hft.fitting.queue import Group, QueueFit
    from hft.fitting.refill import RefillFit

SEEN, FITTED, OTHER, FAINT = "#1f5fa8", "#c8452d", "#2f8f5b", "#8a8f98"
WIDTH, HEIGHT, DPI = 11.0, 4.8, 110


def draw_queue(fit: QueueFit) -> bytes:
    """The cumulative law of cancels against u^n, and n by kind of queue."""
    figure, (left, right) = figure_of(f"Where cancels stand in the queue: {fit.source.name}")
    u = np.linspace(0, 1, len(fit.curve))
    left.fill_between(u, u**fit.n.high, u**fit.n.low, color=FITTED, alpha=0.2, lw=0)
    left.plot(u, u**fit.n.value, color=FITTED, lw=2, label=f"$u^n$, n = {fit.n.text()}")
    left.plot(u, fit.curve, color=SEEN, lw=2, label="cancels seen")
    left.plot(u, u, color=FAINT, lw=1, ls="--", label="uniform, n = 1")
    left.set(
        xlabel="u: share of the level before the cancelled order",
        ylabel="share of cancels at or before u",
        xlim=(0, 1),
        ylim=(0, 1),
        title=f"{fit.informative:,} cancels; largest gap to $u^n$: {fit.largest_gap:.3f}",
    )
    left.legend(loc="upper left", frameon=False)
    groups = [group for group in fit.groups if group.n]
    _draw_groups(right, groups, fit)
    return png(figure)


def _draw_groups(axes: Any, groups: list[Group], fit: QueueFit) -> None:
    for row, group in enumerate(reversed(groups)):
        n = group.n
        assert n is not None
        axes.plot([n.low, n.high], [row, row], color=SEEN, lw=2)
        axes.plot(n.value, row, "o", color=SEEN, ms=6)
    axes.axvspan(fit.n.low, fit.n.high, color=FITTED, alpha=0.2, lw=0)
    axes.axvline(fit.n.value, color=FITTED, lw=1.5, label="all together")
    axes.axvline(1, color=FAINT, lw=1, ls="--", label="uniform")
    axes.set_yticks(
        range(len(groups)), [f"{g.label}\n{g.informative:,}" for g in reversed(groups)], fontsize=8
    )
    axes.set(xlabel="n (95 % interval)", title="n by kind of queue, with number of cancels")
    ends = [1.0, fit.n.low, fit.n.high, *(x for g in groups if g.n for x in (g.n.low, g.n.high))]
    if max(ends) > 8 * min(ends):
        axes.set_xscale("log")
        _plain_ticks(axes)
    axes.legend(loc="best", frameon=False, fontsize=8)


def draw_refill(fit: RefillFit) -> bytes:
    """The profile of the half-life, and depth after trades with the model's."""
    figure, (left, right) = figure_of(f"How depth comes back after a trade: {fit.source.name}")
    h = fit.half_life_s
    left.plot(fit.half_lives_s, 1e3 * (fit.rest - 1), color=SEEN, lw=2, label="fit at each")
    left.axvspan(h.low, h.high, color=FITTED, alpha=0.2, lw=0, label="95 % interval")
    left.axvline(h.value, color=FITTED, lw=1.5)
    left.set(
        xscale="log",
        xlabel="half-life [s]",
        ylabel="sum of squares over the least [per mille]",
        title=f"half-life {h.text()} s, b = {fit.b.text()}",
    )
    left.legend(loc="upper center", frameon=False)
    right.plot(fit.lags_s, fit.response, "o-", color=SEEN, ms=3, lw=1.5, label="seen")
    right.plot(fit.lags_s, fit.modelled, color=FITTED, lw=2, label="the model's, same trades")
    right.axhline(0, color=FAINT, lw=1)
    right.set(
        xscale="log",
        xlabel="time since the trade [s]",
        ylabel="change of depth [lots a lot traded]",
        title=f"{fit.levels} best levels of the side hit, {fit.sweeps:,} trades",
    )
    right.legend(loc="best", frameon=False)
    for axes in (left, right):
        axes.xaxis.set_major_formatter("{x:g}")
    _say_untold(figure, fit.untold)
    return png(figure)


def draw_impact(fit: ImpactFit) -> bytes:
    """The kernel with its band, and the response of mids with what it is made of."""
    figure, (left, right) = figure_of(f"How the mid answers signed trades: {fit.source.name}")
    left.fill_between(fit.lags_s, *fit.band, color=FITTED, alpha=0.2, lw=0, label="95 % interval")
    left.plot(fit.lags_s, fit.kernel().at(fit.lags_s * 1e9), color=FITTED, lw=2, label="kernel")
    left.axhline(fit.permanent.value, color=FAINT, ls="--", lw=1, label="permanent part")
    left.set(
        xscale="log",
        xlabel="time since the trade [s]",
        ylabel="push [ticks a lot]",
        ylim=(0, None),
        title=f"beyond the walk; at once {fit.at_once.text()}",
    )
    left.legend(loc="best", frameon=False)
    kernel, walk = fit.modelled
    right.plot(fit.lags_s, fit.response, "o-", color=SEEN, ms=3, lw=1.5, label="seen")
    right.plot(fit.lags_s, kernel + walk, color=FITTED, lw=3, label="kernel and walk, same trades")
    right.plot(
        fit.lags_s, walk, color=OTHER, lw=1.5, label=f"walk alone, heals in {fit.heal_s:.3g} s"
    )
    right.axhline(0, color=FAINT, lw=1)
    right.set(
        xscale="log",
        xlabel="time since the trade [s]",
        ylabel="mean signed move of the mid [ticks]",
        title=f"response, {fit.sweeps:,} trades; others' information included",
    )
    right.legend(loc="best", frameon=False)
    for axes in (left, right):
        axes.xaxis.set_major_formatter("{x:g}")
    _say_untold(figure, fit.untold)
    return png(figure)


def figure_of(title: str, rows: int = 1, height: float = HEIGHT) -> tuple[Any, Any]:
    """A figure of `rows` times two axes, with its axes, (2,) or (rows, 2)."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height), dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, 2)
    for each in axes.flat:
        each.grid(visible=True, color="#e4e6ea", lw=0.8)
        each.set_axisbelow(True)
        each.spines[["top", "right"]].set_visible(False)
        each.title.set_fontsize(10)
    figure.suptitle(title, fontsize=12, fontweight="bold")
    return figure, axes


def _plain_ticks(axes: Any) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter

    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter(NullFormatter())


def _say_untold(figure: Any, untold: tuple[str, ...]) -> None:
    if untold:
        text = "The data cannot tell: " + "; ".join(untold)
        figure.supxlabel(text, fontsize=9, color=FITTED, wrap=True)


def png(figure: Any) -> bytes:
    """The figure's file."""
    # Without the version of the library the same fit is the same file.
    out = io.BytesIO()
    figure.savefig(out, format="png", metadata={"Software": None})
    return out.getvalue()

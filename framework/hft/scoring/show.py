"""Scores in a terminal, as JSON, and as a picture."""

from __future__ import annotations

import math
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from hft.analysis.tables import Table
from hft.fitting.picture import figure_of, png
from hft.scoring.queues import BY_PLACES, Score
from hft.whole_files import replacing

if TYPE_CHECKING:
    from rich.console import Console

    from hft.scoring.ghosts import Options
    from hft.scoring.statistics import Figures

TITLES = {
    "order": "real orders, each to its own end",
    "place": "places, as if every order had stayed to the horizon",
    "removed": "real orders, their own executions not printed",
}
HEAD = (
    "model",
    "n",
    "Brier, 1e-3",
    "behind the best, 1e-3",
    "skill",
    "bias, %",
    "time error, s",
    "90 %, s",
)
SHOWN = ("power1", BY_PLACES, "power3", "log1", "log2", "risk_averse")
COLOURS = ("#8a8f98", "#2f8f5b", "#1f5fa8", "#c58a1d", "#7a4fa3", "#c8452d")


def lines_of(figures: list[Figures]) -> list[tuple[str, ...]]:
    """Cells of a table, the best model first and `exact` last."""
    ordered = sorted(figures, key=lambda f: (f.model == "exact", f.brier.value))
    return [
        (
            f.model,
            "" if f.n is None else f"{f.n:.2f}",
            f.brier.fixed(1e3),
            "" if f.model == "exact" else f.behind_best.fixed(1e3),
            f"{f.skill.value:.4f}",
            f.bias.fixed(100),
            f.time_error_s.fixed(digits=3),
            "" if math.isnan(f.time_error_p90_s) else f"{f.time_error_p90_s:.2f}",
        )
        for f in ordered
    ]


def about(score: Score) -> str:
    """What was scored, in words."""
    cancels = score.cancels_n.fixed() if score.cancels_n else "too few cancels"
    ends = ", ".join(f"{end} {count:,}" for end, count in score.ends.items() if count)
    return (
        f"{score.name}: {score.candidates:,} orders came to rest; n fitted on {score.fitted_on:,}, "
        f"{score.scored:,} later ones scored, in {score.blocks} blocks of {score.block_s / 60:g} "
        f"min; {score.filled:.1%} filled, {score.place_filled:.1%} of places reached; "
        f"{score.queued:.1%} had somebody before them. Ends: {ends}. Fates that first in, first "
        f"out does not explain: {score.wrong_exact:,}. n of power3 by where cancels stood: "
        f"{cancels}."
    )


def show_score(score: Score, console: Console) -> None:
    """The tables of one instrument."""
    from hft.analysis.terminal import rich_table

    console.print(about(score))
    for window, title in TITLES.items():
        rows = [list(line) for line in lines_of(getattr(score, window))]
        console.print()
        table = Table(f"{score.name}: {title}", list(HEAD), rows)
        console.print(rich_table(table, console.width))
    console.print()
    console.print(rich_table(_reliability(score), console.width))


def _reliability(score: Score) -> Table:
    """What the best model and the pessimist said of real orders, and what happened."""
    rows = []
    for figures in (score.best(), *(f for f in score.order if f.model == "risk_averse")):
        for each in figures.reliability:
            low = min(int(each.predicted * 10), 9) / 10
            rows.append(
                [
                    figures.model,
                    f"{low:.1f} to {low + 0.1:.1f}",
                    f"{each.orders:,}",
                    f"{100 * each.predicted:.1f}",
                    each.realised.fixed(100, 1),
                ]
            )
    head = ["model", "said", "orders", "mean said, %", "filled, %"]
    return Table(f"{score.name}: reliability", head, rows)


def markdown(score: Score) -> str:
    """The tables of one instrument, for a page."""
    parts = [about(score)]
    for window, title in TITLES.items():
        rows = [HEAD, ("---",) * len(HEAD), *lines_of(getattr(score, window))]
        table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
        parts.append(f"{score.name}: {title}\n\n{table}")
    return "\n\n".join(parts) + "\n"


def write(scores: list[Score], options: Options, folder: Path) -> list[Path]:
    """`queue-score.json`, `.md` and `.png` in a folder that is made if it is not there.

    All three are written, or none.
    """
    folder.mkdir(parents=True, exist_ok=True)
    fields = {name: getattr(options, name) for name in options.__slots__}
    told = {"options": fields, "scores": [score.to_dict() for score in scores]}
    contents = {
        "json": msgspec.json.format(msgspec.json.encode(told), indent=1),
        "md": "\n".join(markdown(score) for score in scores).encode(),
        "png": draw(scores),
    }
    paths = [folder / f"queue-score.{ending}" for ending in contents]
    with ExitStack() as stack:
        drafts = [stack.enter_context(replacing(path)) for path in paths]
        for draft, content in zip(drafts, contents.values(), strict=True):
            draft.write_bytes(content)
    return paths


def draw(scores: list[Score]) -> bytes:
    """Reliability of the models, a row an instrument: real orders, and places."""
    title = "Of orders that a model gave a probability, how many were filled?"
    figure, axes = figure_of(title, len(scores), 4.4 * len(scores) + 0.4)
    for score, pair in zip(scores, axes.reshape(-1, 2), strict=True):
        for window, each in zip(("order", "place"), pair, strict=True):
            _draw_reliability(each, score, window)
    return png(figure)


def _draw_reliability(axes: Any, score: Score, window: str) -> None:
    axes.plot([0, 1], [0, 1], color="#8a8f98", lw=1, ls="--")
    known = {f.model: f for f in getattr(score, window)}
    for i, (name, colour) in enumerate(zip(SHOWN, COLOURS, strict=True)):
        if name not in known:  # too few cancels
            continue
        bins = [b for b in known[name].reliability if b.orders >= 10]
        x = [b.predicted + 0.006 * (i - 2.5) for b in bins]  # side by side, or they hide each other
        y = [b.realised.value for b in bins]
        error = [[b.realised.value - b.realised.low for b in bins],
                 [b.realised.high - b.realised.value for b in bins]]  # fmt: skip
        n = "" if known[name].n is None else f" ({known[name].n:.2g})"
        axes.errorbar(x, y, yerr=error, fmt="o-", ms=3, lw=1.2, capsize=2, color=colour,
                      label=f"{name}{n}")  # fmt: skip
    axes.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), xlabel="said", ylabel="filled")
    axes.set_title(f"{score.name}: {TITLES[window]}", fontsize=9)
    axes.legend(loc="upper left", frameon=False, fontsize=8)

"""Which candidates of a sweep no other beats in both cost and worth, and a picture of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hft.whole_files import replacing


@dataclass(frozen=True, slots=True)
class Candidate:
    """One model of a sweep."""

    name: str
    model: str
    latency_weight: float
    units: int
    """Of all hidden layers, as they are left."""
    latency_ns: float
    """Of a row, by the latency table."""
    log_loss: float
    auc: float
    """Mean of up and down, on the test slice."""
    net: float | None = None
    """Of the backtest, in the account's currency; None: there was no strategy to run."""
    placebo_net: float | None = None
    """The same with signals of other rows."""


def pareto(points: Sequence[tuple[float, float]]) -> list[int]:
    """Numbers of the points that no other beats, by cost ascending.

    A point is (cost, worth): less cost and more worth are better. One point beats another that it
    equals in one and surpasses in the other; equal points stand for each other, the first stays.
    """
    order = sorted(range(len(points)), key=lambda n: (points[n][0], -points[n][1], n))
    front: list[int] = []
    for n in order:
        if not front or points[n][1] > points[front[-1]][1]:
            front.append(n)
    return front


def write_csv(candidates: Sequence[Candidate], path: Path) -> None:
    """One line a candidate; whether it is on each front stands beside its figures."""
    import polars as pl

    accuracy, profit = _fronts(candidates)
    frame = pl.DataFrame([asdict(c) for c in candidates], infer_schema_length=None).with_columns(
        pl.Series("on_accuracy_front", [n in accuracy for n in range(len(candidates))]),
        pl.Series("on_profit_front", [n in profit for n in range(len(candidates))]),
    )
    with replacing(path) as draft:
        frame.write_csv(draft)


def _fronts(candidates: Sequence[Candidate]) -> tuple[list[int], list[int]]:
    ran = [n for n, c in enumerate(candidates) if c.net is not None]
    profit = pareto([(candidates[n].latency_ns, float(candidates[n].net or 0)) for n in ran])
    accuracy = pareto([(c.latency_ns, -c.log_loss) for c in candidates])
    return accuracy, [ran[n] for n in profit]


def draw(candidates: Sequence[Candidate], path: Path, title: str) -> None:
    """Log loss over latency; beside it net profit over latency, where there was a backtest."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    accuracy, profit = _fronts(candidates)
    figure = Figure(figsize=(11, 4.5) if profit else (6, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(1, 2 if profit else 1, squeeze=False)[0]
    figure.suptitle(title)
    x = [c.latency_ns for c in candidates]
    _panel(axes[0], candidates, x, [c.log_loss for c in candidates], accuracy)
    axes[0].set_ylabel("log loss on the test slice [nats]")
    axes[0].set_title("accuracy and latency")
    if profit:
        _panel(axes[1], candidates, x, [c.net for c in candidates], profit)
        placebo = [(c.latency_ns, c.placebo_net) for c in candidates if c.placebo_net is not None]
        axes[1].scatter(*zip(*placebo, strict=True), marker="x", color="0.5", label="placebo")
        axes[1].legend(frameon=False)
        axes[1].set_ylabel("net profit of the backtest")
        axes[1].set_title("profit and latency")
    with replacing(path) as draft:
        figure.savefig(draft, format="png", dpi=110)


def _panel(
    axes: Any, candidates: Sequence[Candidate], x: list[float], y: list[Any], front: list[int]
) -> None:
    axes.scatter(x, y, color="0.6", label="beaten")
    axes.plot([x[n] for n in front], [y[n] for n in front], "o-", color="C0", label="front")
    for n, candidate in enumerate(candidates):
        if y[n] is not None:
            left = x[n] > (min(x) + max(x)) / 2
            axes.annotate(
                candidate.name,
                (x[n], y[n]),
                (-5 if left else 5, 4),
                textcoords="offset points",
                fontsize=7,
                ha="right" if left else "left",
            )
    axes.margins(0.15)
    axes.ticklabel_format(useOffset=False)  # "1e-5 + 1.096" above an axis is read by nobody
    axes.set_xlabel("latency of a row by the table [ns]")
    axes.grid(alpha=0.3)

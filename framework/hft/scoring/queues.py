"""`hft score queue`: from data to figures of every queue model, for each instrument and for all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hft.errors import ConfigError, DataError
from hft.scoring.exponents import WINDOWS, Part, fit_n
from hft.scoring.ghosts import (
    ENDS,
    MODELS,
    WITH_N,
    Hidden,
    Int,
    Model,
    Options,
    Window,
    candidates,
    hide,
    split,
)
from hft.scoring.statistics import Blocks, Figures, figures_of

if TYPE_CHECKING:
    from hft.data.opening import MarketData
    from hft.fitting.blocks import Estimate
    from hft.fitting.tape import Source

Progress = Callable[[str], AbstractContextManager[Callable[[int, float], None]]]
"""As `hft.data.progress.progress`: named, told (rows so far, share done)."""

BY_PLACES = "power3, n of cancels"
"""power3 with the n that fits where cancels stood, not what was filled."""


@dataclass(frozen=True, slots=True)
class Score:
    """What was found for one instrument, or for all as one."""

    name: str
    candidates: int
    fitted_on: int
    scored: int
    blocks: int
    block_s: float
    filled: float
    """Share of the scored whose order was filled in its window."""
    place_filled: float
    """Share whose place was reached."""
    queued: float
    """Share that somebody stood before."""
    ends: dict[str, int]
    wrong_exact: int
    """Orders whose fate first in, first out does not explain."""
    cancels_n: Estimate | None
    """Of power3, from where cancels stood in the first part; None: too few."""
    order: list[Figures]
    place: list[Figures]
    removed: list[Figures]
    """As `order`, with the hidden orders' own executions left out of the prints."""

    def best(self, window: str = "order") -> Figures:
        """The model with the least Brier score."""
        figures: list[Figures] = getattr(self, window)
        return min((f for f in figures if f.model != "exact"), key=lambda f: f.brier.value)

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Prepared:
    """The two parts of one instrument's orders."""

    source: Source
    candidates: int
    early: Int
    late: Int
    begins: int
    """When the first order that is scored arrived."""


def score_queues(
    market: MarketData,
    path: str,
    *,
    options: Options,
    progress: Progress,
    symbols: tuple[str, ...] = (),
    date: str | None = None,
) -> list[Score]:
    """A score for each instrument and, where there are several, one for all.

    Args:
        market: opened data.
        path: of the data, for messages.
        options: how orders are hidden.
        progress: a context that tells how far a pass is.
        symbols: instruments; none: all there are.
        date: UTC day; none: all there are.

    Raises:
        ConfigError: an option makes no sense, or there is no such instrument or day.
        DataError: the data tell levels, or too few orders.
    """
    _require_sound(options)
    prepared = []
    for source in _sources(market, path, symbols, date):
        with progress(f"{source.name}: orders") as tell:
            prepared.append(_prepare(source, options))
            tell(prepared[-1].candidates, 1.0)
    groups = [[each] for each in prepared]
    if len(prepared) > 1:
        groups.append(prepared)
    scores = []
    for group in groups:
        name = group[0].source.name if len(group) == 1 else "pooled"
        with progress(f"{name}: fitting and scoring") as tell:
            scores.append(_score(name, group, options, tell))
    return scores


def _require_sound(options: Options) -> None:
    for name, value, least in (
        ("horizon", options.horizon_ns, 1),
        ("levels", options.levels, 1),
        ("ghosts", options.ghosts, 1),
        ("particles", options.particles, 2),
        ("seed", options.seed, 0),
    ):
        if value < least:
            raise ConfigError(f"{name} is {value}: expected at least {least}")
    if not 0 < options.share < 1:
        raise ConfigError(f"share is {options.share}: expected above 0 and below 1")


def _sources(
    market: MarketData, path: str, symbols: tuple[str, ...], date: str | None
) -> list[Source]:
    from hft.fitting.tape import sources_of

    sources = sources_of(market, path, symbols, None, None)
    if date is None:
        return sources
    for source in sources:
        days = market.days(source.name)
        if date not in days:
            raise ConfigError(
                f"{path}: {source.name} has no rows of {date!r}; it has {', '.join(days)}"
            )
    after = str(np.datetime64(date, "D") + 1)
    return [replace(source, start=date, end=after) for source in sources]


def _prepare(source: Source, options: Options) -> Prepared:
    rows, count = candidates(source, options)
    fates = hide(source, rows, [], options).rows
    early, late = split(fates, options)
    if len(early) == 0:
        raise DataError(
            f"{source.path}: {source.name}: no order's window of {options.horizon_ns / 1e9:g} s "
            "ends before the scored part begins; want more data or a shorter horizon"
        )
    return Prepared(source, count, early, late, int(fates["ts"][fates["row"] == late[0]][0]))


def _score(
    name: str, group: Sequence[Prepared], options: Options, tell: Callable[[int, float], None]
) -> Score:
    early: list[Part] = [(each.source, each.early) for each in group]
    orders = sum(len(rows) for _, rows in early)
    fitted = fit_n(early, options, lambda share: tell(orders, 0.8 * share))
    of_cancels = _n_of_cancels(group, options)
    models = {w: _models(fitted[w], of_cancels) for w in WINDOWS}
    both = models["order"] + models["place"]
    kept = [hide(each.source, each.late, both, options) for each in group]
    without = [
        hide(each.source, each.late, models["order"], options, prints_removed=True)
        for each in group
    ]
    tell(orders, 0.9)
    rows = np.concatenate([h.rows for h in kept])
    blocks = Blocks(rows["ts"], options.horizon_ns, options.seed)
    half = len(models["order"])
    order = _joined(kept, "order", slice(half))
    place = _joined(kept, "place", slice(half, None))
    removed = _joined(without, "order", slice(None))
    exact = {"order": rows["ts_exact"], "removed": np.concatenate([h.exact for h in without])}
    labels = {w: [_label(m, i, half) for i, m in enumerate(models[w])] for w in WINDOWS}
    common = (rows["ahead"] > 0, blocks, options.particles)
    return Score(
        name=name,
        candidates=sum(each.candidates for each in group),
        fitted_on=orders,
        scored=len(rows),
        blocks=blocks.count,
        block_s=blocks.length_ns / 1e9,
        filled=float(order.filled.mean()),
        place_filled=float(place.filled.mean()),
        queued=float((rows["ahead"] > 0).mean()),
        ends={end: int((rows["end"] == i).sum()) for i, end in enumerate(ENDS)},
        wrong_exact=int((rows["ts_exact"] != rows["ts_fill"]).sum()),
        cancels_n=of_cancels,
        order=_figures(labels["order"], order, exact["order"], *common),
        place=_figures(labels["place"], place, None, *common),
        removed=_figures(labels["order"], removed, exact["removed"], *common),
    )


def _models(fitted: dict[str, float], of_cancels: Estimate | None) -> list[Model]:
    models = [Model(name, fitted.get(name, 1.0)) for name in MODELS]
    return models if of_cancels is None else [*models, Model("power3", of_cancels.value)]


def _label(model: Model, at: int, count: int) -> tuple[str, float | None]:
    if count > len(MODELS) and at == count - 1:
        return BY_PLACES, model.n
    return model.name, model.n if model.name in WITH_N else None


def _n_of_cancels(group: Sequence[Prepared], options: Options) -> Estimate | None:
    """The other way to n: by maximum likelihood from where the first part's cancels stood."""
    from hft.fitting.queue import FEWEST, exponent
    from hft.fitting.tape import CANCEL, read_cancels

    found = [np.empty(0, CANCEL)]
    for each in group:
        found.append(read_cancels(replace(each.source, end=each.begins), options.levels - 1))
    cancels = np.concatenate(found)
    cancels = cancels[cancels["gone"] < cancels["level"]]
    if len(cancels) < FEWEST:
        return None
    try:
        return exponent(cancels[np.argsort(cancels["ts"], kind="stable")])[0]
    except DataError:  # all within a few moments
        return None


def _joined(hidden: Sequence[Hidden], window: str, models: slice) -> Window:
    each: list[Window] = [getattr(h, window) for h in hidden]
    return Window(
        np.concatenate([w.filled for w in each]),
        np.concatenate([w.ts_filled for w in each]),
        np.concatenate([w.probability[:, models] for w in each]),
        np.concatenate([w.ts_median[:, models] for w in each]),
    )


def _figures(
    labels: list[tuple[str, float | None]],
    window: Window,
    ts_exact: Int | None,
    queued: Any,
    blocks: Blocks,
    particles: int,
) -> list[Figures]:
    probability, ts_median = window.probability, window.ts_median
    if ts_exact is not None:
        labels = [*labels, ("exact", None)]
        known = ts_exact < np.iinfo(np.int64).max
        probability = np.column_stack([probability, known])
        ts_median = np.column_stack([ts_median, ts_exact])
    return figures_of(
        labels, probability, window.filled, window.ts_filled, ts_median, queued, blocks, particles
    )

"""Real orders hidden one by one, and what queue models make of each: the passes over the data.

The rules stand at the head of framework/core/ghosts.hpp and in docs/queue-score.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hft.errors import DataError
from hft.features import as_words

if TYPE_CHECKING:
    from hft.fitting.tape import Source

Int = NDArray[np.int64]
Float = NDArray[np.float64]

MODELS = ("risk_averse", "power1", "power2", "power3", "log1", "log2", "uniform")
"""In the order of `hft::QueueModel` (framework/core/queue.hpp)."""
WITH_N = ("power1", "power2", "power3")
NEVER = int(np.iinfo(np.int64).max)
FEWEST = 200

GHOST = np.dtype(
    [
        ("row", "<i8"),  # of its ADD in the stream
        ("ts", "<i8"),  # it arrived, venue's clock
        ("ts_fill", "<i8"),  # first lot of the order filled; NEVER: not in its window
        ("ts_end", "<i8"),  # end of the order's window
        ("ts_place_fill", "<i8"),  # its place was reached, had it stayed
        ("ts_place_end", "<i8"),
        ("ts_exact", "<i8"),  # prints used up the true queue before it
        ("price", "<i8"),
        ("lots", "<i8"),
        ("ahead", "<i8"),  # lots before it when it arrived
        ("level", "<i4"),  # 0: at its side's best
        ("side", "i1"),
        ("end", "u1"),  # an `ENDS` index
        ("pad", "V2"),
    ]
)
"""The same bytes as `hft::GhostRow`."""
ENDS = ("horizon or filled", "cancelled", "moved", "trading stopped", "data ended")


@dataclass(frozen=True, slots=True)
class Options:
    """How orders are hidden and models scored."""

    horizon_ns: int = 60_000_000_000
    levels: int = 5
    """Furthest from the touch that orders are hidden: 1 is the touch alone."""
    ghosts: int = 20_000
    """At most, an instrument."""
    particles: int = 64
    seed: int = 1
    share: float = 0.5
    """Of the ghosts, by time, that n is fitted on; the others are scored."""
    replace_keeps: int = 0
    """The venue's rule, as `[venue] replace_keeps`: its number."""


@dataclass(frozen=True, slots=True)
class Model:
    """A queue model with its n; 1 where it has none."""

    name: str
    n: float = 1.0

    def core(self) -> tuple[int, float]:
        """As the core takes it."""
        return MODELS.index(self.name), self.n


@dataclass(frozen=True, slots=True)
class Window:
    """What happened in one kind of window, and what each model said."""

    filled: NDArray[np.bool_]
    """(ghosts,)"""
    ts_filled: Int
    """(ghosts,); NEVER: not filled."""
    probability: Float
    """(ghosts, models)"""
    ts_median: Int
    """(ghosts, models): when half of the filled particles were; NEVER: none was."""


@dataclass(frozen=True, slots=True)
class Hidden:
    """Ghosts of one instrument."""

    rows: NDArray[Any]
    """GHOST, (ghosts,), by time."""
    order: Window
    place: Window

    @property
    def exact(self) -> Int:
        """When the known queue was used up, in the order's window, (ghosts,)."""
        ts: Int = self.rows["ts_exact"]
        return ts


def candidates(source: Source, options: Options) -> tuple[Int, int]:
    """Rows of the orders to hide, rising, and how many could have been.

    Raises:
        DataError: the data tell levels, or too few orders.
    """
    from hft import _core

    kinds = source.market.kinds(source.name, source.start, source.end)
    if not kinds & {"ADD", "REPLACE"}:
        what = "tells levels, not orders" if "LEVEL" in kinds else "holds no orders"
        raise DataError(
            f"{source.path}: {source.name} {what}: what happened to any one order is not in it. "
            "Want a feed of orders (L3): shanghai, databento MBO, itch ..."
        )
    scan = _core.GhostScan(options.levels, options.replace_keeps, options.seed)
    for rows in source.market.chunks(source.name, source.start, source.end):
        scan.feed(as_words(rows))
    if scan.candidates < FEWEST:
        raise DataError(
            f"{source.path}: {source.name}: {scan.candidates:,} orders came to rest within "
            f"{options.levels} levels of the touch in open trading; want at least {FEWEST}: take "
            "more data or more --levels"
        )
    return np.asarray(scan.choose(options.ghosts)), int(scan.candidates)


def hide(
    source: Source,
    rows: Int,
    models: Sequence[Model],
    options: Options,
    *,
    prints_removed: bool = False,
) -> Hidden:
    """One pass: hide the orders that came with `rows`, one by one.

    Args:
        source: a feed of orders.
        rows: from `candidates`.
        models: what is asked of each.
        options: as for `candidates`.
        prints_removed: leave the hidden order's own executions out of the prints.
    """
    from hft import _core

    ghosts = _core.Ghosts(
        rows.tolist(),
        [model.core() for model in models],
        options.particles,
        options.horizon_ns,
        prints_removed,
        options.replace_keeps,
        options.seed,
    )
    for events in source.market.chunks(source.name, source.start, source.end):
        ghosts.feed(as_words(events))
    ghosts.finish()
    out = np.asarray(ghosts.rows()).view(GHOST).reshape(-1)
    said = np.asarray(ghosts.forecasts()).reshape(len(out), len(models), 4)
    order, place = (
        Window(out[name] < NEVER, out[name], said[:, :, k] / options.particles, said[:, :, k + 1])
        for name, k in (("ts_fill", 0), ("ts_place_fill", 2))
    )
    return Hidden(out, order, place)


def split(hidden: NDArray[Any], options: Options) -> tuple[Int, Int]:
    """Rows to fit on and rows to score: earlier and later ones, no window of which meet."""
    first = round(len(hidden) * options.share)
    if first == 0 or first == len(hidden):
        raise DataError(f"{len(hidden):,} orders leave nothing to fit on or nothing to score")
    begins = hidden["ts"][first]
    early = hidden["ts"] + options.horizon_ns < begins
    return hidden["row"][early], hidden["row"][first:]

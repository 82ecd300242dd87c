"""How a price answers signed trades, as a kernel that a replay can charge.

Changes of the mid on a grid are regressed on the changes of sums of signed volume that decay with
half-lives in a geometric row, weights >= 0 (non-negative least squares), plus a part that stays.
Such a kernel starts at once and falls convexly, which is what keeps it from paying round trips.

Moves over 1, 10 and 100 steps of the grid are looked at together, each as important as the others:
moves of one step alone say little of what stays.

What a sweep moves the mid by merely walking the displayed levels is taken out before, healing with
the refill's half-life: a replay charges that by the walk itself, and would charge it twice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hft.errors import DataError
from hft.execution.impact import Kernel
from hft.fitting.blocks import Estimate, block_of, of_draws, sums, weights
from hft.fitting.refill import LEVELS, STEP_NS, RefillFit, fit_depth
from hft.fitting.tape import Source, Tape, Tell, read_tape

Float = NDArray[np.float64]
Int = NDArray[np.int64]
Path = Callable[[Int], Float]
"""A mid [ticks] at sorted times."""

HALF_LIVES_S = (0.2, 1.0, 5.0, 25.0)
DEFAULT_HEAL_S = 1.0
FEWEST_SWEEPS = 100
LAGS_S = np.geomspace(0.01, 60, 40)
HORIZONS = (1, 10, 100)
"""Steps of the grid that a move is taken over, as far as a 30th of the data's time."""
WINDOWS = 30
OFI_WINDOW_NS = 10_000_000_000


@dataclass(frozen=True, slots=True)
class Ofi:
    """Mid changes [ticks] on order flow imbalance [lots] over 10 s: beta = c / depth."""

    beta: float
    """Ticks a lot."""
    depth: float
    """Mean lots at the touch, of both sides."""
    c: float
    """beta * depth; about 0.5 where the mid moves by half a tick when a touch is used up."""
    r2: float
    windows: int


@dataclass(frozen=True, slots=True)
class ImpactFit:
    """A kernel in ticks a lot, and what the tape's response is made of."""

    source: Source
    step_ns: int
    sweeps: int
    half_lives_s: tuple[float, ...]
    weights: tuple[Estimate, ...]
    permanent: Estimate
    at_once: Estimate
    """Sum of the weights and the permanent part."""
    heal_s: float
    """Half-life with which walked levels heal."""
    heal_fitted: bool
    """It was fitted to these data; else it was given, or the default."""
    walked: float
    """Mean ticks of mid a lot that sweeps move by walking, over all lots."""
    r2: float
    """Of the mid's changes over a step, as explained by the kernel and the walk."""
    lags_s: Float
    response: Float
    """Mean of sign * (mid at the lag - mid before) [ticks], (lags,)."""
    modelled: Float
    """The same of the fitted kernel's own path, and of the walk, (2, lags)."""
    band: Float
    """95 % interval of the kernel at each lag [ticks a lot], (2, lags)."""
    ofi: Ofi | None
    unsided: int
    untold: tuple[str, ...]

    def kernel(self) -> Kernel:
        """What a replay charges; refused by its own rules if it paid for pushing the price."""
        return Kernel(
            tuple(weight.value for weight in self.weights),
            tuple(round(half_life_s * 1e9) for half_life_s in self.half_lives_s),
            self.permanent.value,
        )


def fit_impact(
    source: Source,
    *,
    step_ns: int = STEP_NS,
    levels: int = LEVELS,
    heal_s: float | None = None,
    half_lives_s: tuple[float, ...] = HALF_LIVES_S,
    tell: Tell | None = None,
) -> ImpactFit:
    """Fit a kernel; walked levels heal with `heal_s`, else with the half-life that is fitted first.

    Raises:
        DataError: too few trades, or none that says who took.
    """
    tape = read_tape(source, step_ns=step_ns, levels=levels, tell=tell)
    return fit_prices(tape, source, heal_s=heal_s, half_lives_s=half_lives_s)


def fit_prices(
    tape: Tape,
    source: Source,
    *,
    heal_s: float | None = None,
    half_lives_s: tuple[float, ...] = HALF_LIVES_S,
) -> ImpactFit:
    """Fit to a tape."""
    if len(tape.sweeps) < FEWEST_SWEEPS:
        raise DataError(
            f"{source.path}: {source.name}: {len(tape.sweeps)} trades, want at least "
            f"{FEWEST_SWEEPS} to fit what prices do after them"
        )
    refill = None if heal_s else _refill(tape, source)
    heal = heal_s or (refill.half_life_s.value if refill else DEFAULT_HEAL_S)
    columns = _decayed(tape, np.ascontiguousarray(tape.grid["ts"]), half_lives_s)
    mid = tape.grid["mid2"] / 2
    walk = _walk(tape, np.ascontiguousarray(tape.grid["ts"]), heal * 1e9)
    values, draws, slope = _solve(_products(tape, columns, mid, walk))
    lags = np.array(LAGS_S)
    lots = tape.sweeps["lots"].sum()
    curves = np.array([_curve(lags, half_lives_s, draw) for draw in draws])
    at_once = of_draws(float(values.sum()), draws.sum(axis=1))
    estimates = [of_draws(float(v), d) for v, d in zip(values, draws.T, strict=True)]
    return ImpactFit(
        source,
        tape.step_ns,
        len(tape.sweeps),
        half_lives_s,
        tuple(estimates[:-1]),
        estimates[-1],
        at_once,
        heal,
        refill is not None,
        float(tape.sweeps["walked"].sum() / 2 / lots),
        _explained(tape, mid, columns @ values + walk),
        lags,
        _response(tape, _mid_at(tape)),
        np.array(
            [_response(tape, path) for path in _paths(tape, half_lives_s, values, heal * 1e9)]
        ),
        np.quantile(curves, [0.025, 0.975], axis=0),
        _ofi(tape),
        tape.unsided,
        _untold(slope),
    )


def _refill(tape: Tape, source: Source) -> RefillFit | None:
    try:
        refill = fit_depth(tape, source)
    except DataError:
        return None
    return None if refill.untold else refill


def _untold(slope: Estimate) -> tuple[str, ...]:
    # Weights that cannot be negative are never quite zero by chance; a plain slope can be either.
    if slope.low > 0:
        return ()
    return (
        "beyond the levels that sweeps walk, moves of the mid on the lots traded meanwhile have "
        f"the slope {slope.text()} ticks a lot, which may be nothing",
    )


def _curve(lags_s: Float, half_lives_s: tuple[float, ...], values: Float) -> Float:
    decays = np.exp2(-lags_s[:, None] / np.array(half_lives_s))
    curve: Float = decays @ values[:-1] + values[-1]
    return curve


def _decayed(tape: Tape, at: Int, half_lives_s: tuple[float, ...]) -> Float:
    """Decayed sums of signed lots, the last not decayed, (len(at), k + 1)."""
    from hft import _core

    ts = np.ascontiguousarray(tape.sweeps["ts"])
    signed = (tape.sweeps["side"] * tape.sweeps["lots"]).astype(np.float64)
    decayed = [np.asarray(_core.decayed_sum(at, ts, signed, h * 1e9)) for h in half_lives_s]
    stays = np.append(0.0, np.cumsum(signed))[np.searchsorted(ts, at, side="right")]
    return np.column_stack([*decayed, stays])


def _walk(tape: Tape, at: Int, heal_ns: float) -> Float:
    """What walked levels keep the mid away by [ticks], (len(at),)."""
    from hft import _core

    moved = (tape.sweeps["side"] * tape.sweeps["walked"]).astype(np.float64) / 2
    ts = np.ascontiguousarray(tape.sweeps["ts"])
    return np.asarray(_core.decayed_sum(at, ts, moved, heal_ns))


def _products(tape: Tape, columns: Float, mid: Float, walk: Float) -> Float:
    """Sums by block of X'X and X'y over moves of every horizon, (blocks, k * k + k)."""
    ts = tape.grid["ts"]
    horizons = [h for h in HORIZONS if h == 1 or h * WINDOWS <= len(ts)]
    block = block_of(ts, "points of the grid", 2 * horizons[-1] * tape.step_ns)
    total = np.zeros((int(block[-1]) + 1, columns.shape[1] * (columns.shape[1] + 1)))
    for steps in horizons:
        whole = ts[steps:] - ts[:-steps] == steps * tape.step_ns
        moved, x, walked = ((path[steps:] - path[:-steps])[whole] for path in (mid, columns, walk))
        if not len(moved) or not moved.any():
            continue
        y = (moved - walked) / moved.std()
        x = x / moved.std()
        products = (x[:, :, None] * x[:, None, :]).reshape(len(x), -1)
        parts = np.column_stack([products, x * y[:, None]])
        total += sums(block[steps:][whole], parts, len(total))
    return total


def _explained(tape: Tape, mid: Float, path: Float) -> float:
    """Share of the variance of the mid's moves over a step that are those of a path."""
    next_to = np.diff(tape.grid["ts"]) == tape.step_ns
    moved, told = np.diff(mid)[next_to], np.diff(path)[next_to]
    return 1 - float(np.var(moved - told) / max(np.var(moved), 1e-300))


def _solve(by_block: Float) -> tuple[Float, Float, Estimate]:
    """Weights >= 0 of all blocks, (k,), and of each resample, (400, k).

    Also the slope on the last column alone, which may have either sign.
    """
    drawn = np.vstack([np.ones(len(by_block)), weights(len(by_block))]) @ by_block
    k = round((np.sqrt(1 + 4 * by_block.shape[1]) - 1) / 2)
    scale = np.sqrt(np.diagonal(drawn[0, : k * k].reshape(k, k))).copy()
    scale[scale == 0] = 1.0
    found = np.array(
        [
            _least(row[: k * k].reshape(k, k) / np.outer(scale, scale), row[k * k :] / scale)
            for row in drawn
        ]
    )
    found = found / scale
    slopes = drawn[:, -1] / np.maximum(drawn[:, k * k - 1], 1e-300)
    return found[0], found[1:], of_draws(float(slopes[0]), slopes[1:])


def _least(xx: Float, xy: Float) -> Float:
    """Least squares with weights >= 0, from X'X and X'y."""
    from scipy.optimize import nnls

    # The factor of X'X stands for X; a column that is all zero is given a little of its own.
    root = np.linalg.cholesky(xx + 1e-9 * np.eye(len(xx)))
    solved: Float = nnls(root.T, np.linalg.solve(root, xy))[0]
    return solved


def _mid_at(tape: Tape) -> Path:
    mids = tape.mids

    def mid(ts: Int) -> Float:
        at = np.clip(np.searchsorted(mids["ts"], ts, side="right") - 1, 0, None)
        value: Float = mids["mid2"][at] / 2
        return value

    return mid


def _paths(
    tape: Tape, half_lives_s: tuple[float, ...], values: Float, heal_ns: float
) -> tuple[Path, Path]:
    """Where the kernel alone would have moved the mid, and where the walk."""
    return (
        lambda ts: _decayed(tape, ts, half_lives_s) @ values,
        lambda ts: _walk(tape, ts, heal_ns),
    )


def _response(tape: Tape, path: Path) -> Float:
    """Mean over trades of sign * (path at the lag - path before), (lags,)."""
    ts, side = tape.sweeps["ts"], tape.sweeps["side"]
    before = path(ts - 1)
    last = tape.grid["ts"][-1]
    curve = []
    for lag_s in LAGS_S:
        later = ts + round(lag_s * 1e9)
        inside = later <= last
        moved = path(later[inside]) - before[inside]
        curve.append(float((side[inside] * moved).mean()) if inside.any() else np.nan)
    return np.array(curve)


def _ofi(tape: Tape) -> Ofi | None:
    """Slope over windows of 10 s in which trading went on; a check of scale, no forecast."""
    grid = tape.grid
    steps = max(1, OFI_WINDOW_NS // tape.step_ns)
    at = np.arange(0, len(grid) - steps, steps)
    at = at[grid["ts"][at + steps] - grid["ts"][at] == steps * tape.step_ns]
    if len(at) < 20:
        return None
    flow = (grid["ofi"][at + steps] - grid["ofi"][at]).astype(np.float64)
    moves = (grid["mid2"][at + steps] - grid["mid2"][at]) / 2
    flow, moves = flow - flow.mean(), moves - moves.mean()
    if not (flow @ flow > 0 and moves @ moves > 0):
        return None
    beta = float(flow @ moves / (flow @ flow))
    depth = float((grid["bid_lots"].mean() + grid["ask_lots"].mean()) / 2)
    r2 = float((flow @ moves) ** 2 / ((flow @ flow) * (moves @ moves)))
    return Ofi(beta, depth, beta * depth, r2, len(at))

"""How fast displayed depth comes back after a trade, and how often it does.

The depth of the best levels of the side that was hit is
D(t) = D0 - b * sum v_i 2^(-(t - t_i) / h), plus what others do, which is as autocorrelated as depth
is. So both sides of the equation are quasi-differenced, y_t - rho y_(t-1), with the rho that the
residuals show (Cochrane and Orcutt), and h is where the sum of squares that is left is least, D0
and b being solved for at each h.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hft.errors import DataError
from hft.fitting.blocks import Estimate, block_of, fit_on_grid, of_draws, sums, weights
from hft.fitting.tape import Source, Tape, Tell, read_tape

Float = NDArray[np.float64]
Int = NDArray[np.int64]

STEP_NS = 100_000_000
LEVELS = 10
GRID_POINTS = 41
SHORTEST_STEPS = 0.5
"""The shortest half-life looked at, in steps of the grid: a faster one cannot be seen on it."""
LONGEST_NS = 300e9
SHARE_OF_SPAN = 0.1
"""The longest, in the span of the data."""
FEWEST_SWEEPS = 30
DECADE = 10.0
LARGE = 0.95
"""Quantile of sweep sizes from which on one is large."""
AFTER_HALF_LIVES = 3.0
HALF = 0.5
FEWEST_LARGE = 30
LEAST_CONTRAST = 0.2


@dataclass(frozen=True, slots=True)
class RefillShare:
    """How often depth came back after a large trade, net of what depth does by itself."""

    probability: Estimate
    trades: int
    large_lots: int
    came_back: float
    """Share of them after which it did, noise and all."""
    if_always: float
    """The share there would be if it always refilled, and ..."""
    if_never: float
    """... if it never did: depth also comes back by itself."""


@dataclass(frozen=True, slots=True)
class RefillFit:
    """Half-life and share of what comes back."""

    source: Source
    step_ns: int
    levels: int
    sweeps: int
    points: int
    half_life_s: Estimate
    b: Estimate
    """Lots that the levels lose for a lot traded; less than 1 where deeper levels move up."""
    share: RefillShare | None
    recovery: Estimate
    """What comes back from just after a trade to 3 half-lives later, for a lot traded, and ..."""
    modelled_recovery: float
    """... the same of the model's depth."""
    untold: tuple[str, ...]
    """Why the data cannot tell; empty: they can."""
    half_lives_s: Float
    """Where the sum of squares was taken, (41,), and ..."""
    rest: Float
    """... what was left of it, against the least, (41,)."""
    lags_s: Float
    """Since a trade, and ..."""
    response: Float
    """... the mean change of depth for a lot traded, other trades and all, (lags,)."""
    modelled: Float
    """The same of the model's depth, (lags,)."""


@dataclass(frozen=True, slots=True)
class _Side:
    """Depth of one side, and the sweeps that hit it."""

    ts: Int
    depth: Float
    sweep_ts: Int
    lots: Float

    def hits(self, half_life_ns: float) -> Float:
        from hft import _core

        return np.asarray(_core.decayed_sum(self.ts, self.sweep_ts, self.lots, half_life_ns))


def fit_refill(
    source: Source, *, step_ns: int = STEP_NS, levels: int = LEVELS, tell: Tell | None = None
) -> RefillFit:
    """Fit to the depth of `levels` best levels on a grid of `step_ns`.

    Raises:
        DataError: too few trades, or too little time, for any interval.
    """
    return fit_depth(read_tape(source, step_ns=step_ns, levels=levels, tell=tell), source)


def fit_depth(tape: Tape, source: Source) -> RefillFit:
    """Fit to a tape."""
    if len(tape.sweeps) < FEWEST_SWEEPS:
        raise DataError(
            f"{source.path}: {source.name}: {len(tape.sweeps)} trades, want at least "
            f"{FEWEST_SWEEPS} to fit what comes after them"
        )
    if not any(np.ptp(tape.grid[name]) for name in ("bid_depth", "ask_depth")):
        raise DataError(f"{source.path}: {source.name}: the depth shown never changes")
    block = block_of(tape.grid["ts"], "points of the grid")
    sides = _sides(tape)
    log_h = _log_half_lives(tape)
    moments = np.stack([_moments(sides, block, h, tape.step_ns) for h in np.exp(log_h)], axis=1)
    best, draws = fit_on_grid(log_h, moments.reshape(len(moments), -1), _less_rest)
    half_life = of_draws(np.exp(best) / 1e9, np.exp(draws) / 1e9)
    b = _slope(moments, log_h, best, draws)
    recovery, modelled = _recovery(sides, block, half_life.value * 1e9, b.value, tape.step_ns)
    untold = _untold(half_life, b, np.exp(log_h) / 1e9, recovery, modelled)
    rest = -_less_rest(moments.sum(axis=0).reshape(1, -1))[0]
    return RefillFit(
        source,
        tape.step_ns,
        tape.levels,
        len(tape.sweeps),
        len(tape.grid),
        half_life,
        b,
        None if untold else _share(sides, half_life.value * 1e9, b.value, tape.step_ns),
        recovery,
        modelled,
        untold,
        np.exp(log_h) / 1e9,
        rest / rest.min(),
        *_response(sides, half_life.value * 1e9, b.value, tape.step_ns),
    )


def _sides(tape: Tape) -> list[_Side]:
    parts = []
    for side, name in ((1, "bid_depth"), (-1, "ask_depth")):
        hit = tape.sweeps[tape.sweeps["side"] == -side]
        parts.append(
            _Side(
                np.ascontiguousarray(tape.grid["ts"]),
                tape.grid[name].astype(np.float64),
                np.ascontiguousarray(hit["ts"]),
                hit["lots"].astype(np.float64),
            )
        )
    return parts


def _log_half_lives(tape: Tape) -> Float:
    span = float(len(tape.grid) * tape.step_ns)
    longest = min(LONGEST_NS, SHARE_OF_SPAN * span)
    shortest = SHORTEST_STEPS * tape.step_ns
    if longest < 10 * shortest:
        raise DataError(
            f"{span / 1e9:.0f} s of data with a grid of {tape.step_ns / 1e9:g} s: half-lives could "
            f"be told from {shortest / 1e9:g} to {longest / 1e9:g} s only; want more data or a "
            "smaller --step"
        )
    return np.linspace(np.log(shortest), np.log(longest), GRID_POINTS)


def _moments(sides: list[_Side], block: Int, half_life_ns: float, step_ns: int) -> Float:
    """Sums of xx, xy, yy by block, of quasi-differenced and centred hits x and depth y, (m, 3)."""
    total = np.zeros((int(block[-1]) + 1, 3))
    for side in sides:
        x, y = -side.hits(half_life_ns), side.depth
        next_to = np.diff(side.ts) == step_ns
        rho = _rho(x, y, next_to)
        dx = (x[1:] - rho * x[:-1])[next_to]
        dy = (y[1:] - rho * y[:-1])[next_to]
        dx, dy = dx - dx.mean(), dy - dy.mean()
        parts = np.column_stack([dx * dx, dx * dy, dy * dy])
        total += sums(block[1:][next_to], parts, len(total))
    return total


def _rho(x: Float, y: Float, next_to: NDArray[np.bool_]) -> float:
    """Autocorrelation of the residuals, iterated twice from that of plain least squares."""
    rho = 0.0
    for _ in range(3):
        dx = (x[1:] - rho * x[:-1])[next_to]
        dy = (y[1:] - rho * y[:-1])[next_to]
        dx, dy = dx - dx.mean(), dy - dy.mean()
        spread = float(dx @ dx)
        b = float(dx @ dy) / spread if spread > 0 else 0.0
        rest = (y - y.mean()) - b * (x - x.mean())
        now, before = rest[1:][next_to], rest[:-1][next_to]
        power = float(before @ before)
        rho = min(float(now @ before) / power, 0.9999) if power > 0 else 0.0
    return rho


def _less_rest(drawn: Float) -> Float:
    """Minus the sum of squares that is left at each half-life, (m, k)."""
    xx, xy, yy = np.moveaxis(drawn.reshape(len(drawn), -1, 3), -1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = np.where(
            (xx > 0) & (xy > 0), xy * xy / xx, 0.0
        )  # depth that grows by trades is none
    less: Float = gain - yy
    return less


def _slope(moments: Float, log_h: Float, best: float, draws: Float) -> Estimate:
    """b, at the half-life of all blocks and at that of each resample."""
    drawn = np.vstack([np.ones(len(moments)), weights(len(moments))])
    total = np.tensordot(drawn, moments, axes=1)
    at = np.abs(log_h[:, None] - np.append(best, draws)).argmin(axis=0)
    xx, xy, _ = total[np.arange(len(total)), at].T
    b = np.divide(xy, xx, out=np.zeros_like(xy), where=xx > 0)
    return of_draws(float(b[0]), b[1:])


def _untold(
    half_life: Estimate, b: Estimate, looked_at: Float, recovery: Estimate, modelled: float
) -> tuple[str, ...]:
    why = []
    if b.low <= 0:
        why.append(f"what a trade takes, b = {b.text()}, may be nothing")
    if half_life.high > DECADE * half_life.low:
        why.append(f"the half-life's interval, {half_life.text()} s, spans more than a decade")
    elif half_life.value <= looked_at[0] or half_life.value >= looked_at[-1]:
        why.append(
            f"the half-life, {half_life.value:.3g} s, lies at the end of what was looked at, "
            f"{looked_at[0]:.3g} to {looked_at[-1]:.3g} s"
        )
    if recovery.high < modelled and recovery.value < HALF * modelled:
        why.append(
            f"the fit would have {modelled:.2g} of a lot traded come back within "
            f"{AFTER_HALF_LIVES:g} half-lives, seen was {recovery.text(2)}"
        )
    return tuple(why)


def _recovery(
    sides: list[_Side], block: Int, half_life_ns: float, b: float, step_ns: int
) -> tuple[Estimate, float]:
    """What depth regains after a trade, seen and modelled [lots a lot]: does the fit hold there?

    The fit itself looks at every step, where a short way back weighs most.
    """
    wait = max(2, round(AFTER_HALF_LIVES * half_life_ns / step_ns))
    total = np.zeros((int(block[-1]) + 1, 3))
    for side in sides:
        model = -b * side.hits(half_life_ns)
        at = np.searchsorted(side.ts, side.sweep_ts) - 1
        inside = (at >= 0) & (at + wait < len(side.ts))
        at, lots = at[inside], side.lots[inside]
        joined = side.ts[at + wait] - side.ts[at] == wait * step_ns
        at, lots = at[joined], lots[joined]
        seen, told = (path[at + wait] - path[at + 1] for path in (side.depth, model))
        parts = np.column_stack([lots * seen, lots * told, lots * lots])
        total += sums(block[at], parts, len(total))
    drawn = np.vstack([np.ones(len(total)), weights(len(total))]) @ total
    seen, told, power = drawn.T
    power = np.maximum(power, 1e-300)
    return of_draws(float(seen[0] / power[0]), seen[1:] / power[1:]), float(told[0] / power[0])


def _share(sides: list[_Side], half_life_ns: float, b: float, step_ns: int) -> RefillShare | None:
    """After large trades that no other follows: was half of what they took back after 3 half-lives?

    Depth moves by itself too. How often it would have come back anyway, and how often it would seem
    not to although it did, is taken from its changes over the same time where nothing large was
    traded; between these two shares lies the one that was seen.
    """
    large = np.quantile(np.concatenate([side.lots for side in sides]), LARGE)
    wait = max(1, round(AFTER_HALF_LIVES * half_life_ns / step_ns))
    left = 2.0 ** (-wait * step_ns / half_life_ns)
    parts = [_large_trades(side, large, wait, step_ns, half_life_ns, b) for side in sides]
    ts, took, change = (np.concatenate(part) for part in list(zip(*parts, strict=True))[:3])
    noise = np.sort(np.concatenate([part[3] for part in parts]))
    if len(ts) < FEWEST_LARGE or len(noise) < FEWEST_LARGE:
        return None
    order = np.argsort(ts)
    ts, took, change = ts[order], took[order], change[order]

    def at_least(least: Float) -> Float:
        share: Float = 1 - np.searchsorted(noise, least) / len(noise)
        return share

    always, never = at_least((left - HALF) * took), at_least(HALF * took)
    if always.mean() - never.mean() < LEAST_CONTRAST:
        return None  # depth moves so much by itself that a refill cannot be told
    seen = (change >= -HALF * took).astype(np.float64)
    try:
        block = block_of(ts, "large trades")
    except DataError:
        return None
    by_block = sums(block, np.column_stack([seen, always, never]))
    drawn = np.vstack([np.ones(len(by_block)), weights(len(by_block))]) @ by_block
    share = np.clip((drawn[:, 0] - drawn[:, 2]) / (drawn[:, 1] - drawn[:, 2]), 0, 1)
    return RefillShare(
        of_draws(float(share[0]), share[1:]),
        len(ts),
        int(large),
        float(seen.mean()),
        float(always.mean()),
        float(never.mean()),
    )


def _large_trades(
    side: _Side, large: float, wait: int, step_ns: int, half_life_ns: float, b: float
) -> tuple[Int, Float, Float, Float]:
    """Times, lots taken, later changes of depth; and changes where nothing large was traded.

    Changes are of depth less what the model says of all trades but the large one itself.
    """
    others = side.depth + b * side.hits(half_life_ns)
    big = side.lots >= large
    at = np.searchsorted(side.ts, side.sweep_ts[big]) - 1  # the last point before the trade
    took = b * side.lots[big]
    whole = (at >= 0) & (at + 1 + wait < len(side.ts))
    near = np.flatnonzero(whole)
    at, took, ts = at[near], took[near], side.sweep_ts[big][near]
    alone = np.diff(np.append(at, len(side.ts) + wait)) > wait + 1
    alone &= np.diff(np.append(-wait - 2, at)) > wait + 1
    alone &= side.ts[at + 1 + wait] - side.ts[at] == (wait + 1) * step_ns
    at, took, ts = at[alone], took[alone], ts[alone]
    still = np.exp2(-(side.ts[at + 1 + wait] - ts) / half_life_ns)
    change = others[at + 1 + wait] - others[at] - took * still
    quiet = np.arange(0, len(side.ts) - wait - 1, wait + 1)
    quiet = quiet[side.ts[quiet + 1 + wait] - side.ts[quiet] == (wait + 1) * step_ns]
    edges = np.searchsorted(side.sweep_ts[big], [side.ts[quiet], side.ts[quiet + 1 + wait]])
    quiet = quiet[edges[0] == edges[1]]
    return ts, took, change, others[quiet + 1 + wait] - others[quiet]


def _response(
    sides: list[_Side], half_life_ns: float, b: float, step_ns: int
) -> tuple[Float, Float, Float]:
    """Lags [s], and the change of depth since before a trade, for a lot: seen, and the model's."""
    steps = np.unique(np.geomspace(1, max(20, 8 * half_life_ns / step_ns), 40).astype(int))
    total = np.zeros((3, len(steps)))
    for side in sides:
        model = -b * side.hits(half_life_ns)
        before = np.searchsorted(side.ts, side.sweep_ts) - 1
        for k, step in enumerate(steps):
            inside = (before >= 0) & (before + step < len(side.ts))
            at, lots = before[inside], side.lots[inside]
            joined = side.ts[at + step] - side.ts[at] == step * step_ns
            at, lots = at[joined], lots[joined]
            total[0, k] += lots @ (side.depth[at + step] - side.depth[at])
            total[1, k] += lots @ (model[at + step] - model[at])
            total[2, k] += lots @ lots
    scale = np.maximum(total[2], 1e-300)
    return steps * step_ns / 1e9, total[0] / scale, total[1] / scale

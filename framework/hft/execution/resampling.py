"""New latencies out of a recorded trace, with its clusters and its bursts.

Stationary block bootstrap (Politis & Romano 1994): the trace is played from a uniformly drawn row,
and from another one after an exponentially distributed time. What is laid out here is only where
blocks begin, in the market's time; the core reads the trace (`Latency.walk`). Blocks may be kept to
the trace's own stretches of the message rate that the run's market has at that moment.

Every draw is keyed by (seed, stream, number of the block): a layout depends on seed, profile and
market, never on what a strategy does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hft.errors import ConfigError
from hft.execution.draws import draw_bits, draw_normal, draw_uniform
from hft.execution.market_rate import Buckets, MarketRate, buckets_of
from hft.execution.profiles import RATE_WINDOW_NS

Int = NDArray[np.int64]
Float = NDArray[np.float64]

FEWEST = 1000
SHORTEST_BLOCK = 200
LONGEST_SHARE = 10
"""A block may be a tenth of its trace: fewer than ten of them tell nothing of their spread."""
STILL_KNOWN = 0.5
"""Autocorrelation at the longest block above which a trace is a drift, not a course."""
LONGEST_GAP_NS = 60_000_000_000
"""A longer pause of a trace (a night) is closed: it is no part of any latency's course."""
AFTER_END_NS = 120_000_000_000
"""Layouts go on after the last row: answers are still under way."""
STEPS = 1 << 18
_RESTART, _INDEX, _CHANGE = 0, 1, 2


def block_length(values: Int) -> float:
    """Mean block of the stationary bootstrap that errs least on the mean of a series, in rows.

    Args:
        values: (n,).

    Source:
        Politis & White (2004), as corrected by Patton, Politis & White (2009).
    """
    n = values.size
    if n < 3 or values.min() == values.max():
        return 1.0
    near = max(5, math.ceil(math.sqrt(math.log10(n))))
    most = math.ceil(math.sqrt(n)) + near
    cov = autocovariance(values, min(most + near, n - 1))
    small = np.abs(cov[1:] / cov[0]) < 2 * math.sqrt(math.log10(n) / n)
    # The first lag after which `near` autocorrelations in a row cannot be told from 0.
    runs = np.convolve(small, np.ones(near), "valid") == near
    lag = int(np.argmax(runs)) if runs.any() else most
    width = min(2 * max(lag, 1), most, cov.size - 1)
    k = np.arange(1, width + 1)
    taper = np.minimum(1.0, 2 * (1 - k / width))
    bend = 2 * float(np.sum(taper * k * cov[1 : width + 1]))
    level = float(cov[0] + 2 * np.sum(taper * cov[1 : width + 1]))
    if level <= 0:
        return 1.0
    return max(1.0, float((bend * bend / (level * level) * n) ** (1 / 3)))


def autocovariance(values: NDArray[np.number], lags: int) -> Float:
    """Biased sample autocovariance at lags 0 ... `lags`, (lags + 1,)."""
    x = values.astype(np.float64) - values.mean()
    size = 1 << (x.size + lags).bit_length()
    spectrum = np.fft.rfft(x, size)
    cov: Float = np.fft.irfft(spectrum * spectrum.conj(), size)[: lags + 1] / x.size
    return cov


@dataclass(frozen=True, slots=True)
class Trace:
    """Rows of a profile as one piece of time.

    Attributes:
        name: of the profile and what is drawn from it, for messages.
        ts: strictly ascending, (n,) [ns].
        legs: durations by leg, (n,) each [ns]; rows stay together.
        rate: messages in the market when each was measured, (n,); None: not recorded.
    """

    name: str
    ts: Int
    legs: dict[str, Int]
    rate: Int | None = None

    @property
    def step_ns(self) -> float:
        """Mean distance of rows, long pauses left out."""
        return float(np.minimum(np.diff(self.ts), LONGEST_GAP_NS).mean())

    def require_long(self) -> None:
        """Refuses a trace of fewer than 1000 rows, or all at one instant."""
        n = self.ts.size
        if n < FEWEST:
            raise ConfigError(
                f"{self.name} is too short to resample honestly: it has {n} rows, want at least "
                f'{FEWEST}; latency.model = "recorded" replays them in order'
            )
        if self.ts[-1] - self.ts[0] <= n:
            raise ConfigError(
                f"{self.name} has all its {n} rows at {self.ts[0]}: want the times at which they "
                "were measured"
            )


def mean_block(trace: Trace, asked_ns: int = 0) -> float:
    """Mean block in rows: what was asked for, or the longest that any of the legs wants.

    Raises:
        ConfigError: more than a tenth of the trace was asked for, or would be needed.
    """
    n = trace.ts.size
    most = n / LONGEST_SHARE
    if asked_ns:
        length = asked_ns / trace.step_ns
        if length > most:
            raise _too_short(trace, f"latency.block asks for a mean block of {length:.0f};")
        return length
    for leg, values in trace.legs.items():
        cov = autocovariance(values, math.ceil(most))
        if cov[-1] > STILL_KNOWN * cov[0]:
            what = f"{leg} that is still correlated by {cov[-1] / cov[0]:.2f} after {most:.0f} rows"
            raise _too_short(trace, f"{what}: it drifts, and what it returns to cannot be seen;")
    wanted = max(block_length(values) for values in trace.legs.values())
    return min(max(wanted, SHORTEST_BLOCK), most)


def _too_short(trace: Trace, what: str) -> ConfigError:
    return ConfigError(
        f"{trace.name} is too short to resample honestly: it has {trace.ts.size} rows, and {what} "
        'a block may be a tenth of them; latency.model = "recorded" replays them in order'
    )


@dataclass(frozen=True, slots=True)
class Layout:
    """What `Latency.walk` wants besides durations.

    Attributes:
        rows: of the trace, in the order in which it is played, (n,).
        ts: their times, strictly ascending, (n,) [ns].
        block_ts: when each block begins, (m,) ascending [ns].
        block_at: position in `rows` from which it plays, (m,).
    """

    rows: Int
    ts: Int
    block_ts: Int
    block_at: Int


def lay_out(
    trace: Trace,
    length: float,
    market: MarketRate,
    seed: int,
    stream: int,
    *,
    conditioned: bool = False,
) -> Layout:
    """Blocks over the whole of a market.

    Args:
        trace: at least two rows.
        length: mean block in rows.
        market: its first and last time; if conditioned, its rate too.
        seed: of the run.
        stream: which leg.
        conditioned: keep blocks to rows of the run's current rate, where the trace has rates.
    """
    buckets, mine = Buckets(()), np.zeros(trace.ts.size, np.int64)
    if conditioned and trace.rate is not None:
        buckets = buckets_of(trace.rate)
        mine = buckets.of(trace.rate)
    shelves = _shelves(trace, mine, len(buckets.borders) + 1)
    end = market.ts_last + AFTER_END_NS
    restarts, keys = _restarts(market.ts_first, end, length * trace.step_ns, seed, stream)
    changes, now = _changes(buckets, market, end)
    ts = np.concatenate([changes, restarts])
    entity = np.concatenate([changes // RATE_WINDOW_NS, keys]).astype(np.uint64)
    drawn = np.where(
        np.arange(ts.size) < changes.size,
        draw_bits(seed, stream, entity, _CHANGE),
        draw_bits(seed, stream, entity, _INDEX),
    )
    order = np.argsort(ts, kind="stable")
    ts, drawn = ts[order], drawn[order]
    last = np.flatnonzero(np.diff(ts, append=ts[-1] + 1) > 0)
    ts, drawn = ts[last], drawn[last]
    bucket = now[np.searchsorted(changes, ts, side="right") - 1]
    block_ts, block_at = shelves.played(ts, shelves.starts(bucket, drawn), bucket, end)
    return Layout(shelves.rows, shelves.ts, block_ts, block_at)


@dataclass(frozen=True, slots=True)
class _Shelves:
    """A trace sorted by bucket: each bucket's rows one after the other, played round and round.

    Attributes:
        rows: of the trace, (n,).
        ts: on the shelves' own clock, (n,).
        first: position of each bucket's first row and the end, (b + 1,); no bucket is empty.
        period_ns: how long each bucket takes to play, (b,).
    """

    rows: Int
    ts: Int
    first: Int
    period_ns: Int

    def starts(self, bucket: Int, drawn: NDArray[np.uint64]) -> Int:
        """A uniform position in each block's bucket, (m,)."""
        size = np.diff(self.first)[bucket].astype(np.uint64)
        at: Int = self.first[bucket] + (drawn % size).astype(np.int64)
        return at

    def played(self, ts: Int, at: Int, bucket: Int, end: int) -> tuple[Int, Int]:
        """Blocks, with another one wherever a block comes to the end of its bucket."""
        front = self.ts[self.first[bucket]]
        period = self.period_ns[bucket]
        left = front + period - self.ts[at]
        lasts = np.diff(ts, append=end)
        again = np.maximum(0, -((left - lasts) // period))
        block = np.repeat(np.arange(ts.size), again + 1)
        turn = np.arange(block.size) - np.repeat(np.cumsum(again + 1) - again - 1, again + 1)
        begun = ts[block] + np.where(turn > 0, left[block] + (turn - 1) * period[block], 0)
        where = np.where(turn > 0, self.first[bucket[block]], at[block])
        return begun, where


def _shelves(trace: Trace, bucket: Int, count: int) -> _Shelves:
    step = max(1, round(trace.step_ns))
    rows = np.argsort(bucket, kind="stable")
    shelf = bucket[rows]
    # Neighbours keep their distance; where two stretches meet, it is a mean one. Between buckets
    # lie two steps more, so that the last row of one is read to its end.
    apart = np.diff(trace.ts, prepend=trace.ts[0])[rows]
    joint = (np.diff(rows, prepend=-1) != 1) | (apart > LONGEST_GAP_NS)
    apart = np.where(joint, step, apart)
    apart[1:][np.diff(shelf) > 0] = 3 * step
    apart[0] = 0
    ts = np.cumsum(apart)
    first = np.searchsorted(shelf, np.arange(count + 1))
    period = ts[first[1:] - 1] - ts[first[:-1]] + step
    return _Shelves(rows, ts, first, period)


def _restarts(start: int, end: int, mean_ns: float, seed: int, stream: int) -> tuple[Int, Int]:
    """Times after `start` at which a block ends by itself, and their numbers."""
    many = math.ceil((end - start) / mean_ns * 1.05) + 64
    while True:
        number = np.arange(many)
        gaps = -np.log1p(-draw_uniform(seed, stream, number.astype(np.uint64), _RESTART)) * mean_ns
        after = np.cumsum(np.maximum(gaps, 1.0))
        if after[-1] >= end - start:
            kept = after < end - start
            return start + after[kept].astype(np.int64), number[kept]
        many *= 2


def _changes(buckets: Buckets, market: MarketRate, end: int) -> tuple[Int, Int]:
    """Times at which the run's bucket changes, the first its start, and the bucket from there."""
    # One window without messages ends what was before; that there are more changes nothing.
    both = np.sort(np.concatenate([market.windows, market.windows + 1]))
    windows = both[np.diff(both, prepend=both[0] - 1) > 0]
    state = buckets.along(market.of(windows))
    turns = np.flatnonzero(np.diff(state, prepend=0))
    # A window decides for the one after it; before the first one all is quiet.
    ts = (windows[turns] + 1) * RATE_WINDOW_NS
    inside = ts < end
    bucket = np.concatenate([[0], state[turns[inside]]])
    return np.concatenate([[market.ts_first], ts[inside]]), bucket


@dataclass(frozen=True, slots=True)
class ShiftedLognormal:
    """floor + exp(mu + s z), z an AR(1) of unit variance with coefficient phi from row to row."""

    floor_ns: float
    mu: float
    s: float
    phi: float


def fit_lognormal(ns: Int) -> tuple[ShiftedLognormal, Float]:
    """The model of one leg, and its innovations by row, (n - 1,).

    The floor makes the 5th and 95th percentile lie evenly about the median, in logs; it is kept
    below the least.
    """
    low, mid, high = np.quantile(ns, (0.05, 0.5, 0.95))
    skew = low + high - 2 * mid
    floor = (low * high - mid * mid) / skew if skew > 0 else 0.0
    floor = float(np.clip(floor, 0.0, max(0.0, ns.min() - 1.0)))
    log = np.log(np.maximum(ns - floor, 1.0))
    mu, s = float(log.mean()), float(log.std())
    if s == 0:
        return ShiftedLognormal(floor, mu, 0.0, 0.0), np.zeros(ns.size - 1)
    z = (log - mu) / s
    phi = float(np.clip(np.mean(z[1:] * z[:-1]), 0.0, 0.9999))
    return ShiftedLognormal(floor, mu, s, phi), z[1:] - phi * z[:-1]


def lognormal_series(legs: dict[str, Int], seed: int, stream: int) -> dict[str, Int]:
    """2^18 steps of each leg's model, (STEPS,) [ns]; legs move together as they were seen to."""
    fits = {name: fit_lognormal(ns) for name, ns in legs.items()}
    together = np.eye(len(fits))
    noise = np.array([innovations for _, innovations in fits.values()])
    moving = np.flatnonzero(noise.std(axis=1) > 0)
    if moving.size > 1:
        together[np.ix_(moving, moving)] = np.corrcoef(noise[moving])
    mixed = np.linalg.cholesky(together + 1e-9 * np.eye(len(fits)))
    steps = np.arange(STEPS, dtype=np.uint64)
    plain = np.array([draw_normal(seed, stream, steps, leg) for leg in range(len(fits))])
    series = {}
    for (name, (model, _)), shocks in zip(fits.items(), mixed @ plain, strict=True):
        log = model.mu + model.s * ar1(shocks, model.phi)
        drawn = np.rint(np.minimum(model.floor_ns + np.exp(log), float(LONGEST_GAP_NS)))
        series[name] = drawn.astype(np.int64)
    return series


def ar1(shocks: Float, phi: float) -> Float:
    """z[t] = phi z[t-1] + sqrt(1 - phi^2) shocks[t], begun in its own distribution, (n,)."""
    z = shocks * math.sqrt(1 - phi * phi)
    z[0] = shocks[0]
    reach, weight = 1, phi
    while reach < z.size and weight > 1e-17:  # sums over 1, 2, 4 ... steps back
        z[reach:] = z[reach:] + weight * z[:-reach]
        reach, weight = 2 * reach, weight * weight
    return z

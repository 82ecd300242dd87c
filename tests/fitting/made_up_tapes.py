"""Tapes whose parameters are known, made by rules of their own."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from hft.data.opening import open_data
from hft.fitting.tape import CANCEL, GRID, SWEEP, Source, Tape
from hft.types import BUY, EVENT, SEEN_BY_BOTH, SELL, Flag, InstrumentSpec, Kind

SECOND = 1_000_000_000
START = 1_700_000_000 * SECOND
SPEC = InstrumentSpec(symbol="MADE", venue="UP", tick=0.01, lot=1.0)


def source_of(events: np.ndarray, folder: Path) -> Source:
    """A file of these rows, opened as a user would."""
    path = folder / "made.npy"
    np.save(path, events)
    return Source(open_data(path, SPEC), SPEC.name, str(path))


def rows(events: list[tuple]) -> np.ndarray:
    """(ts, kind, side, price, qty, order_id), each a packet of its own."""
    out = np.zeros(len(events), EVENT)
    flags = SEEN_BY_BOTH | Flag.LAST
    out[:] = [
        (ts, ts, price, qty, order_id, 0, 0, 0, kind, side, flags)
        for ts, kind, side, price, qty, order_id in events
    ]
    return out


def orders_with_cancels(n: float, cancels: int, seed: int, *, orders: int = 25) -> np.ndarray:
    """A queue a side, whose cancels fall on the share u of its lots, u ~ Beta(n, 1)."""
    rng = np.random.default_rng(seed)
    events, next_id, ts = [], 1, START
    queues: dict[int, list[list[int]]] = {BUY: [], SELL: []}
    price = {BUY: 100, SELL: 101}

    def join(side: int) -> None:
        nonlocal next_id
        lots = int(rng.integers(1, 6))
        queues[side].append([next_id, lots])
        events.append((ts, Kind.ADD, side, price[side], lots, next_id))
        next_id += 1

    for side in (BUY, SELL):
        for _ in range(orders):
            join(side)
    for _ in range(cancels):
        ts += int(rng.exponential(0.05) * SECOND) + 1
        side = BUY if rng.random() < 0.5 else SELL
        queue = queues[side]
        ends = np.cumsum([lots for _, lots in queue])
        at = int(np.searchsorted(ends, rng.beta(n, 1) * ends[-1]))
        order_id, lots = queue.pop(min(at, len(queue) - 1))
        events.append((ts, Kind.CANCEL, side, price[side], lots, order_id))
        join(side)
    return rows(events)


def cancel_places(n: float, count: int, seed: int, *, orders: int = 12) -> np.ndarray:
    """The same as CANCEL rows: queues drawn anew each time."""
    rng = np.random.default_rng(seed)
    out = np.zeros(count, CANCEL)
    out["ts"] = START + np.arange(count) * SECOND
    for row, u in zip(out, rng.beta(n, 1, count), strict=True):
        ends = np.cumsum(rng.integers(1, 6, orders))
        at = min(int(np.searchsorted(ends, u * ends[-1])), orders - 1)
        ahead = int(ends[at - 1]) if at else 0
        row["level"], row["ahead"], row["gone"] = ends[-1], ahead, ends[at] - ahead
        row["spread"], row["orders"] = 1, orders
    return out


def decayed(at: np.ndarray, ts: np.ndarray, values: np.ndarray, half_life: float) -> np.ndarray:
    """Sum of values * 2^(-(at - ts) / half_life) over ts <= at, the long way round."""
    out = np.zeros(len(at))
    for t, value in zip(ts, values, strict=True):
        later = at >= t
        out[later] += value * np.exp2(-(at[later] - t) / half_life)
    return out


def wander(count: int, step_s: float, size: float, back_s: float, rng: np.random.Generator):
    """What others do to depth: an Ornstein-Uhlenbeck path of standard deviation `size`."""
    keep = np.exp(-step_s / back_s)
    path, noise = np.zeros(count), rng.normal(0, size * np.sqrt(1 - keep**2), count)
    path[0] = rng.normal(0, size)
    for i in range(1, count):
        path[i] = keep * path[i - 1] + noise[i]
    return path


def depth_tape(
    half_life_s: float,
    *,
    seed: int,
    duration_s: float = 600,
    step_s: float = 0.1,
    b: float = 1.0,
    refills: float = 1.0,
    rate: float = 0.5,
    size: float = 60.0,
    forget_s: float = 60.0,
) -> Tape:
    """Trades that take depth, which comes back, or with 1 - `refills` is forgotten slowly."""
    rng = np.random.default_rng(seed)
    at = np.arange(step_s, duration_s, step_s)
    grid = np.zeros(len(at), GRID)
    grid["ts"] = START + np.round(at * 1e9).astype(np.int64)
    grid["mid2"] = 20_001
    count = rng.poisson(rate * duration_s)
    when = np.sort(rng.uniform(0, duration_s, count))
    sweeps = np.zeros(count, SWEEP)
    sweeps["ts"] = START + (when * 1e9).astype(np.int64)
    sweeps["side"] = rng.choice([-1, 1], count)
    sweeps["lots"] = 10 + rng.pareto(2.5, count) * 60
    for side, name in ((-1, "bid_depth"), (1, "ask_depth")):
        hit = sweeps[sweeps["side"] == side]
        then = (hit["ts"] - START) / 1e9
        heals = rng.random(len(hit)) < refills
        depth = 5_000 + wander(len(at), step_s, size, 20.0, rng)
        for these, life in ((heals, half_life_s), (~heals, forget_s)):
            depth -= b * decayed(at, then[these], hit["lots"][these], life)
        grid[name] = np.round(depth)
    return Tape(grid, sweeps, np.zeros(0, GRID), round(step_s * 1e9), 10, 0)


def levels_with_refill(half_life_s: float, seed: int, duration_s: float = 600) -> np.ndarray:
    """The same as rows of a feed of levels: two prices, prints, and the depth after them."""
    rng = np.random.default_rng(seed)
    events: list[tuple] = []
    for side, price in ((BUY, 100), (SELL, 101)):
        at = np.arange(0, duration_s, 0.1)
        when = np.sort(rng.uniform(0, duration_s, rng.poisson(0.25 * duration_s)))
        lots = (20 + rng.pareto(2.5, len(when)) * 80).astype(int)
        times = np.sort(np.concatenate([at, when]))
        base = 5_000 + np.interp(times, at, wander(len(at), 0.1, 60.0, 20.0, rng))
        depth = np.round(base - decayed(times, when, lots, half_life_s)).astype(int)
        stamps = START + (times * 1e9).astype(np.int64)
        events += [
            (t, Kind.LEVEL, side, price, int(d), 0) for t, d in zip(stamps, depth, strict=True)
        ]
        events += [
            (START + int(t * 1e9), Kind.TRADE, -side, price, int(v), 0)
            for t, v in zip(when, lots, strict=True)
        ]
    # Prints come before the levels that show them.
    return rows(sorted(events, key=lambda e: (e[0], e[1] != Kind.TRADE)))


def prices_with_kernel(
    weights: dict[float, float], permanent: float, *, seed: int, duration_s: float = 900
) -> np.ndarray:
    """Signed trades push the mid by a kernel [ticks a lot]; the book is too deep to be walked."""
    rng = np.random.default_rng(seed)
    at = np.arange(0.0, duration_s, 0.1)
    when = np.sort(rng.uniform(0, duration_s, rng.poisson(1.0 * duration_s)))
    lots = (5 + rng.pareto(2.5, len(when)) * 20).astype(int)
    signs = np.where(wander(len(when), 1.0, 1.0, 3.0, rng) > 0, 1, -1)
    times = np.sort(np.concatenate([at, when]))
    mid = 100_000 + np.interp(times, at, np.cumsum(rng.normal(0, 0.7, len(at))))
    for half_life_s, weight in weights.items():
        mid += decayed(times, when, signs * lots * weight, half_life_s)
    mid += decayed(times, when, signs * lots * permanent, 1e12)
    mid2 = np.round(2 * mid).astype(int)
    events: list[tuple] = []
    traded = {round(t * 1e9): (int(s), int(v)) for t, s, v in zip(when, signs, lots, strict=True)}
    bid = ask = 0
    for t, m in zip(times, mid2, strict=True):
        ts = START + round(t * 1e9)
        if bid and round(t * 1e9) in traded:
            side, size = traded[round(t * 1e9)]
            events.append((ts, Kind.TRADE, side, ask if side > 0 else bid, size, 0))
        new_bid, new_ask = int(m) // 2 - 5, int(m) - int(m) // 2 + 5
        # Away first, so that no packet shows a crossed book.
        moves = [(BUY, bid, new_bid), (SELL, ask, new_ask)]
        for side, old, new in sorted(moves, key=lambda move: move[0] * (new_bid - bid)):
            if old != new:
                events += [(ts, Kind.LEVEL, side, new, 1_000_000, 0)]
                events += [(ts, Kind.LEVEL, side, old, 0, 0)] if old else []
        bid, ask = new_bid, new_ask
    return rows(events)

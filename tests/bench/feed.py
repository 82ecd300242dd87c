"""The common feed: a day of one instrument in hftbacktest's rows, from a seed (needs numba).

    python feed.py ROWS OUT.npy [SEED]

Tick 0.1, lot 0.001, price about 60,000. 89 % level rows, 11 % trades, each followed by the level it
took from. Rows come in packets of one venue time; feed latency is lognormal around 4 ms with a slow
drift, and our clock never runs backwards.
"""

from __future__ import annotations

import sys

import numpy as np
from numba import njit

VENUE, OURS, BUY, SELL = 1 << 31, 1 << 30, 1 << 29, 1 << 28
LEVEL, TRADE = 1 | VENUE | OURS, 2 | VENUE | OURS
START_NS = 1_700_000_000_000_000_000
SPAN_NS = 3.4 * 86_400e9
BASE = 600_000 - (1 << 15)  # tick of index 0
ROW = np.dtype(
    [
        ("ev", "u8"),
        ("exch_ts", "i8"),
        ("local_ts", "i8"),
        ("px", "f8"),
        ("qty", "f8"),
        ("order_id", "u8"),
        ("ival", "i8"),
        ("fval", "f8"),
    ],
    align=True,
)


@njit
def _put(out, i, ev, ts, recv, at, lots):
    out[0][i] = ev
    out[1][i] = ts
    out[2][i] = recv
    out[3][i] = (BASE + at) * 0.1
    out[4][i] = lots * 0.001
    return i + 1


@njit
def _size(mean):
    return 1 + int(np.random.exponential(mean))


@njit
def fill(n, seed, out):
    """Fills columns (ev, exch_ts, local_ts, px, qty) and returns how many rows it made."""
    np.random.seed(seed)
    width = 1 << 16
    bids, asks = np.zeros(width, np.int64), np.zeros(width, np.int64)
    bid = width // 2
    ask = bid + 1
    ts, drift, i = START_NS, 0.0, 0
    recv = ts + 4_000_000
    for depth in range(100):
        bids[bid - depth] = _size(800.0)
        i = _put(out, i, LEVEL | BUY, ts, recv, bid - depth, bids[bid - depth])
        asks[ask + depth] = _size(800.0)
        i = _put(out, i, LEVEL | SELL, ts, recv, ask + depth, asks[ask + depth])
    while i < n - 64 and bid >= 2000 and ask <= width - 2000:
        ts += 1000 + int(np.random.exponential(SPAN_NS / n))
        drift = 0.999 * drift + 0.02 * np.random.randn()
        recv = max(recv, ts + 1_000_000 + int(3e6 * np.exp(0.35 * np.random.randn() + drift)))
        for _ in range(min(_size(2.4), 12)):
            trade = np.random.random() < 0.12
            buy = np.random.random() < 0.5
            if trade:
                lots = _size(60.0)
                if np.random.random() < 0.03:
                    lots *= 40
                while lots > 0 and i < n - 40:
                    at, resting = (ask, asks) if buy else (bid, bids)
                    hit = min(lots, resting[at])
                    i = _put(out, i, TRADE | (BUY if buy else SELL), ts, recv, at, hit)
                    lots -= hit
                    resting[at] -= hit
                    left = resting[at]
                    i = _put(out, i, LEVEL | (SELL if buy else BUY), ts, recv, at, left)
                    if left == 0:
                        while asks[ask] == 0:
                            ask += 1
                        while bids[bid] == 0:
                            bid -= 1
                        if np.random.random() < 0.7:
                            break
                continue
            depth = int(np.random.exponential(9.0))
            at = bid - depth if buy else ask + depth
            if ask - bid > 1 and np.random.random() < 0.45:
                at = bid + 1 if buy else ask - 1
            gone = np.random.random() < 0.12 and at != (bid if buy else ask)
            lots = 0 if gone else _size(800.0)
            if gone and (at > bid if buy else at < ask):
                continue
            if buy:
                bids[at] = lots
                bid = max(bid, at)
            else:
                asks[at] = lots
                ask = min(ask, at)
            i = _put(out, i, LEVEL | (BUY if buy else SELL), ts, recv, at, lots)
        # A level 30 ticks out always lives, so that a walk through the book never runs dry.
        if bids[bid - 30] == 0 and i < n - 8:
            bids[bid - 30] = 500
            i = _put(out, i, LEVEL | BUY, ts, recv, bid - 30, 500)
        if asks[ask + 30] == 0 and i < n - 8:
            asks[ask + 30] = 500
            i = _put(out, i, LEVEL | SELL, ts, recv, ask + 30, 500)
    return i


def make(n: int, seed: int = 7) -> np.ndarray:
    """At most `n` rows."""
    names = ("ev", "exch_ts", "local_ts", "px", "qty")
    columns = tuple(np.zeros(n, ROW[name]) for name in names)
    rows = np.zeros(fill(n, seed, columns), ROW)
    for name, column in zip(names, columns, strict=True):
        rows[name] = column[: len(rows)]
    rows["px"] = np.round(rows["px"], 1)
    rows["qty"] = np.round(rows["qty"], 3)
    return rows


if __name__ == "__main__":
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 7
    np.save(sys.argv[2], make(int(sys.argv[1]), seed))

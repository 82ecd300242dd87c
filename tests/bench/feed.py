"""The common feeds: a day of one instrument in hftbacktest's rows, from a seed (needs numba).

    python feed.py levels ROWS OUT.npy [SEED]
    python feed.py orders ROWS OUT.npy [SEED]

Tick 0.1, lot 0.001, price about 60,000; feed latency is lognormal around 4 ms, and our clock never
runs backwards.

levels: 89 % level rows, 11 % trades, each followed by the level it took from. Rows come in packets
of one venue time, and the feed latency drifts slowly.

orders: one action a venue time. Of a hundred, 48 are orders that come, 46 orders that go and 6
aggressors: FILL by FILL, each with the CANCEL or MODIFY that changes the book. Levels are
contiguous, and an aggressor who empties one rests there with what is left of him, because the peer
lets no FILL reach an order of ours at a better price than all others: ours never stand so.
"""

from __future__ import annotations

import sys

import numpy as np
from numba import njit

VENUE, OURS, BUY, SELL = 1 << 31, 1 << 30, 1 << 29, 1 << 28
LEVEL, TRADE = 1 | VENUE | OURS, 2 | VENUE | OURS
ADD, CANCEL, MODIFY, FILL = (code | VENUE | OURS for code in (10, 11, 12, 13))
WIDTH, CROWD, DEPTH = 1 << 12, 512, 40  # of `orders`: prices, orders a level, levels kept alive
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


@njit
def _order(out, i, ev, ts, recv, at, lots, number):
    out[5][i] = number
    return _put(out, i, ev, ts, recv, at + (1 << 15) - WIDTH // 2, lots)


@njit
def _join(queue, at, number, lots):
    numbers, sizes, count = queue
    numbers[at, count[at]], sizes[at, count[at]] = number, lots
    count[at] += 1


@njit
def _leave(queue, at, k):
    numbers, sizes, count = queue
    last = count[at] - 1
    numbers[at, k:last] = numbers[at, k + 1 : last + 1]
    sizes[at, k:last] = sizes[at, k + 1 : last + 1]
    count[at] = last


@njit
def fill_orders(n, seed, out):
    """Fills columns (ev, exch_ts, local_ts, px, qty, order_id) and returns how many rows."""
    np.random.seed(seed)
    queue = (
        np.zeros((WIDTH, CROWD), np.int64),
        np.zeros((WIDTH, CROWD), np.int64),
        np.zeros(WIDTH, np.int64),
    )
    numbers, sizes, count = queue
    bid = WIDTH // 2
    ts, i, number = START_NS, 0, 0
    recv = ts + 4_000_000
    for depth in range(DEPTH):
        for at in (bid - depth, bid + 1 + depth):
            for _ in range(6):
                number += 1
                _join(queue, at, number, _size(100.0))
                side, lots = BUY if at <= bid else SELL, sizes[at, count[at] - 1]
                i = _order(out, i, ADD | side, ts, recv, at, lots, number)
    while i < n - 64 and 64 < bid < WIDTH - 64:
        ts += 1000 + int(np.random.exponential(SPAN_NS / 2 / n))
        recv = max(recv, ts + 1_000_000 + int(3e6 * np.exp(0.35 * np.random.randn())))
        draw, side = np.random.random(), BUY if np.random.random() < 0.5 else SELL
        depth = int(np.random.exponential(6.0))
        at = bid - depth if side == BUY else bid + 1 + depth
        if draw < 0.06:
            at, left = (bid if side == BUY else bid + 1), _size(120.0)
            while left > 0 and count[at] > 0 and i < n - 48:
                this, hit = numbers[at, 0], min(left, sizes[at, 0])
                i = _order(out, i, FILL | side, ts, recv, at, hit, this)
                left -= hit
                sizes[at, 0] -= hit
                rest = sizes[at, 0]
                i = _order(out, i, (MODIFY if rest else CANCEL) | side, ts, recv, at, rest, this)
                if rest == 0:
                    _leave(queue, at, 0)
            if count[at] > 0:
                continue
            # The level is the aggressor's now; one more is shown at the far end of his side's book.
            far = at - DEPTH if side == BUY else at + DEPTH
            bid += -1 if side == BUY else 1
            other = SELL if side == BUY else BUY
            number += 1
            _join(queue, at, number, max(left, 1))
            i = _order(out, i, ADD | other, ts, recv, at, max(left, 1), number)
            if count[far] == 0:
                number += 1
                _join(queue, far, number, 100)
                i = _order(out, i, ADD | side, ts, recv, far, 100, number)
        elif not 0 <= at < WIDTH:
            continue
        elif draw < 0.54:
            if count[at] == CROWD or (count[at] == 0 and depth > 0):
                continue
            lots, number = _size(100.0), number + 1
            _join(queue, at, number, lots)
            i = _order(out, i, ADD | side, ts, recv, at, lots, number)
        elif count[at] > 1:
            k = int(np.random.random() * count[at])
            i = _order(out, i, CANCEL | side, ts, recv, at, sizes[at, k], numbers[at, k])
            _leave(queue, at, k)
    return i


MAKERS = {"levels": fill, "orders": fill_orders}


def make(kind: str, n: int, seed: int = 7) -> np.ndarray:
    """At most `n` rows."""
    names = ("ev", "exch_ts", "local_ts", "px", "qty", "order_id")
    columns = tuple(np.zeros(n, ROW[name]) for name in names)
    rows = np.zeros(MAKERS[kind](n, seed, columns), ROW)
    for name, column in zip(names, columns, strict=True):
        rows[name] = column[: len(rows)]
    rows["px"] = np.round(rows["px"], 1)
    rows["qty"] = np.round(rows["qty"], 3)
    return rows


if __name__ == "__main__":
    kind, rows, out, *seed = sys.argv[1:]
    np.save(out, make(kind, int(rows), int(seed[0]) if seed else 7))

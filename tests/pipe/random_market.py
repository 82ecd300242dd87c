"""Small random markets, dense enough that everything happens within a few hundred rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from hft.types import EVENT, SEEN_BY_BOTH, Flag, Kind, Trading

MID, WIDTH = 1_000, 6


def random_tape(
    rng: np.random.Generator,
    rows: int,
    start: int,
    *,
    calm: bool = False,
    step: int = 4_000_000,
    explains: bool = False,
) -> np.ndarray:
    """Rows around `MID`: levels, prints on both clocks, and now and then what is rare.

    Args:
        rng: draws everything.
        rows: at least so many.
        start: time before the first row [ns].
        calm: only levels and prints, one row a packet, the book never crossed.
        step: longest time between packets [ns].
        explains: the levels show what traded, at once, in two rows, or late.
    """
    out: list[tuple[Any, ...]] = []
    shown: dict[tuple[int, int], int] = {}
    ts, recv, mid = start, start, MID

    def add(kind: Kind, *, last: bool, **k: int) -> None:
        unsure = kind == Kind.LEVEL and not calm and rng.random() < 0.1
        flags = int(SEEN_BY_BOTH | (Flag.LAST if last else 0) | (Flag.UNCERTAIN if unsure else 0))
        out.append(
            (
                ts,
                recv,
                k.get("price", 0),
                k.get("lots", 0),
                k.get("order_id", 0),
                k.get("ref_id", 0),
                0,
                0,
                kind,
                k.get("side", 0),
                flags,
            )
        )

    def level(*, last: bool = True) -> None:
        side = int(rng.choice([1, -1]))
        price = mid - side * int(rng.integers(0 if not calm else 1, WIDTH))
        show(side, price, int(rng.choice([0, 0, 1, 3, 8, 20])), last=last)

    def show(side: int, price: int, lots: int, *, last: bool = True) -> None:
        shown[side, price] = lots
        add(Kind.LEVEL, last=last, side=side, price=price, lots=lots)

    def trade(*, last: bool = True) -> None:
        side = int(rng.choice([1, -1] if calm or rng.random() < 0.9 else [0]))
        price = mid + (side or 1) * int(rng.integers(-1, 4))
        lots = int(rng.integers(1, 30))
        add(Kind.TRADE, last=last, side=side, price=price, lots=lots)
        if explains and shown.get((-side, price)):
            explain(-side, price, lots)

    def explain(side: int, price: int, lots: int) -> None:
        nonlocal ts, recv
        after = max(shown[side, price] - lots, 0)
        how = rng.random()
        if how < 0.3:
            show(side, price, after + (shown[side, price] - after) // 2, last=False)
        elif how < 0.6:
            ts += int(rng.choice([1_000, 1_000_000, 1_000_001]))
            recv = max(recv, ts)
        show(side, price, max(after - int(rng.choice([0, 0, 1])), 0))

    def rare() -> None:
        what = rng.integers(0, 6)
        if what == 0:
            add(
                Kind.STATUS,
                last=True,
                ref_id=int(rng.choice([Trading.HALT, Trading.AUCTION, Trading.CLOSED])),
            )
        elif what == 1:
            add(
                Kind.CLEAR,
                last=True,
                side=int(rng.choice([0, 1, -1])),
                price=mid,
                ref_id=int(rng.integers(0, 2)),
            )
        elif what == 2:
            add(
                Kind.DATUM,
                last=True,
                order_id=1,
                ref_id=int(rng.integers(-500_000, 500_000)),
                price=mid,
            )
        else:
            if what == 3:
                add(Kind.STATUS, last=True, ref_id=int(Trading.GAP))
            add(Kind.SNAPSHOT_BEGIN, last=False)
            for _ in range(5):
                level(last=False)
            add(Kind.SNAPSHOT_END, last=True)

    while len(out) < rows:
        ts += int(rng.choice([0, 1, 1_000, 900_000, 2_000_000, step]))
        recv = max(recv, ts + int(rng.choice([0, 500, 1_000_000])))
        draw = rng.random()
        if not calm and draw < 0.03:
            rare()
        elif not calm and draw < 0.08:
            add(Kind.STATUS, last=True, ref_id=int(Trading.OPEN))
        elif draw < 0.25:
            trade()
        elif (
            draw < 0.4 and not calm
        ):  # a print and what it did to the book, as several rows of a packet
            trade(last=False)
            level(last=False)
            level()
        else:
            level()
        if rng.random() < 0.02:
            mid += int(rng.choice([-1, 1]))
    return np.array(out, EVENT)


def crowded_tape(rng: np.random.Generator, rows: int, start: int) -> np.ndarray:
    """A market at rest: deep levels that lose and win a few lots, so that places in a queue matter.

    Args:
        rng: draws everything.
        rows: at least so many.
        start: time before the first row [ns].
    """
    out: list[tuple[Any, ...]] = []
    levels = [(side, MID - side * k) for side in (1, -1) for k in range(1, WIDTH)]
    shown = {level: int(rng.integers(3, 20)) for level in levels}
    ts = start

    def add(kind: Kind, side: int, price: int, lots: int, *, last: bool = True) -> None:
        flags = int(SEEN_BY_BOTH | (Flag.LAST if last else 0))
        out.append((ts, ts + 500, price, lots, 0, 0, 0, 0, kind, side, flags))

    def change(level: tuple[int, int], by: int) -> None:
        shown[level] = max(shown[level] + by, 0)
        add(Kind.LEVEL, *level, shown[level])

    def touch(side: int) -> tuple[int, int]:
        there = [k for k in levels if k[0] == side and shown[k]]
        return max(there, key=lambda k: k[1] * side) if there else (side, MID - side)

    for k, level in enumerate(levels):
        add(Kind.LEVEL, *level, shown[level], last=k == len(levels) - 1)
    while len(out) < rows:
        ts += int(rng.choice([0, 1_000, 900_000, 2_000_000]))
        draw = rng.random()
        side = int(rng.choice([1, -1]))
        if draw < 0.35:
            level, lots = touch(side), int(rng.integers(1, 9))
            add(Kind.TRADE, -side, level[1], lots, last=False)
            change(level, -lots)
        elif draw < 0.7:  # somebody cancels, mostly at the best two levels
            near = touch(side)
            worse = (side, near[1] - side)
            level = worse if worse in shown and rng.random() < 0.5 else near
            change(level, -int(rng.integers(1, 7)))
        else:
            change((side, MID - side * int(rng.integers(1, WIDTH))), int(rng.integers(1, 9)))
    return np.array(out, EVENT)

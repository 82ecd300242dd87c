"""Small random markets, dense enough that everything happens within a few hundred rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from hft.types import EVENT, SEEN_BY_BOTH, Flag, Kind, Trading

MID, WIDTH = 1_000, 6


def random_tape(
    rng: np.random.Generator, rows: int, start: int, *, calm: bool = False, step: int = 4_000_000
) -> np.ndarray:
    """Rows around `MID`: levels, prints on both clocks, and now and then what is rare.

    Args:
        rng: draws everything.
        rows: at least so many.
        start: time before the first row [ns].
        calm: only levels and prints, one row a packet, the book never crossed.
        step: longest time between packets [ns].
    """
    out: list[tuple[Any, ...]] = []
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
        add(
            Kind.LEVEL, last=last, side=side, price=price, lots=int(rng.choice([0, 0, 1, 3, 8, 20]))
        )

    def trade(*, last: bool = True) -> None:
        side = int(rng.choice([1, -1] if calm or rng.random() < 0.9 else [0]))
        price = mid + (side or 1) * int(rng.integers(-1, 4))
        add(Kind.TRADE, last=last, side=side, price=price, lots=int(rng.integers(1, 30)))

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

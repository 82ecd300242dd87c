"""Order events of Bitstamp, as columns, from either form of file."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from math import isfinite
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from hft.data.csv_blocks import DAMAGE, CsvFile, as_ascii, count, decimals, text_chunks
from hft.errors import DataError

Ints = NDArray[np.int64]

CREATED, CHANGED, DELETED = range(3)
SATOSHI = 1e-8

_ACTIONS = {"created": CREATED, "changed": CHANGED, "deleted": DELETED}
_EVENTS = {b"order_" + word.encode(): code for word, code in _ACTIONS.items()}
_SIDES = {"bid": 1, "ask": -1}
_SAMPLE = 2_000  # lines that show how numbers are written
_BATCH = 1 << 16


class OrderEvents(NamedTuple):
    """Some order events, (n,) each."""

    order_id: Ints
    ts_ms: Ints
    price: NDArray[np.float64]
    left: NDArray[np.float64]
    """What is left of the order, in coins."""
    action: Ints
    side: Ints
    lines: Ints


def is_raw_log(path: Path) -> bool:
    """Whether the first line is `<ms> <event> {json}`."""
    try:
        for text, _ in text_chunks(path):
            return b" {" in text.partition(b"\n")[0]
    except DAMAGE as error:
        raise DataError(f"{path}: damaged before the end of line 1: {error}") from error
    raise DataError(f"{path}: empty file, want a line an order event")


class CsvReader:
    """The CSV form; volumes are in coins if any is written with a point, else in satoshi."""

    def __init__(self, path: Path, *, repair: bool) -> None:
        self._file = CsvFile(path, repair=repair)
        text = self._file.sample(["price", "volume"], _SAMPLE)
        self.price_decimals = decimals({price for price, _ in text})
        self._unit = 1.0 if any("." in volume for _, volume in text) else SATOSHI

    def events(self, counts: dict[str, int]) -> Iterator[tuple[OrderEvents, float]]:
        """Order events and the share read."""
        kinds: dict[str, Any] = {
            "id": "int",
            "timestamp": "int",
            "price": "float",
            "volume": "float",
            "action": _ACTIONS,
            "direction": _SIDES,
        }
        for block in self._file.blocks(kinds, counts):
            c = block.columns
            left = c["volume"] if self._unit == 1.0 else c["volume"] * self._unit
            yield (
                OrderEvents(
                    c["id"],
                    c["timestamp"],
                    c["price"],
                    left,
                    c["action"],
                    c["direction"],
                    block.lines,
                ),
                block.done,
            )


class _Order(msgspec.Struct):
    price: str
    amount: str
    id: Annotated[int, msgspec.Meta(ge=1, le=2**62)]
    order_type: Literal[0, 1]


class LogReader:
    """The raw log: order events are read, trades and books beside them counted and left out.

    Each line is decoded by itself; columns through polars' JSON were no faster.
    """

    def __init__(self, path: Path, *, repair: bool) -> None:
        self._path = path
        self._repair = repair
        self._decode = msgspec.json.Decoder(_Order).decode
        prices = {repr(row[2]) for row in islice(self._rows({}), _SAMPLE)}
        self.price_decimals = decimals(prices)

    def events(self, counts: dict[str, int]) -> Iterator[tuple[OrderEvents, float]]:
        """Order events and the share read."""
        rows = self._rows(counts)
        while part := list(islice(rows, _BATCH)):
            number, ts_ms, price, amount, order_id, action, side, done = zip(*part, strict=True)
            yield (
                OrderEvents(
                    np.array(order_id, np.int64),
                    np.array(ts_ms, np.int64),
                    np.array(price, np.float64),
                    np.array(amount, np.float64),
                    np.array(action, np.int64),
                    np.array(side, np.int64),
                    np.array(number, np.int64),
                ),
                done[-1],
            )

    def _rows(self, counts: dict[str, int]) -> Iterator[tuple[Any, ...]]:
        number = 0
        try:
            for text, done in text_chunks(self._path):
                for line in text.splitlines():
                    number += 1
                    try:
                        row = self._row(line, counts)
                    except (ValueError, msgspec.MsgspecError, UnicodeDecodeError) as error:
                        if not self._repair:
                            where = f"{self._path}: line {number}"
                            raise DataError(
                                f"{where}: {error}; want `<ms> <event> {{json}}`"
                            ) from error
                        count(counts, "lines unreadable")
                        continue
                    if row is not None:
                        yield (number, *row, done)
        except DAMAGE as error:
            if not self._repair:
                raise DataError(f"{self._path}: damaged after line {number}: {error}") from error
            count(counts, "files damaged at the end")

    def _row(self, line: bytes, counts: dict[str, int]) -> tuple[Any, ...] | None:
        stamp, event, body = line.split(b" ", 2)
        action = _EVENTS.get(event)
        if action is None:
            count(counts, f"{as_ascii(event[:32]).decode()} left out")
            return None
        order = self._decode(body)
        price, amount = float(order.price), float(order.amount)
        if not (isfinite(price) and isfinite(amount)):
            raise ValueError(
                f"price {order.price!r} or amount {order.amount!r} is no finite number"
            )
        ts_ms = int(stamp)
        return ts_ms, price, amount, order.id, action, 1 - 2 * order.order_type

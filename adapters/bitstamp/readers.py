"""Order events of Bitstamp, as columns, from either form of file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from hft.data.csv_blocks import CsvFile, count, decimals
from hft.data.text import DAMAGE, TextFile
from hft.errors import DataError

Ints = NDArray[np.int64]

CREATED, CHANGED, DELETED = range(3)
SATOSHI = 1e-8

_ACTIONS = {"created": CREATED, "changed": CHANGED, "deleted": DELETED}
_EVENTS = {b"order_" + word.encode(): code for word, code in _ACTIONS.items()}
_SIDES = {"bid": 1, "ask": -1}
_SAMPLE = 2_000  # lines that show how numbers are written
_BATCH = 1 << 14  # lines of the raw log decoded at once
_UNREADABLE = (ValueError, OverflowError, msgspec.MsgspecError)


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
    return " {" in TextFile(path).first_line()


class CsvReader:
    """The CSV form; volumes are in coins if any is written with a point, else in satoshi."""

    def __init__(self, path: Path, *, repair: bool) -> None:
        self._file = CsvFile(path, repair=repair)
        text = self._file.sample(["price", "volume"], _SAMPLE)
        self.price_decimals = decimals(text["price"].words)
        self._unit = 1.0 if any("." in word for word in text["volume"].words) else SATOSHI

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

    The JSON of many lines is decoded as one array, five times as fast as line by line; where that
    fails, line by line finds the one that is wrong.
    """

    def __init__(self, path: Path, *, repair: bool) -> None:
        self._path = path
        self._repair = repair
        self._decode = msgspec.json.Decoder(list[_Order]).decode
        first = next(self.events({}), None)
        prices = first[0].price[:_SAMPLE].tolist() if first else []
        self.price_decimals = decimals(set(map(repr, prices)))

    def events(self, counts: dict[str, int]) -> Iterator[tuple[OrderEvents, float]]:
        """Order events and the share read."""
        number = 1
        try:
            for text, done in TextFile(self._path).blocks():
                lines = text.splitlines()
                for start in range(0, len(lines), _BATCH):
                    part = lines[start : start + _BATCH]
                    numbers = np.arange(number, number + len(part))
                    yield self._events(part, numbers, counts), done
                    number += len(part)
        except DAMAGE as error:
            if not self._repair:
                where = f"{self._path}: damaged after line {number - 1}"
                raise DataError(f"{where}: {error}") from error
            count(counts, "files damaged at the end")

    def _events(self, lines: list[bytes], numbers: Ints, counts: dict[str, int]) -> OrderEvents:
        try:
            return self._decoded(lines, numbers, counts)
        except _UNREADABLE:
            good = np.array(
                [self._is_readable(*pair, counts) for pair in zip(lines, numbers, strict=True)],
                bool,
            )
        kept = [line for line, keep in zip(lines, good.tolist(), strict=True) if keep]
        return self._decoded(kept, numbers[good], counts)

    def _is_readable(self, line: bytes, number: int, counts: dict[str, int]) -> bool:
        try:
            self._decoded([line], np.array([number]), {})
        except _UNREADABLE as error:
            if not self._repair:
                where = f"{self._path}: line {number}"
                raise DataError(f"{where}: {error}; want `<ms> <event> {{json}}`") from error
            count(counts, "lines unreadable")
            return False
        return True

    def _decoded(self, lines: list[bytes], numbers: Ints, counts: dict[str, int]) -> OrderEvents:
        stamps, events, bodies = [], [], []
        for line in lines:
            stamp, event, body = line.split(b" ", 2)
            events.append(event)
            if event in _EVENTS:
                stamps.append(int(stamp))
                bodies.append(body)
        orders = self._decode(b"[" + b",".join(bodies) + b"]")
        if len(orders) != len(bodies):
            raise ValueError("more than one order")
        price = np.array([float(order.price) for order in orders])
        left = np.array([float(order.amount) for order in orders])
        if not (np.isfinite(price) & np.isfinite(left)).all():
            raise ValueError("price or amount is no finite number")
        for event, times in Counter(events).items():
            if event not in _EVENTS:
                count(counts, f"{event[:32].decode('utf-8', 'replace')} left out", times)
        told = [at for at, event in enumerate(events) if event in _EVENTS]
        return OrderEvents(
            np.array([order.id for order in orders], np.int64),
            np.array(stamps, np.int64),
            price,
            left,
            np.array([_EVENTS[events[at]] for at in told], np.int64),
            np.array([1 - 2 * order.order_type for order in orders], np.int64),
            numbers[told],
        )

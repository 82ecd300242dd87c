"""What files hold, found in one pass before the import: instruments, ticks, states, symbols.

A tick that no definition gives is the largest step of which every book price is a multiple. Of few
records it is taken to be at most 1, since a handful of prices may share a larger one by chance.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from math import gcd
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hft.adapters.databento.records import (
    DEFINITION,
    F_LAST,
    LEVELS,
    MAPPING,
    MBO,
    STATUS,
    TRADES,
    UNDEF_PRICE,
    DbnFile,
    Run,
)
from hft.types import Trading

FEW_RECORDS = 64
_UNIT = 1_000_000_000  # fixed-point prices of 1
_UNDEF_TIME = (1 << 64) - 1

Key = tuple[int, int]  # publisher, instrument


class Change(NamedTuple):
    """A change of the trading state."""

    ts_event: int
    ts_recv: int
    state: Trading


class Definition(NamedTuple):
    """What a definition record says of an instrument; None: nothing."""

    symbol: str
    tick: float | None
    multiplier: float | None
    currency: str


@dataclass(slots=True)
class Seen:
    """Records of one instrument of one publisher."""

    rtypes: Counter[int] = field(default_factory=Counter)
    step: int = 0
    """Greatest common divisor of its book prices."""
    packets: bool = False
    """A record says that it ends a packet."""
    first_recv: int = 1 << 63
    last_recv: int = 0
    first_event: int = 1 << 63
    last_event: int = 0
    changes: list[Change] = field(default_factory=list)

    @property
    def tick(self) -> float | None:
        """The step that its prices show."""
        step = self.step
        if self.rtypes.total() < FEW_RECORDS:
            step = gcd(step, _UNIT)
        return step / _UNIT if self.step else None


@dataclass(slots=True)
class Survey:
    """What a file holds."""

    seen: dict[Key, Seen] = field(default_factory=dict)
    definitions: dict[int, Definition] = field(default_factory=dict)
    symbols: dict[int, str] = field(default_factory=dict)
    """By instrument, from symbol mappings in the stream."""
    others: Counter[str] = field(default_factory=Counter)
    """Records that are neither."""


def survey(file: DbnFile) -> Survey:
    """Look at every record of `file`."""
    found = Survey()
    for run in file.runs():
        if run.rtype == DEFINITION:
            _read_definitions(found, run.records)
        elif run.rtype == MAPPING:
            for record in run.records:
                symbol = record["stype_out_symbol"].decode("utf-8", "replace")
                found.symbols[int(record["instrument_id"])] = symbol
        elif run.rtype in (MBO, TRADES, STATUS, *LEVELS):
            _see(found, run)
        else:
            found.others[_name_of(run.rtype)] += len(run.records)
    return found


def _see(found: Survey, run: Run) -> None:
    records = run.records
    keys = records["publisher_id"].astype(np.int64) << 32 | records["instrument_id"]
    if (keys == keys[0]).all():
        parts = [records]
    else:
        order = np.argsort(keys, kind="stable")
        parts = np.split(records[order], np.flatnonzero(np.diff(keys[order])) + 1)
    for part in parts:
        key = (int(part["publisher_id"][0]), int(part["instrument_id"][0]))
        seen = found.seen.setdefault(key, Seen())
        seen.rtypes[run.rtype] += len(part)
        for which in ("recv", "event"):
            ts = part[f"ts_{which}"]
            ts = ts[ts != _UNDEF_TIME]
            if len(ts):
                first, last = getattr(seen, f"first_{which}"), getattr(seen, f"last_{which}")
                setattr(seen, f"first_{which}", min(first, int(ts.min())))
                setattr(seen, f"last_{which}", max(last, int(ts.max())))
        if run.rtype == STATUS:
            seen.changes += _changes(part)
        else:
            seen.packets = seen.packets or bool((part["flags"] & F_LAST != 0).any())
            _narrow(seen, run.rtype, part)


def _narrow(seen: Seen, rtype: int, records: NDArray[Any]) -> None:
    if rtype in LEVELS:
        prices = np.concatenate([records["levels"][side].ravel() for side in ("bid_px", "ask_px")])
    elif rtype == MBO:
        prices = records["price"][np.isin(records["action"], [ord(action) for action in "ACM"])]
    else:
        prices = records["price"]
    prices = prices[prices != UNDEF_PRICE]
    if not len(prices):
        return
    seen.step = seen.step or abs(int(prices[0]))
    if seen.step:
        off = prices % seen.step != 0
        if off.any():
            seen.step = gcd(seen.step, int(np.gcd.reduce(prices[off])))


# StatusAction. Pre-open, pre-cross, quoting, cross, rotation and price indication let orders rest
# without matching them; pre-close and changes of a short-sale restriction change nothing here.
_STATE_OF = {
    **dict.fromkeys((1, 2, 3, 4, 5, 6), Trading.AUCTION),
    7: Trading.OPEN,
    **dict.fromkeys((8, 9, 10), Trading.HALT),
    **dict.fromkeys((12, 13, 15), Trading.CLOSED),
}


def _changes(records: NDArray[Any]) -> list[Change]:
    return [
        Change(int(record["ts_event"]), int(record["ts_recv"]), _STATE_OF[int(record["action"])])
        for record in records
        if int(record["action"]) in _STATE_OF
    ]


def _read_definitions(found: Survey, records: NDArray[Any]) -> None:
    for record in records:
        tick = _given(int(record["min_price_increment"]))
        worth = _given(int(record["min_price_increment_amount"]))
        found.definitions[int(record["instrument_id"])] = Definition(
            symbol=record["raw_symbol"].decode("utf-8", "replace"),
            tick=tick,
            multiplier=worth / tick if worth and tick else None,
            currency=record["currency"].decode("utf-8", "replace"),
        )


def _given(price: int) -> float | None:
    return price / _UNIT if 0 < price < UNDEF_PRICE else None


def _name_of(rtype: int) -> str:
    from hft.adapters.databento.records import library

    return str(library().RType.from_int(rtype).name).lower().replace("_", "-")

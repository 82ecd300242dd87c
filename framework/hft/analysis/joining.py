"""Runs of single days put together into one, as if one account had lived through them.

Every day began flat and with orders from 1. Here ids go on, fees, funding and equity are added up,
and rows are counted over all days. What a day could not close stays in the account: nobody manages
it, and it is marked with the market of the days that follow, so that the sum of all fills is the
position at every sample and the identity of `pnl.py` holds over the whole run.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hft.analysis.mids import joined
from hft.analysis.records import NO_PRICE
from hft.analysis.run_data import InstrumentFacts, Rows, RunData
from hft.journal import RecordKind, checksums


@dataclass(slots=True)
class _Carried:
    """One instrument's account at the end of the day before."""

    position: int = 0
    cash: int = 0
    """Equity less the mark of the position [1e-9 currency]."""
    fees: int = 0
    funding: int = 0
    impact: int = 0
    mid2: int = NO_PRICE
    rows: int = 0


@dataclass(slots=True)
class Joining:
    """Takes days in, in order."""

    runs: list[RunData] = field(default_factory=list)
    journals: list[NDArray[Any]] = field(default_factory=list)
    _carried: list[_Carried] = field(default_factory=list)
    _tags: list[str] = field(default_factory=list)
    _orders: int = 0
    _parents: int = 0

    def add(self, run: RunData, journal: NDArray[Any], rows: tuple[int, ...]) -> None:
        """Append a day.

        Args:
            run: what the day left.
            journal: its records (hft.journal.JOURNAL), changed in place but for their checksums.
            rows: its market rows by instrument.
        """
        if not self._carried:
            self._carried = [_Carried() for _ in run.instruments]
        tags = np.array([self._tag(name) for name in run.tags], np.int64)
        orders, fills, samples = run.orders.copy(), run.fills.copy(), run.samples.copy()
        first = np.array([c.rows for c in self._carried], np.int64)
        parents = int(orders["parent"].max(initial=0))
        _renumber(orders, "id", self._orders, first)
        _renumber(fills, "order", self._orders, first)
        orders["parent"][orders["parent"] > 0] += self._parents
        orders["tag"] = tags[orders["tag"]]
        for number, facts in enumerate(run.instruments):
            carried = self._carried[number]
            fills["position"][fills["instrument"] == number] += carried.position
            mine = samples["instrument"] == number
            samples[mine] = _carry(samples[mine], facts, carried)
            carried.rows += rows[number]
        self._journal(journal, tags)
        self._orders += len(orders)
        self._parents += parents
        self.runs.append(dataclasses.replace(run, orders=orders, fills=fills, samples=samples))

    def journal(self) -> NDArray[np.uint8]:
        """Records of all days, one after the other, checksums set."""
        records = np.concatenate(self.journals)
        records["check"] = checksums(records)
        return records.view(np.uint8)

    def rows_by_instrument(self) -> tuple[int, ...]:
        """Market rows of all days."""
        return tuple(carried.rows for carried in self._carried)

    def run(self) -> RunData:
        """All days as one; how it ended is how the last one did."""
        first, last = self.runs[0], self.runs[-1]
        counters: dict[str, int | float] = {}
        stages: dict[str, float] = {}
        for run in self.runs:
            for name, count in run.counters.items():
                counters[name] = counters.get(name, 0) + count
            for name, seconds in run.stages_s.items():
                stages[name] = stages.get(name, 0.0) + seconds
        return dataclasses.replace(
            last,
            started_utc=first.started_utc,
            wall_s=sum(run.wall_s for run in self.runs),
            ts_start=first.ts_start,
            rows=sum(run.rows for run in self.runs),
            stages_s=stages,
            orders=np.concatenate([run.orders for run in self.runs]),
            fills=np.concatenate([run.fills for run in self.runs]),
            samples=np.concatenate([run.samples for run in self.runs]),
            tags=list(self._tags),
            counters=counters,
            feed_latency_ns=np.concatenate([run.feed_latency_ns for run in self.runs]),
            model_wait_ns=np.concatenate([run.model_wait_ns for run in self.runs]),
            model_service_ns=np.concatenate([run.model_service_ns for run in self.runs]),
            reuse=np.concatenate([run.reuse for run in self.runs]),
            traded_lots=_sums([run.traded_lots for run in self.runs]),
            mids=joined([run.mids for run in self.runs]),
            notes=list(dict.fromkeys(note for run in self.runs for note in run.notes)),
        )

    def _tag(self, name: str) -> int:
        if name not in self._tags:
            self._tags.append(name)
        return self._tags.index(name)

    def _journal(self, journal: NDArray[Any], tags: NDArray[np.int64]) -> None:
        journal["order"][journal["order"] > 0] += np.uint64(self._orders)
        new = journal["kind"] == RecordKind.NEW  # `b` and `c` are its tag and parent
        journal["b"][new] = tags[journal["b"][new]]
        journal["c"][new & (journal["c"] > 0)] += self._parents
        self.journals.append(journal)


def _sums(by_day: list[list[int]]) -> list[int]:
    """By instrument; empty unless every day counted."""
    return [sum(lots) for lots in zip(*by_day, strict=True)] if all(by_day) else []


def _renumber(rows: Rows, name: str, orders: int, first: NDArray[np.int64]) -> None:
    rows[name] += np.uint64(orders)
    known = rows["cause_row"] >= 0
    rows["cause_row"][known] += first[rows["instrument"][known]]


def _carry(samples: Rows, facts: InstrumentFacts, carried: _Carried) -> Rows:
    """A day's samples of one instrument, with what came before; `carried` moves to their end."""
    if not samples.size:
        return samples
    today = _marks(samples)
    mid2 = np.where(today != NO_PRICE, today, carried.mid2)
    held, own = carried.position, samples["position"].astype(np.int64)
    samples["equity"] += carried.cash
    if held:
        for at, (lots, mark, before) in enumerate(zip(own, mid2, today, strict=True)):
            samples["equity"][at] += mark_e9(facts, held + int(lots), int(mark))
            samples["equity"][at] -= mark_e9(facts, int(lots), int(before))
    for name in ("position", "fees", "funding", "impact"):
        samples[name] += getattr(carried, name)
    last = samples[-1]
    carried.position, carried.mid2 = int(last["position"]), int(mid2[-1])
    for name in ("fees", "funding", "impact"):
        setattr(carried, name, int(last[name]))
    carried.cash = int(last["equity"]) - mark_e9(facts, carried.position, carried.mid2)
    return samples


def _marks(samples: Rows) -> NDArray[np.int64]:
    """Bid + ask that the core marked each sample with: the last two-sided ones, (n,)."""
    known = (samples["bid"] != NO_PRICE) & (samples["ask"] != NO_PRICE)
    at = np.maximum.accumulate(np.where(known, np.arange(samples.size), -1))
    mid2: NDArray[np.int64] = np.where(at >= 0, (samples["bid"] + samples["ask"])[at], NO_PRICE)
    return mid2


def mark_e9(facts: InstrumentFacts, lots: int, mid2: int) -> int:
    """What a position is worth as the core marks it, `Instrument::mark` [1e-9 currency]."""
    if lots == 0 or mid2 == NO_PRICE:
        return 0
    if not facts.spec.inverse:
        value = facts.tick_value_e9
        doubled = abs(lots * mid2) * value.numerator
        units = doubled // 2
        if value.denominator > 1:
            units = (doubled + value.denominator) // (2 * value.denominator)
        return units if lots * mid2 >= 0 else -units
    worth = lots * facts.spec.lot * facts.spec.multiplier * 1e9 / (mid2 * 0.5 * facts.spec.tick)
    return -(int(abs(worth) + 0.5) if worth >= 0 else -int(abs(worth) + 0.5))

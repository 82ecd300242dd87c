"""A replay in a few lines: a market, timed actions, and what came of them.

    sim = Sim(entry=30, response=30)
    sim.book(bids={100: 10}, asks={101: 10}, at=0)
    order = sim.submit(BUY, price=100, lots=5, at=0)
    sim.trade(SELL, price=99, lots=5, at=40)
    assert sim.updates(order) == ["ACCEPTED@30", "FILLED@40"]

Times are whole ns after the start of the run, on the venue's clock for the market and its answers,
on ours for actions. Without a feed delay both agree. Everything runs through `hft.engine`; nothing
is replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hft import Strategy
from hft.analysis.records import NO_PRICE, FillReason, OrderState, Reason
from hft.engine import Outcome, run_once
from hft.journal import JOURNAL
from hft.plan import prepare
from hft.types import EVENT, SEEN_BY_BOTH, Datum, Flag, InstrumentSpec, Kind, Tif, Trading

T0 = 1_700_000_000_000_000_000
"""Instant that a test's times count from [ns]; not a multiple of a day, so that grids show."""
MONEY = 1_000_000_000

UPDATE, NEW, REPLACE = 3, 7, 9
UPDATES = {
    1: "ACCEPTED",
    2: "REJECTED",
    3: "FILL",
    4: "CANCELED",
    5: "CANCEL_REJECTED",
    6: "REPLACED",
    7: "REPLACE_REJECTED",
    8: "EXPIRED",
    9: "FUNDING",
}


@dataclass(frozen=True)
class Said:
    """One answer of the venue, as the journal keeps it; times after the start [ns]."""

    what: str
    ts: int
    heard: int
    order: int
    price: int
    lots: int
    reason: Reason
    fill_reason: FillReason

    def __str__(self) -> str:
        return f"{self.what}@{self.ts}"


@dataclass(frozen=True)
class Fill:
    order: int
    price: int
    lots: int
    ts: int
    heard: int
    reason: str
    maker: bool
    fee: int
    position: int


@dataclass(eq=False)
class Ticket:
    """An order of the script; the strategy's handle once it is sent."""

    number: int
    handle: Any = None

    @property
    def id(self) -> int:
        return int(self.handle.id)


@dataclass
class Market:
    """Rows of one instrument, in the order they are written down."""

    name: str = "X.SIM"
    feed: int = 0
    rows: list[tuple[Any, ...]] = field(default_factory=list)

    def add(
        self,
        kind: Kind,
        at: int,
        *,
        side: int = 0,
        price: int = 0,
        lots: int = 0,
        order_id: int = 0,
        ref_id: int = 0,
        seen: int | None = None,
        flags: int | None = None,
    ) -> None:
        recv = T0 + (at + self.feed if seen is None else seen)
        flags = int(SEEN_BY_BOTH | Flag.LAST) if flags is None else flags
        self.rows.append((T0 + at, recv, price, lots, order_id, ref_id, 0, 0, kind, side, flags))

    def array(self) -> np.ndarray:
        rows = np.array(self.rows, EVENT)
        return rows[np.argsort(rows["ts_event"], kind="stable")]


class Scripted(Strategy):
    """Does what the script says when its time comes, and keeps what it is told."""

    script: list[tuple[int, Callable[[Strategy], Any]]]

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[tuple[int, int, str]] = []

    def on_start(self) -> None:
        for at, action in self.script:
            self.at(T0 + at, action, self)

    def on_order(self, order: Any) -> None:
        self.heard.append((self.now - T0, order.id, order.state.name))


class Sim:
    """One instrument by default; `also` adds more, by name."""

    def __init__(
        self,
        *,
        entry: Any = 0,
        response: Any = 0,
        compute: Any = 0,
        inference: Any = 0,
        feed: int = 0,
        latency: Mapping[str, Any] | None = None,
        venue: Mapping[str, Any] | None = None,
        risk: Mapping[str, Any] | None = None,
        engine: Mapping[str, Any] | None = None,
        also: tuple[str, ...] = (),
        recipe: Mapping[str, Any] | None = None,
        **spec: Any,
    ) -> None:
        self.tables = {
            "latency": {
                **dict(entry=entry, response=response, compute=compute, inference=inference),
                **(latency or {}),
            },
            "venue": dict(venue or {}),
            "risk": dict(risk or {}),
            "engine": {"bracket": False, **(engine or {})},
            **(recipe or {}),
        }
        self.markets = {name: Market(name, feed) for name in ("X.SIM", *also)}
        self.spec = {"tick": 1.0, "lot": 1.0, **spec}
        self.script: list[tuple[int, Callable[[Strategy], Any]]] = []
        self.tickets: list[Ticket] = []
        self.strategy: type[Strategy] = Scripted
        self.chunk: int | None = None
        self.end: int | None = None
        self._outcome: Outcome | None = None

    # ---- the market

    def _market(self, inst: str | None) -> Market:
        return self.markets[inst or "X.SIM"]

    def level(
        self, side: int, price: int, lots: int, *, at: int, inst: str | None = None, **more: Any
    ) -> None:
        self._market(inst).add(Kind.LEVEL, at, side=side, price=price, lots=lots, **more)

    def book(
        self,
        *,
        bids: Mapping[int, int] | None = None,
        asks: Mapping[int, int] | None = None,
        at: int = 0,
        inst: str | None = None,
    ) -> None:
        """Sets levels, all in one packet."""
        rows = [(1, p, q) for p, q in (bids or {}).items()] + [
            (-1, p, q) for p, q in (asks or {}).items()
        ]
        for k, (side, price, lots) in enumerate(rows):
            last = Flag.LAST if k == len(rows) - 1 else 0
            self.level(side, price, lots, at=at, inst=inst, flags=int(SEEN_BY_BOTH | last))

    def trade(
        self, side: int, price: int, lots: int, *, at: int, inst: str | None = None, **more: Any
    ) -> None:
        """A print; `side` is the aggressor's."""
        self._market(inst).add(Kind.TRADE, at, side=side, price=price, lots=lots, **more)

    def theirs(
        self,
        kind: Kind,
        number: int,
        side: int = 0,
        price: int = 0,
        lots: int = 0,
        *,
        at: int,
        ref: int = 0,
        flags: int = 0,
        inst: str | None = None,
    ) -> None:
        """A row of an order-by-order feed; `side` is the resting order's, `ref` the other id."""
        flags |= int(SEEN_BY_BOTH | Flag.LAST)
        self._market(inst).add(
            kind, at, side=side, price=price, lots=lots, order_id=number, ref_id=ref, flags=flags
        )

    def mark(self, kind: Kind, *, at: int, inst: str | None = None) -> None:
        """A row without content: the ends of a snapshot."""
        last = Flag.LAST if kind == Kind.SNAPSHOT_END else 0
        self._market(inst).add(kind, at, flags=int(SEEN_BY_BOTH | last))

    def snapshot(
        self, *, bids: Mapping[int, int], asks: Mapping[int, int], at: int, inst: str | None = None
    ) -> None:
        market, quiet = self._market(inst), int(SEEN_BY_BOTH)
        market.add(Kind.SNAPSHOT_BEGIN, at, flags=quiet)
        for side, levels in ((1, bids), (-1, asks)):
            for price, lots in levels.items():
                market.add(Kind.LEVEL, at, side=side, price=price, lots=lots, flags=quiet)
        market.add(Kind.SNAPSHOT_END, at)

    def status(self, trading: Trading, *, at: int, inst: str | None = None) -> None:
        self._market(inst).add(Kind.STATUS, at, ref_id=int(trading))

    def clear(
        self, *, at: int, side: int = 0, through: int | None = None, inst: str | None = None
    ) -> None:
        self._market(inst).add(
            Kind.CLEAR, at, side=side, price=through or 0, ref_id=0 if through is None else 1
        )

    def funding(self, rate_e9: int, mark: int, *, at: int, inst: str | None = None) -> None:
        self._market(inst).add(
            Kind.DATUM, at, order_id=int(Datum.FUNDING), ref_id=rate_e9, price=mark
        )

    def tick(self, at: int, inst: str | None = None) -> None:
        """A row that changes nothing, so that time passes."""
        self._market(inst).add(Kind.DATUM, at, order_id=int(Datum.SIGNAL))

    # ---- what we do

    def call(self, action: Callable[[Strategy], Any], *, at: int) -> None:
        self.script.append((at, action))

    def submit(
        self,
        side: int,
        *,
        price: int | None = None,
        lots: int,
        at: int,
        tif: Tif = Tif.GTC,
        inst: str = "X.SIM",
        **more: Any,
    ) -> Ticket:
        ticket = Ticket(len(self.tickets) + 1)
        self.tickets.append(ticket)

        def send(s: Strategy) -> None:
            ticket.handle = s.submit(inst, side, lots, price, tif, **more)

        self.call(send, at=at)
        return ticket

    def cancel(self, ticket: Ticket, *, at: int) -> None:
        self.call(lambda s: s.cancel(ticket.handle), at=at)

    def replace(
        self, ticket: Ticket, *, at: int, price: int | None = None, lots: int | None = None
    ) -> None:
        self.call(lambda s: s.replace(ticket.handle, price=price, lots=lots), at=at)

    # ---- what came of it

    @property
    def outcome(self) -> Outcome:
        if self._outcome is None:
            self._outcome = self._run()
        return self._outcome

    def _run(self) -> Outcome:
        # Timers fire only while there is market to come: a last row after all that is scripted.
        if self.end is not None:
            last = self.end
        else:
            times = [at for at, _ in self.script]
            times += [int(r[1] - T0) for m in self.markets.values() for r in m.rows]
            last = max(times, default=0) + 1_000
        for market in self.markets.values():
            first = min((int(r[0] - T0) for r in market.rows), default=0)
            if first > 0 or not market.rows:
                market.add(Kind.DATUM, 0, order_id=int(Datum.SIGNAL))
            if self.end is None:
                market.add(Kind.DATUM, last, order_id=int(Datum.SIGNAL))
        cls = type("Script", (self.strategy,), {"script": self.script, "__module__": __name__})
        specs = [
            InstrumentSpec(symbol=n.split(".")[0], venue=n.split(".")[1], **self.spec)
            for n in self.markets
        ]
        data = {n: m.array() for n, m in self.markets.items()}
        if self.chunk is not None:
            self.tables["data"] = {"chunk_rows": self.chunk}
        plan = prepare(cls, data, specs=specs, recipe=self.tables)
        if self.chunk is not None:
            plan = rechunked(plan, self.chunk)
        outcome = run_once(plan)
        return outcome

    def run(self) -> Outcome:
        """Runs, and fails unless the run is complete."""
        assert self.outcome.run.status == "complete", self.outcome.run.error
        return self.outcome

    @property
    def journal(self) -> np.ndarray:
        return self.run().journal.view(JOURNAL)

    def said(self, ticket: Ticket | None = None) -> list[Said]:
        """The venue's answers in the order we heard them."""
        out = []
        open_lots: dict[int, int] = {}
        for r in self.journal:
            order = int(r["order"])
            if r["kind"] == NEW:
                open_lots[order] = int(r["lots"])
            if r["kind"] != UPDATE:
                continue
            kind = UPDATES[int(r["a"]) >> 24]
            if kind == "REPLACED":
                done = sum(s.lots for s in out if s.order == order and "FILLED" in s.what)
                open_lots[order] = int(r["lots"]) - done
            if kind == "FILL":
                open_lots[order] -= int(r["lots"])
                kind = "FILLED" if open_lots[order] == 0 else "PARTLY_FILLED"
            out.append(
                Said(
                    kind,
                    int(r["c"]) - T0,
                    int(r["ts"]) - T0,
                    order,
                    int(r["price"]),
                    int(r["lots"]),
                    Reason(int(r["a"]) >> 16 & 0xFF),
                    FillReason(int(r["a"]) >> 8 & 0xFF),
                )
            )
        return [s for s in out if ticket is None or (ticket.handle and s.order == ticket.id)]

    def updates(self, ticket: Ticket) -> list[str]:
        return [str(s) for s in self.said(ticket)]

    def heard(self, ticket: Ticket) -> list[str]:
        """States of an order as `on_order` saw them, on our clock."""
        self.run()
        return [
            f"{state}@{at}"
            for at, order, state in self.outcome.strategy.heard
            if order == ticket.id
        ]

    def fills(self, ticket: Ticket | None = None) -> list[Fill]:
        rows = self.run().run.fills
        return [
            Fill(
                int(f["order"]),
                int(f["price"]),
                int(f["lots"]),
                int(f["ts_venue"]) - T0,
                int(f["ts_recv"]) - T0,
                FillReason(int(f["reason"])).name,
                bool(f["maker"]),
                int(f["fee"]),
                int(f["position"]),
            )
            for f in rows
            if ticket is None or f["order"] == ticket.id
        ]

    def filled(self, ticket: Ticket) -> int:
        return sum(f.lots for f in self.fills(ticket))

    def order_row(self, ticket: Ticket) -> Any:
        self.run()
        return self.outcome.run.orders[ticket.id - 1]

    def state(self, ticket: Ticket) -> str:
        return OrderState(int(self.order_row(ticket)["state"])).name

    def reason(self, ticket: Ticket) -> str:
        return Reason(int(self.order_row(ticket)["reason"])).name

    def position(self, inst: int = 0) -> int:
        fills = self.run().run.fills
        mine = fills[fills["instrument"] == inst]
        return int((mine["lots"] * mine["side"]).sum())

    def last_sample(self, inst: int = 0) -> Any:
        samples = self.run().run.samples
        return samples[samples["instrument"] == inst][-1]

    def equity(self, inst: int = 0) -> int:
        """At the end [1e-9 currency]."""
        return int(self.last_sample(inst)["equity"])

    def ahead(self, ticket: Ticket) -> float:
        return float(self.order_row(ticket)["ahead_at_accept"])


def rechunked(plan: Any, rows: int) -> Any:
    """The same plan, its feeds cut into chunks of so many rows."""
    import dataclasses

    def cut(feed: Any) -> Any:
        def chunks() -> Any:
            for whole in feed.chunks():
                for k in range(0, len(whole), rows):
                    yield whole[k : k + rows].copy()

        return dataclasses.replace(feed, chunks=chunks)

    return dataclasses.replace(plan, feeds=[cut(f) for f in plan.feeds])


__all__ = [
    "JOURNAL",
    "MONEY",
    "NO_PRICE",
    "T0",
    "Fill",
    "Said",
    "Scripted",
    "Sim",
    "Ticket",
    "rechunked",
]

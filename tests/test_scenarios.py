"""Runs scenarios/*.txt: what happens to orders, told so that a trader can check it by hand.

    latency entry=30 response=30            key=value; a list is `1,2`
      0  book    bid 10 @ 100, 5 @ 99  ask 8 @ 101
      0  submit  #1 buy 5 @ 100              then ioc, fok or post; `@ market`
     20  cancel  #1                          replace #1 7 @ 101
     40  trade   sell 5 @ 99                 the aggressor's side
    expect  30 accepted #1 · 40 filled #1 5 @ 100 · 50 cancel-rejected #1
    result  position 5 · fees 0

Settings: `latency`, `venue`, `impact`, `slippage`, `risk`, `engine`, `instrument`. Other lines:
`snapshot`, `halt`, `auction`, `close`, `open`, `gap`, `funding 0.0001 @ 100`, `quiet`
(nothing but time), `end` (of the data), `flatten`, `# remark`. Market times are the venue's, times
of our actions ours, times of `expect` the venue's again; all in ns from the start. `expect` lists
every answer, nothing else may come.

Markets told order by order name the orders of others by letters:

      0  add      a buy 5 @ 100, b sell 3 @ 101         `snapshot` likewise
     10  modify   a 3 @ 100                             what is left, where
     10  cancel   a 2                                   or all of it: `cancel a`
     10  replace  a b 5 @ 99                            b instead of a, last in its queue
     20  execute  a 2                                   `untold`: the book changes by another row
     20  match    a b 2 @ 100                           in an auction: buyer, seller
     20  trade    sell 2 @ 100                          hidden: no order that is shown

Orders that the risk gate stops never reach the venue: `refused #1 position-limit`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from sim import MONEY, Sim

from hft.analysis.records import OrderState
from hft.types import BUY, SELL, Flag, Kind, Tif, Trading

SCENARIOS = sorted((Path(__file__).parent / "scenarios").glob("*.txt"))
SIDES = {"buy": BUY, "sell": SELL, "unknown": 0}
TIFS = {"": Tif.GTC, "ioc": Tif.IOC, "fok": Tif.FOK, "post": Tif.POST_ONLY}
STATES = {
    "halt": Trading.HALT,
    "auction": Trading.AUCTION,
    "close": Trading.CLOSED,
    "open": Trading.OPEN,
    "gap": Trading.GAP,
}
LEVEL = re.compile(r"(\d+) @ (\d+)")
ORDER = re.compile(r"(\w+) (buy|sell) (\d+) @ (\d+)")
FAULTS = ("unknown_ids", "reused_ids", "overfills")
COUNTS = {
    "extrapolated": "fills_extrapolated",
    "unfilled": "taker_unfilled_lots",
    "faded": "faded_lots",
    "capped": "capped_lots",
}
SETTINGS = ("latency", "venue", "impact", "slippage", "risk", "engine", "instrument")


class Scenario:
    """One file: builds the simulation and says what it should have come to."""

    def __init__(self, text: str) -> None:
        self.settings: dict[str, dict[str, Any]] = {}
        self.lines: list[tuple[int, str, str]] = []
        self.expect: list[str] = []
        self.result: dict[str, str] = {}
        for number, raw in enumerate(text.splitlines(), 1):
            line = re.sub(r"(^|\s)#(\s.*|$)", "", raw).strip()
            if line:
                self._read(line, number)

    def _read(self, line: str, number: int) -> None:
        word, _, rest = line.partition(" ")
        if word == "expect":
            self.expect += [" ".join(part.split()) for part in rest.split("·")]
        elif word == "result":
            self.result |= dict(part.split() for part in rest.split("·"))
        elif word in SETTINGS:
            self.settings[word] = {
                k: plain(v) for k, _, v in (p.partition("=") for p in rest.split())
            }
        elif word.isdigit():
            verb, _, more = rest.strip().partition(" ")
            self.lines.append((int(word), verb, more.strip()))
        else:
            raise ValueError(f"line {number}: no time and no keyword: {line!r}")

    def play(self) -> tuple[Sim, dict[str, Any]]:
        given = self.settings
        tables = {k: given[k] for k in ("impact", "slippage") if k in given}
        sim = Sim(
            latency=given.get("latency"),
            venue=given.get("venue", {}) | tables,
            risk=given.get("risk"),
            engine=given.get("engine"),
            **given.get("instrument", {}),
        )
        orders: dict[str, Any] = {}
        others = Others(sim)
        for at, verb, rest in self.lines:
            if not others.step(at, verb, rest):
                step(sim, orders, at, verb, rest)
        return sim, orders


class Others:
    """Orders of others, by their letters."""

    def __init__(self, sim: Sim) -> None:
        self.sim = sim
        self.numbers: dict[str, int] = {}
        self.known: dict[str, tuple[int, int]] = {}  # side, price

    def step(self, at: int, verb: str, rest: str) -> bool:
        """Writes the rows of a line; False: the line is not about orders of others."""
        words = rest.split()
        if verb == "add" or (verb == "snapshot" and ORDER.match(rest)):
            self.add(at, verb, rest)
        elif verb == "match":
            buyer, seller, lots, _, price = words
            self.row(Kind.EXECUTE, buyer, at, 0, int(price), int(lots), ref=self.number(seller))
        elif verb in ("modify", "cancel", "replace", "execute") and not rest.startswith("#"):
            getattr(self, verb)(at, *words)
        else:
            return False
        return True

    def number(self, name: str) -> int:
        return self.numbers.setdefault(name, len(self.numbers) + 1)

    def row(self, kind: Kind, name: str, at: int, *what: int, **more: int) -> None:
        self.sim.theirs(kind, self.number(name), *what, at=at, **more)

    def add(self, at: int, verb: str, rest: str) -> None:
        if verb == "snapshot":
            self.sim.mark(Kind.SNAPSHOT_BEGIN, at=at)
        for name, side, lots, price in ORDER.findall(rest):
            self.known[name] = SIDES[side], int(price)
            self.row(Kind.ADD, name, at, SIDES[side], int(price), int(lots))
        if verb == "snapshot":
            self.sim.mark(Kind.SNAPSHOT_END, at=at)

    def where(self, name: str) -> tuple[int, int]:
        return self.known.get(name, (BUY, 1))

    def modify(self, at: int, name: str, lots: str, _: str, price: str) -> None:
        side, _ = self.where(name)
        self.known[name] = side, int(price)
        self.row(Kind.MODIFY, name, at, side, int(price), int(lots))

    def cancel(self, at: int, name: str, lots: str = "0") -> None:
        self.row(Kind.CANCEL, name, at, *self.where(name), int(lots))

    def replace(self, at: int, name: str, new: str, lots: str, _: str, price: str) -> None:
        self.known[new] = self.where(name)[0], int(price)
        self.row(Kind.REPLACE, name, at, *self.known[new], int(lots), ref=self.number(new))

    def execute(self, at: int, name: str, lots: str, untold: str = "") -> None:
        flags = int(Flag.NO_PRINT | Flag.NO_CHANGE) if untold else 0
        self.row(Kind.EXECUTE, name, at, *self.where(name), int(lots), flags=flags)


def plain(text: str) -> Any:
    if "," in text:
        return [plain(part) for part in text.split(",") if part]
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def levels(text: str) -> tuple[dict[int, int], dict[int, int]]:
    bids, _, asks = text.partition("ask")
    return (
        {int(p): int(q) for q, p in LEVEL.findall(bids)},
        {int(p): int(q) for q, p in LEVEL.findall(asks)},
    )


def step(sim: Sim, orders: dict[str, Any], at: int, verb: str, rest: str) -> None:
    words = rest.split()
    if verb in ("book", "snapshot"):
        bids, asks = levels(rest)
        getattr(sim, verb)(bids=bids, asks=asks, at=at)
    elif verb == "trade":
        sim.trade(SIDES[words[0]], int(words[3]), int(words[1]), at=at)
    elif verb == "submit":
        price = None if words[4] == "market" else int(words[4])
        tif = TIFS[words[5] if len(words) > 5 else ""]
        orders[words[0]] = sim.submit(
            SIDES[words[1]], lots=int(words[2]), price=price, tif=tif, at=at
        )
    elif verb == "cancel":
        sim.cancel(orders[words[0]], at=at)
    elif verb == "replace":
        sim.replace(orders[words[0]], lots=int(words[1]), price=int(words[3]), at=at)
    elif verb == "flatten":
        sim.call(lambda s: s.flatten(), at=at)
    elif verb in STATES:
        sim.status(STATES[verb], at=at)
    elif verb == "funding":
        sim.funding(round(float(words[0]) * MONEY), int(words[2]), at=at)
    elif verb == "quiet":
        sim.tick(at)
    elif verb == "end":
        sim.end = at
        sim.tick(at)
    else:
        raise ValueError(f"unknown verb {verb!r}")


def told(sim: Sim, orders: dict[str, Any]) -> list[str]:
    """What happened, in the words of `expect`."""
    names = {t.id: name for name, t in orders.items() if t.handle is not None}
    lines = []
    for name, ticket in orders.items():
        row = sim.order_row(ticket) if ticket.handle is not None else None
        if row is not None and row["state"] == OrderState.REJECTED and row["ts_send"] < 0:
            lines.append(f"refused {name} {sim.reason(ticket).lower().replace('_', '-')}")
    for s in sim.said():
        what = s.what.lower().replace("_", "-").replace("partly-filled", "partly")
        text = f"{s.ts} {what} {names.get(s.order, '')}".rstrip()
        if "FILLED" in s.what:
            text += f" {s.lots} @ {s.price} {s.fill_reason.name.lower()}"
        elif s.what == "REPLACED":
            text += f" {s.lots} @ {s.price}"
        elif s.what in ("REJECTED", "EXPIRED", "REPLACE_REJECTED"):
            text += " " + s.reason.name.lower().replace("_", "-")
        lines.append(text)
    return lines


def results(sim: Sim) -> dict[str, str]:
    """Position, money amounts in currency, counts of lots and fills, and faults of the feed."""
    sample = sim.last_sample()
    money = {name: sample[name] / MONEY for name in ("equity", "fees", "funding", "impact")}
    cash = sum(
        -f.lots * f.price * (1 if f.position > before else -1)
        for f, before in with_position_before(sim)
    )
    counters = sim.run().run.counters
    faults = {f.replace("_", "-"): str(counters.get(f"l3_{f}")) for f in FAULTS}
    counts = {name: str(counters.get(key)) for name, key in COUNTS.items()}
    return {
        "position": str(int(sample["position"])),
        "cash": f"{cash:g}",
        **{k: f"{v:.9g}" for k, v in money.items()},
        **faults,
        **counts,
    }


def with_position_before(sim: Sim) -> list[tuple[Any, int]]:
    before, out = 0, []
    for f in sim.fills():
        out.append((f, before))
        before = f.position
    return out


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda p: p.stem)
def test_scenario(path: Path) -> None:
    scenario = Scenario(path.read_text())
    sim, orders = scenario.play()
    sim.run()
    assert told(sim, orders) == scenario.expect
    found = results(sim)
    assert {k: found[k] for k in scenario.result} == scenario.result


def test_there_are_scenarios_and_each_expects_something() -> None:
    assert len(SCENARIOS) >= 15
    assert all("expect" in p.read_text() for p in SCENARIOS)

"""One random market through the core and through its plain-Python twin, and what must be equal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from naive import Legs, Naive
from naive_listing import Listing, Rules
from random_market import MID, random_tape
from sim import JOURNAL, T0, UPDATE, UPDATES, rechunked

from hft import Strategy
from hft.analysis.records import FillReason
from hft.engine import run_once
from hft.execution.latency import core_legs
from hft.plan import prepare
from hft.types import EVENT, SEEN_BY_BOTH, Datum, Flag, InstrumentSpec, Kind

MS = 1_000_000
MAKER_E9, TAKER_E9 = -12_345, 543_210
COUNTERS = ("fills_extrapolated", "taker_unfilled_lots", "faded_lots", "capped_lots")


def random_script(rng: np.random.Generator, instruments: int, end: int) -> list[tuple[Any, ...]]:
    """(at, verb, instrument or order number, side, lots, price, tif)."""
    script: list[tuple[Any, ...]] = []
    sent = 0
    for at in sorted(int(t) for t in rng.integers(T0, end, 120)):
        draw = rng.random()
        side = int(rng.choice([1, -1]))
        price = MID - side * int(rng.integers(-3, 6))
        if draw < 0.6 or sent == 0:
            sent += 1
            tif = int(rng.choice([0, 0, 0, 1, 2, 3, 3]))
            market = rng.random() < 0.05
            script.append(
                (
                    at,
                    "submit",
                    int(rng.integers(0, instruments)),
                    side,
                    int(rng.integers(1, 15)),
                    None if market else price,
                    1 if market else tif,
                )
            )
        else:
            which = max(0, sent - 1 - int(rng.integers(0, 6)))
            verb = "cancel" if draw < 0.8 else "replace"
            script.append((at, verb, which, side, int(rng.integers(1, 20)), price, 0))
    return script


class Randomly(Strategy):
    """Plays a script, and answers every third fill with a market order elsewhere."""

    script: list[tuple[Any, ...]]

    def on_start(self) -> None:
        self.sent: list[Any] = []
        self.count = 0
        self.all = list(self.instruments.values())
        for step in self.script:
            self.at(step[0], self.play, *step[1:])

    def play(
        self, verb: str, which: int, side: int, lots: int, price: int | None, tif: int
    ) -> None:
        if verb == "submit":
            self.sent.append(self.submit(self.all[which], side, lots, price, tif))
        elif verb == "cancel":
            self.cancel(self.sent[which])
        elif self.sent[which].price is not None:
            self.replace(self.sent[which], price=price, lots=lots)

    def on_order(self, order: Any) -> None:
        pass

    def on_fill(self, fill: Any) -> None:
        self.count += 1
        if self.count % 3 == 0:
            inst = self.all[(fill.instrument.id + 1) % len(self.all)]
            self.submit(inst, -fill.side, fill.lots, None, 1)


class Listens(Randomly):
    """Is busy with every packet, so that everything else waits for it."""

    def on_book(self, book: Any) -> None:
        pass


def naive_script(script: list[tuple[Any, ...]], sent: list[Any]) -> list[tuple[int, Any]]:
    def action(step: tuple[Any, ...]) -> Any:
        _, verb, which, side, lots, price, tif = step

        def play(n: Naive) -> None:
            if verb == "submit":
                sent.append(n.submit(which, side, lots, price, tif))
            elif verb == "cancel":
                n.cancel(sent[which])
            else:
                n.replace(sent[which], price, lots)

        return play

    return [(step[0], action(step)) for step in script]


def naive_reply(instruments: int) -> Any:
    count = 0

    def on_fill(n: Naive, order: Any, lots: int) -> None:
        nonlocal count
        count += 1
        if count % 3 == 0:
            n.submit((order.inst + 1) % instruments, -order.side, lots, None, 1)

    return on_fill


def core_answers(journal: np.ndarray) -> list[tuple[Any, ...]]:
    out = []
    for r in journal.view(JOURNAL):
        if r["kind"] == UPDATE:
            kind = UPDATES[int(r["a"]) >> 24]
            lots = int(r["lots"]) if kind in ("FILL", "REPLACED") else 0
            price = int(r["price"]) if kind in ("FILL", "REPLACED") else None
            out.append((int(r["order"]), kind, int(r["c"]), price, lots))
    return out


def rules_of(venue: dict[str, Any], seed: int) -> Rules:
    """A recipe's `[venue]` as the twin reads it."""
    flat = {k: v for k, v in venue.items() if k not in ("impact", "slippage")}
    flat |= venue.get("impact", {})
    flat |= {"slippage" if k == "model" else k: v for k, v in venue.get("slippage", {}).items()}
    return Rules(maker_e9=MAKER_E9, taker_e9=TAKER_E9, seed=seed, **flat)


def leg_file(spec: Any, file: Path) -> Any:
    """A leg as a recipe has it; rows of (time, ns) become a file."""
    if not isinstance(spec, list):
        return spec
    file.write_text("ts,ns\n" + "".join(f"{t},{ns}\n" for t, ns in spec))
    return {"file": str(file)}


class Drawn:
    """A leg of the core's, one message at a time: what it is drawn from is tested on its own."""

    def __init__(self, leg: Any) -> None:
        self.leg = leg

    def at(self, ts: int, n: int = 0) -> int:
        return int(self.leg.at(np.array([ts]), np.array([n]))[0])


def twin_legs(plan: Any, latency: dict[str, Any]) -> Legs:
    """As the recipe says them; what a profile tells is drawn by the core."""
    if "profile" not in latency:
        return Legs(**latency)
    drawn = core_legs(plan.recipe.latency, plan.recipe.seed, plan.feeds, ids=True)
    names = ("entry", "response", "compute", "risk", "entry_cancel", "entry_replace")
    kept = {name: Drawn(getattr(drawn, name)) for name in names}
    return Legs(**kept, ordering=latency.get("ordering", "fifo"))


def compare(
    seed: int,
    tmp_path: Path,
    *,
    instruments: int,
    venues: int,
    chunk: int,
    rules: dict[str, Any],
    entry: Any = None,
    response: Any = None,
    compute: int | None = None,
    legs: dict[str, Any] | None = None,
    inverse: bool = False,
    hears_books: bool = False,
    tape: Callable[[np.random.Generator, int, int], np.ndarray] = random_tape,
    tell: Callable[[int], type[Listing]] = lambda _: Listing,
    twin: type[Naive] = Naive,
) -> tuple[Any, Naive]:
    """Plays one market on both and compares what came of it.

    Args:
        seed: draws the market and the script.
        tmp_path: for files of latencies.
        instruments: so many, spread over the venues.
        venues: so many.
        chunk: rows that the core gets at a time.
        rules: of every venue.
        entry: to the venue [ns], or rows of (time, ns); None: drawn.
        response: back from it, likewise.
        compute: of a handler [ns]; None: drawn.
        legs: of `[latency]` besides these three.
        inverse: contracts that are worth one over the price.
        hears_books: a handler runs at every packet.
        tape: makes the rows of one instrument.
        tell: how the twin keeps an instrument.
        twin: the twin.

    Returns:
        The core's outcome and the twin.
    """
    rng = np.random.default_rng(seed)
    tapes = [tape(rng, 300, T0) for _ in range(instruments)]
    end = max(int(t["ts_recv"].max()) for t in tapes)
    quiet = (
        end + 500 * MS,
        end + 500 * MS,
        0,
        0,
        int(Datum.SIGNAL),
        0,
        0,
        0,
        Kind.DATUM,
        0,
        int(SEEN_BY_BOTH | Flag.LAST),
    )
    tapes = [np.append(t, np.array([quiet], EVENT)) for t in tapes]
    script = random_script(rng, instruments, end)
    entry = int(rng.choice([0, 1_000, 700_000, 5 * MS])) if entry is None else entry
    response = int(rng.choice([0, 1_000, 700_000, 5 * MS])) if response is None else response
    compute = int(rng.choice([0, 20_000, 3 * MS])) if compute is None else compute
    latency = dict(entry=entry, response=response, compute=compute) | (legs or {})
    names = [f"I{i}.V{i % venues}" for i in range(instruments)]
    specs = [
        InstrumentSpec(symbol=f"I{i}", venue=f"V{i % venues}", tick=0.5, lot=1.0, inverse=inverse)
        for i in range(instruments)
    ]
    recipe = {
        "seed": seed + 1,
        "latency": {k: leg_file(v, tmp_path / f"{k}.csv") for k, v in latency.items()},
        "venue": {**rules, "maker_fee": MAKER_E9 / 1e9, "taker_fee": TAKER_E9 / 1e9},
        "engine": {"bracket": False},
    }
    base = Listens if hears_books else Randomly
    cls = type("Play", (base,), {"script": script, "__module__": __name__})
    plan = prepare(cls, dict(zip(names, tapes, strict=True)), specs=specs, recipe=recipe)
    outcome = run_once(rechunked(plan, chunk))
    assert outcome.run.status == "complete", outcome.run.error

    told_by = rules_of(rules, seed + 1)
    listings = [tell(i)(i, told_by, i % venues, 0.5, inverse) for i in range(instruments)]
    naive = twin(
        listings,
        tapes,
        legs=twin_legs(plan, latency),
        script=naive_script(script, sent := []),
        on_fill=naive_reply(instruments),
        hears_books=hears_books,
    ).run()
    assert len(sent) > 0

    core = core_fills(outcome.run.fills)
    for i in range(instruments):
        mine, theirs = ([f for f in fs if f[1] == i] for fs in (core, naive.fills))
        same(mine, theirs)
    told = [
        (o, "FILL" if "FILL" in what else what, ts, price, lots)
        for o, what, ts, _, price, lots in naive.answers
    ]
    same(core_answers(outcome.journal), told)
    travelled = outcome.run.orders[["ts_send", "ts_arrive"]].tolist()
    same(travelled, [(o.sent, o.arrived) for o in naive.orders])
    for x in listings:
        same_money(outcome.run.samples, x)
    assert outcome.run.traded_lots == [x.trades.volume for x in listings]
    left = [x.overlay.level(outcome.run.ts_end) for x in listings]
    assert outcome.run.overlay_ticks == pytest.approx(left)
    counters = outcome.run.counters
    assert {k: counters[k] for k in COUNTERS} == {k: naive.counters[k] for k in COUNTERS}
    return outcome, naive


def core_fills(fills: np.ndarray) -> list[tuple[Any, ...]]:
    return [
        (
            int(f["ts_venue"]),
            int(f["instrument"]),
            int(f["order"]),
            int(f["price"]),
            int(f["lots"]),
            FillReason(int(f["reason"])).name,
            bool(f["maker"]),
            int(f["fee"]),
            int(f["impact"]),
            bool(f["extrapolated"]),
            int(f["position"]),
            int(f["cause_row"]),
            float(f["ahead_at_accept"]) if f["maker"] else None,
        )
        for f in fills
    ]


def same_money(samples: np.ndarray, x: Listing) -> None:
    last = samples[samples["instrument"] == x.number][-1]
    sums = ("position", "fees", "funding", "impact")
    assert [int(last[k]) for k in sums] == [getattr(x, k) for k in sums]
    if last["bid"] > 0 and last["ask"] > 0:
        mark = x.mark((int(last["bid"]) + int(last["ask"])) / 2)
        assert last["equity"] == x.cash + mark - x.fees - x.funding - x.impact


def same(core: list[Any], twin: list[Any]) -> None:
    """Names the first that differs."""
    for k, (mine, theirs) in enumerate(zip(core, twin, strict=False)):
        assert mine == theirs, f"number {k}: core {mine}, twin {theirs}"
    assert len(core) == len(twin), f"after {min(len(core), len(twin))}: {core[-1:]}, {twin[-1:]}"

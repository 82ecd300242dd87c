"""The inference server of a replay, against a plain one that is told when rows came."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from core_replay import Run, plan_of, replay, server_of

from hft import Strategy
from hft._core import Latency
from hft.engine import run_once
from hft.execution.draws import Stream
from hft.recipe_checks import to_recipe
from hft.types import BUY

MS = 1_000_000
SIGNAL, ROW = 4, 11
WARM_UP = 10
Row = tuple[int, int, int]
"""When it came, of which instrument, for which model."""


class Listens(Strategy):
    def on_signal(self, signal: Any) -> None:
        pass


def rows_of(run: Run, streams: int) -> list[Row]:
    """Rows past a stream's warm-up."""
    seen: dict[tuple[int, int], int] = {}
    out = []
    for r in run.journal[run.journal["kind"] == ROW]:
        key = int(r["instrument"]), int(r["b"])
        seen[key] = seen.get(key, 0) + 1
        if seen[key] > WARM_UP:
            out.append((int(r["ts"]), *key))
    assert len(seen) == streams
    return out


NEVER = 1 << 62


def plain(
    rows: list[Row],
    service: Any,
    mode: str,
    *,
    bound: int = 1024,
    deadline_ns: int = 8 * MS,
    max_batch: int = 1,
    per_item_ns: int = 0,
    per_row_ns: int = 0,
    hold_ns: int = 0,
    events: dict[Row, int],
) -> tuple[list[tuple[int, int, int, int]], dict[str, int]]:
    """When each row's answer is there: (time, instrument, model, row's time); and what was lost."""
    lost = {"conflated": 0, "skipped": 0, "expired": 0, "overflowed": 0}
    missed: dict[tuple[int, int], int] = {}
    answers: list[tuple[int, int, int, int]] = []
    line: list[Row] = []
    free, at_work = -1, False
    held = NEVER

    def drop(row: Row, why: str) -> None:
        lost[why] += 1
        missed[row[1:]] = missed.get(row[1:], 0) + 1

    def begin(now: int) -> None:
        nonlocal free, at_work, held
        held = NEVER
        batch: list[Row] = []
        while line and len(batch) < max_batch:
            row = line.pop(0)
            if mode == "deadline" and now + service.median > events[row] + deadline_ns:
                drop(row, "expired")
            else:
                batch.append(row)
        if mode == "skip":
            while line:
                drop(line.pop(0), "skipped")
        at_work = bool(batch)
        if batch:
            extra = sum(missed.pop(row[1:], 0) for row in batch) * per_row_ns
            free = now + int(service.at([now])[0]) + per_item_ns * (len(batch) - 1) + extra
            answers.extend((free, *row[1:], row[0]) for row in batch)

    def begin_or_hold(now: int) -> None:
        nonlocal held, at_work
        at_work = False
        if hold_ns and line and len(line) < max_batch:
            if held == NEVER:
                held = line[0][0] + hold_ns
            if held > now:
                return
        begin(now)

    while rows or at_work or line:
        if at_work and (not rows or free < rows[0][0]):
            begin_or_hold(free)
            continue
        if not at_work and line and (not rows or held < rows[0][0]):
            begin(held)
            continue
        now = rows[0][0]
        for row in take_packet(rows):
            same = [i for i, w in enumerate(line) if w[1:] == row[1:]]
            if mode == "skip" and at_work:
                drop(row, "skipped")
            elif mode in ("conflate", "deadline") and same:
                drop(line[same[0]], "conflated")
                line[same[0]] = row
            else:
                line.append(row)
                if mode == "queue" and len(line) > bound + (0 if at_work else max_batch):
                    drop(line.pop(0), "overflowed")
        if not at_work:
            begin_or_hold(now)
    return answers, lost


def take_packet(rows: list[Row]) -> list[Row]:
    """Takes what one packet led to: a row a model, in their order."""
    size = 1
    while size < len(rows) and rows[size][:2] == rows[0][:2] and rows[size][2] > rows[size - 1][2]:
        size += 1
    packet, rows[:] = rows[:size], rows[size:]
    return packet


def events_of(plan: Any, rows: list[Row]) -> dict[Row, int]:
    """The venue's time of the packet behind each row."""
    heard: list[dict[int, int]] = []
    for feed in plan.feeds:
        events = np.concatenate(list(feed.chunks()))
        heard.append(
            dict(zip(events["ts_recv"].tolist(), events["ts_event"].tolist(), strict=True))
        )
    return {row: heard[row[1]][row[0]] for row in rows}


# About 2 x 60 rows a second: services of 20 ms keep it busy beyond what it can do.
SERVICE = Latency.empirical(np.arange(1, 400) * MS // 10, 3, Stream.SERVICE)
RULES: dict[str, dict[str, Any]] = {
    "conflate": dict(mode="conflate"),
    "queue": dict(mode="queue", bound=5),
    "skip": dict(mode="skip"),
    "deadline": dict(mode="deadline", deadline_ns=35 * MS),
    "batches": dict(mode="conflate", max_batch=3, per_item_ns=2 * MS, per_row_ns=MS // 3),
    "batches of a queue": dict(mode="queue", bound=7, max_batch=4, per_item_ns=MS, per_row_ns=9),
    "batches, nothing waits": dict(mode="skip", max_batch=2, per_item_ns=MS, per_row_ns=MS),
    "batches with company": dict(mode="conflate", max_batch=3, hold_ns=9 * MS, per_item_ns=MS),
    "a queue with company": dict(mode="queue", bound=6, max_batch=4, hold_ns=30 * MS),
    "company in time": dict(mode="deadline", deadline_ns=30 * MS, max_batch=3, hold_ns=4 * MS),
    "company or nothing": dict(mode="skip", max_batch=3, hold_ns=5 * MS),
    "batches in time": dict(mode="deadline", deadline_ns=30 * MS, max_batch=2, per_item_ns=1),
}


@pytest.mark.parametrize("rule", RULES)
def test_every_mode_equals_a_plain_server(rule: str, tmp_path: Any) -> None:
    plan = plan_of(Listens, "A.SIM", "B.SIM", folder=tmp_path, models=2)
    keys = RULES[rule]
    run = replay(plan, server=server_of(SERVICE, **keys))
    rows = rows_of(run, streams=4)
    events = events_of(plan, rows)
    offered = len(rows)
    answers, lost = plain(rows, SERVICE, **keys, events=events)
    signals = run.journal[run.journal["kind"] == SIGNAL]
    told = [(int(s["ts"]), int(s["instrument"]), int(s["lots"]), int(s["b"])) for s in signals]
    # What was still at work when the market ended is not heard.
    assert len(told) > 200
    assert told == answers[: len(told)]
    assert len(answers) - len(told) <= 7
    for why in ("conflated", "skipped", "overflowed"):
        assert run.counters[f"signals_{why}"] == lost[why]
    assert 0 <= lost["expired"] - run.counters["signals_expired"] <= 7
    assert len(answers) + sum(lost.values()) == offered
    used = {w for w in lost if run.counters[f"signals_{w}"]}
    assert (
        used
        == {
            "conflate": {"conflated"},
            "queue": {"overflowed"},
            "skip": {"skipped"},
            "deadline": {"conflated", "expired"},
        }[keys["mode"]]
    )
    assert 0 <= len(run.waits) - len(told) <= 7
    assert len(run.services) == run.counters["services"]


def test_a_server_that_takes_no_time_answers_at_once(tmp_path: Any) -> None:
    plan = plan_of(Answers, folder=tmp_path)
    run = replay(plan)
    orders = run.orders
    assert len(orders) > 50
    for name in ("ts_model_start", "ts_model_end", "ts_decide", "ts_handled", "ts_send"):
        assert (orders[name] == orders["ts_cause_recv"]).all()
    assert run.counters["services"] == run.counters["signals"]
    assert not run.waits.any()
    assert not run.services.any()


def test_the_model_hears_the_feed_itself_while_the_strategy_is_busy(tmp_path: Any) -> None:
    plan = plan_of(Answers, folder=tmp_path)
    free, busy = (replay(plan, server=server_of(5 * MS), compute=c) for c in (0, 50 * MS))
    assert free.counters["services"] == busy.counters["services"]
    assert (free.services == busy.services).all()
    assert (free.waits == busy.waits).all()
    late = busy.orders["ts_decide"] - busy.orders["ts_model_end"]
    assert late.max() > 50 * MS
    assert late.min() >= 0


def test_waits_and_services_are_those_of_the_orders(tmp_path: Any) -> None:
    plan = plan_of(Answers, folder=tmp_path)
    run = replay(plan, server=server_of(SERVICE))
    orders = run.orders
    served = orders["ts_model_end"] - orders["ts_model_start"]
    assert (served == SERVICE.at(orders["ts_model_start"])).all()
    assert np.isin(orders["ts_model_start"] - orders["ts_cause_recv"], run.waits).all()
    # Newest row first: never older than the longest service when its own begins.
    assert run.waits.max() <= run.services.max()


class Answers(Listens):
    """A bid for each signal."""

    def on_signal(self, signal: Any) -> None:
        self.submit(signal.instrument, BUY, 1, self.book(signal.instrument).bid - 30)


def test_a_signal_is_as_old_as_its_wait_its_service_and_our_delay(tmp_path: Any) -> None:
    plan = plan_of(Ages, folder=tmp_path)
    Ages.heard.clear()
    orders = replay(plan, server=server_of(SERVICE), compute=7 * MS).orders
    ages = np.array(Ages.heard[: len(orders)])
    assert len(ages) > 50
    assert (ages == orders["ts_decide"] - orders["ts_cause_recv"]).all()
    served = SERVICE.at(orders["ts_model_start"])
    assert (ages >= orders["ts_model_start"] - orders["ts_cause_recv"] + served).all()
    assert ages.max() > served.max()


class Ages(Answers):
    heard: list[int] = []  # noqa: RUF012 - read after the run

    def on_signal(self, signal: Any) -> None:
        self.heard.append(signal.age_ns)
        super().on_signal(signal)


def test_the_recipe_says_how_the_server_works(tmp_path: Any) -> None:
    plan = plan_of(Listens, "A.SIM", "B.SIM", folder=tmp_path)

    def run(**keys: Any) -> Any:
        recipe = to_recipe({"latency": {"inference": "10ms", "compute": 0, **keys}})
        outcome = run_once(dataclasses.replace(plan, recipe=recipe))
        assert outcome.run.status == "complete", outcome.run.error
        return outcome.run

    skips = run(server={"mode": "skip"})
    assert skips.counters["signals_skipped"] > 50
    assert (skips.model_service_ns == 10 * MS).all()
    assert not skips.model_wait_ns.any()
    newest = run(server={"mode": "deadline", "deadline": "50ms"}, scale=0.5)
    assert (newest.model_service_ns == 5 * MS).all()
    assert newest.counters["signals_expired"] == 0
    late = run(server={"mode": "deadline", "deadline": "9ms"})
    assert late.counters["signals_expired"] == late.counters["inferences"] - 2 * WARM_UP
    batches = run(server={"max_batch": 2, "per_item": "3ms", "per_row": "1us"})
    assert (batches.model_service_ns >= 13 * MS).any()
    assert (batches.model_service_ns % MS > 0).any()
    queue = run(server={"mode": "queue", "bound": 2})
    assert queue.counters["signals_overflowed"] > 50

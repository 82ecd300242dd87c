"""A latency profile of a run, live or replayed: what its orders, cancels and inferences took.

New orders come from `orders.parquet`. Inferences come from the run's samples of waits and services,
which the journal's SIGNAL records, one an answer, give their times; of a run of days apart, or with
batches, only those come that an order followed from, with the order's stamps. Cancels and replaces
come from the journal, which holds when their handler began and when the venue answered; when they
were sent is that beginning plus the desk's time, of an order of the same handler where there is
one, else the run's median.
"""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hft import run_folder
from hft.analysis import run_data
from hft.analysis.records import NO_TIME, OrderState
from hft.analysis.run_data import RunData
from hft.errors import DataError, HftError
from hft.execution.market_rate import MarketRate, rate_of
from hft.execution.profiles import (
    NONE,
    ClockOffset,
    LatencyProfile,
    ProfileFacts,
    make_profile,
)
from hft.journal import JOURNAL, RecordKind
from hft.recipe_checks import to_recipe

Int = NDArray[np.int64]
Columns = dict[str, NDArray[Any] | list[Any]]

# Update::Kind of core/message.hpp, by the request they answer.
ANSWERS = {"cancel": (RecordKind.CANCEL, (4, 5)), "replace": (RecordKind.REPLACE, (6, 7))}
_REFUSED = (5, 7)
MOST_SAMPLES = 1 << 16
"""Waits that a run keeps, `ThinnedNs::kMost`: beyond it every second one, every fourth ..."""


def profile_of_run(folder: Path) -> LatencyProfile:
    """The profile of a run folder.

    Raises:
        ConfigError: the run is still in progress.
        DataError: it is no run folder, or no order of it was sent.
    """
    run_folder.require_ended(folder)
    run = run_data.load(folder)
    orders = run.orders[run.orders["ts_send"] != NO_TIME]
    if not orders.size:
        raise DataError(f"{folder}: not one order was sent, so there is nothing to fit")
    notes = []
    rate = None
    try:
        rate = _rate(run, folder)
    except HftError as error:
        notes.append(f"Without message rates: {error}.")
    journal = _journal(folder)
    answered = _answers(run, journal)
    if answered is None:
        answered = _inferences(orders)
        if len(answered["ts"]):
            notes.append("Inferences: only those from which an order followed.")
    parts = [_new_orders(orders), answered, *_changes(journal, orders)]
    if len(parts) > 2:
        notes.append("Cancels and replaces: from the journal, sent a desk's time after their call.")
    columns = _stacked(parts)
    if rate is not None:
        columns["rate"] = rate.before(np.asarray(columns["ts"]))
    facts = ProfileFacts(
        origin="measured" if run.kind == "live" else "fitted",
        source=folder.name,
        venue=", ".join(sorted({each.spec.venue for each in run.instruments})),
        clock_offset=ClockOffset(estimate_ns=0, half_width_ns=0),
        created_from={"kind": run.kind, "hft": run.environment.get("hft", "")},
        notes=tuple(notes),
    )
    return make_profile(str(folder), facts, columns)


def _rate(run: RunData, folder: Path) -> MarketRate | None:
    from hft.feeds import open_feeds

    if run.kind == "live":
        return rate_of([iter([run_folder.read_market(folder)])])
    feeds = open_feeds(to_recipe(run.recipe))
    # A recipe does not say that rows were given as arrays, nor that a store has changed since.
    if {run.environment.get(f"data_{feed.spec.name}") for feed in feeds} != {f.hash for f in feeds}:
        raise DataError("the data that the recipe names are not those of the run")
    return rate_of(feed.chunks() for feed in feeds)


def _new_orders(orders: NDArray[Any]) -> Columns:
    states = [member.name for member in OrderState]
    return {
        "kind": ["order"] * orders.size,
        "ts": orders["ts_send"],
        "feed_ns": _between(orders, "ts_cause_event", "ts_cause_recv"),
        "entry_ns": _between(orders, "ts_send", "ts_arrive"),
        "response_ns": _between(orders, "ts_arrive", "ts_ack"),
        "compute_ns": _between(orders, "ts_decide", "ts_handled"),
        "risk_ns": _between(orders, "ts_handled", "ts_send"),
        "message": ["new"] * orders.size,
        "outcome": [states[state] for state in orders["state"].tolist()],
        "order_id": orders["id"].astype(np.int64),
    }


def _journal(folder: Path) -> NDArray[Any]:
    try:
        return run_folder.read_journal(folder)
    except DataError:  # a folder may be kept without its journal
        return np.zeros(0, JOURNAL)


def _answers(run: RunData, journal: NDArray[Any]) -> Columns | None:
    """Every inference, thinned as the run thinned them; None where they cannot be told apart."""
    kind = np.asarray(journal["kind"])
    answer = np.flatnonzero(kind == RecordKind.SIGNAL)
    wait, service = run.model_wait_ns, run.model_service_ns
    if not answer.size or wait.size != service.size or (kind == RecordKind.START).sum() != 1:
        return None
    stride = 1 << max(0, (-(-answer.size // MOST_SAMPLES) - 1).bit_length())
    answer = answer[::stride]
    if not 0 <= wait.size - answer.size <= 1:  # the last may have been under way at the end
        return None
    wait, service = wait[: answer.size], service[: answer.size]
    return {
        "kind": ["model"] * answer.size,
        "ts": np.asarray(journal["ts"])[answer] - service - wait,
        "wait_ns": wait,
        "service_ns": service,
        "batch": np.ones(answer.size, np.int64),
    }


def _inferences(orders: NDArray[Any]) -> Columns:
    asked = orders[(orders["by_signal"] == 1) & (orders["ts_model_start"] != NO_TIME)]
    # One inference can lead to several orders.
    _, first = np.unique(asked[["instrument", "ts_model_start"]], return_index=True)
    asked = asked[np.sort(first)]
    return {
        "kind": ["model"] * asked.size,
        "ts": asked["ts_cause_recv"],
        "wait_ns": _between(asked, "ts_cause_recv", "ts_model_start"),
        "service_ns": _between(asked, "ts_model_start", "ts_model_end"),
    }


def _between(rows: NDArray[Any], start: str, end: str) -> Int:
    known = (rows[start] != NO_TIME) & (rows[end] != NO_TIME)
    took: Int = np.where(known, rows[end] - rows[start], NONE)
    return took


def _changes(journal: NDArray[Any], orders: NDArray[Any]) -> list[Columns]:
    """Cancels and replaces that the venue answered."""
    made = []
    for message, (asked, answered) in ANSWERS.items():
        kind = np.asarray(journal["kind"])
        update = np.where(kind == RecordKind.UPDATE, np.asarray(journal["a"]) >> 24, 0)
        requests = journal[kind == asked]
        answers = journal[np.isin(update, answered)]
        left, right = _matched(requests["order"], answers["order"])
        sent, told = requests[left], answers[right]
        in_order = (told["c"] >= sent["ts"]) & (told["ts"] >= told["c"])
        if in_order.any():
            made.append(_change(message, sent[in_order], told[in_order], orders))
    return made


def _change(
    message: str, asked: NDArray[Any], answer: NDArray[Any], orders: NDArray[Any]
) -> Columns:
    desk: Int = orders["ts_send"] - orders["ts_decide"]
    decided, first = np.unique(orders["ts_decide"], return_index=True)
    at = np.clip(np.searchsorted(decided, asked["ts"]), 0, decided.size - 1)
    same = decided[at] == asked["ts"]
    took = np.where(same, desk[first][at], int(np.median(desk)))
    sent = np.minimum(asked["ts"] + took, answer["c"])
    refused = np.isin(answer["a"] >> 24, _REFUSED)
    return {
        "kind": ["order"] * asked.size,
        "ts": sent,
        "entry_ns": answer["c"] - sent,
        "response_ns": answer["ts"] - answer["c"],
        "message": [message] * asked.size,
        "outcome": np.where(refused, "REJECTED", "DONE").tolist(),
        "order_id": asked["order"].astype(np.int64),
    }


def _matched(requests: NDArray[np.uint64], answers: NDArray[np.uint64]) -> tuple[Int, Int]:
    """Of each order the k-th request and the k-th answer, as indices of both."""
    left, right = _ranked(requests), _ranked(answers)
    _, mine, theirs = np.intersect1d(left, right, return_indices=True)
    order = np.argsort(mine, kind="stable")
    return mine[order], theirs[order]


def _ranked(orders: NDArray[np.uint64]) -> NDArray[Any]:
    """(order, how many of it came before), a structured array as long as `orders`."""
    order = np.argsort(orders, kind="stable")
    ordered = orders[order]
    first = np.r_[True, ordered[1:] != ordered[:-1]][: ordered.size]
    start = np.maximum.accumulate(np.where(first, np.arange(ordered.size), 0))
    ranked = np.zeros(orders.size, [("order", "<u8"), ("rank", "<i8")])
    ranked["order"] = orders
    ranked["rank"][order] = np.arange(ordered.size) - start
    return ranked


def _stacked(parts: list[Columns]) -> Columns:
    """Columns one below the other; None or NONE where a part has none."""
    names = list(dict.fromkeys(name for part in parts for name in part))
    stacked: Columns = {}
    for name in names:
        is_text = any(isinstance(part.get(name), list) for part in parts)
        pieces: list[Any] = []
        for part in parts:
            rows = len(part["ts"])
            blank: Any = [None] * rows if is_text else np.full(rows, NONE)
            pieces.append(part.get(name, blank))
        stacked[name] = [*chain(*pieces)] if is_text else np.concatenate(pieces)
    return stacked

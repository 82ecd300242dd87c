"""A load on TensorFlow Serving: requests arrive whether the last ones are answered or not.

So many connections take arrivals in order. What a request waits until a connection is free is
queueing; from there to its answer is service: the network both ways, the server's own queue, its
batching and its compute. Where the server, or a proxy before it, tells its compute in a
`Server-Timing: compute;dur=MS` header, that is told apart as well; TensorFlow Serving by itself
does not.

A closed loop of as many connections would ask less the slower the server is, and so hide exactly
what a busy market does to it. A failed request is counted and not asked again.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from http.client import HTTPMessage

import numpy as np

from hft.errors import ConfigError, HftError
from hft.inference.backends.rest import RestClient
from hft.inference.backends.serving import ServingBackend
from hft.inference.bench.rate import NS_PER_S
from hft.inference.bench.timing import Int, quantiles

MOST_CONNECTIONS = 256


@dataclass(frozen=True, slots=True)
class Load:
    """Answered requests in order of arrival, (n,) each, in ns."""

    arrival_ns: Int
    """Since the run began."""
    queue_ns: Int
    """From arrival to sending."""
    service_ns: Int
    """From sending to the answer."""
    compute_ns: Int | None
    """The server's own, where it tells."""
    late_ns: Int
    """Of requests that found a connection free, what they were sent late all the same: the load
    tester's own fault, a part of `queue_ns`."""
    failed: Counter[str]
    """By message."""
    connections: int
    offered_per_s: float

    @property
    def answered_per_s(self) -> float:
        """Over the time from the first arrival to the last answer."""
        if not self.arrival_ns.size:
            return 0.0
        ended = (self.arrival_ns + self.queue_ns + self.service_ns).max()
        return self.arrival_ns.size / max((int(ended) - int(self.arrival_ns[0])) / NS_PER_S, 1e-9)

    def columns(self) -> dict[str, dict[str, float]]:
        """Quantiles in ns: `answer` (queueing and service), `queue`, `service`, `compute`."""
        found = {
            "answer": quantiles(self.queue_ns + self.service_ns),
            "queue": quantiles(self.queue_ns),
            "service": quantiles(self.service_ns),
        }
        if self.compute_ns is not None:
            found["compute"] = quantiles(self.compute_ns)
        return found

    def lines(self) -> list[str]:
        """For people."""
        answered, failed = self.arrival_ns.size, self.failed.total()
        head = (
            f"{self.connections} connections, {self.offered_per_s:,.0f} requests/s offered, "
            f"{self.answered_per_s:,.0f} answered/s; {answered:,} answered, {failed:,} failed"
        )
        told = [head, f"{'ms':10}" + "".join(f"{name:>10}" for name in quantiles(self.queue_ns))]
        for name, of in self.columns().items():
            told.append(f"{name:10}" + "".join(f"{ns / 1e6:10.3f}" for ns in of.values()))
        if self.late_ns.size:
            late = quantiles(self.late_ns)["p99"]
            told.append(f"the load tester itself sends up to {late / 1e6:.3f} ms late (p99)")
        told += [f"{count:,} x {words}" for words, count in self.failed.most_common(3)]
        return told


@dataclass(slots=True)
class _Answer:
    sent: int
    done: int
    compute_ns: int
    was_free: bool


class _Run:
    """What connections share: the next arrival, and what came of each."""

    def __init__(self, arrival_ns: Int, bodies: Sequence[bytes], seconds: float) -> None:
        self.due = arrival_ns.tolist()
        self.bodies = bodies
        self.answers: list[_Answer | None] = [None] * len(self.due)
        self.failed: Counter[str] = Counter()
        self.last = int(seconds * NS_PER_S)
        self.begun = 0
        self.stop = threading.Event()
        self._next = 0
        self._lock = threading.Lock()

    def serve(self, client: RestClient) -> None:
        """One connection's part."""
        while (i := self._take()) is not None:
            was_free = self._wait(i)
            if self.stop.is_set() or self._now() > self.last:
                return
            sent = self._now()
            try:
                _, headers = client.predict(self.bodies[i % len(self.bodies)])
            except HftError as error:
                with self._lock:
                    self.failed[str(error)] += 1
                continue
            self.answers[i] = _Answer(sent, self._now(), _compute_ns(headers), was_free)

    def _take(self) -> int | None:
        with self._lock:
            i = self._next
            self._next += 1
        return i if i < len(self.due) else None

    def _wait(self, i: int) -> bool:
        """Until it has arrived; whether this connection was free before."""
        ahead = self.due[i] - self._now()
        if ahead <= 0:
            return False
        self.stop.wait(ahead / NS_PER_S)
        return True

    def _now(self) -> int:
        return time.perf_counter_ns() - self.begun


def load_test(
    backend: ServingBackend, arrival_ns: Int, *, seconds: float, connections: int = 4
) -> Load:
    """Sends a model's requests at the times of arrival.

    Args:
        backend: open and warm; made-up rows are sent, of a streaming model with a memory of zeros:
            what they hold costs the same.
        arrival_ns: from 0, ascending (`poisson`, `recorded` of hft.inference.bench.rate).
        seconds: later arrivals are left out, and so are those not sent by then.
        connections: requests under way at once, at most.

    Raises:
        ConfigError: no arrivals within `seconds`, or a number of connections out of range.
    """
    if not 1 <= connections <= MOST_CONNECTIONS:
        raise ConfigError(f"connections is {connections}, want 1 to {MOST_CONNECTIONS}")
    arrival_ns = arrival_ns[: np.searchsorted(arrival_ns, int(seconds * NS_PER_S))]
    if not arrival_ns.size:
        raise ConfigError(f"no request arrives within {seconds:g} s; want a higher rate")
    run = _Run(arrival_ns, backend.made_up_requests(), seconds)
    clients = [backend.connected() for _ in range(connections)]
    threads = [threading.Thread(target=run.serve, args=(client,)) for client in clients]
    run.begun = time.perf_counter_ns()
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:  # Ctrl-C
        run.stop.set()
        for client in clients:
            client.close()
    return _load_of(run, arrival_ns, connections, seconds)


def _load_of(run: _Run, arrival_ns: Int, connections: int, seconds: float) -> Load:
    done = [(i, a) for i, a in enumerate(run.answers) if a is not None]
    arrival = arrival_ns[[i for i, _ in done]]
    sent = np.array([a.sent for _, a in done], np.int64)
    ended = np.array([a.done for _, a in done], np.int64)
    compute = np.array([a.compute_ns for _, a in done], np.int64)
    queue = np.maximum(sent - arrival, 0)
    free = np.array([a.was_free for _, a in done], bool)
    tells = compute.size > 0 and bool((compute >= 0).all())
    return Load(
        arrival_ns=arrival,
        queue_ns=queue,
        service_ns=ended - sent,
        compute_ns=compute if tells else None,
        late_ns=queue[free],
        failed=run.failed,
        connections=connections,
        offered_per_s=arrival_ns.size / seconds,
    )


def _compute_ns(headers: HTTPMessage) -> int:
    """Of `Server-Timing: compute;dur=MS`; -1: not told."""
    for entry in headers.get("Server-Timing", "").split(","):
        name, *parameters = (word.strip() for word in entry.split(";"))
        for parameter in parameters:
            key, _, value = parameter.partition("=")
            if name == "compute" and key == "dur":
                try:
                    return round(float(value) * 1e6)
                except ValueError:
                    return -1
    return -1

"""May a new bundle take the place of the running one? Its latency and its answers, side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hft.errors import ModelError
from hft.inference.bench.measure import step_timing
from hft.inference.bench.native import time_native
from hft.inference.bench.ratio import Ratio, in_turns, latency_ratios
from hft.inference.bench.subject import Floats, Subject
from hft.inference.bench.timing import Int
from hft.inference.bundle import CARD
from hft.inference.card import Gate

LEAST_ROWS = 100
"""That both must have answered, warm."""
STEPS = 300
"""Of a round of timing."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Beyond which a new bundle is worse."""

    slower: float = 1.1
    """Of p50 and p99, new over old; it is worse where the whole interval lies beyond."""
    kl: float = 0.01
    """Mean divergence of the old's probabilities from the new's [nats]."""
    correlation: float = 0.98
    """Least over outputs."""
    agreement: float = 0.98
    """Share of rows on which both decide alike."""


@dataclass(frozen=True, slots=True)
class Release:
    """What was found."""

    latency: dict[str, Ratio]
    gates: tuple[Gate, ...]
    rows: int
    """Whose answers were compared."""

    @property
    def passed(self) -> bool:
        """Whether the new one is no worse."""
        return all(gate.passed for gate in self.gates)


def check_release(
    new: Subject,
    old: Subject,
    x: Floats,
    *,
    limits: Limits,
    seconds: float,
    x_new: Floats | None = None,
) -> Release:
    """Compares two bundles on the same rows.

    Args:
        new: that is to run.
        old: that runs.
        x: features as they come, (n, inputs); both see all of them, in order.
        limits: beyond which it fails.
        seconds: of timing.
        x_new: the same rows as `new` is given them, where its scales trail.

    Raises:
        ModelError: they do not read the same features or do not name the same outputs: nothing of
            them can be compared, and a session could not go from one to the other.
    """
    _require_alike(new, old)
    x_new = x if x_new is None else x_new
    with _timer(new, x_new) as time_new, _timer(old, x) as time_old:
        latency = latency_ratios(*in_turns(time_new, time_old, seconds=seconds))
    gates = [_slower(f"{name} ratio", r, limits.slower) for name, r in latency.items()]
    budget = new.bundle.card.budget_ns
    if budget:
        p99 = latency["p99"].new_ns
        gates.append(Gate(name="budget", value=p99, limit=budget, passed=p99 <= budget))
    warm = max(_warm_rows(new), _warm_rows(old))
    if len(x) < warm + LEAST_ROWS:
        raise ModelError(
            f"{len(x):,} rows to compare on; both are warm after {warm:,}, want {LEAST_ROWS} more"
        )
    a, b = (answers_of(subject, rows)[warm:] for subject, rows in ((new, x_new), (old, x)))
    return Release(latency, (*gates, *_output_gates(new, a, b, limits)), len(a))


def _require_alike(new: Subject, old: Subject) -> None:
    ours, theirs = new.bundle.card, old.bundle.card
    for n, (a, b) in enumerate(zip(ours.features, theirs.features, strict=False), 1):
        if a != b:
            raise ModelError(
                f"{new.bundle.path / CARD}: feature {n} is {a}, of {old.bundle.path.name} {b}"
            )
    for what, mine, other in (
        ("features", len(ours.features), len(theirs.features)),
        ("trigger", ours.trigger, theirs.trigger),
        ("outputs", new.bundle.outputs, old.bundle.outputs),
    ):
        if mine != other:
            raise ModelError(
                f"{new.bundle.path / CARD}: {what} {mine}, of {old.bundle.path.name} {other}: the "
                "two cannot be compared, nor one take the other's place in a session"
            )


def _slower(name: str, ratio: Ratio, limit: float) -> Gate:
    return Gate(
        name=name,
        value=ratio.value,
        limit=limit,
        passed=ratio.low <= limit,
        note=f"{ratio.low:.3f} to {ratio.high:.3f}",
    )


def _warm_rows(subject: Subject) -> int:
    return max(subject.bundle.warm_up_rows(subject.tier), subject.window_rows)


@contextmanager
def _timer(subject: Subject, x: Floats) -> Iterator[Callable[[], Int]]:
    """A function that times `STEPS` steps, as this backend runs."""
    if subject.backend == "native":
        network = subject.network()
        form, window = subject.forms[0], subject.window_rows or 1

        def native() -> Int:
            return time_native(
                network, x, form, seconds=0.0, window_rows=window, most=STEPS, least=STEPS
            ).ns

        yield native
        return
    with subject.opened() as backend:
        yield lambda: step_timing(backend, x, seconds=0.005, most=STEPS).ns


def answers_of(subject: Subject, x: Floats) -> npt.NDArray[np.float32]:
    """All outputs on rows in order, from nothing, (n, outputs).

    Args:
        subject: what answers.
        x: features as they come, (n, inputs).
    """
    if subject.backend == "native":
        return _native_answers(subject, x)
    with subject.opened() as backend:
        state = backend.state()
        out = np.zeros((len(x), len(backend.outputs)), np.float32)
        for row, answer in zip(np.ascontiguousarray(x), out, strict=True):
            backend.step(state, row, answer)
        return out


def _native_answers(subject: Subject, x: Floats) -> npt.NDArray[np.float32]:
    from hft import _core

    network, window_rows = subject.network(), subject.window_rows
    rows = np.ascontiguousarray(x, np.float64)
    made: npt.NDArray[np.float32] = (
        _core.NetworkWindow(network, window_rows).steps(rows)
        if window_rows
        else _core.NetworkStream(network).batch(rows)
    )
    return made


def _output_gates(
    new: Subject, a: npt.NDArray[np.float32], b: npt.NDArray[np.float32], limits: Limits
) -> list[Gate]:
    """Of answers (n, outputs) of the new and the old."""
    named = len(new.bundle.card.outputs)
    p, q = a[:, :named].astype(np.float64), b[:, :named].astype(np.float64)
    finite = bool(np.isfinite(p).all())
    gates = [Gate(name="finite", value=float(np.isfinite(p).mean()), limit=1.0, passed=finite)]
    if not finite:
        return gates
    worst = float(np.abs(p - q).max())
    least = min(_correlation(p[:, i], q[:, i]) for i in range(named))
    gates.append(
        Gate(
            name="correlation",
            value=least,
            limit=limits.correlation,
            passed=least >= limits.correlation,
            note=f"largest difference {worst:.2g}",
        )
    )
    if _are_shares(p) and _are_shares(q):
        kl = float(np.mean(np.sum(q * np.log(np.maximum(q, 1e-9) / np.maximum(p, 1e-9)), axis=1)))
        gates.append(Gate(name="kl", value=kl, limit=limits.kl, passed=kl <= limits.kl))
    same = float(np.mean(_decisions(p) == _decisions(q)))
    gates.append(
        Gate(name="decisions", value=same, limit=limits.agreement, passed=same >= limits.agreement)
    )
    return gates


def _correlation(a: Floats, b: Floats) -> float:
    """1 where both are the same constant."""
    if a.std() == 0 or b.std() == 0:
        return 1.0 if np.allclose(a, b) else 0.0
    return float(np.corrcoef(a, b)[0, 1])


def _are_shares(p: Floats) -> bool:
    return p.shape[1] > 1 and bool((p >= 0).all()) and np.allclose(p.sum(axis=1), 1.0, atol=1e-3)


def _decisions(p: Floats) -> npt.NDArray[np.int64]:
    """The class with the largest share; of outputs that are no shares, the side of the first."""
    if _are_shares(p):
        return np.asarray(np.argmax(p, axis=1))
    return np.sign(p[:, 0]).astype(np.int64)

"""Runs a form of a model as a run would, in a process of its own: answers, time a step, P&L.

Each takes a bundle folder that holds no part but the one on trial, so that what is measured is what
will run: a backend picks parts by itself.
"""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hft.errors import ModelError
from hft.inference.bundle import CARD, Bundle, load_bundle, placeholders, read_card

if TYPE_CHECKING:
    from hft.inference.backends import Backend

RUN_S = 2e-3
"""How long a short run is: long beside the clock, short beside what else the machine does."""
LEAST_STEPS = 5


def without_code(folder: str | Path) -> Bundle:
    """A bundle to be stepped on rows that are there: own features need no code."""
    return load_bundle(folder, placeholders(read_card(Path(folder) / CARD)))


def opened(bundle: Bundle) -> Backend:
    """The backend of the only part of a trial bundle; native, if it has none."""
    from hft.inference.backends import open_backend

    if not bundle.card.parts:
        return open_backend(bundle)
    (part,) = bundle.card.parts
    return open_backend(bundle, part.backend, tier=part.tier)


def try_steps(folder: str, parent: str, rows: str, out: str) -> dict[str, Any]:
    """Steps a trial bundle over consecutive rows from nothing, and times it.

    Args:
        folder: the trial bundle.
        parent: the one its steps are timed against in turns; empty: none.
        rows: .npy, (n, k) features.
        out: .npy to write: outputs, (n, m).

    Returns:
        ratio (a `Ratio` of medians of a step, ours over the parent's), and p99_ns of ours.
    """
    x = np.ascontiguousarray(np.load(rows), np.float64)
    backends = [opened(without_code(place)) for place in (folder, parent) if place]
    np.save(out, _answers(backends[0], x))
    told = _timed(backends, x)
    for backend in backends:
        backend.close()
    return told


def _answers(backend: Backend, x: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    found = np.zeros((len(x), len(backend.outputs)), np.float32)
    state = backend.state()
    for row, answer in zip(x, found, strict=True):
        backend.step(state, row, answer)
    return found


def _timed(backends: list[Backend], x: npt.NDArray[np.float64]) -> dict[str, Any]:
    from hft.inference.bench.ratio import in_turns, latency_ratios

    ours, parent = (partial(_short_run, backend, x) for backend in (backends[0], backends[-1]))
    of_ours, of_parent = in_turns(ours, parent, seconds=0.0)
    return {
        "ratio": asdict(latency_ratios(of_ours, of_parent)["p50"]),
        "p99_ns": float(np.quantile(np.concatenate(of_ours), 0.99)),
    }


def _short_run(backend: Backend, x: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    from hft.inference.bench.measure import step_timing

    return step_timing(backend, x, seconds=RUN_S, least=LEAST_STEPS).ns


def replay(
    strategy: str,
    data: str,
    recipe: str | None,
    settings: dict[str, Any],
    assignments: list[str],
    model: str,
    folder: str,
    out: str,
) -> None:
    """A strategy over market data with a trial bundle as its model; P&L a sample, to .npz.

    Raises:
        ModelError: the run did not use the bundle, or did not end well.
    """
    from hft.analysis.equity import equity_path
    from hft.engine import run_once
    from hft.plan import prepare

    parts = read_card(Path(folder) / CARD).parts
    chosen: dict[str, Any] = {f"models.{model}.bundle": folder}
    if parts:
        (part,) = parts
        chosen |= {f"models.{model}.backend": part.backend, f"models.{model}.tier": part.tier}
    plan = prepare(
        strategy, data, recipe=recipe, settings=settings | chosen, assignments=tuple(assignments)
    )
    used = [s.bundle.path.resolve() for s in plan.sources if s.bundle and s.name == model]
    if used != [Path(folder).resolve()]:
        raise ModelError(f"the replay ran {used}, not {folder}: the figures would be of another")
    run = run_once(plan).run
    if run.status != "complete":
        raise ModelError(f"the replay was {run.status}: {run.error}")
    path = equity_path(run, list(range(len(run.instruments))))
    gain = np.diff(path.equity_e9.astype(np.float64), prepend=0.0) / 1e9
    np.savez(out, allow_pickle=False, ts=path.ts, gain=gain, fills=len(run.fills))

"""Backends that run a part of the bundle: a file another library computes.

What a part takes and gives is told by the part itself and held against the card when it is opened:
`x` and `y` of the right widths, and of a step, for every other input a state of the same shape
among the outputs, called `<name>_out`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from hft.errors import ConfigError, ModelError
from hft.inference.backends.base import Backend, State, log
from hft.inference.backends.frame import Doubles, Floats, Frame
from hft.inference.bundle import Bundle
from hft.inference.card import PartEntry, TierName

Form = Literal["step", "window"]
Shape = tuple[int | None, ...]
"""None: any size."""
AGAIN = "the part is not of this bundle, or was not made by `hft build`: build it again"


@dataclass(frozen=True, slots=True)
class Signature:
    """What a part takes and gives, by name."""

    inputs: Mapping[str, Shape]
    outputs: Mapping[str, Shape]

    @property
    def memories(self) -> dict[str, tuple[int, ...]]:
        """States of a step, by the name of the input."""
        return {
            name: tuple(n or 1 for n in shape) for name, shape in self.inputs.items() if name != "x"
        }

    def require(self, where: object, x: tuple[int, ...], classes: int, form: str) -> None:
        """Holds it against what the bundle says.

        Raises:
            ModelError: another network's; names `where` and what does not fit.
        """
        _require_shape(where, "input x", self.inputs.get("x"), x)
        _require_shape(where, "output y", self.outputs.get("y"), (1, classes))
        if form == "window" and self.memories:
            raise ModelError(f"{where}: a window that wants {', '.join(self.memories)}; {AGAIN}")
        for name, shape in self.memories.items():
            _require_shape(where, f"output {name}_out", self.outputs.get(f"{name}_out"), shape)
        stray = set(self.outputs) - {"y"} - {f"{name}_out" for name in self.memories}
        if stray:
            raise ModelError(f"{where}: outputs {sorted(stray)} have no state of theirs; {AGAIN}")


def _require_shape(where: object, what: str, found: Shape | None, want: tuple[int, ...]) -> None:
    if found is None:
        raise ModelError(f"{where}: no {what}; {AGAIN}")
    fits = len(found) == len(want) and all(
        n in (None, size) for n, size in zip(found, want, strict=True)
    )
    if not fits:
        told = tuple("any" if n is None else n for n in found)
        raise ModelError(f"{where}: {what} is {told}, the bundle's is {want}; {AGAIN}")


def classes_of(bundle: Bundle) -> int:
    """Outputs of the network itself."""
    return len(bundle.card.outputs)


def chosen_part(
    bundle: Bundle, backend: str, precision: str, tier: TierName, forms: Sequence[Form]
) -> tuple[PartEntry, Path]:
    """The part to run, checked against its hash: the first, by form, that passed its gates.

    Raises:
        ModelError: there is none, or all failed their gates and no precision asks for one of them.
    """
    fit = [
        entry
        for form in forms
        for entry in bundle.card.parts
        if (entry.backend, entry.tier, entry.form) == (backend, tier, form)
        and precision in ("", entry.precision)
    ]
    if not fit:  # says what there is
        return bundle.part(backend, form=forms[0], precision=precision, tier=tier)
    chosen = next((entry for entry in fit if entry.passed), fit[0])
    _require_gates(bundle, chosen, is_named=bool(precision))
    return bundle.part(backend, form=chosen.form, precision=chosen.precision, tier=tier)


def _require_gates(bundle: Bundle, entry: PartEntry, *, is_named: bool) -> None:
    """A part that failed runs only for one who names it."""
    failed = [gate for gate in entry.gates if gate.failed]
    if not failed:
        return
    path, told = bundle.path / entry.file, "; ".join(map(str, failed))
    if not entry.sha256:
        raise ModelError(f"{path} could not be made when the bundle was built: {told}; {AGAIN}")
    if not is_named:
        raise ModelError(
            f"{path} failed its gates when it was built, and no other part of {entry.tier} for "
            f"{entry.backend} passed: {told}. Build it otherwise, or run it all the same by naming "
            f'its precision, "{entry.precision}"'
        )
    log.warning("%s failed its gates when it was built: %s", path, told)


def forms_of(bundle: Bundle, tier: TierName) -> tuple[Form, ...]:
    """In order of preference. A step can run a window as well, row by row from nothing."""
    return ("window", "step") if tier == "FULL" and bundle.card.window_rows else ("step",)


def require_threads(threads: int) -> None:
    """Raises: ConfigError: not a number of threads."""
    if threads < 1:
        raise ConfigError(f"threads is {threads}, want 1 or more")


class PartState(State):
    """Buffers of one stream; a library's own objects are added by its backend."""

    def __init__(self, owner: PartBackend) -> None:
        super().__init__(owner)
        k, rows = len(owner.inputs), owner.window_rows
        self.scratch = np.zeros(k)
        self.finite = np.zeros(k, bool)
        self.x = np.zeros((1, rows, k) if owner.form == "window" else (1, k), np.float32)
        self.row = self.x.reshape(-1, k)[0]
        """Of a step: where the scaled row goes."""
        self.y = np.zeros((1, owner.frame.classes), np.float32)
        self.answer = self.y[0]
        self.ring = np.zeros((2 * rows, k), np.float32)
        """The last rows twice over, so that any `rows` of them lie beside each other."""
        self.at = 0
        self.seen = 0


class PartBackend(Backend):
    """Scaling, windows and readout around `_run`."""

    signature: Signature

    def __init__(self, bundle: Bundle, tier: TierName, precision: str, form: Form) -> None:
        super().__init__(bundle, tier, precision)
        self.form = form
        self.frame = Frame(bundle.card.scaler, bundle.readout(tier), classes_of(bundle))

    @property
    def x_shape(self) -> tuple[int, ...]:
        """Of what the part takes."""
        k = len(self.inputs)
        return (1, self.window_rows, k) if self.form == "window" else (1, k)

    def _require_finite(self, where: object) -> None:
        """A part whose weights were lost or are NaN loads like any other."""
        from hft.inference.bench.subject import made_up_rows

        out = np.zeros(len(self.outputs), np.float32)
        self.window(made_up_rows(self.bundle.card.scaler, self.window_rows or 2), out)
        if not np.isfinite(out).all():
            raise ModelError(
                f"{where}: answers {out.tolist()} to made-up rows: weights are not finite, or the "
                f"part was exported wrongly; {AGAIN}"
            )

    @abstractmethod
    def _run(self, state: Any) -> None:
        """From `x` and the memory to `y` and the next memory."""

    @abstractmethod
    def _forget(self, state: Any) -> None:
        """Memory of a step to 0."""

    def _step(self, state: PartState, row: Doubles, out: Floats) -> None:
        if 0 in np.isfinite(row, out=state.finite).tobytes():  # sooner than all()
            out.fill(np.nan)
            return
        if self.window_rows:
            self._push(state, row)
            self._run_ring(state)
        else:
            self.frame.scale(row, state.scratch, state.row)
            self._run(state)
        self.frame.read_out(state.answer, out)

    def _skip(self, state: PartState, row: Doubles) -> None:
        if self.window_rows:
            if np.isfinite(row, out=state.finite).all():
                self._push(state, row)
        elif self.signature.memories:
            super()._skip(state, row)

    def _push(self, state: PartState, row: Doubles) -> None:
        rows, ring = self.window_rows, state.ring
        self.frame.scale(row, state.scratch, ring[state.at])
        ring[state.at + rows] = ring[state.at]
        state.at = (state.at + 1) % rows
        state.seen = min(state.seen + 1, rows)

    def _run_ring(self, state: PartState) -> None:
        rows = state.ring[state.at : state.at + self.window_rows]
        if self.form == "window":
            state.x[0] = rows
            self._run(state)
            return
        self._forget(state)
        for row in rows[self.window_rows - state.seen :]:
            state.row[...] = row
            self._run(state)

    def _batch_windows(
        self,
        states: Sequence[PartState],
        rows: Doubles,
        out: Floats,
        answers: Callable[[Floats], Floats],
    ) -> None:
        """One call for all streams; `answers` is of (n, window_rows, k) scaled, (n, classes)."""
        finite = np.isfinite(rows).all(axis=1)
        out[~finite] = np.nan
        taken = np.flatnonzero(finite).tolist()
        if not taken:
            return
        x = np.empty((len(taken), *self.x_shape[1:]), np.float32)
        for window, i in zip(x, taken, strict=True):
            state = states[i]
            self._push(state, rows[i])
            window[...] = state.ring[state.at : state.at + self.window_rows]
        for y, i in zip(answers(x), taken, strict=True):
            self.frame.read_out(y, out[i])

    def _window(self, state: PartState, rows: Doubles, out: Floats) -> None:
        x = np.empty(rows.shape, np.float32)
        self.frame.scale(rows, np.empty(rows.shape), x)
        if self.form == "window":
            state.x[0] = x
            self._run(state)
        else:
            for row in x:
                state.row[...] = row
                self._run(state)
        self.frame.read_out(state.answer, out)

    def _reset(self, state: PartState) -> None:
        state.ring.fill(0.0)
        state.at = state.seen = 0
        if self.form == "step":
            self._forget(state)

"""Tries forms of a model, each apart from us, and says which gates each holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from hft.inference.bench.ratio import Ratio
from hft.inference.build import gates
from hft.inference.build.apart import ApartError, call_apart
from hft.inference.build.evidence import Replay
from hft.inference.build.gates import PARTS, Gains, Limits, broken, not_judged
from hft.inference.bundle import Weights, save_bundle
from hft.inference.card import Card, Gate, LesserTier, PartEntry, Readout

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of trying a form."""

    gates: tuple[Gate, ...]
    outputs: Floats | None = None
    """(n, outputs) on the judged rows, without what a readout adds; None: it did not run."""
    step_ns: float = 0.0
    """Median of a step, from Python."""


@dataclass(frozen=True, slots=True)
class Parent:
    """What a form is held against."""

    outputs: Floats | None
    """On the judge's rows, without what a readout adds; None: they are compared elsewhere."""
    timed: Path | None = None
    """Trial bundle that its steps are timed against; None: it is the first of its kind."""
    replayed: Path | None = None
    """Trial bundle that its P&L is compared with; None: no P&L."""
    limits: Limits = PARTS


@dataclass
class Judge:
    """Rows, a market and limits that all forms of one build are judged by."""

    work: Path
    """Folder for what goes between processes."""
    rows: Floats
    """(n, k) features, consecutive."""
    warm: int
    """So many of them are run, not compared."""
    limit_s: float
    budget_ns: int = 0
    replay: Replay | None = None
    _gains: dict[Path, Gains | str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        np.save(self._rows_file, self.rows)

    @property
    def _rows_file(self) -> Path:
        return self.work / "rows.npy"

    def bundle(
        self,
        name: str,
        card: Card,
        weights: Weights,
        lesser: Mapping[LesserTier, Weights] | None = None,
    ) -> Path:
        """A trial bundle without parts; one of that name is made once."""
        folder = self.work / f"{name}.bundle"
        if folder.exists():
            return folder
        save_bundle(folder, msgspec.structs.replace(card, parts=()), weights, lesser)
        return folder

    def part(
        self,
        made: Path,
        entry: PartEntry,
        card: Card,
        weights: Weights,
        lesser: Mapping[LesserTier, Weights] | None = None,
    ) -> Path:
        """A trial bundle with one part, which stays where it is."""
        folder = self.work / f"{entry.file}.bundle"
        folder.mkdir()
        (folder / entry.file).symlink_to(made.resolve())
        save_bundle(folder, msgspec.structs.replace(card, parts=(entry,)), weights, lesser)
        return folder

    def try_form(self, folder: Path, parent: Parent, readout: Readout | None) -> Trial:
        """Runs a trial bundle and holds it against its parent."""
        out = self.work / f"{folder.name}.npy"
        arguments = {
            "folder": str(folder),
            "parent": str(parent.timed or ""),
            "rows": str(self._rows_file),
            "out": str(out),
        }
        try:
            told = call_apart("hft.inference.build.trials:try_steps", arguments, self.limit_s)
        except ApartError as error:
            return Trial((broken(str(error), "run"),))
        outputs, ratio = np.load(out).astype(np.float64), Ratio(**told["ratio"])
        theirs, limits = parent.outputs, parent.limits
        found: list[Gate] = []
        if theirs is not None:
            outputs = outputs[:, : theirs.shape[1]]
            found += gates.output_gates(theirs[self.warm :], outputs[self.warm :], readout, limits)
        if parent.timed is not None:
            found.append(gates.latency_gate(ratio, limits))
        if self.budget_ns:
            found.append(gates.budget_gate(told["p99_ns"], self.budget_ns))
        if parent.replayed is not None and self.replay is not None:
            found += self._pnl(folder, parent.replayed, limits, found)
        return Trial(tuple(found), outputs, ratio.new_ns)

    def _pnl(self, folder: Path, parent: Path, limits: Limits, found: list[Gate]) -> list[Gate]:
        others = any(gate.failed for gate in found if gate.name not in ("latency", "budget"))
        if others and not limits.is_lesser:
            return []  # outputs that are others make other trades: a replay says nothing new
        theirs, ours = self.gains(parent), self.gains(folder)
        if isinstance(theirs, str):
            return [not_judged("pnl", f"the parent's replay: {theirs}")]
        if isinstance(ours, str):
            return [broken(f"its replay: {ours}", "pnl")]
        return [gates.pnl_gate(theirs, ours, limits)]

    def gains(self, folder: Path) -> Gains | str:
        """P&L of a replay with a trial bundle; words: why there is none."""
        if folder not in self._gains:
            self._gains[folder] = self._replayed(folder)
        return self._gains[folder]

    def _replayed(self, folder: Path) -> Gains | str:
        assert self.replay is not None
        out = self.work / f"{folder.name}.pnl.npz"
        arguments = asdict(self.replay) | {"folder": str(folder), "out": str(out)}
        try:
            call_apart("hft.inference.build.trials:replay", arguments, self.limit_s)
        except ApartError as error:
            return str(error)
        with np.load(out, allow_pickle=False) as told:
            return Gains(told["ts"], told["gain"], int(told["fills"]))

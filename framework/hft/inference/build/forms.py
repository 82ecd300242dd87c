"""Parts of each tier: exported one by one, judged, and entered in the card."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from hft.inference.build import gates
from hft.inference.build.exports import (
    FORMATS,
    Calibrated,
    Made,
    Network,
    Part,
    export,
    made_apart,
    missing_for,
    parts_of,
)
from hft.inference.build.gates import broken
from hft.inference.build.judge import Judge, Parent, Trial
from hft.inference.build.parents import Outputs
from hft.inference.build.smaller import Narrow, in_float
from hft.inference.build.subject import Subject
from hft.inference.build.work import write_network
from hft.inference.card import Gate, PartEntry, Readout, TierName
from hft.inference.compress.quantise import activation_ranges
from hft.inference.training.task import Report

NATIVE = "native"
"""Name of the row of FULL's own weights."""


@dataclass(frozen=True, slots=True)
class Row:
    """A line of what was built."""

    name: str
    bytes: int
    sha256: str
    gates: tuple[Gate, ...]
    step_ns: float = 0.0
    tier: TierName = "FULL"
    missing: str = ""
    """What is not installed that it is made with: it was not built, and is not in the bundle."""

    @property
    def passed(self) -> bool:
        """Whether it is there and no gate failed."""
        return not self.missing and not any(gate.failed for gate in self.gates)

    @property
    def verdict(self) -> str:
        """In words."""
        if self.missing:
            return "not built"
        if not self.passed:
            return "FAILED"
        unjudged = [gate.name for gate in self.gates if not gate.judged]
        if unjudged:
            return f"{', '.join(unjudged)} not judged"
        return "passed" if self.gates else "as given"


@dataclass
class Forms:
    """Makes and judges the parts of a subject."""

    draft: Path
    """Where parts are written."""
    judge: Judge
    subject: Subject
    given: Subject
    """As it was before anything was taken away."""
    formats: tuple[str, ...]
    narrow: Narrow | None
    report: Report
    rows: list[Row] = field(default_factory=list)
    trials: dict[Part, Path] = field(default_factory=dict)
    """Trial bundles of those that ran."""

    def of_tier(self, tier: TierName, outputs: Outputs) -> list[PartEntry]:
        """Parts of one tier.

        Args:
            tier: which.
            outputs: what the parts are held against: its model in float.
        """
        exports = self._exports(tier)
        if not exports:
            return []
        expected = outputs.of(self.judge.rows)
        replayed = self._replayed(tier)
        return [self._judged(made, expected, replayed) for made in exports]

    def _with_libraries(self, parts: list[Part]) -> list[Part]:
        """Those whose library is here; of the others it is told."""
        found, original = [], self.subject.original
        for part in parts:
            missing = missing_for(part.backend, original)
            if missing:
                self.report(f"{part.file} not built: {missing}")
                self.rows.append(Row(part.file, 0, "", (), tier=part.tier, missing=missing))
            else:
                found.append(part)
        return found

    def _exports(self, tier: TierName) -> list[Made]:
        subject = of_tier(self.subject, tier)
        if not subject.card.layers:
            if self.judge.replay is not None:
                self.report("P&L of parts is not compared: there is no native network")
            parts = self._with_libraries(self._of_original())
            return [self._export_original(part) for part in parts]
        network = self._network(subject, tier)
        is_calibrated = self.narrow is not None
        wanted = parts_of(self.formats, network.window_rows, tier, is_calibrated=is_calibrated)
        return [self._export(part, network) for part in self._with_libraries(wanted)]

    def _export(self, part: Part, network: Network) -> Made:
        self.report(f"exporting {part.file}")
        return export(part, network, self.draft, self.judge.limit_s)

    def _of_original(self) -> list[Part]:
        original = self.subject.original
        assert original is not None
        can = {".onnx": ("onnx",), ".keras": ("saved_model", "onnx")}
        makes = can.get(original.suffix, ("saved_model",))
        for name in self.formats:
            if name not in makes:
                self.report(f"{name} cannot be made of {original.name}: {self.subject.why_not}")
        return [Part(FORMATS[name], "window") for name in makes if name in self.formats]

    def _export_original(self, part: Part) -> Made:
        self.report(f"exporting {part.file}")
        card = self.subject.card
        arguments = {
            "original": str(self.subject.original),
            "file": str(self.draft / part.file),
            "backend": part.backend,
            "window_rows": card.window_rows,
            "inputs": len(card.features),
        }
        work = "hft.inference.build.window_exports:export_original"
        return made_apart(part, work, arguments, self.draft, self.judge.limit_s)

    def _network(self, subject: Subject, tier: TierName) -> Network:
        file = self.judge.work / f"{tier}.npz"
        write_network(file, subject.card.layers, subject.weights)
        calibrated = Calibrated()
        if self.narrow is not None and tier == "FULL":
            calibrated = self._calibrated(subject, self.narrow)
        return Network(
            file, subject.card.layers, subject.weights, subject.card.window_rows, calibrated
        )

    def _calibrated(self, subject: Subject, narrow: Narrow) -> Calibrated:
        stack, cut = in_float(subject), narrow.rows.cut
        ranges = activation_ranges(stack, narrow.task.rows, cut)
        rows = self.judge.work / "calibration.npy"
        np.save(rows, stack.scaled(narrow.task.rows.x[cut]))
        return Calibrated([r.reach for r in ranges[:-1]], narrow.wide, rows)

    def _replayed(self, tier: TierName) -> Path | None:
        """The native bundle whose P&L the parts are compared with."""
        if self.judge.replay is None or tier != "FULL" or not self.subject.card.layers:
            return None
        subject, given = self.subject, self.given
        layers = in_float(subject).layers
        if subject.weights is given.weights and layers == given.card.layers:
            return self.judge.bundle("given", given.card, given.weights, given.lesser)
        card = msgspec.structs.replace(subject.card, layers=layers)
        return self.judge.bundle("float", card, subject.weights, subject.lesser)

    def _judged(
        self,
        made: Made,
        expected: npt.NDArray[np.float64],
        replayed: Path | None,
    ) -> PartEntry:
        part, entry = made.part, made.part.entry(made.sha256)
        if made.why_not:
            trial = Trial((broken(made.why_not),))
        else:
            self.report(f"judging {part.file}")
            trial = self._tried(part, entry, expected, replayed)
        self.rows.append(
            Row(part.file, made.bytes, made.sha256, trial.gates, trial.step_ns, part.tier)
        )
        failed = gates.worst(trial.gates)
        if failed:
            self.report(f"{part.file} FAILED: {failed}")
        return msgspec.structs.replace(entry, gates=trial.gates)

    def _tried(
        self,
        part: Part,
        entry: PartEntry,
        expected: npt.NDArray[np.float64],
        replayed: Path | None,
    ) -> Trial:
        subject = self.subject
        folder = self.judge.part(
            self.draft / part.file, entry, subject.card, subject.weights, subject.lesser
        )
        timed = self.trials.get(part.parent) if part.parent else None
        parent = Parent(expected, timed, replayed)
        trial = self.judge.try_form(folder, parent, readout_of(subject, part.tier))
        if trial.outputs is not None:
            self.trials[part] = folder
        if part.parent and timed is None:
            missing = broken(f"{part.parent.file} is not there to compare", "latency")
            return Trial((*trial.gates, missing), trial.outputs, trial.step_ns)
        return trial


def of_tier(subject: Subject, tier: TierName) -> Subject:
    """A tier as a model of its own; lesser ones see one row."""
    if tier == "FULL":
        return subject
    card, entry = subject.card, subject.card.tiers[tier]
    card = msgspec.structs.replace(
        card,
        layers=entry.layers,
        window_rows=0,
        warm_up_rows=entry.warm_up_rows,
        readout=readout_of(subject, tier),
        tiers={},
    )
    return Subject(card, subject.lesser[tier])


def readout_of(subject: Subject, tier: TierName) -> Readout | None:
    own = None if tier == "FULL" else subject.card.tiers[tier].readout
    return own or subject.card.readout

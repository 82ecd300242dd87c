"""`hft build`: a model made smaller, exported, judged, and put together as a bundle."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec
import numpy as np

from hft.errors import ConfigError, DataError
from hft.inference.build import gates
from hft.inference.build.evidence import Evidence, gate_rows
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
from hft.inference.build.parents import Outputs, native_outputs, original_outputs
from hft.inference.build.smaller import (
    Cuts,
    Narrow,
    narrow_of,
    sensitivity,
    smaller,
    stack_of_subject,
    taught,
)
from hft.inference.build.subject import Subject, with_slope
from hft.inference.build.work import write_network
from hft.inference.bundle import save_bundle
from hft.inference.card import Gate, LesserTier, PartEntry, Readout, TierName
from hft.inference.compress.quantise import activation_ranges
from hft.inference.keras_files import SOURCE
from hft.inference.task import Report, Task

MADE_UP = 400
"""Rows that forms are compared on where no data are given."""


@dataclass(frozen=True, slots=True)
class Options:
    """What to make, and how it is judged."""

    formats: tuple[str, ...] = tuple(FORMATS)
    cuts: Cuts = field(default_factory=Cuts)
    distil: bool = False
    budget_ns: int = 0
    limit_s: float = 300.0
    """For each export and each trial."""
    gate_rows: int = 2_000
    calibration: Task | None = None
    """Rows for 8 bits, instead of the evidence's calibration slice."""


@dataclass(frozen=True, slots=True)
class Row:
    """A line of what was built."""

    name: str
    bytes: int
    sha256: str
    gates: tuple[Gate, ...]
    step_ns: float = 0.0

    @property
    def passed(self) -> bool:
        """Whether it may run."""
        return all(gate.passed for gate in self.gates)


@dataclass
class Building:
    """One build: a draft folder that becomes the bundle."""

    draft: Path
    work: Path
    subject: Subject
    evidence: Evidence | None
    options: Options
    report: Report
    rows: list[Row] = field(default_factory=list)
    narrow: Narrow | None = None
    no_narrow: str = ""
    """Why there are no parts with 8-bit activations."""

    @property
    def task(self) -> Task | None:
        return self.evidence.task if self.evidence else None

    def run(self) -> list[Row]:
        """Everything, in order."""
        self._read_out()
        judge = self._judge()
        before = self.subject
        self._shrink()
        self._judge_native(judge, before)
        self._distil()
        card = self.subject.card
        value = sensitivity(self.subject, self.task, self.report)
        card = msgspec.structs.replace(card, sensitivity=value, budget_ns=self.options.budget_ns)
        self.subject = replace(self.subject, card=card)
        entries = self._parts(judge)
        # What runs by default is the first that fits: failed ones come last.
        entries.sort(key=lambda entry: not entry.passed)
        card = msgspec.structs.replace(card, parts=tuple(entries))
        if self.subject.original is not None and self.subject.original.name.endswith(".keras"):
            shutil.copyfile(self.subject.original, self.draft / SOURCE)
        save_bundle(self.draft, card, self.subject.weights, self.subject.lesser)
        return self.rows

    def _read_out(self) -> None:
        """Of another maker's model the forecast's slope is not known yet."""
        subject, task = self.subject, self.task
        if task is None or not subject.wants_slope:
            return
        cut = task.parts.calibrate
        outputs = self._outputs(subject).on(task.rows, cut)
        card = with_slope(subject.card, outputs, task, cut)
        assert card.readout is not None
        self.report(f"forecast: shrink {card.readout.shrink:.3f} on the calibration slice")
        self.subject = replace(subject, card=card, wants_slope=False)

    def _outputs(self, subject: Subject) -> Outputs:
        if subject.card.layers:
            return native_outputs(stack_of_subject(subject))
        assert subject.original is not None
        return original_outputs(subject.original, subject.card, self.work, self.options.limit_s)

    def _judge(self) -> Judge:
        card, task = self.subject.card, self.task
        warm = max(card.warm_up_rows, card.window_rows - 1, 0)
        if task is None:
            self.report("no data given: forms are compared on made-up rows, P&L is not measured")
            rng = np.random.default_rng(1)
            z = rng.standard_normal((warm + MADE_UP, len(card.scaler.mean)))
            x = np.array(card.scaler.mean) + np.array(card.scaler.scale) * z
        else:
            x = task.rows.x[gate_rows(task.rows, task.parts, warm, self.options.gate_rows)]
        replay = self.evidence.replay if self.evidence else None
        if self.evidence and replay is None:
            self.report(f"P&L is not measured: {self.evidence.no_replay}")
        return Judge(self.work, x, warm, self.options.limit_s, self.options.budget_ns, replay)

    def _shrink(self) -> None:
        cuts, calibration = self.options.cuts, self.options.calibration
        task = calibration or self.task
        whole = slice(0, len(calibration.rows)) if calibration else None
        # Units go before bits: ranges are those of what is left.
        units = replace(cuts, precision=None)
        self.subject = smaller(self.subject, units, self.task, None, self.report)
        try:
            self.narrow = narrow_of(self.subject, task, whole, self.report)
        except (ConfigError, DataError) as error:
            if cuts.precision in ("int8", "auto"):
                raise
            self.no_narrow = str(error)
        bits = Cuts(precision=cuts.precision)
        self.subject = smaller(self.subject, bits, self.task, self.narrow, self.report)

    def _judge_native(self, judge: Judge, before: Subject) -> None:
        card = self.subject.card
        if not card.layers:
            return
        found = list(card.gates)
        trial = Trial(())
        if self.options.cuts.any or self.options.budget_ns:
            old = judge.bundle("parent", before.card, before.weights, before.lesser)
            new = judge.bundle("native", card, self.subject.weights, self.subject.lesser)
            outputs = self._outputs(before).of(judge.rows)
            parent = Parent(outputs, timed=old, replayed=old if judge.replay else None)
            self.report("native weights, against those they were made from")
            trial = judge.try_form(new, parent, card.readout)
            found += trial.gates
        size = sum(a.nbytes for of in self.subject.weights for a in of.values())
        self.rows.append(Row("native", size, "", tuple(found), trial.step_ns))
        card = msgspec.structs.replace(card, gates=tuple(found))
        self.subject = replace(self.subject, card=card)

    def _distil(self) -> None:
        if not self.options.distil:
            return
        task = self.task
        if task is None:
            raise ConfigError("--distil needs rows to learn on: give --dataset or --store")
        teacher = self._outputs(self.subject).on
        tiers: tuple[LesserTier, ...] = ("LIGHT", "MICRO")
        made = taught(
            self.subject.card, tiers, task, lambda cut: teacher(task.rows, cut), self.report
        )
        lesser = {**self.subject.lesser, **made.weights}
        self.subject = replace(self.subject, card=made.card, lesser=lesser)

    def _parts(self, judge: Judge) -> list[PartEntry]:
        tiers: list[TierName] = ["FULL", *self.subject.lesser]
        made: list[PartEntry] = []
        for tier in tiers:
            made += self._parts_of_tier(judge, tier)
        return made

    def _parts_of_tier(self, judge: Judge, tier: TierName) -> list[PartEntry]:
        subject = self._tier(tier)
        if not subject.card.layers:
            exports = [self._export_original(part) for part in self._of_original()]
        else:
            network = self._network(subject, tier)
            wanted = parts_of(
                self.options.formats,
                network.window_rows,
                tier,
                is_calibrated=self.narrow is not None,
            )
            if self.no_narrow and tier == "FULL":
                self.report(f"no parts with 8-bit activations: {self.no_narrow}")
            exports = [self._export(part, network) for part in wanted]
        if not exports:
            return []
        outputs = self._outputs(subject).of(judge.rows)
        replayed = None
        if judge.replay and tier == "FULL" and subject.card.layers:
            replayed = judge.bundle(
                f"{tier}", self.subject.card, self.subject.weights, self.subject.lesser
            )
        trials: dict[Part, Path] = {}
        return [self._judged(judge, each, outputs, replayed, trials) for each in exports]

    def _judged(
        self,
        judge: Judge,
        made: Made,
        outputs: np.ndarray,
        replayed: Path | None,
        trials: dict[Part, Path],
    ) -> PartEntry:
        part, entry = made.part, made.part.entry(made.sha256)
        if made.why_not:
            found: tuple[Gate, ...] = (broken(made.why_not),)
            trial = Trial(found)
        else:
            self.report(f"judging {part.file}")
            subject = self.subject
            folder = judge.part(
                self.draft / part.file, entry, subject.card, subject.weights, subject.lesser
            )
            timed = trials.get(part.parent) if part.parent else None
            trial = judge.try_form(
                folder, Parent(outputs, timed, replayed), self._readout(part.tier)
            )
            found = trial.gates
            if part.parent and timed is None:
                found = (*found, broken(f"{part.parent.file} is not there to compare", "latency"))
            if not any(gate.name == "run" for gate in found):
                trials[part] = folder
        self.rows.append(Row(part.file, made.bytes, made.sha256, found, trial.step_ns))
        failed = gates.worst(found)
        if failed:
            self.report(f"{part.file} FAILED: {failed}")
        return msgspec.structs.replace(entry, gates=found)

    def _readout(self, tier: TierName) -> Readout | None:
        card = self.subject.card
        own = None if tier == "FULL" else card.tiers[tier].readout
        return own or card.readout

    def _tier(self, tier: TierName) -> Subject:
        if tier == "FULL":
            return self.subject
        card = self.subject.card
        layers = card.tiers[tier].layers
        card = msgspec.structs.replace(card, layers=layers, window_rows=0)
        return Subject(card, self.subject.lesser[tier])

    def _network(self, subject: Subject, tier: TierName) -> Network:
        file = self.work / f"{tier}.npz"
        write_network(file, subject.card.layers, subject.weights)
        calibrated = Calibrated()
        if self.narrow is not None and tier == "FULL":
            calibrated = self._calibrated(subject, self.narrow)
        return Network(
            file, subject.card.layers, subject.weights, subject.card.window_rows, calibrated
        )

    def _calibrated(self, subject: Subject, narrow: Narrow) -> Calibrated:
        stack, cut = stack_of_subject(subject), narrow.rows.cut
        ranges = activation_ranges(stack, narrow.task.rows, cut)
        rows = self.work / "calibration.npy"
        np.save(rows, stack.scaled(narrow.task.rows.x[cut]))
        return Calibrated([r.reach for r in ranges[:-1]], narrow.wide, rows)

    def _export(self, part: Part, network: Network) -> Made:
        self.report(f"exporting {part.file}")
        return export(part, network, self.draft, self.options.limit_s)

    def _of_original(self) -> list[Part]:
        original = self.subject.original
        assert original is not None
        can = {".onnx": ("onnx",), ".keras": ("saved_model", "onnx")}
        makes = can.get(original.suffix, ("saved_model",))
        for name in self.options.formats:
            if name not in makes:
                self.report(f"{name} cannot be made of {original.name}: {self.subject.why_not}")
        return [Part(FORMATS[n], "window") for n in makes if n in self.options.formats]

    def _export_original(self, part: Part) -> Made:
        self.report(f"exporting {part.file}")
        missing = missing_for(part.backend)
        if missing:
            return Made(part, why_not=missing)
        card = self.subject.card
        arguments = {
            "original": str(self.subject.original),
            "file": str(self.draft / part.file),
            "backend": part.backend,
            "window_rows": card.window_rows,
            "inputs": len(card.features),
        }
        work = "hft.inference.build.originals:export_original"
        return made_apart(part, work, arguments, self.draft, self.options.limit_s)


def build_bundle(
    out: Path,
    subject: Subject,
    evidence: Evidence | None,
    options: Options,
    report: Report,
    *,
    overwrite: bool = False,
) -> list[Row]:
    """Builds a bundle; it is there whole or not at all.

    Raises:
        HftError: what was asked for does not fit the model; the folder is taken.
    """
    require_free(out, overwrite=overwrite)
    draft = Path(tempfile.mkdtemp(prefix=f".{out.name}.", suffix=".draft", dir=out.parent))
    try:
        with tempfile.TemporaryDirectory(prefix="hft-build-") as work:
            rows = Building(draft, Path(work), subject, evidence, options, report).run()
        draft.chmod(0o755)
        _replace(draft, out)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return rows


def require_free(out: Path, *, overwrite: bool) -> None:
    """Refuses to write where something is.

    Raises:
        ConfigError: it exists; with `overwrite`, it is no bundle.
    """
    from hft.inference.build.subject import is_bundle
    from hft.whole_files import require_folder

    if out.suffix != ".bundle":
        raise ConfigError(f"-o {out}: want a folder called NAME.bundle")
    if out.exists() and not overwrite:
        raise ConfigError(f"{out} exists: give another name, or --overwrite")
    if out.exists() and not is_bundle(out):
        raise ConfigError(f"{out} is no bundle: it is not overwritten")
    require_folder(out.parent)
    out.parent.mkdir(parents=True, exist_ok=True)


def _replace(draft: Path, out: Path) -> None:
    old = out.with_name(f".{out.name}.old")
    if out.exists():
        out.rename(old)
    try:
        draft.rename(out)
    except BaseException:
        if old.exists():
            old.rename(out)
        raise
    shutil.rmtree(old, ignore_errors=True)

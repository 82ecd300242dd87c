"""`hft build`: a model made smaller, exported, judged, and put together as a bundle."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from hft.errors import ConfigError, DataError
from hft.inference.bench.subject import made_up_rows
from hft.inference.build.evidence import Evidence, gate_rows
from hft.inference.build.exports import FORMATS
from hft.inference.build.forms import NATIVE, Forms, Row, of_tier
from hft.inference.build.gates import worst
from hft.inference.build.judge import Judge, Parent, Trial
from hft.inference.build.parents import Outputs, native_outputs, original_outputs
from hft.inference.build.smaller import (
    Cuts,
    Narrow,
    in_float,
    narrow_of,
    sensitivity,
    smaller,
    stack_of_subject,
    taught,
)
from hft.inference.build.subject import Subject, with_slope
from hft.inference.build.tiers import Full, TierLimits, judge_tier, with_gates
from hft.inference.bundle import part_sha256, save_bundle
from hft.inference.card import LesserTier, PartEntry
from hft.inference.training.keras_files import SOURCE
from hft.inference.training.notes import NOTES
from hft.inference.training.task import Report, Task
from hft.whole_files import replacing_folder

MADE_UP = 400
"""Rows that forms are compared on where no data are given."""


@dataclass(frozen=True, slots=True)
class Options:
    """What to make, and how it is judged."""

    formats: tuple[str, ...] = tuple(FORMATS)
    cuts: Cuts = field(default_factory=Cuts)
    distil: bool = False
    budget_ns: int = 0
    """0: the card's."""
    limit_s: float = 300.0
    """For each export and each trial."""
    gate_rows: int = 10_000
    tier_limits: TierLimits = field(default_factory=TierLimits)
    calibration: Task | None = None
    """Rows for 8 bits, instead of the evidence's calibration slice."""


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

    @property
    def task(self) -> Task | None:
        return self.evidence.task if self.evidence else None

    def run(self) -> list[Row]:
        """Everything, in order."""
        if self.options.budget_ns:
            self._change(budget_ns=self.options.budget_ns)
        self._read_out()
        judge = self._judge()
        before = self.subject
        self._require_replay(judge, before)
        self._shrink()
        self._judge_native(judge, before)
        self._distil()
        self._change(sensitivity=sensitivity(self.subject, self.task, self.report))
        parts = tuple(self._parts(judge, before))
        self._change(parts=parts)
        self._keep_source()
        save_bundle(self.draft, self.subject.card, self.subject.weights, self.subject.lesser)
        return self.rows

    def _change(self, **values: object) -> None:
        card = msgspec.structs.replace(self.subject.card, **values)
        self.subject = replace(self.subject, card=card)

    def _read_out(self) -> None:
        """Of another maker's model the forecast's slope is not known yet."""
        subject, task = self.subject, self.task
        if task is None or not subject.wants_slope:
            return
        cut = task.parts.calibrate
        card = with_slope(subject.card, self._outputs(subject).on(task.rows, cut), task, cut)
        assert card.readout is not None
        self.report(f"forecast: shrink {card.readout.shrink:.3f} on the calibration slice")
        self.subject = replace(subject, card=card, wants_slope=False)

    def _outputs(self, subject: Subject) -> Outputs:
        if subject.card.layers:
            return native_outputs(in_float(subject))
        assert subject.original is not None
        return original_outputs(subject.original, subject.card, self.work, self.options.limit_s)

    def _judge(self) -> Judge:
        card, task = self.subject.card, self.task
        warm = max(card.warm_up_rows, card.window_rows - 1, 0)
        if task is None:
            self.report("no data given: forms are compared on made-up rows, P&L is not measured")
            x = made_up_rows(card.scaler, warm + MADE_UP)
        else:
            x = task.rows.x[gate_rows(task.rows, task.parts, warm, self.options.gate_rows)]
        replay = self.evidence.replay if self.evidence else None
        if self.evidence and replay is None:
            self.report(f"P&L is not measured: {self.evidence.no_replay}")
        return Judge(self.work, x, warm, self.options.limit_s, card.budget_ns, replay)

    def _require_replay(self, judge: Judge, subject: Subject) -> None:
        """Fails before the first export if there can be no P&L to compare."""
        if judge.replay is None or not subject.card.layers:
            return
        self.report("replaying the model as it was given")
        found = judge.gains(judge.bundle("given", subject.card, subject.weights, subject.lesser))
        if isinstance(found, str):
            raise ConfigError(
                f"the replay that P&L is compared on does not run: {found}; give what it needs "
                "with --set or --recipe, or leave P&L out with --pnl 0s"
            )

    def _shrink(self) -> None:
        cuts, given = self.options.cuts, self.options.calibration
        # Units go before bits: ranges are those of what is left.
        self.subject = smaller(
            self.subject, replace(cuts, precision=None), self.task, None, self.report
        )
        whole = slice(0, len(given.rows)) if given else None
        try:
            self.narrow = narrow_of(self.subject, given or self.task, whole, self.report)
        except (ConfigError, DataError) as error:
            if cuts.precision in ("int8", "auto"):
                raise
            self.report(f"no parts with 8-bit activations: {error}")
        bits = Cuts(precision=cuts.precision)
        self.subject = smaller(self.subject, bits, self.task, self.narrow, self.report)

    def _judge_native(self, judge: Judge, before: Subject) -> None:
        card = self.subject.card
        if not card.layers:
            return
        found, trial = list(card.gates), Trial(())
        if self.options.cuts.any or card.budget_ns:
            self.report("judging the native weights")
            old = judge.bundle("given", before.card, before.weights, before.lesser)
            new = judge.bundle("native", card, self.subject.weights, self.subject.lesser)
            expected = native_outputs(stack_of_subject(before)).of(judge.rows)
            parent = Parent(expected, timed=old, replayed=old)
            trial = judge.try_form(new, parent, card.readout)
            found += trial.gates
        size = sum(a.nbytes for of in self.subject.weights for a in of.values())
        self.rows.append(Row(NATIVE, size, "", tuple(found), trial.step_ns))
        self._change(gates=tuple(found))

    def _distil(self) -> None:
        if not self.options.distil:
            return
        task = self.task
        if task is None:
            raise ConfigError("--distil needs rows to learn on: give --dataset or --data")
        teacher = self._outputs(self.subject).on
        tiers: tuple[LesserTier, ...] = ("LIGHT", "MICRO")
        made = taught(
            self.subject.card, tiers, task, lambda cut: teacher(task.rows, cut), self.report
        )
        lesser = {**self.subject.lesser, **made.weights}
        self.subject = replace(self.subject, card=made.card, lesser=lesser)

    def _parts(self, judge: Judge, given: Subject) -> list[PartEntry]:
        forms = Forms(
            self.draft,
            judge,
            self.subject,
            given,
            self.options.formats,
            self.narrow,
            self.report,
            self.rows,
        )
        made = forms.of_tier("FULL", self._outputs(self.subject))
        full = self._full(judge, given, forms) if self.subject.lesser else None
        for tier in self.subject.lesser:
            assert full is not None
            self._judge_tier(tier, full, judge)
            made += forms.of_tier(tier, self._outputs(of_tier(self.subject, tier)))
        # What runs by default is the first that fits: failed ones come last.
        return sorted(made, key=lambda entry: not entry.passed)

    def _full(self, judge: Judge, given: Subject, forms: Forms) -> Full:
        """FULL as it runs: natively, or by its fastest part."""
        subject, task, outputs = self.subject, self.task, None
        if not subject.card.layers:
            if task is not None:
                outputs = self._outputs(subject).on(task.rows, task.parts.test)
            steps = {row.name: row.step_ns for row in self.rows}
            fastest = min(forms.trials, key=lambda part: steps[part.file], default=None)
            return Full(outputs, forms.trials[fastest] if fastest else None)
        if task is not None:
            outputs = stack_of_subject(subject).outputs(task.rows, task.parts.test)
        name, whose = ("native", subject) if self.options.cuts.any else ("given", given)
        return Full(outputs, judge.bundle(name, whose.card, whose.weights, whose.lesser))

    def _judge_tier(self, tier: LesserTier, full: Full, judge: Judge) -> None:
        self.report(f"judging {tier} against FULL")
        limits = self.options.tier_limits
        row = judge_tier(tier, self.subject, full, judge, self.task, limits)
        self.rows.append(row)
        self.subject = replace(self.subject, card=with_gates(self.subject.card, {tier: row.gates}))
        if not row.passed:
            self.report(f"{tier} FAILED: {worst(row.gates)}")

    def _keep_source(self) -> None:
        """The trained model stays beside the card as long as it is the model."""
        source = self.subject.source
        if source is None or (self.subject.card.layers and self.options.cuts.any):
            self._change(source_sha256="")
            return
        shutil.copyfile(source, self.draft / SOURCE)
        with suppress(FileNotFoundError):
            shutil.copyfile(source.with_name(NOTES), self.draft / NOTES)
        self._change(source_sha256=part_sha256(self.draft / SOURCE))


def build_bundle(
    out: Path, subject: Subject, evidence: Evidence | None, options: Options, report: Report
) -> list[Row]:
    """Builds a bundle; it is there whole or not at all, and takes the place of one before it.

    Raises:
        HftError: what was asked for does not fit the model.
    """
    with (
        replacing_folder(out) as draft,
        tempfile.TemporaryDirectory(prefix="hft-build-") as work,
    ):
        return Building(draft, Path(work), subject, evidence, options, report).run()

"""A dataset in a few lines, for a person."""

from __future__ import annotations

from collections.abc import Iterator

from hft.durations import format_ns
from hft.inference.dataset.classes import OUTPUTS
from hft.inference.dataset.facts import DatasetFacts, FoldFacts
from hft.inference.dataset.moves import column
from hft.inference.dataset.splitting import PARTS


def lines(facts: DatasetFacts) -> Iterator[str]:
    """What was written and what was left out."""
    latency = "drawn" if facts.latency_ns is None else format_ns(facts.latency_ns)
    yield (
        f"{facts.instrument}: {facts.rows:,} rows of {len(facts.features)} features, labels "
        f"{latency} ({facts.latency}) after the row"
    )
    ends = ", ".join(f"{cause} {count:,}" for cause, count in facts.stretches.items())
    yield (
        f"left out: {facts.outside:,} rows while closed or silent; trading was broken by "
        f"{ends or 'nothing'}"
    )
    if facts.filled:
        yield f"{facts.filled:,} rows repeat the one before, while a side was missing"
    yield from facts.notes
    for number, fold in enumerate(facts.folds, 1):
        if len(facts.folds) > 1:
            yield f"fold {number}"
        yield from _fold(fold)


def _fold(fold: FoldFacts) -> Iterator[str]:
    for name in PARTS:
        part = fold.parts[name]
        yield (
            f"  {name:9} {part.rows:>12,} rows, {part.unlabelled:,} of them unlabelled; "
            f"{part.purged:,} purged, {part.embargoed:,} embargoed, "
            f"{part.windows_refused:,} without a whole window"
        )
    for horizon in fold.horizons:
        label = column("label", horizon.horizon_ns)
        counts = {
            name: "/".join(
                f"{sum(fold.parts[name].classes[label][f'{w}.{o}'] for w in ('calm', 'storm')):,}"
                for o in OUTPUTS
            )
            for name in PARTS
        }
        told = ", ".join(f"{name} {count}" for name, count in counts.items())
        yield (
            f"  {label}: beyond {horizon.threshold_ticks:g} ticks; {'/'.join(OUTPUTS)} in {told}"
        )

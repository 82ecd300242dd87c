"""Reading a bundle's card: what must hold of it whatever the weights are."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from hft.durations import parse_ns
from hft.errors import ConfigError, ModelError
from hft.features import Feature, Features, Trigger
from hft.inference.card import FORMAT, Card, FeatureEntry, TriggerEntry
from hft.inference.weights import AGAIN


def read_card(path: Path) -> Card:
    """`model.toml`, checked against its types.

    Raises:
        ModelError: absent, not TOML, not of this version.
    """
    if not path.exists():
        raise ModelError(f"{path}: no such file; `hft train` and `hft build` write a bundle")
    try:
        card = msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), Card)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise ModelError(f"{path}: {error}; correct it there, or {AGAIN}") from error
    except (OSError, RecursionError) as error:
        raise ModelError(f"{path}: cannot be read: {error}") from error
    if card.format != FORMAT:
        raise ModelError(
            f"{path}: format is {card.format}, this version reads {FORMAT}; train again"
        )
    return card


def features_of(
    entries: Iterable[FeatureEntry],
    trigger: TriggerEntry,
    own: Mapping[str, Feature],
    path: Path,
) -> Features:
    """What a card's entries describe; `path` is where they stand.

    Raises:
        ModelError: an entry is none that the core knows, or an own feature is not given.
    """
    from hft import _core

    columns = []
    for e in entries:
        if e.kind == "own":
            if e.name not in own:
                raise ModelError(f"{path}: own feature {e.name!r} is not given to load_bundle")
            columns.append(own[e.name])
            continue
        try:
            columns.append(
                Feature(e.kind, e.name, e.levels, parse_ns(e.window or 0), e.side, e.log)
            )
            _core.FeatureStream([columns[-1].to_core()], _core.trigger("packet"))
        except ConfigError as error:
            raise ModelError(f"{path}: feature {e.name!r}: {error}") from error
    t = trigger
    try:
        return Features(*columns, trigger=Trigger(t.kind, t.sizes, parse_ns(t.interval or 0)))
    except ConfigError as error:
        raise ModelError(f"{path}: {error}") from error


def require_frame(card: Card, path: Path) -> None:
    """What stands around the network, which a backend other than the core's takes as it is.

    Raises:
        ModelError: of another length, not finite, or a scale that divides by nothing.
    """
    scaler, inputs = card.scaler, len(card.features)
    if not card.outputs:
        raise ModelError(f"{path}: outputs: must name one or more")
    readouts = [card.readout, *(tier.readout for tier in card.tiers.values())]
    moves = [r.move_ticks for r in readouts if r is not None]
    lists = [("scaler mean", scaler.mean, inputs), ("scaler scale", scaler.scale, inputs)]
    lists += [("readout move_ticks", of, len(card.outputs)) for of in moves]
    lists += [("readout shrink", (r.shrink,), 1) for r in readouts if r is not None]
    for what, values, count in lists:
        if len(values) != count:
            raise ModelError(f"{path}: {what}: has {len(values)} values, must have {count}")
        for i, value in enumerate(values):
            if not math.isfinite(value):
                raise ModelError(f"{path}: {what}: value {i} is not finite; train again")
    if min(scaler.scale, default=1.0) <= 0.0:
        raise ModelError(f"{path}: scaler scale: must be positive, is {min(scaler.scale):g}")
    trailing = card.trailing
    if trailing is not None and not trailing.period_ns <= trailing.memory_ns:
        raise ModelError(
            f"{path}: trailing memory_ns: is {trailing.memory_ns}, must be at least period_ns, "
            f"{trailing.period_ns}"
        )
    if trailing is not None and not math.isfinite(trailing.drift):
        raise ModelError(
            f"{path}: trailing drift: is {trailing.drift}, must be finite; 0: no drift is looked "
            "for"
        )
    if not scaler.clip > 0.0:
        raise ModelError(f"{path}: scaler clip: must be positive, is {scaler.clip:g}")


def placeholders(card: Card) -> list[Feature]:
    """Own features of a card without their code, for who reads a bundle but makes no rows."""
    return [
        Feature("own", e.name, update=lambda state, row: (state, 0.0))
        for e in card.features
        if e.kind == "own"
    ]

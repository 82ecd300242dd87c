"""Reuse of answers (`[models.NAME.reuse]`): which models may, and the rule in the core's terms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hft.config import ModelConfig
from hft.durations import parse_ns
from hft.errors import ConfigError

if TYPE_CHECKING:
    from hft.inference.bundle import Bundle
    from hft.plan import Plan, SourcePlan

FEWEST_CLASSES = 2


def refuse_reuse(sources: Sequence[SourcePlan]) -> None:
    """Models whose answers must not be given again.

    Raises:
        ConfigError: says which, why, and what would do.
    """
    for source in sources:
        epsilon = source.config.reuse.epsilon
        if source.bundle is None or epsilon == 0:
            continue
        why = _why_not(source.bundle, source.config.tier)
        if why:
            raise ConfigError(
                f"models.{source.name}.reuse.epsilon is {epsilon}: {why}; 0 computes every row"
            )


def _why_not(bundle: Bundle, tier: str) -> str:
    card, card_file = bundle.card, bundle.path / "model.toml"
    memory = [e.kind for e in card.layers if e.kind in ("lstm", "gru") or e.width > 1]
    if tier != "FULL":
        return f"its sensitivity is that of FULL, not of {tier}, which is cheap to compute"
    if not card.window_rows and memory:
        return (
            f"{card_file} carries a state from row to row ({', '.join(memory)}), and a row that is "
            "not computed would change every later answer; reuse is for models of a window or "
            "without memory"
        )
    if not card.window_rows and not card.layers:
        return (
            f"{card_file} names neither layers nor window_rows, so it may carry a state from row "
            "to row"
        )
    if len(card.outputs) < FEWEST_CLASSES:
        return f"{card_file} has {len(card.outputs)} output; the rule compares the two best classes"
    if card.sensitivity == 0:
        return (
            f"{card_file} has sensitivity 0, which is not measured; `hft build` measures how far a "
            "probability moves with an input"
        )
    return ""


def add_reuse(core: Any, plan: Plan) -> None:
    """Gives the core the rules, after its sources."""
    for number, source in enumerate(plan.sources):
        rule = None if source.bundle is None else core_rule(source.bundle, source.config)
        if rule is not None:
            core.reuse(number, rule)


def core_rule(bundle: Bundle, config: ModelConfig) -> Any:
    """A model's rule in the core's terms; None: all of its rows are computed.

    A bundle that takes over while a run goes on may be one that cannot be reused: then it is not.
    """
    from hft import _core

    reuse, card = config.reuse, bundle.card
    if reuse.epsilon == 0 or _why_not(bundle, config.tier):
        return None
    return _core.ReuseRule(
        mean=list(card.scaler.mean),
        scale=list(card.scaler.scale),
        clip=card.scaler.clip,
        window_rows=card.window_rows or 1,
        classes=len(card.outputs),
        has_forecast=card.readout is not None,
        sensitivity=card.sensitivity,
        epsilon=reuse.epsilon,
        max_reuse=reuse.max_reuse,
        max_age_ns=parse_ns(reuse.max_age),
        shadow=reuse.shadow,
        budget=reuse.budget,
        pause_ns=parse_ns(reuse.pause),
    )

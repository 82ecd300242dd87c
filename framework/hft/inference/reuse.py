"""Reuse of answers (`[models.NAME.reuse]`): which models may, and the rule in the core's terms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hft.config import Recipe, ReuseConfig
from hft.durations import parse_ns
from hft.errors import ConfigError

if TYPE_CHECKING:
    from hft.inference.bundle import Bundle
    from hft.plan import Plan, SourcePlan

FEWEST_CLASSES = 2


def refuse_reuse(recipe: Recipe, sources: Sequence[SourcePlan]) -> None:
    """Models whose answers must not be given again.

    Raises:
        ConfigError: says which, why, and what would do.
    """
    for source in sources:
        config = reuse_of(recipe, source.name)
        if source.bundle is None or config.epsilon == 0:
            continue
        why = _why_not(source.bundle, recipe.models[source.name].tier)
        if why:
            raise ConfigError(
                f"models.{source.name}.reuse.epsilon is {config.epsilon}: {why}; 0 computes every "
                "row"
            )


def reuse_of(recipe: Recipe, name: str) -> ReuseConfig:
    """A model's table, or what holds without one: no reuse."""
    return recipe.models[name].reuse if name in recipe.models else ReuseConfig()


def _why_not(bundle: Bundle, tier: str) -> str:
    card, card_file = bundle.card, bundle.path / "model.toml"
    memory = [e.kind for e in card.layers if e.kind in ("lstm", "gru") or e.width > 1]
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
    if tier != "FULL":
        return f"its sensitivity is that of FULL, not of {tier}, which is cheap to compute"
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
        config = reuse_of(plan.recipe, source.name)
        if source.bundle is not None and config.epsilon > 0:
            core.reuse(number, core_rule(config, source.bundle))


def core_rule(config: ReuseConfig, bundle: Bundle) -> Any:
    """A rule in the core's terms."""
    from hft import _core

    card = bundle.card
    return _core.ReuseRule(
        mean=list(card.scaler.mean),
        scale=list(card.scaler.scale),
        clip=card.scaler.clip,
        classes=len(card.outputs),
        has_forecast=card.readout is not None,
        sensitivity=card.sensitivity,
        epsilon=config.epsilon,
        max_reuse=config.max_reuse,
        max_age_ns=parse_ns(config.max_age),
        shadow=config.shadow,
        budget=config.budget,
        pause_ns=parse_ns(config.pause),
    )

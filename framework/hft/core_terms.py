"""A recipe in the core's own terms: numbers for words, its structs for tables."""

from __future__ import annotations

from typing import Any

from hft.config import ImpactConfig, Recipe, VenueConfig
from hft.durations import parse_ns
from hft.execution.latency import Legs
from hft.feeds import Feed
from hft.plan import Plan

QUEUES = ("risk_averse", "power1", "power2", "power3", "log1", "log2", "uniform")
MATCHING = ("fifo", "pro_rata")
ORDERINGS = ("fifo", "independent")
SERVER_MODES = ("conflate", "queue", "skip", "deadline")
KEEPS = ("smaller", "same_price", "nothing")
SLIPPAGES = ("none", "spread", "volatility", "square_root")
MOVES = ("on_answer", "on_call", "overlap")


def core_impact(impact: ImpactConfig, feed: Feed) -> tuple[list[float], list[int], float]:
    """An overlay in the core's terms, ticks a lot; relative ones by the feed's first rows."""
    from hft.execution.impact import mean_touch, ticks_per_lot

    if impact.unit != "ticks_per_lot":
        impact = ticks_per_lot(impact, *mean_touch(feed.chunks()))
    half_lives = [parse_ns(each) for each in impact.half_lives]
    return list(impact.weights), half_lives, impact.permanent


def server_config(recipe: Recipe, legs: Legs) -> Any:
    """The inference server."""
    from hft import _core

    latency, rules = recipe.latency, recipe.latency.server
    config = _core.ServerConfig()
    config.mode = SERVER_MODES.index(rules.mode)
    config.bound = rules.bound
    config.deadline_ns = parse_ns(rules.deadline)
    config.max_batch = rules.max_batch
    config.hold_ns = parse_ns(rules.hold)
    config.per_item_ns = round(parse_ns(rules.per_item) * latency.scale)
    config.per_row_ns = round(parse_ns(rules.per_row) * latency.scale)
    config.service = legs.inference
    return config


def core_instruments(plan: Plan, venues: list[str]) -> list[Any]:
    """The core's instruments, fees included."""
    from hft import _core

    made = []
    for number, feed in enumerate(plan.feeds):
        spec, fees = feed.spec, venue_of(plan.recipe, feed.spec.venue)
        made.append(
            _core.make_instrument(
                number,
                venues.index(spec.venue),
                spec.symbol,
                spec.venue,
                spec.tick,
                spec.lot,
                spec.multiplier,
                spec.inverse,
                round(fees.maker_fee * 1e9),
                round(fees.taker_fee * 1e9),
                fees.native_replace,
            )
        )
    return made


def engine_config(recipe: Recipe) -> Any:
    """The engine's part of a recipe in the core's terms."""
    from hft import _core

    limits = _core.RiskLimits()
    for key in (
        "max_order_lots",
        "max_position_lots",
        "max_open_orders",
        "collar_bps",
        "max_messages",
    ):
        setattr(limits, key, getattr(recipe.risk, key))
    limits.window_ns = parse_ns(recipe.risk.window)
    config = _core.EngineConfig()
    config.risk = limits
    config.seed = recipe.seed
    config.moves = MOVES.index(recipe.engine.moves)
    config.placebo = recipe.engine.placebo
    return config


def venue_of(recipe: Recipe, name: str) -> VenueConfig:
    """A venue's own table, or the common one."""
    return recipe.venues.get(name, recipe.venue)


def venue_config(recipe: Recipe, name: str, legs: Legs) -> Any:
    """A venue: queue, fills, latency."""
    from hft import _core

    facts, latency = venue_of(recipe, name), recipe.latency
    config = _core.VenueConfig()
    config.queue_model = QUEUES.index(facts.queue)
    config.queue_n = facts.queue_n
    config.matching = MATCHING.index(facts.matching)
    config.replace_keeps = KEEPS.index(facts.replace_keeps)
    config.partial_fills = facts.partial_fills
    config.share_prints = facts.share_prints
    config.through_fills_all = facts.through == "full"
    config.fill_on_cross = facts.cross == "fill"
    config.refill_half_life_ns = parse_ns(facts.refill_half_life)
    config.queue_draws = facts.queue_draws
    config.refill_probability = facts.refill_probability
    config.fade = facts.fade
    config.fade_compounds = facts.fade_rule == "compound"
    config.participation_window_ns = parse_ns(facts.participation_window)
    config.participation_flag = facts.participation_flag
    config.participation_cap = facts.participation_cap
    config.depth_is_touch = facts.depth == "touch"
    config.seed = recipe.seed
    slippage = facts.slippage
    config.set_slippage(
        SLIPPAGES.index(slippage.model), slippage.coefficient, parse_ns(slippage.horizon)
    )
    config.set_latency(
        legs.entry,
        legs.response,
        legs.entry_cancel,
        legs.entry_replace,
        ORDERINGS.index(latency.ordering),
    )
    return config

"""What a run's takers met: the displayed depth, or the touch and a formula (docs/weak-data.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hft.config import VenueConfig

if TYPE_CHECKING:
    from hft.plan import Plan


def depth_notes(plan: Plan) -> list[str]:
    """A sentence for each way in which the fills of a plan's takers rest on little."""
    by_venue: dict[tuple[str, bool], list[str]] = {}
    for feed in plan.feeds:
        if feed.gives & {"L2", "L3"}:
            key = feed.spec.venue, feed.has_depth
            by_venue.setdefault(key, []).append(feed.spec.name)
    notes = []
    for (venue, has_depth), names in by_venue.items():
        facts = plan.recipe.venues.get(venue, plan.recipe.venue)
        if facts.depth == "touch":
            notes.append(_at_the_touch(facts, ", ".join(names), has_depth=has_depth))
        elif not has_depth:
            notes.append(_NO_DEPTH.format(names=", ".join(names)))
    return notes


_NO_DEPTH = (
    "The data of {names} show the best level alone: beyond it a taker finds nothing, or what stood "
    'there when it was the best. [venue] depth = "touch" with [venue.slippage] fills takers whole '
    "at the best price and charges them by a formula instead."
)


def _at_the_touch(facts: VenueConfig, names: str, *, has_depth: bool) -> str:
    though = ", though the data show more levels" if has_depth else ""
    return (
        f"Fills of takers on {names} are weaker than on data with depth: each is whole at the best "
        f"price{though}, takes nothing away from later ones, and pays {_slippage(facts)}."
    )


def _slippage(facts: VenueConfig) -> str:
    model, k = facts.slippage.model, facts.slippage.coefficient
    overlay = facts.impact.weights or facts.impact.permanent
    window = facts.participation_window
    return {
        "none": "nothing for its size" + (" but the overlay" if overlay else ""),
        "spread": f"{k:g} of the spread a lot, whatever its size",
        "volatility": (
            f"{k:g} of the price's deviation over {facts.slippage.horizon} a lot, whatever its size"
        ),
        "square_root": (
            f"{k:g} of the price's deviation over {window} a lot, times the root of its share in "
            "the volume printed meanwhile"
        ),
    }[model]

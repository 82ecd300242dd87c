"""Tables held against the recipe's types: what is wrong is told with key path and value."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterator
from typing import Any, get_args

import msgspec

from hft.config import LEGS, PROFILE, Duration, Recipe, Series
from hft.durations import parse_ns
from hft.errors import ConfigError

LONGEST_LEG = "1min"
FINEST_SAMPLE = "1ms"
SHORTEST_END = "1s"


def to_recipe(tables: dict[str, Any], origin: str = "recipe") -> Recipe:
    """Checks tables against the recipe's types.

    Raises:
        ConfigError: unknown key, wrong type or bound; the message carries the key path.
    """
    try:
        recipe = msgspec.convert(tables, Recipe)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{origin}: {explain(error, tables, Recipe)}") from error
    for key, value in _leaves(msgspec.to_builtins(recipe)):
        _refuse_endless(key, value)
    for key, value in _durations(recipe):
        ns = _duration(value, key)
        if key.removeprefix("latency.") in LEGS and ns > parse_ns(LONGEST_LEG):
            raise ConfigError(f"{key} is {value!r}: expected at most {LONGEST_LEG}")
        if key == "engine.sample" and 0 < ns < parse_ns(FINEST_SAMPLE):
            raise ConfigError(f"{key} is {value!r}: expected 0 or at least {FINEST_SAMPLE}")
        if key == "engine.flatten_before" and ns < parse_ns(SHORTEST_END):
            raise ConfigError(f"{key} is {value!r}: expected at least {SHORTEST_END}")
    return recipe


def explain(error: msgspec.ValidationError, tables: dict[str, Any], root: type[Any]) -> str:
    """What a ValidationError says, with key path and value, or the keys there are."""
    text, _, at = str(error).partition(" - at `$")
    path = [key or item for key, item in re.findall(r"\.([^.\[`]+)|\[(\.{3}|\d+)\]", at)]
    where = ".".join("NAME" if step == "..." else step for step in path)
    unknown = re.search(r"unknown field `(.+)`", text)
    if unknown:
        known = list(_type_at(root, path).__struct_fields__)
        near = difflib.get_close_matches(unknown[1], known, 1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known) or 'none'}"
        return f"no key {where + '.' if where else ''}{unknown[1]}; {hint}"
    expected = text[0].lower() + text[1:].replace("`", "")
    if text.startswith("Invalid enum value"):
        words = (word or '""' for word in get_args(_type_at(root, path)))
        expected = f"expected one of {', '.join(words)}"
    if "..." in path:  # msgspec does not say which item it was
        return f"{where}: {expected}"
    value: Any = tables
    for step in path:
        value = value[int(step)] if isinstance(value, list | tuple) else value[step]
    return f"{where} is {value!r}: {expected}"


def _type_at(root: type[Any], path: list[str]) -> Any:
    """The table's class, or a value's annotation, that a key path leads to."""
    found: Any = root
    for step in path:
        fields = msgspec.structs.fields(found) if isinstance(found, type) else ()
        annotation = {f.name: f.type for f in fields}.get(step, found)
        kinds = [a for a in (annotation, *get_args(annotation)) if isinstance(a, type)]
        found = next((k for k in kinds if issubclass(k, msgspec.Struct)), annotation)
    return found


def _leaves(table: dict[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{path}{key}.")
        else:
            yield f"{path}{key}", value


def _refuse_endless(key: str, value: Any) -> None:
    # A parameter may say "no limit" with inf, a recipe's own key may not; NaN is never meant.
    if isinstance(value, float) and (
        math.isnan(value) or (math.isinf(value) and not key.startswith("params."))
    ):
        raise ConfigError(f"{key} is {value}: expected a finite number")


def _durations(recipe: Recipe) -> Iterator[tuple[str, Duration]]:
    latency = recipe.latency
    for key in LEGS:
        leg = getattr(latency, key)
        if not isinstance(leg, Series) and leg not in ("data", PROFILE, None):
            yield f"latency.{key}", leg
    yield "latency.block", latency.block
    for key in ("deadline", "hold", "per_item", "per_row"):
        yield f"latency.server.{key}", getattr(latency.server, key)
    venues = {"venue": recipe.venue} | {f"venues.{n}": v for n, v in recipe.venues.items()}
    for at, venue in venues.items():
        yield f"{at}.refill_half_life", venue.refill_half_life
        yield f"{at}.participation_window", venue.participation_window
        yield f"{at}.slippage.horizon", venue.slippage.horizon
        for i, half_life in enumerate(venue.impact.half_lives):
            yield f"{at}.impact.half_lives[{i}]", half_life
    for name, model in recipe.models.items():
        yield f"models.{name}.reuse.max_age", model.reuse.max_age
        yield f"models.{name}.reuse.pause", model.reuse.pause
    yield "risk.window", recipe.risk.window
    yield "engine.sample", recipe.engine.sample
    yield "engine.flatten_before", recipe.engine.flatten_before


def _duration(value: Duration, key: str) -> int:
    try:
        return parse_ns(value)
    except ConfigError as error:
        raise ConfigError(f"{key}: {error}") from error

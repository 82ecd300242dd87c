"""`key=value`: a recipe's tables with some keys set."""

from __future__ import annotations

import tomllib
from typing import Any

from hft.config import Recipe
from hft.errors import ConfigError
from hft.recipe_files import plain


def set_key(tables: dict[str, Any], assignment: str) -> None:
    """Applies `a.b=value` to tables; the value is TOML, or else a bare string.

    Raises:
        ConfigError: there is no `=`, or the path runs through a value.
    """
    key, value = parse_setting(assignment)
    set_value(tables, key, value)


def parse_setting(assignment: str) -> tuple[str, Any]:
    """`key=value` taken apart; the value is TOML, or else a bare string.

    Raises:
        ConfigError: there is no `=`.
    """
    key, sep, text = assignment.partition("=")
    if not sep or not key.strip():
        raise ConfigError(f"--set wants key=value, was {assignment!r}")
    try:
        return key.strip(), plain(tomllib.loads(f"v = {text}")["v"])
    except tomllib.TOMLDecodeError:
        return key.strip(), text.strip()


def set_value(tables: dict[str, Any], key: str, value: Any) -> None:
    """Sets `a.b` in tables; a key without a dot that the recipe does not know is a parameter.

    Raises:
        ConfigError: the path runs through a value.
    """
    path = key.split(".")
    if len(path) == 1 and path[0] not in Recipe.__struct_fields__:
        path = ["params", *path]
    table = tables
    for step in path[:-1]:
        table = table.setdefault(step, {})
        if not isinstance(table, dict):
            raise ConfigError(f"{key}: {step} is a value, not a table")
    table[path[-1]] = value

"""Recipes on disk: TOML with what it includes, and a resolved one written out."""

from __future__ import annotations

import tomllib
from datetime import date
from pathlib import Path
from typing import Any

import msgspec

from hft.config import Recipe
from hft.errors import ConfigError
from hft.recipe_checks import to_recipe


def load_recipe(path: Path) -> dict[str, Any]:
    """The recipe's tables as plain values, over those of the files that it includes.

    Raises:
        ConfigError: absent, not TOML, a file that includes itself, an unknown key in one.
    """
    return _included(path, ())


def _included(path: Path, including: tuple[Path, ...]) -> dict[str, Any]:
    """Tables of a file over those it includes; `including` led here, outermost first."""
    tables = _parsed(path)
    names = tables.pop("include", [])
    if not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        raise ConfigError(f"{path}: include is {names!r}: expected a list of files")
    below: dict[str, Any] = {}
    chain = (*including, path.resolve())
    for name in names:
        if "\0" in name:
            raise ConfigError(f"{path}: include {name!r} is no name of a file")
        file = path.parent / name
        if file.resolve() in chain:
            raise ConfigError(f"{path}: include {name!r} leads back to {file.resolve()}")
        try:
            part = _included(file, chain)
        except ConfigError as error:
            raise ConfigError(f"{path}: include: {error}") from error
        to_recipe(part, str(file))  # so that a wrong key is told with its file
        below = _merged(below, part)
    return _merged(below, tables)


def _merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        under = merged.get(key)
        tables = isinstance(value, dict) and isinstance(under, dict)
        merged[key] = _merged(merged[key], value) if tables else value
    return merged


def _parsed(path: Path) -> dict[str, Any]:
    try:
        tables: dict[str, Any] = plain(tomllib.loads(path.read_text()))
        return tables
    except FileNotFoundError:
        raise ConfigError(f"no recipe at {path}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read recipe {path}: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not TOML: {error}") from error


def plain(value: Any) -> Any:
    """TOML with dates as text: nobody quotes them."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [plain(each) for each in value]
    return value.isoformat() if isinstance(value, date) else value


def to_toml(recipe: Recipe) -> str:
    """The resolved recipe as TOML, every default written out."""
    tables = msgspec.to_builtins(recipe)
    lines: list[str] = []
    _write_table(tables, (), lines)
    return "\n".join(lines) + "\n"


def _write_table(table: dict[str, Any], path: tuple[str, ...], lines: list[str]) -> None:
    plain = {k: v for k, v in table.items() if not isinstance(v, dict)}
    if path and (plain or not table):
        lines.extend(["", "[" + ".".join(path) + "]"])
    for key, value in plain.items():
        if value is not None:  # TOML has no null: an absent key is the default
            lines.append(f"{key} = {_toml_value(value)}")
    for key, value in table.items():
        if isinstance(value, dict):
            _write_table(value, (*path, key), lines)


def _toml_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_toml_value(v) for v in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k} = {_toml_value(v)}" for k, v in value.items()) + "}"
    if isinstance(value, str):
        return msgspec.json.encode(value).decode()
    return repr(value)

"""Finds and loads a strategy file, and the recipe beside it."""

from __future__ import annotations

import difflib
import hashlib
import importlib.util
import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hft.errors import StrategyError

if TYPE_CHECKING:
    from hft.strategy import Strategy

log = logging.getLogger(__name__)


def load_strategy(path: Path, class_name: str | None = None) -> type[Strategy]:
    """The one `Strategy` subclass that a file defines, or the one named.

    Raises:
        StrategyError: absent, does not import, or defines none or several.
    """
    from hft.strategy import Strategy

    if not path.is_file():
        raise StrategyError(f"no strategy file at {path}")
    module = _import(path)
    found = {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, type)
        and issubclass(value, Strategy)
        and value.__module__ == module.__name__
    }
    if class_name is not None:
        if class_name not in found:
            raise StrategyError(
                f"{path} defines no strategy {class_name}; it has {sorted(found) or 'none'}"
            )
        return _warned(found[class_name])
    leaves = [
        c
        for c in found.values()
        if not any(o is not c and issubclass(o, c) for o in found.values())
    ]
    if len(leaves) != 1:
        names = [c.__name__ for c in leaves]
        raise StrategyError(
            f"{path} must define one Strategy subclass, it has {names or 'none'}; "
            f"name one as {path}:ClassName"
        )
    return _warned(leaves[0])


def _warned(cls: type[Strategy]) -> type[Strategy]:
    """The same class; a misspelt handler would never be called, and nobody would know."""
    from hft.strategy import Strategy

    handlers = [name for name in vars(Strategy) if name.startswith("on_")]
    for name in vars(cls):
        if name.startswith("on_") and name not in handlers:
            near = difflib.get_close_matches(name, handlers, 1, 0.75)
            hint = f"; did you mean {near[0]}?" if near else ""
            log.warning(
                "%s.%s is no handler: the engine will not call it%s", cls.__name__, name, hint
            )
    return cls


def _import(path: Path) -> Any:
    # A name of its own a file: two strategies may both be called maker.py.
    digest = hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:8]
    name = f"hft_strategy_{path.stem}_{digest}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise StrategyError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(path.resolve().parent))  # a strategy may import its neighbours
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise StrategyError(f"{path} does not load: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(str(path.resolve().parent))
    return module


def split_class(text: str) -> tuple[Path, str | None]:
    """`file.py:Class` -> (file.py, Class)."""
    head, sep, tail = text.rpartition(":")
    return (Path(head), tail) if sep and tail.isidentifier() else (Path(text), None)


def recipe_beside(strategy: Path) -> Path | None:
    """`backtests/NAME.toml` of the project a strategy file belongs to, if there is one."""
    for folder in (strategy.resolve().parent.parent / "backtests", strategy.resolve().parent):
        recipe = folder / f"{strategy.stem}.toml"
        if recipe.is_file():
            return recipe
    return None


def project_strategy(folder: Path | None = None) -> str:
    """`[tool.hft] strategy` of the pyproject.toml in this folder or above.

    Raises:
        ConfigError: there is none, or it names none.
    """
    from hft.errors import ConfigError
    from hft.recipe_files import load_recipe

    start = (folder or Path.cwd()).resolve()
    for place in (start, *start.parents):
        path = place / "pyproject.toml"
        if path.is_file():
            settings = load_recipe(path).get("tool", {}).get("hft")
            strategy = settings.get("strategy") if isinstance(settings, dict) else None
            if not isinstance(strategy, str):
                raise ConfigError(
                    f"{path} has no [tool.hft] strategy: name a file there, or give it as argument"
                )
            return str(place / strategy)
    raise ConfigError("no pyproject.toml here or above: give the strategy as argument")

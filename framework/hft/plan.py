"""What is to be run: a recipe made complete, with the strategy, the rows and the models it names.

Everything that can be wrong is found here, before the first row.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from numpy.typing import NDArray

from hft.config import ModelConfig, Recipe
from hft.durations import parse_ns
from hft.errors import ConfigError, HftError, StrategyError
from hft.execution.latency import resolve
from hft.feeds import Feed, open_feeds
from hft.inference.reuse import refuse_reuse
from hft.loader import load_strategy, recipe_beside, split_class
from hft.recipe_checks import explain, to_recipe
from hft.recipe_files import load_recipe
from hft.settings import set_key, set_value
from hft.sources import bundle_for
from hft.swaps import SwapPlan, planned
from hft.types import InstrumentSpec

if TYPE_CHECKING:
    from hft.features import Features
    from hft.inference.bundle import Bundle
    from hft.strategy import Strategy

TOLD = {"L2": "price levels", "L3": "every order", "trades": "prints"}


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
    """A run, ready to go: what to run, on which rows, under which recipe."""

    strategy: type[Strategy]
    file: Path | None
    recipe: Recipe
    feeds: list[Feed]
    params: Any
    sources: list[SourcePlan]
    swaps: tuple[SwapPlan, ...] = ()
    """By time."""


@dataclasses.dataclass(frozen=True, slots=True)
class SourcePlan:
    """Features and the model, if any, that reads them."""

    name: str
    features: Features
    bundle: Bundle | None
    config: ModelConfig = dataclasses.field(default_factory=ModelConfig)
    version: int = 0
    """Number of the swap that brought the bundle; 0: the strategy or the recipe did."""


def prepare(
    strategy: str | Path | type[Strategy],
    data: str | Path | Mapping[str, NDArray[Any]] | None = None,
    *,
    recipe: str | Path | Mapping[str, Any] | None = None,
    specs: list[InstrumentSpec] | None = None,
    settings: Mapping[str, Any] | None = None,
    assignments: tuple[str, ...] = (),
    seed: int | None = None,
    model_home: Path | None = None,
) -> Plan:
    """The plan of a run, from what a user gave.

    `model_home` is the strategy file beside which bundles lie, when the code is run from a copy.
    """
    cls, file = _strategy(strategy)
    tables, origin = _tables(recipe, file)
    for key, value in (settings or {}).items():
        set_value(tables, key, value)
    for assignment in assignments:
        set_key(tables, assignment)
    to_recipe(tables, origin)  # what is said below may count on the tables' shape
    if not (data is None or isinstance(data, str | Path | Mapping)):
        raise ConfigError(
            f"data must be a path or EVENT arrays by SYMBOL.VENUE, was a {type(data).__name__}"
        )
    if isinstance(data, str | Path):
        tables.setdefault("data", {})["path"] = str(data)
    if seed is not None:
        tables["seed"] = seed
        if tables.get("data", {}).get("path", "synth") == "synth":
            tables.setdefault("data", {}).setdefault("synth", {})["seed"] = seed
    home = model_home or file
    tables["strategy"] = str(home.resolve()) if home else f"{cls.__module__}:{cls.__qualname__}"
    tables.setdefault("name", file.stem if file else cls.__name__)
    _absolute(tables)
    resolved = to_recipe(tables, origin)
    resolved = msgspec.structs.replace(resolved, latency=resolve(resolved.latency))
    arrays = data if isinstance(data, Mapping) else None
    return assemble(cls, file, resolved, home, open_feeds(resolved, arrays, specs))


def assemble(
    cls: type[Strategy], file: Path | None, resolved: Recipe, home: Path | None, feeds: list[Feed]
) -> Plan:
    """A plan of a recipe that is complete; `home` is the file beside which bundles lie."""
    params = _params(cls, resolved)
    sources = _sources(cls, home, params, resolved)
    _refuse_blind(cls, sources, feeds)
    _refuse_footprint(resolved, feeds)
    refuse_reuse(sources)
    swaps = planned(resolved, cls, sources)
    return Plan(cls, file, resolved, feeds, params, sources, swaps)


def needs_of(cls: type[Strategy], sources: list[SourcePlan]) -> dict[str, str]:
    """What a feed must tell, each with what needs it."""
    if isinstance(cls.needs, str):
        raise StrategyError(f"{cls.__name__}.needs is {cls.needs!r}, want a tuple such as ('L3',)")
    needs: dict[str, str] = {}
    for source in sources:
        needs |= {n: f"feature {name!r}" for n, name in source.features.needs.items()}
    if cls.bars is not None:
        needs["trades"] = f"{cls.__name__}.bars"
    return needs | {name: f"{cls.__name__}.needs" for name in cls.needs}


def _refuse_blind(cls: type[Strategy], sources: list[SourcePlan], feeds: list[Feed]) -> None:
    """A feature that the data cannot feed would read 0 all day."""
    needs = needs_of(cls, sources)
    unknown = set(needs) - set(TOLD)
    if unknown:
        raise StrategyError(f"{cls.__name__}.needs has {sorted(unknown)}; there are {list(TOLD)}")
    for feed in feeds:
        for need in sorted(set(needs) - feed.gives):
            raise ConfigError(
                f"{needs[need]} needs {TOLD[need]} ({need}); the data of {feed.spec.name} give "
                f"{', '.join(sorted(feed.gives)) or 'neither levels nor trades'}"
            )


def _refuse_footprint(recipe: Recipe, feeds: list[Feed]) -> None:
    """Models of our own trading that a feed cannot bear, or that admit free money."""
    from hft.execution.impact import Kernel

    for feed in feeds:
        key = f"venues.{feed.spec.venue}" if feed.spec.venue in recipe.venues else "venue"
        facts = recipe.venues.get(feed.spec.venue, recipe.venue)
        try:
            Kernel.of_config(facts.impact)
        except ConfigError as error:
            raise ConfigError(f"{key}.impact: {error}") from error
        if parse_ns(facts.participation_window) == 0:
            raise ConfigError(f"{key}.participation_window is 0: expected a length of time")
        if facts.slippage.model != "none" and facts.depth != "touch":
            raise ConfigError(
                f"{key}.slippage.model is {facts.slippage.model!r}: it stands for depth that is "
                f'not told, expected {key}.depth = "touch" with it'
            )
        if facts.fade > 0 and "L3" in feed.gives:
            raise ConfigError(
                f"{key}.fade is {facts.fade}, but {feed.spec.name} tells every order, and an order "
                "that is there is there; leave it out, or set data.as_levels"
            )


def _absolute(tables: dict[str, Any]) -> None:
    """A run folder's recipe must mean the same from any working folder."""
    legs = [leg for leg in tables.get("latency", {}).values() if isinstance(leg, dict)]
    places = [(tables, "state"), (tables.get("data", {}), "path"), *((leg, "file") for leg in legs)]
    for table, key in places:
        if table.get(key) and Path(table[key]).exists():
            table[key] = str(Path(table[key]).resolve())
    latency = tables.get("latency", {})
    models = [*tables.get("models", {}).values(), *tables.get("swaps", ())]
    for model in models:
        if model.get("bundle"):
            model["bundle"] = str(Path(model["bundle"]).resolve())
    if Path(latency.get("profile", "")).is_file():  # else the name of one that is shipped
        latency["profile"] = str(Path(latency["profile"]).resolve())


def _strategy(strategy: str | Path | type[Strategy]) -> tuple[type[Strategy], Path | None]:
    from hft.strategy import Strategy

    if isinstance(strategy, type) and issubclass(strategy, Strategy):
        return strategy, None
    if not isinstance(strategy, str | Path):
        raise StrategyError(f"strategy is {strategy!r}: want a file or a Strategy class")
    file, name = split_class(str(strategy))
    return load_strategy(file, name), file


def _tables(
    recipe: str | Path | Mapping[str, Any] | None, file: Path | None
) -> tuple[dict[str, Any], str]:
    if isinstance(recipe, Mapping):
        return msgspec.to_builtins(recipe), "recipe"
    if not (recipe is None or isinstance(recipe, str | Path)):
        raise ConfigError(f"recipe is {recipe!r}: want a TOML file or its tables")
    path = Path(recipe) if recipe is not None else recipe_beside(file) if file else None
    return (load_recipe(path), str(path)) if path else ({}, "recipe")


def _params(cls: type[Strategy], recipe: Recipe) -> Any:
    try:
        return msgspec.convert(recipe.params, cls.params_type())
    except msgspec.ValidationError as error:
        why = explain(error, recipe.params, cls.params_type())
        raise ConfigError(f"params of {cls.__name__}: {why}") from error


def _sources(
    cls: type[Strategy], file: Path | None, params: Any, recipe: Recipe
) -> list[SourcePlan]:
    models = dict(cls.models)
    if cls.model is not None:
        models["model"] = cls.model
    for name in recipe.models:
        if name not in models:
            there = f"there are {', '.join(models)}" if models else "it has none"
            raise ConfigError(f"models.{name}: no such model of {cls.__name__}; {there}")
    sources = []
    for name, model in models.items():
        from hft.inference.model import Model

        if not isinstance(model, Model):
            raise StrategyError(f"{name} of {cls.__name__} is {model!r}: want Model(...)")
        config = recipe.models.get(name, ModelConfig())
        _refuse_model(name, config)
        place = Path(config.bundle) if config.bundle else model.folder(file or Path.cwd() / "x.py")
        bundle = bundle_for(cls, place, config)
        sources.append(SourcePlan(name, bundle.features, bundle, config))
    features = _own_features(cls, params)
    if features is not None:
        sources.append(SourcePlan("features", features, None))
    return sources


def _refuse_model(name: str, config: ModelConfig) -> None:
    if bool(config.url) != (config.backend == "serving"):
        want = "needs one" if config.backend == "serving" else "takes none"
        raise ConfigError(f"models.{name}.url is {config.url!r}: backend {config.backend} {want}")
    if config.backend == "native" and config.threads != 1:
        raise ConfigError(
            f"models.{name}.threads is {config.threads}: the native backend runs on the engine's "
            "own thread, expected 1"
        )


def _own_features(cls: type[Strategy], params: Any) -> Features | None:
    from hft.features import Features

    strategy = instance_of(cls)
    try:
        features = strategy.inputs(params)
    except HftError:
        raise
    except Exception as error:
        raise StrategyError(f"{cls.__name__}.inputs: {type(error).__name__}: {error}") from error
    if not (features is None or isinstance(features, Features)):
        raise StrategyError(f"features of {cls.__name__} are {features!r}: want Features(...)")
    return features


def instance_of(cls: type[Strategy]) -> Strategy:
    """A strategy object, its class being a user's."""
    try:
        strategy = cls()
    except Exception as error:
        raise StrategyError(f"{cls.__name__} cannot be made: {error}") from error
    if not hasattr(strategy, "log"):
        raise StrategyError(f"{cls.__name__}.__init__ must call super().__init__()")
    return strategy

"""A run's recipe: frozen, typed, unknown keys refused, TOML on disk.

strategy = "strategies/lstm_mm.py"
[data]     where rows come from       [params]  the strategy's own
[latency]  the four legs              [risk]    the gate before every order
[venue]    queue, fills, fees         [engine]  how the run goes
[models]   what computes each model   [[swaps]] bundles that take over during the run
"""

from __future__ import annotations

import difflib
import math
import re
import tomllib
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import Meta

from hft.data.synth import SynthConfig
from hft.durations import parse_ns
from hft.errors import ConfigError

Duration = str | int
"""`"250us"`, or a whole number of ns."""
Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Scale = Annotated[float, Meta(ge=0, le=100)]
Share = Annotated[float, Meta(ge=0, le=1)]
Fee = Annotated[float, Meta(gt=-1, lt=1)]
LONGEST_LEG = "1min"
LEGS = (
    "feed",
    "entry",
    "response",
    "entry_cancel",
    "entry_replace",
    "compute",
    "risk",
    "inference",
)
"""Of `[latency]`."""
FINEST_SAMPLE = "1ms"
SHORTEST_END = "1s"


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of every table of a recipe."""


class Series(Section, frozen=True):
    """A recorded latency: the row at or before the sending holds, never a line between rows."""

    file: str
    """CSV or Parquet with a column of times and one of durations, both whole ns."""
    ts: str = "ts"
    column: str = "ns"
    scale: Scale = 1.0


Leg = Duration | Series
"""A duration, `"profile"`, or a recorded series."""
PROFILE = "profile"


class DataConfig(Section, frozen=True):
    """Where the rows come from."""

    path: str = "synth"
    """`synth`, a store's folder, or one file (`.npy`, `.npz`, `.parquet`, `.arrow`)."""
    symbols: tuple[str, ...] = ()
    """`SYMBOL.VENUE` or `SYMBOL`; empty: all there are."""
    start: str | int | None = None
    """ISO date or time (UTC) or ns; included."""
    end: str | int | None = None
    """Excluded."""
    as_levels: bool = False
    """Tell an order-by-order feed as one of levels, as most people would have bought it."""
    chunk_rows: Annotated[int, Meta(ge=1)] = 1 << 18
    tick: Annotated[float, Meta(gt=0)] | None = None
    """For `.npy` and `.npz` files, which do not know theirs."""
    lot: Annotated[float, Meta(gt=0)] | None = None
    synth: SynthConfig = SynthConfig(duration_s=1800.0, price0_ticks=20_000, tick=1.0)


class ServerConfig(Section, frozen=True):
    """The inference server: what it does with rows that come while it works."""

    mode: Literal["conflate", "queue", "skip", "deadline"] = "conflate"
    """Keep the newest row a model and instrument; keep `bound` rows; drop them; or `conflate` and
    refuse rows that cannot be answered within `deadline` of their market event."""
    bound: Annotated[int, Meta(ge=1, le=1 << 20)] = 1024
    """Rows that wait in mode `queue`; beyond it the oldest is dropped."""
    deadline: Duration = "8ms"
    max_batch: Annotated[int, Meta(ge=1, le=4096)] = 1
    """Waiting rows of different streams answered together."""
    hold: Duration = 0
    """While it is free: how long a row waits until `max_batch` are there."""
    per_item: Duration = 0
    """What every further row of a batch adds to the service."""
    per_row: Duration = 0
    """What every row that was conflated away adds: a model's state moves over all of them."""


class LatencyConfig(Section, frozen=True):
    """The four legs. Defaults: a desk in the venue's region, not in its rack."""

    profile: str = ""
    """A latency profile's file, or `colocated`, `same-region`, `cross-region`."""
    model: Literal["bootstrap", "empirical", "lognormal", "recorded"] = "bootstrap"
    """How a leg that is `"profile"` is drawn from it; see docs/latency.md."""
    block: Duration = 0
    """Mean block of the bootstrap; 0: chosen from the profile."""
    conditioned: bool = True
    """Blocks come from the profile's own stretches of the same message rate."""
    feed: Leg | Literal["data"] = "data"
    """`data`: ts_recv - ts_event of each row; anything else replaces it."""
    entry: Leg | None = None
    """Unset: the profile's where there is one and it has this stage, else 1ms."""
    response: Leg | None = None
    """Unset: likewise, 1ms."""
    entry_cancel: Leg | None = None
    """Of cancels; unset: the profile's own where it has them, else as `entry`."""
    entry_replace: Leg | None = None
    """Of replaces; unset: likewise."""
    ordering: Literal["fifo", "independent"] = "fifo"
    """Whether a message can overtake the one sent before it: never on one connection (FIX, OUCH),
    yes where each travels alone (REST)."""
    compute: Leg | None = None
    """A handler call; the strategy is one server, later inputs wait. Unset: likewise, 20us."""
    risk: Leg = 0
    """The gate, for each message of a handler."""
    inference: Leg | None = None
    """A model's service time on a server of its own. Unset: likewise, 50us."""
    server: ServerConfig = ServerConfig()
    scale: Scale = 1.0
    """Multiplies every leg, the feed's included."""


class ImpactConfig(Section, frozen=True):
    """The price overlay of our own taking, charged in cash; see docs/fills.md."""

    weights: tuple[Annotated[float, Meta(ge=0)], ...] = ()
    """Push of one lot, one an exponential; none: no overlay."""
    half_lives: tuple[Duration, ...] = ()
    permanent: Annotated[float, Meta(ge=0)] = 0.0
    """Push of one lot that stays."""
    unit: Literal["ticks_per_lot", "spread_per_depth"] = "ticks_per_lot"
    """`spread_per_depth`: the weights are shares of the mean spread for a trade of the mean size at
    the touch, both measured on the run's first rows."""


class SlippageConfig(Section, frozen=True):
    """What a taker pays beyond the touch where data tell no depth: a weak model."""

    model: Literal["none", "spread", "volatility", "square_root"] = "none"
    coefficient: Annotated[float, Meta(ge=0)] = 1.0
    """Of the spread; of sigma * sqrt(horizon); of sigma * sqrt(lots / volume)."""
    horizon: Duration = "1s"


class VenueConfig(Section, frozen=True):
    """How the venue fills and what it charges."""

    queue: Literal["risk_averse", "power1", "power2", "power3", "log1", "log2", "uniform"] = (
        "power3"
    )
    """Our place where the feed tells levels; where it tells orders, it is known."""
    queue_n: Annotated[float, Meta(gt=0)] = 2.0
    queue_draws: bool = False
    """A cancel lies wholly before or behind us by a keyed draw, instead of in its mean share."""
    matching: Literal["fifo", "pro_rata"] = "fifo"
    """How executions at a level are shared."""
    replace_keeps: Literal["smaller", "same_price", "nothing"] = "smaller"
    """Replaced orders that keep their place: not larger at the same price, of any size, none."""
    partial_fills: bool = True
    share_prints: bool = True
    through: Literal["volume", "full"] = "volume"
    """How much a print through our price fills."""
    cross: Literal["fill", "wait_trade"] = "fill"
    """What the other side's size arriving at our price does."""
    refill_half_life: Duration = "1s"
    """Of displayed size that we took; 0: it never heals by itself."""
    refill_probability: Share = 1.0
    """That what we take heals; else it stays away until the tape moves."""
    fade: Annotated[float, Meta(ge=0, lt=1)] = 0.0
    """Share of displayed depth that is gone when a taker arrives; feeds of levels only."""
    fade_rule: Literal["flat", "compound"] = "flat"
    """`compound`: level i keeps (1 - fade)^(i + 1)."""
    impact: ImpactConfig = ImpactConfig()
    participation_window: Duration = "10s"
    participation_flag: Share = 0.1
    """Our share of the traded volume above which fills are reported as extrapolated."""
    participation_cap: Share = 0.0
    """Share that our takers may not exceed; 0: no cap."""
    depth: Literal["displayed", "touch"] = "displayed"
    """`touch`: takers fill whole at the best price and pay `slippage`; for data without depth."""
    slippage: SlippageConfig = SlippageConfig()
    native_replace: bool = True
    maker_fee: Fee = 0.0
    """Of notional; negative: a rebate."""
    taker_fee: Fee = 0.0


class RiskConfig(Section, frozen=True):
    """The first gate; 0 means no limit."""

    max_order_lots: Count = 0
    max_position_lots: Count = 0
    max_open_orders: Count = 0
    collar_bps: Count = 0
    """Furthest a price may lie from our mid."""
    max_messages: Count = 0
    """New orders and replaces in any `window`."""
    window: Duration = "1s"


class EngineSection(Section, frozen=True):
    """How the run goes."""

    moves: Literal["on_answer", "on_call", "overlap"] = "on_answer"
    """What a target verb does while an order is on its way out; see docs/orders.md."""
    sample: Duration = "1s"
    """Grid of equity samples."""
    bracket: bool = True
    """Also run under the risk-averse queue, for the report."""
    placebo: bool = False
    """Publish what the model said of other rows."""
    profile: bool = False
    """Time each stage."""
    sees_own: bool = True
    """The strategy's books lack what we took of the tape, as a live feed would show them; features,
    triggers and marks stay on the tape. Replay only."""
    overnight: Literal["carry", "flatten"] = "carry"
    """`flatten`: each UTC date is a run of its own, flat at its end."""
    flatten_before: Duration = "5s"
    """How long before the end of trading a day is wound down."""
    shortfall: bool = True
    """After the run, look up the mids that its implementation shortfall needs: one more pass over
    the rows, of the run itself and not of its variants."""


class ReuseConfig(Section, frozen=True):
    """When an answer is given again instead of computed; only for models without memory."""

    epsilon: Annotated[float, Meta(ge=0)] = 0.0
    """Largest change of any scaled input since the row that was computed; 0: nothing is reused."""
    max_reuse: Annotated[int, Meta(ge=0, le=1 << 20)] = 16
    """Answers in a row that may be reused."""
    max_age: Duration = "100ms"
    """Of the computed answer."""
    shadow: Share = 0.05
    """Share of reused answers that are computed all the same, and compared."""
    budget: Share = 0.02
    """Share of shadows whose class differed above which the cache is off for `pause`."""
    pause: Duration = "10s"


class ModelConfig(Section, frozen=True):
    """What computes a model of the strategy; the table's name is the model's."""

    bundle: str = ""
    """A folder; empty: the one the strategy names."""
    tier: Literal["FULL", "LIGHT", "MICRO"] = "FULL"
    backend: Literal["native", "onnx", "litert", "tensorflow", "serving"] = "native"
    precision: Literal["", "fp32", "fp16", "int8", "dynamic"] = ""
    """Of the weights; empty: as the bundle was built, by a part that passed its gates."""
    threads: Annotated[int, Meta(ge=1, le=1024)] = 1
    url: str = ""
    """Of `serving`: `http://host:8501/v1/models/NAME`."""
    reuse: ReuseConfig = ReuseConfig()


class SwapConfig(Section, frozen=True):
    """A bundle that takes over at the first packet at or after `at` at which it is warm."""

    at: str | int
    """ISO time (UTC) or ns."""
    bundle: str
    model: str = "model"


class Recipe(Section, frozen=True):
    """Everything a run depends on besides the strategy's code, the data and the bundle."""

    strategy: str = ""
    name: Annotated[str, Meta(pattern=r"^(?!\.)[^/]*$")] = ""
    """Part of the run folder's name; by default the strategy file's."""
    seed: Count = 1
    state: str = ""
    """A `state.json` that an earlier run saved, for `on_load`."""
    data: DataConfig = DataConfig()
    latency: LatencyConfig = LatencyConfig()
    venue: VenueConfig = VenueConfig()
    venues: dict[str, VenueConfig] = {}
    """Instead of `venue`, by venue name."""
    risk: RiskConfig = RiskConfig()
    engine: EngineSection = EngineSection()
    models: dict[str, ModelConfig] = {}
    """By model; `model` is that of a strategy with one. Absent: defaults."""
    swaps: tuple[SwapConfig, ...] = ()
    """Replay; live, `hft swap`."""
    params: dict[str, Any] = {}


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
        tables: dict[str, Any] = _plain(tomllib.loads(path.read_text()))
        return tables
    except FileNotFoundError:
        raise ConfigError(f"no recipe at {path}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read recipe {path}: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not TOML: {error}") from error


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
        return key.strip(), _plain(tomllib.loads(f"v = {text}")["v"])
    except tomllib.TOMLDecodeError:
        return key.strip(), text.strip()


def _plain(value: Any) -> Any:
    """TOML with dates as text: nobody quotes them."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return value.isoformat() if isinstance(value, date) else value


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

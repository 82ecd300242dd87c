"""From a recipe's latency legs to the core's: what is unset is chosen, what is drawn is laid out.

A leg is a duration, a recorded series, or `"profile"`. Those of a profile come in families that
share their rows: the wire (feed, entry, response of one message), the desk (compute, risk), the
model's server. Draws of one family stay rows of the profile, so what was slow together is slow
together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from weakref import ReferenceType, ref

import msgspec
import numpy as np
from numpy.typing import NDArray

from hft.config import LEGS, PROFILE, LatencyConfig, Leg, Series
from hft.durations import parse_ns
from hft.errors import ConfigError, DataError
from hft.execution.draws import Stream
from hft.execution.market_rate import MarketRate, rate_of
from hft.execution.profiles import (
    MESSAGES,
    NONE,
    OWN_TRACE,
    STAGES,
    LatencyProfile,
    Message,
    load_profile,
)
from hft.execution.resampling import STEPS, Trace, lay_out, lognormal_series, mean_block

if TYPE_CHECKING:
    from hft._core import Latency
    from hft.feeds import Feed

Int = NDArray[np.int64]
Family = Literal["wire", "desk", "server"]

DEFAULTS = {"entry": "1ms", "response": "1ms", "compute": "20us", "inference": "50us"}
"""Of legs that neither the recipe nor a profile tells."""
AS_ENTRY = ("entry_cancel", "entry_replace")
_SOURCE: dict[str, tuple[Family, str, Message | None]] = {
    "feed": ("wire", "feed", "new"),
    "entry": ("wire", "entry", "new"),
    "response": ("wire", "response", "new"),
    "entry_cancel": ("wire", "entry", "cancel"),
    "entry_replace": ("wire", "entry", "replace"),
    "compute": ("desk", "compute", None),
    "risk": ("desk", "risk", None),
    "inference": ("server", "inference", None),
}
_STREAM: dict[Family, int] = {
    "wire": Stream.ENTRY,
    "desk": Stream.STRATEGY,
    "server": Stream.SERVICE,
}
_OF_MESSAGE = 256
"""Beside a family's stream, one for each class of message that has a trace of its own."""


def resolve(latency: LatencyConfig) -> LatencyConfig:
    """The section with every leg told: what was unset is the profile's, or its default.

    Raises:
        ConfigError: a leg is "profile" and there is none, or it has no such stage.
        DataError: the profile is damaged.
    """
    legs = {name: getattr(latency, name) for name in LEGS}
    if not latency.profile:
        for name, leg in legs.items():
            if leg == PROFILE:
                raise ConfigError(
                    f'latency.{name} is "profile", and latency.profile names none: want a file or '
                    "the name of a shipped one"
                )
    elif any(leg is None or leg == PROFILE for leg in legs.values()):
        _from_profile(legs, load_profile(latency.profile))
    for name, default in DEFAULTS.items():
        legs[name] = default if legs[name] is None else legs[name]
    for name in AS_ENTRY:
        legs[name] = legs["entry"] if legs[name] is None else legs[name]
    return msgspec.structs.replace(latency, **legs)


def _from_profile(legs: dict[str, Leg | None], profile: LatencyProfile) -> None:
    stages = profile.stages()
    for name, leg in legs.items():
        stage, message = _SOURCE[name][1:]
        if leg is None:
            own = name in AS_ENTRY and profile.count(stage, message) < OWN_TRACE
            legs[name] = PROFILE if stage in stages and not own else None
        elif leg == PROFILE and stage not in stages:
            raise ConfigError(
                f'latency.{name} is "profile", but {profile.name} has no {stage} stage; it has '
                f"{', '.join(stages) or 'none'}"
            )


def drawn_from(profile: str) -> dict[str, str | None]:
    """Recipe keys by which a run draws from a profile all it can: what the profile lacks stays.

    A feed keeps its own delays, which belong to its rows.
    """
    stages = load_profile(profile).stages()
    legs = {name: source[1] for name, source in _SOURCE.items() if name != "feed"}
    drawn = {name: PROFILE for name, stage in legs.items() if stage in stages}
    # Classes of messages follow their own traces, as far as there are any.
    keys = {f"latency.{name}": None if name in AS_ENTRY else leg for name, leg in drawn.items()}
    return {"latency.profile": profile, **keys}


def told_of(latency: LatencyConfig) -> str:
    """Which legs a profile draws and which the recipe tells, in one line."""
    legs = {name: getattr(latency, name) for name in LEGS}
    drawn = [name for name, leg in legs.items() if leg == PROFILE]
    kept = [f"{name} {_said(leg)}" for name, leg in legs.items() if leg != PROFILE]
    return (
        f"{latency.profile} draws {', '.join(drawn) or 'nothing'}; not drawn: {', '.join(kept)} "
        "(--set latency.LEG=profile draws it)"
    )


def _said(leg: Leg) -> str:
    return f"from {leg.file}" if isinstance(leg, Series) else str(leg)


@dataclass(frozen=True, slots=True)
class Legs:
    """The core's legs of a run, scaled."""

    feed: Latency | None
    """None: each row's own delay."""
    entry: Latency
    response: Latency
    entry_cancel: Latency
    entry_replace: Latency
    compute: Latency
    risk: Latency
    inference: Latency


def core_legs(latency: LatencyConfig, seed: int, feeds: Sequence[Feed], *, ids: bool) -> Legs:
    """All legs of a section.

    Args:
        latency: of a recipe.
        seed: of every draw.
        feeds: the market that layouts cover; read once, where a model goes by its rate or time.
        ids: whether order ids of this run can be those of a recorded one.
    """
    latency = resolve(latency)
    told = {name: getattr(latency, name) for name in LEGS}
    drawn = [name for name, leg in told.items() if leg == PROFILE]
    made: dict[str, Any] = {}
    if drawn:
        source = _Source(load_profile(latency.profile), latency, seed, feeds, ids)
        made = source.legs(drawn)
    for name, leg in told.items():
        if leg != PROFILE:
            made[name] = None if leg == "data" else told_latency(leg)
    feed = made.pop("feed")
    scaled = {name: leg.scaled(latency.scale) for name, leg in made.items()}
    return Legs(feed=feed and feed.scaled(latency.scale), **scaled)


def told_latency(leg: Leg) -> Latency:
    """A duration or a recorded series as the core has it."""
    from hft import _core

    if isinstance(leg, Series):
        ts, ns = read_series(leg)
        return _core.Latency.recorded(ts, ns).scaled(leg.scale)
    return _core.Latency.constant(parse_ns(leg))


_read: tuple[list[ReferenceType[Any]], MarketRate] | None = None


def _market(feeds: Sequence[Feed]) -> MarketRate:
    """The market's rate; of a run and its variants, which have the same feeds, only read once."""
    global _read
    rows = [feed.chunks for feed in feeds]
    if _read is None or [known() for known in _read[0]] != rows:
        nothing = np.zeros(1, np.int64)
        found = rate_of(chunks() for chunks in rows) or MarketRate(nothing, nothing, 0, 0)
        _read = [ref(chunks) for chunks in rows], found  # weakly: they may hold a day of rows
    return _read[1]


@dataclass(frozen=True, slots=True)
class _Source:
    """Draws legs from a profile for one run."""

    profile: LatencyProfile
    latency: LatencyConfig
    seed: int
    feeds: Sequence[Feed]
    ids: bool

    @property
    def market(self) -> MarketRate:
        """Read where a model asks for it: not all of them do."""
        return _market(self.feeds)

    def legs(self, names: list[str]) -> dict[str, Latency]:
        groups: dict[tuple[Family, Message | None], list[str]] = {}
        for name in names:
            family, _, message = _SOURCE[name]
            groups.setdefault((family, self._class(message)), []).append(name)
        made: dict[str, Latency] = {}
        for (family, message), wanted in groups.items():
            stages = list(dict.fromkeys(_SOURCE[name][1] for name in wanted))
            number = 1 + MESSAGES.index(message) if message in AS_MESSAGE else 0
            stream = _STREAM[family] + _OF_MESSAGE * number
            drawn = self._drawn(stages, message, stream)
            made |= {name: drawn[_SOURCE[name][1]] for name in wanted}
        return made

    def _class(self, message: Message | None) -> Message | None:
        """The class itself where it has enough rows to be drawn from, else None: all of them."""
        if message is None:
            return None
        fewest = 1 if self.latency.model == "recorded" else OWN_TRACE
        return message if self.profile.count("entry", message) >= fewest else None

    def _drawn(self, stages: list[str], message: Message | None, stream: int) -> dict[str, Latency]:
        rows = self.profile.rows(stages, message)
        if not rows.size:
            raise ConfigError(
                f"{self.profile.name}: no row measured {' and '.join(stages)} together; give one "
                "of these legs a duration of its own"
            )
        ns = {stage: self.profile.numbers(STAGES[stage][1], rows) for stage in stages}
        if self.latency.model == "recorded":
            return self._recorded(ns, rows)
        trace = self._trace(ns, rows, message)
        trace.require_long()
        return _MODELS[self.latency.model](self, trace, stream)

    def _trace(self, ns: dict[str, Int], rows: Int, message: Message | None) -> Trace:
        ts, rate = self.profile.numbers("ts", rows), self.profile.numbers("rate", rows)
        # Messages of one instant are rows of their own: a nanosecond parts them.
        number = np.arange(ts.size)
        ts = np.maximum.accumulate(ts - number) + number
        of = f"{message} messages" if message else "rows"
        name = f"{self.profile.name} ({', '.join(ns)} of its {of})"
        return Trace(name, ts, ns, None if (rate == NONE).any() else rate)

    def _empirical(self, trace: Trace, stream: int) -> dict[str, Latency]:
        from hft import _core

        return {
            stage: _core.Latency.empirical(ns, self.seed, stream)
            for stage, ns in trace.legs.items()
        }

    def _bootstrap(self, trace: Trace, stream: int) -> dict[str, Latency]:
        from hft import _core

        length = mean_block(trace, parse_ns(self.latency.block))
        conditioned = self.latency.conditioned
        layout = lay_out(trace, length, self.market, self.seed, stream, conditioned=conditioned)
        return {
            stage: _core.Latency.walk(layout.ts, ns[layout.rows], layout.block_ts, layout.block_at)
            for stage, ns in trace.legs.items()
        }

    def _lognormal(self, trace: Trace, stream: int) -> dict[str, Latency]:
        from hft import _core

        ts = np.arange(STEPS) * max(1, round(trace.step_ns))
        once = np.array([self.market.ts_first]), np.zeros(1, np.int64)
        series = lognormal_series(trace.legs, self.seed, stream)
        return {stage: _core.Latency.walk(ts, ns, *once) for stage, ns in series.items()}

    def _recorded(self, ns: dict[str, Int], rows: Int) -> dict[str, Latency]:
        """Each order's own, by id where the profile has ids; by time otherwise.

        The profile's times hold where they meet the run's; else its first row is put at the run's
        first message.
        """
        from hft import _core

        every = self.profile.numbers("ts")
        meets = every[0] <= self.market.ts_last and every[-1] >= self.market.ts_first
        shift = 0 if meets else self.market.ts_first - int(every[0])
        ids = self.profile.numbers("order_id", rows)
        made = {}
        for stage, values in ns.items():
            ts = self._begun(stage, rows) + shift
            order = np.argsort(ts, kind="stable")
            made[stage] = _core.Latency.recorded(ts[order], values[order])
            if self.ids and stage in ("entry", "response") and not (ids == NONE).any():
                known, first = np.unique(ids, return_index=True)
                made[stage] = _core.Latency.by_order(known, values[first], made[stage])
        return made

    def _begun(self, stage: str, rows: Int) -> Int:
        """When a stage was begun, which is when a replay asks how long it takes."""
        ts = self.profile.numbers("ts", rows)
        before = {"compute": ("compute_ns", "risk_ns"), "risk": ("risk_ns",)}
        for column in before.get(stage, ()):
            ts = ts - _known(self.profile.numbers(column, rows))
        if stage == "inference":
            ts = ts + _known(self.profile.numbers("wait_ns", rows))
        return ts


AS_MESSAGE = ("cancel", "replace")
_MODELS = {
    "bootstrap": _Source._bootstrap,
    "empirical": _Source._empirical,
    "lognormal": _Source._lognormal,
}


def _known(ns: Int) -> Int:
    known: Int = np.where(ns == NONE, 0, ns)
    return known


def read_series(series: Series) -> tuple[Int, Int]:
    """Times and durations of a recorded series, (n,) each [ns].

    Raises:
        ConfigError: no such file, or it is neither CSV nor Parquet.
        DataError: a column is missing, not whole numbers, unordered or negative.
    """
    import polars as pl

    path = Path(series.file)
    if not path.is_file():
        raise ConfigError(f"latency series: no file {path}")
    try:
        frame = pl.read_parquet(path) if path.suffix == ".parquet" else pl.read_csv(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataError(f"latency series {path}: {error}") from error
    columns = []
    for name in (series.ts, series.column):
        if name not in frame.columns:
            raise DataError(f"latency series {path} has no column {name!r}; it has {frame.columns}")
        if not frame[name].dtype.is_integer() or frame[name].null_count():
            raise DataError(f"latency series {path}: column {name!r} must be whole ns without gaps")
        columns.append(frame[name].cast(pl.Int64).to_numpy())
    return columns[0], columns[1]


def delayed(
    chunks: Iterator[NDArray[Any]], feed: Latency | None, scale: float
) -> Iterator[NDArray[Any]]:
    """Rows whose `ts_recv` follows another feed latency.

    With None, each row's own delay is scaled; otherwise the leg, scaled already, replaces it. A
    feed never reorders, so `ts_recv` is raised to the row before it. Input arrays are not changed.
    """
    if feed is None and scale == 1.0:
        yield from chunks
        return
    last = np.iinfo(np.int64).min
    for rows in chunks:
        moved = rows.copy()
        if feed is None:
            delay = np.rint((rows["ts_recv"] - rows["ts_event"]) * scale).astype(np.int64)
        else:
            delay = feed.at(np.ascontiguousarray(rows["ts_event"]))
        moved["ts_recv"] = rows["ts_event"] + delay
        if len(moved):
            moved["ts_recv"][0] = max(int(moved["ts_recv"][0]), last)
            np.maximum.accumulate(moved["ts_recv"], out=moved["ts_recv"])
            last = int(moved["ts_recv"][-1])
        yield moved

"""A latency profile as tables of text and as a picture."""

from __future__ import annotations

from itertools import cycle
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hft.analysis.legs import QUANTILES, quantiles
from hft.analysis.sheet import sheet
from hft.analysis.svg import Axes, Line, Series
from hft.analysis.tables import Table
from hft.analysis.units import NONE as NOTHING
from hft.analysis.units import count, duration, utc
from hft.errors import ConfigError
from hft.execution.market_rate import Buckets, buckets_of
from hft.execution.profiles import MESSAGES, NONE, STAGES, LatencyProfile
from hft.execution.resampling import FEWEST, autocovariance
from hft.whole_files import write_whole

Int = NDArray[np.int64]

LAGS = (1, 10, 100)
MEASURED = {**STAGES, "wait": ("model", "wait_ns")}
"""What is shown: what can be drawn, and the wait, which a replay makes anew."""
TONES = ("tone1", "tone2", "tone3", "tone4", "tone5", "net", "quiet")
TONES_OF_RATES = ("tone1", "tone2", "tone3", "tone4", "net", "quiet", "tone5")
"""Green and teal lie side by side here, and cannot be told apart."""


def about(profile: LatencyProfile) -> list[str]:
    """What a reader must know of it, a line each."""
    facts, offset = profile.facts, profile.facts.clock_offset
    lines = [f"{facts.origin}, from {facts.source}" + (f", {facts.venue}" if facts.venue else "")]
    if offset is None:
        lines.append("clock offset: not taken off; one-way legs are as stamped")
    elif offset.half_width_ns:
        lines.append(
            f"clock offset: {duration(offset.estimate_ns)} ± {duration(offset.half_width_ns)}; "
            "one-way legs may be off by as much, round trips are not"
        )
    else:
        lines.append(f"clock offset: {duration(offset.estimate_ns)}, known")
    if facts.origin != "synthetic":  # of a stamp in a wrong unit this says 1970
        ts = profile.frame["ts"]
        lines.append(f"{utc(ts[0])} to {utc(ts[-1])} UTC")
    return [*lines, *_too_short(profile), *facts.notes]


def _too_short(profile: LatencyProfile) -> list[str]:
    """Said here, so that nobody learns it only from the run that refuses."""
    orders = _measured(profile, *STAGES["entry"]).size
    if not 0 < orders < FEWEST:
        return []
    return [
        f"{orders:,} messages are too few to resample, want {FEWEST:,}: "
        'draw them with latency.model = "recorded"'
    ]


def table_of(profile: LatencyProfile) -> Table:
    """By stage, message class and message rate: quantiles, and autocorrelation from row to row."""
    rows = []
    for stage, (kind, column) in MEASURED.items():
        all_rows = _measured(profile, kind, column)
        if not all_rows.size:
            continue
        rows.append(_line(stage, profile.numbers(column, all_rows)))
        rows += _by_message(profile, stage, column, all_rows)
        rows += _by_rate(profile, column, all_rows)
    head = ["stage", "n", *QUANTILES, *(f"r{lag}" for lag in LAGS)]
    note = "Rates are messages in 100 ms of market. r1, r10, r100: autocorrelation so many rows on."
    return Table(profile.name, head, rows, note)


def _by_message(profile: LatencyProfile, stage: str, column: str, rows: Int) -> list[list[str]]:
    if stage not in ("entry", "response"):
        return []
    words = profile.frame["message"].fill_null("new").to_numpy()[rows]
    classes = [(m, rows[words == m]) for m in MESSAGES if (words == m).any()]
    if len(classes) < 2:
        return []
    return [_line(f"  {m}", profile.numbers(column, mine)) for m, mine in classes]


def _by_rate(profile: LatencyProfile, column: str, rows: Int) -> list[list[str]]:
    rate, buckets = _buckets(profile, rows)
    if not buckets.borders:
        return []
    mine = buckets.of(rate)
    return [
        _line(f"  rate {name}", profile.numbers(column, rows[mine == number]))
        for number, name in enumerate(buckets.names)
    ]


def _buckets(profile: LatencyProfile, rows: Int) -> tuple[Int, Buckets]:
    rate = profile.numbers("rate", rows)
    return rate, Buckets(()) if (rate == NONE).any() else buckets_of(rate)


def _measured(profile: LatencyProfile, kind: str, column: str) -> Int:
    import polars as pl

    wanted = (pl.col("kind") == kind) & pl.col(column).is_not_null()
    found: Int = profile.frame.select(wanted.arg_true()).to_series().to_numpy().astype(np.int64)
    return found


def _line(name: str, ns: Int) -> list[str]:
    drawn = quantiles(ns)
    return [name, count(ns.size), *(duration(drawn[q]) for q in QUANTILES), *_correlations(ns)]


def _correlations(ns: Int) -> list[str]:
    lags = [lag for lag in LAGS if lag < ns.size // 4]
    cov = autocovariance(ns, max(lags)) if lags else np.zeros(1)
    told = [f"{cov[lag] / cov[0]:.2f}" if lag in lags and cov[0] > 0 else NOTHING for lag in LAGS]
    return told


def draw(profile: LatencyProfile, path: Path) -> None:
    """Write the picture: each stage over time, and how often each duration is exceeded.

    Raises:
        ConfigError: the name does not end in `.svg`, or lies in no folder.
    """
    if path.suffix != ".svg":
        raise ConfigError(f"a profile's picture is an .svg file, {path} is {path.suffix or 'bare'}")
    if not path.absolute().parent.is_dir():
        raise ConfigError(f"{path}: no such folder as {path.parent}, want one that is there")
    write_whole(path, picture(profile).encode())


def picture(profile: LatencyProfile) -> str:
    """The SVG's text."""
    shares: list[Series] = []
    by_rate: list[tuple[str, Axes, list[Series]]] = []
    courses: list[tuple[str, Axes, list[Series]]] = []
    clustering: list[Series] = []
    for (stage, (kind, column)), tone in zip(MEASURED.items(), TONES, strict=True):
        rows = _measured(profile, kind, column)
        if rows.size < 2:
            continue
        ns = profile.numbers(column, rows)
        shares.append(_exceeded(stage, ns, tone))
        ts = profile.numbers("ts", rows).astype(np.float64)
        axes = Axes("log10 of ns", "UTC", "time", height=150)
        line = Line(stage, ts, np.log10(np.maximum(ns, 1)), tone)
        courses.append((f"{stage.capitalize()} over time", axes, [line]))
        lags = min(200, ns.size // 4)
        if lags > 1 and ns.min() < ns.max():
            cov = autocovariance(ns, lags)
            x = np.arange(1, lags + 1, dtype=np.float64)
            clustering.append(Line(stage, x, cov[1:] / cov[0], tone))
        rate, buckets = _buckets(profile, rows)
        if stage in ("entry", "inference") and buckets.borders:
            mine = buckets.of(rate)
            lines: list[Series] = [
                _exceeded(name, ns[mine == number], tone)
                for (number, name), tone in zip(
                    enumerate(buckets.names), cycle(TONES_OF_RATES), strict=False
                )
            ]
            by_rate.append((f"{stage.capitalize()} by messages in 100 ms", _tails(), lines))
    panels = [
        ("Tails", _tails(), shares),
        *by_rate,
        ("ACF", Axes("autocorrelation", "rows on", zero=True, height=200), clustering),
        *courses,
    ]
    return sheet(panels, profile.name, about(profile)[0])


def _tails() -> Axes:
    return Axes("log10 of the share above", "duration", "log ns", height=230)


def _exceeded(label: str, ns: Int, tone: str) -> Line:
    """Share of rows above each duration, down to one row in all."""
    ordered = np.sort(ns).astype(np.float64)
    log_share = -np.linspace(0, np.log10(ordered.size), 400)
    at = ordered.size - np.maximum(1, np.rint(10**log_share * ordered.size)).astype(np.int64)
    return Line(label, ordered[at], log_share, tone)

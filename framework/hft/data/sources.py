"""Where rows come from by name: adapters of file formats, and the synthetic market."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date as Day
from importlib import import_module
from pathlib import Path
from typing import Any

from hft.data.importing import Source, Tick
from hft.errors import ConfigError, DataError
from hft.types import InstrumentSpec

FORMATS = {
    "bars": "hft.adapters.bars",
    "binance": "hft.adapters.binance",
    "bitstamp": "hft.adapters.bitstamp",
    "cffex": "hft.adapters.cffex",
    "csv": "hft.adapters.table",
    "databento": "hft.adapters.databento",
    "hftbacktest": "hft.adapters.hftbacktest",
    "itch": "hft.adapters.itch",
    "lobster": "hft.adapters.lobster",
    "parquet": "hft.adapters.table",
    "shanghai": "hft.adapters.shanghai",
    "shenzhen": "hft.adapters.shenzhen",
    "tardis": "hft.adapters.tardis",
    "wondertrader": "hft.adapters.wondertrader",
}
"""Name of a format to the module that reads it: one with `open_files(request) -> [Source, ...]`,
whose docstring begins with a line for `hft data formats` (docs/adding-an-importer.md)."""

MAPPED = ("csv", "parquet")
"""Formats that need `columns`."""

SETTABLE = ("bars",)
"""Formats that ask for settings of their own."""

DATELESS = ("itch", "lobster", "shanghai")
"""Formats with files that hold times of day alone."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a user asks an adapter to open."""

    form: str
    paths: list[Path]
    facts: dict[str, Any] = field(default_factory=dict)
    """Fields of InstrumentSpec that were given."""
    columns: Path | None = None
    """The map of a `csv` or `parquet` file."""
    date: Day | None = None
    """Day of files that hold times of day alone, whatever their names say."""
    repair: bool = False
    """Mend and count instead of refusing."""
    settings: dict[str, Any] = field(default_factory=dict)
    """What a format of SETTABLE asks for, by name."""

    def __post_init__(self) -> None:
        met: set[Path] = set()
        for path in self.paths:
            _want_readable(path)
            if path.resolve() in met:
                raise ConfigError(f"{path}: given twice, want each file once")
            met.add(path.resolve())

    def symbols(self) -> list[str]:
        """Symbols asked for, `--symbol A,B`; none: all that the files hold."""
        return [s for s in str(self.facts.get("symbol", "")).split(",") if s]

    def spec(self, **known: Any) -> InstrumentSpec:
        """The instrument: what was given, else what the format knows.

        Raises:
            ConfigError: neither says symbol, venue, tick or lot.
        """
        facts = known | {k: v for k, v in self.facts.items() if k != "symbol" or k not in known}
        missing = [name for name in ("symbol", "venue", "tick", "lot") if name not in facts]
        if missing:
            raise ConfigError(
                f"the file holds no {', '.join(missing)}; give --{' --'.join(missing)}"
            )
        return InstrumentSpec(**facts)

    def spec_of_whole(self, **known: Any) -> InstrumentSpec:
        """Likewise, of a format whose sizes are whole shares or contracts: the lot is 1.

        Raises:
            ConfigError: another lot is given.
        """
        spec = self.spec(lot=1.0, **known)
        if spec.lot != 1.0:
            raise ConfigError(
                f"{spec.name}: lot {spec.lot:g}; {self.form} sizes are whole shares or contracts, "
                "so want lot 1"
            )
        return spec


def _want_readable(path: Path) -> None:
    try:
        if not path.is_file():
            raise DataError(f"{path}: {'is a folder' if path.is_dir() else 'no such file'}")
        path.open("rb").close()
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from error


def open_sources(
    form: str,
    paths: list[Path],
    *,
    facts: dict[str, Any] | None = None,
    columns: Path | None = None,
    date: Day | None = None,
    repair: bool = False,
    settings: dict[str, Any] | None = None,
) -> list[Source]:
    """Open files to be imported, one source an instrument or file, as the format has it.

    Args:
        form: what the files are, a name in FORMATS.
        paths: the files.
        facts: fields of InstrumentSpec; what a format knows or infers need not be given.
        columns: the map of `csv` and `parquet`.
        date: day of files that hold times of day alone, whatever their names say.
        repair: mend and count instead of refusing.
        settings: what a format of SETTABLE asks for, by name.
    """
    if form not in FORMATS:
        raise ConfigError(f"format is {form!r}, want one of {', '.join(sorted(FORMATS))}")
    options = (("--map", columns, MAPPED), ("--date", date, DATELESS))
    for option, given, mine in (*options, ("--set", settings or None, SETTABLE)):
        if given is not None and form not in mine:
            raise ConfigError(f"{option} is for {', '.join(mine)}; {form} files have no use for it")
    known = {name: value for name, value in (facts or {}).items() if value not in (None, "")}
    adapter = import_module(FORMATS[form])
    request = Request(form, paths, known, columns, date, repair, settings or {})
    sources: list[Source] = adapter.open_files(request)
    if not sources:
        raise DataError(f"{', '.join(map(str, paths))}: nothing in it to import as {form}")
    return sources


def write_synthetic(
    store: str | Path,
    settings: list[str],
    *,
    tick: Tick | None = None,
    raw: bool = False,
    overwrite: bool = False,
) -> dict[str, int]:
    """Write a synthetic market into a store; rows by instrument.

    Args:
        store: folder.
        settings: `key=value` fields of SynthConfig, as in a recipe; symbols may also be `A,B`.
        tick: told (rows, share done).
        raw: also write the memory-mapped form.
        overwrite: replace days that exist.
    """
    from itertools import groupby

    from hft.data.store import Store
    from hft.data.synth import synthesize_chunks

    config = _synth_config(settings)
    target, counts = Store(store), {}
    specs = {spec.name: spec for spec in config.specs()}
    chunks = synthesize_chunks(config, progress=tick)
    for name, group in groupby(chunks, key=lambda chunk: chunk[0]):
        with target.writer(specs[name], raw=raw, overwrite=overwrite) as writer:
            for _, rows in group:
                writer.add(rows)
        counts[name] = writer.rows
    return counts


def _synth_config(settings: list[str]) -> Any:
    import msgspec

    from hft.data.synth import SynthConfig
    from hft.recipe_checks import explain
    from hft.settings import parse_setting

    given: dict[str, Any] = {}
    for setting in settings:
        key, value = parse_setting(setting)
        listed = key == "symbols" and isinstance(value, str)
        given[key] = value.split(",") if listed else value
    try:
        return msgspec.convert(given, SynthConfig, strict=False)
    except msgspec.ValidationError as error:
        raise ConfigError(f"--set: {explain(error, given, SynthConfig)}") from error

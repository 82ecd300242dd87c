"""Where rows come from by name: adapters of file formats, and the synthetic market."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from hft.data.importing import Source, Tick
from hft.errors import ConfigError
from hft.types import InstrumentSpec

Format = Literal["hftbacktest", "binance", "csv", "parquet"]
FORMATS: tuple[Format, ...] = ("hftbacktest", "binance", "csv", "parquet")


def open_sources(
    form: Format,
    paths: list[Path],
    *,
    facts: dict[str, Any] | None = None,
    columns: Path | None = None,
    repair: bool = False,
) -> list[Source]:
    """Open files to be imported, one source each; Binance captures follow each other as one.

    Args:
        form: what the files are.
        paths: the files.
        facts: fields of InstrumentSpec; what Binance captures leave out is inferred, `csv` and
            `parquet` have theirs in the map.
        columns: the map of `csv` and `parquet`.
        repair: mend and count instead of refusing.
    """
    known = {name: value for name, value in (facts or {}).items() if value not in (None, "")}
    if form == "binance":
        from hft.adapters.binance import BinanceCapture

        return [BinanceCapture(*paths, repair=repair, **known)]
    if form == "hftbacktest":
        from hft.adapters.hftbacktest import HftbacktestFile

        spec = _whole_spec(known)
        return [HftbacktestFile(path, spec, repair=repair) for path in paths]
    if form not in FORMATS:
        raise ConfigError(f"format is {form!r}, want one of {', '.join(FORMATS)}")
    from hft.adapters.table import TableFile, load_map

    if columns is None:
        raise ConfigError(f"a {form} file needs --map FILE.toml, which says what its columns mean")
    if known:
        raise ConfigError(
            f"{', '.join(known)} of a {form} file belong into [instrument] of the map"
        )
    layout = load_map(columns)
    return [TableFile(path, layout, form, repair=repair) for path in paths]


def _whole_spec(facts: dict[str, Any]) -> InstrumentSpec:
    missing = [name for name in ("symbol", "venue", "tick", "lot") if name not in facts]
    if missing:
        raise ConfigError(f"the file holds no {', '.join(missing)}; give --{' --'.join(missing)}")
    return InstrumentSpec(**facts)


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
        settings: `key=value` fields of SynthConfig; a list of symbols is split at commas.
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

    given: dict[str, Any] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals:
            raise ConfigError(f"--set {setting!r}: want KEY=VALUE")
        given[key] = value.split(",") if key == "symbols" else value
    try:
        return msgspec.convert(given, SynthConfig, strict=False)
    except msgspec.ValidationError as error:
        raise ConfigError(f"--set: {error}") from error

"""A fit from data to files: what `hft fit` does, for one instrument after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hft.data.opening import open_data
from hft.durations import parse_ns
from hft.errors import ConfigError
from hft.fitting import fragment, picture, show
from hft.fitting.tape import Source, Tell, sources_of
from hft.types import InstrumentSpec
from hft.whole_files import require_folder, write_whole

if TYPE_CHECKING:
    from rich.console import Console

    from hft.data.store import Time

Progress = Callable[[str], AbstractContextManager[Tell]]
SHORTEST_STEP = "1ms"


def fit_all(
    what: str,
    path: Path,
    folder: Path,
    *,
    console: Console,
    progress: Progress,
    symbols: tuple[str, ...] = (),
    start: Time = None,
    end: Time = None,
    tick: float | None = None,
    lot: float | None = None,
    **options: Any,
) -> Iterator[Path]:
    """Fit, print, draw and write; yields each file that was written.

    Args:
        what: `queue`, `refill` or `impact`.
        path: a store's folder or a file.
        folder: where `WHAT.toml` and `WHAT.png` go, with the instrument in the names if it is one
            of several.
        console: where the tables go.
        progress: a context that tells how far a pass is.
        symbols: instruments; none: all there are.
        start: first `ts_recv`, included.
        end: last, excluded.
        tick: of a file that does not know its own.
        lot: of a file that does not know its own.
        options: the fit's own.
    """
    require_folder(folder)
    settings = _settings(options)
    spec = None
    if tick is not None and lot is not None:
        spec = InstrumentSpec(symbol=path.stem, venue="FILE", tick=tick, lot=lot)
    sources = sources_of(open_data(path, spec), str(path), symbols, start, end)
    for source in sources:
        name = what if len(sources) == 1 else f"{what}-{source.name}"
        with progress(f"{what} of {source.name}") as tell:
            text, image = _FITS[what](source, console, tell=tell, **settings)
        if open_questions := source.market.cannot_tell(source.name, start, end):
            console.print(f"The feed cannot tell: {'; '.join(open_questions)}.", style="dim")
        folder.mkdir(parents=True, exist_ok=True)
        for ending, content in (("toml", text.encode()), ("png", image)):
            write_whole(folder / f"{name}.{ending}", content)
            yield folder / f"{name}.{ending}"


def _settings(options: dict[str, Any]) -> dict[str, Any]:
    settings = {name: value for name, value in options.items() if value is not None}
    if "step" in settings:
        settings["step_ns"] = _duration("--step", settings.pop("step"))
        if settings["step_ns"] < parse_ns(SHORTEST_STEP):
            raise ConfigError(f"--step is {options['step']!r}: expected at least {SHORTEST_STEP}")
    if "heal" in settings:
        settings["heal_s"] = _duration("--heal", settings.pop("heal")) / 1e9
        if settings["heal_s"] == 0:
            raise ConfigError("--heal is 0: expected a half-life above 0")
    return settings


def _duration(option: str, text: str) -> int:
    try:
        return parse_ns(text)
    except ConfigError as error:
        raise ConfigError(f"{option}: {error}") from error


def _queue(source: Source, console: Console, **settings: Any) -> tuple[str, bytes]:
    from hft.fitting.queue import fit_queue

    fit = fit_queue(source, **settings)
    show.show_queue(fit, console)
    return fragment.queue_fragment(fit), picture.draw_queue(fit)


def _refill(source: Source, console: Console, **settings: Any) -> tuple[str, bytes]:
    from hft.fitting.refill import fit_refill

    fit = fit_refill(source, **settings)
    show.show_refill(fit, console)
    return fragment.refill_fragment(fit), picture.draw_refill(fit)


def _impact(source: Source, console: Console, **settings: Any) -> tuple[str, bytes]:
    from hft.fitting.impact import fit_impact

    fit = fit_impact(source, **settings)
    show.show_impact(fit, console)
    return fragment.impact_fragment(fit), picture.draw_impact(fit)


_FITS = {"queue": _queue, "refill": _refill, "impact": _impact}

"""`hft swap`: checks a bundle, hands it to a live session, and waits for what comes of it."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

import msgspec

from hft import run_folder
from hft.errors import ConfigError, DataError, ModelError
from hft.live.swaps import FOLDER, Request, Result, bundle_of, request_of, result_of
from hft.live.verify import facts_of, plan_of
from hft.sources import bundle_for, hash_word, open_model, require_budget
from hft.swaps import require_alike, source_named
from hft.whole_files import write_whole

LOOK_S = 0.05


def swap(
    folder: Path,
    place: Path,
    model: str = "",
    *,
    timeout_s: float = 600.0,
    tell: Callable[[str], None] = lambda line: None,
) -> Result:
    """Hands the bundle at `place` to the session that writes `folder`.

    Args:
        folder: of the run.
        place: a bundle.
        model: which of the strategy's; it may be left out where there is one.
        timeout_s: how long to wait until every instrument has changed over.
        tell: told what happens.

    Returns:
        When each instrument changed over.

    Raises:
        ConfigError: the run has ended, is no live session, or ends before it has changed over.
        ModelError: the bundle is damaged, does not fit in the old one's place, or is too slow.
    """
    run_folder.require_running(folder)
    plan = plan_of(folder, facts_of(folder))
    names = [source.name for source in plan.sources if source.bundle is not None]
    model = model or (names[0] if len(names) == 1 else "model")
    source = plan.sources[source_named(model, plan.strategy, plan.sources, "--model")]
    bundle = bundle_for(plan.strategy, place, source.config)
    assert source.bundle is not None
    require_alike(source.bundle, bundle)
    with ExitStack() as opened:
        require_budget(bundle, source.config, open_model(bundle, source.config, opened))
    number = _hand_over(folder, place)
    request = Request(model=model, hash=hash_word(bundle))
    write_whole(request_of(folder, number), msgspec.json.encode(request))
    tell(f"swap {number}: {place} for {model} of {folder}")
    return wait(folder, number, timeout_s, tell)


def _hand_over(folder: Path, place: Path) -> int:
    """Copies the bundle whole; its number."""
    there = folder / FOLDER
    there.mkdir(exist_ok=True)
    draft = there / f".draft-{time.time_ns()}"
    try:
        shutil.copytree(place, draft)
        number = 1
        while True:
            if not bundle_of(folder, number).exists():
                with suppress(OSError):  # another command was faster
                    draft.rename(bundle_of(folder, number))
                    return number
            number += 1
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def wait(folder: Path, number: int, timeout_s: float, tell: Callable[[str], None]) -> Result:
    """Until a swap has come to its end, as `swap` does."""
    until, told = time.monotonic() + timeout_s, ""
    while True:
        running = run_folder.is_running(folder)  # before the answer is read: it is the last one
        result = _answer(folder, number)
        if result is not None and result.state == "done":
            return result
        if result is not None and result.state == "refused":
            raise ModelError(f"the session refused: {result.error}")
        if result is not None and result.state != "warming":
            raise ConfigError(f"{result.state}: {result.error}")
        if not running:
            raise ConfigError(f"{folder} ended before the bundle took over")
        if (
            result is not None
            and (line := f"warming up; took over: {len(result.took_over)}") != told
        ):
            tell(told := line)
        if time.monotonic() > until:
            raise ConfigError(
                f"after {timeout_s:g} s the bundle has not taken over everywhere; the session goes "
                f"on with it as rows come, see {result_of(folder, number)}"
            )
        time.sleep(LOOK_S)


def _answer(folder: Path, number: int) -> Result | None:
    path = result_of(folder, number)
    if not path.is_file():
        return None
    try:
        return msgspec.json.decode(path.read_bytes(), type=Result)
    except msgspec.MsgspecError as error:
        raise DataError(f"{path} is damaged: {error}") from error

"""What `hft swap` and a live session leave each other in the run folder.

swaps/
    1.bundle/  the new bundle, whole       1.request.json  asks for it; written last
                                           1.result.json   the session's answer

The session's side is hft.live.swap_watch.
"""

from __future__ import annotations

import re
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from hft.errors import ModelError
from hft.sources import bundle_for, hash_word
from hft.swaps import core_arguments

if TYPE_CHECKING:
    from hft.plan import Plan

FOLDER = "swaps"
REQUEST = re.compile(r"([1-9][0-9]{0,8})\.request\.json")
"""Its number is the version of the answers that follow: from 1, within 31 bits."""


class Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is asked for."""

    model: str
    hash: int
    """Word of the bundle's hash, `hft.sources.hash_word`."""


class Result(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How far it is."""

    state: Literal["warming", "done", "refused", "superseded", "ended"]
    took_over: dict[str, int] = {}
    """When, by instrument [ns]."""
    error: str = ""


def bundle_of(folder: Path, number: int) -> Path:
    return folder / FOLDER / f"{number}.bundle"


def request_of(folder: Path, number: int) -> Path:
    return folder / FOLDER / f"{number}.request.json"


def result_of(folder: Path, number: int) -> Path:
    return folder / FOLDER / f"{number}.result.json"


def add_journaled(verify: Any, plan: Plan, folder: Path, journal: Any, opened: ExitStack) -> None:
    """Gives a verification the bundles that the journal's swaps asked for.

    Raises:
        ModelError: one is gone or damaged, or another than the run's.
    """
    from hft.journal import RecordKind

    for record in journal[(journal["kind"] == RecordKind.SWAP) & (journal["b"] == 0)]:
        number, index = int(record["order"]), int(record["lots"])
        source = plan.sources[index]
        bundle = bundle_for(plan.strategy, bundle_of(folder, number), source.config)
        if hash_word(bundle) != int(record["a"]):
            raise ModelError(f"{bundle.path} is not the bundle of the run's swap: its hash differs")
        verify.add_swap(*core_arguments(number, index, bundle, source.config, opened))

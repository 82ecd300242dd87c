"""Bundles that a live session is asked to change over to, as `hft swap` asks."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from hft.inference.bundle import load_bundle
from hft.live.swaps import Request, request_of
from hft.sources import hash_word
from hft.whole_files import write_whole


def ask_for(folder: Path, bundle: Path, model: str = "model", number: int = 1) -> None:
    """Leaves a session a bundle and asks for it."""
    _lay(folder, bundle, number)
    _ask(folder, bundle, model, number)


@contextmanager
def asked_after(seconds: float, folder: Path, bundle: Path, model: str = "model") -> Iterator[None]:
    """The same, `seconds` from here on; ends when it was asked for."""
    _lay(folder, bundle, 1)
    later = threading.Timer(seconds, _ask, (folder, bundle, model, 1))
    later.start()
    try:
        yield
    finally:
        later.join()


def _lay(folder: Path, bundle: Path, number: int) -> None:
    shutil.copytree(bundle, folder / "swaps" / f"{number}.bundle")


def _ask(folder: Path, bundle: Path, model: str, number: int) -> None:
    request = Request(model=model, hash=hash_word(load_bundle(bundle)))
    write_whole(request_of(folder, number), msgspec.json.encode(request))

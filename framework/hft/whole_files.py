"""Files and folders that are there whole or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hft.errors import ConfigError


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A draft beside `path` to write to; at the end it takes its place, unless something failed.

    Raises:
        OSError: of `path`, which a full disk by itself does not name.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield draft
        draft.replace(path)
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, os.strerror(error.errno), str(path)) from error
    finally:
        with suppress(OSError):  # of a read-only folder, told above
            draft.unlink()


@contextmanager
def replacing_folder(folder: Path) -> Iterator[Path]:
    """A new folder beside `folder` to write into; at the end it takes its place, as above."""
    draft = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
    old = draft.with_suffix(".old")
    try:
        draft.mkdir(parents=True)
        yield draft
        if folder.exists():
            folder.rename(old)  # a moment without either is better than one with half of each
        draft.rename(folder)
        shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        raise ConfigError(f"cannot write {folder}: {error}") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def write_whole(path: Path, content: bytes) -> None:
    """Writes one file."""
    with replacing(path) as draft:
        draft.write_bytes(content)


def require_folder(folder: Path) -> None:
    """Refuses a folder that could not be made or written to, before there is anything to write.

    Raises:
        ConfigError: a file is in the way, or there is no permission.
    """
    there = folder.absolute()
    while not there.exists():
        there = there.parent
    if not there.is_dir():
        raise ConfigError(f"cannot write into {folder}: {there} is a file, want a folder")
    if not os.access(there, os.W_OK | os.X_OK):
        raise ConfigError(f"cannot write into {folder}: no permission in {there}")

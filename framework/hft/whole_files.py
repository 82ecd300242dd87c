"""Files that are there whole or not at all."""

from __future__ import annotations

import os
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

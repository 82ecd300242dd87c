"""Rows of a `.npy` file, or of `data` in a `.npz`, block by block: never the whole array in memory.

`np.load` maps a `.npy`, but unpacks the member of a `.npz` whole, and reads nothing of a file that
was cut.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hft.errors import DataError, SchemaError

MEMBER = "data"  # of a .npz

# All that zipfile raises on damage, and zlib in it.
_DAMAGE = (
    OSError,
    EOFError,
    ValueError,
    NotImplementedError,
    RuntimeError,
    zlib.error,
    zipfile.BadZipFile,
)


class Header(NamedTuple):
    """What a file says about its array."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]


class NumpyFile:
    """One file; its header is read when it is opened.

    Args:
        path: the file; which of the two it is, is told by its first bytes.
        repair: end where a damage begins, and say so in `damaged`, instead of refusing it.

    Raises:
        DataError: no such file, or no NumPy file.
        SchemaError: a `.npz` without an array `data`.
    """

    def __init__(self, path: Path, *, repair: bool = False) -> None:
        if not path.is_file():
            raise DataError(f"{path}: no such file")
        self.path = path
        self.damaged = False
        """The last pass met the end, or a damage, before all rows."""
        self._repair = repair
        try:
            with self._open() as (_, header):
                self.header = header
        except SchemaError:
            raise
        except Exception as error:  # zip, zlib and header parsers raise anything on damage
            raise DataError(f"{path}: not a whole NumPy file: {error}") from error

    def blocks(self, rows: int) -> Iterator[NDArray[Any]]:
        """All rows of a one-dimensional array, at most `rows` at a time."""
        self.damaged = False
        at, each = 0, self.header.dtype.itemsize
        try:
            with self._open() as (file, header):
                while at < header.shape[0]:
                    raw = file.read(min(rows, header.shape[0] - at) * each)
                    block = np.frombuffer(raw, header.dtype, len(raw) // each)
                    at += len(block)
                    if len(block):
                        yield block
                    if len(raw) % each or not raw:
                        raise EOFError(f"it has {at:,} rows of {header.shape[0]:,}")
                file.read(1)  # a .npz compares its checksum at the end
        except _DAMAGE as error:
            if not self._repair:
                raise DataError(f"{self.path}: damaged after row {at:,}: {error}") from error
            self.damaged = True

    @contextmanager
    def _open(self) -> Iterator[tuple[IO[bytes], Header]]:
        with self.path.open("rb") as raw:
            packed = raw.read(2) == b"PK"
            raw.seek(0)
            if not packed:
                yield raw, _header(raw)
                return
            with zipfile.ZipFile(raw) as archive:
                names = [name.removesuffix(".npy") for name in archive.namelist()]
                if MEMBER not in names:
                    raise SchemaError(f"{self.path}: holds {names}, want an array `{MEMBER}`")
                with archive.open(archive.namelist()[names.index(MEMBER)]) as file:
                    yield file, _header(file)


def _header(file: IO[bytes]) -> Header:
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    else:
        shape, _, dtype = np.lib.format.read_array_header_2_0(file)
    return Header(dtype, shape)

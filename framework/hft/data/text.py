"""Text files, plain, packed or in a zip, as blocks of whole lines.

Gzip, xz, bzip2 and zstd are known by their first bytes. Memory is a few blocks, whatever the file.
"""

from __future__ import annotations

import lzma
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from hft.errors import DataError, SchemaError

BLOCK_BYTES = 1 << 22
PIECE_BYTES = 1 << 17
LINE_BYTES = 1 << 24  # a longer line is no text of rows
BOM = b"\xef\xbb\xbf"  # before the first line of text that some programs write
DAMAGE = (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)


@dataclass(frozen=True, slots=True)
class TextFile:
    """A text file, or a member of a zip."""

    path: Path
    member: str = ""

    @property
    def name(self) -> str:
        """For messages."""
        return f"{self.path}:{self.member}" if self.member else str(self.path)

    @contextmanager
    def open(self) -> Iterator[tuple[Any, Callable[[], float]]]:
        """The unpacked bytes, and a function that says what share of them has been read."""
        if self.member:
            with zipfile.ZipFile(self.path) as archive, archive.open(self.member) as stream:
                total = max(archive.getinfo(self.member).file_size, 1)
                yield stream, lambda: stream.tell() / total
            return
        size = max(self.path.stat().st_size, 1)
        with self.path.open("rb") as file:
            yield open_packed(file), lambda: min(file.tell() / size, 1.0)

    def is_plain(self) -> bool:
        """Not packed, so that it can be read from any place on."""
        if self.member:
            return False
        with self.path.open("rb") as file:
            return open_packed(file) is file

    def mark_bytes(self) -> int:
        """Length of the mark before the first line of a plain file."""
        with self.path.open("rb") as file:
            return len(BOM) if file.read(len(BOM)) == BOM else 0

    def blocks(self) -> Iterator[tuple[bytes, float]]:
        """Whole lines, about BLOCK_BYTES at once, and the share read.

        The last line may lack its newline. Where the file is damaged, the whole lines before it
        come first, and then the error as the decoder raises it, one of DAMAGE.
        """
        self._want()
        kept: list[bytes] = []
        held = 0
        with self.open() as (stream, share):
            try:
                for piece in _pieces(stream):
                    if not kept:
                        piece = piece.removeprefix(BOM)
                    kept.append(piece)
                    held += len(piece)
                    if held >= BLOCK_BYTES:
                        text, rest = self._cut(kept)
                        kept, held = [rest], len(rest)
                        if text:
                            yield text, share()
            except DAMAGE:
                text, _ = self._cut(kept)
                if text:
                    yield text, 1.0
                raise
        if held:
            yield b"".join(kept), 1.0

    def _want(self) -> None:
        if not self.path.is_file():
            raise DataError(f"{self.path}: no such file")

    def _cut(self, kept: list[bytes]) -> tuple[bytes, bytes]:
        text = b"".join(kept)
        at = text.rfind(b"\n") + 1
        if len(text) - at > LINE_BYTES:
            raise DataError(
                f"{self.name}: a line of more than {LINE_BYTES:,} bytes; this is no text of rows"
            )
        return text[:at], text[at:]

    def first_line(self) -> str:
        """The first line.

        Raises:
            DataError: no such file, an empty one, or one that breaks before its first line ends.
        """
        self._want()
        text = b""
        try:
            with self.open() as (stream, _):
                for piece in _pieces(stream):
                    text += piece
                    if b"\n" in piece or len(text) > LINE_BYTES:
                        break
        except DAMAGE as error:
            raise DataError(f"{self.name}: damaged before the end of line 1: {error}") from error
        line = text.removeprefix(BOM).partition(b"\n")[0]
        if not line.strip():
            raise DataError(f"{self.name}: empty file, want lines of columns")
        return line.decode("utf-8", "replace").rstrip("\r")


def text_files(path: Path) -> list[TextFile]:
    """The file itself, or the csv members of a zip in the order they are in.

    Raises:
        DataError: no such file, or a zip that is not whole or holds no csv file.
    """
    if not path.is_file():
        raise DataError(f"{path}: no such file")
    with path.open("rb") as file:
        if file.read(4) != b"PK\x03\x04":
            return [TextFile(path)]
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.namelist()
    except DAMAGE as error:
        raise DataError(
            f"{path}: not a whole zip, whose table of contents is at its end: {error}"
        ) from error
    files = [TextFile(path, name) for name in members if name.lower().endswith(".csv")]
    if not files:
        raise SchemaError(f"{path}: a zip without a csv file, want one; it holds {members[:5]}")
    return files


def _pieces(stream: Any) -> Iterator[bytes]:
    # A whole block read at once would be lost where damage is in it.
    read = getattr(stream, "read1", stream.read)
    while piece := read(min(PIECE_BYTES, BLOCK_BYTES)):
        yield piece


def open_packed(file: IO[bytes]) -> Any:
    """The bytes in a file that may be gzip, xz, bzip2 or zstd, told by its first bytes."""
    import bz2
    import gzip

    magic = file.read(6)
    file.seek(0)
    if magic.startswith(b"\x1f\x8b"):
        return gzip.GzipFile(fileobj=file)
    if magic == b"\xfd7zXZ\x00":
        return lzma.LZMAFile(file)
    if magic.startswith(b"BZh"):
        return bz2.BZ2File(file)
    if magic.startswith(b"\x28\xb5\x2f\xfd"):
        import pyarrow as pa

        return pa.CompressedInputStream(file, "zstd")
    return file


def as_utf8(text: bytes) -> bytes:
    """`?` for what is no UTF-8: of a malformed row that holds other bytes, Arrow does not tell."""
    if text.isascii():
        return text
    return text.decode("utf-8", "replace").replace("\ufffd", "?").encode()

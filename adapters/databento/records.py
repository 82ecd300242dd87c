"""A DBN file as runs of records of one type and size.

The library reads the header and says how records lie; the records themselves become NumPy views of
the decompressed bytes: 8 ns each, where the library's objects take 850 ns until their fields are
read. Records may be of any length in any order (symbol mappings and system messages stand between
book records): each begins with its length in words of four bytes and its type, and equal neighbours
form a run.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hft.errors import ConfigError, DataError, SchemaError

if TYPE_CHECKING:
    from databento_dbn import Metadata

BLOCK_BYTES = 1 << 21  # decompressed bytes read at once
REPAIR_BYTES = 1 << 12  # smaller, since what a read gives before it meets a damage is lost

TRADES, MBP_1, MBP_10, STATUS, DEFINITION, MAPPING, MBO, TBBO = 0, 1, 10, 18, 19, 22, 160, 197
LEVELS = {MBP_1: 1, TBBO: 1, MBP_10: 10}
UNDEF_PRICE = (1 << 63) - 1
F_LAST, F_SNAPSHOT, F_BAD_TS_RECV, F_MAYBE_BAD_BOOK = 128, 32, 8, 4

_ZSTD, _DBZ = b"\x28\xb5\x2f\xfd", b"P*M\x18"
_HEAD = [
    ("length", "u1"),
    ("rtype", "u1"),
    ("publisher_id", "<u2"),
    ("instrument_id", "<u4"),
    ("ts_event", "<u8"),
]
_HEAD_BYTES = 16  # of every record
_PREFIX_BYTES = 8  # "DBN", version, length of the metadata
_LEVEL = np.dtype(
    [
        ("bid_px", "<i8"),
        ("ask_px", "<i8"),
        ("bid_sz", "<u4"),
        ("ask_sz", "<u4"),
        ("bid_ct", "<u4"),
        ("ask_ct", "<u4"),
    ]
)


class Run(NamedTuple):
    """Records of one type that follow each other."""

    rtype: int
    records: NDArray[Any]
    number: int
    """Of the first one in the file, from 1."""
    done: float


class DbnFile:
    """One `.dbn` or `.dbn.zst` file.

    Args:
        path: the file; zstd may be of several frames.
        repair: end where a damage begins instead of refusing it.
    """

    def __init__(self, path: Path, *, repair: bool = False) -> None:
        self.path = path
        self.damaged = False
        self._repair = repair
        self._layouts: dict[tuple[int, int], np.dtype[Any]] = {}
        with self._stream() as stream:
            self.metadata, self._start = self._header(stream)
        self._fields = _fields(self.metadata.version)

    def runs(self) -> Iterator[Run]:
        """All records, in file order; of types that are not read here just the head."""
        self.damaged = False
        number, rest = 1, np.empty(0, np.uint8)
        with self._stream() as stream:
            stream.skip(self._start)
            for piece in self._pieces(stream):
                data = np.concatenate([rest, np.frombuffer(piece, np.uint8)])
                at = 0
                for size, rtype, count in self._split(data, number):
                    layout = self._layout(rtype, size, number)
                    part = data[at : at + count * size].view(layout)
                    yield Run(rtype, part, number, stream.done)
                    at += count * size
                    number += count
                if self.damaged:
                    return
                rest = data[at:]
        if len(rest):
            self._damage(f"record {number} is cut: {len(rest)} bytes are left")

    def _header(self, stream: _Stream) -> tuple[Metadata, int]:
        dbn = library()
        try:
            prefix = stream.read(_PREFIX_BYTES)
            if prefix[:3] != b"DBN":
                raise SchemaError(
                    f"{self.path}: begins with {prefix[:4]!r}, want 'DBN'; a fragment, records "
                    "without a header, cannot be read, since only the header tells their version, "
                    "dataset and symbols"
                )
            size = int.from_bytes(prefix[4:], "little")
            body = stream.read(size)
            if len(body) < size or len(prefix) < _PREFIX_BYTES:
                raise DataError(f"{self.path}: the DBN header is cut")
            policy = dbn.VersionUpgradePolicy.AS_IS
            return dbn.Metadata.decode(prefix + body, policy), _PREFIX_BYTES + size
        except dbn.DBNError as error:
            raise DataError(f"{self.path}: damaged DBN header: {error}") from None
        except OSError as error:
            raise DataError(f"{self.path}: damaged in the header: {error}") from None

    def _stream(self) -> _Stream:
        try:
            return _Stream(self.path)
        except FileNotFoundError:
            raise DataError(f"{self.path}: no such file") from None
        except OSError as error:
            raise DataError(f"{self.path}: cannot be read: {error}") from None

    def _pieces(self, stream: _Stream) -> Iterator[bytes]:
        size = REPAIR_BYTES if self._repair else BLOCK_BYTES
        block = bytearray()
        try:
            while piece := stream.read(size):
                block += piece
                if len(block) >= BLOCK_BYTES:
                    yield bytes(block)
                    block.clear()
        except OSError as error:
            self._damage(str(error))
        if block:
            yield bytes(block)

    def _split(self, data: NDArray[np.uint8], number: int) -> Iterator[tuple[int, int, int]]:
        """Size in bytes, type and number of the records of each run in `data`."""
        at = 0
        while len(data) - at >= _HEAD_BYTES:
            size, rtype = 4 * int(data[at]), int(data[at + 1])
            if size < _HEAD_BYTES or rtype not in _rtypes():
                self._damage(
                    f"record {number} has type {rtype} and {size} bytes, want a known type and at "
                    f"least {_HEAD_BYTES}"
                )
                return
            count = _alike(data[at:], size)
            if not count:
                return
            yield size, rtype, count
            at += count * size
            number += count

    def _layout(self, rtype: int, size: int, number: int) -> np.dtype[Any]:
        layout = self._layouts.get((rtype, size))
        if layout is None:
            fields = self._fields.get(rtype, _HEAD)
            least = np.dtype(fields).itemsize
            if size < least:
                raise SchemaError(
                    f"{self.path}: record {number} of type {rtype} has {size} bytes; in DBN "
                    f"version {self.metadata.version} it has at least {least}"
                )
            layout = self._layouts[rtype, size] = _padded(fields, size)
        return layout

    def _damage(self, what: str) -> None:
        if not self._repair:
            raise DataError(f"{self.path}: damaged: {what}")
        self.damaged = True


class _Stream:
    """Decompressed bytes of a file; `read` gives what was asked for, less only at the end."""

    def __init__(self, path: Path) -> None:
        self._size = max(path.stat().st_size, 1)
        self._file = path.open("rb")
        magic = self._file.peek(4)[:4]
        if magic == _DBZ:
            self._file.close()
            raise SchemaError(
                f"{path}: a .dbz file, the format before DBN, which databento-dbn does not read; "
                "download the data again as .dbn.zst"
            )
        self._plain: Any = self._file
        if magic == _ZSTD:
            import pyarrow as pa

            # Reads one frame after another, and says so where the last one is cut.
            self._plain = pa.CompressedInputStream(pa.PythonFile(self._file, "r"), "zstd")

    def __enter__(self) -> _Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    @property
    def done(self) -> float:
        """Share of the file that has been read."""
        return min(self._file.tell() / self._size, 1.0)

    def read(self, size: int) -> bytes:
        return bytes(self._plain.read(size))

    def skip(self, size: int) -> None:
        self.read(size)


def _alike(data: NDArray[np.uint8], size: int) -> int:
    """How many whole records from the front have the length and type of the first."""
    count = len(data) // size
    heads = data[: count * size].reshape(count, size)
    at, look = 0, 64
    while at < count:  # in steps that grow: where types alternate, no one looks far ahead
        part = heads[at : at + look]
        other = (part[:, 0] != data[0]) | (part[:, 1] != data[1])
        if other.any():
            return at + int(other.argmax())
        at, look = at + look, 4 * look
    return count


def library() -> Any:
    """`databento_dbn`, which is optional.

    Raises:
        ConfigError: it is not installed.
    """
    try:
        import databento_dbn
    except ImportError:
        raise ConfigError(
            "DBN files need databento-dbn: pip install 'hft-framework[databento]'"
        ) from None
    return databento_dbn


@cache
def _rtypes() -> frozenset[int]:
    return frozenset(int(rtype) for rtype in library().RType.variants())


@cache
def _fields(version: int) -> dict[int, list[Any]]:
    """Fields by record type; single characters as bytes, levels as an array."""
    dbn = library()
    layouts = getattr(dbn, f"v{version}")
    classes = {
        TRADES: layouts.TradeMsg,
        MBO: layouts.MBOMsg,
        STATUS: layouts.StatusMsg,
        DEFINITION: layouts.InstrumentDefMsg,
        MAPPING: layouts.SymbolMappingMsg,
    }
    fields: dict[int, list[Any]] = {
        rtype: [(name, "u1" if form == "S1" else form) for name, form in message._dtypes]
        for rtype, message in classes.items()
    }
    for rtype, levels in LEVELS.items():
        fields[rtype] = [*fields[TRADES], ("levels", _LEVEL, (levels,))]
    return fields


def _padded(fields: list[Any], size: int) -> np.dtype[Any]:
    """Records of `size` bytes, which a live capture makes longer by a send time."""
    known: dict[str, Any] = dict(np.dtype(fields).fields or {})
    return np.dtype(
        {
            "names": list(known),
            "formats": [known[name][0] for name in known],
            "offsets": [known[name][1] for name in known],
            "itemsize": size,
        }
    )
